/* Pictures of a step: a page to look at, and a trace for Perfetto. */
#ifndef TUCK_REPORT_REPORT_H
#define TUCK_REPORT_REPORT_H

#include "lower/program.h"
#include "sim/sim.h"

struct cost_assumed; /* cost/assumed.h */

/* One simulated order of one program. */
struct report_run {
    const char *label;
    const struct program *p;
    const struct sim_span *span; /* by op */
    struct sim_result time;
    int64_t peak, bound_ps;
    const char *bound_says;
    const struct cost_assumed *assumed; /* groups whose size was not given */
    uint32_t n_assumed;
    const char *const *limit; /* by op: what limits a collective; NULL: not known */
    const uint32_t *limit_op; /* by op: … and which op, PROGRAM_NONE; or NULL */
};

/* One graph of a file: as it is, or before and after. */
struct report_graph {
    const char *title; /* "": there is no other */
    const char *where; /* the machine */
    const struct report_run *run;
    uint32_t n_run;
};

/* A page that needs nothing from anywhere, of all graphs of a file. Leaves
 * through out->mem's guard. */
void report_html(const char *title, const struct report_graph *graph, uint32_t n, struct buf *out);

/* The trace event format: one process a run, one thread a stream, complete events in us,
 * the memory as a counter. */
void report_trace(const struct report_graph *graph, uint32_t n, struct buf *out);

#endif
