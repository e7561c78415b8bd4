#include "study/explain.h"

#include <stdlib.h>

#include "study/remedy.h"

const char *explain_limit_name(enum explain_limit l)
{
    static const char *const name[] = {"hidden", "where_it_stands", "dependency", "memory",
                                       "order",  "channel_busy",    "holds_up",   "nothing_left"};

    return name[l];
}

/* ---- reasons ---- */

struct why {
    struct explanation *x;
    struct schedule s;
    bool begun;
    const struct schedule_stat **stat; /* by op: the scheduler's statistics */
};

/* Does it delay a later collective, while nothing waits for it itself? */
static bool holds_up(const struct explanation *x, const struct explained *r)
{
    return x->e->span[r->op].held != PROBLEM_NONE &&
           (r->wait == PROGRAM_NONE || x->e->span[r->wait].stood == 0);
}

/* Would it be hidden if it started earlier, or if its wait came later? Then its position limits it.
 * If even a part of it would be hidden, a lack of compute is not the limit. */
static void find_position(const struct why *w, struct explained *r)
{
    const struct schedule_stat *start = w->stat[r->op];
    const struct schedule_stat *wait = r->wait != PROGRAM_NONE ? w->stat[r->wait] : NULL;
    double left = start->final_exposed, all = start->initial_exposed;

    if (wait != NULL && wait->final_exposed < left)
        left = wait->final_exposed;
    if (r->limit == EXPLAIN_MEMORY || left >= (r->limit == EXPLAIN_NOTHING ? all * 0.99 : all / 2))
        return;
    r->limit = EXPLAIN_ORDER_HELPS;
    r->in_part = left > 0;
}

/* Finds what stopped the scheduler from hiding the collective within the same peak. */
static void find_limit(const struct why *w, struct explained *r)
{
    const struct schedule_stat *t = w->stat[r->op];

    r->limit_op = PROGRAM_NONE;
    if (r->exposed == 0) {
        r->limit = EXPLAIN_HIDDEN;
    } else if (holds_up(w->x, r)) {
        r->limit = EXPLAIN_HOLDS_UP;
        r->limit_op = w->x->e->span[r->op].held;
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
            r->more = t->limit_peak - w->x->e->peak;
            break;
        case LIMIT_ORDER:
        case LIMIT_COLLECTIVE:
        case LIMIT_WAIT: r->limit = EXPLAIN_ORDER; break;
        case LIMIT_DEPENDENCY: r->limit = EXPLAIN_DEPENDENCY; break;
        default: r->limit = EXPLAIN_NOTHING; break;
        }
        find_position(w, r);
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

/* Counts the compute ops before each op; the number under a collective is then a difference. */
static void fill_rows(struct why *w)
{
    struct explanation *x = w->x;
    const struct program *p = x->e->program;
    struct arena *a = &x->e->arena;
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
        const struct sim_span *s = &x->e->span[i];
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
    const struct problem *p = w->x->e->problem;

    w->stat = arena_zeroed(&w->x->e->arena, p->n_op * sizeof(*w->stat));
    for (uint32_t k = 0; k < w->s.report.len; k++)
        for (uint32_t i = 0; i < w->s.report.at[k].n_stat; i++)
            w->stat[w->s.report.at[k].stat[i].op] = &w->s.report.at[k].stat[i];
    fill_rows(w);
}

static tuck_status ask_why(struct explanation *x, bool keep_order)
{
    struct why w = {.x = x};
    struct schedule_options o;

    schedule_defaults(&o, false);
    o.keep_order = keep_order;
    if (!schedule_begin(&w.s, x->e->problem, &o))
        return TUCK_ENOMEM;
    tuck_status st = schedule_run(&w.s, "reorder_communication_preserving_peak_memory",
                                  schedule_reorder_iterative);
    if (st == TUCK_OK)
        st = schedule_run(&w.s, "sink_waits_iterative", schedule_sink_iterative);
    if (st == TUCK_OK && !mem_guard(&x->e->mem, do_why, &w))
        st = TUCK_ENOMEM;
    x->crosses = st == TUCK_OK && schedule_crosses_groups(x->e->problem, w.s.order);
    schedule_end(&w.s);
    return st;
}

uint32_t explain_op(const struct explanation *x, const char *node)
{
    const struct program *p = x->e->program;
    str_id id = str_find(&p->str, node, strlen(node));

    for (uint32_t op = 0; id != 0 && op < p->n_op; op++) {
        if (p->op[op].name == id)
            return op;
        for (uint32_t i = p->node_at[op]; i < p->node_at[op + 1]; i++)
            if (p->node[i] == id)
                return op;
    }
    return PROGRAM_NONE;
}

/* The row of the collective that a node starts or waits for. */
static const struct explained *row_of(const struct explanation *x, const char *node)
{
    uint32_t op = explain_op(x, node);

    for (uint32_t i = 0; op != PROGRAM_NONE && i < x->n; i++)
        if (x->row[i].op == op || x->row[i].wait == op)
            return &x->row[i];
    return NULL;
}

tuck_status explain_why(struct evaluation *e, bool keep_order, struct explanation *x)
{
    *x = (struct explanation){.e = e};
    return ask_why(x, keep_order);
}

/* Why it is where it is, and in its bucket. */
static tuck_status find_alternatives(struct study *study, const tuck_graph *g,
                                     const struct explain_options *o, const struct explained *r,
                                     tuck_diags *diags, struct explanation *x)
{
    const struct runner runner = {.study = study, .observer = o->observer};
    tuck_status st = places_of(x->e, r->op, study->o->keep_order, &x->place);

    if (st != TUCK_OK || o->decision == NULL)
        return st;
    return bucket_why(o->decision, &runner, g,
                      program_str(x->e->program, x->e->program->op[r->op].name), diags, &x->bucket);
}

static tuck_status find_remedies(struct study *study, tuck_graph *g,
                                 const struct explain_options *o, tuck_diags *diags,
                                 struct explanation *x)
{
    if (o->node == NULL)
        return x->n > 0 ? remedies_of_step(x, g, study, &o->observer) : TUCK_OK;
    const struct explained *r = row_of(x, o->node);
    tuck_status st = r != NULL ? find_alternatives(study, g, o, r, diags, x) : TUCK_OK;
    if (st != TUCK_OK)
        return st;
    return r != NULL && r->exposed > 0 ? remedies_of_collective(x, g, study, &o->observer, r)
                                       : TUCK_OK;
}

tuck_status explain_graph(struct study *study, tuck_graph *g, const struct explain_options *o,
                          tuck_diags *diags, struct explanation *x)
{
    *x = (struct explanation){.n = 0};
    tuck_status st = study_get(study, g, diags, &x->e);

    if (st == TUCK_OK)
        st = study_bounds(study, g, x->e);
    if (st == TUCK_OK)
        st = ask_why(x, study->o->keep_order);
    return st == TUCK_OK ? find_remedies(study, g, o, diags, x) : st;
}

void explain_end(struct explanation *x)
{
    study_give_back(x->e);
    x->e = NULL;
}
