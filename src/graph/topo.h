/* Sorting a graph that a pass has changed.
 *
 * tuck_graph_sort() keeps the order of effects only as far as uses allow. A pass must keep it, or
 * leave the graph alone. So it records what must keep its order before it edits, adds its own
 * constraints, edits, and then sorts:
 *
 *   struct topo_edges e = {0};
 *   topo_keep(g, &arena, &e);                          reads, writes, random numbers
 *   … edit: put new nodes where they should be …
 *   topo_map(&e, 0, begin, end, n);                    replaces erased nodes
 *   topo_edge_add(&arena, &e, a, b);                   a before b
 *   if (!topo_sort_with(g, &arena, &e)) …              no order is valid; the graph is unchanged
 *
 * The sort is stable: of the nodes that could come next, it takes the first in the list. So a
 * node's position in the list is a preference; edges and uses are constraints.
 */
#ifndef TUCK_GRAPH_TOPO_H
#define TUCK_GRAPH_TOPO_H

#include "graph/graph.h"

/* `to` comes after `from`. Either may be an erased node: it is then a point in the order that other
 * nodes come before or after. */
struct topo_edge {
    uint32_t from, to;
};

struct topo_edges {
    VEC(struct topo_edge) edge; /* in the arena of the caller */
};

static inline void topo_edge_add(struct arena *a, struct topo_edges *e, uint32_t from, uint32_t to)
{
    if (from != to)
        vec_push_in(a, &e->edge, ((struct topo_edge){from, to}));
}

/* What must keep its order in a graph whose order is valid:
 * - a read of a storage stays between the writes around it, and writes stay in order; a wait reads
 *   and writes what its collective does, because the transfer may last until then;
 * - nodes that draw random numbers stay in order;
 * - unknown operators stay in order among themselves, against all writes, all random numbers and
 *   all communication.
 * O(nodes + accesses). */
void topo_keep(const tuck_graph *g, struct arena *a, struct topo_edges *e);
/* only the first of these */
void topo_keep_storages(const tuck_graph *g, struct arena *a, struct topo_edges *e);

/* Edges by their start: those of n end at to[start[n]] … to[start[n + 1] - 1]. */
struct topo_fan {
    uint32_t *start, *to;
};

struct topo_fan topo_fan_out(const tuck_graph *g, struct arena *a, const struct topo_edges *e);

/* From edge number `first` on, replaces erased nodes by those that do their work now: as an end of
 * an edge by begin[node], the first that uses its operand; as a start by end[node], the last that
 * does. 0 means unchanged. Ids from n on stay. */
void topo_map(struct topo_edges *e, uint32_t first, const uint32_t *begin, const uint32_t *end,
              uint32_t n);

/* Sorts the nodes so that uses and edges hold. False: there is no such order, and the graph is
 * unchanged. O((n + e) log n). When memory runs out, jumps to the arena's guard. */
bool topo_sort_with(tuck_graph *g, struct arena *a, const struct topo_edges *e);

#endif
