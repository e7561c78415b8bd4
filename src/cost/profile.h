/* Measured times of nodes; other functions are public. */
#ifndef TUCK_COST_PROFILE_H
#define TUCK_COST_PROFILE_H

#include "tuck_experimental.h"

/* Names and their times, for i below profile_end(); ns < 0 if none. */
uint32_t profile_end(const tuck_profile *p);
const char *profile_at(const tuck_profile *p, uint32_t i, double *ns);

bool profile_find(const tuck_profile *p, const char *name, size_t len, double *ns);

#endif
