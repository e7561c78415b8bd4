/* Local search over orders: small changes, each priced exactly (search/priced.h), guided by what
 * the step waits for. The result depends on the problem, the order and the options alone. */
#ifndef TUCK_SEARCH_IMPROVE_H
#define TUCK_SEARCH_IMPROVE_H

#include "plan/problem.h"

/* Which op must come after which, by op and in both directions; lists as in a problem. */
struct improve_edges {
    const uint32_t *need_at, *need;
    const uint32_t *user_at, *user;
};

struct improve_options {
    const int64_t *ps; /* [op] times; NULL: the problem's own */
    int64_t launch_ps;
    int64_t limit;       /* for the peak in bytes; no order beyond it is taken */
    int64_t evaluations; /* how many changes may be priced */
    uint64_t seed;
    uint32_t islands; /* searches that know nothing of each other and share the evaluations */
    uint32_t threads; /* at most; 0: one for each core. The result does not depend on it */
    uint32_t windows; /* labels for the exact search around what the step waits for; 0: none */
};

struct improve_result {
    int64_t step_before, step; /* picoseconds */
    int64_t least;             /* no order is faster than this */
    int64_t evaluations, taken;
    uint32_t windows; /* that the exact search arranged better */
};

/* Improves an order that respects the edges, and in which the ops of one node are adjacent. If it
 * needs more than the limit, one that does not is looked for first; if none is found, `step` is
 * INT64_MAX. */
void improve(const struct problem *p, const struct improve_edges *e,
             const struct improve_options *o, uint32_t *order, struct arena *a,
             struct improve_result *out);

#endif
