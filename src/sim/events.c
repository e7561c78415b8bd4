#include "sim/events.h"

static int by_end(const void *ctx, uint32_t x, uint32_t y)
{
    const struct sim_activity *act = ctx;

    if (act[x].end != act[y].end)
        return act[x].end < act[y].end ? -1 : 1;
    return x < y ? -1 : x > y;
}

void sim_events_init(struct sim_events *e, uint32_t n, struct arena *a)
{
    *e = (struct sim_events){.act = arena_array(a, struct sim_activity, n)};
    heap_begin(&e->running, a, n, by_end, e->act);
    heap_track(&e->running, a);
}

static void set_end(struct sim_events *e, uint32_t id)
{
    struct sim_activity *x = &e->act[id];
    sim_work ps = x->speed == SIM_SPEED ? (x->left + SIM_SPEED - 1) / SIM_SPEED
                                        : (x->left + x->speed - 1) / x->speed;

    x->end = ps > INT64_MAX ? INT64_MAX : sim_later(e->now, (int64_t)ps);
}

void sim_begin(struct sim_events *e, uint32_t id, int64_t ps, uint32_t speed)
{
    struct sim_activity *x = &e->act[id];

    assert_hot(e->running.place[id] == HEAP_OUT && ps >= 0);
    *x = (struct sim_activity){(sim_work)ps * SIM_SPEED, speed, e->now, 0};
    set_end(e, id);
    heap_push(&e->running, id);
}

void sim_change_speed(struct sim_events *e, uint32_t id, uint32_t speed)
{
    struct sim_activity *x = &e->act[id];

    if (e->running.place[id] == HEAP_OUT || x->speed == speed)
        return;
    sim_work done = (sim_work)x->speed * (sim_work)(e->now - x->since);
    x->left = done < x->left ? x->left - done : 0;
    x->since = e->now;
    x->speed = speed;
    set_end(e, id);
    heap_settle(&e->running, id);
}

uint32_t sim_next(struct sim_events *e)
{
    uint32_t id = heap_pop(&e->running);

    assert_hot(e->act[id].end >= e->now);
    e->now = e->act[id].end;
    return id;
}
