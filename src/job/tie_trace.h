/* A graph and the trace of its run: which measured time belongs to which op of its program. */
#ifndef TUCK_JOB_TIE_TRACE_H
#define TUCK_JOB_TIE_TRACE_H

#include "base/buf.h"
#include "job/hold.h"
#include "lower/program.h"

enum tie_class { TIE_COLLECTIVES, TIE_PRODUCTS, TIE_KERNELS, TIE_CLASS_END };

struct tie_count {
    uint32_t n, tied;
    uint32_t ambiguous; /* of those: several alike, in another order; each has their mean */
    int64_t ps;         /* what is tied took that long */
};

/* Nodes of Inductor's kernels, by the name in the code: "cpp_fused_relu_0:2". */
struct tie_kernel {
    const char *name;
    int64_t number; /* after the colon: kernels of one name run in this order */
    const char **node;
    uint32_t n;
};

struct tie {
    uint32_t n_op;
    int64_t *ps; /* by op: mean of the measured times; -1 if it is not tied */
    struct tie_count count[TIE_CLASS_END];
    const char **ambiguous; /* nodes of the collectives that are */
    uint32_t n_run;         /* runs of the graph among the steps for costs */
    uint32_t n_window;      /* of those the middle half by time: where the costs come from */
    bool others;            /* `measured` is the mean of other runs than those */
    uint32_t n_judged;      /* how many: the middle half, too */
    struct trace_figures measured;
    int64_t gap;  /* ps for each op: what the host does between them, of the runs used for costs */
    bool alone;   /* times are without what others take, and without waits for other ranks */
    int64_t lost; /* ps of a run, if `alone`: such waits, which are part of the gaps instead */
    /* bytes that kernels other than products read and write, by their time; 0: not known */
    double loop_gbps;
    struct beside beside;
    bool one_size; /* as in measured_cluster.h, if a collective's time is from a law */
    double round_us;
    bool reordered;   /* the graph was put in the order of Inductor's code */
    const char *part; /* the region of the trace that is the graph's; "" for whole steps */
};

/* Times are as recorded, or, unless `beside` is NULL, as they would be alone. False: no run of the
 * graph was found. */
bool tie_graph(const struct trace_part *part, const struct program *p, struct tie_steps steps,
               const struct tie_kernel *kernel, uint32_t n_kernel, const struct beside *beside,
               struct arena *a, struct tie *out);

#endif
