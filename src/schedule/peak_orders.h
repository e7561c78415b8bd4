/* The orders that reorder_for_peak_memory chooses from. */
#ifndef TUCK_SCHEDULE_PEAK_ORDERS_H
#define TUCK_SCHEDULE_PEAK_ORDERS_H

#include "schedule/schedule.h"

enum peak_method { PEAK_LEAST_FIRST, PEAK_BREADTH_FIRST, PEAK_DEPTH_FIRST };

/* False: dependences contradict each other, so there is no such order. */
bool peak_order(struct schedule *s, enum peak_method method, uint32_t *out);

#endif
