/* Bucketing: merges several collectives of one kind into one.
 *
 *   bucket_read()   the collectives of a kind that could be merged, and their operands
 *   buckets_find()  which of them to merge: greedily, in the order of their waits, up to a cap
 *   buckets_merge() each bucket becomes one collective, in one of four forms (emit.h)
 *
 * This takes a few walks over the graph for all buckets together: O((n + e) log n), where the log
 * comes from the sort at the end.
 */
#ifndef TUCK_REWRITE_BUCKET_BUCKET_H
#define TUCK_REWRITE_BUCKET_BUCKET_H

#include "rewrite/comm_order.h"

enum bucket_mode {
    BUCKET_DEFAULT,    /* copies are plain operators, which a compiler can fuse */
    BUCKET_CUSTOM,     /* copies are one PyTorch operator, bucketing._pre_bucket_* */
    BUCKET_MULTIDTYPE, /* the same, but one all-gather may have members of several dtypes */
    BUCKET_COALESCED,  /* one collective on a list: no copies */
};

struct bucket_options {
    tuck_coll kind; /* TUCK_ALL_GATHER, TUCK_REDUCE_SCATTER or TUCK_ALL_REDUCE */
    enum bucket_mode mode;
    struct pass_floats cap_mb; /* cap by the bucket's number in its run of equal keys */
    double member_mb;          /* larger ones are left alone; NAN: none is too large */
    bool torch;                /* like PyTorch 2.13, including its bugs */
    struct torch_order *order; /* torch: of all kinds that are merged; NULL: only this one is */
    const bool *marked;        /* waits to consider, by node id below n_marked; NULL means all */
    uint32_t n_marked;
    const bool *begins; /* by node: a bucket begins at this collective; NULL: by size alone */
    /* the caller's: a cap instead of cap_mb, and which waits to consider */
    struct bucket_rules rules;
};

/* What all members of a bucket have in common. */
struct bucket_key {
    int32_t group;      /* index into g->group */
    str_id reduce_op;   /* 0 for an all-gather */
    uint8_t dtype;      /* enum dtype; 0 in multi-dtype mode */
    str_id device;      /* 0 if unknown, or with compat=torch, which does not check it */
    int64_t group_size; /* as given; 0 for an all-reduce */
};

/* A collective that could be merged. */
struct bucket_cand {
    uint32_t start, wait;
    uint32_t
        /* the node that the merged collective reads: the operand, or the value it is converted
         * from */
        input;
    uint32_t cvt;        /* that conversion, which is removed; 0 if none */
    uint32_t group_node; /* if the group is a value in the graph; 0 if it is a string */
    bool in_place;       /* it writes its operand, which nothing else uses */
    type_id in, out;     /* of operand and result */
    int64_t bytes;       /* the larger of operand and result */
    struct bucket_key key;
    uint32_t piece; /* what replaces the wait after merging; 0 if unused */
};

struct bucket {
    struct bucket_cand *member;
    uint32_t n;
    int64_t bytes;
    enum closed_by closed_by;
    uint32_t collective_before, wait_before; /* positions chosen by the user; 0 means the default */
    uint32_t result;                         /* the merged collective, once made */
};

struct buckets {
    VEC(struct bucket) bucket;
};

/* What all steps need; made once per pass, before the first edit, and valid until the sort. */
struct bucket_scan {
    struct pass_run *r;
    const struct bucket_options *o;
    const int32_t *group; /* by node */
    struct comm_lines lines;
    uint32_t op;               /* row of the collective that is merged */
    struct op_sig sig;         /* its signature */
    uint32_t op_out;           /* its out= form, which torch accepts too; 0 if none */
    uint32_t op_in_place;      /* its in-place form, if it can be merged; 0 if none */
    struct topo_edges keep;    /* nodes that must stay in order */
    struct topo_fan keep_from; /* the same, by node */
    uint32_t *bound;           /* by node: position of the first node that must stay after it */
    const bool *written;       /* by node: the storage of its result is written */
    const bool *vague;         /* by node: … and may be that of another value, too */
    const bool *unseen;        /* by node: see comm_writes_unseen(); NULL if none works in place */
    /* by node: something depends on where its result lies; NULL if nothing does */
    const bool *watched;
    const bool *strides_matter; /* by node, computed when needed: a user depends on its strides */
    uint32_t *at;               /* by position: the node; 0 after the last */
};

/* First removes duplicate waits, unless it must match torch. */
void bucket_scan(struct bucket_scan *s, struct pass_run *r, const struct bucket_options *o);

/* Is n a collective of the requested kind? */
bool bucket_is_kind(const struct bucket_scan *s, uint32_t n);
/* Reads what `wait` waits for as a candidate. False, with a reason, if it is not one. The key is
 * valid unless the reason is that something is unknown. */
bool bucket_read(struct bucket_scan *s, uint32_t start, uint32_t wait, struct bucket_cand *c,
                 enum left_reason *why);

bool bucket_same_key(const struct bucket_key *a, const struct bucket_key *b);
/* Does this kind support the mode? If not, adds a diagnostic. */
tuck_status bucket_check_mode(struct pass_run *r, tuck_coll kind, int mode, bool torch);

/* Finds buckets of two or more, and reports what stays alone. TUCK_EINVAL: the caller's cap is not
 * a number of MiB. */
tuck_status buckets_find(struct bucket_scan *s, struct buckets *b);
/* Removes buckets whose members' dtypes cannot be combined. */
void buckets_check(struct bucket_scan *s, struct buckets *b);
/* May these be merged? If not, sets the reason and the node in the way. */
bool bucket_possible(struct bucket_scan *s, const struct bucket *b, enum left_reason *why,
                     uint32_t *node);
/* Before a bucket is emitted: keeps conversions that the copy into it would not do as well. */
void bucket_settle(struct bucket_scan *s, struct bucket *b);
/* Merges all buckets and sorts the graph. */
tuck_status buckets_merge(struct bucket_scan *s, struct buckets *b);
void buckets_report(struct bucket_scan *s, const struct buckets *b);

/* ---- for other passes
 * ------------------------------------------------------------------------- */

enum bucket_filter { BUCKET_ALL, BUCKET_FSDP };

/* By node id: is it a wait that belongs to FSDP? These are the waits of all-gathers whose only
 * input is one parameter, of reduce-scatters whose results go only to the graph's outputs, and of
 * all-reduces on the groups of such all-gathers. */
const bool *bucket_fsdp_waits(struct pass_run *r, tuck_coll kind);

/* Finds and merges the kinds in the set `kinds` (1 << TUCK_ALL_GATHER and so on), one after the
 * other. */
tuck_status bucket_by_cap(struct pass_run *r, unsigned kinds, enum bucket_filter filter,
                          double cap_mb, enum bucket_mode mode, bool torch);

extern const struct pass pass_bucket_all_gather, pass_bucket_reduce_scatter, pass_bucket_all_reduce,
    pass_bucket_fsdp_all_gather, pass_bucket_fsdp_reduce_scatter, pass_bucket_all_gather_by_mb,
    pass_bucket_reduce_scatter_by_mb, pass_bucket_all_reduce_by_mb, pass_merge_bucket;

#endif
