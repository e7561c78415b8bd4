/* The machine that a caller names for one graph, as the rooms below want it. */
#ifndef TUCK_API_ON_MACHINE_H
#define TUCK_API_ON_MACHINE_H

#include "cost/machine.h"
#include "study/symbol_hints.h"

struct on_machine {
    struct machine machine;
    struct hints hints;
    tuck_run_options run; /* holds the caller's hints */
    tuck_cluster *made;   /* the default; NULL: the caller has one, or no times are wanted */
};

/* Without a cluster, tuck_cluster_for_graph(), for which the types of g must be known. It must be
 * ended, also after a failure. */
TUCK_MUST_CHECK tuck_status on_machine_begin(struct on_machine *x, tuck_graph *g,
                                             const tuck_cluster *cluster,
                                             const tuck_cost_options *cost, const tuck_hint *hints,
                                             size_t n_hints, tuck_diags *diags);
void on_machine_end(struct on_machine *x);

#endif
