/* Collectives in the graphs that a node calls.
 *
 * All ranks issue the collectives of a group in one order, in whatever graph they are: a call of a
 * graph with collectives in it is a place in that order, too. Graphs are searched GRAPH_DEPTH
 * levels deep; anything deeper is assumed to do everything.
 */
#ifndef TUCK_GRAPH_NESTED_H
#define TUCK_GRAPH_NESTED_H

#include "graph/call.h"

enum { GRAPH_DEPTH = 4 };

enum { LINE_UNKNOWN = -1, LINE_ANY = -2 };

/* By node: the groups of g whose order of collectives it has a place in; none where it does not
 * communicate. Of a collective its own, LINE_UNKNOWN where that is not known; of a call of graphs
 * those inside them, LINE_ANY where one could be any group. */
struct comm_lines {
    uint32_t *start; /* those of n: line[start[n]] … line[start[n + 1] - 1] */
    int32_t *line;
};

/* In the arena; group is groups_of_nodes(). Leaves through the arena's guard. */
void comm_lines_find(const tuck_graph *g, const int32_t *group, struct arena *a,
                     struct comm_lines *out);

/* The same as places in an array by group + 1, of which the first is of collectives
 * whose group is not known. */
static inline uint32_t comm_line_count(const struct comm_lines *l, const tuck_graph *g, uint32_t n)
{
    uint32_t count = l->start[n + 1] - l->start[n];

    return count > 0 && l->line[l->start[n + 1] - 1] == LINE_ANY ? g->group.len + 1 : count;
}

static inline uint32_t comm_line_at(const struct comm_lines *l, uint32_t n, uint32_t i)
{
    return l->line[l->start[n + 1] - 1] == LINE_ANY ? i : (uint32_t)(l->line[l->start[n] + i] + 1);
}

/* Does node n call graphs with collectives, waits not counted, in them? `kind`: only those with
 * such a flag of ops.h, 0: any. A wrapper of one call does not. */
bool node_nests_comm(const tuck_graph *g, uint32_t n, uint32_t kind);

/* Does the graph, or one that it calls, write anything, its own values included? */
bool graph_may_write(const tuck_graph *g);
/* Does a call take such a graph? Not of wrappers. */
bool node_nests_writes(const tuck_graph *g, const struct fx_node *x);
/* Does a call take a graph that does something besides giving results: communicates, draws random
 * numbers, checks, writes? Not of wrappers. */
bool node_nests_effect(const tuck_graph *g, uint32_t n);

#endif
