#include "base/heap.h"

static void put(struct heap *h, uint32_t i, uint32_t x)
{
    h->at[i] = x;
    if (h->place != NULL)
        h->place[x] = i;
}

/* x belongs at i or above. */
static void rise(struct heap *h, uint32_t i, uint32_t x)
{
    for (; i > 0 && h->compare(h->ctx, x, h->at[(i - 1) / 2]) < 0; i = (i - 1) / 2)
        put(h, i, h->at[(i - 1) / 2]);
    put(h, i, x);
}

/* x belongs at i or below. */
static void sink(struct heap *h, uint32_t i, uint32_t x)
{
    for (uint32_t k; (k = 2 * i + 1) < h->n; i = k) {
        if (k + 1 < h->n && h->compare(h->ctx, h->at[k + 1], h->at[k]) < 0)
            k++;
        if (h->compare(h->ctx, x, h->at[k]) <= 0)
            break;
        put(h, i, h->at[k]);
    }
    put(h, i, x);
}

void heap_push(struct heap *h, uint32_t x)
{
    assert(h->n < h->most);
    rise(h, h->n++, x);
}

uint32_t heap_pop(struct heap *h)
{
    assert(h->n > 0);
    uint32_t top = h->at[0], last = h->at[--h->n];

    if (h->place != NULL)
        h->place[top] = HEAP_OUT;
    if (h->n > 0)
        sink(h, 0, last);
    return top;
}

void heap_settle(struct heap *h, uint32_t x)
{
    assert(h->place != NULL && h->place[x] < h->n && h->at[h->place[x]] == x);
    uint32_t i = h->place[x];

    if (i > 0 && h->compare(h->ctx, x, h->at[(i - 1) / 2]) < 0)
        rise(h, i, x);
    else
        sink(h, i, x);
}
