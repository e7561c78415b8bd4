#include "study/evaluate.h"

#include "plan/arena_plan.h"
#include "study/rank_input.h"
#include "plan/from_program.h"

void evaluate_defaults(struct evaluate_options *o, const struct machine *m)
{
    *o = (struct evaluate_options){.machine = m};
    lower_defaults(&o->lower);
}

struct args {
    const tuck_graph *g;
    const struct evaluate_options *o;
    struct evaluation *e;
    struct cost_run *run; /* for bounds */
    bool all;             /* also the bound that few ask for */
};

/* A single rank whose collectives and kernels slow each other down. */
static struct sim_rank_result with_contention(const struct args *x, struct sim_span *span)
{
    struct evaluation *e = x->e;
    struct facts facts;
    struct sim_rank_result result;
    struct sim_fault fault;
    int64_t launch_ps = x->o->machine->cluster->launch_ps;
    int64_t *ps = arena_array(&e->arena, int64_t, e->problem->n_op);

    facts_of(x->g, e->program, e->problem, x->o->machine, &e->arena, &facts);
    for (uint32_t i = 0; i < e->problem->n_op; i++)
        ps[i] = e->problem->ps[i];
    struct sim_rank rank = {.p = e->problem, .ps = ps, .call = facts.call, .cls = facts.cls};
    struct sim_job job = {.n_rank = 1, .rank = &rank, .launch_ps = launch_ps, .contention = true};
    facts_slow(x->o->machine->cluster, &e->arena, &job);
    /* there is no other rank, so nothing can hang */
    sim_ranks(&job, &e->arena, &result, &span, &fault);
    return result;
}

static void do_evaluate(void *arg)
{
    struct args *x = arg;
    struct evaluation *e = x->e;
    struct sim sim;
    struct sim_options so = {.launch_ps = x->o->machine->cluster->launch_ps};
    struct memory_peak peak;

    e->gaps = gaps_of(e->program);
    e->n_assumed = cost_assumed_find(x->g, x->o->machine->cluster, &e->arena, &e->assumed);
    e->span = arena_zeroed(&e->arena, e->problem->n_op * sizeof(*e->span));
    struct arena_mark mark = arena_mark(
        &e->arena); /* many evaluations are kept, but not the rest */
    struct life *life = arena_array(&e->arena, struct life, e->program->n_buf);
    memory_lives(e->program, NULL, life);
    memory_peak(e->program, NULL, life, &e->arena, &peak);
    e->peak = peak.peak;
    e->resident = peak.resident;
    if (x->o->machine->contention) {
        struct sim_rank_result r = with_contention(x, e->span);
        e->time = r.time;
        e->slowed = r.slowed;
    } else {
        sim_init(&sim, e->problem, &so, &e->arena);
        sim_run(&sim, NULL, &e->time, e->span);
    }
    e->flight = sim_held(e->problem, e->span);
    arena_release(&e->arena, mark);
}

struct contended {
    struct args x;
    int64_t ps;
};

static void do_contended(void *arg)
{
    struct contended *c = arg;
    struct evaluation *e = c->x.e;
    struct arena_mark mark = arena_mark(&e->arena);
    struct sim_span *span = arena_zeroed(&e->arena, e->problem->n_op * sizeof(*span));

    c->ps = with_contention(&c->x, span).time.makespan;
    arena_release(&e->arena, mark);
}

tuck_status evaluate_contended(const tuck_graph *g, const struct evaluate_options *o,
                               struct evaluation *e, int64_t *ps)
{
    struct contended c = {.x = {.g = g, .o = o, .e = e}};

    if (!mem_guard(&e->mem, do_contended, &c))
        return TUCK_ENOMEM;
    *ps = c.ps;
    return TUCK_OK;
}

static bool stands_for_collectives(const struct evaluation *e);

/* With today's collectives, too: may only the compute limit the step? */
static bool asks_for_order(const struct evaluation *e)
{
    return !e->any.weak && e->any.kind == BOUND_BY_COMPUTE && e->time.exposed != 0 &&
           !stands_for_collectives(e);
}

static void do_bounds(void *arg)
{
    struct args *x = arg;
    struct evaluation *e = x->e;
    struct bound_options bo = {.launch_ps = x->o->machine->cluster->launch_ps,
                               .memory = x->o->memory_limit ? x->o->memory_limit : e->peak};

    if (!e->has_bounds)
        evaluate_free_bound(x->g, x->o->machine, x->run, e);
    e->has_bounds = true;
    if (!e->has_order && (x->all || asks_for_order(e))) {
        bound_of(e->problem, &bo, &e->arena, &e->order);
        e->has_order = true;
    }
}

tuck_status evaluate_bounds(const tuck_graph *g, const struct evaluate_options *o, bool all,
                            struct evaluation *e)
{
    struct cost_run run;
    struct assume assume = machine_symbols(o->machine, g->store);
    struct args x = {g, o, e, &run, all};

    if (!evaluation_is_bounded(e))
        return TUCK_OK;
    cost_run_init(&run, &e->mem, o->machine->cluster, &o->machine->cost, &assume);
    bool ok = mem_guard(&e->mem, do_bounds, &x);
    cost_run_done(&run);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}

/* Faster or slower links scale every collective. */
static void scale_links(struct program *p, double bandwidth)
{
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE && p->op[i].ps > 0)
            p->op[i].ps = ps_round((double)p->op[i].ps / bandwidth);
}

tuck_status evaluate_lower(tuck_graph *g, const struct lower_options *o, struct machine *m,
                           tuck_diags *diags, struct program **out)
{
    struct lower_options lower = *o;
    struct program *p = NULL;

    lower.machine = m;
    tuck_status st = lower_graph(g, &lower, diags, &p);
    if (st == TUCK_OK && m->cluster != NULL)
        st = laws_fit(m, g);
    if (st == TUCK_OK && m->cluster != NULL)
        st = lower_estimate(p, g, m);
    if (st != TUCK_OK) {
        program_free(p);
        return st;
    }
    if (m->bandwidth != 1)
        scale_links(p, m->bandwidth);
    *out = p;
    return TUCK_OK;
}

tuck_status evaluate_graph(tuck_graph *g, const struct evaluate_options *o, tuck_diags *diags,
                           struct evaluation *e)
{
    struct args x = {.g = g, .o = o, .e = e};

    *e = (struct evaluation){.program = NULL};
    mem_init(&e->mem, &g->store->mem.alloc);
    arena_init(&e->arena, &e->mem);
    struct machine machine = *o->machine;
    tuck_status st = evaluate_lower(g, &o->lower, &machine, diags, &e->program);
    e->laws = machine.cost.laws;
    if (st == TUCK_OK)
        st = gaps_check(e->program, diags);
    if (st == TUCK_OK)
        st = problem_of_program(e->program, diags, &e->problem);
    if (st == TUCK_OK && !mem_guard(&e->mem, do_evaluate, &x))
        st = TUCK_ENOMEM;
    return st == TUCK_OK && !o->no_bounds ? evaluate_bounds(g, o, true, e) : st;
}

void evaluate_end(struct evaluation *e)
{
    problem_free(e->problem);
    program_free(e->program);
    arena_destroy(&e->arena);
    *e = (struct evaluation){.program = NULL};
}

bool evaluation_communicates(const struct evaluation *e)
{
    for (uint32_t i = 0; i < e->program->n_op; i++)
        if (e->program->op[i].kind == PROGRAM_COLLECTIVE)
            return true;
    return false;
}

/* Are there collectives that block compute: synchronous ones, or those in nested graphs? */
static bool stands_for_collectives(const struct evaluation *e)
{
    for (uint32_t i = 0; i < e->program->n_op; i++) {
        const struct program_op *op = &e->program->op[i];
        bool waits = !(op->flags & PROGRAM_ASYNC) || e->program->on_cores;
        if (op->kind == PROGRAM_COLLECTIVE && waits && op->ps > 0)
            return true;
    }
    return false;
}

const char *evaluation_meaning(const struct evaluation *e)
{
    if (e->any.weak)
        return "the longest chain or the busiest stream takes that long; among so many ops what "
               "must come before and after each is not added up, so the true limit may be higher";
    if (e->any.kind != BOUND_BY_COMPUTE)
        return bound_meaning(e->any.kind);
    if (!evaluation_communicates(e))
        return "the compute itself takes that long; there is no communication";
    if (stands_for_collectives(e))
        return "the compute, and collectives that it waits for, take that long";
    if (e->time.exposed == 0)
        return "the compute itself takes that long: all communication is hidden";
    /* With today's collectives, too, only the compute limits the step. */
    return e->order.kind == BOUND_BY_COMPUTE
               ? "the compute itself takes that long: all communication could be hidden"
               : "the compute itself takes that long";
}

double evaluation_gap(const struct evaluation *e)
{
    return e->any.ps > 0 ? (double)e->time.makespan / (double)e->any.ps - 1 : 0;
}
