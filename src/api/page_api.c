/* Pages and traces in the public interface. */
#include <stdio.h>

#include "api/api.h"
#include "api/ranks_api.h"
#include "api/simulate_api.h"
#include "report/report.h"
#include "study/explain.h"

struct tuck_page {
    struct mem mem;
    struct arena arena;
    const char *title;
    VEC(struct report_graph) graph;
};

static const char *keep_text(struct tuck_page *p, const char *text)
{
    return arena_str(&p->arena, text, strlen(text));
}

struct page_args {
    tuck_page *p;
    const char *title;
    const tuck_simulation *const *s;
    const char *const *label;
    struct explanation *why;
    size_t n;
};

static void do_title(void *arg)
{
    struct page_args *a = arg;

    a->p->title = keep_text(a->p, a->title);
}

tuck_status tuck_page_new(const char *title, const tuck_allocator *alloc, tuck_page **out)
{
    struct mem m;

    if (title == NULL || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_page *p = m.alloc.resize(m.alloc.ctx, NULL, 0, sizeof(*p));
    if (p == NULL)
        return TUCK_ENOMEM;
    *p = (tuck_page){.title = NULL};
    mem_init(&p->mem, alloc);
    arena_init(&p->arena, &p->mem);
    struct page_args a = {.p = p, .title = title};
    if (!mem_guard(&p->mem, do_title, &a)) {
        tuck_page_free(p);
        return TUCK_ENOMEM;
    }
    *out = p;
    return TUCK_OK;
}

void tuck_page_free(tuck_page *p)
{
    if (p == NULL)
        return;
    struct mem m = p->mem;
    arena_destroy(&p->arena);
    mem_free(&m, p, sizeof(*p));
}

/* One run; the limits of its collectives are by op. */
static struct report_run describe(tuck_page *p, const tuck_simulation *s, const char *title,
                                  const char *label, const struct explanation *x)
{
    const struct evaluation *e = s->e;
    uint32_t n = e->program->n_op;
    const char **limit = arena_zeroed(&p->arena, (n + 1) * sizeof(*limit));
    uint32_t *limit_op = arena_array(&p->arena, uint32_t, n + 1);
    size_t size = strlen(title) + strlen(label) + 3;
    char *name = arena_array(&p->arena, char, size);

    memset(limit_op, 0xFF, (n + 1) * sizeof(*limit_op));
    for (uint32_t i = 0; i < x->n; i++) {
        limit[x->row[i].op] = explain_limit_name(x->row[i].limit);
        limit_op[x->row[i].op] = x->row[i].limit_op;
    }
    /* In a trace a run is a process: its name says which graph it belongs to. */
    snprintf(name, size, "%s%s%s", title, *title ? ", " : "", label);
    return (struct report_run){.label = name,
                               .p = e->program,
                               .span = e->span,
                               .time = e->time,
                               .peak = e->peak,
                               .bound_ps = e->any.ps,
                               .bound_says = evaluation_meaning(e),
                               .assumed = e->assumed,
                               .n_assumed = e->n_assumed,
                               .limit = limit,
                               .limit_op = limit_op};
}

static void do_add(void *arg)
{
    struct page_args *a = arg;
    tuck_page *p = a->p;
    struct report_run *run = arena_array(&p->arena, struct report_run, a->n);
    const char *title = keep_text(p, a->title);

    for (size_t i = 0; i < a->n; i++)
        run[i] = describe(p, a->s[i], title, a->label[i], &a->why[i]);
    struct report_graph g = {.title = title,
                             .where = keep_text(p, a->s[0]->given->machine.cluster->name),
                             .run = run,
                             .n_run = (uint32_t)a->n};
    vec_push_in(&p->arena, &p->graph, g);
}

enum { RUNS_MOST = 16 };

static tuck_status add(tuck_page *p, const char *title, const tuck_simulation *const *s,
                       const char *const *label, size_t n)
{
    struct explanation why[RUNS_MOST];
    struct page_args a = {p, title, s, label, why, n};
    tuck_status st = TUCK_OK;

    for (size_t i = 0; i < n && st == TUCK_OK; i++)
        st = s[i] != NULL && label[i] != NULL ? explain_why(s[i]->e, s[i]->keep_order, &why[i])
                                              : TUCK_EINVAL;
    if (st == TUCK_OK && !mem_guard(&p->mem, do_add, &a))
        st = TUCK_ENOMEM;
    return st;
}

tuck_status tuck_page_add(tuck_page *p, const char *title, tuck_simulation *const *s,
                          const char *const *label, size_t n)
{
    if (p == NULL || title == NULL || s == NULL || label == NULL || n == 0 || n > RUNS_MOST)
        return TUCK_EINVAL;
    return add(p, title, (const tuck_simulation *const *)s, label, n);
}

/* ---- all ranks of a step ---- */

/* More ops than this are no help to a reader, and a page with all of them would not open. */
enum { OPS_MOST = 200000 };

/* Which ranks to draw, ascending: slow ones first, then from rank 0 on. */
static uint32_t choose_ranks(const struct ranks *x, struct arena *a, uint32_t *list)
{
    bool *drawn = arena_zeroed(a, x->n_rank + 1);
    uint32_t n = 0, at = 0;
    uint64_t ops = 0;

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t r = 0; r < x->n_rank; r++) {
            uint32_t n_op = x->graph[x->of[r]].e->program->n_op;
            bool room = n < 2 || ops + n_op <= OPS_MOST;
            if (drawn[r] || !room || (pass == 0 && x->factor[r] == 1))
                continue;
            drawn[r] = true;
            ops += n_op;
            n++;
        }
    for (uint32_t r = 0; r < x->n_rank; r++)
        if (drawn[r])
            list[at++] = r;
    return n;
}

static struct report_run describe_rank(tuck_page *p, const char *title, const struct ranks *x,
                                       uint32_t r)
{
    const struct evaluation *e = x->graph[x->of[r]].e;
    size_t size = strlen(title) + 80;
    char *name = arena_array(&p->arena, char, size);
    int len = snprintf(name, size, "%s%srank %lld", title, *title ? ", " : "",
                       (long long)x->number[r]);

    if (x->factor[r] != 1)
        snprintf(name + len, size - (size_t)len, ", %.3gx", x->factor[r]);
    return (struct report_run){.label = name,
                               .p = e->program,
                               .span = x->span[r],
                               .time = x->result[r].time,
                               .peak = e->peak,
                               .others_ps = x->result[r].others,
                               .bound_says = "of several ranks it is not computed",
                               .assumed = e->assumed,
                               .n_assumed = e->n_assumed};
}

struct ranks_args {
    tuck_page *p;
    const char *title;
    const tuck_rank_simulation *s;
};

static void do_add_ranks(void *arg)
{
    struct ranks_args *a = arg;
    tuck_page *p = a->p;
    const struct ranks *x = &a->s->x;
    uint32_t *list = arena_array(&p->arena, uint32_t, x->n_rank + 1);
    uint32_t n = choose_ranks(x, &p->arena, list);
    struct report_run *run = arena_array(&p->arena, struct report_run, n + 1);
    size_t size = strlen(a->s->machine) + 80;
    char *where = arena_array(&p->arena, char, size);

    for (uint32_t i = 0; i < n; i++)
        run[i] = describe_rank(p, a->title, x, list[i]);
    int len = snprintf(where, size, "%s", a->s->machine);
    if (n < x->n_rank)
        snprintf(where + len, size - (size_t)len, ", %u of %u ranks", n, x->n_rank);
    struct report_graph g = {keep_text(p, a->title), where, run, n, true};
    vec_push_in(&p->arena, &p->graph, g);
}

tuck_status tuck_page_add_ranks(tuck_page *p, const char *title, const tuck_rank_simulation *s)
{
    if (p == NULL || title == NULL || s == NULL || tuck_rank_simulation_fault(s) != NULL)
        return TUCK_EINVAL;
    struct ranks_args a = {p, title, s};
    return mem_guard(&p->mem, do_add_ranks, &a) ? TUCK_OK : TUCK_ENOMEM;
}

/* ---- files ---- */

static void print_html(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_page *p = arg;

    (void)how;
    report_html(p->title, p->graph.at, p->graph.len, b);
}

static void print_trace(struct buf *b, const tuck_print_options *how, const void *arg)
{
    const tuck_page *p = arg;

    (void)how;
    report_trace(p->graph.at, p->graph.len, b);
}

tuck_status tuck_page_html(const tuck_page *p, tuck_write_fn write, void *ctx)
{
    return p ? api_print(&p->mem.alloc, NULL, write, ctx, print_html, p) : TUCK_EINVAL;
}

tuck_status tuck_page_trace(const tuck_page *p, tuck_write_fn write, void *ctx)
{
    return p ? api_print(&p->mem.alloc, NULL, write, ctx, print_trace, p) : TUCK_EINVAL;
}

tuck_status tuck_simulation_html(const tuck_simulation *s, const tuck_simulation *after,
                                 const char *title, tuck_write_fn write, void *ctx)
{
    const tuck_simulation *step[] = {s, after};
    const char *const label[] = {after != NULL ? "before" : "as it stands", "after"};
    tuck_page *p = NULL;

    if (s == NULL)
        return TUCK_EINVAL;
    tuck_status st = tuck_page_new(title, &s->mem.alloc, &p);
    if (st == TUCK_OK)
        st = add(p, "", step, label, after != NULL ? 2 : 1);
    if (st == TUCK_OK)
        st = tuck_page_html(p, write, ctx);
    tuck_page_free(p);
    return st;
}
