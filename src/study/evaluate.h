/* The time and memory of a graph on a machine: lowered, estimated, simulated in its
 * order, and bounded from below.
 *
 * Everything that shows times uses this, so that all of them show the same.
 */
#ifndef TUCK_STUDY_EVALUATE_H
#define TUCK_STUDY_EVALUATE_H

#include "cost/assumed.h"
#include "lower/estimate.h"
#include "lower/gaps.h"
#include "plan/problem.h"
#include "sim/bound.h"

struct evaluate_options {
    const struct machine *machine;
    struct lower_options lower;
    bool no_bounds;       /* times alone: much quicker */
    int64_t memory_limit; /* for the bound by memory; 0: the graph's own peak */
    bool keep_order;      /* no collective may pass another, whatever their groups */
};

struct evaluation {
    uint64_t revision; /* of the graph; see study.h */
    uint32_t refs;
    struct program *program;
    struct problem *problem;
    struct mem mem;
    struct arena arena;
    struct sim_result time; /* picoseconds */
    int64_t slowed;         /* of its compute: what contention added */
    struct sim_span *span;  /* by op */
    bool has_bounds;
    struct bound order;           /* these collectives, any order */
    struct bound any;             /* any order, any bucketing, any algorithm */
    int64_t peak, resident;       /* bytes */
    struct gaps gaps;             /* what is not known */
    struct cost_laws laws;        /* by which collectives that were not measured have their times */
    struct cost_assumed *assumed; /* groups whose size was not given */
    uint32_t n_assumed;
};

void evaluate_defaults(struct evaluate_options *o, const struct machine *m);
/* Types are inferred. TUCK_EINVAL: too many sizes are not known. The evaluation must be
 * ended, also after a failure. */
TUCK_MUST_CHECK tuck_status evaluate_graph(tuck_graph *g, const struct evaluate_options *o,
                                           tuck_diags *diags, struct evaluation *e);
void evaluate_end(struct evaluation *e);
/* The first part of it: the program of g, with the times of its ops unless the machine has no
 * cluster. The laws of the machine's profile are fitted to g. */
TUCK_MUST_CHECK tuck_status evaluate_lower(tuck_graph *g, const struct lower_options *o,
                                           struct machine *m, tuck_diags *diags,
                                           struct program **out);
/* Fill in the bounds of an evaluation that was made without them. */
TUCK_MUST_CHECK tuck_status evaluate_bounds(const tuck_graph *g, const struct evaluate_options *o,
                                            struct evaluation *e);
/* Part of it: fills e->any. Leaves through e->mem's guard. */
void evaluate_free_bound(const tuck_graph *g, const struct machine *m, struct evaluation *e);

bool evaluation_communicates(const struct evaluation *e); /* has it collectives? */
/* What the bound means for this step, for people. */
const char *evaluation_meaning(const struct evaluation *e);
/* Is the bound one? Not where times are unknown: the rest alone says nothing. */
static inline bool evaluation_is_bounded(const struct evaluation *e)
{
    return e->gaps.n_unknown == 0;
}

/* How much longer than the bound: 0.25 for a quarter. */
double evaluation_gap(const struct evaluation *e);

/* Why a graph may have none, and what to do: two lines more, indented. */
extern const char evaluation_no_collectives[];

/* {"schema": 1, "step_ns": …, "collectives": […]}, and with `timeline` every op with its times. */
void evaluation_json(const struct evaluation *e, bool timeline, struct buf *out);
/* The same for people; n: rows of collectives, the most exposed first. */
void evaluation_table(const struct evaluation *e, uint32_t n, bool timeline, struct buf *out);
/* A row for each op: when it began and ended, on which stream. */
void evaluation_timeline(const struct evaluation *e, const struct sim_span *span, struct buf *out);

#endif
