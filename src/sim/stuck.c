#include "sim/engine.h"

/* A rank that the transfer at the head of s waits for; *part: which of its sends and receives. */
static uint32_t absent_from(const struct sim_engine *e, uint32_t s, uint32_t *part)
{
    const struct sim_slot *x = &e->slot[s];
    uint32_t n;

    *part = NONE;
    if (call_of(e, s)->n_part > 0) {
        uint32_t first = e->met.at[x->rank][x->head];
        for (uint32_t i = first; i < e->met.at[x->rank][x->head + 1]; i++)
            if (e->met.with[i].rank == NONE || !is_there(e, e->met.with[i])) {
                *part = i - first;
                return e->met.with[i].rank;
            }
        return NONE;
    }
    uint32_t at = e->job->member_at[x->group];
    const uint32_t *m = members_of(e, &s, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct sim_slot *y = m[i] == NONE ? NULL : &e->slot[m[i]];
        if (y == NULL || y->head == NONE || is_own(call_of(e, m[i])))
            return e->job->member[at + i];
    }
    return NONE;
}

void sim_deadlock(struct sim_engine *e)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < e->n_slot; s++)
        n += e->slot[s].head != NONE;
    if (n == 0)
        return;
    *e->fault = (struct sim_fault){.kind = SIM_DEADLOCK};
    e->fault->stuck = arena_array(e->a, struct sim_stuck, n);
    for (uint32_t s = 0; s < e->n_slot; s++) {
        const struct sim_slot *x = &e->slot[s];
        if (x->head == NONE)
            continue;
        uint32_t part, absent = absent_from(e, s, &part);
        e->fault->stuck[e->fault->n_stuck++] = (struct sim_stuck){
            .rank = x->rank,
            .op = x->head,
            .held = op_at(e, x->rank),
            .absent = absent,
            .absent_held = absent == NONE ? NONE : op_at(e, absent),
            .part = part,
            .ps = x->ready};
    }
}
