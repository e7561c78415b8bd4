/* The inside of the simulation of several ranks, by events. What takes time is an activity: the
 * kernel that a rank runs, and the transfer at the head of a channel. Activities have work left and
 * a speed, which changes only at events; a heap holds when each would end.
 *
 *   ranks.c       what ranks do one op after the other
 *   transfer.c    channels: who meets whom, what starts and ends
 *   contention.c  who is slowed by whom
 *   stuck.c       who waits for whom when nothing can go on
 */
#ifndef TUCK_SIM_ENGINE_H
#define TUCK_SIM_ENGINE_H

#include "sim/events.h"
#include "sim/match_p2p.h"

#define NONE PROBLEM_NONE

/* The channel of a group on a rank. */
struct sim_slot {
    uint32_t rank, group; /* group of the job, or NONE */
    uint32_t head, tail;  /* ops issued and not ended; NONE: none */
    uint32_t ended;       /* the op that ended last; NONE: none */
    int64_t ready;        /* since when the head is there */
    int64_t start;        /* of its transfer, if it runs */
    bool there;           /* the head has arrived, and others may match it */
    bool moves;           /* its transfer moves bytes by now */
    uint32_t next, prev;  /* slots of this rank that move bytes */
    /* Of the transfer that this slot leads: */
    int64_t bytes_ps;
    uint32_t share; /* how many move bytes at its busiest member */
};

struct sim_state {
    uint32_t pos;
    bool launched;      /* the op at pos */
    uint32_t waits_for; /* transfers that the op at pos waits for */
    int64_t since;      /* … since then */
    uint32_t slot;      /* its first */
    uint32_t moving[SIM_LINKS];
    uint32_t first[SIM_LINKS]; /* slots that move bytes, NONE: none */
    uint32_t *running;         /* by kind of collective: how many */
    int64_t *end;              /* by op, of collectives; -1: not yet */
    uint32_t *behind;          /* by op: the next in its channel */
    uint32_t *before;          /* by op: the one that came before it */
    bool *awaited;             /* by op: of collectives that the op at pos waits for */
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
    struct sim_events ev;     /* activities: of ranks, then of slots */
    uint32_t *ready, n_ready; /* ranks that can go on */
    uint32_t *member_slot;    /* parallel to job->member; NONE: the rank has no such channel */
    uint32_t *arrived;        /* by group of the job: members that have reached its next transfer */
    uint32_t *first;          /* … and the first of them, a slot */
    struct sim_meetings met;
};

/* The op that rank r is at; NONE: all done. */
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

/* No part of what its group does together. */
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

/* Is this op at the head of its channel? It stays there until all it matches have arrived. */
static inline bool is_there(const struct sim_engine *e, struct sim_met m)
{
    const struct sim_slot *x = &e->slot[slot_of(e, m.rank, m.op)];

    return x->there && x->head == m.op;
}

/* ---- contention.c ---- */

/* How fast a kernel of rank r runs next to the collectives that run there. */
uint32_t sim_kernel_speed(const struct sim_engine *e, uint32_t r, uint32_t op);
/* One more or one less collective of a kind runs on a rank. */
void sim_kind_runs(struct sim_engine *e, uint32_t r, uint32_t kind, bool starts);
/* The transfer of slot s begins or ends to move bytes on its rank: others that
 * share the link feel it. */
void sim_link_changes(struct sim_engine *e, uint32_t s, uint32_t link, bool starts);
/* The latency of a transfer is over. */
void sim_start_bytes(struct sim_engine *e, uint32_t leader);

/* ---- transfer.c ---- */

/* Rank r comes to a collective. */
void sim_issue(struct sim_engine *e, uint32_t r, uint32_t op);
/* The activity of a transfer is at its end: its latency, or all of it. */
void sim_transfer_event(struct sim_engine *e, uint32_t leader);

/* ---- stuck.c ---- */

/* Nothing takes time any more: are there transfers that never began? */
void sim_deadlock(struct sim_engine *e);

#endif
