/* A binary heap of ops, least first. */
#ifndef TUCK_BASE_HEAP_H
#define TUCK_BASE_HEAP_H

#include "base/arena.h"

typedef int (*heap_compare_fn)(const void *ctx, uint32_t x, uint32_t y);

struct heap {
    uint32_t *at, n;
    heap_compare_fn compare;
    const void *ctx;
};

/* Room for `most` ops at once. */
static inline void heap_begin(struct heap *h, struct arena *a, uint32_t most,
                              heap_compare_fn compare, const void *ctx)
{
    *h = (struct heap){arena_array(a, uint32_t, most), 0, compare, ctx};
}

static inline uint32_t heap_top(const struct heap *h)
{
    return h->at[0];
}

void heap_push(struct heap *h, uint32_t x);
uint32_t heap_pop(struct heap *h);

#endif
