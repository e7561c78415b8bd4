/* The machine for which times and sizes are computed. Made once, from the command line or from the
 * public tuck_machine, and passed down by pointer: everything that lowers, estimates, simulates or
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
    bool contention;  /* links are shared, and kernels run slower while collectives run */
    bool strict;      /* anything unknown is an error: nothing is assumed */
    const char *const *symm_group; /* groups with symmetric memory; "*" means all */
    size_t n_symm_group;
};

/* All options at their defaults, on this cluster. */
void machine_init(struct machine *m, const tuck_cluster *c);

/* Has a group symmetric memory, so that an all-reduce may be one-shot? */
bool machine_has_symm_mem(const struct machine *m, const char *group);
/* Is it in a list of names, or everything: "*"? */
bool group_is_listed(const char *const *list, size_t n, const char *group);

/* The values of symbols for graphs of a store. */
struct assume machine_symbols(const struct machine *m, struct fx_store *store);

#endif
