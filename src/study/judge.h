/* Simulates a graph before and after passes that the user chose, for the report. */
#ifndef TUCK_STUDY_JUDGE_H
#define TUCK_STUDY_JUDGE_H

#include "pass/pass_report.h"
#include "study/evaluate.h"

void judge_times(const struct evaluation *e, tuck_times *out);
/* The bound of the original graph, if it has one. */
void judge_bound(const struct evaluation *e, tuck_gain *out);

/* g is the graph before the passes, with its bounds; then the result. */
TUCK_MUST_CHECK tuck_status judge_report(const tuck_graph *g, const tuck_cluster *c,
                                         const struct evaluation *before,
                                         const struct evaluation *after, tuck_report *t);

#endif
