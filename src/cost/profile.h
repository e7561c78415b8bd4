/* Measured times of nodes; other functions are public. */
#ifndef TUCK_COST_PROFILE_H
#define TUCK_COST_PROFILE_H

#include "tuck_experimental.h"

/* Collectives that it does not name are the machine's, not those of a law fitted to the others. */
void profile_leave_laws(tuck_profile *p);
bool profile_has_laws(const tuck_profile *p);

bool profile_find(const tuck_profile *p, const char *name, size_t len, int64_t *ps);

#endif
