#include "base/heap.h"

void heap_push(struct heap *h, uint32_t x)
{
    uint32_t i = h->n++;

    for (; i > 0 && h->compare(h->ctx, x, h->at[(i - 1) / 2]) < 0; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = x;
}

uint32_t heap_pop(struct heap *h)
{
    uint32_t top = h->at[0], x = h->at[--h->n], i = 0;

    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= h->n)
            break;
        if (k + 1 < h->n && h->compare(h->ctx, h->at[k + 1], h->at[k]) < 0)
            k++;
        if (h->compare(h->ctx, x, h->at[k]) <= 0)
            break;
        h->at[i] = h->at[k];
        i = k;
    }
    h->at[i] = x;
    return top;
}
