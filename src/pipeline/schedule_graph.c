#include "pipeline/schedule_graph.h"

#include "pipeline/evaluate.h"
#include "problem/from_program.h"
#include "schedule/schedule.h"

/* A graph as a pass on schedules sees it. */
struct lowered {
    struct program *program;
    struct problem *problem;
    struct program_times times;
};

struct step_args {
    struct pass_run *r;
    const struct schedule_graph *c;
    const struct schedule_options *options;
    struct lowered was, is; /* before the pass, and in the order that it found */
    struct schedule schedule;
    const char *kept; /* why the graph stays as it was, or NULL */
};

/* ---- lowering ---- */

struct times_args {
    struct step_args *x;
    struct lowered *l;
};

static void do_times(void *arg)
{
    struct times_args *t = arg;

    evaluate_program(t->l->program, t->l->problem, t->x->c->cluster, &t->x->r->arena, &t->l->times);
}

static tuck_status lower(struct step_args *x, struct lowered *l)
{
    struct pass_run *r = x->r;
    struct lower_options o = x->c->lower;
    struct times_args t = {x, l};

    o.hint = r->assume.given;
    o.n_hint = r->assume.n_given;
    tuck_status st = lower_graph(r->g, &o, r->diags, &l->program);
    if (st == TUCK_OK)
        st = lower_estimate(l->program, r->g, x->c->cluster, &x->c->cost, o.hint, o.n_hint);
    if (st == TUCK_OK)
        st = problem_of_program(l->program, r->diags, &l->problem);
    if (st == TUCK_OK && !mem_guard(r->mem, do_times, &t))
        st = TUCK_ENOMEM;
    return st;
}

static void lowered_free(struct lowered *l)
{
    problem_free(l->problem);
    program_free(l->program);
}

/* ---- the report ---- */

static const char *op_name(const struct problem *p, uint32_t op)
{
    return op == PROBLEM_NONE ? "" : problem_name(p, op);
}

static void report_stats(const struct step_args *x, const struct schedule_report *s)
{
    const struct problem *p = x->was.problem;
    double ns = problem_unit_ns(p);

    for (uint32_t i = 0; i < s->n_stat; i++) {
        const struct schedule_stat *t = &s->stat[i];
        struct report_move m = {.node = problem_name(p, t->op),
                                .moves = t->moves,
                                .grouped = t->grouped,
                                .comm = t->comm_time * ns,
                                .comp = t->comp_time * ns,
                                .exposed_before = t->initial_exposed * ns,
                                .exposed_after = t->final_exposed * ns,
                                .limit = schedule_limit_name(t->limit),
                                .limit_node = op_name(p, t->limit_op)};

        report_move(x->r->report, &m);
    }
}

/* Times and memory are those of the graph, lowered again. */
static void do_report(void *arg)
{
    struct step_args *x = arg;
    struct pass_report *out = x->r->report;
    const struct program_times *was = &x->was.times, *is = x->r->changed ? &x->is.times : was;

    for (uint32_t k = 0; k < x->schedule.report.len; k++) {
        const struct schedule_report *s = &x->schedule.report.at[k];

        report_count(out, "ops moved", x->r->changed ? s->displaced : 0);
        if (s->note != NULL)
            report_note(out, "%s", s->note);
        if (x->kept != NULL)
            report_note(out, "%s", x->kept);
        out->scheduled = true;
        out->exposed_before = was->exposed;
        out->exposed_after = is->exposed;
        out->peak_before = was->peak;
        out->peak_after = is->peak;
        report_stats(x, s);
    }
}

/* ---- the order ---- */

static bool moved(const struct schedule *s)
{
    for (uint32_t i = 0; i < s->p->n_op; i++)
        if (s->order[i] != i)
            return true;
    return false;
}

static void do_apply(void *arg)
{
    struct step_args *x = arg;

    lower_apply(x->r->g, x->was.program, x->schedule.order, &x->r->arena);
}

/* What a pass promised of the order of ops must hold for the text: which copies a collective needs, and how long a
 * buffer is held, depends on the order of nodes. */
static const char *objection(const struct step_args *x)
{
    const struct program_times *was = &x->was.times, *is = &x->is.times;
    int64_t allowance = 0;

    for (uint32_t k = 0; k < x->schedule.report.len; k++)
        if (x->schedule.report.at[k].allowance > allowance)
            allowance = x->schedule.report.at[k].allowance;
    if (is->peak - was->peak > allowance)
        return "kept: the graph in that order would need more memory than the budget allows";
    if (x->options->allow_more_exposed)
        return NULL;
    if (is->exposed > was->exposed)
        return "kept: the graph in that order would expose more communication";
    if (is->step > was->step)
        return "kept: the graph in that order would be slower";
    return NULL;
}

static tuck_status take_order(struct step_args *x)
{
    if (!mem_guard(x->r->mem, do_apply, x))
        return TUCK_ENOMEM;
    tuck_status st = lower(x, &x->is);
    if (st == TUCK_OK)
        x->kept = objection(x);
    x->r->changed = x->kept == NULL; /* if not, the runner drops this copy of the graph */
    return st;
}

static tuck_status order_graph(struct step_args *x, const struct pipeline_step *step)
{
    struct schedule_options defaults;

    schedule_defaults(&defaults, false);
    if (!schedule_begin(&x->schedule, x->was.problem, &defaults))
        return TUCK_ENOMEM;
    x->r->schedule = &x->schedule;
    tuck_status st = step->pass->run(x->r, x->options);
    x->r->schedule = NULL;
    if (st == TUCK_OK && moved(&x->schedule))
        st = take_order(x);
    if (st == TUCK_OK && !mem_guard(&x->r->report->all->mem, do_report, x))
        st = TUCK_ENOMEM;
    schedule_end(&x->schedule);
    return st;
}

tuck_status schedule_graph_step(void *ctx, struct pass_run *r, const struct pipeline_step *step)
{
    struct step_args x = {.r = r, .c = ctx, .options = step->options};
    tuck_status st = lower(&x, &x.was);

    if (st == TUCK_OK)
        st = order_graph(&x, step);
    lowered_free(&x.was);
    lowered_free(&x.is);
    return st;
}
