/* The fastest arrangement of a few ops, by search over sets of them: of a whole small problem, or
 * of a window of a large one.
 *
 * What is live depends on the set of ops that ran, and the time of what follows only on a few
 * numbers: the clock, the end of each channel, the ends of collectives that are still waited for.
 * Of two ways to run the same set, one that is later in none of them makes the other superfluous.
 * What comes before the window is fixed, and what follows it is a maximum (search/priced.h).
 */
#ifndef TUCK_SEARCH_EXACT_H
#define TUCK_SEARCH_EXACT_H

#include "search/improve.h"

enum { EXACT_MOST_OPS = 16 };

struct priced;

enum exact_outcome {
    EXACT_OPEN,   /* too many ops, or too many ways to run them */
    EXACT_BEST,   /* no order is faster than the one that was given */
    EXACT_FASTER, /* there is one: the fastest was put in its place */
};

/* The same arguments as improve(); `step` is the time of the order, and becomes that of the new
 * one. INT64_MAX: the order needs too much memory. */
enum exact_outcome exact_order(const struct problem *p, const struct improve_edges *e,
                               const struct improve_options *o, uint32_t *order, int64_t *step,
                               struct arena *a);

/* What is left, and becomes less. */
struct exact_budget {
    uint32_t labels;      /* ways to run a set of ops */
    uint32_t comparisons; /* of two of them */
};

/* The positions [from, to), which must not cut a node, in the arrangement with the shortest step
 * within the limit. EXACT_FASTER: it is shorter than `beat`, and is in `ops`. */
enum exact_outcome exact_window(struct priced *s, const struct improve_edges *e, int64_t limit,
                                uint32_t from, uint32_t to, int64_t beat,
                                struct exact_budget *budget, uint32_t *ops, struct arena *a);

/* Arranges the windows around what the step waits for, the longest wait first, each in the best
 * way, until none gets better or `labels` are spent. The order must be within the limit. Returns
 * how many changed. */
uint32_t exact_windows(struct priced *s, const struct improve_edges *e, int64_t limit,
                       struct exact_budget *budget, struct arena *a);

#endif
