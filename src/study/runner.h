/* Runs the steps of a pipeline, each of them whole or not at all: a pass works on a clone, which is
 * linted and then becomes the caller's graph. */
#ifndef TUCK_STUDY_RUNNER_H
#define TUCK_STUDY_RUNNER_H

#include "pass/pass.h"
#include "study/study.h"

/* Progress: called before (after = false) and after each step; false ends the run, TUCK_EIO. */
struct observer {
    bool (*fn)(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g);
    void *ctx;
};

static inline bool observe(const struct observer *o, const char *pass, size_t step, bool after,
                           const tuck_graph *g)
{
    return o->fn == NULL || o->fn(o->ctx, pass, step, after, g);
}

struct runner {
    struct study *study; /* the machine, and what is known of graphs on it */
    struct observer observer;
};

/* One step. Where it fails g is as it was; its row is in the report all the same. */
TUCK_MUST_CHECK tuck_status runner_step(const struct runner *r, const struct pipeline_step *what,
                                        tuck_graph *g, struct tuck_report *report,
                                        tuck_diags *diags);

/* Errors that a graph has before the first step are its own, and are reported as such: nothing
 * is run then. TUCK_ELINT. */
TUCK_MUST_CHECK tuck_status runner_check_input(const tuck_graph *g, tuck_diags *diags);

/* The steps of p, one after the other, where the graph has no errors of its own. Where one fails, g
 * is what the steps before it made of it, and the report ends there. */
TUCK_MUST_CHECK tuck_status pipeline_run(const struct pipeline *p, tuck_graph *g,
                                         const struct runner *r, struct tuck_report *report,
                                         tuck_diags *diags);

#endif
