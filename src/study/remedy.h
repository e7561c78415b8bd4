/* What would help a step: searched for and simulated, not guessed.
 *
 * Each search has a fixed number of trials, so a large graph needs no more of them than a small
 * one. A trial shows that the passes on schedules found such an order; an order that is reported is
 * applied to the graph, which is then lowered and simulated again.
 */
#ifndef TUCK_STUDY_REMEDY_H
#define TUCK_STUDY_REMEDY_H

#include "study/explain.h"

/* For the whole step: Tuck's own passes, more memory, larger collectives, another group for some,
 * faster links. */
TUCK_MUST_CHECK tuck_status remedies_of_step(struct explanation *x, const tuck_graph *g,
                                             struct study *study, const struct observer *watch);
/* For one collective, depending on what limits it. */
TUCK_MUST_CHECK tuck_status remedies_of_collective(struct explanation *x, const tuck_graph *g,
                                                   struct study *study,
                                                   const struct observer *watch,
                                                   const struct explained *r);

#endif
