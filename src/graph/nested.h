/* Collectives in the graphs that a node calls.
 *
 * All ranks issue the collectives of a group in one order, in whatever graph they are, so a call of
 * a graph with collectives has a position in that order, too. Graphs are searched GRAPH_DEPTH
 * levels deep; anything deeper is assumed to do everything.
 */
#ifndef TUCK_GRAPH_NESTED_H
#define TUCK_GRAPH_NESTED_H

#include "graph/call.h"

enum { GRAPH_DEPTH = 4 };

enum { LINE_UNKNOWN = -1, LINE_ANY = -2 };

/* By node: the groups of g in whose order of collectives it has a position; none if it does not
 * communicate. For a collective this is its own group, or LINE_UNKNOWN; for a call of graphs the
 * groups inside them, with LINE_ANY if one could be any group. */
struct comm_lines {
    uint32_t *start; /* the lines of n are line[start[n]] … line[start[n + 1] - 1] */
    int32_t *line;
    uint32_t *node; /* the nodes that have lines, in order */
    uint32_t n_node;
};

/* In the arena; group is groups_of_nodes(). When memory runs out, jumps to the arena's guard. */
void comm_lines_find(const tuck_graph *g, const int32_t *group, struct arena *a,
                     struct comm_lines *out);

/* The same as indices into an array by group + 1, whose first entry is for collectives of unknown
 * groups. */
static inline uint32_t comm_line_count(const struct comm_lines *l, const tuck_graph *g, uint32_t n)
{
    uint32_t count = l->start[n + 1] - l->start[n];

    return count > 0 && l->line[l->start[n + 1] - 1] == LINE_ANY ? g->group.len + 1 : count;
}

static inline uint32_t comm_line_at(const struct comm_lines *l, uint32_t n, uint32_t i)
{
    return l->line[l->start[n + 1] - 1] == LINE_ANY ? i : (uint32_t)(l->line[l->start[n] + i] + 1);
}

/* Does node n call graphs that contain collectives, not counting waits? `kind`: only those with
 * this flag of ops.h, 0 means any. False for a wrapper of one call. */
bool node_nests_comm(const tuck_graph *g, uint32_t n, uint32_t kind);

/* Does the graph, or one that it calls, write anything, including its own values? */
bool graph_may_write(const tuck_graph *g);
/* Does a call take such a graph? False for wrappers. */
bool node_nests_writes(const tuck_graph *g, const struct fx_node *x);
/* Does a call take a graph that does something besides returning results: communicates, draws
 * random numbers, checks, writes? False for wrappers. */
bool node_nests_effect(const tuck_graph *g, uint32_t n);
/* The same, but for communication, checks and writes to storages: what keeps its order with others
 * of its kind, such as random numbers. */
bool node_nests_order(const tuck_graph *g, uint32_t n);

#endif
