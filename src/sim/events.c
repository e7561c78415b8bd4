#include "sim/events.h"

#define NONE PROBLEM_NONE

void sim_events_init(struct sim_events *e, uint32_t n, struct arena *a)
{
    *e = (struct sim_events){.act = arena_array(a, struct sim_activity, n),
                             .heap = arena_array(a, uint32_t, n)};
    for (uint32_t i = 0; i < n; i++)
        e->act[i].place = NONE;
}

static bool before(const struct sim_events *e, uint32_t a, uint32_t b)
{
    return e->act[a].end != e->act[b].end ? e->act[a].end < e->act[b].end : a < b;
}

static void put(struct sim_events *e, uint32_t at, uint32_t id)
{
    e->heap[at] = id;
    e->act[id].place = at;
}

static void settle_place(struct sim_events *e, uint32_t id)
{
    uint32_t at = e->act[id].place;

    for (; at > 0 && before(e, id, e->heap[(at - 1) / 2]); at = (at - 1) / 2)
        put(e, at, e->heap[(at - 1) / 2]);
    for (;;) {
        uint32_t k = 2 * at + 1;
        if (k >= e->n)
            break;
        if (k + 1 < e->n && before(e, e->heap[k + 1], e->heap[k]))
            k++;
        if (!before(e, e->heap[k], id))
            break;
        put(e, at, e->heap[k]);
        at = k;
    }
    put(e, at, id);
}

static void schedule_end(struct sim_events *e, uint32_t id)
{
    struct sim_activity *x = &e->act[id];
    sim_work ps = x->speed == SIM_SPEED ? (x->left + SIM_SPEED - 1) / SIM_SPEED
                                        : (x->left + x->speed - 1) / x->speed;

    x->end = ps > INT64_MAX ? INT64_MAX : sim_later(e->now, (int64_t)ps);
    settle_place(e, id);
}

void sim_begin(struct sim_events *e, uint32_t id, int64_t ps, uint32_t speed)
{
    struct sim_activity *x = &e->act[id];

    *x = (struct sim_activity){(sim_work)ps * SIM_SPEED, speed, e->n, e->now, 0};
    e->heap[e->n++] = id;
    schedule_end(e, id);
}

void sim_change_speed(struct sim_events *e, uint32_t id, uint32_t speed)
{
    struct sim_activity *x = &e->act[id];

    if (x->place == NONE || x->speed == speed)
        return;
    sim_work done = (sim_work)x->speed * (sim_work)(e->now - x->since);
    x->left = done < x->left ? x->left - done : 0;
    x->since = e->now;
    x->speed = speed;
    schedule_end(e, id);
}

uint32_t sim_next(struct sim_events *e)
{
    uint32_t id = e->heap[0], last = e->heap[--e->n];

    e->act[id].place = NONE;
    if (last != id) {
        put(e, 0, last);
        settle_place(e, last);
    }
    e->now = e->act[id].end;
    return id;
}
