/* Facts about a graph that its text does not contain: groups, the rank, values of symbols. They
 * come from a side-car file, from the line above the graph, or from the user; the first two are
 * JSON of one form:
 *
 *   {"groups": {"tp": {"size": 4, "ranks": [0, 2, 4, 6]}}, "printed_on_rank": 2,
 *    "symbols": {"s0": 512}}
 */
#ifndef TUCK_TEXT_KNOWN_H
#define TUCK_TEXT_KNOWN_H

#include "graph/graph.h"

/* Takes the facts from the line above the graph of an entry. An invalid line is ignored, with a
 * warning. When memory runs out, jumps to the store's guard. */
void known_take(const struct fx_entry *e, tuck_diags *diags);

/* Like tuck_graph_remember(), with values of symbols from the user. */
TUCK_MUST_CHECK tuck_status known_remember(tuck_graph *g, const struct fx_hint *hint, size_t n);

#endif
