/* Tuck's own passes for the graphs of several ranks: one decision for all that run one program. */
#include <stdio.h>

#include "api/api.h"
#include "api/machine_api.h"
#include "graph/graph.h"
#include "study/digest.h"
#include "study/ranks_report.h"

struct several {
    tuck_ranks_report *x;
    const tuck_rank_graph *rank;
    uint32_t n;
    tuck_run_options o;
    tuck_diags *diags;
    tuck_graph **work;        /* copies, which become the graphs */
    struct rank_graph *fact;  /* of the graphs as they came */
    tuck_decision **decision; /* by program */
};

/* ---- before ---- */

static tuck_status sequence_digest(const struct several *s, tuck_graph *g, uint64_t *out)
{
    struct given_machine *given = NULL;
    struct sequence q;
    tuck_status st = tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, s->diags);

    if (st == TUCK_OK)
        st = machine_take(s->o.machine, g, MACHINE_SYMBOLS, s->diags, &given);
    if (st != TUCK_OK)
        return st;
    struct assume symbols = machine_symbols(&given->machine, g->store);
    st = sequence_of(g, &symbols, &q);
    *out = q.digest;
    sequence_end(&q);
    machine_drop(given);
    return st;
}

static void do_rows(void *arg)
{
    struct several *s = arg;
    tuck_ranks_report *x = s->x;

    x->row = arena_zeroed(&x->arena, s->n * sizeof(*x->row));
    x->report = arena_zeroed(&x->arena, s->n * sizeof(*x->report));
    x->where = arena_zeroed(&x->arena, s->n * sizeof(*x->where));
    s->work = arena_zeroed(&x->arena, s->n * sizeof(*s->work));
    s->fact = arena_zeroed(&x->arena, s->n * sizeof(*s->fact));
    s->decision = arena_zeroed(&x->arena, s->n * sizeof(*s->decision));
    for (uint32_t i = 0; i < s->n; i++) {
        const char *name = s->rank[i].name != NULL ? s->rank[i].name : "";
        x->row[i] = (struct ranks_row){.file = arena_str(&x->arena, name, strlen(name)),
                                       .number = s->rank[i].number};
    }
}

static tuck_status look(struct several *s)
{
    tuck_status st = mem_guard(&s->x->mem, do_rows, s) ? TUCK_OK : TUCK_ENOMEM;

    for (uint32_t i = 0; i < s->n && st == TUCK_OK; i++) {
        struct ranks_row *row = &s->x->row[i];
        st = sequence_digest(s, s->rank[i].graph, &row->was);
        row->sequence = row->was;
        s->fact[i] = (struct rank_graph){
            .g = s->rank[i].graph, .number = row->number, .sequence = row->was};
    }
    return st;
}

/* ---- the programs ---- */

/* FILE:LINE has 'NAME' (OPERATOR) */
static void put_place(const struct several *s, uint32_t rank, uint32_t node, struct buf *out)
{
    const tuck_graph *g = s->rank[rank].graph;

    buf_str(out, s->x->row[rank].file);
    if (node == 0) {
        buf_str(out, " ends");
        return;
    }
    const struct fx_node *x = node_at(g, node);
    buf_printf(out, ":%u has '%s'", x->line, graph_str(g, x->name));
    if (x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD)
        buf_printf(out, " (%s)", graph_str(g, x->target));
}

static void do_where(void *arg)
{
    struct several *s = arg;
    tuck_ranks_report *x = s->x;
    const struct rank_programs *p = &x->programs;
    struct buf text;

    x->where[0] = "";
    buf_init(&text, &x->mem);
    for (uint32_t k = 1; k < p->n_program; k++) {
        const struct rank_program *q = &p->program[k];

        text.len = 0;
        if (s->fact[q->first].alone) {
            buf_str(&text, "the decision of its program cannot be applied to it");
        } else if (q->node == 0 && q->node_there == 0) {
            buf_str(&text, "only the bytes of its messages differ");
        } else {
            put_place(s, q->first, q->node, &text);
            buf_str(&text, " where ");
            put_place(s, p->program[0].first, q->node_there, &text);
        }
        x->where[k] = arena_str(&x->arena, text.at, text.len);
    }
    buf_destroy(&text);
}

static void forget_programs(struct several *s)
{
    for (uint32_t k = 0; k < s->x->programs.n_program; k++) {
        tuck_report_free(s->x->report[k]);
        s->x->report[k] = NULL;
        tuck_decision_free(s->decision[k]);
        s->decision[k] = NULL;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        graph_free(s->work[i]);
        s->work[i] = NULL;
    }
    rank_programs_end(&s->x->programs);
    s->x->programs = (struct rank_programs){.n_rank = 0};
}

static tuck_status find_programs(struct several *s)
{
    tuck_status st = rank_programs_find(s->fact, s->n, &s->x->programs);

    if (st == TUCK_OK && !mem_guard(&s->x->mem, do_where, s))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK && s->o.decision_out != NULL && s->x->programs.n_program > 1) {
        diag_add(s->diags, TUCK_ERROR, NOWHERE, s->x->where[1],
                 "a decision is for one program, and these ranks run %u", s->x->programs.n_program);
        st = TUCK_EINVAL;
    }
    for (uint32_t i = 0; i < s->n && st == TUCK_OK; i++) {
        s->work[i] = graph_clone(s->rank[i].graph);
        st = s->work[i] != NULL ? TUCK_OK : TUCK_ENOMEM;
    }
    return st;
}

/* ---- deciding ---- */

static tuck_run_options options_for(const struct several *s, uint32_t program,
                                    tuck_decision **decision)
{
    tuck_run_options o = s->o;

    o.before_out = o.after_out = NULL;
    o.decision_out = decision;
    if (s->x->programs.program[program].meets)
        o.order = TUCK_ORDER_OF_ALL;
    return o;
}

/* *failed: the rank to which the decision of its program cannot be applied; else n. */
static tuck_status decide(struct several *s, uint32_t *failed)
{
    tuck_ranks_report *x = s->x;
    const struct rank_programs *p = &x->programs;
    tuck_status st = TUCK_OK;

    *failed = s->n;
    for (uint32_t k = 0; k < p->n_program && st == TUCK_OK; k++) {
        tuck_run_options o = options_for(s, k, &s->decision[k]);
        st = tuck_graph_optimize(s->work[p->program[k].first], &o, s->diags, NULL, &x->report[k]);
        if (st == TUCK_OK)
            x->report[k]->compared = true;
    }
    for (uint32_t i = 0; i < s->n && st == TUCK_OK; i++) {
        uint32_t k = p->of[i];
        tuck_run_options o = options_for(s, k, NULL);
        o.observe = NULL;
        o.judge = TUCK_JUDGE_NOTHING;
        if (i != p->program[k].first)
            st = tuck_decision_apply(s->decision[k], s->work[i], &o, NULL, NULL);
        if (st == TUCK_EINVAL) {
            *failed = i;
            return TUCK_OK;
        }
    }
    return st;
}

/* Ranks of one program have one sequence, and where programs meet it is that of before. */
static tuck_status check_sequences(struct several *s)
{
    const struct rank_programs *p = &s->x->programs;
    struct ranks_row *row = s->x->row;
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < s->n && st == TUCK_OK; i++) {
        const struct rank_program *q = &p->program[p->of[i]];
        st = sequence_digest(s, s->work[i], &row[i].sequence);
        uint64_t want = q->meets ? row[i].was : row[q->first].sequence;
        if (st == TUCK_OK && row[i].sequence != want) {
            diag_add(s->diags, TUCK_ERROR, NOWHERE, "this is a bug in Tuck: please report it",
                     "%s would have the sequence of communication %016llx, not %016llx",
                     row[i].file, (unsigned long long)row[i].sequence, (unsigned long long)want);
            st = TUCK_EINVAL;
        }
    }
    return st;
}

/* ---- all ranks together ---- */

/* The step of all ranks; -1: they cannot be simulated, or never finish. */
static tuck_status simulate(struct several *s, tuck_graph *const *g, tuck_simulation **e,
                            tuck_rank *rank, int64_t *ps)
{
    tuck_rank_simulation *all = NULL;
    tuck_status st = TUCK_OK;

    *ps = -1;
    for (uint32_t i = 0; i < s->n && st == TUCK_OK; i++) {
        st = tuck_graph_simulate(g[i], s->o.machine, NULL, &e[i]);
        rank[i] = (tuck_rank){e[i], s->rank[i].name, s->rank[i].number};
    }
    if (st == TUCK_OK)
        st = tuck_ranks_simulate(rank, s->n, NULL, s->diags, &all);
    if (st == TUCK_OK)
        *ps = tuck_rank_simulation_step_ps(all);
    tuck_rank_simulation_free(all);
    for (uint32_t i = 0; i < s->n; i++) {
        tuck_simulation_free(e[i]);
        e[i] = NULL;
    }
    return st;
}

struct together_args {
    struct several *s;
    tuck_graph **before;
    tuck_simulation **e;
    tuck_rank *rank;
};

static void do_together(void *arg)
{
    struct together_args *a = arg;
    struct arena *arena = &a->s->x->arena;

    a->before = arena_array(arena, tuck_graph *, a->s->n);
    a->e = arena_zeroed(arena, a->s->n * sizeof(*a->e));
    a->rank = arena_zeroed(arena, a->s->n * sizeof(*a->rank));
    for (uint32_t i = 0; i < a->s->n; i++)
        a->before[i] = a->s->rank[i].graph;
}

static tuck_status judge_together(struct several *s)
{
    tuck_ranks_report *x = s->x;
    struct together_args a = {.s = s};

    if (!mem_guard(&x->mem, do_together, &a))
        return TUCK_ENOMEM;
    tuck_status st = simulate(s, a.before, a.e, a.rank, &x->before_ps);
    if (st == TUCK_OK)
        st = simulate(s, s->work, a.e, a.rank, &x->after_ps);
    if (st != TUCK_OK)
        return st;
    if (x->before_ps >= 0 && x->after_ps < 0) {
        diag_add(s->diags, TUCK_ERROR, NOWHERE, "this is a bug in Tuck: please report it",
                 "the ranks would not finish together, and before they do");
        return TUCK_EINVAL;
    }
    x->slower = x->before_ps >= 0 && x->after_ps > x->before_ps;
    return TUCK_OK;
}

/* ---- the whole ---- */

static tuck_status run(struct several *s)
{
    uint32_t failed = s->n;
    tuck_status st = look(s);

    while (st == TUCK_OK) {
        st = find_programs(s);
        if (st == TUCK_OK)
            st = decide(s, &failed);
        if (st != TUCK_OK || failed == s->n)
            break;
        s->fact[failed].alone = true;
        forget_programs(s);
    }
    if (st == TUCK_OK)
        st = check_sequences(s);
    return st == TUCK_OK ? judge_together(s) : st;
}

static void take(struct several *s)
{
    for (uint32_t i = 0; i < s->n && !s->x->slower; i++)
        graph_swap(s->rank[i].graph, s->work[i]);
    for (uint32_t i = 0; i < s->n && s->x->slower; i++)
        s->x->row[i].sequence = s->x->row[i].was;
    if (s->o.decision_out != NULL) {
        *s->o.decision_out = s->decision[0];
        s->decision[0] = NULL;
    }
}

static bool makes_sense(const tuck_rank_graph *rank, size_t n)
{
    bool ok = rank != NULL && n > 0 && n < UINT32_MAX;

    for (size_t i = 0; i < n && ok; i++)
        ok = rank[i].graph != NULL;
    return ok;
}

tuck_status tuck_ranks_optimize(const tuck_rank_graph *rank, size_t n,
                                const tuck_run_options *options, tuck_diags *diags,
                                tuck_ranks_report **report_out)
{
    struct several s = {.rank = rank, .n = (uint32_t)n, .diags = diags};

    tuck_run_options_init(&s.o);
    if (!makes_sense(rank, n) || options_take(&s.o, sizeof(s.o), options) != TUCK_OK)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &rank[0].graph->store->mem.alloc;
    tuck_ranks_report *x = s.x = alloc->resize(alloc->ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_ranks_report){.before_ps = -1, .after_ps = -1};
    mem_init(&x->mem, alloc);
    arena_init(&x->arena, &x->mem);
    tuck_status st = run(&s);
    if (st == TUCK_OK)
        take(&s);
    for (uint32_t i = 0; s.work != NULL && i < s.n; i++)
        graph_free(s.work[i]);
    for (uint32_t k = 0; s.decision != NULL && k < s.n; k++)
        tuck_decision_free(s.decision[k]);
    if (st == TUCK_OK && report_out != NULL)
        *report_out = x;
    else
        tuck_ranks_report_free(x);
    return st;
}

void tuck_ranks_report_free(tuck_ranks_report *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    for (uint32_t k = 0; x->report != NULL && k < x->programs.n_program; k++)
        tuck_report_free(x->report[k]);
    if (x->programs.n_rank > 0)
        rank_programs_end(&x->programs);
    arena_destroy(&x->arena);
    mem_free(&m, x, sizeof(*x));
}

/* ---- reading it ---- */

size_t tuck_ranks_report_programs(const tuck_ranks_report *x)
{
    return x->programs.n_program;
}

size_t tuck_ranks_report_program(const tuck_ranks_report *x, size_t rank)
{
    return rank < x->programs.n_rank ? x->programs.of[rank] : SIZE_MAX;
}

const tuck_report *tuck_ranks_report_at(const tuck_ranks_report *x, size_t program)
{
    return program < x->programs.n_program ? x->report[program] : NULL;
}

bool tuck_ranks_report_keeps_order(const tuck_ranks_report *x, size_t program)
{
    return program < x->programs.n_program && x->programs.program[program].meets;
}

bool tuck_ranks_report_changed(const tuck_ranks_report *x)
{
    bool changed = false;

    for (uint32_t k = 0; k < x->programs.n_program && !x->slower; k++)
        changed |= x->report[k]->gain.changed;
    return changed;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    struct report_form form = {.times = (how->detail & TUCK_DETAIL_TIMES) != 0,
                               .work = (how->detail & TUCK_DETAIL_STATS) != 0,
                               .brief = how->form == TUCK_PRINT_BRIEF};

    if (how->form == TUCK_PRINT_JSON)
        ranks_report_json(arg, &form, b);
    else
        ranks_report_table(arg, &form, b);
}

tuck_status tuck_ranks_report_print(const tuck_ranks_report *x, const tuck_print_options *how,
                                    tuck_write_fn write, void *ctx)
{
    return x ? api_print(&x->mem.alloc, how, write, ctx, print, x) : TUCK_EINVAL;
}
