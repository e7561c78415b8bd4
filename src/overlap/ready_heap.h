/* A heap of numbers whose array is part of what it does: PyTorch looks through the array of its
 * heap, so the places of those that are not first decide something, too. They are as Python's heapq
 * has them: what is taken out leaves a hole that goes down to a leaf along the smaller children,
 * the last one goes there and then up. */
#ifndef TUCK_OVERLAP_READY_HEAP_H
#define TUCK_OVERLAP_READY_HEAP_H

#include "base/arena.h"
#include "base/vec.h"

struct ready_heap {
    VEC(uint64_t) key;
};

void ready_push(struct ready_heap *h, struct arena *a, uint64_t key);
uint64_t ready_pop(struct ready_heap *h);
/* The array was changed: an order anew, from the last parent to the first. */
void ready_settle(struct ready_heap *h);

#endif
