/* The ops that are still to come, in an order that is known to fit, and what taking one of them out
 * of turn does to its peak. Every step costs the logarithm of the number of ops. */
#ifndef TUCK_SCHEDULE_REMAINING_PEAK_H
#define TUCK_SCHEDULE_REMAINING_PEAK_H

#include "plan/problem.h"

struct rest;

/* All ops in `order`; the peak may grow by this share. */
struct rest *rest_begin(const struct problem *p, const uint32_t *order, double budget,
                        struct arena *a);

/* Run x now and the others after it in their order. False: too much memory; nothing has changed
 * then. The first of them is never too much. */
bool rest_take(struct rest *r, uint32_t x);

/* The op whose turn it is; PROBLEM_NONE: all are done. */
uint32_t rest_first(const struct rest *r);

#endif
