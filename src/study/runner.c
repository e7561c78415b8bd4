#include "study/runner.h"

#include <time.h>

#include "infer/infer.h"
#include "graph/storage.h"
#include "rewrite/comm_order.h"
#include "study/schedule_graph.h"

struct step {
    const struct pipeline_step *what;
    struct pass_run r;
    struct tuck_report *report;
    const struct runner *runner;
    const tuck_graph *g; /* the graph before the step */
    uint32_t n_before;   /* nodes with this id or higher were made by the pass */
    type_id *before;     /* types before the step, by node */
    tuck_status status;
};

double runner_cpu_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- types and annotations after a pass ---- */

/* Is its annotation out of date? That of a new node is, and of an old one whose type changed with
 * its operands. */
static bool needs_annotation(const struct step *s, uint32_t n)
{
    const tuck_graph *g = s->r.g;
    uint8_t kind = node_at(g, n)->kind;

    if (n < s->n_before && s->before[n] == node_type(g, n))
        return false;
    if (kind != TUCK_CALL_FUNCTION && kind != TUCK_CALL_METHOD)
        return false;
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    return t->kind == TYPE_TENSOR || t->kind == TYPE_SYM;
}

/* Writes annotations; each type is written as text once. */
static void annotate(struct step *s)
{
    tuck_graph *g = s->r.g;
    struct buf b;
    bool enough = true, loose = g->loose_at == g->revision;

    if (!g->style.annotated)
        return;
    /* by type: its annotation, 0 = not known yet */
    uint32_t *known = arena_zeroed(&s->r.arena, g->store->type.all.len * sizeof(*known));
    buf_init(&b, s->r.mem);
    for_each_node (g, n) {
        if (!needs_annotation(s, n))
            continue;
        type_id type = node_type(g, n);
        if (known[type] != 0) {
            node_at(g, n)->ann = known[type];
            continue;
        }
        b.len = 0;
        type_print(g->store, type, &b, true, true);
        tuck_status st = tuck_node_set_annotation(g, (tuck_node){n}, buf_text(&b));
        enough &= st != TUCK_ENOMEM;
        if (st == TUCK_OK)
            known[type] = node_at(g, n)->ann;
    }
    buf_destroy(&b);
    g->typed_at = g->revision; /* annotations and types agree now */
    if (loose)
        g->loose_at = g->revision; /* no node moved */
    if (!enough)
        mem_exhausted(s->r.mem);
}

static void infer_again(struct step *s)
{
    struct infer_options o = {.before = s->before, .n_before = s->n_before, .edited = s->r.g};

    infer_graph(s->r.g, &o, NULL);
}

/* ---- one step ---- */

/* Provides what the pass needs, and corrects the types afterwards. */
static void rewrite_graph(struct step *s)
{
    const struct pass *pass = s->what->pass;
    tuck_graph *g = s->r.g;
    bool keeps = (pass->keeps & PASS_TYPES) != 0;
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
        assert(g->type.len >= g->node.len);
        s->before = arena_array(&s->r.arena, type_id, g->node.len);
        memcpy(s->before, g->type.at, g->node.len * sizeof(*s->before));
    }
    double start = runner_cpu_ms();
    s->status = pass->on_graph(&s->r, s->what->options);
    s->r.report->ms = runner_cpu_ms() - start;
    if (s->status == TUCK_OK && s->r.changed && comm_crossed(s->g, g, &s->r.arena)) {
        s->r.crossed = true;
        if (s->r.keep_order)
            s->status = pass_fail(&s->r, 0, "%s would let collectives change places (--keep-order)",
                                  pass->name);
    }
    if (s->status == TUCK_OK && s->r.changed && !keeps) {
        infer_again(s);
        annotate(s);
    }
}

static void do_pass(void *p)
{
    struct step *s = p;

    if (s->what->pass->on_graph != NULL) {
        rewrite_graph(s);
        return;
    }
    double start = runner_cpu_ms();
    s->status = schedule_graph_step(s->runner->study, &s->r, s->what);
    s->r.report->ms = runner_cpu_ms() - start;
}

static void do_begin_report(void *p)
{
    struct step *s = p;
    struct tuck_report *t = s->report;
    const char *name = s->what->pass->name; /* copied: a caller's pass is freed with the pipeline */
    struct pass_report row = {.all = t,
                              .name = arena_str(&t->arena, name, strlen(name)),
                              .options = arena_str(&t->arena, s->what->text, strlen(s->what->text)),
                              .before = s->r.g->n_nodes};

    vec_push_in(&t->arena, &t->pass, row);
    s->r.report = &t->pass.at[t->pass.len - 1];
}

/* Warnings are left to `tuck lint`: else each step would repeat those of the graph. */
static tuck_status lint_errors(const tuck_graph *g, tuck_diags *diags)
{
    tuck_status st = tuck_graph_lint(g, NULL);

    return st == TUCK_ELINT ? tuck_graph_lint(g, diags) : st;
}

static tuck_status lint(struct step *s, tuck_diags *diags)
{
    size_t before = diags ? tuck_diags_errors(diags) : 0;
    tuck_status st = lint_errors(s->r.g, diags);

    if (st == TUCK_ELINT && diags && tuck_diags_errors(diags) > before)
        diag_add(diags, TUCK_ERROR, NOWHERE, "this is a bug in Tuck: please report it",
                 "pass %s left an invalid graph; its changes are dropped", s->what->pass->name);
    return st;
}

static tuck_status run_guarded(struct step *s, tuck_diags *diags)
{
    s->r.args = tuck_args_new(s->r.g);
    if (s->r.args == NULL || !mem_guard(&s->report->mem, do_begin_report, s))
        return TUCK_ENOMEM;
    if (!mem_guard_two(&s->report->mem, s->r.mem, do_pass, s))
        s->status = TUCK_ENOMEM;
    if (s->status == TUCK_OK && s->r.changed)
        s->status = lint(s, diags);
    s->r.report->changed = s->status == TUCK_OK && s->r.changed;
    s->r.report->crossed = s->r.report->changed && s->r.crossed;
    s->r.report->failed = s->status != TUCK_OK;
    s->r.report->after = s->status == TUCK_OK ? s->r.g->n_nodes : s->r.report->before;
    return s->status;
}

/* A pass on graphs gets a clone; a pass on orders makes one only if it moves something. */
tuck_status runner_make(const struct runner *r, const struct pipeline_step *what, tuck_graph *g,
                        struct tuck_report *report, tuck_diags *diags, tuck_graph **out)
{
    struct step s = {.what = what, .report = report, .runner = r, .g = g};
    assert((what->pass->on_graph == NULL) != (what->pass->on_order == NULL));
    const struct evaluate_options *o = r->study->o;
    tuck_graph *work = what->pass->on_graph != NULL ? graph_clone(g) : g;

    *out = NULL;
    if (work == NULL)
        return TUCK_ENOMEM;
    s.r = (struct pass_run){.g = work,
                            .mem = &g->store->mem,
                            .diags = diags,
                            .keep_order = o->keep_order,
                            .machine = o->machine,
                            .assume = machine_symbols(o->machine, g->store)};
    arena_init(&s.r.arena, s.r.mem);
    sigs_init(&s.r.sigs, s.r.mem);
    tuck_status st = run_guarded(&s, diags);
    tuck_args_free(s.r.args);
    sigs_destroy(&s.r.sigs);
    arena_destroy(&s.r.arena);
    assert(!(st == TUCK_OK && s.r.changed) || s.r.g != g); /* only a copy may have changed */
    *out = st == TUCK_OK && s.r.changed ? s.r.g : NULL;
    if (s.r.g != g && *out == NULL)
        graph_free(s.r.g);
    return st;
}

tuck_status runner_step(const struct runner *r, const struct pipeline_step *what, tuck_graph *g,
                        struct tuck_report *report, tuck_diags *diags)
{
    tuck_graph *made = NULL;
    tuck_status st = runner_make(r, what, g, report, diags, &made);

    if (made != NULL)
        graph_swap(g, made);
    graph_free(made);
    return st;
}

tuck_status runner_check_input(const tuck_graph *g, tuck_diags *diags)
{
    return lint_errors(g, diags);
}

tuck_status pipeline_run(const struct pipeline *p, tuck_graph *g, const struct runner *r,
                         struct tuck_report *report, tuck_diags *diags)
{
    tuck_status st = runner_check_input(g, diags);

    for (uint32_t i = 0; i < p->step.len && st == TUCK_OK; i++) {
        const struct pipeline_step *s = &p->step.at[i];

        if (!observe(&r->observer, s->pass->name, i, false, g))
            return TUCK_EIO;
        st = runner_step(r, s, g, report, diags);
        if (st == TUCK_OK && !observe(&r->observer, s->pass->name, i, true, g))
            return TUCK_EIO;
    }
    return st;
}
