/* Random pipelines of all passes of the table, with random options. */
#ifndef TUCK_TESTS_RANDOM_PLAN_H
#define TUCK_TESTS_RANDOM_PLAN_H

#include "support/support.h"

enum { PLAN_STEPS = 3 };

struct plan { /* a pipeline */
    char step[PLAN_STEPS][900];
    int n;
    bool schedules;  /* it ends with a pass on schedules */
    bool torch;      /* a step behaves like torch, with its slips: only crashes count */
    bool keep_order; /* no collective may pass another */
    bool knows_rank; /* the passes know which rank the graph is for */
    bool twice;      /* everything is run twice */
};

/* `graph` is a text whose nodes options may name; schedules: it ends with a pass on schedules. */
void random_plan(struct rng *rng, const char *graph, bool schedules, struct plan *p);
/* The pipeline as text for --passes; to be freed. */
char *plan_text(const struct plan *p);

#endif
