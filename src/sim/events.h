/* What takes time, while speeds change: activities with work left, and a heap
 * of when each would end. */
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
    struct heap running; /* by when each would end */
    int64_t now;
};

static inline int64_t sim_later(int64_t t, int64_t by)
{
    int64_t sum;

    return __builtin_add_overflow(t, by, &sum) ? INT64_MAX : sum;
}

/* Activities 0 … n-1, none of which runs. */
void sim_events_init(struct sim_events *e, uint32_t n, struct arena *a);
/* `ps` of work for an activity that does not run, from now on. */
void sim_begin(struct sim_events *e, uint32_t id, int64_t ps, uint32_t speed);
/* Nothing where it does not run. */
void sim_change_speed(struct sim_events *e, uint32_t id, uint32_t speed);
/* The next one to end, which no longer runs; that is now. There must be one. */
uint32_t sim_next(struct sim_events *e);

#endif
