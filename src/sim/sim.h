/* The time of an order.
 *
 * S0: one host thread issues the ops in order. Compute runs on one stream; each process group has a
 * channel of its own, on which its collectives run one after the other. A wait stops the compute
 * stream until its collectives are done. Times are whole picoseconds, so every machine and every
 * rank gets the same answer.
 *
 *   compute      clk += d
 *   collective   end = channel = max(clk, channel) + d; a synchronous one then stops clk until end
 *   wait         clk = max(clk, ends of its collectives)
 *
 *   makespan = compute + launch + exposed
 */
#ifndef TUCK_SIM_SIM_H
#define TUCK_SIM_SIM_H

#include "plan/problem.h"

struct sim_options {
    const int64_t *ps; /* by op: its time; NULL: the problem's own */
    int64_t launch_ps; /* of the host, for each op */
};

struct sim_result {
    int64_t makespan, compute, comm, launch, exposed;
    int64_t tail; /* the part of exposed after the last op: collectives without a wait */
};

/* When an op ran, and how long the compute stream stalled for it. */
struct sim_span {
    int64_t start, end;
    int64_t issued; /* when the host reached it: a collective may start later, after others */
    int64_t
        /* of a collective: how long the compute stream stalled while its
         * channel was busy with it */
        exposed;
    int64_t stood; /* of a wait or a synchronous collective: how long the compute stream stalled */
    uint32_t
        held; /* of a collective: a later one that the stream stalled for; PROBLEM_NONE: none */
};

/* The compute stream stalled from `since` until `last` ended, a collective that a wait is for. At
 * each moment of it, what was at the head of the channel is charged: those before `last` first,
 * each until its end. before: by op, the collective that came before it on its channel. The
 * charges add up to the stall. */
void sim_charge(struct sim_span *span, const uint32_t *before, uint32_t last, int64_t since);

/* What a run without spans reads: a word an op. A kernel is its time, launch
 * included, so that a run of kernels is a sum; a collective or a wait has its sign
 * bit set, and is a place in `event`. */
struct sim_event {
    int64_t ps;
    uint32_t kind; /* of enum in s0.c */
    uint32_t a,
        /* a collective: its channel, its place in `ended`; a wait: the places of
         * what it ends, in `ends` */
        b;
};

struct sim {
    const struct problem *p;
    struct sim_options o;
    int64_t *ps;      /* by op */
    int64_t *end;     /* by op: of collectives */
    int64_t *channel; /* by group; the last one is for collectives without a group */
    uint32_t *before; /* by op: the collective before it on its channel, with spans only */
    uint32_t *latest; /* by group: the last collective on its channel */
    /* Without spans: */
    int64_t *word; /* by op */
    struct sim_event *event;
    int64_t *ended;        /* by collective, in the order of the problem */
    uint32_t *ends;        /* by wait and collective: a place in `ended` */
    int64_t compute, comm; /* whatever the order is */
};

/* Arrays for running orders of p one after the other, in the arena; cheap to use again. */
void sim_init(struct sim *s, const struct problem *p, const struct sim_options *o, struct arena *a);
/* order: NULL = as the ops are. span: by op, or NULL. */
void sim_run(struct sim *s, const uint32_t *order, struct sim_result *out, struct sim_span *span);

#endif
