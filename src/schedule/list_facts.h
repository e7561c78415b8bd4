/* What list scheduling by time knows about the ops before it begins, in either direction.
 *
 * From the back everything is mirrored: the order, the edges, and the ends of a transfer. Where a
 * collective starts a transfer and its wait ends it, from the back the wait starts it, takes the
 * collective's time on its channel, and the collective ends it. */
#ifndef TUCK_SCHEDULE_LIST_FACTS_H
#define TUCK_SCHEDULE_LIST_FACTS_H

#include "schedule/edges.h"

enum op_role {
    ROLE_COMPUTE, /* on the compute stream, and what takes no time */
    ROLE_START,   /* of a transfer, on a channel */
    ROLE_END,     /* of a transfer */
    ROLE_SYNC,    /* a collective that is its own end */
};

struct op_facts {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    bool from_back;
    uint32_t n, n_channel;
    uint32_t *order;    /* [position] the order that is given; from the back: its mirror */
    uint32_t *at;       /* [op] its position in it */
    struct edges e;     /* need: what comes before, seen from where scheduling begins */
    uint8_t *role;      /* [op] enum op_role */
    uint32_t *channel;  /* [op that starts, or is synchronous] */
    uint32_t *start_at; /* [op + 1] … */
    uint32_t *start;    /* … [op that ends] the ops whose transfers it ends */
    int64_t *ps;        /* [op] of a transfer: with its start */
    int64_t *tail;      /* [op] from its start to the end of the step, if nothing else was to do */
    int64_t *work;      /* [position] compute before it */
    bool *feeder;       /* [op] cheap, made of inputs, for gathers only */
    bool *gather;       /* [op] a transfer that needs nothing but inputs and feeders */
    uint32_t *needed;   /* [start] position of the first op that computes with its result; n:
                                 none does */
    int64_t *due;       /* [gather] the work that may come before it at most */
};

void list_facts(struct op_facts *f, struct schedule *s, bool from_back, struct arena *a);

/* Is x's result needed before y's? Below 0: yes. */
int list_by_needed(const void *facts, uint32_t x, uint32_t y);

#endif
