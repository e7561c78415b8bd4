/* The second best result of a search, and both it and the winner with contention: concurrent
 * collectives share their link, and kernels run slower next to them. */
#ifndef TUCK_STUDY_RUNNER_UP_H
#define TUCK_STUDY_RUNNER_UP_H

#include "study/stage.h"

struct runner_up {
    tuck_graph *g; /* NULL if there is none */
    struct evaluation *e;
};

/* Takes a copy of g, with its evaluation, if it is the fastest so far that is not the winner. */
TUCK_MUST_CHECK tuck_status runner_up_offer(struct runner_up *x, const tuck_graph *g,
                                            struct evaluation *e);
/* Judges both; does nothing if the machine has contention anyway. */
TUCK_MUST_CHECK tuck_status runner_up_judge(const struct runner_up *x, const struct study *study,
                                            const tuck_graph *winner, struct evaluation *e,
                                            struct report_contended *out);
void runner_up_end(struct runner_up *x);

#endif
