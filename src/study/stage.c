#include "study/stage.h"

#include "study/pass_table.h"

void stage_first(struct stage *first, tuck_graph *g, struct evaluation *e, tuck_report *report)
{
    *first = (struct stage){.g = g, .e = e, .report = report};
}

void stage_end(struct stage *x)
{
    if (x->owns)
        graph_free(x->g);
    if (x->from != NULL)
        study_give_back(x->e);
    tuck_report_free(x->report);
    *x = (struct stage){.from = NULL};
}

static void fill_row(const struct stage *x, const struct evaluation *e)
{
    struct pass_report *row = &x->report->pass.at[x->report->pass.len - 1];

    row->judged = true;
    row->step_ps = e->time.makespan;
    row->step_peak = e->peak;
}

tuck_status stage_judge(const struct runner *r, struct stage *x, tuck_diags *diags)
{
    tuck_status st = x->e == NULL ? study_get(r->study, x->g, diags, &x->e) : TUCK_OK;

    if (st == TUCK_OK)
        fill_row(x, x->e);
    return st;
}

static tuck_status run(const struct runner *r, const struct pipeline_step *step, tuck_diags *diags,
                       struct stage *x)
{
    if (!observe(&r->observer, step->pass->name, x->depth - 1, false, x->from->g))
        return TUCK_EIO;
    tuck_status st = runner_make(r, step, x->from->g, x->report, diags, &x->g);
    x->owns = x->g != NULL;
    if (!x->owns)
        x->g = x->from->g;
    if (st == TUCK_OK && !r->judge_later)
        st = stage_judge(r, x, diags);
    if (st == TUCK_OK && !observe(&r->observer, step->pass->name, x->depth - 1, true, x->g))
        return TUCK_EIO;
    return st;
}

struct push {
    struct pipeline p;
    const struct pass *pass;
    const char *option;
    double value;
};

static void do_push(void *arg)
{
    struct push *x = arg;

    pipeline_push(&x->p, x->pass, x->option, x->value);
}

static tuck_status begin(const struct stage *from, struct pipeline *p, struct stage *to)
{
    const tuck_allocator *alloc = &from->g->store->mem.alloc;

    *to = (struct stage){.from = from, .depth = from->depth + 1};
    pipeline_init(p, &all_passes, alloc);
    to->report = report_new(alloc);
    return to->report != NULL ? TUCK_OK : TUCK_ENOMEM;
}

tuck_status stage_next(const struct runner *r, const struct stage *from, const struct pass *pass,
                       const char *option, double value, tuck_diags *diags, struct stage *to)
{
    struct push x = {.pass = pass, .option = option, .value = value};
    tuck_status st = begin(from, &x.p, to);

    if (st == TUCK_OK && !mem_guard(&x.p.mem, do_push, &x))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK)
        st = run(r, &x.p.step.at[0], diags, to);
    pipeline_destroy(&x.p);
    return st;
}

tuck_status stage_next_with(const struct runner *r, const struct stage *from,
                            const struct pass *pass, const char *options, tuck_diags *diags,
                            struct stage *to)
{
    struct pipeline p;
    tuck_status st = begin(from, &p, to);

    if (st == TUCK_OK)
        st = pipeline_add_whole(&p, pass->name, options, NULL, diags);
    if (st == TUCK_OK)
        st = run(r, &p.step.at[0], diags, to);
    pipeline_destroy(&p);
    return st;
}

/* ---- the report of the whole way ---- */

struct gather {
    const struct stage *x;
    tuck_report *all;
};

/* Rows are counted first, so that stages can be followed back from the last to the first. */
static void do_gather(void *arg)
{
    struct gather *w = arg;
    const struct stage **way = arena_array(&w->all->arena, const struct stage *, w->x->depth);

    for (const struct stage *x = w->x; x->from != NULL; x = x->from)
        way[x->depth - 1] = x;
    const struct stage *first = w->x->depth > 0 ? way[0]->from : w->x;
    for (uint32_t k = 0; first->report != NULL && k < first->report->pass.len; k++)
        report_append(w->all, &first->report->pass.at[k]);
    for (uint32_t i = 0; i < w->x->depth; i++)
        for (uint32_t k = 0; k < way[i]->report->pass.len; k++)
            report_append(w->all, &way[i]->report->pass.at[k]);
}

/* The times of those that nobody asked for. */
static tuck_status fill_rows(const struct stage *x, struct study *study)
{
    tuck_status st = TUCK_OK;

    for (; x->from != NULL && st == TUCK_OK; x = x->from) {
        struct evaluation *e = NULL;
        if (x->report->pass.at[x->report->pass.len - 1].judged)
            continue;
        st = study_get(study, x->g, NULL, &e);
        if (st == TUCK_OK)
            fill_row(x, e);
        study_give_back(e);
    }
    return st;
}

tuck_status stage_report(const struct stage *x, struct study *study, tuck_report **report_out)
{
    tuck_status st = fill_rows(x, study);
    struct gather w = {x, NULL};

    if (st != TUCK_OK)
        return st;
    w.all = report_new(&x->g->store->mem.alloc);
    if (w.all == NULL || !mem_guard(&w.all->mem, do_gather, &w)) {
        tuck_report_free(w.all);
        return TUCK_ENOMEM;
    }
    *report_out = w.all;
    return TUCK_OK;
}
