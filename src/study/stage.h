/* A graph on its way through the passes that are tried: what it became after one more pass, its
 * time and its memory. Stages share what they come from, so that no pass runs twice on one graph
 * and no graph is judged twice. A stage stays valid as long as the stage it was made from.
 */
#ifndef TUCK_STUDY_STAGE_H
#define TUCK_STUDY_STAGE_H

#include "study/runner.h"

struct stage {
    const struct stage *from; /* NULL: the original graph */
    uint32_t depth;           /* passes so far */
    tuck_graph *g;            /* its own, unless it is the first */
    tuck_report *report;      /* what the last pass did; NULL: the first */
    struct evaluation *e;     /* its time and memory */
};

/* The first stage: g, as `e` evaluates it. */
void stage_first(struct stage *first, tuck_graph *g, struct evaluation *e);
/* Run one more pass, with default options except one number (option NULL: none), and judge the
 * result. *to must be ended, also after a failure. TUCK_EIO: the observer wants to stop. */
TUCK_MUST_CHECK tuck_status stage_next(const struct runner *r, const struct stage *from,
                                       const struct pass *pass, const char *option, double value,
                                       tuck_diags *diags, struct stage *to);
void stage_end(struct stage *x);

/* What every pass on the way did, in one report. */
TUCK_MUST_CHECK tuck_status stage_report(const struct stage *x, tuck_report **report_out);

#endif
