/* What the simulation of several ranks and of contention must know about a graph,
 * besides its schedule problem. */
#ifndef TUCK_STUDY_RANK_INPUT_H
#define TUCK_STUDY_RANK_INPUT_H

#include "study/evaluate.h"
#include "sim/rank_sim.h"

struct facts {
    struct sim_call *call; /* by op */
    uint8_t *cls;          /* by op */
};

/* How group k of the program lies on a machine. */
struct cost_shape facts_shape(const tuck_graph *g, const struct program *p, const tuck_cluster *c,
                              uint32_t k);
/* Its members, NULL: not known. */
const int64_t *facts_ranks(const tuck_graph *g, uint32_t k);

/* The graph is the one that the program was lowered from. Sends and receives name places in their
 * group, and are left `alone` here. Leaves through the arena's guard. */
void facts_of(const tuck_graph *g, const struct program *p, const struct problem *problem,
              const struct machine *m, struct arena *a, struct facts *out);

/* For sim_job.slow and n_kind, of facts_of()'s classes and kinds. */
const uint32_t *facts_slow(const tuck_cluster *c, struct arena *a, uint32_t *n_kind);

/* The parts of a send, a receive or a batch of them: peers as places in the group.
 * The number; 0: not one. */
uint32_t facts_parts(const tuck_graph *g, uint32_t node, struct arena *a, struct sim_part **out);

#endif
