/* Explanations in the public interface. */
#include "api/api.h"
#include "api/simulate_api.h"
#include "study/explain.h"

struct tuck_explanation {
    tuck_simulation *simulation;
    struct explanation x;
    char *node, *subject; /* or NULL */
    struct mem mem;
};

void tuck_explain_options_init(tuck_explain_options *o)
{
    *o = (tuck_explain_options){.size = sizeof(*o)};
}

static char *copy_text(const tuck_allocator *alloc, const char *text)
{
    char *copy = text ? alloc->resize(alloc->ctx, NULL, 0, strlen(text) + 1) : NULL;

    return copy ? strcpy(copy, text) : NULL;
}

static void free_text(struct mem *m, char *text)
{
    mem_free(m, text, text ? strlen(text) + 1 : 0);
}

static tuck_status explain(tuck_explanation *x, const tuck_explain_options *o, tuck_diags *diags)
{
    tuck_simulation *s = x->simulation;
    struct evaluate_options eval;
    struct study study;
    struct explain_options how = {
        .node = o->node, .observer = {o->observe, o->ctx}, .decision = o->decision};

    evaluate_defaults(&eval, &s->given->machine);
    eval.keep_order = o->order == TUCK_ORDER_OF_ALL;
    eval.keep_groups = o->order != TUCK_ORDER_FREE;
    study_begin(&study, &eval, &s->mem.alloc);
    tuck_status st = explain_graph(&study, s->g, &how, diags, &x->x);
    if (st == TUCK_OK) {
        x->x.e->refs++; /* the simulation refers to it, too */
        s->e = x->x.e;
        st = simulation_fill(s, &study, diags);
    }
    study_end(&study);
    return st;
}

static tuck_status make(tuck_explanation *x, tuck_graph *g, const tuck_machine *m,
                        const tuck_explain_options *o, tuck_diags *diags)
{
    x->node = copy_text(&x->mem.alloc, o->node);
    x->subject = copy_text(&x->mem.alloc, o->subject);
    if ((x->node == NULL) != (o->node == NULL) || (x->subject == NULL) != (o->subject == NULL))
        return TUCK_ENOMEM;
    tuck_status st = simulation_begin(g, m, diags, &x->simulation);
    if (st == TUCK_OK)
        st = explain(x, o, diags);
    x->x.subject = x->subject;
    return st;
}

tuck_status tuck_graph_explain(tuck_graph *g, const tuck_machine *m,
                               const tuck_explain_options *options, tuck_diags *diags,
                               tuck_explanation **out)
{
    tuck_explain_options o;

    tuck_explain_options_init(&o);
    if (g == NULL || out == NULL || options_take(&o, sizeof(o), options) != TUCK_OK ||
        (unsigned)o.order > TUCK_ORDER_OF_ALL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &g->store->mem.alloc;
    tuck_explanation *x = alloc->resize(alloc->ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_explanation){.simulation = NULL};
    mem_init(&x->mem, alloc);
    tuck_status st = make(x, g, m, &o, diags);
    if (st == TUCK_OK)
        *out = x;
    else
        tuck_explanation_free(x);
    return st;
}

void tuck_explanation_free(tuck_explanation *x)
{
    if (x == NULL)
        return;
    struct mem m = x->mem;
    explain_end(&x->x);
    tuck_simulation_free(x->simulation);
    free_text(&m, x->node);
    free_text(&m, x->subject);
    mem_free(&m, x, sizeof(*x));
}

const tuck_simulation *tuck_explanation_simulation(const tuck_explanation *x)
{
    return x->simulation;
}

bool tuck_explanation_has(const tuck_explanation *x, const char *node)
{
    return node != NULL && explain_op(&x->x, node) != PROGRAM_NONE;
}

size_t tuck_explanation_count(const tuck_explanation *x)
{
    return x->x.n;
}

static const char *name_of(const tuck_explanation *x, uint32_t op)
{
    const struct program *p = x->x.e->program;

    return op == PROGRAM_NONE ? "" : program_str(p, p->op[op].name);
}

bool tuck_explanation_at(const tuck_explanation *x, size_t i, tuck_exposed *out)
{
    if (out == NULL || i >= x->x.n)
        return false;
    const struct explained *r = &x->x.row[i];
    *out = (tuck_exposed){.name = name_of(x, r->op),
                          .wait = name_of(x, r->wait),
                          .ps = r->ps,
                          .exposed_ps = r->exposed,
                          .hidden_ps = r->hidden,
                          .queued_ps = r->queued,
                          .under = r->n_under,
                          .limit = explain_limit_name(r->limit),
                          .limit_node = name_of(x, r->limit_op),
                          .more_bytes = r->more};
    return true;
}

size_t tuck_explanation_remedy_count(const tuck_explanation *x)
{
    return x->x.n_remedy;
}

bool tuck_explanation_remedy(const tuck_explanation *x, size_t i, tuck_remedy *out)
{
    if (out == NULL || i >= x->x.n_remedy)
        return false;
    const struct remedy *r = &x->x.remedy[i];
    *out = (tuck_remedy){.what = r->what,
                         .step_ps = r->ps,
                         .peak_bytes = r->peak,
                         .hidden = r->hidden,
                         .options = r->no_command ? NULL : r->options};
    return true;
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_explanation *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        explain_json(&x->x, x->node, b);
    else if (x->node != NULL)
        explain_node(&x->x, &x->simulation->given->machine, x->node, b);
    else
        explain_table(&x->x, api_top(how, 10), b);
}

tuck_status tuck_explanation_print(const tuck_explanation *x, const tuck_print_options *how,
                                   tuck_write_fn write, void *ctx)
{
    return x ? api_print(&x->mem.alloc, how, write, ctx, print, x) : TUCK_EINVAL;
}
