/* The time of a graph's nodes: kernels by a roofline over the columns flops and moves of ops.def,
 * collectives by the models of collective_cost.h; times from a profile or from the caller override
 * both.
 *
 *   struct cost_run r;
 *   cost_run_init(&r, &mem, cluster, &options, &assume);
 *   cost_run_graph(&r, g);                          // infer_graph() must have run
 *   for_each_node (g, n) { cost_node(&r, n, &part); … part.ps … }
 *   cost_run_done(&r);
 *
 * When memory runs out, these jump to mem's guard. Times are of a node by itself: the host's time
 * to launch it (launch_ps of a cluster) and how kernels slow each other down are left to the
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
    BOUND_KERNEL,     /* small: the minimum time of a kernel */
    BOUND_COLLECTIVE, /* communication */
    BOUND_NESTED,     /* the graphs it calls */
    BOUND_PROFILE,    /* from a profile */
    BOUND_CALLER,     /* the caller's function */
    BOUND_UNKNOWN,    /* unknown sizes: ps is -1 */
};

struct cost_part {
    int64_t ps;      /* -1 if unknown */
    int64_t comm_ps; /* the part spent in collectives of the graphs it calls */
    double flops;
    /* read and written; for a collective its message, for a call the sum of the graphs */
    int64_t bytes;
    uint8_t bound; /* enum cost_bound */
    uint8_t coll;  /* tuck_coll of a collective, else 0 */
    int32_t group; /* index into the graph's groups, or -1 */
};

struct cost_options {
    struct cost_choice collective;
    const tuck_profile *profile; /* or NULL */
    /* laws of the profile's collectives, for sizes that were not measured; laws_fit() */
    struct cost_laws laws;
    tuck_estimate_fn estimate; /* or NULL */
    void *estimate_ctx;
};

/* Time of one call of a graph; ps is -1 if unknown. */
struct cost_inside {
    int64_t ps, comm_ps;
    int64_t bytes; /* sum of its messages */
};

/* A graph, and the range of its children among all nested graphs. */
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
    /* by type: bytes of a tensor or of a whole list; -1 if unknown, -2 if not computed yet */
    int64_t *bytes;
    uint32_t n_bytes;
    struct cost_shape *group;   /* by group of g */
    const int32_t *node_group;  /* by node of g: its group, or -1; NULL if not computed yet */
    uint32_t *child;            /* by name: the child of g with this name */
    struct cost_inside *inside; /* by child of g */
    /* By node, for sets of nodes; an entry is valid if it belongs to the current stamp. */
    VEC(uint32_t) mark;       /* it is in the set */
    VEC(uint32_t) seen;       /* its bytes were counted */
    VEC(uint32_t) base;       /* for a view in the set: what it is a view of */
    VEC(uint32_t) read_stamp; /* it has an entry in read[], or was counted as written */
    VEC(int64_t) read;        /* bytes that the set reads from it */
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

/* Nodes fused into one loop: inputs from outside are read once, results used outside are written
 * once. Times from a profile are added up. */
void cost_loop(struct cost_run *r, const uint32_t *node, uint32_t n, struct cost_part *out);

/* The time of a kernel with this much work. */
int64_t cost_kernel_ps(const tuck_cluster *c, enum dtype dtype, double flops, double bytes,
                       enum cost_bound *bound_out);

/* Bytes of a node's results; -1 if unknown. */
int64_t cost_result_bytes(struct cost_run *r, uint32_t n);

/* Views, waits, inputs: no kernel, even if a profile has a time for it. */
bool cost_takes_none(const tuck_graph *g, uint32_t n);

/* The kind of collective of a row; 0 if it is none. */
tuck_coll cost_coll_of(const struct op_row *row);

/* In flops.c: uses the row's formula. False: sizes are unknown. */
bool cost_flops(struct cost_run *r, uint32_t n, const struct op_row *row, double *flops,
                enum dtype *dtype);

const char *cost_bound_name(enum cost_bound b);

#endif
