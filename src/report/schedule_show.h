/* Prints schedules: tables, JSON, and the order as text showing what overlaps. */
#ifndef TUCK_REPORT_SCHEDULE_SHOW_H
#define TUCK_REPORT_SCHEDULE_SHOW_H

#include "base/buf.h"
#include "schedule/schedule.h"

/* What each pass did, and what happened to each collective and wait. */
void schedule_table(const struct schedule *s, struct buf *out);

/* {"order": […], "peak": …, "stats": {…}, "passes": […]}; if a pass adds dependences, also those of
 * every op afterwards. */
void schedule_json(const struct schedule *s, struct buf *out);

/* visualize_overlap: one line per op, its time on its stream, and what runs meanwhile. */
void schedule_overlap(const struct schedule *s, struct buf *out);

#endif
