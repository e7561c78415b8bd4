/* Tuck's own passes: several ways are tried on clones, each result is simulated, and the fastest
 * that needs no more memory than it may is kept. */
#ifndef TUCK_STUDY_OPTIMIZE_H
#define TUCK_STUDY_OPTIMIZE_H

#include "pass/pass_report.h"
#include "study/runner.h"

struct optimize_options {
    struct observer observer;
    /* The peak that the result may have: so many bytes; 0: that of the graph as given, times 1 +
     * memory_share, plus memory_more bytes. */
    int64_t memory, memory_more;
    double memory_share;
};

/* Types are inferred. Where nothing is better the graph stays as it was. gain and report (either
 * may be NULL) are filled on success; the report is the caller's to free. */
TUCK_MUST_CHECK tuck_status optimize_graph(struct study *study, tuck_graph *g,
                                           const struct optimize_options *o, tuck_diags *diags,
                                           tuck_gain *gain_out, tuck_report **report_out);

#endif
