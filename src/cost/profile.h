/* Measured times of nodes; other functions are public. */
#ifndef TUCK_COST_PROFILE_H
#define TUCK_COST_PROFILE_H

#include "tuck_experimental.h"

bool profile_find(const tuck_profile *p, const char *name, size_t len, int64_t *ps);

#endif
