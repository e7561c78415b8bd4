/* reorder_communication_preserving_peak_memory: each asynchronous collective, from the first on, moves
 * towards the front, one neighbour at a time, and takes along what it needs and what may come. */
#include <math.h>

#include "schedule/iter.h"
#include "schedule/step.h"

struct mover {
    struct iter *it;
    const struct schedule_options *o;
    struct schedule_stat *st;
    uint32_t cur;
    double comm, comp; /* of the collective where it stands now */
    bool exact;        /* comp is what a walk would give, to the last bit */
    double group_runtime;
    uint32_t n_wait; /* waits in the group: how much of their collectives is hidden */
    struct exposed *wait;
};

static void refresh(struct mover *m)
{
    if (!m->exact)
        m->comp = expose_coll(m->it, m->cur).comp;
    m->exact = true;
}

static double positive(double v)
{
    return v > 0 ? v : 0;
}

/* Hidden, and then some? */
static bool covered(struct mover *m)
{
    double extra = m->o->reorder_iterative_extra_comm_comp_overlap;
    double gap = (m->comm - m->comp) - -extra * m->comm;

    if (!m->exact && fabs(gap) <= 1e-9 * (fabs(m->comm) + fabs(m->comp)))
        refresh(m);
    return m->comm - m->comp < -extra * m->comm;
}

/* What passing compute of runtime t does to all exposed times together. */
static double exposed_delta(const struct mover *m, double t)
{
    double d = positive(m->comm - m->comp - t) - positive(m->comm - m->comp);

    for (uint32_t i = 0; i < m->n_wait; i++)
        d += positive(m->wait[i].comm - m->wait[i].comp + t) -
             positive(m->wait[i].comm - m->wait[i].comp);
    return d;
}

/* The waits that come along start later by t less compute. */
static bool exposes_group(struct mover *m, uint32_t x)
{
    double t = m->it->rt[x], d, scale = fabs(m->comm) + fabs(m->comp) + t;

    if (problem_is_async(m->it->p, x) || !(t > 0) || m->n_wait == 0)
        return false;
    d = exposed_delta(m, t);
    for (uint32_t i = 0; i < m->n_wait; i++)
        scale += fabs(m->wait[i].comm) + fabs(m->wait[i].comp);
    if (!m->exact && m->comm - m->comp > -1e-9 * scale && fabs(d) <= 1e-9 * scale) {
        refresh(m);
        d = exposed_delta(m, t);
    }
    if (d > 0)
        return true;
    for (uint32_t i = 0; i < m->n_wait; i++)
        m->wait[i].comp -= t;
    return false;
}

/* A collective that is passed starts later by what the group computes. */
static bool exposes_passed(struct mover *m, uint32_t x)
{
    if (!problem_is_async(m->it->p, x) || !(m->group_runtime > 0))
        return false;
    struct exposed e = expose_coll(m->it, x);
    return positive(e.comm - e.comp + m->group_runtime) - positive(e.comm - e.comp) > 0;
}

static bool may_join(const struct mover *m, uint32_t x)
{
    if (problem_is_async(m->it->p, x) && !m->o->reorder_iterative_group_with_collectives)
        return false;
    return m->o->reorder_iterative_use_runtime_estimations ||
           !(m->it->p->flags[x] & PROBLEM_LIKE_GEMM);
}

static void join(struct mover *m, uint32_t x)
{
    iter_join(m->it, x, true);
    m->st->grouped++;
    if (!m->o->reorder_iterative_use_runtime_estimations)
        return;
    if (problem_is_wait(m->it->p, x))
        m->wait[m->n_wait++] = expose_wait(m->it, x);
    if (!problem_is_async(m->it->p, x))
        m->group_runtime += m->it->rt[x];
}

/* The next neighbour: 0 to stop, or what to do. */
enum step { STOP, JOIN, PASS };

static enum step stop(struct mover *m, enum schedule_limit limit, uint32_t x)
{
    m->st->limit = limit;
    m->st->limit_op = x;
    return STOP;
}

static enum step look(struct mover *m, uint32_t x)
{
    struct iter *it = m->it;
    bool use = m->o->reorder_iterative_use_runtime_estimations;

    if (use && covered(m))
        return stop(m, LIMIT_COVERED, PROBLEM_NONE);
    if (!it->torch && m->o->reorder_prefetch_limit != SCHEDULE_NO_LIMIT &&
        it->passed >= m->o->reorder_prefetch_limit)
        return stop(m, LIMIT_MOVES, PROBLEM_NONE);
    if (!m->o->reorder_iterative_unsafe_collectives_reorder && problem_is_coll(it->p, x))
        return stop(m, LIMIT_ORDER, x);
    if (it->touches[x] == it->serial)
        return may_join(m, x) ? JOIN : stop(m, LIMIT_DEPENDENCY, x);
    if (use && exposes_group(m, x))
        return stop(m, LIMIT_EXPOSES_GROUP, x);
    if (use && exposes_passed(m, x))
        return stop(m, LIMIT_EXPOSES_PASSED, x);
    int64_t peak = iter_peak_front(it, x);
    if (!iter_over_budget(it, peak))
        return PASS;
    iter_stay(it);
    m->st->limit_peak = peak;
    return stop(m, LIMIT_MEMORY, x);
}

static void pass_by(struct mover *m, uint32_t x)
{
    const struct problem *p = m->it->p;

    iter_pass_front(m->it, x);
    iter_check(m->it);
    m->st->moves++;
    if (problem_is_async(p, x))
        return;
    m->comp = problem_is_coll(p, x) ? 0 : m->comp + m->it->rt[x];
    m->exact = expose_is_exact(m->it);
}

static void move_one(struct mover *m)
{
    struct iter *it = m->it;
    struct exposed e = expose_coll(it, m->cur);
    enum step step = PASS;

    m->comm = e.comm;
    m->comp = e.comp;
    m->exact = true;
    m->group_runtime = 0;
    m->n_wait = 0;
    m->st = &it->stat[it->n_stat++];
    *m->st = (struct schedule_stat){.op = m->cur,
                                    .comm_time = e.comm,
                                    .initial_exposed = e.comm - e.comp,
                                    .limit_op = PROBLEM_NONE};
    iter_group(it, m->cur, true);
    while (step != STOP) {
        uint32_t x = it->prev[it->group[it->n_group - 1]];
        if (x == PROBLEM_NONE)
            break;
        step = look(m, x);
        if (step == JOIN)
            join(m, x);
        else if (step == PASS)
            pass_by(m, x);
    }
    iter_settle(it, true);
    e = expose_coll(it, m->cur);
    m->st->comm_time = e.comm;
    m->st->comp_time = e.comp;
    m->st->final_exposed = e.comm - e.comp;
}

void schedule_reorder_iterative(struct schedule *s)
{
    struct arena *a = &s->arena;
    struct schedule_report *r = step_report(s);
    struct iter it;
    uint32_t n_coll = 0, n_wait = 0;
    int64_t limit = s->opt.reorder_iterative_debug_limit_to_reorder, seen = 0;

    for (uint32_t x = 0; x < s->p->n_op; x++) {
        n_coll += problem_is_coll(s->p, x);
        n_wait += problem_is_wait(s->p, x);
    }
    if (n_coll == 0)
        return;
    iter_begin(&it, s, a);
    it.allowance = schedule_allowance(it.live.peak, s->opt.reorder_iterative_peak_memory_budget);
    struct mover m = {.it = &it, .o = &s->opt, .wait = arena_array(a, struct exposed, n_wait)};
    for (uint32_t x = it.head, next; x != PROBLEM_NONE; x = next) {
        next = it.next[x];
        if (next == PROBLEM_NONE && (it.slips & SLIP_SKIP_END_OP))
            break;
        if (!problem_is_async(s->p, x))
            continue;
        if (limit != SCHEDULE_NO_LIMIT && seen++ >= limit)
            break;
        m.cur = x;
        move_one(&m);
        if (s->opt.reorder_iterative_debug_memory_recompute && iter_wrong(&it) != NULL)
            r->note = iter_wrong(&it);
    }
    iter_end(&it, r);
}
