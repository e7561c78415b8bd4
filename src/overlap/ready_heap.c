#include "overlap/ready_heap.h"

#include "base/check.h"

static void rise(struct ready_heap *h, uint32_t top, uint32_t i)
{
    uint64_t key = h->key.at[i];

    while (i > top) {
        uint32_t parent = (i - 1) / 2;
        if (key >= h->key.at[parent])
            break;
        h->key.at[i] = h->key.at[parent];
        i = parent;
    }
    h->key.at[i] = key;
}

static void sink(struct ready_heap *h, uint32_t top)
{
    uint64_t key = h->key.at[top];
    uint32_t i = top;

    for (uint32_t child; (child = 2 * i + 1) < h->key.len; i = child) {
        if (child + 1 < h->key.len && h->key.at[child + 1] <= h->key.at[child])
            child++;
        h->key.at[i] = h->key.at[child];
    }
    h->key.at[i] = key;
    rise(h, top, i);
}

void ready_push(struct ready_heap *h, struct arena *a, uint64_t key)
{
    vec_push_in(a, &h->key, key);
    rise(h, 0, h->key.len - 1);
}

uint64_t ready_pop(struct ready_heap *h)
{
    assert_hot(h->key.len > 0);
    uint64_t last = h->key.at[--h->key.len];
    if (h->key.len == 0)
        return last;
    uint64_t first = h->key.at[0];
    h->key.at[0] = last;
    sink(h, 0);
    return first;
}

void ready_settle(struct ready_heap *h)
{
    for (uint32_t i = h->key.len / 2; i-- > 0;)
        sink(h, i);
}
