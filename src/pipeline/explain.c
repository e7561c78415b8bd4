#include "pipeline/explain.h"

#include <stdio.h>
#include <stdlib.h>

const char *explain_limit_name(enum explain_limit l)
{
    static const char *const name[] = {"hidden", "where_it_stands", "dependency",  "memory",
                                       "order",  "channel_busy",    "nothing_left"};

    return name[l];
}

/* ---- why ---- */

struct why {
    struct explanation *x;
    struct schedule s;
    bool begun;
    const struct schedule_stat **stat; /* by op: what a scheduler found of it */
};

/* What stopped the scheduler, when it tried to hide the collective at the same peak. */
static void find_limit(const struct why *w, struct explained *r)
{
    const struct schedule_stat *t = w->stat[r->op];

    r->limit_op = PROGRAM_NONE;
    if (r->exposed == 0) {
        r->limit = EXPLAIN_HIDDEN;
    } else if (r->queued * 2 > r->exposed) {
        r->limit = EXPLAIN_CHANNEL;
    } else if (t == NULL) {
        r->limit = EXPLAIN_NOTHING;
    } else {
        r->limit_op = t->limit_op;
        switch (t->limit) {
        case LIMIT_COVERED: r->limit = EXPLAIN_ORDER_HELPS; break;
        case LIMIT_MEMORY:
            r->limit = EXPLAIN_MEMORY;
            r->more = t->limit_peak - w->x->e.peak;
            break;
        case LIMIT_ORDER:
        case LIMIT_COLLECTIVE:
        case LIMIT_WAIT: r->limit = EXPLAIN_ORDER; break;
        case LIMIT_DEPENDENCY: r->limit = EXPLAIN_DEPENDENCY; break;
        default: r->limit = EXPLAIN_NOTHING; break;
        }
        if (r->limit != EXPLAIN_MEMORY && t->final_exposed < t->initial_exposed / 2)
            r->limit = EXPLAIN_ORDER_HELPS;
    }
}

static int most_exposed(const void *a, const void *b)
{
    const struct explained *x = a, *y = b;

    if (x->exposed != y->exposed)
        return x->exposed > y->exposed ? -1 : 1;
    if (x->ps != y->ps)
        return x->ps > y->ps ? -1 : 1;
    return x->op < y->op ? -1 : x->op > y->op;
}

/* Compute ops before each op: how many run under a collective is a difference. */
static void fill_rows(struct why *w)
{
    struct explanation *x = w->x;
    const struct program *p = x->e.program;
    struct arena *a = &x->e.arena;
    uint32_t *compute = arena_zeroed(a, ((size_t)p->n_op + 1) * sizeof(*compute));
    uint32_t *wait = arena_array(a, uint32_t, p->n_op);

    memset(wait, 0xFF, p->n_op * sizeof(*wait));
    for (uint32_t i = 0; i < p->n_op; i++) {
        compute[i + 1] = compute[i] +
                         (p->op[i].kind != PROGRAM_COLLECTIVE && p->op[i].kind != PROGRAM_WAIT);
        x->n += p->op[i].kind == PROGRAM_COLLECTIVE;
        for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++)
            if (wait[p->wait[k]] == PROGRAM_NONE)
                wait[p->wait[k]] = i;
    }
    x->row = arena_zeroed(a, x->n * sizeof(*x->row));
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (p->op[i].kind != PROGRAM_COLLECTIVE)
            continue;
        const struct sim_span *s = &x->e.span[i];
        struct explained *r = &x->row[n++];
        *r = (struct explained){.op = i,
                                .wait = wait[i],
                                .ps = s->end - s->start,
                                .exposed = s->exposed,
                                .queued = s->start - s->issued};
        r->hidden = r->ps > r->exposed ? r->ps - r->exposed : 0;
        r->n_under = wait[i] != PROGRAM_NONE ? compute[wait[i]] - compute[i + 1] : 0;
        find_limit(w, r);
    }
    qsort(x->row, x->n, sizeof(*x->row), most_exposed);
}

static void do_why(void *arg)
{
    struct why *w = arg;
    const struct problem *p = w->x->e.problem;

    w->stat = arena_zeroed(&w->x->e.arena, p->n_op * sizeof(*w->stat));
    for (uint32_t k = 0; k < w->s.report.len; k++)
        for (uint32_t i = 0; i < w->s.report.at[k].n_stat; i++)
            w->stat[w->s.report.at[k].stat[i].op] = &w->s.report.at[k].stat[i];
    fill_rows(w);
}

static tuck_status ask_why(struct explanation *x)
{
    struct why w = {.x = x};
    struct schedule_options o;

    schedule_defaults(&o, false);
    if (!schedule_begin(&w.s, x->e.problem, &o))
        return TUCK_ENOMEM;
    tuck_status st = schedule_run(&w.s, "reorder_communication_preserving_peak_memory",
                                  schedule_reorder_iterative);
    if (st == TUCK_OK && !mem_guard(&x->e.mem, do_why, &w))
        st = TUCK_ENOMEM;
    schedule_end(&w.s);
    return st;
}

/* ---- what would help: tried, not guessed ---- */

static uint32_t count_exposed(const struct evaluation *e)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < e->program->n_op; i++)
        n += e->program->op[i].kind == PROGRAM_COLLECTIVE && e->span[i].exposed > 0;
    return n;
}

static void keep(struct explanation *x, const char *what, const struct evaluation *e)
{
    if (x->n_remedy == REMEDIES_MAX)
        return;
    uint32_t before = count_exposed(&x->e), after = count_exposed(e);
    x->remedy[x->n_remedy++] = (struct remedy){.what = what,
                                               .ps = e->time.makespan,
                                               .peak = e->peak,
                                               .hidden = before > after ? before - after : 0,
                                               .tried = true};
}

/* The graph after a pipeline, or tuck optimize's own (text NULL), or on other links. */
static tuck_status try_remedy(struct explanation *x, const tuck_graph *g,
                              const struct evaluate_options *o, const tuck_run_options *run,
                              const char *what, const char *text, bool passes, double bandwidth)
{
    struct evaluate_options other = *o;
    struct evaluation e = {.program = NULL};
    tuck_pipeline *p = NULL;
    tuck_graph *copy;
    tuck_status st = tuck_graph_copy(g, &copy);

    if (st != TUCK_OK)
        return st;
    other.bandwidth *= bandwidth;
    if (passes && text == NULL) {
        st = tuck_graph_optimize(copy, run, NULL, NULL, NULL);
    } else if (passes) {
        st = tuck_pipeline_parse(text, strlen(text), what, &g->store->mem.alloc, NULL, &p);
        if (st == TUCK_OK)
            st = tuck_pipeline_run(p, copy, run, NULL, NULL);
    }
    if (st == TUCK_OK)
        st = evaluate_graph(copy, &other, NULL, &e);
    if (st == TUCK_OK)
        keep(x, what, &e);
    evaluate_end(&e);
    tuck_pipeline_free(p);
    tuck_graph_free(copy);
    return st == TUCK_ENOMEM ? st : TUCK_OK; /* what cannot be tried is left out */
}

static tuck_status try_all(struct explanation *x, const tuck_graph *g,
                           const struct evaluate_options *o, const tuck_run_options *run)
{
    static const struct {
        const char *what, *text;
        bool passes;
        double bandwidth;
    } list[] = {
        {"tuck optimize, at the same memory", NULL, true, 1},
        {"the same with 10 % more memory",
         "reorder_communication_preserving_peak_memory(reorder_iterative_peak_memory_budget=0.1),"
         "sink_waits_iterative(sink_iterative_peak_memory_budget=0.1),join_loops",
         true, 1},
        {"the same with 50 % more memory",
         "reorder_communication_preserving_peak_memory(reorder_iterative_peak_memory_budget=0.5),"
         "sink_waits_iterative(sink_iterative_peak_memory_budget=0.5),join_loops",
         true, 1},
        {"fewer, larger collectives (100 MiB buckets)",
         "bucket_reduce_scatter(cap_mb=100),bucket_all_reduce(cap_mb=100),"
         "bucket_all_gather(cap_mb=100)",
         true, 1},
        {"links twice as fast, nothing else changed", NULL, false, 2},
    };
    tuck_status st = TUCK_OK;

    for (size_t i = 0; i < sizeof(list) / sizeof(*list) && st == TUCK_OK && x->n > 0; i++)
        st = try_remedy(x, g, o, run, list[i].what, list[i].text, list[i].passes,
                        list[i].bandwidth);
    return st;
}

tuck_status explain_graph(tuck_graph *g, const struct evaluate_options *o,
                          const tuck_run_options *run, tuck_diags *diags, struct explanation *x)
{
    *x = (struct explanation){.n = 0};
    tuck_status st = evaluate_graph(g, o, diags, &x->e);
    if (st == TUCK_OK)
        st = ask_why(x);
    if (st == TUCK_OK && run != NULL)
        st = try_all(x, g, o, run);
    return st;
}

void explain_end(struct explanation *x)
{
    evaluate_end(&x->e);
}
