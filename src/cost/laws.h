/* Predicts collectives that were not measured from a profile's collectives: for each kind and
 * group, a law fitted to the measured points. A merged collective has a size that was not measured,
 * and a modelled time must not be compared with measured ones. */
#ifndef TUCK_COST_LAWS_H
#define TUCK_COST_LAWS_H

#include "cost/cost_table.h"
#include "graph/symbol_values.h"

enum { LAWS_MOST = 32, LAWS_NAME = 64 };

struct cost_fit {
    uint8_t coll;          /* tuck_coll */
    char group[LAWS_NAME]; /* its name; groups with longer names have no law */
    uint32_t n;            /* points of different sizes */
    struct cost_law law;   /* with two or more sizes */
    double factor;         /* with one size: measured over modelled time; 0 if there is a law */
    double residual;       /* the largest |law / measured - 1| */
};

/* Stored by value, so that copies of options include them. */
struct cost_laws {
    uint32_t n;
    struct cost_fit at[LAWS_MOST];
};

struct machine;

/* Fits the laws of m's profile to the collectives of g, unless that was done before. Infers
 * types. */
TUCK_MUST_CHECK tuck_status laws_fit(struct machine *m, const tuck_graph *g);
/* NULL if nothing similar was measured. */
const struct cost_fit *laws_find(const struct cost_laws *l, int coll, const char *group);
/* us; modelled: the model's time for that size. */
double fit_us(const struct cost_fit *f, double bytes, double modelled);

#endif
