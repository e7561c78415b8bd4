/* Internals of the event simulation of several ranks. Whatever takes time is an activity: a
 * kernel on a rank, or the transfer at the head of a channel. Activities have remaining work
 * and a speed, which changes only at events; a heap holds their end times.
 *
 *   rank_sim.c    runs the ops of each rank, one after the other
 *   transfer.c    channels: which ops match, and when transfers start and end
 *   contention.c  which activities slow each other down
 *   stuck.c       finds who waits for whom in a deadlock
 */
#ifndef TUCK_SIM_ENGINE_H
#define TUCK_SIM_ENGINE_H

#include "sim/events.h"
#include "sim/match_p2p.h"

#define NONE PROBLEM_NONE

/* A group's channel on one rank. */
struct sim_slot {
    uint32_t rank, group; /* group of the job, or NONE */
    uint32_t head, tail;  /* ops issued and not ended, or NONE */
    uint32_t ended;       /* the op that ended last, or NONE */
    int64_t ready;        /* when the op became the head */
    int64_t start;        /* of its transfer, if running */
    bool there;           /* the head has arrived, and others may match it */
    bool moves;           /* its transfer is moving bytes */
    uint32_t next, prev;  /* list of this rank's slots that move bytes */
    /* list of this rank's slots whose transfer is under way */
    uint32_t next_way, prev_way;
    /* For the transfer that this slot leads: */
    int64_t bytes_ps;
    uint32_t share;     /* how many transfers move bytes at its busiest member */
    uint32_t computing; /* members whose rank runs a kernel */
};

struct sim_state {
    uint32_t pos;
    bool launched;      /* the op at pos */
    bool computes;      /* it is a kernel that runs */
    uint32_t first_way; /* slots whose transfer is under way, or NONE */
    uint32_t waits_for; /* number of transfers that the op at pos waits for */
    int64_t since;      /* when that wait began */
    uint32_t slot;      /* its first slot */
    uint32_t moving[SIM_LINKS];
    uint32_t first[SIM_LINKS]; /* slots that move bytes, or NONE */
    uint32_t *running;         /* by kind of collective: how many run */
    int64_t *end;              /* by op that is a collective: its end; -1 if not ended */
    uint32_t *behind;          /* by op: the next one in its channel */
    uint32_t *before;          /* by op: the previous one in its channel */
    bool *awaited;             /* by op that is a collective: the op at pos waits for it */
};

struct sim_engine {
    const struct sim_job *job;
    struct arena *a;
    struct sim_rank_result *out;
    struct sim_span *const *span;
    struct sim_fault *fault;
    struct sim_state *rank;
    struct sim_slot *slot;
    uint32_t n_slot;
    struct sim_events ev;     /* activities: first ranks, then slots */
    uint32_t *ready, n_ready; /* ranks that can continue */
    uint32_t *member_slot;    /* parallel to job->member; NONE: the rank has no such channel */
    uint32_t *arrived;        /* by group of the job: members that have reached its next transfer */
    uint32_t *first;          /* by group of the job: the first of those members, a slot */
    struct sim_meetings met;
};

/* The current op of rank r; NONE if all are done. */
static inline uint32_t op_at(const struct sim_engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    uint32_t pos = e->rank[r].pos;

    assert_hot(r < e->job->n_rank);
    return pos >= k->p->n_op ? NONE : k->order ? k->order[pos] : pos;
}

static inline const struct sim_call *call_of(const struct sim_engine *e, uint32_t s)
{
    return &e->job->rank[e->slot[s].rank].call[e->slot[s].head];
}

/* Does it run without the rest of its group? */
static inline bool is_own(const struct sim_call *c)
{
    return c->n_part > 0 || c->alone;
}

/* The slots that take part in the transfer at the head of s. */
static inline const uint32_t *members_of(const struct sim_engine *e, const uint32_t *s, uint32_t *n)
{
    const struct sim_slot *x = &e->slot[*s];

    *n = 1;
    if (x->group == NONE || is_own(call_of(e, *s)))
        return s;
    *n = e->job->member_at[x->group + 1] - e->job->member_at[x->group];
    return e->member_slot + e->job->member_at[x->group];
}

static inline uint32_t slot_of(const struct sim_engine *e, uint32_t r, uint32_t op)
{
    const struct problem *p = e->job->rank[r].p;

    assert_hot(r < e->job->n_rank && problem_is_coll(p, op));
    return e->rank[r].slot + (p->group[op] == NONE ? p->n_group : p->group[op]);
}

/* Is this op at the head of its channel? It stays there until everything it matches has arrived. */
static inline bool is_there(const struct sim_engine *e, struct sim_met m)
{
    const struct sim_slot *x = &e->slot[slot_of(e, m.rank, m.op)];

    return x->there && x->head == m.op;
}

/* ---- contention.c ---- */

/* The speed of a kernel of rank r while the current collectives run there. */
uint32_t sim_kernel_speed(const struct sim_engine *e, uint32_t r, uint32_t op);
/* The transfer of slot s starts or stops being under way on its rank. */
void sim_under_way(struct sim_engine *e, uint32_t s, bool starts);
/* A kernel starts or stops running on rank r. */
void sim_computes(struct sim_engine *e, uint32_t r, bool starts);
/* The speed of the transfer that a slot leads. */
uint32_t sim_transfer_speed(const struct sim_engine *e, uint32_t leader);
/* The transfer of slot s starts or stops moving bytes on its rank, which affects others on the same
 * link. */
void sim_link_changes(struct sim_engine *e, uint32_t s, uint32_t link, bool starts);
/* The latency of a transfer is over. */
void sim_start_bytes(struct sim_engine *e, uint32_t leader);

/* ---- transfer.c ---- */

/* Rank r reaches a collective. */
void sim_issue(struct sim_engine *e, uint32_t r, uint32_t op);
/* A transfer's activity has ended: its latency, or all of it. */
void sim_transfer_event(struct sim_engine *e, uint32_t leader);

/* ---- stuck.c ---- */

/* No activity is left: are there transfers that never began? */
void sim_deadlock(struct sim_engine *e);

#endif
