/* Bucketing: several collectives of one kind become one.
 *
 *   bucket_read()   the collectives of a kind that could be merged, with what they are asked for
 *   buckets_find()  which of them go together: greedily, in the order of their waits, up to a cap
 *   buckets_merge() each bucket becomes one collective, in one of four forms (emit.h)
 *
 * All of it is a few walks over the graph, for all buckets together: O((n + e) log n), the log
 * being that of the sort at the end.
 */
#ifndef TUCK_REWRITE_BUCKET_BUCKET_H
#define TUCK_REWRITE_BUCKET_BUCKET_H

#include "rewrite/comm_order.h"

enum bucket_mode {
    BUCKET_DEFAULT,    /* copies as plain operators, which a compiler fuses */
    BUCKET_CUSTOM,     /* copies in one operator of PyTorch's, bucketing._pre_bucket_* */
    BUCKET_MULTIDTYPE, /* the same, members of several dtypes in one all-gather */
    BUCKET_COALESCED,  /* a collective of lists: no copies */
};

struct bucket_options {
    tuck_coll kind; /* TUCK_ALL_GATHER, TUCK_REDUCE_SCATTER or TUCK_ALL_REDUCE */
    enum bucket_mode mode;
    struct pass_floats cap_mb; /* by the bucket's number in its run of equal keys */
    bool torch;                /* as PyTorch 2.13 does it, its slips included */
    const bool *marked;        /* waits that count, by node id below n_marked; NULL: all */
    uint32_t n_marked;
    struct bucket_rules rules; /* of the caller: a cap in place of cap_mb, and waits that count */
};

/* What members of a bucket have in common. */
struct bucket_key {
    int32_t group;      /* index into g->group */
    str_id reduce_op;   /* 0: all-gather */
    uint8_t dtype;      /* enum dtype; 0 in multi-dtype mode */
    str_id device;      /* 0: not known, or as torch, which does not check */
    int64_t group_size; /* as given; 0: an all-reduce has none */
};

/* A collective that could be merged. */
struct bucket_cand {
    uint32_t start, wait;
    uint32_t
        /* node that the merged collective reads: the operand, or what it is converted from */
        input;
    uint32_t cvt;        /* that conversion, which is removed; 0 = none */
    uint32_t group_node; /* where the group is a value in the graph; 0 = it is a string */
    bool in_place;       /* it writes its operand, which nothing else uses */
    type_id in, out;     /* of operand and result */
    int64_t bytes;       /* of the larger of operand and result */
    struct bucket_key key;
    uint32_t piece; /* what replaces the wait once merged; 0 = not used */
};

struct bucket {
    struct bucket_cand *member;
    uint32_t n;
    int64_t bytes;
    enum closed_by closed_by;
    uint32_t collective_before, wait_before; /* where the user wants them; 0 = by rule */
    uint32_t result;                         /* the merged collective, once there is one */
};

struct buckets {
    VEC(struct bucket) bucket;
};

/* What every step needs; made once a pass, before the first edit, and valid until the sort. */
struct bucket_scan {
    struct pass_run *r;
    const struct bucket_options *o;
    const int32_t *group; /* by node */
    struct comm_lines lines;
    uint32_t op;               /* row of the collective that is merged … */
    struct op_sig sig;         /* … and its signature */
    uint32_t op_out;           /* the same with out=, which torch accepts as one; 0 = none */
    uint32_t op_in_place;      /* the same in place, if it can be merged; 0 = none */
    struct topo_edges keep;    /* what has to stay in order */
    struct topo_fan keep_from; /* the same by node */
    uint32_t *bound;           /* by node: place of the first node that must stay after it */
    const bool *written;       /* by node: the storage of its result is written */
    const bool *unseen;        /* by node: see comm_writes_unseen(); NULL: none works in place */
    /* by node: something depends on where its result lies; NULL: nothing does */
    const bool *watched;
    const bool *strides_matter; /* by node, once needed: a user of it depends on strides */
    uint32_t *at;               /* by place: the node; 0 after the last */
};

/* Removes duplicate waits first, unless it must match torch. */
void bucket_scan(struct bucket_scan *s, struct pass_run *r, const struct bucket_options *o);

/* Is it a collective of the kind that is asked for? */
bool bucket_is_kind(const struct bucket_scan *s, uint32_t n);
/* What `wait` waits for as a candidate. False: it is not one, with a reason. The key is right where
 * the reason is not that something is unknown. */
bool bucket_read(struct bucket_scan *s, uint32_t start, uint32_t wait, struct bucket_cand *c,
                 enum left_reason *why);

bool bucket_same_key(const struct bucket_key *a, const struct bucket_key *b);
/* Has this kind such a form? If not, a diagnostic. */
tuck_status bucket_check_mode(struct pass_run *r, tuck_coll kind, int mode, bool torch);

/* Buckets of two and more. What stays alone is reported. TUCK_EINVAL: the caller's
 * cap is no number of MiB. */
tuck_status buckets_find(struct bucket_scan *s, struct buckets *b);
/* Remove those whose members' dtypes do not fit together. */
void buckets_check(struct bucket_scan *s, struct buckets *b);
/* May these be merged? The reason if not, and the node in the way. */
bool bucket_possible(struct bucket_scan *s, const struct bucket *b, enum left_reason *why,
                     uint32_t *node);
/* Merge all of them and bring the graph into order. */
tuck_status buckets_merge(struct bucket_scan *s, struct buckets *b);
void buckets_report(struct bucket_scan *s, const struct buckets *b);

/* ---- for other passes
 * ------------------------------------------------------------------------- */

enum bucket_filter { BUCKET_ALL, BUCKET_FSDP };

/* Waits that belong to FSDP: of all-gathers that one parameter alone feeds, of reduce-scatters
 * whose results go to the graph's outputs and nowhere else, of all-reduces on the groups of such
 * all-gathers. By node id. */
const bool *bucket_fsdp_waits(struct pass_run *r, tuck_coll kind);

/* Find and merge, one kind after the other: those of the set `kinds`, 1 <<
 * TUCK_ALL_GATHER and so on. */
tuck_status bucket_by_cap(struct pass_run *r, unsigned kinds, enum bucket_filter filter,
                          double cap_mb, enum bucket_mode mode, bool torch);

extern const struct pass pass_bucket_all_gather, pass_bucket_reduce_scatter, pass_bucket_all_reduce,
    pass_bucket_fsdp_all_gather, pass_bucket_fsdp_reduce_scatter, pass_bucket_all_gather_by_mb,
    pass_bucket_reduce_scatter_by_mb, pass_bucket_all_reduce_by_mb, pass_merge_bucket;

#endif
