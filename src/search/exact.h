/* The fastest order of a small problem, by search over sets of ops.
 *
 * What is live depends on the set of ops that ran, and the time of what follows only on a few
 * numbers: the clock, the end of each channel, the ends of collectives that are still waited for.
 * Of two ways to run the same set, one that is later in none of them makes the other superfluous.
 */
#ifndef TUCK_SEARCH_EXACT_H
#define TUCK_SEARCH_EXACT_H

#include "search/improve.h"

enum { EXACT_MOST_OPS = 16 };

enum exact_outcome {
    EXACT_OPEN,   /* too many ops, or too many ways to run them */
    EXACT_BEST,   /* no order is faster than the one that was given */
    EXACT_FASTER, /* there is one: the fastest was put in its place */
};

/* The same arguments as improve(); `step` is the time of the order, and becomes that of the new
 * one. */
enum exact_outcome exact_order(const struct problem *p, const struct improve_edges *e,
                               const struct improve_options *o, uint32_t *order, int64_t *step,
                               struct arena *a);

#endif
