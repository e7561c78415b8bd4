#include "api/simulate_api.h"

#include "api/api.h"
#include "lower/gaps.h"
#include "study/judge.h"

/* ---- creating ---- */

static tuck_simulation *new_simulation(tuck_graph *g)
{
    const tuck_allocator *alloc = &g->store->mem.alloc;
    tuck_simulation *s = alloc->resize(alloc->ctx, NULL, 0, sizeof(*s));

    if (s == NULL)
        return NULL;
    *s = (tuck_simulation){.g = g};
    mem_init(&s->mem, alloc);
    return s;
}

tuck_status simulation_begin(tuck_graph *g, const tuck_machine *m, tuck_diags *diags,
                             tuck_simulation **out)
{
    tuck_simulation *s = *out = new_simulation(g);

    if (s == NULL)
        return TUCK_ENOMEM;
    tuck_status st = machine_take(m, g, MACHINE_TIMES, diags, &s->given);
    return st == TUCK_OK ? tuck_graph_assumptions(g, s->given->machine.cluster, &s->assumptions)
                         : st;
}

tuck_status simulation_of(struct given_machine *given, tuck_graph *g, struct evaluation *e,
                          tuck_simulation **out)
{
    tuck_simulation *s = new_simulation(g);

    if (s == NULL)
        return TUCK_ENOMEM;
    s->given = given;
    given->refs++;
    s->e = e;
    e->refs++;
    tuck_status st = tuck_graph_assumptions(g, given->machine.cluster, &s->assumptions);
    if (st == TUCK_OK)
        *out = s;
    else
        tuck_simulation_free(s);
    return st;
}

tuck_status simulation_fill(tuck_simulation *s, struct study *study, tuck_diags *diags)
{
    tuck_status st = s->e ? TUCK_OK : study_get(study, s->g, diags, &s->e);

    if (st == TUCK_OK)
        st = study_bounds(study, s->g, s->e);
    return st == TUCK_OK ? gaps_tell(s->e->program, s->given->machine.strict, diags) : st;
}

tuck_status tuck_graph_simulate(tuck_graph *g, const tuck_machine *m, tuck_diags *diags,
                                tuck_simulation **out)
{
    struct evaluate_options o;
    struct study study;
    tuck_simulation *s;

    if (g == NULL || out == NULL)
        return TUCK_EINVAL;
    tuck_status st = simulation_begin(g, m, diags, &s);
    if (st == TUCK_OK) {
        evaluate_defaults(&o, &s->given->machine);
        study_begin(&study, &o, &s->mem.alloc);
        st = simulation_fill(s, &study, diags);
        study_end(&study);
    }
    if (st == TUCK_OK)
        *out = s;
    else
        tuck_simulation_free(s);
    return st;
}

void tuck_simulation_free(tuck_simulation *s)
{
    if (s == NULL)
        return;
    struct mem m = s->mem;
    study_give_back(s->e);
    tuck_assumptions_free(s->assumptions);
    machine_drop(s->given);
    graph_free(s->own);
    mem_free(&m, s, sizeof(*s));
}

/* ---- reading ---- */

void tuck_simulation_times(const tuck_simulation *s, tuck_times *out)
{
    judge_times(s->e, out);
}

void tuck_simulation_bound(const tuck_simulation *s, tuck_bound *out)
{
    const struct evaluation *e = s->e;

    *out = (tuck_bound){
        .any_ps = -1, .order_ps = -1, .any_kind = "", .any_meaning = "", .order_kind = ""};
    if (!evaluation_is_bounded(e))
        return;
    *out = (tuck_bound){.any_ps = e->any.ps,
                        .order_ps = e->order.ps,
                        .any_kind = bound_name(e->any.kind),
                        .any_meaning = evaluation_meaning(e),
                        .order_kind = bound_name(e->order.kind)};
}

uint32_t tuck_simulation_op_count(const tuck_simulation *s)
{
    return s->e->program->n_op;
}

bool tuck_simulation_op(const tuck_simulation *s, uint32_t i, tuck_sim_op *out)
{
    const struct program *p = s->e->program;

    if (out == NULL || i >= p->n_op)
        return false;
    const struct program_op *op = &p->op[i];
    const struct sim_span *span = &s->e->span[i];
    bool coll = op->kind == PROGRAM_COLLECTIVE;
    *out = (tuck_sim_op){.name = program_str(p, op->name),
                         .kind = program_kind_name[op->kind],
                         .group = "",
                         .coll = coll ? tuck_coll_name((tuck_coll)op->coll) : "",
                         .algorithm = coll ? program_str(p, op->algorithm) : "",
                         .bytes = coll ? op->message : -1,
                         .start_ps = span->start,
                         .end_ps = span->end,
                         .exposed_ps = span->exposed};
    if (coll && op->group != PROGRAM_NONE)
        out->group = program_str(p, p->group[op->group].name);
    return true;
}

uint32_t tuck_simulation_unknown(const tuck_simulation *s)
{
    return s->e->gaps.n_unknown;
}

const tuck_cluster *tuck_simulation_cluster(const tuck_simulation *s)
{
    return s->given->machine.cluster;
}

const tuck_assumptions *tuck_simulation_assumptions(const tuck_simulation *s)
{
    return s->assumptions;
}

/* ---- printing ---- */

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_simulation *s = arg;
    bool timeline = (how->detail & TUCK_DETAIL_TIMELINE) != 0;

    if (how->form == TUCK_PRINT_JSON)
        evaluation_json(s->e, timeline, b);
    else
        evaluation_table(s->e, api_top(how, 10), timeline, b);
}

tuck_status tuck_simulation_print(const tuck_simulation *s, const tuck_print_options *how,
                                  tuck_write_fn write, void *ctx)
{
    return s ? api_print(&s->mem.alloc, how, write, ctx, print, s) : TUCK_EINVAL;
}
