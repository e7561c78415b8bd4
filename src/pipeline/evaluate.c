#include "pipeline/evaluate.h"

#include "memory/plan.h"
#include "pipeline/facts.h"
#include "problem/from_program.h"

void evaluate_defaults(struct evaluate_options *o)
{
    *o = (struct evaluate_options){.bandwidth = 1};
    lower_defaults(&o->lower);
}

/* ---- the free bound: what no pass can take away ---- */

/* Loops may be joined to others and copies may go, however the graph is rewritten: only what they write for
 * kernels that are no loops, for collectives and for the caller has to be written. */
static bool may_vanish(const struct program_op *op)
{
    return op->kind == PROGRAM_FUSED || op->kind == PROGRAM_COPY || (op->flags & PROGRAM_LOOP);
}

static int64_t must_be_written(const struct program *p, struct arena *a)
{
    bool *read = arena_zeroed(a, p->n_buf * sizeof(*read)); /* by something that stays */
    int64_t bytes = 0;

    for (uint32_t op = 0; op < p->n_op; op++)
        for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
            if (p->use[i].how != PROGRAM_WRITES && !may_vanish(&p->op[op]) &&
                p->op[op].kind != PROGRAM_WAIT)
                read[p->use[i].buf] = true;
    for (uint32_t i = 0; i < p->n_buf; i++) {
        uint32_t by = p->buf[i].producer;
        bool needed = read[i] || (p->buf[i].flags & PROGRAM_OUTPUT);
        if (needed && by != PROGRAM_NONE && may_vanish(&p->op[by]) &&
            p->op[by].kind != PROGRAM_COPY)
            bytes += p->buf[i].bytes;
    }
    return bytes;
}

/* Collectives of one kind on one group. */
enum { KINDS = TUCK_SHARD_DIM_ALLTOALL + 1 };

/* The best rate in us per byte that any message on a group has; asked once, for it is costly. */
static double rate_of(const struct evaluate_options *o, struct cost_shape shape, tuck_coll coll,
                      int64_t total, double *known)
{
    if (*known < 0) {
        struct cost_choice how = o->cost.collective;
        how.symmetric = how.hierarchical = true;
        *known = cost_best_rate(o->cluster, shape, coll, total, &how) / o->bandwidth;
    }
    return *known;
}

struct args {
    tuck_graph *g;
    const struct evaluate_options *o;
    struct evaluation *e;
};

/* By op: its time where everything that could be better is. */
static int64_t *least_times(struct args *x)
{
    struct evaluation *e = x->e;
    const struct program *p = e->program;
    const struct evaluate_options *o = x->o;
    int64_t *ps = arena_zeroed(&e->arena, p->n_op * sizeof(*ps));
    int64_t *total = arena_zeroed(&e->arena, ((size_t)p->n_group + 1) * sizeof(*total));
    double *rate = arena_array(&e->arena, double, ((size_t)p->n_group + 1) * KINDS);

    for (size_t i = 0; i < ((size_t)p->n_group + 1) * KINDS; i++)
        rate[i] = -1;
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].group != PROGRAM_NONE && p->op[i].message > 0)
            total[p->op[i].group] += p->op[i].message;
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        int64_t own = problem_ps(e->problem, i);
        tuck_coll coll = op->coll ? tuck_coll_by_name(program_str(p, op->coll)) : 0;

        if (op->kind != PROGRAM_COLLECTIVE) {
            ps[i] = may_vanish(op) ? 0 : own;
        } else if (coll != 0 && op->group != PROGRAM_NONE && op->message > 0) {
            /* Groups that only nested graphs name stand behind those of the graph. */
            bool own_group = op->group < x->g->group.len;
            const struct program_group *g = &p->group[op->group];
            struct cost_shape shape = shape_of_group(o->cluster, program_str(p, g->name), g->size,
                                                     own_group ? x->g->group.at[op->group].ranks
                                                               : NULL);
            double us = rate_of(o, shape, coll, total[op->group],
                                &rate[(size_t)op->group * KINDS + (size_t)coll]) *
                        (double)op->message;
            ps[i] = cost_ps(us) < own ? cost_ps(us) : own;
        }
    }
    return ps;
}

static void free_bound(struct args *x, struct bound_options bo)
{
    struct evaluation *e = x->e;
    const struct program *p = e->program;
    const struct evaluate_options *o = x->o;
    enum cost_bound ignored;
    int64_t bytes = must_be_written(p, &e->arena);
    /* The least a kernel takes is not part of it: a thousand small ones may be one. */
    double small = cost_kernel_ns(o->cluster, DTYPE_NONE, 0, 0, &ignored);
    double ns = cost_kernel_ns(o->cluster, DTYPE_NONE, 0, (double)bytes, &ignored) - small;
    bo.ps = least_times(x);
    bo.launch_ps = 0;
    bo.more_compute_ps = ns > 0 ? cost_ps(ns / 1000) : 0;
    bo.memory = 0; /* other orders and buckets hold other buffers */
    bound_of(e->problem, &bo, &e->arena, &e->any);
}

/* A rank by itself, whose collectives and kernels stand in each other's way. */
static void with_contention(struct args *x, int64_t launch_ps)
{
    struct evaluation *e = x->e;
    struct facts facts;
    struct sim_rank_result result;
    struct sim_fault fault;
    int64_t *ps = arena_array(&e->arena, int64_t, e->problem->n_op);

    facts_of(x->g, e->program, e->problem, x->o, &e->arena, &facts);
    for (uint32_t i = 0; i < e->problem->n_op; i++)
        ps[i] = problem_ps(e->problem, i);
    struct sim_rank rank = {.p = e->problem, .ps = ps, .call = facts.call, .cls = facts.cls};
    struct sim_job job = {.n_rank = 1, .rank = &rank, .launch_ps = launch_ps, .contention = true};
    job.slow = facts_slow(x->o->cluster, &e->arena, &job.n_kind);
    sim_ranks(&job, &e->arena, &result, &e->span, &fault); /* nobody else, so nothing gets stuck */
    e->time = result.time;
    e->slowed = result.slowed;
}

static void do_evaluate(void *arg)
{
    struct args *x = arg;
    struct evaluation *e = x->e;
    struct sim sim;
    struct sim_options so = {.launch_ps = cost_ps(x->o->cluster->launch_us)};
    struct memory_life *life = arena_array(&e->arena, struct memory_life, e->program->n_buf);
    struct memory_peak peak;

    memory_lives(e->program, NULL, life);
    memory_peak(e->program, NULL, life, &e->arena, &peak);
    e->peak = peak.peak;
    e->resident = peak.resident;
    e->span = arena_zeroed(&e->arena, e->problem->n_op * sizeof(*e->span));
    if (x->o->contention) {
        with_contention(x, so.launch_ps);
    } else {
        sim_init(&sim, e->problem, &so, &e->arena);
        sim_run(&sim, NULL, &e->time, e->span);
    }
    if (x->o->no_bounds)
        return;
    struct bound_options bo = {.launch_ps = so.launch_ps,
                               .memory = x->o->memory_limit ? x->o->memory_limit : e->peak};
    bound_of(e->problem, &bo, &e->arena, &e->order);
    free_bound(x, bo);
}

/* Faster or slower links: every collective in proportion. */
static void scale_links(struct program *p, double bandwidth)
{
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE && p->op[i].ns > 0)
            p->op[i].ns /= bandwidth;
}

tuck_status evaluate_graph(tuck_graph *g, const struct evaluate_options *o, tuck_diags *diags,
                           struct evaluation *e)
{
    struct lower_options lower = o->lower;
    struct args x = {g, o, e};

    *e = (struct evaluation){.program = NULL};
    mem_init(&e->mem, &g->store->mem.alloc);
    arena_init(&e->arena, &e->mem);
    lower.hint = o->hint;
    lower.n_hint = o->n_hint;
    tuck_status st = lower_graph(g, &lower, diags, &e->program);
    if (st == TUCK_OK)
        st = lower_estimate(e->program, g, o->cluster, &o->cost, o->hint, o->n_hint);
    if (st == TUCK_OK && o->bandwidth != 1)
        scale_links(e->program, o->bandwidth);
    if (st == TUCK_OK)
        st = problem_of_program(e->program, diags, &e->problem);
    if (st == TUCK_OK && !mem_guard(&e->mem, do_evaluate, &x))
        st = TUCK_ENOMEM;
    return st;
}

void evaluate_end(struct evaluation *e)
{
    problem_free(e->problem);
    program_free(e->program);
    arena_destroy(&e->arena);
    *e = (struct evaluation){.program = NULL};
}

double evaluation_gap(const struct evaluation *e)
{
    return e->any.ps > 0 ? (double)e->time.makespan / (double)e->any.ps - 1 : 0;
}
