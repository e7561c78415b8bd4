/* Finds which send belongs to which receive. */
#ifndef TUCK_SIM_MATCH_P2P_H
#define TUCK_SIM_MATCH_P2P_H

#include "sim/rank_sim.h"

struct sim_met {
    uint32_t rank, op; /* PROBLEM_NONE if there is no match */
};

/* By rank and op: the matches of its parts start at with[at[rank][op]]. */
struct sim_meetings {
    uint32_t **at; /* NULL if there are no sends or receives */
    struct sim_met *with;
    uint32_t **missing; /* by rank and op: number of parts, to be counted down */
};

void sim_meet(const struct sim_job *job, struct arena *a, struct sim_meetings *out);

#endif
