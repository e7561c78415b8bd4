#include "job/beside.h"

#include <math.h>
#include <stdlib.h>

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

/* ---- the fit ---- */

struct sample {
    uint64_t what[2]; /* the same work */
    double share;     /* of its time, the other is under way */
    double time;
};

enum { BINS = 16 };

static int bin_of(double share)
{
    int k = (int)(share * BINS);

    return k < 0 ? 0 : k < BINS ? k : BINS - 1;
}

static int by_work(const struct sample *x, const struct sample *y)
{
    for (int i = 0; i < 2; i++)
        if (x->what[i] != y->what[i])
            return x->what[i] < y->what[i] ? -1 : 1;
    return 0;
}

static int by_sample(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int c = by_work(x, y), i = bin_of(x->share), j = bin_of(y->share);

    if (c == 0)
        c = i != j ? (i > j) - (i < j) : (x->time > y->time) - (x->time < y->time);
    return c;
}

/* Samples of the same work with about the same share: their median. */
struct point {
    double share, log_time, weight;
};

struct work { /* points that are the same work */
    uint32_t first, n;
};

struct fitting {
    VEC(struct point) point;
    VEC(struct work) work;
    uint32_t n;         /* samples */
    double told, total; /* time of the works that say something, and of all */
};

static int by_double(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median. A sample weighs as much as the work, however long it took: else one kernel of a few
 * microseconds that lost its core for milliseconds would count more than all others. */
static double usual_time(const struct sample *s, uint32_t n, struct arena *a)
{
    double *time = arena_array(a, double, n + 1);

    for (uint32_t i = 0; i < n; i++)
        time[i] = s[i].time;
    qsort(time, n, sizeof(*time), by_double);
    return time[n / 2];
}

/* One work says something if it ran with shares that differ. */
static void add_work(struct fitting *f, const struct sample *s, uint32_t n, struct arena *a)
{
    const double APART = 0.1;
    uint32_t first = f->point.len;
    double least = 1, most = 0, usual = usual_time(s, n, a);

    f->total += usual * n;
    for (uint32_t i = 0, k; i < n; i = k) {
        double share = 0;
        for (k = i; k < n && bin_of(s[k].share) == bin_of(s[i].share); k++)
            share += s[k].share;
        share /= k - i;
        double time = (s[i + (k - i - 1) / 2].time + s[i + (k - i) / 2].time) / 2;
        vec_push_in(a, &f->point, ((struct point){share, log(time), usual * (k - i)}));
        least = share < least ? share : least;
        most = share > most ? share : most;
    }
    if (most - least < APART) {
        f->point.len = first;
        return;
    }
    vec_push_in(a, &f->work, ((struct work){first, f->point.len - first}));
    f->n += n;
    f->told += usual * n;
}

/* How far times alone of the same work are apart, if the other takes the share `lost` of the speed:
 * the weighted variance of their logarithms. */
static double spread(const struct fitting *f, double lost)
{
    double sum = 0;

    for (uint32_t w = 0; w < f->work.len; w++) {
        const struct point *p = &f->point.at[f->work.at[w].first];
        double weight = 0, mean = 0, square = 0;

        for (uint32_t i = 0; i < f->work.at[w].n; i++) {
            double v = p[i].log_time + log(1 - lost * p[i].share);
            weight += p[i].weight;
            mean += p[i].weight * v;
            square += p[i].weight * v * v;
        }
        sum += square - mean * mean / weight;
    }
    return sum;
}

/* The factor for which times alone differ least; 0: nothing says so. */
static double fit(struct sample *s, uint32_t n, struct arena *a, uint32_t *used)
{
    enum { TRIES = 500 };
    const double ENOUGH = 0.05; /* less of the time does not speak for all of it */
    struct fitting f = {.n = 0};
    double best = 0, least = INFINITY;

    qsort(s, n, sizeof(*s), by_sample);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && by_work(&s[i], &s[k]) == 0;)
            k++;
        add_work(&f, &s[i], k - i, a);
    }
    *used = f.told >= ENOUGH * f.total ? f.n : 0;
    if (*used == 0)
        return 0;
    for (int i = 0; i < TRIES; i++) {
        double lost = 0.98 * i / TRIES, x = spread(&f, lost);
        if (x < least) {
            least = x;
            best = lost;
        }
    }
    return 1 / (1 - best);
}

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

static uint32_t kernel_samples(const struct trace_part *p, uint32_t at,
                               const struct beside_covers *c, struct arena *a, struct sample *out)
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
        out[n++] = (struct sample){{(uint64_t)at << 32 | e->name, dims},
                                   beside_share(&c->comm, s->start, s->end),
                                   (double)(s->end - s->start)};
    }
    return n;
}

/* about: messages of about the same size are the same work, in proportion to their bytes. */
static uint32_t transfer_samples(const struct trace_part *p, const struct beside_covers *c,
                                 bool about, struct arena *a, struct sample *out)
{
    const double *own = beside_own(p, a);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *x = &p->coll.at[i];
        if (x->step == TRACE_NONE || x->bytes <= 0 || x->transfer <= 0)
            continue;
        uint64_t size = about ? (uint64_t)lround(2 * log2((double)x->bytes)) : (uint64_t)x->bytes;
        out[n++] = (struct sample){{(uint64_t)x->kind << 40 | (uint64_t)x->p, size},
                                   beside_share(&c->compute, x->end - x->transfer, x->end),
                                   (double)x->transfer * own[i] / (about ? (double)x->bytes : 1)};
    }
    return n;
}

static double fit_transfers(const struct trace_part *part, uint32_t n,
                            const struct beside_covers *c, bool about, struct arena *a,
                            uint32_t *used)
{
    size_t most = 0;
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++)
        most += part[i].coll.len;
    struct sample *s = arena_array(a, struct sample, most + 1);
    for (uint32_t i = 0; i < n; i++)
        m += transfer_samples(&part[i], &c[i], about, a, &s[m]);
    return fit(s, m, a, used);
}

void beside_fit(const struct trace_part *part, uint32_t n, struct arena *a, struct beside *out)
{
    struct beside_covers *c = arena_array(a, struct beside_covers, n + 1);
    size_t spans = 0;
    uint32_t k = 0;

    for (uint32_t i = 0; i < n; i++)
        spans += part[i].span.len;
    struct sample *s = arena_array(a, struct sample, spans + 1);
    for (uint32_t i = 0; i < n; i++) {
        beside_covers(&part[i], a, &c[i]);
        k += kernel_samples(&part[i], i, &c[i], a, &s[k]);
    }
    *out = (struct beside){.kernel = 0};
    out->kernel = fit(s, k, a, &out->n_kernel);
    out->transfer = fit_transfers(part, n, c, false, a, &out->n_transfer);
    if (out->transfer == 0)
        out->transfer = fit_transfers(part, n, c, true, a, &out->n_transfer);
}
