/* Between a pass that is running and the runner. */
#ifndef TUCK_SCHEDULE_STEP_H
#define TUCK_SCHEDULE_STEP_H

#include "schedule/schedule.h"

/* The report of the pass that is running. */
static inline struct schedule_report *step_report(struct schedule *s)
{
    return &s->report.at[s->report.len - 1];
}

/* A remark for the reader of the report. */
static inline void step_note(struct schedule *s, const char *note)
{
    step_report(s)->note = note;
}

#endif
