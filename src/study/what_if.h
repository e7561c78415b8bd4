/* Searches another order of a program and simulates it: how long would a step take with this much
 * memory, with faster links, or with some collectives on a channel of their own? */
#ifndef TUCK_STUDY_WHAT_IF_H
#define TUCK_STUDY_WHAT_IF_H

#include "study/evaluate.h"

struct trial {
    int64_t limit;         /* allowed peak; 0 means no limit */
    double faster;         /* link speed factor; 0 means 1 */
    uint32_t alone;        /* the only collective that gets faster; NONE means all */
    const uint32_t *group; /* by op: its channel, below n_group; NULL: unchanged */
    uint32_t n_group;
};

struct tried {
    int64_t ps, peak;
    int64_t exposed;
    uint32_t n_exposed; /* number of exposed collectives */
    int64_t *by_op;     /* by op: how much of a collective is exposed; in the arena */
    uint32_t *order;    /* of the program's ops; in the arena */
};

/* Finds the order that the passes on schedules reach within the limit. Collectives on channels of
 * their own still share their links (sim/rank_sim.h). Results live in the arena. */
TUCK_MUST_CHECK tuck_status trial_run(const tuck_graph *g, const struct evaluation *e,
                                      const struct evaluate_options *o, const struct trial *t,
                                      struct arena *a, struct tried *out);

#endif
