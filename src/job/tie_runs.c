#include "job/tie_runs.h"

#include <stdlib.h>

#include "job/measured_cluster.h"

uint64_t tie_coll_key(unsigned kind, int64_t bytes, bool sized)
{
    return (uint64_t)kind << 56 | (sized && bytes > 0 ? (uint64_t)bytes : 0);
}

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

static void add_kernels(const struct trace_part *p, const struct alone *alone, struct window *w,
                        uint32_t n, struct arena *a)
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
                        ((struct item){(uint64_t)flops, e->name, kernel_alone(alone, s)}));
        else if (p->device || is_fused(trace_str(t, e->name)))
            vec_push_in(a, &x->item[TIE_KERNELS],
                        ((struct item){0, e->name, kernel_alone(alone, s)}));
    }
}

static int by_issued(const void *a, const void *b)
{
    const struct trace_coll *const *x = a, *const *y = b;

    return ((*x)->issued > (*y)->issued) - ((*x)->issued < (*y)->issued);
}

/* A wait of the host, and the last collective that ended during it: what the host waited for. */
struct host_wait {
    int64_t start, end, last;
};

static int by_wait(const void *a, const void *b)
{
    const struct host_wait *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

/* The wait that had begun before that moment, and not ended. */
static struct host_wait *wait_at(struct host_wait *w, uint32_t n, int64_t when)
{
    uint32_t k = begun(w, sizeof(*w), n, when - 1);

    return k > 0 && when <= w[k - 1].end ? &w[k - 1] : NULL;
}

/* The waits of a job without a device; those inside of others are part of them. */
static uint32_t host_waits(const struct trace_part *p, struct arena *a, struct host_wait **out)
{
    struct host_wait *w = arena_array(a, struct host_wait, p->span.len + 1);
    uint32_t n = 0, m = 0;

    for (uint32_t i = 0; !p->device && i < p->span.len; i++)
        if (p->span.at[i].cls == TRACE_WAIT)
            w[n++] = (struct host_wait){p->span.at[i].start, p->span.at[i].end, INT64_MIN};
    qsort(w, n, sizeof(*w), by_wait);
    for (uint32_t i = 0; i < n; i++)
        if (m == 0 || w[i].start >= w[m - 1].end)
            w[m++] = w[i];
    for (uint32_t i = 0; i < p->coll.len; i++) {
        struct host_wait *x = wait_at(w, m, p->coll.at[i].end);
        if (x != NULL && p->coll.at[i].end > x->last)
            x->last = p->coll.at[i].end;
    }
    *out = w;
    return m;
}

/* The time of a collective is what it holds up its group: without a device, from the moment that
 * the host has started it, or that the one before it is done, until the host that waits for it goes
 * on. */
static void add_colls(const struct trace_part *p, const struct alone *alone, struct window *w,
                      uint32_t n, bool sized, struct arena *a)
{
    const struct trace_coll **list = arena_array(a, const struct trace_coll *, p->coll.len + 1);
    struct host_wait *wait;
    uint32_t n_wait = host_waits(p, a, &wait);
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
        const struct host_wait *held = wait_at(wait, n_wait, c->end);
        int64_t end = held != NULL && held->last == c->end ? held->end : c->end;
        int64_t ps = end > from ? end - from : 0;
        x->x.comm += ps;
        if (p->device)
            x->x.exposed += c->exposed;
        ps = ps > 0 ? transfer_alone(alone, from, end) : 0;
        vec_push_in(a, &x->item[TIE_COLLECTIVES],
                    ((struct item){tie_coll_key(c->kind, c->bytes, sized), 0, ps}));
    }
}

uint32_t tie_runs(const struct trace_part *p, bool sized, const struct beside *beside,
                  struct arena *a, struct window **out)
{
    uint32_t n = windows(p, a, out);
    struct alone alone = {.beside = *beside};

    beside_covers(p, a, &alone.cover);
    add_kernels(p, &alone, *out, n, a);
    add_colls(p, &alone, *out, n, sized, a);
    return n;
}
