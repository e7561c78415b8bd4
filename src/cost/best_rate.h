/* The least time per byte of any message in a range of sizes: for bounds that hold for every
 * bucketing. */
#ifndef TUCK_COST_BEST_RATE_H
#define TUCK_COST_BEST_RATE_H

#include "cost/collective_cost.h"

/* Sizes are powers of 2^(1/RATE_FINE); a cell holds RATE_STEP of them. */
enum { RATE_COARSE = 16, RATE_FINE = 512, RATE_OCTAVES = 48 };
enum { RATE_STEP = RATE_FINE / RATE_COARSE, RATE_CELLS = RATE_OCTAVES * RATE_COARSE };

/* For one cluster, shape, kind and choice: what was computed so far. Some 200 KiB. */
struct rate_table {
    const tuck_cluster *c;
    struct cost_shape shape;
    struct cost_choice how;
    tuck_coll coll;
    double part[RATE_FINE + 1];            /* sizes from 1 to 2 */
    double us[RATE_CELLS * RATE_STEP + 1]; /* by size; below 0: not computed yet */
    double least[RATE_CELLS];              /* by cell: its least rate; below 0: not yet */
    int64_t from, to;                      /* what was asked last, and the answer; 0: nothing */
    double rate;
};

void rate_table_begin(struct rate_table *t, const tuck_cluster *c, struct cost_shape s,
                      tuck_coll coll, const struct cost_choice *how);

/* us per byte over all messages of at least `from` and at most `to` bytes; 1 <= from <= to. Never
 * above the true minimum, and at most 0.3 % below it. A choice that the caller's options would
 * force is left to the cost: that is never dearer. */
double cost_best_rate(struct rate_table *t, int64_t from, int64_t to);

#endif
