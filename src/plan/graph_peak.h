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
};

/* Infers types if needed. */
TUCK_MUST_CHECK tuck_status memory_graph_peak(tuck_graph *g, const struct fx_hint *hint,
                                              size_t n_hint, struct graph_peak *out);

#endif
