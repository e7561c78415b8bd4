/* What passes that a user chose made of a graph: both simulated, for the report. */
#ifndef TUCK_STUDY_JUDGE_H
#define TUCK_STUDY_JUDGE_H

#include "pass/pass_report.h"
#include "study/evaluate.h"

void judge_times(const struct evaluation *e, tuck_times *out);

/* Of the graph before the passes, with its bounds, and after. */
TUCK_MUST_CHECK tuck_status judge_report(const tuck_graph *g, const tuck_cluster *c,
                                         const struct evaluation *before,
                                         const struct evaluation *after, tuck_report *t);

#endif
