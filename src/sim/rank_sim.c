#include <string.h>

#include "sim/engine.h"

/* How many of the collectives that a wait ends are still running. */
static uint32_t await(struct sim_engine *e, uint32_t r, uint32_t op)
{
    const struct problem *p = e->job->rank[r].p;
    struct sim_state *x = &e->rank[r];
    uint32_t n = 0;

    for (uint32_t i = p->wait_at[op]; i < p->wait_at[op + 1]; i++)
        if (x->end[p->wait[i]] < 0 && !x->awaited[p->wait[i]]) {
            x->awaited[p->wait[i]] = true;
            n++;
        }
    return n;
}

/* Runs the ops of a rank until one takes time. */
static void run_rank(struct sim_engine *e, uint32_t r)
{
    const struct sim_rank *k = &e->job->rank[r];
    struct sim_state *x = &e->rank[r];

    for (uint32_t op; (op = op_at(e, r)) != NONE; x->pos++, x->launched = false) {
        if (!x->launched && e->job->launch_ps > 0) {
            sim_begin(&e->ev, r, e->job->launch_ps, SIM_SPEED);
            return;
        }
        x->launched = true;
        x->since = e->ev.now;
        if (e->span != NULL)
            e->span[r][op] = (struct sim_span){
                .start = e->ev.now, .end = e->ev.now, .issued = e->ev.now, .held = NONE};
        if (!problem_is_coll(k->p, op) && !problem_is_wait(k->p, op)) {
            if (k->ps[op] == 0)
                continue;
            sim_begin(&e->ev, r, k->ps[op], sim_kernel_speed(e, r, op));
            sim_computes(e, r, true);
            return;
        }
        x->waits_for = 0;
        if (problem_is_coll(k->p, op)) {
            if (!problem_is_async(k->p, op)) {
                x->awaited[op] = true;
                x->waits_for = 1;
            }
            sim_issue(e, r, op);
        } else {
            x->waits_for = await(e, r, op);
        }
        if (x->waits_for > 0)
            return;
    }
}

static void kernel_ends(struct sim_engine *e, uint32_t r)
{
    struct sim_state *x = &e->rank[r];

    if (!x->launched) {
        x->launched = true;
        e->out[r].time.launch += e->job->launch_ps;
        /* It comes here again after its launch. */
        e->ready[e->n_ready++] = r;
        return;
    }
    sim_computes(e, r, false);
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

/* ---- the start ---- */

static void match_slots(struct sim_engine *e)
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

static void prepare(struct sim_engine *e)
{
    const struct sim_job *job = e->job;
    uint32_t n_kind = job->n_kind ? job->n_kind : 1;

    e->rank = arena_zeroed(e->a, job->n_rank * sizeof(*e->rank));
    for (uint32_t r = 0; r < job->n_rank; r++) {
        struct sim_state *x = &e->rank[r];
        uint32_t n_op = job->rank[r].p->n_op;

        x->slot = e->n_slot;
        x->end = arena_array(e->a, int64_t, n_op);
        memset(x->end, -1, n_op * sizeof(*x->end));
        x->behind = arena_array(e->a, uint32_t, n_op);
        x->before = arena_array(e->a, uint32_t, n_op);
        x->awaited = arena_zeroed(e->a, n_op * sizeof(*x->awaited));
        x->running = arena_zeroed(e->a, n_kind * sizeof(*x->running));
        for (int l = 0; l < SIM_LINKS; l++)
            x->first[l] = NONE;
        x->first_way = NONE;
        e->n_slot += job->rank[r].p->n_group + 1;
        e->out[r] = (struct sim_rank_result){.slowed = 0};
    }
    e->slot = arena_array(e->a, struct sim_slot, e->n_slot);
    for (uint32_t r = 0, s = 0; r < job->n_rank; r++)
        for (uint32_t k = 0; k <= job->rank[r].p->n_group; k++)
            e->slot[s++] = (struct sim_slot){
                .rank = r, .group = NONE, .head = NONE, .tail = NONE, .ended = NONE};
    sim_events_init(&e->ev, job->n_rank + e->n_slot, e->a);
    e->ready = arena_array(e->a, uint32_t, job->n_rank);
    e->member_slot = arena_array(e->a, uint32_t, job->n_group ? job->member_at[job->n_group] : 1);
    e->arrived = arena_zeroed(e->a, (job->n_group + 1) * sizeof(*e->arrived));
    e->first = arena_zeroed(e->a, (job->n_group + 1) * sizeof(*e->first));
    match_slots(e);
    sim_meet(job, e->a, &e->met);
}

/* ---- the end ---- */

static void finish(struct sim_engine *e, uint32_t r, int64_t clk)
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
            sim_charge(e->span[r], e->rank[r].before, latest, clk);
    }
}

void sim_ranks(const struct sim_job *job, struct arena *a, struct sim_rank_result *out,
               struct sim_span *const *span, struct sim_fault *fault)
{
    struct sim_engine e = {.job = job, .a = a, .out = out, .span = span, .fault = fault};
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
        if (e.ev.running.n == 0)
            break;
        uint32_t id = sim_next(&e.ev);
        if (id < job->n_rank)
            kernel_ends(&e, id);
        else
            sim_transfer_event(&e, id - job->n_rank);
    }
    if (fault->kind == SIM_FINE)
        sim_deadlock(&e);
    for (uint32_t r = 0; fault->kind == SIM_FINE && r < job->n_rank; r++)
        finish(&e, r, clk[r]);
}
