/* PyTorch's own: what its overlap scheduler with bucketing makes of the graph, with the options of
 * its configuration, judged like everything else. It is the row to beat, and a start for searches
 * where it is sound: where PyTorch raises, or its result breaks a write, an effect or the order of
 * communication that must be kept, it is no rival. */
#ifndef TUCK_STUDY_RIVAL_H
#define TUCK_STUDY_RIVAL_H

#include "study/stage.h"

struct rival {
    struct stage stage; /* its g is NULL if there is no sound result */
    char why[256];      /* then: the reason */
    double ms;          /* CPU time of finding and judging it */
};

/* `first` is the original graph with its evaluation; it must outlive the rival. A graph that
 * PyTorch cannot schedule is no failure. *out must be ended, also after a failure. */
TUCK_MUST_CHECK tuck_status rival_run(const struct runner *r, const struct stage *first,
                                      struct rival *out);
void rival_end(struct rival *x);

/* Its times, or why there are none, for a report. */
void rival_report(const struct rival *x, int64_t memory_limit, struct report_rival *out);

#endif
