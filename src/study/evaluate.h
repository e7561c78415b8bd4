/* The time and memory of a graph on a machine: the graph is lowered, estimated, simulated in its
 * order, and given lower bounds.
 *
 * Everything that shows times uses this, so that all figures agree.
 */
#ifndef TUCK_STUDY_EVALUATE_H
#define TUCK_STUDY_EVALUATE_H

#include "cost/assumed.h"
#include "lower/estimate.h"
#include "lower/gaps.h"
#include "plan/problem.h"
#include "sim/bound.h"

struct study;

struct evaluate_options {
    const struct machine *machine;
    struct lower_options lower;
    bool no_bounds;       /* skip the lower bounds: much quicker */
    int64_t memory_limit; /* for the bound by memory; 0 means the graph's own peak */
    bool keep_order;      /* no collective may pass another, even of another group */
    bool keep_groups;     /* no collective may pass another of its group */
};

struct evaluation {
    /* For the study that made it (study.h): */
    uint64_t revision; /* of the graph */
    uint32_t refs;
    struct study *study; /* NULL if there is none, or it has ended */
    struct evaluation *next;
    struct program *program;
    struct problem *problem;
    struct mem mem;
    struct arena arena;
    struct sim_result time;     /* picoseconds */
    int64_t slowed;             /* compute time added by contention */
    struct sim_span *span;      /* by op */
    bool has_bounds, has_order; /* has_order: `order` too */
    struct bound order;         /* these collectives, any order */
    struct bound any;           /* any order, any bucketing, any algorithm */
    int64_t peak, resident;     /* bytes */
    double flight;              /* what is in flight, and for how long: sim_held() */
    struct gaps gaps;           /* ops with unknown times or sizes */
    /* fits of the cost model, for collectives that were not measured */
    struct cost_laws laws;
    struct cost_assumed *assumed; /* groups whose size was assumed */
    uint32_t n_assumed;
};

void evaluate_defaults(struct evaluate_options *o, const struct machine *m);
/* Infers types. TUCK_EINVAL: too many sizes are unknown. The evaluation must be ended, also after a
 * failure. */
TUCK_MUST_CHECK tuck_status evaluate_graph(tuck_graph *g, const struct evaluate_options *o,
                                           tuck_diags *diags, struct evaluation *e);
void evaluate_end(struct evaluation *e);
/* The time of g, whose evaluation is e, if collectives and kernels slow each other down. */
TUCK_MUST_CHECK tuck_status evaluate_contended(const tuck_graph *g,
                                               const struct evaluate_options *o,
                                               struct evaluation *e, int64_t *ps);
/* The first step alone: the program of g, with the times of its ops unless the machine has no
 * cluster. Fits the laws of the machine's profile to g. */
TUCK_MUST_CHECK tuck_status evaluate_lower(tuck_graph *g, const struct lower_options *o,
                                           struct machine *m, tuck_diags *diags,
                                           struct program **out);
/* Fill in the bounds of an evaluation that was made without them. all: if not, e->order is left out
 * unless evaluation_meaning() says something about it. */
TUCK_MUST_CHECK tuck_status evaluate_bounds(const tuck_graph *g, const struct evaluate_options *o,
                                            bool all, struct evaluation *e);
/* One part of evaluate_bounds(): fills e->any. When memory runs out, jumps to e->mem's guard. */
void evaluate_free_bound(const tuck_graph *g, const struct machine *m, struct cost_run *run,
                         struct evaluation *e);

bool evaluation_communicates(const struct evaluation *e); /* has the graph any collectives? */
/* What the bound means for this step, as a sentence. */
const char *evaluation_meaning(const struct evaluation *e);
/* Is the bound valid? Not if times are unknown: the known ones alone say nothing about the step. */
static inline bool evaluation_is_bounded(const struct evaluation *e)
{
    return e->gaps.n_unknown == 0;
}

/* How much longer the step is than the bound: 0.25 means a quarter. */
double evaluation_gap(const struct evaluation *e);

/* Why a graph may have no collectives, and what to do: two more lines, indented. */
extern const char evaluation_no_collectives[];

/* {"schema": 1, "step_ns": …, "collectives": […]}, and with `timeline` every op with its times. */
void evaluation_json(const struct evaluation *e, bool timeline, struct buf *out);
/* The same as a table, with the n most exposed collectives. */
void evaluation_table(const struct evaluation *e, uint32_t n, bool timeline, struct buf *out);
/* Parts of the two: the table of collectives; the lists of collectives and of all ops. */
void evaluation_collectives(const struct evaluation *e, uint32_t n, struct buf *out);
struct json_out;
void evaluation_json_ops(const struct evaluation *e, bool timeline, struct json_out *j);
/* One row per op: its start, end and stream. */
void evaluation_timeline(const struct evaluation *e, const struct sim_span *span, struct buf *out);

#endif
