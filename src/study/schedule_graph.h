/* Runs a pass on orders on a graph: it finds another order for the graph's program, which is then
 * applied to a clone of the graph. */
#ifndef TUCK_STUDY_SCHEDULE_GRAPH_H
#define TUCK_STUDY_SCHEDULE_GRAPH_H

#include "pass/pass.h"
#include "study/study.h"

/* If something moved, sets r->changed and makes r->g a clone, which the caller frees; otherwise
 * r->g is unchanged. When memory runs out, jumps to the guard of the store or of the report. */
tuck_status schedule_graph_step(struct study *study, struct pass_run *r,
                                const struct pipeline_step *step);

#endif
