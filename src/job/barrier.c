#include "job/barrier.h"

#include <string.h>

static int log2_up(int64_t p)
{
    int k = 0;

    while ((INT64_C(1) << k) < p && k < 62)
        k++;
    return k;
}

/* Rings, a reduce-scatter by an all-reduce; a barrier in which distances double. */
int64_t message_rounds(tuck_coll kind, int64_t p)
{
    switch (kind) {
    case TUCK_ALL_REDUCE:
    case TUCK_REDUCE_SCATTER: return 2 * (p - 1);
    case TUCK_ALL_GATHER:
    case TUCK_ALL_TO_ALL: return p - 1;
    case TUCK_P2P: return 1;
    default: return log2_up(p); /* broadcast, barrier */
    }
}

static bool is_barrier(const struct trace_part *p, const struct trace_coll *c,
                       struct tie_steps steps)
{
    return c->step != TRACE_NONE && step_is_used(steps, p->step.at[c->step].number) &&
           strstr(trace_str(p->t, c->name), "barrier") != NULL;
}

double barrier_round_us(const struct trace_part *p, struct tie_steps steps, int64_t size)
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = &p->coll.at[i];
        if (c->p != size || !is_barrier(p, c, steps))
            continue;
        sum += (double)c->transfer / PS_PER_US;
        n++;
    }
    return n > 0 ? sum / n / (double)message_rounds(TUCK_OTHER_COLLECTIVE, size) : 0;
}

double barrier_call_ps(const struct trace_part *p, struct tie_steps steps)
{
    double sum = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = &p->coll.at[i];
        if (p->device || c->call == TRACE_NONE || !is_barrier(p, c, steps))
            continue;
        sum += (double)p->t->cpu.at[c->call].dur;
        n++;
    }
    return n > 0 ? sum / n : 0;
}
