/* Which send meets which receive. */
#ifndef TUCK_SIM_MATCH_P2P_H
#define TUCK_SIM_MATCH_P2P_H

#include "sim/rank_sim.h"

struct sim_met {
    uint32_t rank, op; /* PROBLEM_NONE: nothing */
};

/* By rank and op: its parts are with[at[rank][op]] … */
struct sim_meetings {
    uint32_t **at; /* NULL: no sends or receives */
    struct sim_met *with;
    uint32_t **missing; /* by rank and op: parts, to be counted down */
};

void sim_meet(const struct sim_job *job, struct arena *a, struct sim_meetings *out);

#endif
