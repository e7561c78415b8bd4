/* What must come before an op starts and after it ends, in any order: its head and its tail.
 *
 * The head is the largest of
 *   - the longest chain of ops that leads to it,
 *   - the time at which one stream can have run all work of that stream that the op needs, each
 *     piece no earlier than its own head: for the compute stream and for each channel.
 * The tail is the same against time. The second rule is for graphs of at most SIDES_EXACT items,
 * because it takes a step for every 64 pieces of work and item; above it only chains count, which
 * still holds but is weaker (`exact` says which).
 *
 * An item is an op, or part of one: items that an edge marks as SIDES_JOIN may run as one loop, so
 * that the second neither starts nor ends before the first, and no more.
 */
#ifndef TUCK_SIM_SIDES_H
#define TUCK_SIM_SIDES_H

#include "base/arena.h"
#include "base/csr.h"

enum { SIDES_EXACT = 32768 };

#define SIDES_NONE UINT32_MAX

/* Items are numbered so that edges lead to higher numbers. */
struct sides {
    uint32_t n, n_channel;
    int64_t *work;     /* by item: its time on the compute stream */
    int64_t *transfer; /* by item: its time on its channel */
    int64_t *before;   /* by item: how much of its work comes before its transfer */
    uint32_t *channel; /* SIDES_NONE: none */
    bool *is_async;    /* by item: its transfer ends at waits, not with its work */
    uint32_t *pred_at; /* [n + 1] */
    uint32_t *pred;    /* sides_edge() */
    uint32_t *wait_at; /* [n + 1]: the asynchronous items whose transfers it waits for */
    uint32_t *wait;
    bool chains_only; /* asked for: do without the second rule */

    /* ---- filled in by sides_find() ---- */
    bool exact;
    int64_t *head;    /* earliest start */
    int64_t *end;     /* earliest end; of an asynchronous item, that of its issue */
    int64_t *arrived; /* earliest end of its transfer; for others the same as `end` */
    int64_t *tail;    /* least time from its end, or from that of its transfer, to the end of all */
    int64_t *rest;    /* least time from its start to the end of all */
    int64_t chain;    /* the longest chain */
    uint32_t last;    /* an item on it */
};

static inline uint32_t sides_edge(uint32_t from, bool join)
{
    return from << 1 | (join ? 0 : 1);
}

static inline uint32_t sides_from(uint32_t edge)
{
    return edge >> 1;
}

static inline bool sides_is_join(uint32_t edge)
{
    return (edge & 1) == 0;
}

/* Arrays live in the arena, which must belong to an armed struct mem. */
void sides_find(struct sides *s, struct arena *a);

/* For each of the pairs (first[i], second[i]): must the first have ended before the second starts,
 * even if all joins are made? An asynchronous item has ended when a wait for it has. Pairs are in
 * ascending order of `first`. Above SIDES_EXACT items the answer is always no. */
void sides_apart(const struct sides *s, const uint32_t *first, const uint32_t *second, uint32_t n,
                 struct arena *a, bool *apart);
/* The same for all pairs of n items, in ascending order: sum[i] is the weight of all others that
 * the i-th is apart from. */
void sides_weigh_apart(const struct sides *s, const uint32_t *item, const int64_t *weight,
                       uint32_t n, struct arena *a, int64_t *sum);

#endif
