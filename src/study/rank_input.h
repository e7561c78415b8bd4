/* What the simulation of several ranks and of contention needs to know about a graph in addition to
 * its schedule problem. */
#ifndef TUCK_STUDY_RANK_INPUT_H
#define TUCK_STUDY_RANK_INPUT_H

#include "study/evaluate.h"
#include "sim/rank_sim.h"

struct facts {
    struct sim_call *call; /* by op */
    uint8_t *cls;          /* by op */
};

/* How group k of the program is placed on the cluster. */
struct cost_shape facts_shape(const tuck_graph *g, const struct program *p, const tuck_cluster *c,
                              uint32_t k);
/* The group's members, NULL if unknown. */
const int64_t *facts_ranks(const tuck_graph *g, uint32_t k);

/* The graph must be the one the program was lowered from. Sends and receives name positions in
 * their group and are marked `alone` here. When memory runs out, jumps to the arena's guard. */
void facts_of(const tuck_graph *g, const struct program *p, const struct problem *problem,
              const struct machine *m, struct arena *a, struct facts *out);

/* For sim_job.slow, slow_comm and n_kind, indexed by the classes and kinds of facts_of(). */
void facts_slow(const tuck_cluster *c, struct arena *a, struct sim_job *job);

/* The parts of a send, a receive or a batch of them; peers are positions in the group. Returns
 * their number, 0 if the node is none of these. */
uint32_t facts_parts(const tuck_graph *g, uint32_t node, struct arena *a, struct sim_part **out);

#endif
