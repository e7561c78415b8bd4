#include "job/tie_trace.h"

#include <stdio.h>
#include <stdlib.h>

#include "job/code_order.h"
#include "job/measured_cluster.h"
#include "job/tie_host.h"

/* ---- the program ---- */

/* Between two graphs of a job. */
static bool is_wall(const struct program *p, const struct program_op *op)
{
    return strncmp(program_str(p, op->kernel), "tuck.next_graph", 15) == 0;
}

static enum tie_class class_of(const struct program_op *op)
{
    if (op->kind == PROGRAM_COLLECTIVE)
        return TIE_COLLECTIVES;
    return op->kind == PROGRAM_GEMM ? TIE_PRODUCTS : TIE_KERNELS;
}

/* By its operations; what the trace does not say the operations of, convolutions and attention, by
 * its name, "aten.convolution.default" as "aten::convolution". */
static uint64_t product_key(const struct program *p, const struct program_op *op,
                            const struct trace_part *part)
{
    const char *kernel = program_str(p, op->kernel), *dot = strchr(kernel, '.');
    bool shapes = part->device || part->t->operand.len > 1;
    char name[96];

    if (dot == NULL)
        return (uint64_t)op->flops;
    int len = snprintf(name, sizeof(name), "%.*s::%.*s", (int)(dot - kernel), kernel,
                       (int)strcspn(dot + 1, "."), dot + 1);
    if (part->device || len >= (int)sizeof(name) || (shapes && trace_has_flops(name)))
        return (uint64_t)op->flops;
    return tie_name_key(str_find(&part->t->str, name, (size_t)len));
}

static void items_of_program(const struct program *p, const struct trace_part *part, bool sized,
                             struct arena *a, items out[TIE_CLASS_END])
{
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        enum tie_class c = class_of(op);
        if (op->kind == PROGRAM_WAIT || (op->flags & PROGRAM_NOP) || is_wall(p, op))
            continue;
        vec_push_in(a, &out[c],
                    ((struct item){c == TIE_COLLECTIVES ? tie_coll_key(op->coll, op->message, sized)
                                   : c == TIE_PRODUCTS  ? product_key(p, op, part)
                                                        : 0,
                                   i, 0, 0, false}));
    }
}

/* ---- matching ---- */

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
    if (tie_same_sequence(ops, run)) {
        for (uint32_t i = 0, k = 0; k < run->len; k++)
            if (!run->at[k].other)
                add_sum(s, ops->at[i++].ref, run->at[k].ps);
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

struct numbered {
    int64_t number;
    struct item item;
};

static int by_number(const void *a, const void *b)
{
    const struct numbered *x = a, *y = b;

    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->item.ref < y->item.ref ? -1 : x->item.ref > y->item.ref;
}

/* Inductor numbers its calls in the order of the code: if it names all ops of a class, they are put
 * in that order. */
static void order_of_code(const struct program *p, enum tie_class c,
                          const struct tie_kernel *kernel, uint32_t n_kernel, const uint32_t *op_of,
                          struct arena *a, items *ops)
{
    struct arena_mark mark = arena_mark(a);
    int64_t *number = arena_zeroed(a, (p->n_op + 1) * sizeof(*number));
    struct numbered *list = arena_array(a, struct numbered, ops->len + 1);
    bool all = true;

    for (uint32_t k = 0; k < n_kernel; k++)
        for (uint32_t i = 0; code_calls(kernel[k].name, c) && i < kernel[k].n; i++) {
            str_id id = str_find(&p->str, kernel[k].node[i], strlen(kernel[k].node[i]));
            uint32_t op = id != 0 ? code_called_op(p, op_of[id]) : PROGRAM_NONE;
            if (op != PROGRAM_NONE && class_of(&p->op[op]) == c && kernel[k].number > 0)
                number[op] = kernel[k].number;
        }
    for (uint32_t i = 0; i < ops->len; i++) {
        list[i] = (struct numbered){number[ops->at[i].ref], ops->at[i]};
        all &= list[i].number > 0;
    }
    qsort(list, ops->len, sizeof(*list), by_number);
    for (uint32_t i = 0; all && i < ops->len; i++)
        ops->at[i] = list[i].item;
    arena_release(a, mark);
}

/* ---- the graph's windows ---- */

/* Those that may be the program's. */
static uint32_t count_own(const items *run)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->len; i++)
        n += !run->at[i].other;
    return n;
}

/* How much of the graph a window shows: collectives and products in order count most. */
static uint64_t likeness(const items ops[TIE_CLASS_END], const struct window *w)
{
    uint64_t score = 0;

    for (int c = 0; c < TIE_KERNELS; c++) {
        uint32_t own = count_own(&w->item[c]);
        uint64_t more = ops[c].len > own ? ops[c].len - own : own - ops[c].len;
        if (ops[c].len > 0 && tie_same_sequence(&ops[c], &w->item[c]))
            score += 1000000 + ops[c].len;
        else if (ops[c].len > 0 && own > 0 && more <= ops[c].len)
            score += ops[c].len - more;
    }
    return score;
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

static void finish(const items ops[TIE_CLASS_END], const struct program *p, const struct sums *s,
                   struct arena *a, struct tie *out)
{
    uint32_t n = 0;

    out->ambiguous = arena_array(a, const char *, ops[TIE_COLLECTIVES].len + 1);
    for (int c = 0; c < TIE_CLASS_END; c++) {
        struct tie_count *x = &out->count[c];
        x->n = ops[c].len;
        for (uint32_t i = 0; i < ops[c].len; i++) {
            uint32_t op = ops[c].at[i].ref;
            const char *name = program_str(p, p->op[op].name);
            if (s->n[op] == 0)
                continue;
            out->ps[op] = s->ps[op] / out->n_window;
            x->tied++;
            x->ambiguous += s->ambiguous[op];
            x->ps += out->ps[op];
            if (c == TIE_COLLECTIVES && s->ambiguous[op])
                out->ambiguous[n++] = arena_str(a, name, strlen(name));
        }
    }
}

/* ---- some of the runs ---- */

static int by_time(const void *a, const void *b)
{
    const struct window *const *x = a, *const *y = b;

    if ((*x)->x.step != (*y)->x.step)
        return (*x)->x.step < (*y)->x.step ? -1 : 1;
    return ((*x)->start > (*y)->start) - ((*x)->start < (*y)->start);
}

/* A run in which the machine did something else says nothing about the graph: the longest quarter
 * is left out, and as many of the shortest. */
static void middle_half(struct runs *r)
{
    uint32_t drop = r->n / 4;

    qsort(r->at, r->n, sizeof(struct window *), by_time);
    r->at += drop;
    r->n -= 2 * drop;
}

static struct trace_figures mean(const struct runs *r)
{
    struct trace_figures x = {0};

    for (uint32_t i = 0; i < r->n; i++)
        add_figures(&x, &r->at[i]->x);
    divide(&x, r->n);
    return x;
}

static uint64_t most_like(const items ops[TIE_CLASS_END], const struct window *w, uint32_t n)
{
    uint64_t most = 0;

    for (uint32_t i = 0; i < n; i++)
        most = likeness(ops, &w[i]) > most ? likeness(ops, &w[i]) : most;
    return most;
}

/* How many graphs a job's step has: there is a wall between each two of them. */
static uint32_t count_graphs(const struct program *p)
{
    uint32_t n = 1;

    for (uint32_t i = 0; i < p->n_op; i++)
        n += is_wall(p, &p->op[i]);
    return n;
}

/* A call of a compiled graph; or whole steps, if those are more like it: it is the forward and the
 * backward of a job; or as many calls one after the other, if in a step there are more of them. */
static uint32_t find_runs(const struct trace_part *part, const items ops[TIE_CLASS_END],
                          uint32_t n_graph, bool sized, const struct beside *beside,
                          struct arena *a, struct window **out)
{
    enum { MOST_GRAPHS = 64 };
    struct window *calls, *steps, *joined;
    uint32_t n = tie_runs(part, &ops[TIE_PRODUCTS], false, sized, beside, a, &calls);
    uint32_t n_step = tie_runs(part, &ops[TIE_PRODUCTS], true, sized, beside, a, &steps);

    tie_mark_others(ops, calls, n, a);
    tie_mark_others(ops, steps, n_step, a);
    uint64_t of_steps = most_like(ops, steps, n_step), of_calls = most_like(ops, calls, n);
    if (n_graph > 1 && n_graph <= MOST_GRAPHS) {
        uint32_t n_joined = tie_join_runs(calls, n, n_graph, a, &joined);
        uint64_t of_joined = most_like(ops, joined, n_joined);
        if (of_joined > of_steps && of_joined > of_calls) {
            *out = joined;
            return n_joined;
        }
    }
    bool whole = of_steps > of_calls;

    *out = whole ? steps : calls;
    return whole ? n_step : n;
}

/* Inductor's number of a compiled graph, from its kernels: "graph_3_cpp_fused_relu_0"; -1. */
static int64_t code_number(const struct trace *t, const struct window *w)
{
    const items *run = &w->item[TIE_KERNELS];

    for (uint32_t i = 0; i < run->len; i++) {
        const char *name = trace_str(t, run->at[i].ref);
        if (strncmp(name, "graph_", 6) == 0 && name[6] >= '0' && name[6] <= '9')
            return strtoll(name + 6, NULL, 10);
    }
    return -1;
}

/* Are there several compiled graphs as like to it as the best, for all that the trace says? Calls
 * have the key of the cache, if there is one, and kernels the number of their graph. */
static bool are_several(const struct trace *t, const items ops[TIE_CLASS_END],
                        const struct window *w, uint32_t n, const struct window *best)
{
    uint64_t most = likeness(ops, best);
    int64_t number = code_number(t, best), last = -1;
    bool keyed = strstr(trace_str(t, best->name), " None ") == NULL;

    for (uint32_t i = 0; i < n; i++) {
        if (likeness(ops, &w[i]) != most)
            continue;
        if (w[i].name != best->name || (!keyed && code_number(t, &w[i]) != number))
            return true;
        if (!keyed && number < 0 && w[i].step == last)
            return true;
        last = w[i].step;
    }
    return false;
}

/* The runs of the graph: those as like to it as any, of the same compiled graph. */
static const struct window *choose_runs(const items ops[TIE_CLASS_END], struct window *w,
                                        uint32_t n, struct tie_steps steps, struct arena *a,
                                        struct runs *used, struct runs *judged)
{
    uint64_t most = 0;
    const struct window *best = NULL;

    for (uint32_t i = 0; i < n; i++)
        if (likeness(ops, &w[i]) > most) {
            most = likeness(ops, &w[i]);
            best = &w[i];
        }
    used->at = arena_array(a, struct window *, n + 1);
    judged->at = arena_array(a, struct window *, n + 1);
    int64_t end = INT64_MIN; /* joined calls overlap */
    for (uint32_t i = 0; best != NULL && i < n; i++)
        if (w[i].name == best->name && w[i].start >= end && likeness(ops, &w[i]) == most) {
            struct runs *r = step_is_used(steps, w[i].step) ? used : judged;
            r->at[r->n++] = &w[i];
            end = w[i].end;
        }
    return best;
}

/* The rate of kernels that are no products: of those that are tied; or, if none is and the run is
 * one of the same products, of all that it has, which do about the same as the graph's. */
static double loop_rate(const items *ops, const struct program *p, const struct runs *used,
                        const struct tie *t)
{
    enum { LEAST = 1 << 20 }; /* bytes */
    const struct tie_count *x = &t->count[TIE_KERNELS], *product = &t->count[TIE_PRODUCTS];
    bool all = x->tied == 0 && product->n > 0 && product->tied == product->n;
    double bytes = 0, ps = 0;

    for (uint32_t i = 0; i < ops->len; i++) {
        uint32_t op = ops->at[i].ref;
        if (all || t->ps[op] >= 0)
            bytes += p->op[op].moved > 0 ? (double)p->op[op].moved : 0;
        ps += t->ps[op] >= 0 ? (double)t->ps[op] : 0;
    }
    for (uint32_t i = 0; all && i < used->n; i++) {
        const items *run = &used->at[i]->item[TIE_KERNELS];
        for (uint32_t k = 0; k < run->len; k++)
            ps += (double)run->at[k].ps / used->n;
    }
    return bytes >= LEAST && ps > 0 ? bytes / ps * PS_PER_NS : 0;
}

bool tie_graph(const struct trace_part *part, const struct program *p, struct tie_steps steps,
               const struct tie_kernel *kernel, uint32_t n_kernel, const struct beside *beside,
               struct arena *a, struct tie *out)
{
    items ops[TIE_CLASS_END] = {{NULL, 0, 0}};
    struct window *w;
    struct sums s = {arena_zeroed(a, (p->n_op + 1) * sizeof(*s.ps)),
                     arena_zeroed(a, (p->n_op + 1) * sizeof(*s.n)),
                     arena_zeroed(a, (p->n_op + 1) * sizeof(*s.ambiguous))};
    struct runs used = {NULL, 0}, judged = {NULL, 0};
    struct tie_kernel *list = arena_array(a, struct tie_kernel, n_kernel + 1);
    bool sized = true;

    *out = (struct tie){.n_op = p->n_op,
                        .ps = arena_array(a, int64_t, p->n_op + 1),
                        .alone = beside != NULL,
                        .part = ""};
    if (beside != NULL)
        out->beside = *beside;
    for (uint32_t i = 0; i < p->n_op; i++)
        out->ps[i] = -1;
    for (uint32_t i = 0; i < part->coll.len; i++)
        sized &= part->coll.at[i].bytes >= 0 || part->coll.at[i].kind == TUCK_OTHER_COLLECTIVE;
    if (n_kernel > 0)
        memcpy(list, kernel, n_kernel * sizeof(*list));
    qsort(list, n_kernel, sizeof(*list), by_name);
    const uint32_t *op_of = code_ops_by_node(p, a);
    items_of_program(p, part, sized, a, ops);
    for (int c = 0; c < TIE_KERNELS; c++)
        order_of_code(p, (enum tie_class)c, list, n_kernel, op_of, a, &ops[c]);
    uint32_t n = find_runs(part, ops, count_graphs(p), sized, beside, a, &w);
    const struct window *best = choose_runs(ops, w, n, steps, a, &used, &judged);
    out->n_run = used.n;
    if (used.n == 0)
        return false;
    middle_half(&used);
    middle_half(&judged);
    out->n_window = used.n;
    for (uint32_t i = 0; i < used.n; i++) {
        const items *run = used.at[i]->item;
        for (int c = 0; c < TIE_KERNELS; c++)
            match(&ops[c], &run[c], &s, a);
        if (n_kernel > 0)
            match_named(p, part->t, &run[TIE_KERNELS], list, n_kernel, op_of, &s, a);
        else if (ops[TIE_KERNELS].len == run[TIE_KERNELS].len)
            match(&ops[TIE_KERNELS], &run[TIE_KERNELS], &s, a);
    }
    if (are_several(part->t, ops, w, n, best))
        for (uint32_t i = 0; i < p->n_op; i++)
            s.ambiguous[i] = true;
    finish(ops, p, &s, a, out);
    out->loop_gbps = loop_rate(&ops[TIE_KERNELS], p, &used, out);
    struct trace_figures x = mean(&used);
    out->lost = out->alone ? tie_waiting(p, &used, beside) : 0;
    int64_t host = tie_host_time(part, steps, &ops[TIE_COLLECTIVES], &used, &x, a) + out->lost;
    out->gap = p->n_op > 0 && host > 0 ? host / p->n_op : 0;
    out->others = judged.n > 0;
    out->measured = out->others ? mean(&judged) : x;
    out->n_judged = out->others ? judged.n : used.n;
    const char *name = trace_str(part->t, best->name);
    out->part = arena_str(a, name, strlen(name));
    for (int c = 0; c < TIE_CLASS_END; c++)
        if (out->count[c].tied > 0)
            return true;
    return false; /* as many of something, but nothing that is the same */
}
