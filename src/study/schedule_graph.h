/* A pass on orders, run on a graph: the graph's program gets another order, and a clone
 * of the graph that order. */
#ifndef TUCK_STUDY_SCHEDULE_GRAPH_H
#define TUCK_STUDY_SCHEDULE_GRAPH_H

#include "pass/pass.h"
#include "study/study.h"

/* r->g stays as it is. Where something moved, r->changed is set and r->g becomes a clone, the
 * caller's to free. Leaves through the guards of the store and of the report. */
tuck_status schedule_graph_step(struct study *study, struct pass_run *r,
                                const struct pipeline_step *step);

#endif
