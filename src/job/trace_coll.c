/* The collectives of a trace: from recorded arguments; in older traces from the annotation or
 * operator around the launch; else from the kernel's name. */
#include <stdlib.h>

#include "job/trace_study.h"

/* ---- what is recorded ---- */

/* Adds what m says and c does not know yet. */
static void learn(struct trace_coll *c, const struct trace *t, const struct trace_more *m)
{
    int64_t n = m->in_n > m->out_n ? m->in_n : m->out_n, bytes;

    if (n == 0 && strcmp(trace_str(t, m->coll), "barrier") != 0)
        n = -1; /* several in one ("coalesced"): how much they are together is not recorded */
    const char *word = trace_str(t, m->dtype);
    const struct trace_dtype *d = trace_dtype(word, strlen(word));

    if (d == NULL)
        d = trace_dtype_in(trace_str(t, m->types));
    if (c->group == 0)
        c->group = m->group;
    if (c->ranks == 0 && strcmp(trace_str(t, m->ranks), "[]") != 0)
        c->ranks = m->ranks;
    if (c->p == 0)
        c->p = m->group_size > 0 && m->group_size < INT32_MAX ? m->group_size : 0;
    if (*c->dtype == '\0' && d != NULL) {
        c->dtype = d->abbr;
        c->elem = d->bytes;
    }
    if (n < 0 && m->dims != 0)
        n = trace_numel(trace_str(t, m->dims));
    if (t->ours)
        c->bytes = m->bytes;
    else if (n >= 0 && c->elem > 0 && size_mul(n, c->elem, &bytes) && bytes > c->bytes)
        c->bytes = bytes;
}

/* A group that is only named, or the only one there is. */
static void learn_group(struct trace_coll *c, const struct trace *t)
{
    for (uint32_t i = 0; i < t->group.len; i++) {
        const struct trace_group *g = &t->group.at[i];
        if (c->group != 0 ? g->name == c->group : t->group.len == 1) {
            c->group = g->name;
            c->p = c->p > 0 ? c->p : g->size;
            c->ranks = c->ranks != 0 ? c->ranks : g->ranks;
        }
    }
}

/* all_gather() of a list of tensors records what goes in, not what comes out: each rank's part. */
static void learn_whole(struct trace_coll *c, const struct trace *t, str_id call)
{
    if (strcmp(trace_str(t, call), "c10d::allgather_") != 0 || c->bytes < 0)
        return;
    if (c->p == 0 || !size_mul(c->bytes, c->p, &c->bytes))
        c->bytes = -1;
}

/* ---- calls of the host ---- */

struct call {
    int64_t start, end;
    str_id tid;
    uint32_t event; /* in trace.cpu */
    uint32_t in;    /* the call around it; TRACE_NONE */
};

struct calls {
    struct call *at;
    uint32_t n;
};

static int by_thread(const void *a, const void *b)
{
    const struct call *x = a, *y = b;

    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    if (x->end != y->end)
        return x->end > y->end ? -1 : 1; /* the outer one first */
    return (x->event > y->event) - (x->event < y->event);
}

/* Call k or the innermost one around it that has not ended by then; TRACE_NONE. */
static uint32_t still_open(const struct calls *c, uint32_t k, str_id tid, int64_t when)
{
    while (k != TRACE_NONE && (c->at[k].tid != tid || c->at[k].end <= when))
        k = c->at[k].tid == tid ? c->at[k].in : TRACE_NONE;
    return k;
}

static void gather_calls(const struct trace *t, struct arena *a, struct calls *out)
{
    out->at = arena_array(a, struct call, t->cpu.len + 1);
    out->n = 0;
    for (uint32_t i = 0; i < t->cpu.len; i++) {
        const struct trace_event *e = &t->cpu.at[i];
        if (e->cls == TRACE_CALL)
            out->at[out->n++] = (struct call){e->start, trace_end(e), e->tid, i, TRACE_NONE};
    }
    qsort(out->at, out->n, sizeof(*out->at), by_thread);
    for (uint32_t i = 1; i < out->n; i++)
        out->at[i].in = still_open(out, i - 1, out->at[i].tid, out->at[i].start);
}

/* The innermost call on that thread around a moment; TRACE_NONE. */
static uint32_t call_around(const struct calls *c, str_id tid, int64_t when)
{
    uint32_t low = 0, high = c->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->at[mid].tid < tid || (c->at[mid].tid == tid && c->at[mid].start <= when))
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 ? still_open(c, low - 1, tid, when) : TRACE_NONE;
}

/* Call k and all calls around it, from the inside out, tell what they know. */
static void learn_calls(struct trace_coll *c, const struct trace *t, const struct calls *calls,
                        uint32_t k)
{
    for (; k != TRACE_NONE; k = calls->at[k].in) {
        const struct trace_event *e = &t->cpu.at[calls->at[k].event];
        tuck_coll kind = trace_kind(trace_str(t, e->name));

        learn(c, t, &t->more.at[e->more]);
        if (kind != 0 && (c->kind == 0 || c->by_name)) {
            c->kind = kind;
            c->by_name = false;
        }
        c->call = calls->at[k].event;
    }
}

/* ---- on a device: each kernel is one ---- */

static int by_correlation(const void *a, const void *b)
{
    const struct trace_launch *x = a, *y = b;

    return (x->correlation > y->correlation) - (x->correlation < y->correlation);
}

static void from_kernels(struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    struct trace_launch *l = arena_array(a, struct trace_launch, t->launch.len + 1);
    struct calls calls;

    gather_calls(t, a, &calls);
    if (t->launch.len > 0)
        memcpy(l, t->launch.at, t->launch.len * sizeof(*l));
    qsort(l, t->launch.len, sizeof(*l), by_correlation);
    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        const struct trace_event *e = &t->gpu.at[s->event];
        struct trace_launch key = {.correlation = e->correlation};

        if (s->cls != TRACE_COMM)
            continue;
        const struct trace_more *m = &t->more.at[e->more];
        struct trace_coll c = {.start = s->start,
                               .end = s->end,
                               .bytes = -1,
                               .dtype = "",
                               .event = s->event,
                               .call = TRACE_NONE,
                               .step = s->step,
                               .name = e->name,
                               .n_rank = 1,
                               .transfer = s->end - s->start};
        c.kind = m->coll != 0 ? trace_kind(trace_str(t, m->coll)) : (tuck_coll)0;
        learn(&c, t, m);
        if (c.kind == 0) {
            c.kind = trace_kind(trace_str(t, e->name));
            c.by_name = true;
        }
        const struct trace_launch *by = e->correlation >= 0 ? bsearch(&key, l, t->launch.len,
                                                                      sizeof(*l), by_correlation)
                                                            : NULL;
        c.issued = by != NULL ? by->start : s->start;
        uint32_t k = by != NULL ? call_around(&calls, by->tid, by->start) : TRACE_NONE;
        if (k != TRACE_NONE)
            learn_calls(&c, t, &calls, k);
        if (c.kind == 0)
            c.kind = TUCK_OTHER_COLLECTIVE;
        learn_group(&c, t);
        if (m->coll == 0 && c.call != TRACE_NONE)
            learn_whole(&c, t, t->cpu.at[c.call].name);
        vec_push_in(a, &p->coll, c);
    }
}

/* ---- without a device: calls, in order, and the library's threads ---- */

/* The outermost calls in the order in which they begin. */
static uint32_t outer_calls(const struct calls *c, uint32_t *outer)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n; i++)
        if (c->at[i].in == TRACE_NONE)
            outer[n++] = i;
    return n;
}

struct issue {
    struct trace_coll c;
    int64_t start;        /* of the call */
    uint32_t first, last; /* the call and those inside of it, in calls */
};

static int by_issue(const void *a, const void *b)
{
    const struct issue *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

static int by_begin(const void *a, const void *b)
{
    const struct trace_span *const *x = a, *const *y = b;

    if ((*x)->start != (*y)->start)
        return (*x)->start < (*y)->start ? -1 : 1;
    return ((*x)->event > (*y)->event) - ((*x)->event < (*y)->event);
}

static uint32_t gather_issues(const struct trace *t, struct calls *calls, struct arena *a,
                              struct issue **out)
{
    uint32_t n = 0;

    gather_calls(t, a, calls);
    uint32_t *outer = arena_array(a, uint32_t, calls->n + 1), m = outer_calls(calls, outer);
    struct issue *list = arena_array(a, struct issue, m + 1);
    for (uint32_t i = 0; i < m; i++) {
        const struct call *k = &calls->at[outer[i]];
        struct issue x = {.start = k->start,
                          .first = outer[i],
                          .last = i + 1 < m ? outer[i + 1] : calls->n,
                          .c = {.bytes = -1, .dtype = "", .call = k->event, .n_rank = 1}};

        for (uint32_t j = x.first; j < x.last; j++) {
            const struct trace_event *e = &t->cpu.at[calls->at[j].event];
            tuck_coll kind = trace_kind(trace_str(t, e->name));
            if (x.c.kind == 0)
                x.c.kind = kind;
            learn(&x.c, t, &t->more.at[e->more]);
        }
        x.c.name = t->cpu.at[k->event].name;
        learn_group(&x.c, t);
        if (x.c.kind != 0)
            list[n++] = x;
    }
    if (n > 0)
        qsort(list, n, sizeof(*list), by_issue);
    *out = list;
    return n;
}

static bool is_barrier(const struct trace *t, const struct trace_event *e)
{
    return strstr(trace_str(t, e->name), "barrier") != NULL;
}

/* Is this transfer one that the call may have started? It is of one of the call's operands. The
 * library may do a collective by another one: gloo's reduce-scatter is an all-reduce. */
static bool fits(const struct trace *t, const struct calls *calls, const struct issue *x,
                 const struct trace_span *s)
{
    const struct trace_event *e = &t->cpu.at[s->event];
    int64_t n = trace_shapes(trace_str(t, t->more.at[e->more].dims), -1).total;
    bool shapes = false, found = false;

    if (s->start < x->start || is_barrier(t, e) != is_barrier(t, &t->cpu.at[x->c.call]))
        return false;
    for (uint32_t i = x->first; i < x->last && n >= 0; i++) {
        str_id dims = t->more.at[t->cpu.at[calls->at[i].event].more].dims;
        struct trace_shapes own = trace_shapes(trace_str(t, dims), n);
        shapes |= own.most >= 0;
        found |= own.found;
    }
    return found || !shapes;
}

static void from_calls(struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    const struct trace_span **run = arena_array(a, const struct trace_span *, p->span.len + 1);
    struct issue *list;
    struct calls calls;
    uint32_t n = gather_issues(t, &calls, a, &list), m = 0, first = 0;

    for (uint32_t i = 0; i < p->span.len; i++)
        if (p->span.at[i].cls == TRACE_COMM)
            run[m++] = &p->span.at[i];
    qsort(run, m, sizeof(*run), by_begin);
    bool *used = arena_zeroed(a, m + 1);
    for (uint32_t i = 0; i < n; i++) {
        enum { MOST_AHEAD = 64 }; /* transfers of others that may have begun meanwhile */
        struct issue *x = &list[i];
        uint32_t seen = 0;

        while (first < m && (used[first] || run[first]->start < x->start))
            first++;
        uint32_t k = first;
        while (k < m && seen < MOST_AHEAD && (used[k] || !fits(t, &calls, x, run[k]))) {
            seen += !used[k];
            k++;
        }
        if (k == m || seen == MOST_AHEAD) {
            p->n_unmatched++;
            continue;
        }
        used[k] = true;
        learn(&x->c, t, &t->more.at[t->cpu.at[run[k]->event].more]);
        learn_whole(&x->c, t, x->c.name);
        x->c.issued = x->start;
        x->c.start = run[k]->start;
        x->c.end = run[k]->end;
        x->c.event = run[k]->event;
        x->c.step = trace_step_at(p, x->start);
        x->c.transfer = x->c.end - x->c.start;
        vec_push_in(a, &p->coll, x->c);
    }
}

static int by_time(const void *a, const void *b)
{
    const struct trace_coll *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

void trace_colls(struct trace_part *p, struct arena *a)
{
    if (p->device)
        from_kernels(p, a);
    else
        from_calls(p, a);
    if (p->coll.len > 0)
        qsort(p->coll.at, p->coll.len, sizeof(*p->coll.at), by_time);
}
