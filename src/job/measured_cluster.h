/* A cluster file from what was measured: collectives, products, memory, gaps between kernels. */
#ifndef TUCK_JOB_MEASURED_CLUSTER_H
#define TUCK_JOB_MEASURED_CLUSTER_H

#include "base/buf.h"
#include "cost/cluster.h"
#include "job/beside.h"

/* A size and its time: the median of all that were measured. */
struct measured_point {
    double size; /* bytes or operations */
    double us;
    uint32_t n; /* measured times */
};

/* Collectives of one kind, on groups of one size over one kind of link. */
struct measured_coll {
    tuck_coll kind;
    int64_t p;
    bool inter;
    uint64_t what; /* measured_case() */
    struct measured_point *at;
    uint32_t n;
    double fixed_us;     /* of each time, this much is the same for all sizes; 0: not known */
    struct cost_law law; /* with two sizes or more */
    double residual;     /* the mean of |law / measured - 1| over all measured times */
};

struct measured_cluster {
    const char *device;
    int64_t per_node, nodes;
    uint32_t n_rank; /* whose traces there are */
    struct measured_coll *coll;
    uint32_t n_coll;
    struct measured_point *gemm[N_RATE];
    uint32_t n_gemm[N_RATE];
    double dram_gbps; /* 0 if nothing was measured */
    double kernel_us; /* the shortest twentieth of the kernels; -1: none */
    double launch_us; /* the mean gap between kernels that nothing else explains; -1: none */
    uint32_t n_kernel;
    struct beside beside; /* all times above are without it */
    /* What hold_laws() takes small messages for, if those that ran are all of about one size: the
     * time of a round of a barrier; 0: nothing says it, they are in proportion. */
    bool one_size;
    double round_us;
};

/* Is everything known about it that a law needs? */
bool measured_counts(const struct trace_coll *c);
/* Collectives of one number have one law. */
uint64_t measured_case(const struct trace_part *p, const struct trace_coll *c, int64_t per_node);
/* The law of c's points. */
void measured_fit(struct measured_coll *c, struct arena *a);

/* Operations of a matrix product; 0 if it is none that is known. */
double trace_product(const char *name, const char *dims);
/* Is it a product whose operations are known if its shapes are? */
bool trace_has_flops(const char *name);
/* The host's operators with operands, sorted by number; and the one that launched a kernel, or the
 * operator itself, or NULL. */
const struct trace_event **trace_operators(const struct trace *t, struct arena *a, uint32_t *n);
const struct trace_event *trace_operator_of(const struct trace_event **op, uint32_t n,
                                            const struct trace_event *e);

/* device: a name of devices.def; NULL: by the name in the trace. per_node 0: the device's own.
 * False: no such device, or none that the trace's is known as. */
bool measured_cluster(const struct trace_part *part, uint32_t n, const char *device,
                      int64_t per_node, struct arena *a, struct measured_cluster *out);
void measured_cluster_write(const struct measured_cluster *c, struct buf *b);
/* What was found, for people. */
void measured_cluster_table(const struct measured_cluster *c, struct buf *b);

#endif
