/* What is known of a graph and its text does not say: groups, the rank, values of symbols.
 * It comes from a side-car file, from the line above the graph, from the user; all but the
 * last are JSON of one form:
 *
 *   {"groups": {"tp": {"size": 4, "ranks": [0, 2, 4, 6]}}, "printed_on_rank": 2,
 *    "symbols": {"s0": 512}}
 */
#ifndef TUCK_TEXT_KNOWN_H
#define TUCK_TEXT_KNOWN_H

#include "graph/graph.h"

/* Take what the line above the graph of an entry says. A wrong line is ignored, with a warning.
 * Leaves through the store's guard. */
void known_take(const struct fx_entry *e, tuck_diags *diags);

/* As tuck_graph_remember(), with values of symbols that the user gave. */
TUCK_MUST_CHECK tuck_status known_remember(tuck_graph *g, const struct fx_hint *hint, size_t n);

#endif
