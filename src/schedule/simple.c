/* simple_overlap: each collective moves towards the front, then each wait towards the back, alone and past
 * one neighbour at a time, and never with more memory than there was. No costs are asked for. */
#include "schedule/iter.h"
#include "schedule/step.h"

static struct schedule_stat *begin(struct iter *it, uint32_t x)
{
    struct schedule_stat *st = &it->stat[it->n_stat++];
    struct exposed e = problem_is_wait(it->p, x) ? expose_wait(it, x) : expose_coll(it, x);

    *st = (struct schedule_stat){
        .op = x, .initial_exposed = e.comm - e.comp, .limit_op = PROBLEM_NONE};
    return st;
}

static void end(struct iter *it, struct schedule_stat *st)
{
    uint32_t x = st->op;
    struct exposed e = problem_is_wait(it->p, x) ? expose_wait(it, x) : expose_coll(it, x);

    st->comm_time = e.comm;
    st->comp_time = e.comp;
    st->final_exposed = e.comm - e.comp;
}

static void move(struct iter *it, uint32_t op, bool towards_front)
{
    const struct problem *p = it->p;
    struct schedule_stat *st = begin(it, op);

    iter_group(it, op, towards_front);
    for (;;) {
        uint32_t x = towards_front ? it->prev[op] : it->next[op];
        if (x == PROBLEM_NONE)
            break;
        st->limit_op = x;
        st->limit = towards_front && problem_is_async(p, x)   ? LIMIT_COLLECTIVE
                    : !towards_front && problem_is_wait(p, x) ? LIMIT_WAIT
                    : it->touches[x] == it->serial            ? LIMIT_DEPENDENCY
                                                              : LIMIT_END;
        if (st->limit != LIMIT_END)
            break;
        int64_t peak = towards_front ? iter_peak_front(it, x) : iter_peak_back(it, x);
        if (peak > it->live.peak) {
            iter_stay(it);
            st->limit = LIMIT_MEMORY;
            st->limit_peak = peak;
            break;
        }
        if (towards_front)
            iter_pass_front(it, x);
        else
            iter_pass_back(it, x);
        iter_check(it);
        st->moves++;
        st->limit_op = PROBLEM_NONE;
    }
    iter_settle(it, towards_front);
    end(it, st);
}

void schedule_simple_overlap(struct schedule *s)
{
    const struct problem *p = s->p;
    struct schedule_report *r = step_report(s);
    struct iter it;
    unsigned slips = s->opt.slips;
    uint32_t tail = PROBLEM_NONE;

    /* PyTorch's own, newer than its sisters, shares only their way of counting memory. */
    s->opt.slips &= SLIP_FIRST_OP_OWNS_INPUTS | SLIP_SINK_LAST_USE_STALE;
    iter_begin(&it, s, &s->arena);
    s->opt.slips = slips;
    for (uint32_t x = it.head, next; x != PROBLEM_NONE; x = next) {
        next = it.next[x];
        if (problem_is_async(p, x))
            move(&it, x, true);
    }
    for (uint32_t x = it.head; x != PROBLEM_NONE; x = it.next[x])
        tail = x;
    for (uint32_t x = tail, before; x != PROBLEM_NONE; x = before) {
        before = it.prev[x];
        if (problem_is_wait(p, x))
            move(&it, x, false);
    }
    iter_end(&it, r);
}
