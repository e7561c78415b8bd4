/* Problems of the public interface. */
#ifndef TUCK_API_SCHEDULE_API_H
#define TUCK_API_SCHEDULE_API_H

#include "plan/problem.h"
#include "tuck_experimental.h"

struct tuck_problem {
    const struct problem *p;
    struct problem *own; /* the same if owned; NULL if owned elsewhere */
};

/* A problem owned elsewhere, for a caller to read. */
static inline tuck_problem problem_shown(const struct problem *p)
{
    return (tuck_problem){.p = p};
}

/* Takes ownership of p, also on failure. */
TUCK_MUST_CHECK tuck_status problem_wrap(struct problem *p, tuck_problem **out);

#endif
