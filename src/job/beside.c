#include "job/beside.h"

#include <math.h>
#include <stdlib.h>

#include "job/barrier.h"
#include "job/factor.h"
#include "job/measured_cluster.h"

/* ---- who is under way when ---- */

void beside_covers(const struct trace_part *p, struct arena *a, struct beside_covers *out)
{
    struct trace_span *s = arena_array(a, struct trace_span, p->coll.len + 1);

    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = &p->coll.at[i];
        s[i] = (struct trace_span){.start = c->end - c->transfer, .end = c->end, .cls = TRACE_COMM};
    }
    trace_cover_make(s, p->coll.len, 1u << TRACE_COMM, a, &out->comm);
    trace_cover_make(p->span.at, p->span.len, 1u << TRACE_COMPUTE, a, &out->compute);
}

double beside_share(const struct trace_cover *c, int64_t start, int64_t end)
{
    return end > start ? (double)trace_covered(c, start, end) / (double)(end - start) : 0;
}

struct edge {
    int64_t when;
    uint32_t coll;
    bool end;
};

static int by_when(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    if (x->when != y->when)
        return x->when < y->when ? -1 : 1;
    return (int)y->end - (int)x->end;
}

double *beside_own(const struct trace_part *p, struct arena *a)
{
    uint32_t n = p->coll.len, active = 0;
    struct edge *list = arena_array(a, struct edge, 2 * (size_t)n + 1);
    double *share = arena_array(a, double, n + 1), own = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct trace_coll *c = &p->coll.at[i];
        list[2 * i] = (struct edge){c->start, i, false};
        list[2 * i + 1] = (struct edge){c->end > c->start ? c->end : c->start, i, true};
        share[i] = 1;
    }
    if (p->device || n == 0)
        return share;
    qsort(list, 2 * (size_t)n, sizeof(*list), by_when);
    for (uint32_t k = 0; k < 2 * n; k++) {
        const struct trace_coll *c = &p->coll.at[list[k].coll];
        if (active > 0)
            own += (double)(list[k].when - list[k - 1].when) / active;
        if (!list[k].end)
            share[list[k].coll] = own;
        else if (c->end > c->start)
            share[list[k].coll] = (own - share[list[k].coll]) / (double)(c->end - c->start);
        active = list[k].end ? active - 1 : active + 1;
    }
    return share;
}

/* ---- kernels ---- */

/* What a kernel does, by its name and the shapes of its operands. A kernel of a device has those of
 * the operator that launched it; without one, Inductor's alone always do the same. */
static bool known_work(const struct trace_part *p, const struct trace_event *e,
                       const struct trace_event **op, uint32_t n_op, str_id *dims)
{
    const struct trace *t = p->t;
    const struct trace_event *by = p->device ? trace_operator_of(op, n_op, e) : e;

    *dims = by != NULL ? t->operand.at[by->more].dims : 0;
    return *dims != 0 || strstr(trace_str(t, e->name), "_fused_") != NULL;
}

/* Something that runs beside kernels: its intervals, by a clock that is ahead. */
struct other {
    const struct trace_cover *cover;
    int64_t ahead;
};

static double share_of_others(const struct other *o, uint32_t n, const struct trace_span *s)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += beside_share(o[i].cover, s->start + o[i].ahead, s->end + o[i].ahead);
    return n > 0 ? sum / n : 0;
}

static uint32_t kernel_samples(const struct trace_part *p, uint32_t at, const struct other *o,
                               uint32_t n_other, struct arena *a, struct factor_sample *out)
{
    const struct trace *t = p->t;
    int64_t busy = INT64_MIN;
    uint32_t n = 0, step = TRACE_NONE, n_op;
    const struct trace_event **op = trace_operators(t, a, &n_op);
    str_id dims;

    for (uint32_t i = 0; i < p->span.len; i++) { /* by step and start */
        const struct trace_span *s = &p->span.at[i];
        const struct trace_event *e = p->device ? &t->gpu.at[s->event] : &t->cpu.at[s->event];

        if (s->step != step)
            busy = INT64_MIN;
        step = s->step;
        if (step == TRACE_NONE || s->cls == TRACE_COMM || s->cls == TRACE_MEMORY ||
            s->end <= s->start || (!p->device && s->end <= busy))
            continue; /* or inside of another operator */
        busy = s->end > busy ? s->end : busy;
        if (s->cls != TRACE_COMPUTE || !known_work(p, e, op, n_op, &dims))
            continue;
        out[n++] = (struct factor_sample){{(uint64_t)at << 32 | e->name, dims},
                                          share_of_others(o, n_other, s),
                                          (double)(s->end - s->start)};
    }
    return n;
}

/* ---- transfers ---- */

struct message {
    uint64_t what; /* kind and ranks */
    double bytes, latency, share, time;
};

static int by_message(const void *a, const void *b)
{
    const struct message *x = a, *y = b;

    return (x->what > y->what) - (x->what < y->what);
}

static int by_double(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

struct latency {
    int64_t p;
    double round; /* ps */
};

typedef VEC(struct latency) latencies;

/* By barriers among as many ranks; 0: not known. */
static double latency_of(const struct trace_part *p, const struct trace_coll *c, latencies *known,
                         struct arena *a)
{
    const struct tie_steps all = {0, 0};
    uint32_t i = 0;

    if (p->device || c->p < 2)
        return 0;
    while (i < known->len && known->at[i].p != c->p)
        i++;
    if (i == known->len) {
        struct latency x = {c->p, barrier_round_us(p, all, c->p) * PS_PER_US};
        vec_push_in(a, known, x);
    }
    return known->at[i].round * (double)message_rounds(c->kind, c->p);
}

/* All that moved bytes, those of one kind and number of ranks one after the other. */
static uint32_t messages(const struct trace_part *part, uint32_t n_part,
                         const struct beside_covers *c, struct arena *a, struct message **out)
{
    size_t most = 0;
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_part; i++)
        most += part[i].coll.len;
    struct message *m = *out = arena_array(a, struct message, most + 1);
    for (uint32_t k = 0; k < n_part; k++) {
        const struct trace_part *p = &part[k];
        const double *own = beside_own(p, a);
        latencies known = {NULL, 0, 0};
        for (uint32_t i = 0; i < p->coll.len; i++) {
            const struct trace_coll *x = &p->coll.at[i];
            if (x->step == TRACE_NONE || x->bytes <= 0 || x->transfer <= 0)
                continue;
            m[n++] = (struct message){(uint64_t)x->kind << 40 | (uint64_t)x->p, (double)x->bytes,
                                      latency_of(p, x, &known, a),
                                      beside_share(&c[k].compute, x->end - x->transfer, x->end),
                                      (double)x->transfer * own[i]};
        }
    }
    qsort(m, n, sizeof(*m), by_message);
    return n;
}

/* about: messages of about the same size are the same work, in proportion to their bytes. */
static double fit_sizes(const struct message *m, uint32_t n, bool about, struct arena *a,
                        uint32_t *used)
{
    struct factor_sample *s = arena_array(a, struct factor_sample, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        uint64_t size = about ? (uint64_t)lround(2 * log2(m[i].bytes)) : (uint64_t)m[i].bytes;
        s[i] = (struct factor_sample){
            {m[i].what, size}, m[i].share, m[i].time / (about ? m[i].bytes : 1)};
    }
    return factor_fit(s, n, a, used);
}

/* Of messages of one kind, the time alone of a byte beyond the latency: the median. */
static double time_of_byte(const struct message *m, uint32_t n, double factor, struct arena *a)
{
    double *by = arena_array(a, double, n + 1);

    for (uint32_t i = 0; i < n; i++)
        by[i] = fmax(beside_alone(m[i].time, m[i].share, factor) - m[i].latency, 0) / m[i].bytes;
    qsort(by, n, sizeof(*by), by_double);
    return by[n / 2];
}

/* Messages of all sizes are the same work, if their latency is known: it counts as so many more
 * bytes. How many those are depends on the factor, so it takes some turns. A message of one size
 * usually runs at one place of the step, and so always beside kernels or never. */
static double fit_law(const struct message *m, uint32_t n, struct arena *a, uint32_t *used)
{
    enum { TURNS = 8 };
    struct factor_sample *s = arena_array(a, struct factor_sample, n + 1);
    double factor = 1;

    *used = 0;
    for (uint32_t i = 0; i < n; i++)
        if (m[i].latency <= 0)
            return 0;
    for (int turn = 0; turn < TURNS && factor > 0; turn++) {
        for (uint32_t i = 0, k; i < n; i = k) {
            for (k = i; k < n && m[k].what == m[i].what;)
                k++;
            double byte = time_of_byte(&m[i], k - i, factor, a);
            for (uint32_t j = i; j < k; j++)
                s[j] = (struct factor_sample){
                    {m[j].what, 0}, m[j].share, m[j].time / (m[j].latency + byte * m[j].bytes)};
        }
        factor = factor_fit(s, n, a, used);
    }
    return factor;
}

/* ---- other ranks ---- */

/* Collectives end on all ranks together: by how much the clock of y is ahead of that of x. */
static int64_t clock_ahead(const struct trace_part *x, const struct trace_part *y, struct arena *a)
{
    double *by = arena_array(a, double, x->coll.len + 1);

    for (uint32_t i = 0; i < x->coll.len; i++)
        by[i] = (double)(y->coll.at[i].end - x->coll.at[i].end);
    qsort(by, x->coll.len, sizeof(*by), by_double);
    return (int64_t)by[x->coll.len / 2];
}

/* One part for each rank, with as many collectives? */
static bool are_ranks(const struct trace_part *part, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (part[i].device || part[i].coll.len == 0 || part[i].coll.len != part[0].coll.len)
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (part[k].t->rank == part[i].t->rank)
                return false;
    }
    return n > 1;
}

static double fit_ranks(const struct trace_part *part, uint32_t n, const struct beside_covers *c,
                        struct arena *a, struct factor_sample *s)
{
    enum { MOST = 8 }; /* those that share cores are next to each other */
    struct other o[MOST];
    uint32_t m = 0, used;

    if (!are_ranks(part, n))
        return 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_other = 0;
        for (uint32_t by = 1; by < n && n_other < MOST; by++) {
            uint32_t k = (i + by) % n;
            o[n_other++] = (struct other){&c[k].compute, clock_ahead(&part[i], &part[k], a)};
        }
        m += kernel_samples(&part[i], i, o, n_other, a, &s[m]);
    }
    return factor_fit(s, m, a, &used);
}

void beside_fit(const struct trace_part *part, uint32_t n, struct arena *a, struct beside *out)
{
    struct beside_covers *c = arena_array(a, struct beside_covers, n + 1);
    struct message *m;
    size_t spans = 0;
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        spans += part[i].span.len;
    struct factor_sample *s = arena_array(a, struct factor_sample, spans + 1);
    for (uint32_t i = 0; i < n; i++) {
        beside_covers(&part[i], a, &c[i]);
        struct other comm = {&c[i].comm, 0};
        k += kernel_samples(&part[i], i, &comm, 1, a, &s[k]);
    }
    *out = (struct beside){.kernel = 0};
    out->kernel = factor_fit(s, k, a, &out->n_kernel);
    out->ranks = fit_ranks(part, n, c, a, s);
    uint32_t n_message = messages(part, n, c, a, &m);
    out->transfer = fit_law(m, n_message, a, &out->n_transfer);
    for (int about = 0; out->transfer == 0 && about < 2; about++)
        out->transfer = fit_sizes(m, n_message, about, a, &out->n_transfer);
}
