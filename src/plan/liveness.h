/* How long buffers live in an order, and how many bytes that takes.
 *
 * An op allocates its results before it runs, and afterwards frees the buffers it was the last to
 * use. An unused result is freed when its op is done. Freeable inputs are live from the start;
 * returned buffers are never freed. The peak is the most that is live right after an op has
 * allocated.
 */
#ifndef TUCK_PLAN_LIVENESS_H
#define TUCK_PLAN_LIVENESS_H

#include "plan/problem.h"

/* ---- the walk ----
 * Each op allocates, runs and frees. All curves and peaks of memory come from here: of problems,
 * programs, storages of a graph, and as PyTorch counts a graph's. */

struct live_walk {
    const uint32_t *order; /* ops in order; NULL means 0 … n-1 */
    uint32_t n;
    int64_t input;                /* bytes live before the first op */
    const int64_t *alloc, *freed; /* [op] bytes */
    int64_t *post_alloc;          /* [op] filled in: bytes live while it runs; or NULL */
    int64_t *post_free;           /* [op] filled in: bytes live after it; or NULL */
};

struct live_most {
    int64_t bytes;
    uint32_t op; /* the first op with this peak; PROBLEM_NONE if none needs more than `input` */
};

struct live_most live_walk(const struct live_walk *w);

/* ---- problems ---- */

struct live {
    int64_t input;       /* bytes of the freeable inputs */
    int64_t peak;        /* including the inputs */
    int64_t *alloc;      /* [op] bytes it allocates */
    int64_t *freed;      /* [op] bytes freed after it */
    int64_t *post_alloc; /* [op] bytes live while it runs */
    int64_t *post_free;  /* [op] bytes live after it */
    uint32_t *last;      /* [buf] the op after which it is freed; PROBLEM_NONE if never */
    uint32_t *at;        /* [op] its position in the order */
};

/* For an order of all ops; results are in the arena. */
void live_of(const struct problem *p, const uint32_t *order, struct arena *a, struct live *out);

/* Just the peak. */
int64_t live_peak(const struct problem *p, const uint32_t *order, struct arena *a);

#endif
