/* Options of the commands that run graphs on real ranks, as an argp child. */
#ifndef TUCK_CLI_RANKS_H
#define TUCK_CLI_RANKS_H

#include "cli/rank_files.h"

struct ranks {
    tuck_exec_options o;
    bool steps_given;
};

extern const struct argp ranks_argp;

/* The graphs of open files, in a new array; NULL if out of memory. If there are several parts of as
 * many files (before and after), the files of each are sorted by rank, if all say which rank they
 * are of. */
tuck_graph **ranks_graphs(const struct rank_files *f, size_t parts);

/* Exit code of a run: what cannot be run is refused. */
int ranks_code(tuck_status st);

#endif
