/* Argument lists that callers of the public interface build. */
#ifndef TUCK_GRAPH_ARGS_H
#define TUCK_GRAPH_ARGS_H

#include "graph/graph.h"

struct tuck_args {
    tuck_graph *g;
    struct fx_store *store; /* a reference of its own: the list may be freed after the graph */
    struct value_list list;
    uint32_t n_args, n_kwargs;
    bool keyed;        /* a keyword waits for its value */
    tuck_status error; /* the first one */
};

/* Remember the first error. */
void args_fail(tuck_args *a, tuck_status why);
/* One more value, with all that is in it. */
void args_append(tuck_args *a, const tuck_value *v);

/* Complete, without an error, made for this graph, and every node in it can be used? */
tuck_status args_check(const tuck_args *a, const tuck_graph *g);

#endif
