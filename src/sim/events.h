/* Activities with changing speeds: their remaining work, and a heap of their end times. */
#ifndef TUCK_SIM_EVENTS_H
#define TUCK_SIM_EVENTS_H

#include "base/heap.h"
#include "sim/rank_sim.h"

/* Picoseconds times SIM_SPEED. Arenas align to 8 bytes. */
__extension__ typedef unsigned __int128 sim_work __attribute__((aligned(8)));

struct sim_activity {
    sim_work left;
    uint32_t speed;
    int64_t since, end;
};

struct sim_events {
    struct sim_activity *act;
    struct heap running; /* ordered by end time */
    int64_t now;
};

static inline int64_t sim_later(int64_t t, int64_t by)
{
    int64_t sum;

    return __builtin_add_overflow(t, by, &sum) ? INT64_MAX : sum;
}

/* Activities 0 … n-1; none is running. */
void sim_events_init(struct sim_events *e, uint32_t n, struct arena *a);
/* Starts an activity that is not running, with `ps` of work. */
void sim_begin(struct sim_events *e, uint32_t id, int64_t ps, uint32_t speed);
/* Does nothing if it is not running. */
void sim_change_speed(struct sim_events *e, uint32_t id, uint32_t speed);
/* The next activity to end, which stops running; the clock moves to its end. There must be one. */
uint32_t sim_next(struct sim_events *e);

#endif
