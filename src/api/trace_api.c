/* Profiler traces in the public interface. */
#include <stdio.h>

#include "api/trace_api.h"

#include "api/api.h"
#include "base/owner.h"
#include "base/diag.h"
#include "job/folder.h"
#include "job/measured_cluster.h"
#include "job/trace_folder.h"
#include "job/trace_show.h"

tuck_status tuck_traces_new(const tuck_allocator *alloc, tuck_traces **out)
{
    struct mem m;

    if (out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_traces *t = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*t));
    if (t == NULL)
        return TUCK_ENOMEM;
    *t = (tuck_traces){.mem = m};
    arena_init(&t->arena, &t->mem);
    arena_init(&t->kept, &t->mem);
    *out = t;
    return TUCK_OK;
}

void tuck_traces_free(tuck_traces *t)
{
    if (t == NULL)
        return;
    struct mem m = t->mem;

    for (uint32_t i = 0; i < t->trace.len; i++)
        trace_free(t->trace.at[i]);
    vec_free(&t->mem, &t->trace);
    vec_free(&t->mem, &t->passed);
    arena_destroy(&t->kept);
    arena_destroy(&t->arena);
    mem_free(&m, t, sizeof(*t));
}

struct add_args {
    tuck_traces *t;
    struct trace *x;
};

static void do_add(void *arg)
{
    struct add_args *a = arg;

    vec_push(&a->t->mem, &a->t->trace, a->x);
}

/* What was studied before is not all. */
static void added(tuck_traces *t)
{
    t->part = NULL;
    arena_destroy(&t->arena);
    arena_init(&t->arena, &t->mem);
}

static tuck_status add(tuck_traces *t, tuck_status st, struct trace *x)
{
    struct add_args a = {t, x};

    if (st != TUCK_OK)
        return st;
    if (!mem_guard(&t->mem, do_add, &a)) {
        trace_free(x);
        return TUCK_ENOMEM;
    }
    added(t);
    return TUCK_OK;
}

/* ---- folders ---- */

struct folder_args {
    tuck_traces *t;
    struct trace_folder *f;
};

/* Nothing is added before there is room for everything. */
static void do_add_folder(void *arg)
{
    struct folder_args *a = arg;
    tuck_traces *t = a->t;
    struct trace_folder *f = a->f;

    vec_reserve(&t->mem, &t->trace, f->trace.len);
    vec_reserve(&t->mem, &t->passed, f->passed.len);
    for (uint32_t i = 0; i < f->passed.len; i++)
        f->passed.at[i] = arena_str(&t->kept, f->passed.at[i], strlen(f->passed.at[i]));
    for (uint32_t i = 0; i < f->passed.len; i++)
        vec_push(&t->mem, &t->passed, f->passed.at[i]);
    for (uint32_t i = 0; i < f->trace.len; i++) {
        vec_push(&t->mem, &t->trace, f->trace.at[i]);
        f->trace.at[i] = NULL;
    }
}

static tuck_status add_folder(tuck_traces *t, const char *path, tuck_diags *diags)
{
    struct trace_folder f;
    struct folder_args a = {t, &f};
    tuck_status st = trace_folder_read(path, &t->mem.alloc, diags, &f);

    if (st == TUCK_OK && !mem_guard(&t->mem, do_add_folder, &a))
        st = TUCK_ENOMEM;
    if (st == TUCK_OK)
        added(t);
    trace_folder_free(&f);
    return st;
}

tuck_status tuck_traces_add_file(tuck_traces *t, const char *path, tuck_diags *diags)
{
    struct trace *x = NULL;
    bool any;

    if (t == NULL || path == NULL)
        return TUCK_EINVAL;
    if (folder_is(path))
        return add_folder(t, path, diags);
    tuck_status st = trace_read_file(path, &t->mem.alloc, diags, &any, &x);
    return add(t, st, x);
}

tuck_status tuck_traces_add_text(tuck_traces *t, const char *text, size_t len, const char *name,
                                 tuck_diags *diags)
{
    struct trace *x = NULL;

    if (t == NULL || text == NULL || name == NULL)
        return TUCK_EINVAL;
    tuck_status st = trace_read_text(text, len, name, &t->mem.alloc, diags, &x);
    return add(t, st, x);
}

/* ---- the study ---- */

/* The processes of one of our own traces; 0 for others, which are one timeline. */
static uint32_t pids(const struct trace *t, struct arena *a, str_id **out)
{
    VEC(str_id) list = {NULL, 0, 0};
    bool *seen = arena_zeroed(a, t->str.all.len + 1);

    for (uint32_t i = 0; t->ours && i < t->gpu.len; i++) {
        if (seen[t->gpu.at[i].pid])
            continue;
        seen[t->gpu.at[i].pid] = true;
        vec_push_in(a, &list, t->gpu.at[i].pid);
    }
    *out = list.at;
    return list.len;
}

/* "rank 0", as the trace calls it. */
static const char *run_label(const struct trace *t, str_id pid, struct arena *a, uint32_t k)
{
    char text[32];
    int len = snprintf(text, sizeof(text), "run %u", k);

    for (uint32_t i = 0; i < t->process.len; i++)
        if (t->process.at[i].pid == pid && t->process.at[i].name != 0)
            return trace_str(t, t->process.at[i].name);
    return arena_str(a, text, (size_t)len);
}

static void do_study(void *arg)
{
    tuck_traces *t = arg;
    VEC(struct trace_part) list = {NULL, 0, 0};
    bool ranks = true;

    for (uint32_t i = 0; i < t->trace.len; i++) {
        str_id *pid;
        uint32_t n = pids(t->trace.at[i], &t->arena, &pid);

        ranks &= !t->trace.at[i]->ours;
        for (uint32_t k = 0; k < (n > 1 ? n : 1); k++) {
            struct trace_part p;
            trace_study(t->trace.at[i], n > 1 ? pid[k] : 0, &t->arena, &p);
            if (n > 1)
                p.label = run_label(t->trace.at[i], pid[k], &t->arena, k);
            vec_push_in(&t->arena, &list, p);
        }
    }
    t->n_lost = ranks && list.len > 1 ? trace_match_ranks(list.at, list.len, &t->arena) : 0;
    t->n_part = list.len;
    t->part = list.at;
}

tuck_status traces_study(tuck_traces *t)
{
    if (t == NULL || t->trace.len == 0)
        return TUCK_EINVAL;
    if (t->part != NULL || mem_guard(&t->mem, do_study, t))
        return TUCK_OK;
    t->part = NULL;
    return TUCK_ENOMEM;
}

size_t tuck_traces_count(tuck_traces *t)
{
    return traces_study(t) == TUCK_OK ? t->n_part : 0;
}

bool tuck_traces_figures(tuck_traces *t, size_t i, tuck_trace_figures *out)
{
    if (traces_study(t) != TUCK_OK || i >= t->n_part || out == NULL)
        return false;
    const struct trace_part *p = &t->part[i];
    const struct trace_figures *x = &p->sum;
    *out = (tuck_trace_figures){.rank = p->t->rank,
                                .world = p->t->world,
                                .steps = p->step.len,
                                .kernels = x->n_kernel,
                                .collectives = x->n_coll,
                                .step_ps = x->step,
                                .compute_ps = x->compute,
                                .comm_ps = x->comm,
                                .exposed_ps = x->exposed,
                                .idle_ps = x->idle};
    return true;
}

/* ---- printing ---- */

static struct trace_set set_of(const tuck_traces *t)
{
    return (struct trace_set){.part = t->part,
                              .n = t->n_part,
                              .n_lost = t->n_lost,
                              .passed = t->passed.at,
                              .n_passed = t->passed.len};
}

static void print(struct buf *b, const tuck_print_options *how, const void *arg)
{
    struct trace_set s = set_of(arg);

    if (how->form == TUCK_PRINT_JSON)
        trace_json(&s, b);
    else
        trace_table(&s, api_top(how, 10), b);
}

tuck_status tuck_traces_print(tuck_traces *t, const tuck_print_options *how, tuck_write_fn write,
                              void *ctx)
{
    tuck_status st = traces_study(t);

    return st == TUCK_OK ? api_print(&t->mem.alloc, how, write, ctx, print, t) : st;
}

struct draw_args {
    const tuck_traces *t;
    const char *title;
    int64_t step;
    bool html, found;
};

/* The programs only hold what is drawn: their memory is the arena's, and their strings. */
static void draw(struct buf *b, const tuck_print_options *how, const void *arg)
{
    struct draw_args *d = (struct draw_args *)(uintptr_t)arg;
    struct trace_set s = set_of(d->t);
    struct arena a;

    (void)how;
    arena_init(&a, b->mem);
    struct report_graph graph;
    struct program **list = arena_array(&a, struct program *, s.n);
    for (uint32_t i = 0; i < s.n; i++) {
        list[i] = arena_new(&a, struct program);
        strtab_init(&list[i]->str, b->mem);
    }
    d->found = trace_pictures(&s, d->step, list, &a, &graph);
    if (d->found && d->html)
        report_html(d->title, &graph, 1, b);
    else if (d->found)
        report_trace(&graph, 1, b);
    for (uint32_t i = 0; i < s.n; i++)
        strtab_destroy(&list[i]->str);
    arena_destroy(&a);
}

static tuck_status picture(tuck_traces *t, const char *title, int64_t step, bool html,
                           tuck_write_fn write, void *ctx)
{
    struct draw_args d = {.t = t, .title = title, .step = step, .html = html};
    struct owner own;
    tuck_status st = traces_study(t);

    if (st != TUCK_OK)
        return st;
    /* what is left when memory runs out is freed with the owner */
    owner_init(&own, &t->mem.alloc);
    tuck_allocator alloc = owner_allocator(&own);
    st = api_print(&alloc, NULL, write, ctx, draw, &d);
    owner_end(&own);
    return st == TUCK_OK && !d.found ? TUCK_EINVAL : st;
}

tuck_status tuck_traces_html(tuck_traces *t, const char *title, int64_t step, tuck_write_fn write,
                             void *ctx)
{
    return title != NULL ? picture(t, title, step, true, write, ctx) : TUCK_EINVAL;
}

tuck_status tuck_traces_perfetto(tuck_traces *t, int64_t step, tuck_write_fn write, void *ctx)
{
    return picture(t, "", step, false, write, ctx);
}

/* ---- calibration ---- */

struct calibrate_args {
    tuck_traces *t;
    const char *device;
    int64_t per_node;
    struct measured_cluster c;
    bool found;
};

static void do_calibrate(void *arg)
{
    struct calibrate_args *x = arg;

    x->found = measured_cluster(x->t->part, x->t->n_part, x->device, x->per_node, &x->t->arena,
                                &x->c);
}

static void write_cluster(struct buf *b, const tuck_print_options *how, const void *arg)
{
    (void)how;
    measured_cluster_write(arg, b);
}

static void write_found(struct buf *b, const tuck_print_options *how, const void *arg)
{
    (void)how;
    measured_cluster_table(arg, b);
}

tuck_status tuck_traces_calibrate(tuck_traces *t, const char *device, int64_t per_node,
                                  tuck_diags *diags, tuck_write_fn write, void *ctx,
                                  tuck_write_fn table, void *table_ctx)
{
    struct calibrate_args x = {.t = t, .device = device, .per_node = per_node};
    tuck_status st = traces_study(t);

    if (st != TUCK_OK || write == NULL)
        return st != TUCK_OK ? st : TUCK_EINVAL;
    if (!mem_guard(&t->mem, do_calibrate, &x))
        return TUCK_ENOMEM;
    if (!x.found) {
        const struct trace *first = t->part[0].t;
        const char *name = device != NULL ? device : trace_str(first, first->device);
        const char *note = "name one with --device; docs/cost-model.md lists them";
        if (*name == '\0')
            diag_add(diags, TUCK_ERROR, NOWHERE, note, "%s does not say on which device it ran",
                     first->file);
        else
            diag_add(diags, TUCK_ERROR, NOWHERE, note, "no device is known as '%.80s'", name);
        return TUCK_EINVAL;
    }
    st = api_print(&t->mem.alloc, NULL, write, ctx, write_cluster, &x.c);
    if (st == TUCK_OK && table != NULL)
        st = api_print(&t->mem.alloc, NULL, table, table_ctx, write_found, &x.c);
    return st;
}
