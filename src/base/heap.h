/* A binary heap of numbers, least first. With tracking it knows where each number is, so that one
 * whose key has changed can be moved. */
#ifndef TUCK_BASE_HEAP_H
#define TUCK_BASE_HEAP_H

#include "base/arena.h"
#include "base/check.h"

/* Below 0: x comes out before y. */
typedef int (*heap_compare_fn)(const void *ctx, uint32_t x, uint32_t y);

#define HEAP_OUT UINT32_MAX

struct heap {
    uint32_t *at, n;
    uint32_t most;
    uint32_t *place; /* by number: its index in `at`, HEAP_OUT if absent; NULL without tracking */
    heap_compare_fn compare;
    const void *ctx;
};

/* Room for `most` numbers at once. */
static inline void heap_begin(struct heap *h, struct arena *a, uint32_t most,
                              heap_compare_fn compare, const void *ctx)
{
    *h = (struct heap){
        .at = arena_array(a, uint32_t, most), .most = most, .compare = compare, .ctx = ctx};
}

/* Turns on tracking of 0 … most - 1; call it before adding any. */
static inline void heap_track(struct heap *h, struct arena *a)
{
    assert(h->n == 0);
    h->place = arena_array(a, uint32_t, h->most);
    for (uint32_t x = 0; x < h->most; x++)
        h->place[x] = HEAP_OUT;
}

static inline uint32_t heap_top(const struct heap *h)
{
    assert_hot(h->n > 0);
    return h->at[0];
}

void heap_push(struct heap *h, uint32_t x);
uint32_t heap_pop(struct heap *h);
/* The key of x, which is in the tracked heap, has changed. */
void heap_settle(struct heap *h, uint32_t x);

#endif
