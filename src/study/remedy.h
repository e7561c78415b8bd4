/* What would help a step, searched for and simulated: not guessed.
 *
 * Each search has a number of trials, so that a large graph takes as many as a small one. What a
 * trial says is that the passes on schedules found such an order; an order that is reported is
 * given to the graph, which is lowered and simulated anew. */
#ifndef TUCK_STUDY_REMEDY_H
#define TUCK_STUDY_REMEDY_H

#include "study/explain.h"

/* Of the whole step: Tuck's own passes, more memory, larger collectives, another group
 * for some, faster links. */
TUCK_MUST_CHECK tuck_status remedies_of_step(struct explanation *x, const tuck_graph *g,
                                             struct study *study, const struct observer *watch);
/* Of one collective, by what limits it. */
TUCK_MUST_CHECK tuck_status remedies_of_collective(struct explanation *x, const tuck_graph *g,
                                                   struct study *study,
                                                   const struct observer *watch,
                                                   const struct explained *r);

#endif
