/* The size of a collective's message: one rule for all users. */
#ifndef TUCK_GRAPH_MESSAGE_H
#define TUCK_GRAPH_MESSAGE_H

#include "graph/call.h"
#include "graph/symbol_values.h"

/* The full message of the collective that node n is or wraps: the larger of its input and output,
 * where a list counts as a whole. For a collective fused with a matrix product: what is gathered or
 * scattered on all `ranks` of the group together. -1: some size is unknown. Needs types. When
 * memory runs out, jumps to the arena's guard. */
int64_t message_bytes(const tuck_graph *g, uint32_t n, int64_t ranks, struct sigs *sigs,
                      struct assume *assume, struct arena *scratch);

#endif
