/* Inside DDP fusion: from all-reduces to candidates (filter.c), buckets (bucket.c) and
 * merged nodes (merge.c). */
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

enum { DDP_FIRST_BUCKET = 1024 * 1024 }; /* bytes that close the first bucket of a group */

/* One all-reduce that may become part of another. */
struct candidate {
    uint32_t collective, wait;
    uint32_t user;             /* of the wait: the return or a copy_ */
    uint32_t operand;          /* what the collective is given */
    uint32_t gradient;         /* what a merged one would read: the dividend, or the operand */
    uint32_t reader;           /* who reads the gradient now: the division, or the collective */
    const tuck_value *divisor; /* of the division that can be done after merging; NULL: none */
    const tuck_value *op, *group;
    int64_t bytes;
    uint32_t key;            /* candidates with equal keys can be merged */
    uint32_t bucket;         /* number of it, from 1 */
    uint32_t next_of_reader; /* the next candidate with the same reader, from 1 */
    uint32_t merged_reader;  /* once merged: the new node that reads the gradient, … */
    uint32_t merged_done;    /* … and the one after which it may be written again */
    uint32_t merged;         /* … and the collective it became part of */
    bool in_place;
    enum left_reason why; /* LEFT_END: it was merged, or may be */
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
    uint32_t *cand_of; /* by node: number of the candidate whose collective it is, from 1 */
    uint32_t n_key;
    VEC(struct bucket) bucket;
    struct topo_edges keep; /* what must keep its order, as it was before any edit … */
    struct topo_edges more; /* … and what merging adds */
    bool out_of_order;      /* a user of a merged result comes before it */
    const int32_t *group;   /* by node */
    struct comm_lines lines;
};

/* filter.c: the all-reduces that are gradients of DDP. Those that are not
 * get their reason reported. */
tuck_status ddp_find(struct ddp *d);

/* bucket.c */
void ddp_bucket(struct ddp *d);
void ddp_bucket_as_torch(struct ddp *d);

/* merge.c: the nodes of one bucket with more than one member. Its collectives
 * and waits are gone then. */
void ddp_merge(struct ddp *d, uint32_t bucket, bool concat);

/* order.c: what must keep its order, to be called before any edit; and the order after them all. */
void ddp_note_order(struct ddp *d);
tuck_status ddp_restore_order(struct ddp *d);

#endif
