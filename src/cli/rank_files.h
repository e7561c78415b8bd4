/* Several files: one rank each, with the graph that --graph names, or the only one. */
#ifndef TUCK_CLI_RANK_FILES_H
#define TUCK_CLI_RANK_FILES_H

#include "cli/cli.h"

struct rank_files {
    size_t n, opened; /* opened: besides the first */
    size_t last;      /* index of the greatest rank */
    struct input *in; /* the first is the caller's */
    int64_t *number;  /* global ranks; -1 if unknown */
};

/* `first` is open. Returns an exit code; must be closed in any case. */
int rank_files_open(struct rank_files *f, const char *command, const struct input *first,
                    const char *const *more, size_t n_more);
void rank_files_close(struct rank_files *f);

tuck_graph *rank_files_graph(const struct rank_files *f, size_t i);

/* The machine, with room for the last rank. Returns an exit code. */
int rank_files_model(const struct rank_files *f, struct model *m, bool *assumed);

#endif
