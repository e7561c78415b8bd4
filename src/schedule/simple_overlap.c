/* simple_overlap: moves each collective towards the front, then each wait towards the back, alone
 * and past one neighbor at a time, never with more memory than before. It uses no costs. */
#include "schedule/move.h"
#include "schedule/step.h"

static enum move_step look_ahead(struct mover *m, uint32_t x)
{
    /* Copies made for the collective's own node are part of it. */
    if (!m->it->torch && problem_anchor(m->it->p, x) == m->op)
        return MOVE_JOIN;
    if (problem_is_async(m->it->p, x) &&
        (m->it->torch || m->o->keep_order || problem_in_sequence(m->it->p, m->op, x)))
        return move_stop(m, LIMIT_COLLECTIVE, x);
    if (m->it->touches[x] == m->it->serial)
        return move_stop(m, LIMIT_DEPENDENCY, x);
    return move_within(m, x, iter_peak_front(m->it, x));
}

static enum move_step look_behind(struct mover *m, uint32_t x)
{
    if (problem_is_wait(m->it->p, x))
        return move_stop(m, LIMIT_WAIT, x);
    if (m->it->touches[x] == m->it->serial)
        return move_stop(m, LIMIT_DEPENDENCY, x);
    return move_within(m, x, iter_peak_back(m->it, x));
}

void schedule_simple_overlap(struct schedule *s)
{
    const struct problem *p = s->p;
    const struct move_rule raise = {true, look_ahead, NULL, NULL};
    const struct move_rule sink = {false, look_behind, NULL, NULL};
    struct iter it;
    unsigned slips = s->opt.slips;
    uint32_t tail = PROBLEM_NONE;

    /* PyTorch's version, newer than the other passes, shares only their way of counting memory. */
    s->opt.slips &= SLIP_FIRST_OP_OWNS_INPUTS | SLIP_SINK_LAST_USE_STALE;
    iter_begin(&it, s, &s->arena);
    s->opt.slips = slips;
    struct mover m = {.it = &it, .o = &s->opt};
    for (uint32_t x = it.head, next; x != PROBLEM_NONE; x = next) {
        next = it.next[x];
        if (problem_is_async(p, x))
            move_op(&m, &raise, x);
    }
    for (uint32_t x = it.head; x != PROBLEM_NONE; x = it.next[x])
        tail = x;
    for (uint32_t x = tail, before; x != PROBLEM_NONE; x = before) {
        before = it.prev[x];
        if (problem_is_wait(p, x))
            move_op(&m, &sink, x);
    }
    iter_end(&it, step_report(s));
}
