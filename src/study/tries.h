/* What the search of `tuck optimize` shares: the best so far, the limits, and the ways to go on
 * from a stage. */
#ifndef TUCK_STUDY_TRIES_H
#define TUCK_STUDY_TRIES_H

#include "study/best.h"
#include "study/optimize.h"
#include "study/runner_up.h"
#include "study/stage.h"

/* How an order was found. Small changes lead from each to another one. */
enum origin { FROM_LIST, FROM_MOVES, N_ORIGINS };

struct search {
    const struct optimize_options *o;
    const struct machine *machine;
    struct study *study;
    struct runner runner;
    tuck_diags *diags;
    struct best best;             /* the fastest; g is NULL if none is faster than the original */
    struct best light;            /* with fewer bytes in flight, and a little slower at most */
    struct best start[N_ORIGINS]; /* the fastest of each, to be improved by small changes */
    int64_t theirs_ps;            /* the fastest of PyTorch's own that fits; INT64_MAX: none */
    int64_t limit;                /* for the peak, in bytes */
    double budget;    /* for passes: the share by which the peak may grow; 0 if it may not */
    bool less;        /* the peak must shrink */
    struct gaps gaps; /* of the original graph */
    bool unbacked, communicates;
    bool small; /* all orders and buckets are tried */
    struct runner_up second;
    uint32_t tries;            /* so far */
    bool stopped;              /* try_next() refused to go on */
    int64_t bound_ps;          /* of the original graph; -1 if there is none */
    struct report_rival rival; /* PyTorch's own */
    int64_t small_ps;          /* no order and no buckets are faster; INT64_MAX: unknown */
    int64_t timed_ps; /* the best time that try_timed() found last and that fits; else INT64_MAX */
    int64_t timed_front_ps; /* the same for orders from the front alone, before loops are joined */
};

/* Runs one more pass on a stage, see stage_next(). */
TUCK_MUST_CHECK tuck_status try_next(struct search *s, const struct stage *from,
                                     const struct pass *pass, const char *option, double value,
                                     struct stage *to);
/* The same with options as a user writes them. may_fail: that is no error to tell of. */
TUCK_MUST_CHECK tuck_status try_next_with(struct search *s, const struct stage *from,
                                          const struct pass *pass, const char *options,
                                          bool may_fail, struct stage *to);
/* Take x if it fits and is the best so far. */
TUCK_MUST_CHECK tuck_status try_offer(struct search *s, const struct stage *x, bool *fits);

/* Keeps x if it fits, is near the best, and is the fastest of its origin. */
TUCK_MUST_CHECK tuck_status try_start(struct search *s, const struct stage *x, enum origin origin);

/* Repeats constants where loops read them. *base is the result, or `from` if there are none. */
TUCK_MUST_CHECK tuck_status try_constants(struct search *s, const struct stage *from,
                                          struct stage *to, const struct stage **base);

/* ---- orders (try_orders.c) ---- */

/* What a pass may use beyond a peak, as a share of that; 0: nothing. */
double try_spare(const struct search *s, int64_t peak);

/* Many small changes to the order of a stage, each with its exact time; one of `part` of what is
 * usual. */
TUCK_MUST_CHECK tuck_status try_improve(struct search *s, const struct stage *from, int64_t part,
                                        struct stage *to);

/* Orders a stage by time, for memory first if it needs too much, then joins loops; offers the
 * results. timed[1] and then timed[0] must be ended. */
TUCK_MUST_CHECK tuck_status try_timed(struct search *s, const struct stage *bucketed,
                                      struct stage timed[2]);
/* By time and, unless that is far behind the best, from several other orders. */
TUCK_MUST_CHECK tuck_status try_starts(struct search *s, const struct stage *bucketed);

/* Goes on from PyTorch's own: loops joined, and the order improved, if it is near the best. */
TUCK_MUST_CHECK tuck_status try_rival(struct search *s, const struct stage *rival);

/* ---- PyTorch's passes (try_named.c) ---- */

/* Offers what some of them make of the graph. */
TUCK_MUST_CHECK tuck_status try_named(struct search *s, const struct stage *first);

/* ---- one-shot all-reduces (try_one_shot.c) ---- */

/* Goes on from the best, or from `first` if there is none: all-reduces that are shorter so become
 * one-shot. */
TUCK_MUST_CHECK tuck_status try_one_shot(struct search *s, const struct stage *first);

/* ---- small graphs (try_small.c) ---- */

/* All orders with all buckets, if there are few ops. */
TUCK_MUST_CHECK tuck_status try_small(struct search *s, const struct stage *from);

/* ---- buckets (try_buckets.c) ---- */

/* Tries ways to bucket: several sizes for all kinds of collectives together, then the size of each
 * kind alone, as long as that helps. The best one is also tried on `apart`, the stage before loops
 * were moved together; it may be `from` itself. */
TUCK_MUST_CHECK tuck_status try_buckets(struct search *s, const struct stage *from,
                                        const struct stage *apart);

#endif
