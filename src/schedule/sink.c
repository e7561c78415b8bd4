/* sink_waits_iterative: each wait, from the last on, moves towards the end, one neighbour at a time, and takes
 * along what needs it and may come. */
#include <math.h>

#include "schedule/iter.h"
#include "schedule/step.h"

struct sinker {
    struct iter *it;
    const struct schedule_options *o;
    struct schedule_stat *st;
    uint32_t cur;
    double comm, comp;
    bool exact;    /* comp is what a walk would give, to the last bit */
    bool unknown;  /* comp is not even near: a wait was passed */
    bool cut;      /* compute that is passed hides nothing more: something ends before this wait */
    bool has_coll; /* the group contains a collective */
    double group_runtime;
    uint32_t n_coll; /* synchronous collectives in the group: how much of them is hidden */
    struct exposed *coll;
};

static void refresh(struct sinker *m)
{
    if (m->exact)
        return;
    struct exposed e = expose_wait(m->it, m->cur);
    m->comp = e.comp;
    m->cut = e.cut;
    m->exact = true;
    m->unknown = false;
}

static double positive(double v)
{
    return v > 0 ? v : 0;
}

static bool covered(struct sinker *m)
{
    double extra = m->o->sink_iterative_extra_comm_comp_overlap;
    double gap = (m->comm - m->comp) - -extra * m->comm;

    if (m->unknown || (!m->exact && fabs(gap) <= 1e-9 * (fabs(m->comm) + fabs(m->comp))))
        refresh(m);
    return m->comm - m->comp < -extra * m->comm;
}

static double exposed_delta(const struct sinker *m, double t)
{
    double d = positive(m->comm - m->comp - t) - positive(m->comm - m->comp);

    for (uint32_t i = 0; i < m->n_coll; i++)
        d += positive(m->coll[i].comm - m->coll[i].comp + t) -
             positive(m->coll[i].comm - m->coll[i].comp);
    return d;
}

static bool exposes_group(struct sinker *m, uint32_t x)
{
    double t = m->it->rt[x], d, scale = fabs(m->comm) + fabs(m->comp) + t;

    if (problem_is_async(m->it->p, x) || !(t > 0) || m->n_coll == 0)
        return false;
    if (m->unknown)
        refresh(m);
    d = exposed_delta(m, t);
    for (uint32_t i = 0; i < m->n_coll; i++)
        scale += fabs(m->coll[i].comm) + fabs(m->coll[i].comp);
    if (!m->exact && m->comm - m->comp > -1e-9 * scale && fabs(d) <= 1e-9 * scale) {
        refresh(m);
        d = exposed_delta(m, t);
    }
    if (d > 0)
        return true;
    for (uint32_t i = 0; i < m->n_coll; i++)
        m->coll[i].comp -= t;
    return false;
}

/* A wait that is passed comes earlier by what the group computes. */
static bool exposes_passed(struct sinker *m, uint32_t x)
{
    if (!problem_is_wait(m->it->p, x))
        return false;
    struct exposed e = expose_wait(m->it, x);
    return positive(e.comm - e.comp + m->group_runtime) > positive(e.comm - e.comp);
}

static bool may_join(const struct sinker *m, uint32_t x)
{
    const struct problem *p = m->it->p;

    if (problem_is_wait(p, x) || problem_is_async(p, x))
        return false;
    return m->o->sink_iterative_use_runtime_estimations ||
           !(problem_is_coll(p, x) || p->flags[x] & PROBLEM_LIKE_GEMM);
}

static void join(struct sinker *m, uint32_t x)
{
    struct iter *it = m->it;
    bool coll = problem_is_coll(it->p, x);

    iter_join(it, x, false);
    m->st->grouped++;
    m->has_coll |= coll;
    if (!m->o->sink_iterative_use_runtime_estimations)
        return;
    if (coll)
        m->coll[m->n_coll++] = expose_coll(it, x);
    if (coll || !(it->slips & SLIP_SINK_GROUP_RUNTIME))
        m->group_runtime += it->rt[x];
}

enum step { STOP, JOIN, PASS };

static enum step stop(struct sinker *m, enum schedule_limit limit, uint32_t x)
{
    m->st->limit = limit;
    m->st->limit_op = x;
    return STOP;
}

static enum step look(struct sinker *m, uint32_t x)
{
    struct iter *it = m->it;
    const struct problem *p = it->p;
    bool use = m->o->sink_iterative_use_runtime_estimations;
    bool needs = it->touches[x] == it->serial, both = m->has_coll && problem_is_coll(p, x);

    if (use && covered(m))
        return stop(m, LIMIT_COVERED, PROBLEM_NONE);
    if (!m->o->sink_waits_iterative_swap_with_collectives && problem_is_async(p, x))
        return stop(m, LIMIT_COLLECTIVE, x);
    if (needs || both) {
        if (may_join(m, x))
            return JOIN;
        if (needs)
            return stop(m, LIMIT_DEPENDENCY, x);
        if (!m->o->sink_waits_iterative_unsafe_collectives_reorder)
            return stop(m, LIMIT_ORDER, x);
    }
    if (use && exposes_passed(m, x))
        return stop(m, LIMIT_EXPOSES_PASSED, x);
    if (use && exposes_group(m, x))
        return stop(m, LIMIT_EXPOSES_GROUP, x);
    int64_t peak = iter_peak_back(it, x);
    if (!iter_over_budget(it, peak))
        return PASS;
    iter_stay(it);
    m->st->limit_peak = peak;
    return stop(m, LIMIT_MEMORY, x);
}

static void pass_by(struct sinker *m, uint32_t x)
{
    const struct problem *p = m->it->p;

    iter_pass_back(m->it, x);
    iter_check(m->it);
    m->st->moves++;
    if (problem_is_coll(p, x)) {
        m->cut |= !problem_is_async(p, x);
        return;
    }
    if (!m->cut) {
        m->comp += m->it->rt[x];
        m->exact = m->exact && expose_is_exact(m->it);
    }
    if (problem_is_wait(p, x) && expose_cuts(m->it, m->cur, x, &m->cut)) {
        m->exact = false;
        m->unknown = true;
    }
}

static void move_one(struct sinker *m)
{
    struct iter *it = m->it;
    struct exposed e = expose_wait(it, m->cur);
    enum step step = PASS;

    m->comm = e.comm;
    m->comp = e.comp;
    m->exact = true;
    m->unknown = false;
    m->cut = e.cut;
    m->has_coll = problem_is_coll(it->p, m->cur);
    m->group_runtime = 0;
    m->n_coll = 0;
    m->st = &it->stat[it->n_stat++];
    *m->st = (struct schedule_stat){.op = m->cur,
                                    .comm_time = e.comm,
                                    .initial_exposed = e.comm - e.comp,
                                    .limit_op = PROBLEM_NONE};
    iter_group(it, m->cur, false);
    while (step != STOP) {
        uint32_t x = it->next[it->group[it->n_group - 1]];
        if (x == PROBLEM_NONE)
            break;
        step = look(m, x);
        if (step == JOIN)
            join(m, x);
        else if (step == PASS)
            pass_by(m, x);
    }
    iter_settle(it, false);
    e = expose_wait(it, m->cur);
    m->st->comm_time = e.comm;
    m->st->comp_time = e.comp;
    m->st->final_exposed = e.comm - e.comp;
}

void schedule_sink_iterative(struct schedule *s)
{
    struct arena *a = &s->arena;
    struct schedule_report *r = step_report(s);
    struct iter it;
    uint32_t n_coll = 0;
    int64_t limit = s->opt.sink_waits_iterative_debug_limit_to_sink, seen = 0;

    if (s->p->n_op == 0)
        return;
    for (uint32_t x = 0; x < s->p->n_op; x++)
        n_coll += problem_is_coll(s->p, x);
    iter_begin(&it, s, a);
    it.allowance = schedule_allowance(it.live.peak, s->opt.sink_iterative_peak_memory_budget);
    struct sinker m = {.it = &it, .o = &s->opt, .coll = arena_array(a, struct exposed, n_coll)};
    for (uint32_t x = s->order[s->p->n_op - 1], before; x != PROBLEM_NONE; x = before) {
        before = it.prev[x];
        if (before == PROBLEM_NONE && (it.slips & SLIP_SKIP_END_OP))
            break;
        if (limit != SCHEDULE_NO_LIMIT && seen >= limit)
            break;
        if (!problem_is_wait(s->p, x))
            continue;
        seen++;
        m.cur = x;
        move_one(&m);
    }
    iter_end(&it, r);
}
