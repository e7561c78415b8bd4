/* reorder_communication_preserving_peak_memory: moves each asynchronous collective, starting with
 * the first, towards the front, one neighbor at a time, together with what it needs if that may
 * move. */
#include "schedule/move.h"
#include "schedule/step.h"

/* A collective that is passed starts later by the runtime of the group. */
static bool exposes_passed(struct mover *m, uint32_t x)
{
    if (!problem_is_async(m->it->p, x) || !(m->group_runtime > 0))
        return false;
    struct exposed e = expose_coll(m->it, x);
    return move_exposes(&e, m->group_runtime);
}

static bool may_join(const struct mover *m, uint32_t x)
{
    if (problem_is_async(m->it->p, x) && !m->o->reorder_iterative_group_with_collectives)
        return false;
    return m->use || !(m->it->p->flags[x] & PROBLEM_LIKE_GEMM);
}

/* Collectives of other groups may be passed: each group has a channel and an order of its own.
 * PyTorch allows all or none. */
static bool may_not_pass(const struct mover *m, uint32_t x)
{
    if (m->o->reorder_iterative_unsafe_collectives_reorder || !problem_is_coll(m->it->p, x))
        return false;
    return m->it->torch || m->o->keep_order || problem_in_sequence(m->it->p, m->op, x);
}

static enum move_step look(struct mover *m, uint32_t x)
{
    const struct iter *it = m->it;

    if (m->use && move_covered(m))
        return move_stop(m, LIMIT_COVERED, PROBLEM_NONE);
    if (!it->torch && m->o->reorder_prefetch_limit != SCHEDULE_NO_LIMIT &&
        it->passed >= m->o->reorder_prefetch_limit)
        return move_stop(m, LIMIT_MOVES, PROBLEM_NONE);
    if (may_not_pass(m, x))
        return move_stop(m, LIMIT_ORDER, x);
    if (it->touches[x] == it->serial)
        return may_join(m, x) ? MOVE_JOIN : move_stop(m, LIMIT_DEPENDENCY, x);
    if (m->use && move_exposes_group(m, x))
        return move_stop(m, LIMIT_EXPOSES_GROUP, x);
    if (m->use && exposes_passed(m, x))
        return move_stop(m, LIMIT_EXPOSES_PASSED, x);
    return move_within(m, x, iter_peak_front(m->it, x));
}

/* The collectives of waits that come along are hidden by less compute. */
static void joined(struct mover *m, uint32_t x)
{
    if (!m->use)
        return;
    if (problem_is_wait(m->it->p, x))
        m->along[m->n_along++] = expose_wait(m->it, x);
    if (!problem_is_async(m->it->p, x))
        m->group_runtime += m->it->rt[x];
}

static void passed(struct mover *m, uint32_t x)
{
    if (problem_is_async(m->it->p, x))
        return;
    m->comp = problem_is_coll(m->it->p, x) ? 0 : m->comp + m->it->rt[x];
    m->exact = expose_is_exact(m->it);
}

void schedule_reorder_iterative(struct schedule *s)
{
    struct schedule_report *r = step_report(s);
    const struct move_rule rule = {true, look, joined, passed};
    struct iter it;
    uint32_t n_coll = 0, n_wait = 0;
    int64_t limit = s->opt.reorder_iterative_debug_limit_to_reorder, seen = 0;

    for (uint32_t x = 0; x < s->p->n_op; x++) {
        n_coll += problem_is_coll(s->p, x);
        n_wait += problem_is_wait(s->p, x);
    }
    if (n_coll == 0)
        return;
    iter_begin(&it, s, &s->arena);
    it.allowance = schedule_allowance(it.live.peak, s->opt.reorder_iterative_peak_memory_budget);
    struct mover m = {.it = &it,
                      .o = &s->opt,
                      .use = s->opt.reorder_iterative_use_runtime_estimations,
                      .extra = s->opt.reorder_iterative_extra_comm_comp_overlap,
                      .along = arena_array(&s->arena, struct exposed, n_wait)};
    for (uint32_t x = it.head, next; x != PROBLEM_NONE; x = next) {
        next = it.next[x];
        if (next == PROBLEM_NONE && (it.slips & SLIP_SKIP_END_OP))
            break;
        if (!problem_is_async(s->p, x))
            continue;
        if (limit != SCHEDULE_NO_LIMIT && seen++ >= limit)
            break;
        move_op(&m, &rule, x);
        if (s->opt.reorder_iterative_debug_memory_recompute && iter_wrong(&it) != NULL)
            r->note = iter_wrong(&it);
    }
    iter_end(&it, r);
}
