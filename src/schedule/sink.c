/* sink_waits_iterative: moves each wait, starting with the last, towards the end, one neighbor at a
 * time, together with what needs it if that may move. */
#include "schedule/move.h"
#include "schedule/step.h"

/* A wait that is passed comes earlier by the runtime of the group. */
static bool exposes_passed(struct mover *m, uint32_t x)
{
    if (!problem_is_wait(m->it->p, x))
        return false;
    struct exposed e = expose_wait(m->it, x);
    return move_exposes(&e, m->group_runtime);
}

static bool may_join(const struct mover *m, uint32_t x)
{
    const struct problem *p = m->it->p;

    if (problem_is_wait(p, x) || problem_is_async(p, x))
        return false;
    return m->use || !(problem_is_coll(p, x) || p->flags[x] & PROBLEM_LIKE_GEMM);
}

static enum move_step look(struct mover *m, uint32_t x)
{
    const struct iter *it = m->it;
    const struct problem *p = it->p;
    bool needs = it->touches[x] == it->serial;
    /* x and a group member are both collectives. Without PyTorch's rules, only those that must keep
     * their order count. */
    bool both = m->n_along > 0 && problem_is_coll(p, x) && (it->torch || needs);

    if (m->use && move_covered(m))
        return move_stop(m, LIMIT_COVERED, PROBLEM_NONE);
    uint32_t start = it->torch ? x : problem_anchor(p, x); /* copies move with their collective */
    if (!m->o->sink_waits_iterative_swap_with_collectives && problem_is_async(p, start))
        return move_stop(m, LIMIT_COLLECTIVE, x);
    if (needs || both) {
        if (may_join(m, x))
            return MOVE_JOIN;
        if (needs)
            return move_stop(m, LIMIT_DEPENDENCY, x);
        if (!m->o->sink_waits_iterative_unsafe_collectives_reorder)
            return move_stop(m, LIMIT_ORDER, x);
    }
    if (m->use && exposes_passed(m, x))
        return move_stop(m, LIMIT_EXPOSES_PASSED, x);
    if (m->use && move_exposes_group(m, x))
        return move_stop(m, LIMIT_EXPOSES_GROUP, x);
    return move_within(m, x, iter_peak_back(m->it, x));
}

/* Synchronous collectives join only if runtimes are used. */
static void joined(struct mover *m, uint32_t x)
{
    struct iter *it = m->it;
    bool coll = problem_is_coll(it->p, x);

    if (!m->use)
        return;
    if (coll)
        m->along[m->n_along++] = expose_coll(it, x);
    if (coll || !(it->slips & SLIP_SINK_GROUP_RUNTIME))
        m->group_runtime += it->rt[x];
}

static void passed(struct mover *m, uint32_t x)
{
    const struct problem *p = m->it->p;

    if (problem_is_coll(p, x)) {
        m->cut |= !problem_is_async(p, x);
        return;
    }
    if (!m->cut) {
        m->comp += m->it->rt[x];
        m->exact = m->exact && expose_is_exact(m->it);
    }
    if (problem_is_wait(p, x) && expose_cuts(m->it, m->op, x, &m->cut)) {
        m->exact = false;
        m->unknown = true;
    }
}

void schedule_sink_iterative(struct schedule *s)
{
    const struct move_rule rule = {false, look, joined, passed};
    struct iter it;
    uint32_t n_coll = 0;
    int64_t limit = s->opt.sink_waits_iterative_debug_limit_to_sink, seen = 0;

    if (s->p->n_op == 0)
        return;
    for (uint32_t x = 0; x < s->p->n_op; x++)
        n_coll += problem_is_coll(s->p, x);
    iter_begin(&it, s, &s->arena);
    it.allowance = schedule_allowance(it.live.peak, s->opt.sink_iterative_peak_memory_budget);
    struct mover m = {.it = &it,
                      .o = &s->opt,
                      .use = s->opt.sink_iterative_use_runtime_estimations,
                      .extra = s->opt.sink_iterative_extra_comm_comp_overlap,
                      .along = arena_array(&s->arena, struct exposed, n_coll)};
    for (uint32_t x = s->order[s->p->n_op - 1], before; x != PROBLEM_NONE; x = before) {
        before = it.prev[x];
        if (before == PROBLEM_NONE && (it.slips & SLIP_SKIP_END_OP))
            break;
        if (limit != SCHEDULE_NO_LIMIT && seen >= limit)
            break;
        if (!problem_is_wait(s->p, x))
            continue;
        seen++;
        move_op(&m, &rule, x);
    }
    iter_end(&it, step_report(s));
}
