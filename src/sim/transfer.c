#include <string.h>

#include "sim/engine.h"

static void start_transfer(struct sim_engine *e, uint32_t leader)
{
    uint32_t n;
    const uint32_t *m = members_of(e, &leader, &n);
    const struct sim_call *call = call_of(e, leader);
    int64_t ps = 0, latency = call->latency;

    e->slot[leader].share = 1;
    e->slot[leader].computing = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct sim_slot *x = &e->slot[m[i]];
        int64_t own = e->job->rank[x->rank].ps[x->head];

        ps = own > ps ? own : ps;
        x->start = e->ev.now;
        e->out[x->rank].others = sim_later(e->out[x->rank].others, e->ev.now - x->ready);
        e->slot[leader].computing += e->rank[x->rank].computes;
        if (e->job->contention)
            sim_under_way(e, m[i], true);
    }
    latency = !e->job->contention || latency > ps ? ps : latency;
    e->slot[leader].bytes_ps = ps - latency;
    sim_begin(&e->ev, e->job->n_rank + leader, latency, sim_transfer_speed(e, leader));
}

static bool differs(const char *a, const char *b)
{
    return *a != '\0' && *b != '\0' && strcmp(a, b) != 0;
}

static const char *difference(const struct sim_call *a, const struct sim_call *b)
{
    return a->coll != 0 && b->coll != 0 && a->coll != b->coll       ? "kind"
           : a->bytes >= 0 && b->bytes >= 0 && a->bytes != b->bytes ? "bytes"
           : differs(a->dtype, b->dtype)                            ? "dtype"
           : differs(a->reduce_op, b->reduce_op)                    ? "reduce op"
                                                                    : NULL;
}

static void mismatch(struct sim_engine *e, const char *what, struct sim_met a, struct sim_met b)
{
    if (e->fault->kind == SIM_FINE)
        *e->fault = (struct sim_fault){
            .kind = SIM_MISMATCH, .what = what, .rank = {a.rank, b.rank}, .op = {a.op, b.op}};
}

static void p2p_arrives(struct sim_engine *e, uint32_t s)
{
    const struct sim_slot *x = &e->slot[s];
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
            continue; /* it matches itself, and is handled from the other side as well */
        if (--e->met.missing[m.rank][m.op] == 0)
            start_transfer(e, slot_of(e, m.rank, m.op));
    }
    if (*missing == 0)
        start_transfer(e, s);
}

/* The op at the head of s is ready on its own rank. */
static void arrive(struct sim_engine *e, uint32_t s)
{
    struct sim_slot *x = &e->slot[s];
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
        const struct sim_slot *f = &e->slot[e->first[x->group]];
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

void sim_issue(struct sim_engine *e, uint32_t r, uint32_t op)
{
    uint32_t s = slot_of(e, r, op);
    struct sim_slot *x = &e->slot[s];

    e->rank[r].behind[op] = NONE;
    e->rank[r].before[op] = x->head != NONE ? x->tail : x->ended;
    if (x->head != NONE) {
        e->rank[r].behind[x->tail] = op;
        x->tail = op;
        return;
    }
    x->head = x->tail = op;
    arrive(e, s);
}

/* The current op of rank r has everything it waited for. */
static void go_on(struct sim_engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    struct sim_state *x = &e->rank[r];
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
        if (stood > 0)
            sim_charge(e->span[r], x->before, last, x->since);
    }
    x->pos++;
    x->launched = false;
    e->ready[e->n_ready++] = r;
}

static void end_on(struct sim_engine *e, uint32_t s)
{
    struct sim_slot *x = &e->slot[s];
    struct sim_state *r = &e->rank[x->rank];
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

/* The next op of a channel becomes its head only when all members have finished this one. */
static void end_transfer(struct sim_engine *e, uint32_t leader)
{
    uint32_t n, link = call_of(e, leader)->link;
    const uint32_t *m = members_of(e, &leader, &n);

    if (e->job->contention)
        for (uint32_t i = 0; i < n; i++) {
            if (e->slot[m[i]].moves)
                sim_link_changes(e, m[i], link, false);
            sim_under_way(e, m[i], false);
        }
    for (uint32_t i = 0; i < n; i++)
        end_on(e, m[i]);
    for (uint32_t i = 0; i < n; i++) {
        struct sim_slot *x = &e->slot[m[i]];
        x->ended = x->head;
        x->head = e->rank[x->rank].behind[x->head];
        x->there = false;
    }
    for (uint32_t i = 0; i < n; i++)
        if (e->slot[m[i]].head != NONE)
            arrive(e, m[i]);
}

void sim_transfer_event(struct sim_engine *e, uint32_t leader)
{
    if (e->job->contention && e->slot[leader].bytes_ps > 0) {
        sim_start_bytes(e, leader);
        e->slot[leader].bytes_ps = 0;
        return;
    }
    end_transfer(e, leader);
}
