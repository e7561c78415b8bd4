/* --dump: the graph before and after each pass, a file each. */
#ifndef TUCK_CLI_DUMP_H
#define TUCK_CLI_DUMP_H

#include "cli/cli.h"

struct dump {
    const char *folder; /* NULL: nothing is dumped */
    bool dot;
    bool numbered; /* steps are counted here: passes are tried again and again */
    const struct input *in;
    size_t graph; /* being worked on */
    size_t n;     /* passes of it so far */
    struct output_name other[4];
    int code; /* what a file that could not be written makes of the run */
};

/* The folder, made where it is not there. EXIT_USAGE where another output of the command has
 * the name of a dump in it. */
int dump_open(struct dump *d);

/* A tuck_observe_fn, whose context is the dump. */
bool dump_graph(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);

#endif
