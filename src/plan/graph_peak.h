/* The peak of a graph as PyTorch's passes on graphs estimate it: device storages, node by node,
 * without fusion, and without keeping a transfer's operands until its wait. For comparison only;
 * everything else uses memory_peak(). */
#ifndef TUCK_PLAN_GRAPH_PEAK_H
#define TUCK_PLAN_GRAPH_PEAK_H

#include "graph/symbol_values.h"
#include "graph/graph.h"

struct graph_peak {
    int64_t peak, initial; /* bytes; initial: inputs and attributes, live from the start */
    uint32_t node;         /* where; 0 means before the first */
    uint32_t unknown;      /* storages of unknown size, counted as 0 */
    int64_t returned;      /* bytes of what the graph returns, if `after` is given */
};

/* A graph among others of a step. Arrays are by node, and may be NULL. */
struct graph_peak_more {
    const bool *keep;           /* inputs that are not freed, besides those of the caller */
    const int64_t *input_bytes; /* of an input: the size of its whole storage, 0 if not known */
    const bool *after;          /* returned values that do not count in graph_peak.returned */
    uint32_t *root;             /* result: the storage of a node, from 1; 0 if it has none */
    int64_t *bytes;             /* result: the size of that storage */
};

/* Infers types if needed. */
TUCK_MUST_CHECK tuck_status memory_graph_peak_of(tuck_graph *g, const struct fx_hint *hint,
                                                 size_t n_hint, const struct graph_peak_more *more,
                                                 struct graph_peak *out);

/* The same for a graph by itself. */
TUCK_MUST_CHECK tuck_status memory_graph_peak(tuck_graph *g, const struct fx_hint *hint,
                                              size_t n_hint, struct graph_peak *out);

#endif
