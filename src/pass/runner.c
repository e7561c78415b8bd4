/* Runs the steps of a pipeline: copies, computes what a pass needs, times it, brings types and annotations up to
 * date, lints, and only then lets the caller's graph become the result. */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "fx/infer.h"
#include "fx/storage.h"
#include "pass/pass.h"

struct step {
    const struct pipeline_step *what;
    struct pass_run r;
    struct tuck_report *report;
    const struct runner_options *o;
    uint32_t n_before; /* ids of nodes made by the pass begin here */
    type_id *before;   /* types at the start, by node */
    tuck_status status;
};

/* Of the processor: a pass is one thread that waits for nothing, and on a busy machine the clock on the wall
 * times the neighbours. */
static double now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

tuck_status pass_fail(struct pass_run *r, uint32_t node, const char *fmt, ...)
{
    const tuck_graph *g = r->g;
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    struct diag_pos pos = {.source = &src};
    va_list ap;

    if (node != 0) {
        pos.line = node_at(g, node)->line;
        pos.column = node_at(g, node)->column;
    }
    va_start(ap, fmt);
    diag_vadd(r->diags, TUCK_ERROR, pos, NULL, fmt, ap);
    va_end(ap);
    return TUCK_EINVAL;
}

/* ---- types and annotations after a pass ---- */

/* New nodes get an annotation, and old ones whose operands brought another type get theirs anew. */
static void annotate(struct step *s)
{
    tuck_graph *g = s->r.g;
    struct buf b;
    bool enough = true;

    if (!g->style.annotated)
        return;
    buf_init(&b, s->r.mem);
    for_each_node (g, n) {
        const struct type *t = type_at(&g->store->type, node_type(g, n));
        uint8_t kind = node_at(g, n)->kind;

        if (kind != TUCK_CALL_FUNCTION && kind != TUCK_CALL_METHOD)
            continue;
        if (t->kind != TYPE_TENSOR && t->kind != TYPE_SYM)
            continue;
        if (n < s->n_before && s->before[n] == node_type(g, n))
            continue;
        b.len = 0;
        type_print(g->store, node_type(g, n), &b, true, true);
        enough &= tuck_node_set_annotation(g, (tuck_node){n}, buf_text(&b)) != TUCK_ENOMEM;
    }
    buf_destroy(&b);
    g->typed_at = g->revision; /* annotations now say what the types are */
    if (!enough)
        mem_exhausted(s->r.mem);
}

static void infer_again(struct step *s)
{
    struct infer_options o = {.before = s->before, .n_before = s->n_before, .edited = s->r.g};

    infer_graph(s->r.g, &o, NULL);
}

/* ---- one step ---- */

static tuck_status run_pass(struct step *s)
{
    const struct pass *pass = s->what->pass;

    if (pass->level == PASS_ON_GRAPH)
        return pass->run(&s->r, s->what->options);
    if (s->o->on_schedule == NULL)
        return pass_fail(&s->r, 0, "pass %s works on schedules, not on graphs", pass->name);
    return s->o->on_schedule(s->o->schedule_ctx, &s->r, s->what);
}

static void do_pass(void *p)
{
    struct step *s = p;
    const struct pass *pass = s->what->pass;
    tuck_graph *g = s->r.g;
    bool keeps = (pass->keeps & PASS_TYPES) || pass->level == PASS_ON_SCHEDULE;
    bool types = (pass->needs & PASS_TYPES) || !keeps;

    storage_order_record(g);
    if (types)
        infer_need(g);
    if (pass->needs & PASS_PLACES)
        graph_number(g);
    if (pass->needs & PASS_NAMES)
        names_need(g);
    s->n_before = g->node.len;
    if (types) {
        s->before = arena_array(&s->r.arena, type_id, g->node.len);
        memcpy(s->before, g->type.at, g->node.len * sizeof(*s->before));
    }
    double start = now_ms();
    s->status = run_pass(s);
    s->r.report->ms = now_ms() - start;
    if (s->status == TUCK_OK && s->r.changed && !keeps) {
        infer_again(s);
        annotate(s);
    }
}

static void do_guarded(void *p)
{
    struct step *s = p;

    if (!mem_guard(s->r.mem, do_pass, s))
        s->status = TUCK_ENOMEM;
}

static void do_begin_report(void *p)
{
    struct step *s = p;
    struct tuck_report *t = s->report;
    struct pass_report row = {.all = t,
                              .name = s->what->pass->name,
                              .options = arena_str(&t->arena, s->what->text, strlen(s->what->text)),
                              .before = s->r.g->n_nodes};

    vec_push_in(&t->arena, &t->pass, row);
    s->r.report = &t->pass.at[t->pass.len - 1];
}

static tuck_status lint(struct step *s, tuck_diags *diags)
{
    size_t before = diags ? tuck_diags_errors(diags) : 0;
    tuck_status st = tuck_graph_lint(s->r.g, diags);

    if (st == TUCK_ELINT && diags && tuck_diags_errors(diags) > before)
        diag_add(diags, TUCK_ERROR, NOWHERE, "this is a fault of Tuck: please report it",
                 "pass %s broke the graph; it is left as it was", s->what->pass->name);
    return st;
}

/* Run the pass on s->r.g, a copy. */
static tuck_status run_on_copy(struct step *s, tuck_diags *diags)
{
    tuck_graph *g = s->r.g;

    s->r.args = tuck_args_new(g);
    if (s->r.args == NULL || !mem_guard(&s->report->mem, do_begin_report, s))
        return TUCK_ENOMEM;
    if (!mem_guard(&s->report->mem, do_guarded, s))
        return TUCK_ENOMEM;
    if (s->status == TUCK_OK && s->r.changed)
        s->status = lint(s, diags);
    s->r.report->changed = s->status == TUCK_OK && s->r.changed;
    s->r.report->failed = s->status != TUCK_OK;
    s->r.report->after = s->status == TUCK_OK ? g->n_nodes : s->r.report->before;
    return s->status;
}

static tuck_status run_step(const struct pipeline_step *what, tuck_graph *g,
                            const struct runner_options *o, struct tuck_report *report,
                            tuck_diags *diags)
{
    struct step s = {.what = what, .report = report, .o = o};
    tuck_graph *work = graph_clone(g);

    if (work == NULL)
        return TUCK_ENOMEM;
    s.r = (struct pass_run){.g = work,
                            .mem = &g->store->mem,
                            .diags = diags,
                            .assume = {.store = g->store, .given = o->hint, .n_given = o->n_hint}};
    arena_init(&s.r.arena, s.r.mem);
    sigs_init(&s.r.sigs, s.r.mem);
    tuck_status st = run_on_copy(&s, diags);
    tuck_args_free(s.r.args);
    sigs_destroy(&s.r.sigs);
    arena_destroy(&s.r.arena);
    if (st == TUCK_OK && s.r.changed)
        graph_swap(g, work);
    graph_free(work);
    return st;
}

tuck_status pipeline_run(const struct pipeline *p, tuck_graph *g, const struct runner_options *o,
                         struct tuck_report *report, tuck_diags *diags)
{
    tuck_status st = TUCK_OK;

    for (uint32_t i = 0; i < p->step.len && st == TUCK_OK; i++) {
        const struct pipeline_step *s = &p->step.at[i];

        if (o->observe != NULL)
            st = o->observe(o->ctx, s->pass->name, i, false, g);
        if (st == TUCK_OK)
            st = run_step(s, g, o, report, diags);
        if (st == TUCK_OK && o->observe != NULL)
            st = o->observe(o->ctx, s->pass->name, i, true, g);
    }
    return st;
}
