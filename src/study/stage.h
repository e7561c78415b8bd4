/* A graph after some of the passes that are tried, with its time and memory. Stages share what they
 * come from, so that no pass runs twice on one graph and no graph is judged twice. A stage is valid
 * as long as the stage it was made from.
 */
#ifndef TUCK_STUDY_STAGE_H
#define TUCK_STUDY_STAGE_H

#include "study/runner.h"

struct stage {
    const struct stage *from; /* NULL for the original graph */
    uint32_t depth;           /* number of passes so far */
    tuck_graph *g;            /* that of the stage before, if the pass changed nothing */
    bool owns;                /* g is its own */
    tuck_report *report;      /* what the last pass did; for the first see stage_first() */
    struct evaluation *e;     /* its time and memory; NULL: not judged yet */
};

/* The first stage: g, its evaluation e, and what was done to g before, or NULL. It owns none of
 * them and is not ended. */
void stage_first(struct stage *first, tuck_graph *g, struct evaluation *e, tuck_report *report);
/* Runs one more pass, with default options except for one number (option NULL: none), and judges
 * the result. *to must be ended, also after a failure. TUCK_EIO: the observer wants to stop. */
TUCK_MUST_CHECK tuck_status stage_next(const struct runner *r, const struct stage *from,
                                       const struct pass *pass, const char *option, double value,
                                       tuck_diags *diags, struct stage *to);
/* The same with several options, as a user writes them. */
TUCK_MUST_CHECK tuck_status stage_next_with(const struct runner *r, const struct stage *from,
                                            const struct pass *pass, const char *options,
                                            tuck_diags *diags, struct stage *to);
/* Judges the result, if that was left for later (struct runner). */
TUCK_MUST_CHECK tuck_status stage_judge(const struct runner *r, struct stage *x, tuck_diags *diags);
void stage_end(struct stage *x);

/* What all passes up to here did, in one report. Stages that were not judged are judged now. */
TUCK_MUST_CHECK tuck_status stage_report(const struct stage *x, struct study *study,
                                         tuck_report **report_out);

#endif
