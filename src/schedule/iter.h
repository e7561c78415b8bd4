/* What the iterative passes share: a list of ops in which one op, with the ops it takes along (its
 * group), moves past its neighbors one by one; the memory of that list; and how much of a
 * collective is hidden.
 *
 * Memory: every op knows the bytes that are live after it allocated and after it freed. When a
 * group passes an op, all its members shift by the same amount, which is stored once for the group
 * and added when the group is dissolved. If the last user of a buffer changes, members shift by
 * different amounts.
 */
#ifndef TUCK_SCHEDULE_ITER_H
#define TUCK_SCHEDULE_ITER_H

#include <stdlib.h>

#include "plan/liveness.h"
#include "schedule/edges.h"

struct exposed {
    double comm, comp;
    bool
        /* for a wait: compute right before it does not hide its collective, which is done by
         * then */
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
    bool exact_sums;             /* sums of runtimes do not depend on the order of adding */
    struct edges real, fake;     /* fake: those that the pass must keep; may be empty */

    struct live live;       /* of the current list, except for the group */
    int64_t allowance;      /* bytes by which the peak may grow */
    uint32_t *use_at, *use; /* [op]: buffers that it keeps alive and that are ever freed */

    /* ---- the group ---- */
    uint32_t serial;                   /* number of this group, used in marks */
    uint32_t *member_of, *index;       /* [op] */
    uint32_t *touches;                 /* [op]: the group needs it, or it needs the group */
    uint32_t n_group, *group;          /* in the order of joining */
    int64_t *group_alloc, *group_free; /* post_alloc and post_free of the members, minus `shift` */
    int64_t shift;                     /* added to all members */
    int64_t group_peak;                /* the largest of group_alloc */
    int64_t stale_peak;                /* maximum of post_alloc at the time each joined */
    uint32_t passed, first_passed;

    /* ---- buffers whose last user changes if the candidate is passed ---- */
    uint32_t n_change, *change;
    int64_t *change_bytes; /* [index]: bytes that this member frees now, or will free */
    uint32_t change_end;   /* members from here on have none */
    int64_t changed;       /* sum of all */

    struct expose *expose;

    uint32_t n_stat;
    struct schedule_stat *stat;
};

void iter_begin(struct iter *it, struct schedule *s, struct arena *a);
/* Writes the list back into the schedule, and the statistics into the report. */
void iter_end(struct iter *it, struct schedule_report *r);

/* Starts a group of one op. */
void iter_group(struct iter *it, uint32_t op, bool towards_front);
/* The next neighbor x joins the group. */
void iter_join(struct iter *it, uint32_t x, bool towards_front);
/* Dissolves the group at its current position. */
void iter_settle(struct iter *it, bool towards_front);

/* The peak among the group and x if the group passed x towards the front (x is before it) or
 * towards the back. Must be followed by iter_pass or iter_stay with the same x. */
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

/* Compares all incremental values with a full recount. Returns NULL, or what is wrong. Some slips
 * are wrong on purpose: then nothing is checked. */
const char *iter_wrong(struct iter *it);

/* Runs after every move of a stress build. */
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
/* A collective: its time, and the compute that hides it. */
struct exposed expose_coll(struct iter *it, uint32_t c);
/* The same for what a wait waits for. */
struct exposed expose_wait(struct iter *it, uint32_t w);
/* Are incremental sums exactly equal to fresh ones? */
bool expose_is_exact(const struct iter *it);
/* Wait x is now right before wait w. True: the answer for w must be computed again. False: *cut
 * says whether x ends what hides w's collective. */
bool expose_cuts(struct iter *it, uint32_t w, uint32_t x, bool *cut);
/* Do the stored sums and positions differ from those of a walk? */
bool expose_is_wrong(struct iter *it);
/* The group has moved: n ops from `first` on have new positions. */
void expose_moved(struct iter *it, uint32_t first, uint32_t n);

#endif
