/* Between a pass and the runner. */
#ifndef TUCK_SCHEDULE_PASS_H
#define TUCK_SCHEDULE_PASS_H

#include "schedule/schedule.h"

/* The report of the pass that is running. */
static inline struct schedule_report *pass_report(struct schedule *s)
{
    return &s->report.at[s->report.len - 1];
}

/* The statistics so far, for a pass that adds them one by one, are its own business; this one keeps a
 * remark for the reader. */
static inline void pass_note(struct schedule *s, const char *note)
{
    pass_report(s)->note = note;
}

#endif
