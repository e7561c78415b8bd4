/* Decimal numbers, the same in every locale: the host program may have set LC_NUMERIC to one that
 * writes 0,5. */
#ifndef TUCK_BASE_NUM_H
#define TUCK_BASE_NUM_H

#include <stdbool.h>
#include <stddef.h>

/* s..s+len is [+-] digits [. digits] [e [+-] digits], all of it: its value, correctly rounded. */
bool num_float(const char *s, size_t len, double *out);

#endif
