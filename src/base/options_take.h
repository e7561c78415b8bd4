/* Option structs of the public interface: their first member is their size, so that a program
 * compiled with an older header, whose struct is shorter, keeps working. */
#ifndef TUCK_BASE_OPTIONS_TAKE_H
#define TUCK_BASE_OPTIONS_TAKE_H

#include "tuck.h"

/* Copies the caller's options over the defaults in `own`; NULL keeps them. TUCK_EINVAL: the size is
 * not set, and `own` is unchanged. */
TUCK_MUST_CHECK tuck_status options_take(void *own, size_t own_size, const void *given);

#endif
