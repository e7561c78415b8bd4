/* What the files of tuck optimize share. */
#ifndef TUCK_CLI_OPTIMIZING_H
#define TUCK_CLI_OPTIMIZING_H

#include "cli/dump.h"
#include "cli/picture.h"

struct optimize {
    struct input in;
    struct model model;
    struct picture picture;
    struct dump dump;
    const char *passes, *file, *out, *report;
    const char *decision, *apply; /* files to write and to read */
    tuck_decision *made, *given;
    tuck_graph *kept; /* of a job: the step before, which pictures still need */
    tuck_print_form form;
    bool no_times, stats, memory_given;
    bool is_part;                /* of a step that communicates */
    int64_t memory, memory_more; /* --memory: see tuck_run_options */
    double memory_share;
    int64_t effort; /* -1: the default */
    int64_t verify; /* ranks to run the result on; 0: it is not run */
    int64_t tries;  /* 0: no limit */
    double bandwidth;
    const char **more; /* files after the first: one rank each */
    size_t n_more;
    char *text; /* the pipeline: keys first, then passes */
    size_t len, cap;
};

/* The graph before and after; NULL if it cannot be simulated, or was not requested. */
struct both {
    tuck_simulation *s[2];
};

/* Runs the pipeline, a decision, or Tuck's own passes on graph i. Returns an exit code. */
int optimize_run(struct optimize *o, const tuck_pipeline *p, size_t i, struct both *both,
                 tuck_report **report);
int optimize_write_reports(const struct optimize *o, tuck_report *const *t, size_t from, size_t n);

/* ---- optimize_verify.c: runs the graph as it was and as it is on real ranks, and prints what
 * differs ---- */
int optimize_verify(struct optimize *o, size_t i, tuck_graph *before);

/* ---- optimize_job.c: a job's graphs, one by one; the step before and after ---- */

int optimize_job_check(const struct optimize *o); /* options that are for one graph */
int optimize_job(struct optimize *o, const tuck_pipeline *p);
int optimize_job_write(struct optimize *o); /* a folder of results */

#endif
