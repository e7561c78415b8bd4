/* The time of each node by itself, what limits it, and the sums. */
#ifndef TUCK_STUDY_NODE_COSTS_H
#define TUCK_STUDY_NODE_COSTS_H

#include "study/evaluate.h"

struct node_cost {
    uint32_t node;
    struct cost_part part;
};

struct node_costs {
    tuck_graph *g;
    struct machine machine; /* including the laws of its profile */
    struct mem mem;
    struct cost_run run;
    struct assume assume;
    VEC(struct node_cost) node; /* every node, in order */
    VEC(uint32_t) order;        /* nodes with a time, longest first: indices into `node` */
    /* by bound; a measured collective counts as BOUND_COLLECTIVE */
    int64_t total_ps[BOUND_UNKNOWN + 1];
    size_t count[BOUND_UNKNOWN + 1];
    int64_t inside_ps;            /* the part of it spent in collectives of nested graphs */
    uint32_t unknown_colls;       /* collectives among the unknown nodes */
    struct cost_assumed *assumed; /* in run's arena */
    uint32_t n_assumed;
};

/* Types must have been inferred. Groups that are larger than the cluster get a warning. The costs
 * must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status node_costs_find(struct node_costs *c, tuck_graph *g,
                                            const struct machine *m, tuck_diags *diags);
void node_costs_end(struct node_costs *c);

/* Warns about nodes of unknown cost. An error and TUCK_EINVAL if there are too many, or any at all
 * with `strict`. */
TUCK_MUST_CHECK tuck_status node_costs_tell(struct node_costs *c, bool strict, tuck_diags *diags);

/* The times of the ops, of which a step consists, by node id. A loop's time is on the node it is
 * named after, and its other nodes have 0; nodes without a time have -1. So a profile that is read
 * back gives the same step. ps has tuck_graph_id_end() entries. */
TUCK_MUST_CHECK tuck_status node_costs_of_ops(const struct node_costs *c, tuck_diags *diags,
                                              int64_t *ps);

/* In report/costs_show.c: a table of the `top` longest nodes, and a JSON document with all of
 * them. */
void node_costs_table(const struct node_costs *c, uint32_t top, struct buf *out);
void node_costs_json(const struct node_costs *c, struct buf *out);

#endif
