#include "job/tie_runs.h"

#include <stdlib.h>

#include "job/hold.h"

uint64_t tie_coll_key(unsigned kind, int64_t bytes, bool sized)
{
    return (uint64_t)kind << 56 | (sized && bytes > 0 ? (uint64_t)bytes : 0);
}

bool tie_same_sequence(const items *ops, const items *run)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < run->len; i++) {
        if (run->at[i].other)
            continue;
        if (n == ops->len || ops->at[n].key != run->at[i].key)
            return false;
        n++;
    }
    return n == ops->len;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The keys of ops, sorted. */
static uint64_t *keys(const items *ops, struct arena *a)
{
    uint64_t *key = arena_array(a, uint64_t, ops->len + 1);

    for (uint32_t i = 0; i < ops->len; i++)
        key[i] = ops->at[i].key;
    qsort(key, ops->len, sizeof(*key), by_key);
    return key;
}

void tie_mark_others(const items ops[TIE_CLASS_END], struct window *w, uint32_t n, struct arena *a)
{
    for (int c = 0; c < TIE_KERNELS; c++) {
        struct arena_mark mark = arena_mark(a);
        const uint64_t *key = keys(&ops[c], a);

        for (uint32_t i = 0; i < n; i++)
            for (uint32_t k = 0; k < w[i].item[c].len; k++) {
                struct item *x = &w[i].item[c].at[k];
                x->other = bsearch(&x->key, key, ops[c].len, sizeof(*key), by_key) == NULL;
            }
        arena_release(a, mark);
    }
}

static int by_start(const void *a, const void *b)
{
    const struct window *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static uint32_t windows(const struct trace_part *p, bool whole, struct arena *a,
                        struct window **out)
{
    bool calls = !whole && p->t->region.len > 0;
    uint32_t n = calls ? p->t->region.len : p->step.len, m = 0;
    struct window *w = arena_zeroed(a, (n + 1) * sizeof(*w));

    for (uint32_t i = 0; i < n; i++) {
        if (calls) {
            const struct trace_region *r = &p->t->region.at[i];
            uint32_t step = trace_step_at(p, r->start);
            if (step == TRACE_NONE)
                continue;
            w[m++] = (struct window){.start = r->start,
                                     .end = r->start + r->dur,
                                     .step = p->step.at[step].number,
                                     .name = r->name,
                                     .x.step = r->dur};
        } else {
            w[m++] = (struct window){.start = p->step.at[i].start,
                                     .end = p->step.at[i].end,
                                     .step = p->step.at[i].number,
                                     .x.step = p->step.at[i].x.step};
        }
    }
    qsort(w, m, sizeof(*w), by_start);
    *out = w;
    return m;
}

/* How many of n structs, in order and each with its start as the first member, have begun. */
static uint32_t begun(const void *first, size_t size, uint32_t n, int64_t when)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int64_t start;
        memcpy(&start, (const char *)first + mid * size, sizeof(start));
        if (start <= when)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct window *window_at(struct window *w, uint32_t n, int64_t when)
{
    uint32_t k = begun(w, sizeof(*w), n, when);

    return k > 0 && when < w[k - 1].end ? &w[k - 1] : NULL;
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

/* The rules by which times of items are what they would be alone. */
struct alone {
    struct beside_covers cover;
    struct beside beside;
    bool waits; /* for other ranks: they are part of a collective's time */
};

static int64_t kernel_alone(const struct alone *by, const struct trace_span *s)
{
    double share = beside_share(&by->cover.comm, s->start, s->end);

    return (int64_t)beside_alone((double)(s->end - s->start), share, by->beside.kernel);
}

static int64_t transfer_alone(const struct alone *by, int64_t from, int64_t end)
{
    double share = beside_share(&by->cover.compute, from, end);

    return (int64_t)beside_alone((double)(end - from), share, by->beside.transfer);
}

static void count_host(struct window *x, const struct trace_span *s)
{
    if (s->cls == TRACE_CALL) {
        x->x.calls += s->end - s->start;
        x->started = true;
    } else if (s->cls == TRACE_WAIT) {
        x->x.exposed += s->end - s->start;
        x->stops += x->started;
        x->started = false;
    }
}

/* The key of a product; 0: it is none that the program may have. */
static uint64_t product_of(const struct trace *t, const struct trace_event *e,
                           const struct trace_event *by, bool device, const uint64_t *wanted,
                           uint32_t n)
{
    double flops = by != NULL ? trace_product(trace_str(t, by->name),
                                              trace_str(t, t->operand.at[by->more].dims))
                              : 0;
    uint64_t key = tie_name_key(e->name);

    if (flops > 0)
        return (uint64_t)flops;
    return !device && bsearch(&key, wanted, n, sizeof(key), by_key) != NULL ? key : 0;
}

static void add_kernels(const struct trace_part *p, const items *products,
                        const struct alone *alone, struct window *w, uint32_t n, struct arena *a)
{
    const struct trace *t = p->t;
    const uint64_t *wanted = keys(products, a);
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
            count_host(x, s);
        }
        if (s->cls != TRACE_COMPUTE)
            continue;
        const struct trace_event *e = p->device ? &t->gpu.at[s->event] : &t->cpu.at[s->event];
        const struct trace_event *by = p->device      ? trace_operator_of(op, n_op, e)
                                       : e->more != 0 ? e
                                                      : NULL;
        uint64_t key = product_of(t, e, by, p->device, wanted, products->len);
        x->x.compute += s->end - s->start;
        if (key != 0)
            vec_push_in(a, &x->item[TIE_PRODUCTS],
                        ((struct item){key, e->name, kernel_alone(alone, s), 0, false}));
        else if (p->device || is_fused(trace_str(t, e->name)))
            vec_push_in(a, &x->item[TIE_KERNELS],
                        ((struct item){0, e->name, kernel_alone(alone, s), 0, false}));
    }
}

static int by_issued(const void *a, const void *b)
{
    const struct trace_coll *const *x = a, *const *y = b;

    if ((*x)->issued != (*y)->issued)
        return (*x)->issued < (*y)->issued ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static void add_colls(const struct trace_part *p, const struct alone *alone, struct window *w,
                      uint32_t n, bool sized, struct arena *a)
{
    const struct trace_coll **list = arena_array(a, const struct trace_coll *, p->coll.len + 1);
    const struct hold *hold = trace_holds(p, a);

    for (uint32_t i = 0; i < p->coll.len; i++)
        list[i] = &p->coll.at[i];
    qsort(list, p->coll.len, sizeof(*list), by_issued);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = list[i];
        const struct hold *h = &hold[c - p->coll.at];
        struct window *x = window_at(w, n, c->issued);
        int64_t ps = h->end - h->from, call = 0;

        if (x == NULL)
            continue;
        x->x.comm += ps;
        if (p->device)
            x->x.exposed += c->exposed;
        else if (c->call != TRACE_NONE)
            call = p->t->cpu.at[c->call].dur;
        x->lost += h->lost;
        if (ps > 0)
            ps = transfer_alone(alone, h->from + (alone->waits ? 0 : h->wait), h->end);
        vec_push_in(a, &x->item[TIE_COLLECTIVES],
                    ((struct item){tie_coll_key(c->kind, c->bytes, sized), 0, ps, call, false}));
    }
}

uint32_t tie_runs(const struct trace_part *p, const items *products, bool whole, bool sized,
                  const struct beside *beside, struct arena *a, struct window **out)
{
    uint32_t n = windows(p, whole, a, out);
    struct beside none = {.kernel = 0};
    struct alone alone = {.beside = beside != NULL ? *beside : none, .waits = beside == NULL};

    beside_covers(p, a, &alone.cover);
    add_kernels(p, products, &alone, *out, n, a);
    add_colls(p, &alone, *out, n, sized, a);
    return n;
}

static void join(struct window *to, const struct window *w, struct arena *a)
{
    for (int c = 0; c < TIE_CLASS_END; c++)
        for (uint32_t i = 0; i < w->item[c].len; i++)
            vec_push_in(a, &to->item[c], w->item[c].at[i]);
    to->end = w->end;
    to->x.step += w->x.step;
    to->x.compute += w->x.compute;
    to->x.comm += w->x.comm;
    to->x.exposed += w->x.exposed;
    to->x.calls += w->x.calls;
    to->lost += w->lost;
    to->stops += w->stops;
}

uint32_t tie_join_runs(const struct window *w, uint32_t n, uint32_t m, struct arena *a,
                       struct window **out)
{
    struct window *list = arena_array(a, struct window, n + 1);
    uint32_t k = 0;

    for (uint32_t i = 0; m > 0 && i + m <= n; i++) {
        bool apart = true; /* no call inside of another */
        for (uint32_t j = i + 1; j < i + m; j++)
            apart &= w[j].step == w[i].step && w[j].start >= w[j - 1].end;
        if (!apart)
            continue;
        list[k] = (struct window){.start = w[i].start, .step = w[i].step};
        for (uint32_t j = i; j < i + m; j++)
            join(&list[k], &w[j], a);
        k++;
    }
    *out = list;
    return k;
}
