/* tuck optimize with several files: the graphs of several ranks, one decision. */
#ifndef TUCK_CLI_OPTIMIZE_RANKS_H
#define TUCK_CLI_OPTIMIZE_RANKS_H

#include "cli/cli.h"

struct optimize_ranks {
    struct input *in; /* the first file, open */
    struct model *model;
    const char *const *more; /* the other files */
    size_t n_more;
    /* A folder, or a name in which % is the rank; NULL: no graph is written. */
    const char *out;
    const char *report, *decision; /* files, or NULL */
    tuck_run_options run;          /* without the machine */
    double bandwidth;              /* the machine's; 0: as it is */
    tuck_print_options how;
};

/* Returns an exit code. */
int optimize_ranks(struct optimize_ranks *o);

#endif
