/* Argument lists built by callers of the public interface. */
#ifndef TUCK_GRAPH_ARGS_H
#define TUCK_GRAPH_ARGS_H

#include "graph/graph.h"

struct tuck_args {
    tuck_graph *g;
    struct fx_store *store; /* its own reference: the list may be freed after the graph */
    struct value_list list;
    uint32_t n_args, n_kwargs;
    bool keyed;        /* a keyword is waiting for its value */
    tuck_status error; /* the first one */
};

/* Records the first error. */
void args_fail(tuck_args *a, tuck_status why);
/* Appends a value with everything in it. */
void args_append(tuck_args *a, const tuck_value *v);

/* Is it complete, without an error, made for this graph, and can every node in it be used? */
tuck_status args_check(const tuck_args *a, const tuck_graph *g);

#endif
