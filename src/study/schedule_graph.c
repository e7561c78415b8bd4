#include "study/schedule_graph.h"

#include "graph/storage.h"
#include "rewrite/comm_order.h"
#include "schedule/schedule.h"

struct step_args {
    struct study *study;
    struct pass_run *r;
    struct schedule_options options;
    const tuck_graph *before;
    struct evaluation *was, *is; /* before the pass, and with the order it found */
    struct schedule schedule;
    const char *kept; /* why the graph stays unchanged, or NULL */
};

/* ---- the report ---- */

static const char *op_name(const struct problem *p, uint32_t op)
{
    return op == PROBLEM_NONE ? "" : problem_name(p, op);
}

static void report_stats(const struct step_args *x, const struct schedule_report *s)
{
    const struct problem *p = x->was->problem;

    for (uint32_t i = 0; i < s->n_stat; i++) {
        const struct schedule_stat *t = &s->stat[i];
        struct report_move m = {
            .node = problem_name(p, t->op),
            .moves = t->moves,
            .grouped = t->grouped,
            .comm_ps = ps_round(t->comm_time * p->unit_ps),
            .comp_ps = ps_round(t->comp_time * p->unit_ps),
            .exposed_before_ps = ps_round_difference(t->initial_exposed * p->unit_ps),
            .exposed_after_ps = ps_round_difference(t->final_exposed * p->unit_ps),
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
    const struct evaluation *was = x->was, *is = x->r->changed ? x->is : was;

    for (uint32_t k = 0; k < x->schedule.report.len; k++) {
        const struct schedule_report *s = &x->schedule.report.at[k];

        report_count(out, "ops moved", x->r->changed ? s->displaced : 0);
        if (s->note != NULL && x->kept == NULL)
            report_note(out, "%s", s->note);
        if (x->kept != NULL)
            report_note(out, "%s", x->kept);
        out->scheduled = true;
        out->exposed_before = was->time.exposed;
        out->exposed_after = is->time.exposed;
        out->peak_before = was->peak;
        out->peak_after = is->peak;
        out->front_ps = s->front_ps;
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

    storage_order_record(x->r->g);
    lower_apply(x->r->g, x->was->program, x->schedule.order, &x->r->arena);
    x->r->crossed = comm_crossed(x->before, x->r->g, &x->r->arena);
}

/* What a pass promised about the order of ops must hold for the text, too: which copies a
 * collective needs, and how long a buffer is held, depend on the order of nodes. */
static const char *objection(const struct step_args *x)
{
    const struct evaluation *was = x->was, *is = x->is;
    int64_t allowance = 0;
    bool saves = false;

    for (uint32_t k = 0; k < x->schedule.report.len; k++) {
        if (x->schedule.report.at[k].allowance > allowance)
            allowance = x->schedule.report.at[k].allowance;
        saves |= x->schedule.report.at[k].saves_compute;
    }
    if (x->r->crossed && x->options.keep_order)
        return "kept: collectives of the graph in that order would change places";
    if (is->peak - was->peak > allowance)
        return "kept: the graph in that order would need more memory than the budget allows";
    if (x->options.allow_more_exposed || saves)
        return NULL;
    if (is->time.exposed > was->time.exposed)
        return "kept: the graph in that order would expose more communication";
    if (is->time.makespan > was->time.makespan)
        return "kept: the graph in that order would be slower";
    return NULL;
}

/* Applies the order to a clone and checks the result. */
static tuck_status take_order(struct step_args *x)
{
    tuck_graph *before = x->r->g, *work = graph_clone(before);

    if (work == NULL)
        return TUCK_ENOMEM;
    x->r->g = work;
    x->before = before;
    tuck_status st = mem_guard(x->r->mem, do_apply, x) ? TUCK_OK : TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = study_get(x->study, work, x->r->diags, &x->is);
    if (st == TUCK_OK)
        x->kept = objection(x);
    x->r->changed = st == TUCK_OK && x->kept == NULL;
    if (!x->r->changed) {
        x->r->g = before;
        graph_free(work);
    }
    return st;
}

/* Groups whose size is assumed: which ranks are in them is not known. */
static void do_fix_groups(void *arg)
{
    struct step_args *x = arg;
    const struct problem *p = x->was->problem;
    bool *fixed = arena_zeroed(&x->schedule.arena, p->n_group);

    for (uint32_t i = 0; i < x->was->n_assumed; i++)
        for (uint32_t g = 0; g < p->n_group; g++)
            fixed[g] |= x->was->assumed[i].what == ASSUMED_RANKS &&
                        strcmp(str_text(&p->str, p->group_name[g]), x->was->assumed[i].name) == 0;
    x->schedule.fixed_group = fixed;
}

static tuck_status order_graph(struct step_args *x, const struct pipeline_step *step)
{
    struct schedule_options defaults;

    schedule_defaults(&defaults, false);
    if (!schedule_begin(&x->schedule, x->was->problem, &defaults))
        return TUCK_ENOMEM;
    if (x->was->n_assumed > 0 && !mem_guard(&x->schedule.mem, do_fix_groups, x)) {
        schedule_end(&x->schedule);
        return TUCK_ENOMEM;
    }
    /* Only the evaluation counts launches and contention; schedulers do not. */
    const struct machine *m = x->study->o->machine;
    if (m->cluster->launch_ps == 0 && !m->contention)
        schedule_knows(&x->schedule, x->was->peak, x->was->time.exposed);
    tuck_status st = step->pass->on_order(&x->schedule, &x->options, x->r->diags);
    x->study->work.orders += x->schedule.n_measured;
    if (st == TUCK_OK && moved(&x->schedule))
        st = take_order(x);
    if (st == TUCK_OK && !mem_guard(&x->r->report->all->mem, do_report, x))
        st = TUCK_ENOMEM;
    schedule_end(&x->schedule);
    return st;
}

tuck_status schedule_graph_step(struct study *study, struct pass_run *r,
                                const struct pipeline_step *step)
{
    struct step_args x = {.study = study, .r = r};

    x.options = *(const struct schedule_options *)step->options;
    x.options.keep_order |= study->o->keep_order;
    x.options.keep_groups |= study->o->keep_groups;
    tuck_status st = study_get(study, r->g, r->diags, &x.was);

    if (st == TUCK_OK)
        st = order_graph(&x, step);
    study_give_back(x.was);
    study_give_back(x.is);
    return st;
}
