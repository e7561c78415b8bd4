/* Schedules for readers: tables, JSON, and the order as text with what runs under what. */
#ifndef TUCK_REPORT_SCHEDULE_SHOW_H
#define TUCK_REPORT_SCHEDULE_SHOW_H

#include "base/buf.h"
#include "schedule/schedule.h"

/* What each pass did, and what became of each collective and wait. */
void schedule_table(const struct schedule *s, struct buf *out);

/* {"order": […], "peak": …, "stats": {…}, "passes": […]}; where a pass adds dependences, also
 * those of every op after it. */
void schedule_json(const struct schedule *s, struct buf *out);

/* visualize_overlap: one line an op, its time on the stream it runs on, and what
 * is under way meanwhile. */
void schedule_overlap(const struct schedule *s, struct buf *out);

#endif
