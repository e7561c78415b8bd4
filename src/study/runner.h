/* Runs the steps of a pipeline. Each step takes effect completely or not at all: a pass works on a
 * clone, which is linted and then replaces the caller's graph. */
#ifndef TUCK_STUDY_RUNNER_H
#define TUCK_STUDY_RUNNER_H

#include "pass/pass.h"
#include "study/study.h"

/* Progress: called before (after = false) and after each step; returning false ends the run with
 * TUCK_EIO. */
struct observer {
    bool (*fn)(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);
    void *ctx;
};

static inline bool observe(const struct observer *o, const char *pass, size_t step, bool after,
                           const tuck_graph *g)
{
    return o->fn == NULL || o->fn(o->ctx, pass, step, after, g);
}

/* CPU time of this thread: wall-clock time would include other processes. */
double runner_cpu_ms(void);

struct runner {
    struct study *study; /* the machine, and evaluations of graphs on it */
    struct observer observer;
    bool judge_later; /* stages are judged only if somebody asks: see stage_judge() */
};

/* Runs one step. If it fails, g is unchanged; its row is in the report even then. */
TUCK_MUST_CHECK tuck_status runner_step(const struct runner *r, const struct pipeline_step *what,
                                        tuck_graph *g, struct tuck_report *report,
                                        tuck_diags *diags);

/* The same, but g stays as it is. *out is the result, to be freed; NULL: nothing was changed. */
TUCK_MUST_CHECK tuck_status runner_make(const struct runner *r, const struct pipeline_step *what,
                                        tuck_graph *g, struct tuck_report *report,
                                        tuck_diags *diags, tuck_graph **out);

/* Errors that the graph has before the first step are reported as its own, and nothing is run.
 * TUCK_ELINT. */
TUCK_MUST_CHECK tuck_status runner_check_input(const tuck_graph *g, tuck_diags *diags);

/* Runs the steps of p one after the other, provided that the graph has no errors of its own. If one
 * fails, g is the result of the steps before it, and the report ends there. */
TUCK_MUST_CHECK tuck_status pipeline_run(const struct pipeline *p, tuck_graph *g,
                                         const struct runner *r, struct tuck_report *report,
                                         tuck_diags *diags);

#endif
