/* How many times as long work takes while something else is under way. */
#ifndef TUCK_JOB_FACTOR_H
#define TUCK_JOB_FACTOR_H

#include "base/arena.h"

struct factor_sample {
    uint64_t what[2]; /* the same work */
    double share;     /* of its time, the other is under way */
    double time;
};

/* The factor for which times alone differ least; 0: nothing says so. Sorts s. used: samples that
 * say something. */
double factor_fit(struct factor_sample *s, uint32_t n, struct arena *a, uint32_t *used);

#endif
