/* The fastest of all orders of a problem, by trying them: shares nothing with the library but the
 * problem. */
#ifndef TUCK_TESTS_EVERY_ORDER_H
#define TUCK_TESTS_EVERY_ORDER_H

#include "support/problems.h"

enum { EVERY_MOST = 20 };

/* The time of the fastest order whose peak is within the limit, if it is less than `beat`; else
 * `beat`. */
int64_t every_order(const struct problem *p, int64_t limit, int64_t beat);

#endif
