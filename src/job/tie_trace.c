#include "job/tie_trace.h"

#include <stdlib.h>

#include "job/measured_cluster.h"

/* Something that ran, or an op of the program. Alike if the keys are. */
struct item {
    uint64_t key;
    uint32_t ref; /* op, or index of its name */
    int64_t ps;
};

typedef VEC(struct item) items;

/* ---- the program ---- */

static enum tie_class class_of(const struct program_op *op)
{
    if (op->kind == PROGRAM_COLLECTIVE)
        return TIE_COLLECTIVES;
    return op->kind == PROGRAM_GEMM && op->flops > 0 ? TIE_PRODUCTS : TIE_KERNELS;
}

static uint64_t coll_key(unsigned kind, int64_t bytes, bool sized)
{
    return (uint64_t)kind << 56 | (sized && bytes > 0 ? (uint64_t)bytes : 0);
}

static void items_of_program(const struct program *p, bool sized, struct arena *a,
                             items out[TIE_CLASS_END])
{
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        enum tie_class c = class_of(op);
        if (op->kind == PROGRAM_WAIT || (op->flags & PROGRAM_NOP))
            continue;
        vec_push_in(a, &out[c],
                    ((struct item){c == TIE_COLLECTIVES ? coll_key(op->coll, op->message, sized)
                                   : c == TIE_PRODUCTS  ? (uint64_t)op->flops
                                                        : 0,
                                   i, 0}));
    }
}

/* ---- windows: runs of the graph ---- */

struct window {
    int64_t start, end;
    int64_t step;
    str_id name;
    items item[TIE_CLASS_END];
    struct trace_figures x;
};

static int by_start(const void *a, const void *b)
{
    const struct window *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

/* Calls of compiled graphs; without any, the steps. */
static uint32_t windows(const struct trace_part *p, struct arena *a, struct window **out)
{
    uint32_t n = p->t->region.len > 0 ? p->t->region.len : p->step.len, m = 0;
    struct window *w = arena_zeroed(a, (n + 1) * sizeof(*w));

    for (uint32_t i = 0; i < n; i++) {
        if (p->t->region.len > 0) {
            const struct trace_region *r = &p->t->region.at[i];
            uint32_t step = trace_step_at(p, r->start);
            if (step == TRACE_NONE)
                continue;
            w[m++] = (struct window){r->start, r->start + r->dur, p->step.at[step].number,
                                     r->name,  {{NULL, 0, 0}},    {.step = r->dur}};
        } else {
            w[m++] = (struct window){p->step.at[i].start,  p->step.at[i].end,
                                     p->step.at[i].number, 0,
                                     {{NULL, 0, 0}},       {.step = p->step.at[i].x.step}};
        }
    }
    qsort(w, m, sizeof(*w), by_start);
    *out = w;
    return m;
}

static struct window *window_at(struct window *w, uint32_t n, int64_t when)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (w[mid].start <= when)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && when < w[low - 1].end ? &w[low - 1] : NULL;
}

static int by_issue(const void *a, const void *b)
{
    const struct trace_span *const *x = a, *const *y = b;

    if ((*x)->issued != (*y)->issued)
        return (*x)->issued < (*y)->issued ? -1 : 1;
    return (*x)->end > (*y)->end ? -1 : (*x)->end < (*y)->end;
}

static bool is_fused(const char *name)
{
    return strstr(name, "_fused_") != NULL;
}

static void add_kernels(const struct trace_part *p, struct window *w, uint32_t n, struct arena *a)
{
    const struct trace *t = p->t;
    uint32_t n_op;
    const struct trace_event **op = trace_operators(t, a, &n_op);
    const struct trace_span **list = arena_array(a, const struct trace_span *, p->span.len + 1);
    int64_t busy = INT64_MIN;

    for (uint32_t i = 0; i < p->span.len; i++)
        list[i] = &p->span.at[i];
    qsort(list, p->span.len, sizeof(*list), by_issue);
    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = list[i];
        struct window *x = window_at(w, n, s->issued);
        if (x == NULL || s->cls == TRACE_COMM || s->cls == TRACE_MEMORY)
            continue;
        if (!p->device) { /* operators inside of others are part of those */
            if (s->end <= busy)
                continue;
            busy = s->end;
            x->x.exposed += s->cls == TRACE_WAIT ? s->end - s->start : 0;
            x->x.calls += s->cls == TRACE_CALL ? s->end - s->start : 0;
        }
        if (s->cls != TRACE_COMPUTE)
            continue;
        const struct trace_event *e = p->device ? &t->gpu.at[s->event] : &t->cpu.at[s->event];
        const struct trace_event *by = p->device      ? trace_operator_of(op, n_op, e)
                                       : e->more != 0 ? e
                                                      : NULL;
        double flops = by != NULL ? trace_product(trace_str(t, by->name),
                                                  trace_str(t, t->operand.at[by->more].dims))
                                  : 0;
        x->x.compute += s->end - s->start;
        if (flops > 0)
            vec_push_in(a, &x->item[TIE_PRODUCTS],
                        ((struct item){(uint64_t)flops, e->name, s->end - s->start}));
        else if (p->device || is_fused(trace_str(t, e->name)))
            vec_push_in(a, &x->item[TIE_KERNELS], ((struct item){0, e->name, s->end - s->start}));
    }
}

static int by_issued(const void *a, const void *b)
{
    const struct trace_coll *const *x = a, *const *y = b;

    return ((*x)->issued > (*y)->issued) - ((*x)->issued < (*y)->issued);
}

/* The time of a collective is what it holds up its group: without a device, from the moment that
 * the host has started it, or that the one before it is done. */
static void add_colls(const struct trace_part *p, struct window *w, uint32_t n, bool sized,
                      struct arena *a)
{
    const struct trace_coll **list = arena_array(a, const struct trace_coll *, p->coll.len + 1);
    int64_t before = INT64_MIN;

    for (uint32_t i = 0; i < p->coll.len; i++)
        list[i] = &p->coll.at[i];
    qsort(list, p->coll.len, sizeof(*list), by_issued);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = list[i];
        struct window *x = window_at(w, n, c->issued);
        int64_t from = c->start;

        if (!p->device && c->call != TRACE_NONE) {
            int64_t called = trace_end(&p->t->cpu.at[c->call]);
            from = called < from ? called : from;
        }
        from = from < before ? before : from;
        before = c->end > before ? c->end : before;
        if (x == NULL)
            continue;
        int64_t ps = c->end > from ? c->end - from : 0;
        x->x.comm += ps;
        if (p->device)
            x->x.exposed += c->exposed;
        vec_push_in(a, &x->item[TIE_COLLECTIVES],
                    ((struct item){coll_key(c->kind, c->bytes, sized), 0, ps}));
    }
}

/* ---- matching ---- */

static bool same_sequence(const items *a, const items *b)
{
    if (a->len != b->len)
        return false;
    for (uint32_t i = 0; i < a->len; i++)
        if (a->at[i].key != b->at[i].key)
            return false;
    return true;
}

struct sums {
    int64_t *ps; /* by op */
    uint32_t *n;
    bool *ambiguous;
};

static int by_key(const void *a, const void *b)
{
    const struct item *const *x = a, *const *y = b;

    if ((*x)->key != (*y)->key)
        return (*x)->key < (*y)->key ? -1 : 1;
    return (*x)->ref < (*y)->ref ? -1 : (*x)->ref > (*y)->ref;
}

static const struct item **sorted(const items *x, struct arena *a)
{
    const struct item **list = arena_array(a, const struct item *, x->len + 1);

    for (uint32_t i = 0; i < x->len; i++)
        list[i] = &x->at[i];
    qsort(list, x->len, sizeof(*list), by_key);
    return list;
}

static void add_sum(struct sums *s, uint32_t op, int64_t ps)
{
    s->ps[op] += ps;
    s->n[op]++;
}

/* In the same order everywhere; or else those alone of their kind, and of those that are alike, as
 * many as there are ops, the mean. */
static void match(const items *ops, const items *run, struct sums *s, struct arena *a)
{
    if (same_sequence(ops, run)) {
        for (uint32_t i = 0; i < ops->len; i++)
            add_sum(s, ops->at[i].ref, run->at[i].ps);
        return;
    }
    struct arena_mark mark = arena_mark(a);
    const struct item **x = sorted(ops, a), **y = sorted(run, a);
    for (uint32_t i = 0, k = 0, j, l; i < ops->len; i = j) {
        int64_t sum = 0;
        for (j = i; j < ops->len && x[j]->key == x[i]->key;)
            j++;
        while (k < run->len && y[k]->key < x[i]->key)
            k++;
        for (l = k; l < run->len && y[l]->key == x[i]->key; l++)
            sum += y[l]->ps;
        if (l - k == j - i)
            for (uint32_t m = i; m < j; m++) {
                add_sum(s, x[m]->ref, sum / (int64_t)(j - i));
                s->ambiguous[x[m]->ref] |= j - i > 1;
            }
        k = l;
    }
    arena_release(a, mark);
}

/* ---- kernels by what Inductor says ---- */

static int by_name(const void *a, const void *b)
{
    const struct tie_kernel *x = a, *y = b;
    int c = strcmp(x->name, y->name);

    return c != 0 ? c : (x->number > y->number) - (x->number < y->number);
}

/* "graph_0_cpp_fused_relu_0" is cpp_fused_relu_0 of the code. */
static const char *plain_name(const char *name)
{
    const char *p = name;

    if (strncmp(p, "graph_", 6) != 0)
        return name;
    p += 6;
    while (*p >= '0' && *p <= '9')
        p++;
    return *p == '_' ? p + 1 : name;
}

static void match_named(const struct program *p, const struct trace *t, const items *run,
                        const struct tie_kernel *kernel, uint32_t n_kernel, const uint32_t *op_of,
                        struct sums *s, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    uint32_t *used = arena_zeroed(a, (n_kernel + 1) * sizeof(*used));

    for (uint32_t i = 0; i < run->len; i++) {
        const char *name = plain_name(trace_str(t, run->at[i].ref));
        uint32_t k = 0, high = n_kernel, first = PROGRAM_NONE;
        while (k < high) {
            uint32_t mid = k + (high - k) / 2;
            if (strcmp(kernel[mid].name, name) < 0)
                k = mid + 1;
            else
                high = mid;
        }
        while (k < n_kernel && used[k] && strcmp(kernel[k].name, name) == 0)
            k++;
        if (k == n_kernel || strcmp(kernel[k].name, name) != 0)
            continue;
        used[k] = 1;
        for (uint32_t j = 0; j < kernel[k].n; j++) {
            str_id id = str_find(&p->str, kernel[k].node[j], strlen(kernel[k].node[j]));
            uint32_t op = id != 0 ? op_of[id] : PROGRAM_NONE;
            if (op == PROGRAM_NONE || class_of(&p->op[op]) != TIE_KERNELS)
                continue;
            if (first == PROGRAM_NONE) {
                first = op;
                add_sum(s, op, run->at[i].ps);
            } else if (op != first) {
                s->n[op] += s->n[op] == 0; /* its time is that of the first */
            }
        }
    }
    arena_release(a, mark);
}

static uint32_t *ops_by_node(const struct program *p, struct arena *a)
{
    uint32_t *op_of = arena_array(a, uint32_t, p->str.all.len + 1);

    memset(op_of, 0xFF, (p->str.all.len + 1) * sizeof(*op_of));
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            op_of[p->node[k]] = i;
    return op_of;
}

/* ---- the graph's windows ---- */

/* How much of the graph a window shows: collectives and products in order count most. */
static uint64_t likeness(const items ops[TIE_CLASS_END], const struct window *w)
{
    uint64_t score = 0;

    for (int c = 0; c < TIE_KERNELS; c++) {
        uint64_t more = ops[c].len > w->item[c].len ? ops[c].len - w->item[c].len
                                                    : w->item[c].len - ops[c].len;
        if (ops[c].len > 0 && same_sequence(&ops[c], &w->item[c]))
            score += 1000000 + ops[c].len;
        else if (ops[c].len > 0 && w->item[c].len > 0 && more <= ops[c].len)
            score += ops[c].len - more;
    }
    return score;
}

static bool is_used(const struct window *w, struct tie_steps s)
{
    return s.every <= 0 || (w->step >= 0 && w->step % s.every == s.rest);
}

static void add_figures(struct trace_figures *sum, const struct trace_figures *x)
{
    sum->step += x->step;
    sum->compute += x->compute;
    sum->comm += x->comm;
    sum->exposed += x->exposed;
    sum->calls += x->calls;
}

static void divide(struct trace_figures *x, uint32_t n)
{
    int64_t *all[] = {&x->step, &x->compute, &x->comm, &x->exposed, &x->calls};

    for (size_t i = 0; n > 0 && i < sizeof(all) / sizeof(*all); i++)
        *all[i] /= n;
    x->idle = x->step - x->compute - x->exposed;
}

static void finish(const items ops[TIE_CLASS_END], const struct sums *s, struct tie *out)
{
    for (int c = 0; c < TIE_CLASS_END; c++) {
        struct tie_count *x = &out->count[c];
        x->n = ops[c].len;
        for (uint32_t i = 0; i < ops[c].len; i++) {
            uint32_t op = ops[c].at[i].ref;
            if (s->n[op] == 0)
                continue;
            out->ps[op] = s->ps[op] / out->n_window;
            x->tied++;
            x->ambiguous += s->ambiguous[op];
            x->ps += out->ps[op];
        }
    }
}

bool tie_graph(const struct trace_part *part, const struct program *p, struct tie_steps steps,
               const struct tie_kernel *kernel, uint32_t n_kernel, struct arena *a, struct tie *out)
{
    items ops[TIE_CLASS_END] = {{NULL, 0, 0}};
    struct window *w;
    struct sums s = {arena_zeroed(a, (p->n_op + 1) * sizeof(*s.ps)),
                     arena_zeroed(a, (p->n_op + 1) * sizeof(*s.n)),
                     arena_zeroed(a, (p->n_op + 1) * sizeof(*s.ambiguous))};
    struct trace_figures used = {0}, judged = {0};
    uint32_t n = windows(part, a, &w), best = TRACE_NONE;
    bool sized = true;

    *out = (struct tie){.n_op = p->n_op, .ps = arena_array(a, int64_t, p->n_op + 1), .part = ""};
    for (uint32_t i = 0; i < p->n_op; i++)
        out->ps[i] = -1;
    for (uint32_t i = 0; i < part->coll.len; i++)
        sized &= part->coll.at[i].bytes >= 0;
    items_of_program(p, sized, a, ops);
    add_kernels(part, w, n, a);
    add_colls(part, w, n, sized, a);
    for (uint32_t i = 0; i < n; i++)
        if (likeness(ops, &w[i]) > (best != TRACE_NONE ? likeness(ops, &w[best]) : 0))
            best = i;
    if (best == TRACE_NONE)
        return false;
    struct tie_kernel *list = arena_array(a, struct tie_kernel, n_kernel + 1);
    if (n_kernel > 0)
        memcpy(list, kernel, n_kernel * sizeof(*list));
    qsort(list, n_kernel, sizeof(*list), by_name);
    const uint32_t *op_of = ops_by_node(p, a);
    for (uint32_t i = 0; i < n; i++) {
        if (w[i].name != w[best].name || likeness(ops, &w[i]) < likeness(ops, &w[best]))
            continue;
        if (!is_used(&w[i], steps)) {
            add_figures(&judged, &w[i].x);
            out->n_judged++;
            continue;
        }
        add_figures(&used, &w[i].x);
        out->n_window++;
        for (int c = 0; c < TIE_KERNELS; c++)
            match(&ops[c], &w[i].item[c], &s, a);
        if (n_kernel > 0)
            match_named(p, part->t, &w[i].item[TIE_KERNELS], list, n_kernel, op_of, &s, a);
        else if (ops[TIE_KERNELS].len == w[i].item[TIE_KERNELS].len)
            match(&ops[TIE_KERNELS], &w[i].item[TIE_KERNELS], &s, a);
    }
    if (out->n_window == 0)
        return false;
    finish(ops, &s, out);
    divide(&used, out->n_window);
    out->gap = p->n_op > 0 && used.idle > 0 ? used.idle / p->n_op : 0;
    out->measured = out->n_judged > 0 ? judged : used;
    out->others = out->n_judged > 0;
    if (out->others)
        divide(&out->measured, out->n_judged);
    else
        out->n_judged = out->n_window;
    out->part = trace_str(part->t, w[best].name);
    for (int c = 0; c < TIE_CLASS_END; c++)
        if (out->count[c].tied > 0)
            return true;
    return false; /* as many of something, but nothing that is the same */
}
