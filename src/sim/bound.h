/* How short an order could be at best.
 *
 * Each bound is a reason that holds for every order: the compute stream has that much to
 * do, a channel has, the longest chain of ops takes that long, a stream whose jobs come
 * late and have long tails cannot be faster, memory that must be held that long is
 * limited. The largest is the bound.
 */
#ifndef TUCK_SIM_BOUND_H
#define TUCK_SIM_BOUND_H

#include "sim/sim.h"

enum bound_kind {
    BOUND_BY_COMPUTE, /* all compute, one after the other */
    BOUND_BY_CHANNEL, /* all collectives of a group */
    BOUND_BY_PATH,    /* the longest chain */
    BOUND_BY_STREAM,  /* the compute stream, with what must come before and after its jobs */
    BOUND_BY_LINK,    /* the same of a channel */
    BOUND_BY_MEMORY,  /* bytes times time that buffers must live, in the memory there is */
    BOUND_BY_END
};

struct bound {
    int64_t ps;           /* the largest of them */
    enum bound_kind kind; /* which it is */
    uint32_t group; /* of BOUND_BY_CHANNEL and BOUND_BY_LINK; n_group: those without a group */
    uint32_t op;    /* of BOUND_BY_PATH: the op the chain ends with */
    int64_t each[BOUND_BY_END];
};

struct bound_options {
    const int64_t *ps;       /* by op: its time; NULL: the problem's own */
    int64_t launch_ps;       /* for each op */
    int64_t more_compute_ps; /* work of the compute stream that no op has */
    int64_t memory;          /* limit on the peak; 0: none */
};

/* Arrays live in the arena, which must belong to an armed struct mem. */
void bound_of(const struct problem *p, const struct bound_options *o, struct arena *a,
              struct bound *out);

const char *bound_name(enum bound_kind k);    /* "compute" */
const char *bound_meaning(enum bound_kind k); /* a sentence for people */

#endif
