#include "pipeline/schedule_graph.h"

#include "problem/from_program.h"
#include "schedule/schedule.h"

struct step_args {
    struct pass_run *r;
    struct program *program;
    struct problem *problem;
    struct schedule schedule;
};

static void do_apply(void *arg)
{
    struct step_args *x = arg;

    lower_apply(x->r->g, x->program, x->schedule.order, &x->r->arena);
}

static const char *op_name(const struct problem *p, uint32_t op)
{
    return op == PROBLEM_NONE ? "" : problem_name(p, op);
}

static void do_report(void *arg)
{
    struct step_args *x = arg;
    struct pass_report *out = x->r->report;
    double ns = problem_unit_ns(x->problem);

    for (uint32_t k = 0; k < x->schedule.report.len; k++) {
        const struct schedule_report *s = &x->schedule.report.at[k];

        report_count(out, "ops moved", s->displaced);
        if (s->note != NULL)
            report_note(out, "%s", s->note);
        out->scheduled = true;
        out->exposed_before = s->exposed_before;
        out->exposed_after = s->exposed_after;
        out->peak_before = s->peak_before;
        out->peak_after = s->peak_after;
        for (uint32_t i = 0; i < s->n_stat; i++) {
            const struct schedule_stat *t = &s->stat[i];
            struct report_move m = {.node = problem_name(x->problem, t->op),
                                    .moves = t->moves,
                                    .grouped = t->grouped,
                                    .comm = t->comm_time * ns,
                                    .comp = t->comp_time * ns,
                                    .exposed_before = t->initial_exposed * ns,
                                    .exposed_after = t->final_exposed * ns,
                                    .limit = schedule_limit_name(t->limit),
                                    .limit_node = op_name(x->problem, t->limit_op)};

            report_move(out, &m);
        }
    }
}

static bool moved(const struct schedule *s)
{
    for (uint32_t i = 0; i < s->p->n_op; i++)
        if (s->order[i] != i)
            return true;
    return false;
}

static tuck_status order_graph(struct step_args *x, const struct pipeline_step *step)
{
    struct schedule_options defaults;

    schedule_defaults(&defaults, false);
    if (!schedule_begin(&x->schedule, x->problem, &defaults))
        return TUCK_ENOMEM;
    x->r->schedule = &x->schedule;
    tuck_status st = step->pass->run(x->r, step->options);
    x->r->schedule = NULL;
    if (st == TUCK_OK && !mem_guard(&x->r->report->all->mem, do_report, x))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK && moved(&x->schedule)) {
        x->r->changed = true;
        if (!mem_guard(x->r->mem, do_apply, x))
            st = TUCK_ENOMEM;
    }
    schedule_end(&x->schedule);
    return st;
}

tuck_status schedule_graph_step(void *ctx, struct pass_run *r, const struct pipeline_step *step)
{
    const struct schedule_graph *c = ctx;
    struct lower_options lower = c->lower;
    struct step_args x = {.r = r};

    lower.hint = r->assume.given;
    lower.n_hint = r->assume.n_given;
    tuck_status st = lower_graph(r->g, &lower, r->diags, &x.program);
    if (st == TUCK_OK)
        st = lower_estimate(x.program, r->g, c->cluster, &c->cost, lower.hint, lower.n_hint);
    if (st == TUCK_OK)
        st = problem_of_program(x.program, r->diags, &x.problem);
    if (st == TUCK_OK)
        st = order_graph(&x, step);
    problem_free(x.problem);
    program_free(x.program);
    return st;
}
