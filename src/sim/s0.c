#include "sim/sim.h"

void sim_init(struct sim *s, const struct problem *p, const struct sim_options *o, struct arena *a)
{
    *s = (struct sim){.p = p, .o = o ? *o : (struct sim_options){.ps = NULL}};
    s->ps = arena_array(a, int64_t, p->n_op);
    s->end = arena_array(a, int64_t, p->n_op);
    s->channel = arena_array(a, int64_t, (size_t)p->n_group + 1);
    for (uint32_t i = 0; i < p->n_op; i++)
        s->ps[i] = s->o.ps ? s->o.ps[i] : problem_ps(p, i);
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The collective that a wait stands still for: the one that ends last. */
static uint32_t last_of(const struct sim *s, uint32_t wait)
{
    const struct problem *p = s->p;
    uint32_t last = PROBLEM_NONE;

    for (uint32_t i = p->wait_at[wait]; i < p->wait_at[wait + 1]; i++)
        if (last == PROBLEM_NONE || s->end[p->wait[i]] > s->end[last])
            last = p->wait[i];
    return last;
}

void sim_run(struct sim *s, const uint32_t *order, struct sim_result *out, struct sim_span *span)
{
    const struct problem *p = s->p;
    struct sim_result r = {.makespan = 0};
    int64_t clk = 0;
    uint32_t latest = PROBLEM_NONE; /* collective that ends last */

    memset(s->channel, 0, ((size_t)p->n_group + 1) * sizeof(*s->channel));
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;
        int64_t d = s->ps[op], start;

        clk += s->o.launch_ps;
        int64_t issued = start = clk;
        if (p->kind[op] == PROBLEM_COLLECTIVE) {
            int64_t *ch = &s->channel[p->group[op] == PROBLEM_NONE ? p->n_group : p->group[op]];
            start = max64(clk, *ch);
            *ch = s->end[op] = start + d;
            r.comm += d;
            if (latest == PROBLEM_NONE || s->end[op] > s->end[latest])
                latest = op;
            int64_t stood = p->flags[op] & PROBLEM_ASYNC ? 0 : s->end[op] - clk;
            r.exposed += stood;
            clk += stood;
            if (span != NULL)
                span[op] = (struct sim_span){start, s->end[op], issued, stood, stood};
        } else if (p->kind[op] == PROBLEM_WAIT) {
            uint32_t c = last_of(s, op);
            int64_t stood = c != PROBLEM_NONE ? max64(0, s->end[c] - clk) : 0;
            r.exposed += stood;
            clk += stood;
            if (span != NULL) {
                span[op] = (struct sim_span){start, clk, issued, 0, stood};
                if (stood > 0)
                    span[c].exposed += stood;
            }
        } else {
            r.compute += d;
            clk += d;
            if (span != NULL)
                span[op] = (struct sim_span){start, clk, issued, 0, 0};
        }
    }
    r.launch = s->o.launch_ps * (int64_t)p->n_op;
    r.makespan = latest != PROBLEM_NONE ? max64(clk, s->end[latest]) : clk;
    r.tail = r.makespan - clk;
    r.exposed += r.tail;
    if (span != NULL && r.tail > 0)
        span[latest].exposed += r.tail;
    *out = r;
}
