/* The time of an order.
 *
 * S0: one host thread issues the ops in order. Compute runs on one stream; each process group has a
 * channel of its own, on which its collectives run one after the other. A wait stops the compute
 * stream until its collectives are done. Times are whole picoseconds, so the result is the same on
 * every machine and rank.
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
    const int64_t *ps; /* by op: its time; NULL means the problem's own */
    int64_t launch_ps; /* host time per op */
};

struct sim_result {
    int64_t makespan, compute, comm, launch, exposed;
    int64_t tail; /* the part of `exposed` after the last op: collectives without a wait */
};

/* When an op ran, and how long the compute stream stalled for it. */
struct sim_span {
    int64_t start, end;
    int64_t issued; /* when the host reached it; a collective may start later, after others */
    int64_t
        /* for a collective: how long the compute stream stalled while this one occupied its
         * channel */
        exposed;
    int64_t stood; /* for a wait or a synchronous collective: how long the compute stream stalled */
    uint32_t held; /* for a collective: a later one that the stream stalled for, or PROBLEM_NONE */
};

/* The compute stream stalled from `since` until `last`, a collective it waits for, ended.
 * Charges each moment to the collective at the head of the channel: first those before `last`,
 * each until its end. before: by op, the previous collective on its channel. The charges add up
 * to the stall. */
void sim_charge(struct sim_span *span, const uint32_t *before, uint32_t last, int64_t since);

/* What a run without spans reads: one word per op. For a kernel it is the time including launch, so
 * a run of kernels is a sum; for a collective or a wait the sign bit is set, and the rest is an
 * index into `event`. */
struct sim_event {
    int64_t ps;
    uint32_t kind; /* see the enum in one_rank.c */
    uint32_t a,
        /* for a collective: its channel and its index in `ended`; for a wait: its range in
         * `ends` */
        b;
};

struct sim {
    const struct problem *p;
    struct sim_options o;
    int64_t *ps;      /* by op */
    int64_t *end;     /* by op that is a collective */
    int64_t *channel; /* by group; the last entry is for collectives without a group */
    uint32_t *before; /* by op: the previous collective on its channel; with spans only */
    uint32_t *latest; /* by group: the last collective on its channel */
    /* For runs without spans: */
    int64_t *word; /* by op */
    struct sim_event *event;
    int64_t *ended;        /* by collective, in the order of the problem */
    uint32_t *ends;        /* by wait and collective: an index into `ended` */
    int64_t compute, comm; /* the same for every order */
};

/* Allocates arrays in the arena for running orders of p one after the other. */
void sim_init(struct sim *s, const struct problem *p, const struct sim_options *o, struct arena *a);
/* order: NULL means the order of the ops. span: by op, or NULL. */
void sim_run(struct sim *s, const uint32_t *order, struct sim_result *out, struct sim_span *span);

/* Bytes of messages times the time from issue to wait: what an order holds in flight. Messages of
 * unknown size do not count. */
double sim_held(const struct problem *p, const struct sim_span *span);

#endif
