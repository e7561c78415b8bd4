/* Simulates several ranks together: all ranks of one graph, some of them slower, or one graph per
 * rank. */
#ifndef TUCK_STUDY_SEVERAL_RANKS_H
#define TUCK_STUDY_SEVERAL_RANKS_H

#include "study/evaluate.h"
#include "sim/rank_sim.h"

/* One graph and its evaluation. */
struct ranks_graph {
    const tuck_graph *g;
    const struct evaluation *e;
    const char *name; /* its file, for reports */
    int64_t rank;     /* global rank; -1: unknown */
};

/* A rank whose kernels take `factor` times as long. */
struct ranks_straggler {
    int64_t rank;
    double factor;
};

/* Every group of a name, if one rank's own group does not determine the others. */
struct ranks_instances {
    const char *name;
    size_t n;             /* number of groups */
    int64_t size;         /* members of each */
    const int64_t *ranks; /* n times size */
};

struct ranks_options {
    const struct machine *machine;
    const struct ranks_straggler *straggler;
    size_t n_straggler;
    const struct ranks_instances *instances;
    size_t n_instances;
};

struct ranks {
    struct mem mem;
    struct arena arena;
    const struct ranks_graph *graph;
    uint32_t n_graph, n_rank;
    int64_t *number; /* by rank: its global number, ascending */
    uint32_t *of;    /* by rank: its graph */
    double *factor;  /* by rank */
    struct sim_job job;
    struct sim_rank_result *result; /* by rank */
    struct sim_span **span;         /* by rank and op */
    struct sim_fault fault;
    int64_t makespan;
};

/* If n is 1: all ranks that the graph's groups span, all with the same graph, each with groups of
 * its own laid out like the graph's. Otherwise one rank per graph; groups with the same members are
 * the same. TUCK_EINVAL with a diagnostic: the groups cannot be determined, or there is no such
 * rank. The result must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status ranks_simulate(const struct ranks_graph *graph, uint32_t n,
                                           const struct ranks_options *o, tuck_diags *diags,
                                           struct ranks *x);
void ranks_end(struct ranks *x);

void ranks_table(const struct ranks *x, bool timeline, struct buf *out);
void ranks_json(const struct ranks *x, bool timeline, struct buf *out);

#endif
