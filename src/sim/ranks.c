/* A simulation by events. What takes time is an activity: the kernel that a rank runs, and the transfer at the head of
 * a channel. Activities have work left and a speed, which changes only at events; a heap holds when each would end. */
#include "sim/ranks.h"

#include <string.h>

#include "sim/events.h"
#include "sim/meet.h"

#define NONE PROBLEM_NONE

/* The channel of a group on a rank. */
struct slot {
    uint32_t rank, group; /* group of the job, or NONE */
    uint32_t head, tail;  /* ops issued and not ended; NONE: none */
    int64_t ready;        /* since when the head stands there */
    int64_t start;        /* of its transfer, if it runs */
    bool there;           /* the head has come to its place, and others may meet it */
    bool moves;           /* its transfer moves bytes by now */
    uint32_t next, prev;  /* slots of this rank that move bytes */
    /* Of the transfer that this slot leads: */
    int64_t bytes_ps;
    uint32_t share; /* how many move bytes at its busiest member */
};

struct state {
    uint32_t pos;
    bool launched;      /* the op at pos */
    uint32_t waits_for; /* transfers that the op at pos stands for */
    int64_t since;      /* … since then */
    uint32_t slot;      /* its first */
    uint32_t moving[SIM_LINKS];
    uint32_t first[SIM_LINKS]; /* slots that move bytes, NONE: none */
    uint32_t *running;         /* by kind of collective: how many */
    int64_t *end;              /* by op, of collectives; -1: not yet */
    uint32_t *behind;          /* by op: the next in its channel */
    bool *awaited;             /* by op: of collectives that the op at pos stands for */
};

struct engine {
    const struct sim_job *job;
    struct arena *a;
    struct sim_rank_result *out;
    struct sim_span *const *span;
    struct sim_fault *fault;
    struct state *rank;
    struct slot *slot;
    uint32_t n_slot;
    struct sim_events ev;     /* activities: of ranks, then of slots */
    uint32_t *ready, n_ready; /* ranks that can go on */
    uint32_t *member_slot;    /* beside job->member; NONE: the rank has no such channel */
    uint32_t *arrived;        /* by group of the job: members that stand at its next transfer */
    uint32_t *first;          /* … and the first of them, a slot */
    struct sim_meetings met;
};

static uint32_t op_at(const struct engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    uint32_t pos = e->rank[r].pos;

    return pos >= k->p->n_op ? NONE : k->order ? k->order[pos] : pos;
}

/* ---- contention ---- */

/* How fast a kernel of rank r runs beside the collectives that run there. */
static uint32_t kernel_speed(const struct engine *e, uint32_t r, uint32_t op)
{
    const struct sim_job *job = e->job;
    uint32_t speed = SIM_SPEED, cls = job->rank[r].cls ? job->rank[r].cls[op] : 0;

    if (!job->contention || job->slow == NULL)
        return SIM_SPEED;
    for (uint32_t k = 0; k < job->n_kind; k++)
        if (e->rank[r].running[k] > 0 && job->slow[cls * job->n_kind + k] < speed)
            speed = job->slow[cls * job->n_kind + k];
    return speed;
}

static void kind_runs(struct engine *e, uint32_t r, uint32_t kind, bool starts)
{
    uint32_t *n = &e->rank[r].running[kind];

    *n += starts ? 1 : -1u;
    if (*n == starts && e->ev.act[r].place != NONE && e->rank[r].launched)
        sim_change_speed(&e->ev, r, kernel_speed(e, r, op_at(e, r)));
}

static const struct sim_call *call_of(const struct engine *e, uint32_t s)
{
    return &e->job->rank[e->slot[s].rank].call[e->slot[s].head];
}

/* No part of what its group does together. */
static bool is_own(const struct sim_call *c)
{
    return c->n_part > 0 || c->alone;
}

/* The slots that take part in the transfer at the head of s. */
static const uint32_t *members_of(const struct engine *e, const uint32_t *s, uint32_t *n)
{
    const struct slot *x = &e->slot[*s];

    *n = 1;
    if (x->group == NONE || is_own(call_of(e, *s)))
        return s;
    *n = e->job->member_at[x->group + 1] - e->job->member_at[x->group];
    return e->member_slot + e->job->member_at[x->group];
}

static uint32_t leader_of(const struct engine *e, uint32_t s)
{
    uint32_t n;

    return *members_of(e, &s, &n);
}

static void share(struct engine *e, uint32_t leader)
{
    struct slot *x = &e->slot[leader];

    sim_change_speed(&e->ev, e->job->n_rank + leader,
                     x->share > SIM_SPEED ? 1 : SIM_SPEED / x->share);
}

/* The transfer of slot s begins or ends to move bytes on its rank: others that share the link feel it. */
static void link_changes(struct engine *e, uint32_t s, uint32_t link, bool starts)
{
    struct slot *x = &e->slot[s];
    struct state *r = &e->rank[x->rank];
    uint32_t was = r->moving[link], is = starts ? was + 1 : was - 1;

    if (!starts) {
        if (x->prev != NONE)
            e->slot[x->prev].next = x->next;
        else
            r->first[link] = x->next;
        if (x->next != NONE)
            e->slot[x->next].prev = x->prev;
    }
    r->moving[link] = is;
    for (uint32_t k = r->first[link]; k != NONE; k = e->slot[k].next) {
        uint32_t lead = leader_of(e, k), n;
        struct slot *l = &e->slot[lead];
        if (is > l->share) {
            l->share = is;
        } else if (was == l->share) {
            const uint32_t *m = members_of(e, &lead, &n);
            l->share = 1;
            for (uint32_t i = 0; i < n; i++)
                if (e->rank[e->slot[m[i]].rank].moving[link] > l->share)
                    l->share = e->rank[e->slot[m[i]].rank].moving[link];
        }
        share(e, lead);
    }
    if (starts) {
        x->prev = NONE;
        x->next = r->first[link];
        if (x->next != NONE)
            e->slot[x->next].prev = s;
        r->first[link] = s;
    }
    x->moves = starts;
}

static void start_bytes(struct engine *e, uint32_t leader)
{
    uint32_t n, link = call_of(e, leader)->link, most = 1;
    const uint32_t *m = members_of(e, &leader, &n);

    sim_begin(&e->ev, e->job->n_rank + leader, e->slot[leader].bytes_ps, SIM_SPEED);
    for (uint32_t i = 0; i < n; i++) {
        link_changes(e, m[i], link, true);
        if (e->rank[e->slot[m[i]].rank].moving[link] > most)
            most = e->rank[e->slot[m[i]].rank].moving[link];
    }
    e->slot[leader].share = most;
    share(e, leader);
}

/* ---- transfers ---- */

static void start_transfer(struct engine *e, uint32_t leader)
{
    uint32_t n;
    const uint32_t *m = members_of(e, &leader, &n);
    const struct sim_call *call = call_of(e, leader);
    int64_t ps = 0, latency = call->latency;

    for (uint32_t i = 0; i < n; i++) {
        struct slot *x = &e->slot[m[i]];
        int64_t own = e->job->rank[x->rank].ps[x->head];

        ps = own > ps ? own : ps;
        x->start = e->ev.now;
        e->out[x->rank].others = sim_later(e->out[x->rank].others, e->ev.now - x->ready);
        if (e->job->contention)
            kind_runs(e, x->rank, call->kind, true);
    }
    latency = !e->job->contention || latency > ps ? ps : latency;
    e->slot[leader].bytes_ps = ps - latency;
    sim_begin(&e->ev, e->job->n_rank + leader, latency, SIM_SPEED);
}

static bool differs(const char *a, const char *b)
{
    return *a != '\0' && *b != '\0' && strcmp(a, b) != 0;
}

static const char *difference(const struct sim_call *a, const struct sim_call *b)
{
    return differs(a->coll, b->coll)                                ? "kind"
           : a->bytes >= 0 && b->bytes >= 0 && a->bytes != b->bytes ? "bytes"
           : differs(a->dtype, b->dtype)                            ? "dtype"
           : differs(a->reduce_op, b->reduce_op)                    ? "reduce op"
                                                                    : NULL;
}

static void mismatch(struct engine *e, const char *what, struct sim_met a, struct sim_met b)
{
    if (e->fault->kind == SIM_FINE)
        *e->fault = (struct sim_fault){
            .kind = SIM_MISMATCH, .what = what, .rank = {a.rank, b.rank}, .op = {a.op, b.op}};
}

static uint32_t slot_of(const struct engine *e, uint32_t r, uint32_t op)
{
    const struct problem *p = e->job->rank[r].p;

    return e->rank[r].slot + (p->group[op] == NONE ? p->n_group : p->group[op]);
}

/* Does this op stand at the head of its channel? Then it stays there until all it meets have come. */
static bool is_there(const struct engine *e, struct sim_met m)
{
    const struct slot *x = &e->slot[slot_of(e, m.rank, m.op)];

    return x->there && x->head == m.op;
}

static void p2p_arrives(struct engine *e, uint32_t s)
{
    const struct slot *x = &e->slot[s];
    struct sim_met own = {x->rank, x->head};
    uint32_t *missing = &e->met.missing[own.rank][own.op];

    for (uint32_t i = e->met.at[own.rank][own.op]; i < e->met.at[own.rank][own.op + 1]; i++) {
        struct sim_met m = e->met.with[i];
        if (m.rank == NONE || !is_there(e, m))
            continue;
        const struct sim_call *a = call_of(e, s), *b = &e->job->rank[m.rank].call[m.op];
        if (a->n_part == 1 && b->n_part == 1 && difference(a, b) != NULL) {
            mismatch(e, difference(a, b), m, own);
            return;
        }
        --*missing;
        if (m.rank == own.rank && m.op == own.op)
            continue; /* it meets itself, and will come to that from the other side as well */
        if (--e->met.missing[m.rank][m.op] == 0)
            start_transfer(e, slot_of(e, m.rank, m.op));
    }
    if (*missing == 0)
        start_transfer(e, s);
}

/* The op at the head of s can start, as far as its own rank goes. */
static void arrive(struct engine *e, uint32_t s)
{
    struct slot *x = &e->slot[s];
    const struct sim_job *job = e->job;

    x->ready = e->ev.now;
    x->there = true;
    if (call_of(e, s)->n_part > 0) {
        p2p_arrives(e, s);
        return;
    }
    if (x->group == NONE || call_of(e, s)->alone) {
        start_transfer(e, s);
        return;
    }
    if (e->arrived[x->group]++ == 0) {
        e->first[x->group] = s;
    } else {
        const struct slot *f = &e->slot[e->first[x->group]];
        const char *what = difference(call_of(e, e->first[x->group]), call_of(e, s));
        if (what != NULL)
            mismatch(e, what, (struct sim_met){f->rank, f->head},
                     (struct sim_met){x->rank, x->head});
    }
    if (e->arrived[x->group] == job->member_at[x->group + 1] - job->member_at[x->group]) {
        e->arrived[x->group] = 0;
        start_transfer(e, e->member_slot[job->member_at[x->group]]);
    }
}

static void issue(struct engine *e, uint32_t r, uint32_t op)
{
    uint32_t s = slot_of(e, r, op);
    struct slot *x = &e->slot[s];

    e->rank[r].behind[op] = NONE;
    if (x->head != NONE) {
        e->rank[r].behind[x->tail] = op;
        x->tail = op;
        return;
    }
    x->head = x->tail = op;
    arrive(e, s);
}

/* The op that rank r stands at has all it stood for. */
static void go_on(struct engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    struct state *x = &e->rank[r];
    uint32_t op = op_at(e, r), last = op;
    int64_t stood = e->ev.now - x->since;

    if (problem_is_wait(k->p, op)) {
        last = NONE;
        for (uint32_t i = k->p->wait_at[op]; i < k->p->wait_at[op + 1]; i++)
            if (last == NONE || x->end[k->p->wait[i]] > x->end[last])
                last = k->p->wait[i];
    }
    e->out[r].time.exposed += stood;
    if (e->span != NULL) {
        e->span[r][op].stood = stood;
        e->span[r][op].end = e->ev.now;
        e->span[r][last].exposed += stood;
    }
    x->pos++;
    x->launched = false;
    e->ready[e->n_ready++] = r;
}

static void end_on(struct engine *e, uint32_t s)
{
    struct slot *x = &e->slot[s];
    struct state *r = &e->rank[x->rank];
    uint32_t op = x->head;

    r->end[op] = e->ev.now;
    e->out[x->rank].time.comm = sim_later(e->out[x->rank].time.comm, e->ev.now - x->start);
    if (e->span != NULL) {
        e->span[x->rank][op].start = x->start;
        e->span[x->rank][op].end = e->ev.now;
    }
    if (r->awaited[op]) {
        r->awaited[op] = false;
        if (--r->waits_for == 0)
            go_on(e, x->rank);
    }
}

/* The next of each channel comes to its head only when all members have let go of this one. */
static void end_transfer(struct engine *e, uint32_t leader)
{
    uint32_t n, link = call_of(e, leader)->link, kind = call_of(e, leader)->kind;
    const uint32_t *m = members_of(e, &leader, &n);

    if (e->job->contention)
        for (uint32_t i = 0; i < n; i++) {
            if (e->slot[m[i]].moves)
                link_changes(e, m[i], link, false);
            kind_runs(e, e->slot[m[i]].rank, kind, false);
        }
    for (uint32_t i = 0; i < n; i++)
        end_on(e, m[i]);
    for (uint32_t i = 0; i < n; i++) {
        struct slot *x = &e->slot[m[i]];
        x->head = e->rank[x->rank].behind[x->head];
        x->there = false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (e->slot[m[i]].head != NONE)
            arrive(e, m[i]);
}

/* ---- ranks ---- */

/* How many of the collectives that a wait ends are not over. */
static uint32_t await(struct engine *e, uint32_t r, uint32_t op)
{
    const struct problem *p = e->job->rank[r].p;
    struct state *x = &e->rank[r];
    uint32_t n = 0;

    for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
        if (x->end[p->wait[i]] < 0 && !x->awaited[p->wait[i]]) {
            x->awaited[p->wait[i]] = true;
            n++;
        }
    return n;
}

/* Go on with the ops of a rank until one takes time. */
static void run_rank(struct engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    struct state *x = &e->rank[r];

    for (uint32_t op; (op = op_at(e, r)) != NONE; x->pos++, x->launched = false) {
        if (!x->launched && e->job->launch_ps > 0) {
            sim_begin(&e->ev, r, e->job->launch_ps, SIM_SPEED);
            return;
        }
        x->launched = true;
        x->since = e->ev.now;
        if (e->span != NULL)
            e->span[r][op] = (struct sim_span){
                .start = e->ev.now, .end = e->ev.now, .issued = e->ev.now};
        if (!problem_is_coll(k->p, op) && !problem_is_wait(k->p, op)) {
            if (k->ps[op] == 0)
                continue;
            sim_begin(&e->ev, r, k->ps[op], kernel_speed(e, r, op));
            return;
        }
        x->waits_for = 0;
        if (problem_is_coll(k->p, op)) {
            if (!problem_is_async(k->p, op)) {
                x->awaited[op] = true;
                x->waits_for = 1;
            }
            issue(e, r, op);
        } else {
            x->waits_for = await(e, r, op);
        }
        if (x->waits_for > 0)
            return;
    }
}

static void kernel_ends(struct engine *e, uint32_t r)
{
    struct state *x = &e->rank[r];

    if (!x->launched) {
        x->launched = true;
        e->out[r].time.launch += e->job->launch_ps;
        /* Entered again behind its launch. */
        e->ready[e->n_ready++] = r;
        return;
    }
    uint32_t op = op_at(e, r);
    int64_t took = e->ev.now - x->since;
    e->out[r].time.compute += took;
    e->out[r].slowed += took - e->job->rank[r].ps[op];
    if (e->span != NULL)
        e->span[r][op].end = e->ev.now;
    x->pos++;
    x->launched = false;
    e->ready[e->n_ready++] = r;
}

static void transfer_event(struct engine *e, uint32_t leader)
{
    if (e->job->contention && e->slot[leader].bytes_ps > 0) {
        start_bytes(e, leader);
        e->slot[leader].bytes_ps = 0;
        return;
    }
    end_transfer(e, leader);
}

/* ---- the start ---- */

static void match_slots(struct engine *e)
{
    const struct sim_job *job = e->job;
    uint32_t *next = arena_array(e->a, uint32_t, job->n_group + 1);

    for (uint32_t g = 0; g < job->n_group; g++)
        next[g] = job->member_at[g];
    for (uint32_t i = 0; job->n_group > 0 && i < job->member_at[job->n_group]; i++)
        e->member_slot[i] = NONE;
    for (uint32_t r = 0; r < job->n_rank; r++)
        for (uint32_t k = 0; k < job->rank[r].p->n_group; k++) {
            uint32_t g = job->rank[r].group ? job->rank[r].group[k] : NONE;
            e->slot[e->rank[r].slot + k].group = g;
            if (g == NONE)
                continue;
            while (next[g] < job->member_at[g + 1] && job->member[next[g]] < r)
                next[g]++;
            if (next[g] < job->member_at[g + 1] && job->member[next[g]] == r)
                e->member_slot[next[g]] = e->rank[r].slot + k;
        }
}

static void prepare(struct engine *e)
{
    const struct sim_job *job = e->job;
    uint32_t n_kind = job->n_kind ? job->n_kind : 1;

    e->rank = arena_zeroed(e->a, job->n_rank * sizeof(*e->rank));
    for (uint32_t r = 0; r < job->n_rank; r++) {
        struct state *x = &e->rank[r];
        uint32_t n_op = job->rank[r].p->n_op;

        x->slot = e->n_slot;
        x->end = arena_array(e->a, int64_t, n_op);
        memset(x->end, -1, n_op * sizeof(*x->end));
        x->behind = arena_array(e->a, uint32_t, n_op);
        x->awaited = arena_zeroed(e->a, n_op * sizeof(*x->awaited));
        x->running = arena_zeroed(e->a, n_kind * sizeof(*x->running));
        for (int l = 0; l < SIM_LINKS; l++)
            x->first[l] = NONE;
        e->n_slot += job->rank[r].p->n_group + 1;
        e->out[r] = (struct sim_rank_result){.slowed = 0};
    }
    e->slot = arena_array(e->a, struct slot, e->n_slot);
    for (uint32_t r = 0, s = 0; r < job->n_rank; r++)
        for (uint32_t k = 0; k <= job->rank[r].p->n_group; k++)
            e->slot[s++] = (struct slot){.rank = r, .group = NONE, .head = NONE, .tail = NONE};
    sim_events_init(&e->ev, job->n_rank + e->n_slot, e->a);
    e->ready = arena_array(e->a, uint32_t, job->n_rank);
    e->member_slot = arena_array(e->a, uint32_t, job->n_group ? job->member_at[job->n_group] : 1);
    e->arrived = arena_zeroed(e->a, (job->n_group + 1) * sizeof(*e->arrived));
    e->first = arena_zeroed(e->a, (job->n_group + 1) * sizeof(*e->first));
    match_slots(e);
    sim_meet(job, e->a, &e->met);
}

/* ---- the end ---- */

/* A rank that the transfer at the head of s stands for. */
static uint32_t absent_from(const struct engine *e, uint32_t s)
{
    const struct slot *x = &e->slot[s];
    uint32_t n;

    if (call_of(e, s)->n_part > 0) {
        for (uint32_t i = e->met.at[x->rank][x->head]; i < e->met.at[x->rank][x->head + 1]; i++)
            if (e->met.with[i].rank == NONE || !is_there(e, e->met.with[i]))
                return e->met.with[i].rank;
        return NONE;
    }
    uint32_t at = e->job->member_at[x->group];
    const uint32_t *m = members_of(e, &s, &n);
    for (uint32_t i = 0; i < n; i++) {
        const struct slot *y = m[i] == NONE ? NULL : &e->slot[m[i]];
        if (y == NULL || y->head == NONE || is_own(call_of(e, m[i])))
            return e->job->member[at + i];
    }
    return NONE;
}

static void deadlock(struct engine *e)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < e->n_slot; s++)
        n += e->slot[s].head != NONE;
    if (n == 0)
        return;
    *e->fault = (struct sim_fault){.kind = SIM_DEADLOCK};
    e->fault->stuck = arena_array(e->a, struct sim_stuck, n);
    for (uint32_t s = 0; s < e->n_slot; s++) {
        const struct slot *x = &e->slot[s];
        if (x->head == NONE)
            continue;
        uint32_t absent = absent_from(e, s);
        e->fault->stuck[e->fault->n_stuck++] = (struct sim_stuck){
            x->rank, x->head, op_at(e, x->rank), absent, absent == NONE ? NONE : op_at(e, absent),
            x->ready};
    }
}

static void finish(struct engine *e, uint32_t r, int64_t clk)
{
    const struct sim_rank *k = &e->job->rank[r];
    struct sim_result *t = &e->out[r].time;
    const int64_t *end = e->rank[r].end;
    uint32_t latest = NONE;

    for (uint32_t step = 0; step < k->p->n_op; step++) {
        uint32_t op = k->order ? k->order[step] : step;
        if (problem_is_coll(k->p, op) && (latest == NONE || end[op] > end[latest]))
            latest = op;
    }
    t->makespan = clk;
    if (latest != NONE && end[latest] > clk) {
        t->makespan = end[latest];
        t->tail = t->makespan - clk;
        t->exposed += t->tail;
        if (e->span != NULL)
            e->span[r][latest].exposed += t->tail;
    }
}

void sim_ranks(const struct sim_job *job, struct arena *a, struct sim_rank_result *out,
               struct sim_span *const *span, struct sim_fault *fault)
{
    struct engine e = {.job = job, .a = a, .out = out, .span = span, .fault = fault};
    int64_t *clk = arena_zeroed(a, job->n_rank * sizeof(*clk));

    *fault = (struct sim_fault){.kind = SIM_FINE};
    prepare(&e);
    for (uint32_t r = job->n_rank; r-- > 0;)
        e.ready[e.n_ready++] = r;
    while (fault->kind == SIM_FINE) {
        while (e.n_ready > 0) {
            uint32_t r = e.ready[--e.n_ready];
            run_rank(&e, r);
            if (op_at(&e, r) == NONE)
                clk[r] = e.ev.now;
        }
        if (e.ev.n == 0)
            break;
        uint32_t id = sim_next(&e.ev);
        if (id < job->n_rank)
            kernel_ends(&e, id);
        else
            transfer_event(&e, id - job->n_rank);
    }
    if (fault->kind == SIM_FINE)
        deadlock(&e);
    for (uint32_t r = 0; fault->kind == SIM_FINE && r < job->n_rank; r++)
        finish(&e, r, clk[r]);
}
