/* What a cost assumes because it was not given: sizes of process groups, trip counts of loops,
 * branches taken, sizes that depend on data. Whatever shows such a cost also shows these. */
#ifndef TUCK_COST_ASSUMED_H
#define TUCK_COST_ASSUMED_H

#include "cost/cluster.h"
#include "graph/graph.h"

struct json_out;
struct buf;

enum cost_assumed_what { ASSUMED_RANKS, ASSUMED_TRIP, ASSUMED_BRANCH };

struct cost_assumed {
    const char *name; /* the group, or the first loop or cond */
    int64_t n;        /* its ranks, or how many loops or conds there are */
    uint8_t what;     /* enum cost_assumed_what */
};

/* Finds the assumptions about the graph and those nested in it, in the arena: groups assumed to
 * span the machine, each name once; loops, counted as one trip; conds, counted as their most
 * expensive branch. Returns how many. */
uint32_t cost_assumed_find(const tuck_graph *g, const tuck_cluster *c, struct arena *a,
                           struct cost_assumed **out);

/* "assumed": [{"group": "tp", "ranks": 8}, {"loop": "while_loop", "trips": 1, "loops": 2}, {"cond":
 * "cond", "branch": "dearest", "conds": 1}, {"unbacked": 8192}]; unbacked: a default for such sizes
 * was used. */
void cost_assumed_json(struct json_out *j, const struct cost_assumed *at, uint32_t n,
                       bool unbacked);
/* One line each, for tables: "  assumed: group tp has 8 ranks; …". */
void cost_assumed_table(struct buf *b, const struct cost_assumed *at, uint32_t n, bool unbacked);

#endif
