/* Used by a running pass to talk to the runner. */
#ifndef TUCK_SCHEDULE_STEP_H
#define TUCK_SCHEDULE_STEP_H

#include "schedule/schedule.h"

/* The report of the running pass. */
static inline struct schedule_report *step_report(struct schedule *s)
{
    return &s->report.at[s->report.len - 1];
}

/* Adds a remark to the report. */
static inline void step_note(struct schedule *s, const char *note)
{
    step_report(s)->note = note;
}

#endif
