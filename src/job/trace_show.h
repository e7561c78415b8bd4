/* Traces as tables, as JSON, and as what report/ draws. */
#ifndef TUCK_JOB_TRACE_SHOW_H
#define TUCK_JOB_TRACE_SHOW_H

#include "base/buf.h"
#include "job/trace_study.h"
#include "report/report.h"

struct trace_set {
    const struct trace_part *part;
    uint32_t n;
    uint32_t n_lost;           /* collectives that could not be matched between ranks */
    const char *const *passed; /* paths in folders that are no traces */
    uint32_t n_passed;
};

void trace_table(const struct trace_set *s, uint32_t top, struct buf *b);
void trace_json(const struct trace_set *s, struct buf *b);

/* One step of each part as a report_graph, for report_html() and report_trace(). step: its number;
 * -1: the one whose time is in the middle. False: there is no such step. */
bool trace_pictures(const struct trace_set *s, int64_t step, struct program **program,
                    struct arena *a, struct report_graph *out);

#endif
