/* What the host does besides its ops: calls of collectives, and waits for other ranks. */
#ifndef TUCK_JOB_TIE_HOST_H
#define TUCK_JOB_TIE_HOST_H

#include "job/tie_runs.h"

/* Between ops, of a run with the collectives `ops`; x: the mean of the runs. Calls are part of it:
 * a graph with other collectives than those that ran has other calls, by a law of their sizes. */
int64_t tie_host_time(const struct trace_part *part, struct tie_steps steps, const items *ops,
                      const struct runs *used, const struct trace_figures *x, struct arena *a);

/* In waits for other ranks, of a run of the program. */
int64_t tie_waiting(const struct program *p, const struct runs *used, const struct beside *beside);

#endif
