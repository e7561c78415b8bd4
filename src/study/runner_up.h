/* The second best result of a search, and both it and the winner with contention: concurrent
 * collectives share their link, and kernels run slower next to them. */
#ifndef TUCK_STUDY_RUNNER_UP_H
#define TUCK_STUDY_RUNNER_UP_H

#include "study/stage.h"

struct runner_up {
    tuck_graph *g; /* NULL if there is none */
    int64_t ps, peak;
};

/* Takes a copy of g if it is the fastest so far that is not the winner. */
TUCK_MUST_CHECK tuck_status runner_up_offer(struct runner_up *x, const tuck_graph *g, int64_t ps,
                                            int64_t peak);
/* Judges both; does nothing if the machine has contention anyway. */
TUCK_MUST_CHECK tuck_status runner_up_judge(const struct runner_up *x, const struct study *study,
                                            tuck_graph *winner, int64_t winner_ps,
                                            struct report_contended *out);
void runner_up_end(struct runner_up *x);

#endif
