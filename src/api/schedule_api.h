/* Problems as the public interface hands them out. */
#ifndef TUCK_API_SCHEDULE_API_H
#define TUCK_API_SCHEDULE_API_H

#include "plan/problem.h"

/* Takes p, also on failure. */
TUCK_MUST_CHECK tuck_status problem_wrap(struct problem *p, tuck_problem **out);

#endif
