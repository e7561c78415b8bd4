/* How short an order could be at best.
 *
 * Each bound holds for every order: the compute stream and each channel have that much work, the
 * longest chain of ops takes that long, a stream whose jobs come late or have long tails cannot
 * finish earlier, and memory limits how much can be held for how long. The largest is the bound.
 */
#ifndef TUCK_SIM_BOUND_H
#define TUCK_SIM_BOUND_H

#include "sim/sides.h"
#include "sim/sim.h"

enum bound_kind {
    BOUND_BY_COMPUTE, /* all compute, one op after the other */
    BOUND_BY_CHANNEL, /* all collectives of a group */
    BOUND_BY_PATH,    /* the longest chain of ops */
    BOUND_BY_STREAM,  /* the compute stream, with what must come before and after its jobs */
    BOUND_BY_LINK,    /* the same for a channel */
    BOUND_BY_MEMORY,  /* bytes times the time that buffers must live, within the memory limit */
    BOUND_BY_END
};

struct bound {
    int64_t ps;           /* the largest bound */
    enum bound_kind kind; /* which it is */
    /* for BOUND_BY_CHANNEL and BOUND_BY_LINK; n_group means collectives without a group */
    uint32_t group;
    uint32_t op; /* for BOUND_BY_PATH: the last op of the chain */
    int64_t each[BOUND_BY_END];
    bool weak; /* the program is too large for sums over ancestors: only chains count (sides.h) */
    /* By op, in every order: the earliest start, the least time from its end (of an asynchronous
     * collective: that of its transfer) to the end of the step, and that from its start on. An op
     * at time t with t + rest[op] >= the best step known cannot be part of a better order. */
    const int64_t *head, *tail, *rest;
};

struct bound_options {
    const int64_t *ps; /* by op: its time; NULL means the problem's own */
    int64_t launch_ps; /* for each op */
    int64_t memory;    /* limit on the peak; 0 means none */
    bool chains_only;  /* quicker and weaker, see sides.h */
};

/* For the ops of p in any order that its dependences allow, fake ones aside:
 *
 *   struct bound b;
 *   bound_of(p, &(struct bound_options){.memory = limit}, arena, &b);
 *   b.ps is the bound; b.head, b.tail and b.rest are by op.
 *
 * Arrays live in the arena, which must belong to an armed struct mem. */
void bound_of(const struct problem *p, const struct bound_options *o, struct arena *a,
              struct bound *out);

/* The same for items that are not a problem's, after sides_find(); without the memory limit. */
void bound_of_sides(const struct sides *s, struct arena *a, struct bound *out);
/* Sets ps and kind to the largest of `each`. */
void bound_choose(struct bound *b);

const char *bound_name(enum bound_kind k);    /* "compute" */
const char *bound_meaning(enum bound_kind k); /* an explaining sentence */

#endif
