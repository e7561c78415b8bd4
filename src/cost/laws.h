/* What a profile's collectives say about those that were not measured: for each kind and group a
 * law through the measured points. A merged collective has another size than any that was measured,
 * and its time must not come from a model when theirs came from a clock. */
#ifndef TUCK_COST_LAWS_H
#define TUCK_COST_LAWS_H

#include "cost/cost_table.h"
#include "graph/symbol_values.h"

enum { LAWS_MOST = 32, LAWS_NAME = 64 };

struct cost_fit {
    uint8_t coll;          /* tuck_coll */
    char group[LAWS_NAME]; /* its name; longer ones have no law */
    uint32_t n;            /* points of different sizes */
    struct cost_law law;   /* of two sizes or more */
    double factor;         /* of one size: measured over modelled; 0: there is a law */
    double residual;       /* the largest |law / measured - 1| */
};

/* By value, so that copies of options have them. */
struct cost_laws {
    uint32_t n;
    struct cost_fit at[LAWS_MOST];
};

struct machine;

/* Fit the laws of m's profile to the collectives of g, unless there are some
 * already. Types are inferred. */
TUCK_MUST_CHECK tuck_status laws_fit(struct machine *m, const tuck_graph *g);
/* NULL: nothing like it was measured. */
const struct cost_fit *laws_find(const struct cost_laws *l, int coll, const char *group);
/* us; modelled: what the model says of that size. */
double fit_us(const struct cost_fit *f, double bytes, double modelled);

#endif
