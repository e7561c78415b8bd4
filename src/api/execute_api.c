/* Runs on real ranks, in the public interface. */
#include <stdlib.h>

#include "api/api.h"
#include "api/execute_api.h"
#include "report/run_show.h"

void tuck_exec_options_init(tuck_exec_options *o)
{
    *o = (tuck_exec_options){.size = sizeof(*o), .steps = 5, .warmup = 1, .timeout_s = 60};
}

/* ---- the measured timeline ---- */

static int64_t ps_since(int64_t ns, int64_t began)
{
    return ns > began ? (ns - began) * 1000 : 0;
}

/* How long the step stood still is charged to the collective that was the last to be done. */
static void charge(struct evaluation *e, uint32_t wait, int64_t ps)
{
    const struct program *p = e->program;
    uint32_t last = PROGRAM_NONE;

    for (uint32_t k = p->wait_at[wait]; k < p->wait_at[wait + 1]; k++)
        if (last == PROGRAM_NONE || e->span[p->wait[k]].end > e->span[last].end)
            last = p->wait[k];
    if (last != PROGRAM_NONE)
        e->span[last].exposed += ps;
}

static void measure_op(struct evaluation *e, uint32_t i, const struct exec_time *t, int64_t began)
{
    struct program_op *op = &e->program->op[i];
    struct sim_span *s = &e->span[i];

    *s = (struct sim_span){.start = ps_since(t->begin, began),
                           .end = ps_since(t->end, began),
                           .issued = ps_since(t->begin, began),
                           .stood = t->stood * 1000,
                           .held = PROBLEM_NONE};
    if (s->end < s->start)
        s->end = s->start;
    op->algorithm = 0; /* the model's choice, not what ran */
    op->ps = op->kind == PROGRAM_WAIT ? 0 : s->end - s->start;
    e->problem->ps[i] = op->ps;
    if (op->kind == PROGRAM_COLLECTIVE) {
        e->time.comm += op->ps;
        s->exposed = s->stood;
    } else if (op->kind != PROGRAM_WAIT) {
        e->time.compute += op->ps;
    }
    e->time.exposed += s->stood;
}

/* Puts what was measured in the place of what was simulated. */
static void measure(struct evaluation *e, const struct run_note *note, uint32_t side, int64_t ns)
{
    const struct program *p = e->program;

    e->time = (struct sim_result){.makespan = ns * 1000};
    e->slowed = 0;
    e->gaps.n_unknown = 0;
    for (uint32_t i = 0; i < p->n_op; i++)
        measure_op(e, i, &note->side[side].time[i], note->side[side].began);
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_WAIT)
            charge(e, i, e->span[i].stood);
    int64_t rest = e->time.makespan - e->time.compute - e->time.exposed;
    e->time.launch = rest > 0 ? rest : 0;
}

struct bounding {
    struct evaluation *e;
};

/* The bound for these collectives at their measured times, in any order. */
static void do_bound(void *arg)
{
    struct evaluation *e = ((struct bounding *)arg)->e;
    struct bound_options o = {.memory = e->peak};

    bound_of(e->problem, &o, &e->arena, &e->order);
    e->any = e->order;
    e->has_bounds = e->has_order = true;
}

static int by_value(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;

    return (a > b) - (a < b);
}

static int64_t median(struct run_plan *plan, uint32_t side)
{
    uint32_t n = plan->o->steps;
    int64_t *sorted = arena_array(&plan->arena, int64_t, (size_t)n + 1);

    memcpy(sorted, plan->note->side[side].step_ns, n * sizeof(*sorted));
    qsort(sorted, n, sizeof(*sorted), by_value);
    return sorted[n / 2];
}

struct timing {
    struct run_plan *plan;
    uint32_t side;
    tuck_hint *hint;
    int64_t ns;
};

static void do_hints(void *arg)
{
    struct timing *t = arg;
    const struct run_rank *r = &t->plan->side[t->side].rank[0];

    t->hint = arena_array(&t->plan->arena, tuck_hint, (size_t)r->n_hint + 1);
    for (uint32_t i = 0; i < r->n_hint; i++)
        t->hint[i] = (tuck_hint){graph_str(r->g, r->hint[i].symbol), r->hint[i].value};
    t->ns = median(t->plan, t->side);
}

static tuck_status evaluate_again(tuck_simulation *s, const struct run_rank *r, tuck_diags *diags)
{
    struct evaluate_options o;
    struct study study;

    evaluate_defaults(&o, &s->given->machine);
    o.lower.keep = r->keep;
    o.lower.n_keep = r->n_keep;
    o.lower.to_run = true;
    study_begin(&study, &o, &s->mem.alloc);
    tuck_status st = study_get(&study, s->g, diags, &s->e);
    study_end(&study);
    return st;
}

static tuck_status make_timeline(tuck_execution *x, uint32_t side, tuck_diags *diags)
{
    struct run_plan *plan = &x->plan;
    const struct run_rank *r = &plan->side[side].rank[0];
    struct timing t = {.plan = plan, .side = side};
    tuck_machine m;

    if (!mem_guard(&plan->mem, do_hints, &t))
        return TUCK_ENOMEM;
    tuck_machine_init(&m);
    m.hints = t.hint;
    m.n_hints = r->n_hint;
    tuck_simulation *s = NULL;
    tuck_status st = simulation_begin(r->g, &m, diags, &s);
    if (st == TUCK_OK)
        st = evaluate_again(s, r, diags);
    if (st == TUCK_OK && s->e->program->n_op != r->p->n_op)
        st = TUCK_EINVAL;
    if (st == TUCK_OK) {
        struct bounding b = {s->e};
        measure(s->e, plan->note, side, t.ns);
        st = mem_guard(&s->e->mem, do_bound, &b) ? TUCK_OK : TUCK_ENOMEM;
    }
    if (st == TUCK_OK)
        x->timeline = s;
    else
        tuck_simulation_free(s);
    return st;
}

/* ---- running ---- */

static tuck_status take_options(tuck_execution *x, const tuck_exec_options *o, tuck_diags *diags)
{
    tuck_exec_options_init(&x->o);
    tuck_status st = options_take(&x->o, sizeof(x->o), o);

    if (st == TUCK_OK && (x->o.steps == 0 || x->o.ranks < 0 || x->o.timeout_s < 0)) {
        diag_add(diags, TUCK_ERROR, NOWHERE, NULL, "there must be at least one step and one rank");
        st = TUCK_EINVAL;
    }
    return st;
}

tuck_execution *execution_new(const tuck_graph *g)
{
    struct mem m;

    mem_init(&m, &g->store->mem.alloc);
    tuck_execution *x = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*x));
    if (x != NULL) {
        *x = (tuck_execution){.timeline = NULL};
        mem_init(&x->mem, &g->store->mem.alloc);
        arena_init(&x->plan.arena, &x->mem);
    }
    return x;
}

tuck_status execution_run(tuck_execution *x, tuck_graph *const *const side[], uint32_t n_side,
                          size_t n, const tuck_exec_options *o, tuck_diags *diags)
{
    tuck_status st = take_options(x, o, diags);

    if (st == TUCK_OK)
        st = run_begin(&x->plan, side, n_side, n, &x->o, diags);
    return st == TUCK_OK ? run_go(&x->plan) : st;
}

tuck_status tuck_ranks_execute(tuck_graph *const *graphs, size_t n,
                               const tuck_exec_options *options, tuck_diags *diags,
                               tuck_execution **out)
{
    tuck_graph *const *const side[] = {graphs};

    if (graphs == NULL || n == 0 || out == NULL)
        return TUCK_EINVAL;
    tuck_execution *x = execution_new(graphs[0]);
    if (x == NULL)
        return TUCK_ENOMEM;
    tuck_status st = execution_run(x, side, 1, n, options, diags);
    if (st == TUCK_OK && x->plan.note->speaks)
        st = make_timeline(x, 0, diags);
    if (st == TUCK_OK)
        *out = x;
    else
        tuck_execution_free(x);
    return st;
}

void tuck_execution_free(tuck_execution *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    tuck_simulation_free(x->timeline);
    run_end(&x->plan);
    mem_free(&m, x, sizeof(*x));
}

bool tuck_execution_speaks(const tuck_execution *x)
{
    return x->timeline != NULL;
}

int64_t tuck_execution_ranks(const tuck_execution *x)
{
    return x->plan.world;
}

uint32_t tuck_execution_step_count(const tuck_execution *x)
{
    return x->o.steps;
}

int64_t tuck_execution_step_ns(const tuck_execution *x, uint32_t step)
{
    return step < x->o.steps ? x->plan.note->side[0].step_ns[step] : -1;
}

void tuck_execution_memory(const tuck_execution *x, tuck_exec_memory *out)
{
    const struct exec_memory *m = &x->plan.note->side[0].memory;

    *out = (tuck_exec_memory){.arena_bytes = m->arena,
                              .peak_bytes = x->plan.side[0].rank[0].p->peak,
                              .input_bytes = m->inputs,
                              .scratch_bytes = m->scratch,
                              .grown_bytes = m->grown,
                              .planned_bytes = m->planned,
                              .touched_bytes = m->touched,
                              .highest_byte = m->highest,
                              .allocations = m->allocations};
}

tuck_status tuck_execution_timeline(const tuck_execution *x, tuck_simulation **out)
{
    const tuck_simulation *s = x->timeline;

    return s != NULL ? simulation_of(s->given, s->g, s->e, out) : TUCK_EINVAL;
}

static const char *transport_of(const tuck_execution *x)
{
    return x->o.transport != NULL ? x->o.transport : x->plan.transport;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_execution *x = arg;
    bool timeline = (how->detail & TUCK_DETAIL_TIMELINE) != 0;
    struct run_show r = {.e = x->timeline->e,
                         .ranks = x->plan.world,
                         .transport = transport_of(x),
                         .step_ns = x->plan.note->side[0].step_ns,
                         .n_step = x->o.steps};

    tuck_execution_memory(x, &r.memory);
    if (how->form == TUCK_PRINT_JSON)
        run_json(&r, timeline, b);
    else
        run_table(&r, api_top(how, 10), timeline, b);
}

tuck_status tuck_execution_print(const tuck_execution *x, const tuck_print_options *how,
                                 tuck_write_fn write, void *ctx)
{
    return x != NULL && x->timeline != NULL ? api_print(&x->mem.alloc, how, write, ctx, print, x)
                                            : TUCK_EINVAL;
}
