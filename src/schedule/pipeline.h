/* Lists of passes as text: "sink_waits_iterative(sink_iterative_peak_memory_budget=0.1),raise_comms". */
#ifndef TUCK_SCHEDULE_PIPELINE_H
#define TUCK_SCHEDULE_PIPELINE_H

#include "schedule/schedule.h"

/* Run them one after the other on s; options in parentheses hold for that pass only. TUCK_EINVAL: `why` says
 * what is wrong with the text, and nothing was run. */
TUCK_MUST_CHECK tuck_status pipeline_run(struct schedule *s, const char *text, char why[256]);

#endif
