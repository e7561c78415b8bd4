/* What barriers tell. They move no bytes: their times are what messages of all sizes have. */
#ifndef TUCK_JOB_BARRIER_H
#define TUCK_JOB_BARRIER_H

#include "job/trace_study.h"

/* The steps that costs come from: those whose number leaves `rest` modulo `every`; 0: all. */
struct tie_steps {
    int64_t every, rest;
};

static inline bool step_is_used(struct tie_steps s, int64_t number)
{
    return s.every <= 0 || (number >= 0 && number % s.every == s.rest);
}

/* Messages one after the other in a collective among p ranks, as gloo does them. */
int64_t message_rounds(tuck_coll kind, int64_t p);

/* The latency of a round, from barriers among that many ranks: their time without waits, the mean.
 * 0: there are none. */
double barrier_round_us(const struct trace_part *p, struct tie_steps steps, int64_t size);
/* The host's time to start one, the mean. 0: there are none, or not their calls. */
double barrier_call_ps(const struct trace_part *p, struct tie_steps steps);

#endif
