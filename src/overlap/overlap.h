/* PyTorch's overlap scheduler, and the bucketer that keeps the overlap it found.
 *
 *   facts_find()     what the scheduler asks of nodes, by their place in the text
 *   live.h           bytes that are live in an order that is being made
 *   overlap_order()  an order, and for each collective the nodes that hide it
 *   overlap_buckets() which collectives become one without one of them being hidden less
 *   overlap_write()  order and buckets into the graph
 *
 * The decisions are those of torch 2.13 for the same times; how they are found is not. It keeps
 * a row of ancestors for every node and walks over all that is not scheduled yet. Here a node knows
 * how many of its operands still hold it back, sums over kernels are in trees, and a search for a
 * path is bounded by the places it could go through. So a graph of n nodes takes about n steps.
 *
 * Nodes are numbered by their place in the text, from 0, and those that merging adds behind them.
 */
#ifndef TUCK_OVERLAP_OVERLAP_H
#define TUCK_OVERLAP_OVERLAP_H

#include "pass/pass.h"
#include "rewrite/bucket/bucket.h"

#define NO_PLACE UINT32_MAX

struct overlap_options {
    double max_in_flight_gb, compute_overlap_multipler, max_memory_increase_gb,
        max_memory_increase_ratio, max_off_bucket_gb, latency_ms;
    int64_t max_compute_pre_fetch, max_coll_distance;
    bool collective_bucketing, enable_fusion_regions, bucket_only_internode_comms,
        prioritize_bucketing_during_scheduling, overlap_scheduling_autofix_cycles,
        insert_overlap_deps;
    int bucket_exposed_first; /* enum exposed_first */
    int bucket_mode;          /* enum bucket_mode */
    int compat;               /* enum overlap_compat */
};

enum overlap_compat { COMPAT_NONE, COMPAT_TORCH };
enum exposed_first { EXPOSED_AUTO, EXPOSED_NOT, EXPOSED_FIRST };

enum overlap_flags {
    IS_COMPUTE = 1,   /* PyTorch has a formula of its flops */
    IS_START = 2,     /* a collective that is scheduled: known, and waited for */
    IS_WAIT = 4,      /* a wait of one */
    IS_CHEAP = 8,     /* a view or element-wise */
    IS_BARRED = 16,   /* only its turn schedules it: communication of another kind */
    IS_INPUT = 32,    /* a placeholder */
    IS_CHAIN = 64,    /* nothing but cheap nodes between it and a collective, its only use */
    TO_SCATTER = 128, /* a reduce-scatter depends on it */
};

/* By place: to[start[i]] … to[start[i + 1] - 1]. */
struct fan {
    uint32_t *start, *to;
};

#define for_fan(f, i, k) for (uint32_t k = (f)->start[i]; k < (f)->start[(i) + 1]; k++)

struct hider {
    uint32_t node;
    uint32_t when; /* number of the budget that it was hidden with */
};

struct coll {
    uint32_t start, wait; /* the first wait, of several */
    uint32_t group;       /* among those that have collectives here, from 0 */
    uint32_t key;         /* what could be merged has the same; torch's full key, numbered */
    uint32_t like;        /* torch's other key, without the kind; 0: it has none */
    uint8_t kind;         /* tuck_coll, where it can be merged; else 0 */
    int64_t bytes;        /* of operand and result */
    double ms, latency;
    double exposed; /* ms that nothing hides yet */
    VEC(struct hider) hider;
};

struct facts {
    struct pass_run *r;
    const struct overlap_options *o;
    struct arena *a;
    uint32_t n;          /* nodes of the text */
    VEC(uint32_t) id;    /* by place: the node */
    VEC(uint32_t) place; /* by node */
    struct fan in, out;  /* operands in order, users by place; each once */
    uint8_t *flag;       /* enum overlap_flags */
    double *ms;          /* time of its own; below 0: none */
    uint32_t *dom;       /* the first compute node that depends on it, by number; or NO_PLACE */
    uint32_t *coll_of;   /* of starts and waits */
    uint32_t n_compute;
    struct coll *coll; /* by their first waits in the text */
    uint32_t n_coll, n_group, n_key;
    struct {
        uint32_t gather, gather_out, scatter, reduce;
    } op; /* rows of what torch merges */
};

static inline bool is_exposed(const struct coll *c)
{
    return c->exposed != 0;
}

static inline int64_t bytes_of_gb(double gb)
{
    double bytes = gb * 1024 * 1024 * 1024;

    return bytes >= 9e18 ? INT64_MAX : (int64_t)bytes;
}

tuck_status facts_find(struct facts *f, struct pass_run *r, const struct overlap_options *o);
tuck_status facts_times(struct facts *f); /* f->ms and those of collectives */
/* told: times that stay as they are, or NULL. */
void facts_regions(struct facts *f, double gbps, const bool *told);

/* order: by place in the new order; placeholders are among them. */
struct overlap_result {
    uint32_t *order, *at; /* at: by place, where it is in the order */
    int64_t peak_before, peak_after;
    const char *raised; /* torch raises here, with this; or NULL */
    uint32_t raised_at;
};

tuck_status overlap_order(struct facts *f, struct overlap_result *out);

struct extra_edges;

struct overlap_bucket {
    uint32_t *member; /* collectives, the seed first */
    uint32_t n;
    int64_t bytes;
};

struct overlap_buckets {
    VEC(struct overlap_bucket) bucket;
    struct extra_edges *extra;
};

void overlap_choose(struct facts *f, const struct overlap_result *order,
                    struct overlap_buckets *out);

tuck_status overlap_write(struct facts *f, const struct overlap_result *order,
                          struct overlap_buckets *b);

extern const struct pass pass_schedule_overlap_bucketing, pass_overlap_scheduling;

#endif
