/* What nodes take by measurement; the public functions do the rest. */
#ifndef TUCK_COST_PROFILE_H
#define TUCK_COST_PROFILE_H

#include "tuck.h"

bool profile_find(const tuck_profile *p, const char *name, size_t len, double *ns);

#endif
