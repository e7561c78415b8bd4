/* How the iterative passes move an op: past one neighbor after the other, with a group that grows
 * on the way, until the pass stops it. A pass is a rule: what to do with the next neighbor, and
 * what to record about one that joined or was passed. Both directions share what is here: how much
 * is hidden, memory, and the row of the report. The walk itself is in this header so that the
 * compiler can inline the rule. */
#ifndef TUCK_SCHEDULE_MOVE_H
#define TUCK_SCHEDULE_MOVE_H

#include <math.h>

#include "schedule/iter.h"

enum move_step { MOVE_STOP, MOVE_JOIN, MOVE_PASS };

struct mover;

struct move_rule {
    bool towards_front;
    enum move_step (*look)(struct mover *m, uint32_t x);
    void (*joined)(struct mover *m, uint32_t x); /* or NULL */
    void (*passed)(struct mover *m, uint32_t x); /* or NULL */
};

struct mover {
    struct iter *it;
    const struct schedule_options *o;
    bool use; /* use runtimes to decide */
    /* a collective counts as hidden with this much more compute than its own time */
    double extra;
    struct exposed *along; /* room for the group members whose exposed time counts */

    /* ---- the op that is moving ---- */
    uint32_t op;
    bool towards_front;
    struct schedule_stat *st;
    double comm, comp;    /* of its collective, at the current position */
    bool exact;           /* comp is exactly what a walk would give */
    bool unknown;         /* comp is invalid and must be computed */
    bool cut;             /* compute that a wait passes hides nothing more */
    double group_runtime; /* runtime of the group members that count */
    uint32_t n_along;
};

/* ---- for rules ---- */

/* Records what stopped it, for the report. */
static inline enum move_step move_stop(struct mover *m, enum schedule_limit limit, uint32_t x)
{
    m->st->limit = limit;
    m->st->limit_op = x;
    return MOVE_STOP;
}

/* Stops the op if memory does not allow the step. */
static inline enum move_step move_within(struct mover *m, uint32_t x, int64_t peak)
{
    if (!iter_over_budget(m->it, peak))
        return MOVE_PASS;
    iter_stay(m->it);
    m->st->limit_peak = peak;
    return move_stop(m, LIMIT_MEMORY, x);
}

/* Recomputes comp if it is not exact. */
void move_refresh(struct mover *m);

/* Is its collective hidden, with the extra margin? Incremental sums may be wrong in the last bit:
 * if that could decide, they are recomputed. */
static inline bool move_covered(struct mover *m)
{
    double gap = (m->comm - m->comp) - -m->extra * m->comm;

    if (m->unknown || (!m->exact && fabs(gap) <= 1e-9 * (fabs(m->comm) + fabs(m->comp))))
        move_refresh(m);
    return m->comm - m->comp < -m->extra * m->comm;
}

static inline double move_positive(double v)
{
    return v > 0 ? v : 0;
}

/* Does its exposed time grow when it loses compute of runtime t? */
static inline bool move_exposes(const struct exposed *e, double t)
{
    return move_positive(e->comm - e->comp + t) > move_positive(e->comm - e->comp);
}

/* Does passing compute x expose group members by more than it gains? If not, it is recorded as
 * passed. */
bool move_exposes_along(struct mover *m, double t);
static inline bool move_exposes_group(struct mover *m, uint32_t x)
{
    return m->n_along > 0 && m->it->rt[x] > 0 && !problem_is_async(m->it->p, x) &&
           move_exposes_along(m, m->it->rt[x]);
}

/* ---- moving ---- */

void move_begin(struct mover *m, bool towards_front, uint32_t op);
void move_end(struct mover *m);

static inline __attribute__((always_inline)) void move_join(struct mover *m,
                                                            const struct move_rule *rule,
                                                            uint32_t x)
{
    iter_join(m->it, x, rule->towards_front);
    m->st->grouped++;
    if (rule->joined != NULL)
        rule->joined(m, x);
}

static inline __attribute__((always_inline)) void move_pass(struct mover *m,
                                                            const struct move_rule *rule,
                                                            uint32_t x)
{
    if (rule->towards_front)
        iter_pass_front(m->it, x);
    else
        iter_pass_back(m->it, x);
    iter_check(m->it);
    m->st->moves++;
    if (rule->passed != NULL)
        rule->passed(m, x);
}

/* Moves the op as far as the rule allows, and adds its row to the report. */
static inline __attribute__((always_inline)) void move_op(struct mover *m,
                                                          const struct move_rule *rule, uint32_t op)
{
    enum move_step step = MOVE_PASS;

    move_begin(m, rule->towards_front, op);
    while (step != MOVE_STOP) {
        uint32_t outermost = m->it->group[m->it->n_group - 1];
        uint32_t x = rule->towards_front ? m->it->prev[outermost] : m->it->next[outermost];
        if (x == PROBLEM_NONE)
            break;
        step = rule->look(m, x);
        if (step == MOVE_JOIN)
            move_join(m, rule, x);
        else if (step == MOVE_PASS)
            move_pass(m, rule, x);
    }
    move_end(m);
}

#endif
