/* Another order of a program, searched and simulated: what would a step take with this much memory,
 * on such links, with these collectives on a channel of their own? */
#ifndef TUCK_STUDY_WHAT_IF_H
#define TUCK_STUDY_WHAT_IF_H

#include "study/evaluate.h"

struct trial {
    int64_t limit;         /* the peak it may have; 0: any */
    double faster;         /* link speed factor; 0 means 1 */
    uint32_t alone;        /* the only collective that gets faster; NONE: all */
    const uint32_t *group; /* by op: its channel, n_group of them; NULL: as they are */
    uint32_t n_group;
};

struct tried {
    int64_t ps, peak;
    int64_t exposed;
    uint32_t n_exposed; /* collectives */
    int64_t *by_op;     /* of collectives: how much of each is exposed; in the arena */
    uint32_t *order;    /* of the program's ops; in the arena */
};

/* The order that the passes on schedules find within the limit. With channels of their own
 * collectives share their links (sim/rank_sim.h). Results live in the arena. */
TUCK_MUST_CHECK tuck_status trial_run(const tuck_graph *g, const struct evaluation *e,
                                      const struct evaluate_options *o, const struct trial *t,
                                      struct arena *a, struct tried *out);

#endif
