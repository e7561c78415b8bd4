/* Values of symbols, as callers give them and as the graph's strings have
 * them; and options of costs. */
#ifndef TUCK_STUDY_SYMBOL_HINTS_H
#define TUCK_STUDY_SYMBOL_HINTS_H

#include "cost/kernel_cost.h"
#include "graph/graph.h"

struct hints {
    tuck_graph *g;
    const tuck_run_options *run;
    struct fx_hint *at; /* run->n_hints of them */
};

/* g and run are set; at is filled. */
TUCK_MUST_CHECK tuck_status hints_intern(struct hints *h);
void hints_free(struct hints *h);

/* NULL: the defaults. TUCK_EINVAL: there is no size in it. */
TUCK_MUST_CHECK tuck_status cost_options_take(struct cost_options *own,
                                              const tuck_cost_options *given);

#endif
