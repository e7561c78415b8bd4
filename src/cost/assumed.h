/* What a cost rests on that nobody gave: sizes of process groups, sizes that only data decides. Whatever shows such a cost
 * shows these beside it. */
#ifndef TUCK_COST_ASSUMED_H
#define TUCK_COST_ASSUMED_H

#include "cost/cluster.h"
#include "fx/graph.h"

struct json_out;
struct buf;

struct cost_assumed {
    const char *group;
    int64_t ranks;
};

/* Groups of the graph and of those nested in it whose size is taken for all ranks of the machine, each name once, in
 * the arena. How many. */
uint32_t cost_assumed_groups(const tuck_graph *g, const tuck_cluster *c, struct arena *a,
                             struct cost_assumed **out);

/* "assumed": [{"group": "tp", "ranks": 8}, {"unbacked": 8192}]; unbacked: such a default was used. */
void cost_assumed_json(struct json_out *j, const struct cost_assumed *at, uint32_t n,
                       bool unbacked);
/* A line each, for tables: "  assumed: group tp has 8 ranks; …". */
void cost_assumed_table(struct buf *b, const struct cost_assumed *at, uint32_t n, bool unbacked);

#endif
