/* How long buffers live in an order, and how many bytes that takes.
 *
 * An op allocates its results before it runs, and afterwards frees the buffers it was the last to
 * use. An unused result is freed when its op is done. Freeable inputs are live from the start, and
 * those that nothing uses are freed before the first op. Returned buffers are never freed. The peak
 * is the most that is live before the first op or right after an op has allocated.
 */
#ifndef TUCK_PLAN_LIVENESS_H
#define TUCK_PLAN_LIVENESS_H

#include "plan/problem.h"

/* ---- one life ----
 * From when to when a buffer lives: a buffer of a problem or a program, a storage of a graph, and
 * one as PyTorch counts it. They differ only in what counts as a use. A time is 0 before the first
 * op, and i + 1 for the op at position i. */

enum { LIFE_START = 0 };
#define LIFE_END UINT32_MAX

struct life {
    uint32_t made; /* LIFE_START for an input; LIFE_END if nothing makes it */
    uint32_t last; /* freed after this time; LIFE_END if never */
};

/* Until there is a use, it is freed at the time at which it is made. */
static inline struct life life_begin(uint32_t made)
{
    return (struct life){made, made};
}

/* In any order of times. */
static inline void life_use(struct life *l, uint32_t time)
{
    if (time > l->last)
        l->last = time;
}

static inline void life_keep(struct life *l)
{
    l->last = LIFE_END;
}

/* ---- the walk ----
 * Each op allocates, runs and frees. All curves and peaks of memory come from here. */

struct live_walk {
    const uint32_t *order; /* ops in order; NULL means 0 … n-1 */
    uint32_t n;
    int64_t input;          /* bytes live before the first op */
    int64_t unused;         /* of these, bytes that are freed before it */
    int64_t *alloc, *freed; /* [op] bytes */
    int64_t *post_alloc;    /* [op] filled in: bytes live while it runs; or NULL */
    int64_t *post_free;     /* [op] filled in: bytes live after it; or NULL */
};

/* Enters a buffer into input, unused, alloc and freed. */
void live_enter(struct live_walk *w, struct life l, int64_t size_alloc, int64_t size_free);

/* The op at a time; PROBLEM_NONE at LIFE_START and LIFE_END. */
uint32_t live_op_at(const struct live_walk *w, uint32_t time);

struct live_most {
    int64_t bytes;
    uint32_t op; /* the first op with this peak; PROBLEM_NONE if none needs more than `input` */
};

struct live_most live_walk(const struct live_walk *w);

/* ---- problems ---- */

struct live {
    int64_t input;       /* bytes of the freeable inputs */
    int64_t start;       /* of these, bytes live when the first op starts */
    int64_t peak;        /* including the inputs */
    int64_t *alloc;      /* [op] bytes it allocates */
    int64_t *freed;      /* [op] bytes freed after it */
    int64_t *post_alloc; /* [op] bytes live while it runs */
    int64_t *post_free;  /* [op] bytes live after it */
    uint32_t *last; /* [buf] the op after which it is freed; PROBLEM_NONE if never, or before all */
    uint32_t *at;   /* [op] its position in the order */
};

/* For an order of all ops; results are in the arena. */
void live_of(const struct problem *p, const uint32_t *order, struct arena *a, struct live *out);

/* Just the peak. */
int64_t live_peak(const struct problem *p, const uint32_t *order, struct arena *a);

#endif
