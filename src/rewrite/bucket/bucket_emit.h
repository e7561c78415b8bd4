/* The nodes of a merged collective: copies in, the collective, its wait, copies out. */
#ifndef TUCK_REWRITE_BUCKET_BUCKET_EMIT_H
#define TUCK_REWRITE_BUCKET_BUCKET_EMIT_H

#include "rewrite/bucket/bucket.h"
#include "rewrite/build.h"

/* A number: known, or computed by a node of the graph. */
struct num {
    int64_t v;
    uint32_t node; /* 0 if it is v */
};

struct emit {
    struct bucket_scan *s;
    const struct bucket *b;
    const struct bucket_options *o;
    /* where to insert nodes up to the collective, and those from its wait on */
    struct build in, out;
    int64_t size;       /* of the group */
    int64_t rank;       /* this rank's position in it; -1 if unknown */
    enum dtype dtype;   /* of the message */
    struct num *count;  /* by member: elements of its operand */
    struct num **shape; /* by member: sizes of its result; NULL if unused */
    /* results, by member: the first and the last new node that reads the operand; the new wait; the
     * node that replaces the old wait */
    uint32_t *first, *reader, *wait, *piece;
    uint32_t collective;
};

/* Makes the nodes and fills in the results. Old nodes are not changed. */
void emit_bucket(struct emit *e);

void emit_all_gather(struct emit *e);
void emit_reduction(struct emit *e); /* reduce-scatter and all-reduce */

/* ---- for the forms
 * ------------------------------------------------------------------------------ */

static inline struct num num_of(int64_t v)
{
    return (struct num){.v = v};
}

struct num num_add(struct build *b, struct num x, struct num y);
struct num num_times(struct build *b, struct num x, int64_t k);
/* the same, but always as a node */
struct num num_scaled(struct build *b, struct num x, int64_t k);
struct num num_over(struct build *b, struct num x, int64_t k); /* x // k */
void build_num(struct build *b, struct num x);

/* Member i's operand as one dimension, or as [rows, -1] where rows > 0. */
uint32_t emit_flat(struct emit *e, uint32_t i, int64_t rows);
/* Each makes one call. */
uint32_t emit_view(struct build *b, uint32_t x, const struct num *size, uint32_t n);
uint32_t emit_copy(struct build *b, uint32_t x, const struct num *size, uint32_t n);
uint32_t emit_wait(struct build *b, uint32_t x);
uint32_t emit_split(struct build *b, uint32_t x, const struct num *count, uint32_t n, int64_t dim);
void build_group(struct emit *e, struct build *b);
void build_dtype(struct build *b, enum dtype d);
uint32_t emit_dims(const struct emit *e, uint32_t i);  /* dimensions of member i's result */
bool emit_in_place(const struct emit *e);              /* do all members work in place? */
bool emit_is_wanted(const struct emit *e, uint32_t i); /* is member i's result used? */

#endif
