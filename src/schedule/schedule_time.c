/* The time of an order, and whether it is valid. */
#include "schedule/schedule.h"

void schedule_sim(struct sim *sim, const struct problem *p, const double *runtime, struct arena *a)
{
    int64_t *ps = arena_array(a, int64_t, p->n_op);

    for (uint32_t i = 0; i < p->n_op; i++)
        ps[i] = ps_round(runtime[i] * p->unit_ps);
    sim_init(sim, p, &(struct sim_options){.ps = ps}, a);
}

struct sim_result schedule_spans(const struct problem *p, const double *runtime,
                                 const uint32_t *order, struct sim_span *span, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    struct sim sim;
    struct sim_result r;

    schedule_sim(&sim, p, runtime, a);
    sim_run(&sim, order, &r, span);
    arena_release(a, mark);
    return r;
}

struct schedule_time schedule_time(const struct problem *p, const double *runtime,
                                   const uint32_t *order, struct arena *a)
{
    struct sim_result r = schedule_spans(p, runtime, order, NULL, a);

    return (struct schedule_time){r.makespan, r.compute, r.exposed};
}

bool schedule_is_valid(const struct problem *p, const uint32_t *order, bool fake, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    bool *done = arena_zeroed(a, p->n_op), fine = true;

    for (uint32_t i = 0; fine && i < p->n_op; i++) {
        uint32_t x = order[i];

        fine = x < p->n_op && !done[x];
        for (uint32_t d = fine ? p->dep_at[x] : 0; fine && d < p->dep_at[x + 1]; d++) {
            uint32_t y = problem_dep_op(p, d);
            if (y != PROBLEM_NONE && (fake || !(p->dep_flags[d] & PROBLEM_FAKE)))
                fine = done[y];
        }
        if (fine)
            done[x] = true;
    }
    arena_release(a, mark);
    return fine;
}

bool schedule_keeps_comms(const struct problem *p, const uint32_t *order, bool keep_order,
                          struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    uint32_t *latest = arena_zeroed(a, ((size_t)p->n_group + 1) * sizeof(*latest));
    uint32_t all = 0, fences = 0;
    bool fine = true;

    /* Ids ascend in the problem's own order. */
    for (uint32_t i = 0; fine && i < p->n_op; i++) {
        uint32_t x = order[i];
        if (!problem_is_coll(p, x))
            continue;
        bool fence = (p->flags[x] & PROBLEM_FENCE) != 0;
        uint32_t *l = &latest[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
        fine = x + 1 > *l && x + 1 > fences && (!(fence || keep_order) || x + 1 > all);
        *l = x + 1;
        all = x + 1 > all ? x + 1 : all;
        fences = fence ? x + 1 : fences;
    }
    arena_release(a, mark);
    return fine;
}

enum schedule_freedom schedule_freedom(const struct schedule *s, uint32_t coll)
{
    static const bool known[] = {
        [TUCK_ALL_REDUCE] = true, [TUCK_ALL_GATHER] = true, [TUCK_REDUCE_SCATTER] = true,
        [TUCK_ALL_TO_ALL] = true, [TUCK_BROADCAST] = true,  [TUCK_SHARD_DIM_ALLTOALL] = true};
    const struct problem *p = s->p;
    uint8_t kind = p->coll[coll];

    if ((p->flags[coll] & PROBLEM_FENCE) || kind >= sizeof(known) || !known[kind])
        return FREE_NOT;
    if (s->fixed_group != NULL && s->fixed_group[p->group[coll]])
        return FREE_NOT;
    return problem_is_async(p, coll) ? FREE_ALL : FREE_IN_GROUP;
}

bool schedule_keeps_fences(const struct schedule *s, struct arena *a)
{
    const struct problem *p = s->p;
    struct arena_mark mark = arena_mark(a);
    uint32_t *latest = arena_zeroed(a, ((size_t)p->n_group + 1) * sizeof(*latest));
    uint32_t all = 0, fences = 0;
    bool fine = true;

    /* Ids ascend in the problem's own order. */
    for (uint32_t i = 0; fine && i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (!problem_is_coll(p, x))
            continue;
        enum schedule_freedom free = schedule_freedom(s, x);
        uint32_t *l = &latest[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
        fine = x + 1 > fences && (free != FREE_NOT || x + 1 > all) &&
               (free != FREE_IN_GROUP || x + 1 > *l);
        all = x + 1 > all ? x + 1 : all;
        fences = free == FREE_NOT ? x + 1 : fences;
        *l = free == FREE_IN_GROUP ? x + 1 : *l;
    }
    arena_release(a, mark);
    return fine;
}

bool schedule_crosses_groups(const struct problem *p, const uint32_t *order)
{
    uint32_t all = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        if (!problem_is_coll(p, order[i]))
            continue;
        if (order[i] + 1 < all)
            return true;
        all = order[i] + 1;
    }
    return false;
}
