/* Passes on schedules, on a graph: it is lowered and estimated, the pass orders its ops, the graph gets the order. */
#ifndef TUCK_PIPELINE_SCHEDULE_GRAPH_H
#define TUCK_PIPELINE_SCHEDULE_GRAPH_H

#include "lower/estimate.h"
#include "pass/pass.h"

struct schedule_graph {
    const tuck_cluster *cluster;
    struct cost_options cost;
    struct lower_options lower;
    bool torch; /* as --compat torch has it: clones are kept */
};

/* For runner_options.on_schedule; ctx is a struct schedule_graph. */
tuck_status schedule_graph_step(void *ctx, struct pass_run *r, const struct pipeline_step *step);

#endif
