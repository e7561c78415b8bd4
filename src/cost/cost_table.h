/* Measured times of one collective on one kind of group, and a law fitted to them. */
#ifndef TUCK_COST_COST_TABLE_H
#define TUCK_COST_COST_TABLE_H

#include "base/mem.h"

/* T = a + c sqrt(S) + S/b; us, us per sqrt(byte), bytes per us. No coefficient is negative, so T
 * never decreases. */
struct cost_law {
    double a, c, b;
};

double law_time(const struct cost_law *l, double bytes);

struct cost_point {
    double bytes, us;
};

struct cost_table {
    uint8_t coll;  /* tuck_coll */
    uint8_t where; /* enum cost_where */
    uint8_t algo;  /* tuck_algorithm */
    bool builtin;
    int64_t p;
    uint32_t n;
    const struct cost_point *raw; /* sizes strictly increasing */
    double *smooth;               /* us, non-decreasing: the isotonic regression of raw */
    struct cost_law law;
    uint32_t n_changed;    /* number of points that the regression moved */
    double largest_change; /* by at most this share of their time */
};

/* Fills in smooth[], law, n_changed and largest_change from raw. smooth and scratch must have room
 * for n. */
void table_prepare(struct cost_table *t, uint32_t *scratch);

/* Log-log interpolation between points; outside them the law, scaled to continue from the last
 * point. */
double table_time(const struct cost_table *t, double bytes);

/* The best-fitting law: relative least squares with a, c, 1/b >= 0, on sizes from 64 KiB if there
 * are at least four such points, else on all. */
struct cost_law law_fit(const struct cost_point *at, uint32_t n);

/* A law for p ranks, interpolated between those for p1 < p < p2. */
struct cost_law law_between(const struct cost_law *l1, int64_t p1, const struct cost_law *l2,
                            int64_t p2, int64_t p);

#endif
