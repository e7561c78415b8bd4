/* What an order is worth, and whether it is one. */
#include <math.h>

#include "schedule/schedule.h"

struct schedule_time schedule_time(const struct problem *p, const double *runtime,
                                   const uint32_t *order, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    int64_t *end = arena_zeroed(a, (size_t)p->n_op * sizeof(*end));
    int64_t *channel = arena_zeroed(a, ((size_t)p->n_group + 1) * sizeof(*channel));
    struct schedule_time t = {0};
    int64_t clock = 0;
    double ps = problem_unit_ns(p) * 1e3;

    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = order[i];
        int64_t d = llround(runtime[x] * ps);

        if (problem_is_coll(p, x)) {
            int64_t *c = &channel[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
            end[x] = *c = (*c > clock ? *c : clock) + d;
            if (!problem_is_async(p, x))
                clock = end[x];
        } else {
            for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
                if (end[p->wait[k]] > clock)
                    clock = end[p->wait[k]];
            clock += d;
            t.compute += d;
        }
    }
    t.makespan = clock;
    for (uint32_t g = 0; g <= p->n_group; g++)
        if (channel[g] > t.makespan)
            t.makespan = channel[g];
    t.exposed = t.makespan - t.compute;
    arena_release(a, mark);
    return t;
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

bool schedule_keeps_comms(const struct problem *p, const uint32_t *order, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    uint32_t *latest = arena_zeroed(a, ((size_t)p->n_group + 1) * sizeof(*latest));
    bool fine = true;

    /* Ids ascend in the problem's own order. */
    for (uint32_t i = 0; fine && i < p->n_op; i++) {
        uint32_t x = order[i];
        if (!problem_is_coll(p, x))
            continue;
        uint32_t *l = &latest[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
        fine = x + 1 > *l;
        *l = x + 1;
    }
    arena_release(a, mark);
    return fine;
}
