/* The time of every node of a graph by itself, what it is bound by, and their sums. */
#ifndef TUCK_STUDY_NODE_COSTS_H
#define TUCK_STUDY_NODE_COSTS_H

#include "study/evaluate.h"

struct node_cost {
    uint32_t node;
    struct cost_part part;
};

struct node_costs {
    tuck_graph *g;
    struct machine machine; /* with the laws of its profile */
    struct mem mem;
    struct cost_run run;
    struct assume assume;
    VEC(struct node_cost) node;      /* all of them, in order */
    VEC(uint32_t) order;             /* those with a time, the longest first: places in node */
    double total[BOUND_UNKNOWN + 1]; /* ns by bound; a measured collective is BOUND_COLLECTIVE */
    size_t count[BOUND_UNKNOWN + 1];
    double inside_ns;             /* of it, collectives in nested graphs */
    uint32_t unknown_colls;       /* collectives among those that are not known */
    struct cost_assumed *assumed; /* in the arena of run */
    uint32_t n_assumed;
};

/* Types must have been inferred. Groups that are larger than the cluster get a warning. The costs
 * must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status node_costs_find(struct node_costs *c, tuck_graph *g,
                                            const struct machine *m, tuck_diags *diags);
void node_costs_end(struct node_costs *c);

/* Nodes of unknown cost: a warning; or an error and TUCK_EINVAL, where too many are,
 * or with `strict` any is. */
TUCK_MUST_CHECK tuck_status node_costs_tell(struct node_costs *c, bool strict, tuck_diags *diags);

/* The times of ops, which are what a step is made of, by node id: a loop's on the node that it is
 * named after, 0 on the other nodes of the loop, -1 where there is none. So a profile that is read
 * back gives the same step. ns has tuck_graph_id_end() entries. */
TUCK_MUST_CHECK tuck_status node_costs_of_ops(const struct node_costs *c, tuck_diags *diags,
                                              double *ns);

/* report/costs_show.c. A table of the `top` longest, and a JSON document with all nodes. */
void node_costs_table(const struct node_costs *c, uint32_t top, struct buf *out);
void node_costs_json(const struct node_costs *c, struct buf *out);

#endif
