/* Passes in the public interface. */
#include "api/api.h"
#include "api/pass_api.h"
#include "study/symbol_hints.h"
#include "study/runner.h"
#include "study/pass_table.h"

size_t tuck_pass_count(void)
{
    return all_passes.n;
}

const char *tuck_pass_name(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->name : NULL;
}

const char *tuck_pass_help(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->help : NULL;
}

size_t tuck_pass_option_count(size_t i)
{
    return i < all_passes.n ? all_passes.row[i]->n_options : 0;
}

bool tuck_pass_option(size_t i, size_t k, tuck_option *out)
{
    if (k >= tuck_pass_option_count(i) || out == NULL)
        return false;
    const struct pass_option *o = &all_passes.row[i]->options[k];
    *out = (tuck_option){
        .name = o->name, .type = pass_option_type(o), .dflt = o->dflt, .help = o->help};
    return true;
}

tuck_status tuck_pipeline_parse(const char *text, size_t len, const char *name,
                                const tuck_allocator *alloc, tuck_diags *diags, tuck_pipeline **out)
{
    struct mem m;

    if (text == NULL || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_pipeline *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return TUCK_ENOMEM;
    pipeline_init(&p->p, &all_passes, alloc);
    tuck_status st = pipeline_parse(&p->p, text, len, name ? name : "", diags);
    if (st != TUCK_OK)
        tuck_pipeline_free(p);
    else
        *out = p;
    return st;
}

void tuck_pipeline_free(tuck_pipeline *p)
{
    if (p == NULL)
        return;
    struct mem m = p->p.mem;
    pipeline_destroy(&p->p);
    mem_free(&m, p, sizeof(*p));
}

size_t tuck_pipeline_count(const tuck_pipeline *p)
{
    return p ? p->p.step.len : 0;
}

/* ---- running ---- */

static bool has_orders(const struct pipeline *p)
{
    for (uint32_t i = 0; i < p->step.len; i++)
        if (p->step.at[i].pass->on_order != NULL)
            return true;
    return false;
}

/* The machine that passes on orders count with, where the caller names none. */
static tuck_status default_cluster(const struct pipeline *p, tuck_graph *g, tuck_diags *diags,
                                   tuck_cluster **out)
{
    if (!has_orders(p))
        return TUCK_OK;
    tuck_status st = tuck_graph_infer(g, false, NULL);
    return st == TUCK_OK ? tuck_cluster_for_graph(g, &g->store->mem.alloc, diags, out) : st;
}

tuck_status tuck_pipeline_run(const tuck_pipeline *p, tuck_graph *g,
                              const tuck_run_options *options, tuck_diags *diags,
                              tuck_report **report_out)
{
    tuck_run_options o = {.size = sizeof(o)};
    struct evaluate_options eval;
    struct cost_options cost;
    tuck_cluster *own = NULL;

    if (p == NULL || g == NULL || options_take(&o, sizeof(o), options) != TUCK_OK ||
        (o.n_hints > 0 && o.hints == NULL) || cost_options_take(&cost, o.cost) != TUCK_OK)
        return TUCK_EINVAL;
    tuck_status st = o.cluster ? TUCK_OK : default_cluster(&p->p, g, diags, &own);
    if (st != TUCK_OK)
        return st;
    struct machine machine;
    machine_init(&machine, own != NULL ? own : o.cluster);
    machine.cost = cost;
    machine.contention = o.contention;
    evaluate_defaults(&eval, &machine);
    eval.keep_order = o.keep_order;
    const tuck_allocator *alloc = &g->store->mem.alloc;
    struct tuck_report *report = report_new(alloc);
    struct hints hints = {.g = g, .run = &o};
    struct study study;
    struct runner runner = {.study = &study, .observe = o.observe, .ctx = o.ctx};

    study_begin(&study, &eval, alloc);
    st = report != NULL ? hints_intern(&hints) : TUCK_ENOMEM;
    if (st == TUCK_OK) {
        machine.hint = hints.at;
        machine.n_hint = o.n_hints;
        if (machine.cost.profile != NULL && machine.cluster != NULL)
            st = laws_fit(&machine, g);
    }
    if (st == TUCK_OK) {
        st = pipeline_run(&p->p, g, &runner, report, diags);
    }
    study_end(&study);
    hints_free(&hints);
    tuck_cluster_free(own);
    if (report_out != NULL && report != NULL)
        *report_out = report; /* of a failed run, too: what was done until then */
    else
        tuck_report_free(report);
    return st;
}

/* ---- reports ---- */

struct print_args {
    const struct tuck_report *t;
    tuck_report_form form;
    bool times;
};

static void print(struct buf *b, const void *arg)
{
    const struct print_args *x = arg;

    if (x->form == TUCK_REPORT_JSON)
        report_json(x->t, x->times, b);
    else
        report_table(x->t, x->times, x->form == TUCK_REPORT_BRIEF, b);
}

tuck_status tuck_report_print(const tuck_report *t, tuck_report_form form, bool times,
                              tuck_write_fn write, void *ctx)
{
    if (t == NULL || write == NULL)
        return TUCK_EINVAL;
    return buf_print(&t->mem.alloc, false, write, ctx, print, &(struct print_args){t, form, times});
}
