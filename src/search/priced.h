/* An order with its time and peak, and what they become if a part of it is arranged otherwise.
 *
 * The simulation of one rank (sim/sim.h) takes maxima and sums only. So one walk from the back says
 * for each position how long the step still takes from there, and for each collective how long from
 * its start. A new arrangement of the positions [a, b) is then simulated alone, from the clock
 * before it; the rest of the step follows as one maximum. Bytes that are live depend on the set of
 * ops that ran, so that outside of [a, b) nothing changes. Prices are exact, and take time in the
 * size of the window.
 */
#ifndef TUCK_SEARCH_PRICED_H
#define TUCK_SEARCH_PRICED_H

#include "plan/problem.h"

struct priced_op {
    int64_t ps; /* what it adds to the clock: its time and launch; launch alone if no compute */
    int64_t comm_ps; /* of a collective: its time on the channel */
    int64_t alloc;   /* bytes it allocates */
    int64_t load;    /* what it puts in flight: KiB of a collective; negative for a wait */
    uint32_t kind;   /* see the enum in priced.c */
    /* of a wait: its collective, if it is one, else its range in the problem's `wait`;
     * of a collective: its channel, and its index in the order of the problem */
    uint32_t a, b;
};

struct priced_buf {
    int64_t size;  /* bytes when freed */
    uint32_t last; /* position of its last use */
    uint32_t mark; /* the last walk that met it */
};

struct priced {
    const struct problem *p;
    uint32_t n, n_channel;
    struct priced_op *op;     /* [op] */
    struct priced_buf *buf;   /* [buf] */
    uint32_t *use_at, *use;   /* [op]: buffers it makes or keeps alive, if they are ever freed */
    uint32_t *stop_at, *stop; /* [op]: the waits for a collective */
    uint32_t mark;
    int64_t least; /* no order is faster: the sum of compute, or that of a channel */

    /* ---- the order ---- */
    uint32_t *order, *pos;
    int64_t step, peak, flight; /* flight: KiB in flight times ns of compute */
    int64_t *clock;             /* [n + 1] before each position */
    int64_t *tail;              /* [n + 1] from there to the end of the step */
    int64_t *end;               /* [op] of a collective */
    int64_t *rest;              /* [op] of a collective: from its start to the end of the step */
    uint32_t *before, *after;   /* [op] collectives of its channel; PROBLEM_NONE: none */
    uint32_t *n_coll;           /* [n + 1] collectives before each position */
    uint32_t *coll;             /* in order */
    int64_t *via;               /* by place in `coll`: the step, if all that counts follows it */
    int64_t *live;              /* [n + 1] bytes before each position */
    int64_t *most_before;       /* [n + 1] the peak of the positions before it, … */
    int64_t *most_after;        /* … and of it and those behind it */
    int64_t *load;              /* [n + 1] in flight before each position */

    /* ---- scratch ---- */
    int64_t *now;                /* [op] as `end`, in the arrangement that is looked at */
    int64_t *channel;            /* [channel] */
    uint32_t *touched;           /* collectives of the window, as they come */
    uint32_t *channels, *latest; /* channels of the window; the last collective on each */
};

/* ps: [op], NULL means the problem's own. Everything is in the arena. */
void priced_begin(struct priced *s, const struct problem *p, const int64_t *ps, int64_t launch_ps,
                  struct arena *a);
/* Makes this the order. */
void priced_set(struct priced *s, const uint32_t *order);

/* The step with the ops of positions [from, to) in the order `ops`, which must be a valid one. */
int64_t priced_step(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops);
/* The same for the peak. */
int64_t priced_peak(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops);
/* The same for what is in flight. */
int64_t priced_flight(const struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops);
/* What a window has around it. The end of the last collective before `from` on the channel of x, a
 * collective of the window: */
int64_t priced_channel(const struct priced *s, uint32_t x, uint32_t from);
/* From the start of the first one on it that is not before `to` to the end of the step; 0: none. */
int64_t priced_rest(const struct priced *s, uint32_t x, uint32_t to);
/* What is left of the step when x has ended, by its waits that are not before `to`. */
int64_t priced_waits(const struct priced *s, uint32_t x, uint32_t to);
/* The step over what starts before the window and ends behind it; the present step at most. */
int64_t priced_crossing(const struct priced *s, uint32_t from, uint32_t to);
/* The first of n numbers that no buffer has as its mark, nor a larger one. */
uint32_t priced_marks(struct priced *s, uint32_t n);
/* Arranges them so. */
void priced_take(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops);

#endif
