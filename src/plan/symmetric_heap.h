/* The symmetric heaps of a program: which comm buffers there are, and when they are live, seen the
 * same way by all ranks. */
#ifndef TUCK_PLAN_SYMMETRIC_HEAP_H
#define TUCK_PLAN_SYMMETRIC_HEAP_H

#include "plan/arena_plan.h"

struct memory_comm {
    uint32_t n;
    uint32_t *buf;     /* [n] comm buffers, ordered by the first collective that uses them */
    struct life *life; /* by buffer, in steps of its group's own clock */
    uint32_t *n_coll;  /* by group: number of its collectives; steps are 0 … 2 n_coll */
    bool *met;
};

void memory_comm_find(const struct program *p, const uint32_t *order, struct arena *a,
                      struct memory_comm *c);

/* A hash of everything that ranks must agree on: the heaps, and the address, size and type of every
 * comm buffer. */
uint64_t memory_comm_digest(const struct program *p, const struct memory_comm *c);

#endif
