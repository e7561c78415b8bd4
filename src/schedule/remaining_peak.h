/* The remaining ops, in an order that is known to fit, and how running one of them out of turn
 * changes the peak. Every step takes O(log n). */
#ifndef TUCK_SCHEDULE_REMAINING_PEAK_H
#define TUCK_SCHEDULE_REMAINING_PEAK_H

#include "plan/problem.h"

struct rest;

/* All ops in `order`; the peak may grow by this share. */
struct rest *rest_begin(const struct problem *p, const uint32_t *order, double budget,
                        struct arena *a);

/* All of them are there again. */
void rest_restart(struct rest *r);

/* Runs x now and the others after it in their order. False: too much memory; then nothing changes.
 * The first remaining op is never too much. */
bool rest_take(struct rest *r, uint32_t x);

/* The next op of the order; PROBLEM_NONE if all are done. */
uint32_t rest_first(const struct rest *r);

#endif
