/* What passes that a user chose made of a graph: both simulated, for the report. */
#ifndef TUCK_STUDY_JUDGE_H
#define TUCK_STUDY_JUDGE_H

#include "pass/pass_report.h"
#include "study/evaluate.h"

void judge_times(const struct evaluation *e, tuck_times *out);

/* Both graphs are inferred. Where one of them cannot be simulated, its sizes are not known, the
 * report stays as it is and the status says so. */
TUCK_MUST_CHECK tuck_status judge_report(tuck_graph *before, tuck_graph *after,
                                         const struct evaluate_options *o, tuck_report *t);

#endif
