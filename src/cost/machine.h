/* The machine that times and sizes are computed for. Made once, from the command line or from
 * the public tuck_machine, and handed down by pointer: all that lowers, prices, simulates or
 * searches uses this one. */
#ifndef TUCK_COST_MACHINE_H
#define TUCK_COST_MACHINE_H

#include "cost/kernel_cost.h"

struct machine {
    const tuck_cluster *cluster;
    struct cost_options cost; /* model of collectives, profile and its laws, a caller's estimates */
    const struct fx_hint *hint; /* values of symbols */
    size_t n_hint;
    double bandwidth; /* link speed factor */
    bool contention;  /* links are shared, and kernels run slower next to collectives */
    bool strict;      /* what is not known is an error: nothing is assumed */
};

/* Every option at its default, on this cluster. */
void machine_init(struct machine *m, const tuck_cluster *c);

/* The values of symbols for graphs of a store. */
struct assume machine_symbols(const struct machine *m, struct fx_store *store);

#endif
