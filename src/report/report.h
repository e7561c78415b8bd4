/* Pictures of a step: an HTML page, and a trace for Perfetto. */
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
    /* Of a measured step its time as annotated; time.makespan is from the first to the last of what
     * is drawn. 0: it is simulated. */
    int64_t measured_ps;
    int64_t others_ps; /* how long its transfers waited for other ranks */
    const char *bound_says;
    const struct cost_assumed *assumed; /* groups whose size was assumed */
    uint32_t n_assumed;
    const char *const *limit; /* by op: what limits a collective; NULL if unknown */
    const uint32_t *limit_op; /* by op: the op that limits it, or PROGRAM_NONE; may be NULL */
    /* by op: the row that it is drawn in; NULL: one row for compute and one for each group */
    const uint32_t *lane;
    const char *const *lane_name;
    uint32_t n_lane;
};

/* One graph of a file, alone or before and after; or all ranks of a step. */
struct report_graph {
    const char *title; /* "" if there is only one */
    const char *where; /* the machine */
    const struct report_run *run;
    uint32_t n_run;
    bool ranks; /* runs are ranks */
};

/* A self-contained page with all graphs of a file. When memory runs out, jumps to out->mem's
 * guard. */
void report_html(const char *title, const struct report_graph *graph, uint32_t n, struct buf *out);

/* The trace event format: one process per run, one thread per stream, complete events in us, memory
 * as a counter. */
void report_trace(const struct report_graph *graph, uint32_t n, struct buf *out);

#endif
