/* --dump: the graph before and after each pass, one file each. */
#ifndef TUCK_CLI_DUMP_H
#define TUCK_CLI_DUMP_H

#include "cli/cli.h"

struct dump {
    const char *folder; /* NULL: no dump */
    bool dot;
    bool numbered; /* steps are counted here, because passes are tried repeatedly */
    const struct input *in;
    size_t graph; /* being worked on */
    size_t n;     /* passes of it so far */
    struct output_name other[5];
    int code; /* exit code if a file could not be written */
};

/* Opens the folder, creating it if necessary. EXIT_USAGE if another output of the command has the
 * name of a dump in it. */
int dump_open(struct dump *d);

/* A tuck_observe_fn, whose context is the dump. */
bool dump_graph(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);

#endif
