/* Options of the commands that run graphs on real ranks, as an argp child. */
#ifndef TUCK_CLI_RANKS_H
#define TUCK_CLI_RANKS_H

#include "cli/cli.h"

struct ranks {
    tuck_exec_options o;
    bool steps_given;
};

extern const struct argp ranks_argp;

/* The only graph that is chosen in a file. Returns an exit code. */
int ranks_graph(const char *command, const struct input *in, tuck_graph **out);

/* Files of one rank each, besides the first. */
struct rank_files {
    struct input *in; /* [n], the first is a copy of the command's own */
    tuck_graph **g;   /* [n] */
    size_t n, opened;
};

/* Opens them, with the options of the first. If there are several parts of as many files (before
 * and after), the ranks of each are sorted. Returns an exit code; close it in any case. */
int rank_files_open(struct rank_files *f, const char *command, const struct input *first,
                    const char *const *more, size_t n_more, size_t parts);
void rank_files_close(struct rank_files *f);

/* Exit code of a run: what cannot be run is refused. */
int ranks_code(tuck_status st);

#endif
