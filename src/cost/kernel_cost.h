/* The time of a graph's nodes: kernels by a roofline over the columns flops and moves of ops.def,
 * collectives by the models of collective_cost.h; times of a profile or the caller override both.
 *
 *   struct cost_run r;
 *   cost_run_init(&r, &mem, cluster, &options, &assume);
 *   cost_run_graph(&r, g);                          // infer_graph() must have run
 *   for_each_node (g, n) { cost_node(&r, n, &part); … part.ps … }
 *   cost_run_done(&r);
 *
 * Allocation leaves through mem's guard. Times are of a node by itself: the host's time to
 * launch it (launch_us of a cluster) and how kernels slow each other down are left to the
 * simulation.
 */
#ifndef TUCK_COST_KERNEL_COST_H
#define TUCK_COST_KERNEL_COST_H

#include "cost/collective_cost.h"
#include "cost/laws.h"
#include "graph/symbol_values.h"
#include "graph/call.h"
#include "graph/effect.h"
#include "op/collective.h"

/* What its time comes from. */
enum cost_bound {
    BOUND_NOTHING,    /* a view, an input, a wait: no time */
    BOUND_COMPUTE,    /* arithmetic */
    BOUND_MEMORY,     /* reading and writing */
    BOUND_KERNEL,     /* too small: the least time of a kernel */
    BOUND_COLLECTIVE, /* communication */
    BOUND_NESTED,     /* the graphs it calls */
    BOUND_PROFILE,    /* from a profile */
    BOUND_CALLER,     /* the caller's function */
    BOUND_UNKNOWN,    /* unknown sizes: ns is -1, ps 0 */
};

struct cost_part {
    double ns;
    double comm_ns; /* of it, collectives in the graphs it calls */
    int64_t ps;
    double flops;
    int64_t bytes; /* read and written; of a collective its message, of graphs those in them */
    uint8_t bound; /* enum cost_bound */
    uint8_t coll;  /* tuck_coll of a collective, else 0 */
    int32_t group; /* index into the graph's groups, -1 = none */
};

struct cost_options {
    struct cost_choice collective;
    const tuck_profile *profile; /* or NULL */
    struct cost_laws laws; /* of its collectives, for sizes that were not measured; laws_fit() */
    tuck_estimate_fn estimate; /* or NULL */
    void *estimate_ctx;
};

/* Time of one call of a graph; ns -1: unknown. */
struct cost_inside {
    double ns, comm_ns;
    int64_t bytes; /* of the messages in it */
};

/* A graph and where its children are, side by side, among all nested graphs. */
struct cost_nest {
    const tuck_graph *g;
    uint32_t first;
};

struct cost_run {
    struct mem *mem;
    struct arena arena;
    const tuck_cluster *c;
    struct cost_options options;
    struct assume *assume;
    struct sigs sigs;
    const tuck_graph *g;
    int64_t *bytes; /* by type: of a tensor or all of a list; -1 unknown, -2 not asked yet */
    uint32_t n_bytes;
    struct cost_shape *group;   /* by group of g */
    const int32_t *node_group;  /* by node of g: its group, -1: none; NULL: not computed yet */
    uint32_t *child;            /* by name: which child of g is called so, if one is */
    struct cost_inside *inside; /* by child of g */
    /* By node, for sets of nodes; each entry is valid if it is, or goes with, the current stamp. */
    VEC(uint32_t) mark;       /* is in the set */
    VEC(uint32_t) seen;       /* its bytes were counted */
    VEC(uint32_t) base;       /* of a view of the set: what it is a view of */
    VEC(uint32_t) read_stamp; /* has an entry in read[]; or was counted as written */
    VEC(int64_t) read;        /* bytes that the set reads of it */
    VEC(uint32_t) outside;    /* nodes with an entry in read[] */
    uint32_t stamp;
    VEC(type_id) todo;
    VEC(struct cost_nest) nest;
};

void cost_run_init(struct cost_run *r, struct mem *m, const tuck_cluster *c,
                   const struct cost_options *options, struct assume *assume);
void cost_run_graph(struct cost_run *r, const tuck_graph *g);
void cost_run_done(struct cost_run *r);

void cost_node(struct cost_run *r, uint32_t n, struct cost_part *out);

/* Nodes that become one loop: inputs from outside are read once, results used outside are written
 * once. A profile's times are summed. */
void cost_loop(struct cost_run *r, const uint32_t *node, uint32_t n, struct cost_part *out);

/* The time of a kernel that does this much. */
double cost_kernel_ns(const tuck_cluster *c, enum dtype dtype, double flops, double bytes,
                      enum cost_bound *bound_out);

/* Bytes of a node's results; -1: unknown. */
int64_t cost_result_bytes(struct cost_run *r, uint32_t n);

/* Views, waits, inputs: no kernel, whatever a profile says. */
bool cost_takes_none(const tuck_graph *g, uint32_t n);

/* The kind of collective of a row; 0: not a collective. */
tuck_coll cost_coll_of(const struct op_row *row);

/* flops.c: by the row's formula. False: sizes are not known. */
bool cost_flops(struct cost_run *r, uint32_t n, const struct op_row *row, double *flops,
                enum dtype *dtype);

const char *cost_bound_name(enum cost_bound b);

#endif
