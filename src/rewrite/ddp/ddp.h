/* Internals of DDP fusion: from all-reduces to candidates (ddp_filter.c), buckets (ddp_bucket.c)
 * and merged nodes (ddp_merge.c). */
#ifndef TUCK_REWRITE_DDP_DDP_H
#define TUCK_REWRITE_DDP_DDP_H

#include "graph/nested.h"
#include "graph/topo.h"
#include "pass/pass.h"

struct ddp_options {
    double bucket_size_mb;
    int compat; /* enum ddp_compat */
};

enum ddp_compat { COMPAT_NONE, COMPAT_TORCH };

enum { DDP_FIRST_BUCKET = 1024 * 1024 }; /* size at which the first bucket of a group is closed */

/* One all-reduce that may be merged with others. */
struct candidate {
    uint32_t collective, wait;
    uint32_t user;    /* of the wait: the return or a copy_ */
    uint32_t operand; /* of the collective */
    /* what a merged collective would read: the dividend, or the operand */
    uint32_t gradient;
    /* the node that reads the gradient now: the division, or the collective */
    uint32_t reader;
    const tuck_value *divisor; /* divisor, if dividing can be done after merging; else NULL */
    const tuck_value *op, *group;
    int64_t bytes;
    uint32_t key;            /* candidates with equal keys can be merged */
    uint32_t bucket;         /* its bucket's number, from 1 */
    uint32_t next_of_reader; /* the next candidate with the same reader, from 1 */
    uint32_t merged_reader;  /* once merged: the new node that reads the gradient */
    /* once merged: the node after which the gradient may be written again */
    uint32_t merged_done;
    uint32_t merged; /* once merged: the new collective */
    bool in_place;
    enum left_reason why; /* LEFT_END if it was or may be merged */
};

struct bucket {
    VEC(uint32_t) member; /* candidates */
    int64_t bytes;
    uint32_t key;
    enum closed_by closed_by;
    bool open;
};

struct ddp {
    struct pass_run *r;
    const struct ddp_options *o;
    bool torch;
    VEC(struct candidate) cand;
    uint32_t *cand_of; /* by node: number of the candidate with this collective, from 1 */
    uint32_t n_key;
    VEC(struct bucket) bucket;
    struct topo_edges keep; /* orders that must be kept, from before any edit */
    struct topo_edges more; /* orders that merging adds */
    bool out_of_order;      /* a user of a merged result comes before it */
    const int32_t *group;   /* by node */
    struct comm_lines lines;
};

/* ddp_filter.c: finds the all-reduces of DDP's gradients, and reports why others are not. */
tuck_status ddp_find(struct ddp *d);

/* ddp_bucket.c */
void ddp_bucket(struct ddp *d);
void ddp_bucket_as_torch(struct ddp *d);

/* ddp_merge.c: makes the nodes of one bucket with more than one member, and removes its collectives
 * and waits. */
void ddp_merge(struct ddp *d, uint32_t bucket, bool concat);

/* ddp_order.c: the first records the order to keep, before any edit; the second restores it after
 * all edits. */
void ddp_note_order(struct ddp *d);
tuck_status ddp_restore_order(struct ddp *d);

#endif
