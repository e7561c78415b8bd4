/* The least time per byte of any message of a kind on a group, from one size to another. */
#ifndef TUCK_STUDY_FREE_RATES_H
#define TUCK_STUDY_FREE_RATES_H

#include "cost/best_rate.h"
#include "cost/machine.h"
#include "lower/program.h"

enum { FREE_KINDS = TUCK_SHARD_DIM_ALLTOALL + 1 };

struct free_rates {
    const struct program *p;
    const struct machine *m;
    const struct cost_laws *laws;
    const tuck_graph *g;
    struct arena *a;
    struct rate_table **table; /* by group and kind; NULL: not asked yet */
};

void free_rates_begin(struct free_rates *r, const tuck_graph *g, const struct program *p,
                      const struct machine *m, const struct cost_laws *laws, struct arena *a);

/* Is it an all-reduce on a group with symmetric memory? */
bool free_may_be_one_shot(const struct free_rates *r, uint32_t group, tuck_coll coll);

/* cost_best_rate() on this machine, or by the law of the profile. */
double free_rate(struct free_rates *r, uint32_t group, tuck_coll coll, int64_t from, int64_t to);

#endif
