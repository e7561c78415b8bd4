/* `tuck optimize`: tries several pipelines on clones, simulates each result, and keeps the fastest
 * one within the memory limit. */
#ifndef TUCK_STUDY_OPTIMIZE_H
#define TUCK_STUDY_OPTIMIZE_H

#include "pass/pass_report.h"
#include "study/runner.h"

enum { OPTIMIZE_EFFORT = 5, OPTIMIZE_EFFORT_MAX = 9 };

struct optimize_options {
    struct observer observer;
    /* The peak that the result may have, in bytes. If `memory` is 0: the graph's own peak times 1 +
     * memory_share, plus memory_more bytes. */
    int64_t memory, memory_more;
    double memory_share;
    uint32_t effort;           /* 0 to OPTIMIZE_EFFORT_MAX: how much is tried */
    tuck_progress_fn progress; /* before each try; false: the best so far is the result. Or NULL */
    void *progress_ctx;
    uint32_t tries; /* at most so many; 0: no limit */
    bool no_exact;  /* small graphs are searched like large ones */
};

/* Infers types. If nothing is better, the graph stays unchanged. gain and report (either may be
 * NULL) are filled in on success; the caller frees the report. */
TUCK_MUST_CHECK tuck_status optimize_graph(struct study *study, tuck_graph *g,
                                           const struct optimize_options *o, tuck_diags *diags,
                                           tuck_gain *gain_out, tuck_report **report_out);

#endif
