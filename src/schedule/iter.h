/* What the iterative passes share: a list of ops in which one of them, with what it takes
 * along (its group), moves past its neighbours one by one; the memory of that; and how much
 * of a collective is hidden.
 *
 * Memory. Every op knows the bytes that are live after it allocated and after it freed. When a
 * group passes an op, all its members shift by the same amount, which is kept once for the group
 * and settled when the group is dissolved. Where the last user of a buffer changes, members
 * shift by different amounts. */
#ifndef TUCK_SCHEDULE_ITER_H
#define TUCK_SCHEDULE_ITER_H

#include <stdlib.h>

#include "plan/liveness.h"
#include "schedule/edges.h"

struct exposed {
    double comm, comp;
    bool
        /* of a wait: compute right before it does not hide its collective, which is over by then */
        cut;
};

struct iter {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    unsigned slips;
    bool torch;

    uint32_t head, *prev, *next; /* PROBLEM_NONE at the ends */
    double *rt;                  /* runtimes times multipliers */
    bool exact_sums;             /* adding runtimes gives the same in any order */
    struct edges real, fake;     /* fake: those that the pass must keep; may have no edges at all */

    struct live live;       /* of the list as it is, but for the group */
    int64_t allowance;      /* bytes that the peak may grow by */
    uint32_t *use_at, *use; /* [op]: buffers that it keeps alive and that are freed at all */

    /* ---- the group ---- */
    uint32_t serial;                   /* of the group; marks with it are this group's */
    uint32_t *member_of, *index;       /* [op] */
    uint32_t *touches;                 /* [op]: the group needs it, or it needs the group */
    uint32_t n_group, *group;          /* in the order in which they joined */
    int64_t *group_alloc, *group_free; /* post_alloc and post_free of the members, less shift */
    int64_t shift;                     /* … which all of them have moved by */
    int64_t group_peak;                /* the largest of group_alloc */
    int64_t stale_peak;                /* of post_alloc when each joined */
    uint32_t passed, first_passed;

    /* ---- buffers whose last user changes if the candidate is passed ---- */
    uint32_t n_change, *change;
    int64_t *change_bytes; /* [index]: bytes that this member frees today, or will */
    uint32_t change_end;   /* no member from here on has any */
    int64_t changed;       /* all of them */

    struct expose *expose;

    uint32_t n_stat;
    struct schedule_stat *stat;
};

void iter_begin(struct iter *it, struct schedule *s, struct arena *a);
/* The list back into the schedule, the statistics into the report. */
void iter_end(struct iter *it, struct schedule_report *r);

/* A group of one op. */
void iter_group(struct iter *it, uint32_t op, bool towards_front);
/* x, the next neighbour, comes along. */
void iter_join(struct iter *it, uint32_t x, bool towards_front);
/* Settle the group at its current place. */
void iter_settle(struct iter *it, bool towards_front);

/* The peak among the group and x if the group passed x to the front (x is before it) or to the
 * back. Must be followed by iter_pass or iter_stay with the same x. */
int64_t iter_peak_front(struct iter *it, uint32_t x);
int64_t iter_peak_back(struct iter *it, uint32_t x);
void iter_pass_front(struct iter *it, uint32_t x);
void iter_pass_back(struct iter *it, uint32_t x);
void iter_stay(struct iter *it);

static inline bool iter_over_budget(const struct iter *it, int64_t peak)
{
    return peak - it->live.peak > it->allowance;
}

static inline bool iter_in_group(const struct iter *it, uint32_t x)
{
    return it->member_of[x] == it->serial;
}

/* Everything that is kept by differences against a full count: NULL, or what is wrong. Some slips
 * are wrong on purpose: nothing is checked then. */
const char *iter_wrong(struct iter *it);

/* After every move of a stress build. */
static inline void iter_check(struct iter *it)
{
#ifdef TUCK_STRESS
    if (iter_wrong(it) != NULL)
        abort();
#else
    (void)it;
#endif
}

/* ---- how much is hidden (expose.c) ---- */

void expose_begin(struct iter *it);
/* A collective: its time, and the compute that runs under it. */
struct exposed expose_coll(struct iter *it, uint32_t c);
/* The same, of what a wait waits for. */
struct exposed expose_wait(struct iter *it, uint32_t w);
/* Sums kept by difference are as good as sums made anew? */
bool expose_is_exact(const struct iter *it);
/* Wait x is now right before wait w. True: the answer for w must be computed again; false: *cut
 * says whether x ends what hides w's collective. */
bool expose_cuts(struct iter *it, uint32_t w, uint32_t x, bool *cut);
/* Do sums and places that are kept say something else than a walk? */
bool expose_is_wrong(struct iter *it);
/* The group has a new place: n ops from `first` on have moved. */
void expose_moved(struct iter *it, uint32_t first, uint32_t n);

#endif
