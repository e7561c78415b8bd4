/* The figures of Holistic Trace Analysis, as it defines them. */
#include <math.h>
#include <stdlib.h>

#include "job/trace_study.h"

enum kind { KIND_COMM, KIND_MEMORY, KIND_COMPUTE, KIND_OTHER };

static enum kind kind_of(const char *name)
{
    const char *kernel = strstr(name, "Kernel");

    if (strncmp(name, "nccl", 4) == 0 && kernel != NULL && kernel >= name + 4)
        return KIND_COMM;
    if (strncmp(name, "Memcpy", 6) == 0 || strncmp(name, "Memset", 6) == 0 ||
        strncmp(name, "dma", 3) == 0)
        return KIND_MEMORY;
    if (strstr(name, "Memcpy") != NULL || strstr(name, "Sync") != NULL)
        return KIND_OTHER;
    return KIND_COMPUTE;
}

/* us, rounded. The end may be before the start: a kernel of less than 1 us. */
struct whole {
    double ts, end;
    uint32_t event;
    enum kind kind;
};

static int by_ts(const void *a, const void *b)
{
    const struct whole *x = a, *y = b;

    if (x->ts != y->ts)
        return x->ts < y->ts ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event); /* a stable sort */
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static double rounded_up(const struct trace *t, double ts)
{
    return t->fractions ? ceil(ts) : ts;
}

/* Start of the last step, over all annotations, also those of the device. */
static double last_step(const struct trace *t)
{
    double last = -INFINITY;

    for (uint32_t i = 0; i < t->step.len; i++)
        last = fmax(last, rounded_up(t, t->step.at[i].ts));
    return last;
}

/* Only what has a stream and a launch is a kernel to it; the rest is the host's. */
static bool is_launched(const struct trace_event *e)
{
    return e->stream >= 0 && e->correlation >= 0;
}

/* The host's events before the last step, by their launches, sorted. */
static int64_t *launched(const struct trace *t, double last, struct arena *a, uint32_t *n)
{
    int64_t *list = arena_array(a, int64_t, t->launch.len + t->gpu.len + 1);

    *n = 0;
    for (uint32_t i = 0; i < t->launch.len; i++)
        if (rounded_up(t, t->launch.at[i].ts) < last)
            list[(*n)++] = t->launch.at[i].correlation;
    for (uint32_t i = 0; i < t->gpu.len; i++)
        if (!is_launched(&t->gpu.at[i]) && rounded_up(t, t->gpu.at[i].ts) < last)
            list[(*n)++] = t->gpu.at[i].correlation;
    qsort(list, *n, sizeof(*list), by_number);
    return list;
}

static uint32_t gather(const struct trace *t, struct arena *a, struct whole *out)
{
    uint32_t n = 0, n_launched = 0;
    double last = last_step(t);
    int64_t *list = t->steps_named ? launched(t, last, a, &n_launched) : NULL;

    for (uint32_t i = 0; i < t->gpu.len; i++) {
        const struct trace_event *e = &t->gpu.at[i];
        double ts = rounded_up(t, e->ts), end = e->ts + (double)e->dur / PS_PER_US;

        if (e->stream == -1)
            continue;
        if (list != NULL && !is_launched(e) && ts >= last)
            continue;
        if (list != NULL && is_launched(e) &&
            bsearch(&e->correlation, list, n_launched, sizeof(*list), by_number) == NULL)
            continue;
        out[n++] = (struct whole){ts, t->fractions ? floor(end) : end, i,
                                  kind_of(trace_str(t, e->name))};
    }
    qsort(out, n, sizeof(*out), by_ts);
    return n;
}

/* Intervals that overlap or touch become one; the result has the start of the first and the latest
 * end of each. */
static uint32_t merge(const struct whole *from, uint32_t n, uint32_t kinds, struct whole *out)
{
    uint32_t m = 0;
    double latest = INFINITY;

    for (uint32_t i = 0; i < n; i++) {
        if (!(kinds & (1u << from[i].kind)))
            continue;
        if (m == 0 || from[i].ts > latest) {
            out[m++] = from[i];
            latest = m == 1 || from[i].end > latest ? from[i].end : latest;
            continue;
        }
        if (from[i].end > out[m - 1].end)
            out[m - 1].end = from[i].end;
        latest = from[i].end > latest ? from[i].end : latest;
    }
    return m;
}

static double length(const struct whole *w, uint32_t n)
{
    double sum = 0;

    for (uint32_t i = 0; i < n; i++)
        sum += w[i].end - w[i].ts;
    return sum;
}

/* The time that both lists cover. */
static double common(const struct whole *a, uint32_t n, const struct whole *b, uint32_t m)
{
    double sum = 0;

    for (uint32_t i = 0, k = 0; i < n && k < m;) {
        double from = fmax(a[i].ts, b[k].ts), to = fmin(a[i].end, b[k].end);
        if (to > from)
            sum += to - from;
        if (a[i].end < b[k].end)
            i++;
        else
            k++;
    }
    return sum;
}

void trace_holistic(const struct trace *t, struct arena *a, struct trace_holistic *out)
{
    enum { ALL = 15 };
    struct arena_mark mark = arena_mark(a);
    struct whole *w = arena_array(a, struct whole, t->gpu.len + 1),
                 *all = arena_array(a, struct whole, t->gpu.len + 1),
                 *other = arena_array(a, struct whole, t->gpu.len + 1);
    uint32_t n = gather(t, a, w), m = merge(w, n, ALL, all);

    *out = (struct trace_holistic){.any = n > 0, .overlap_percent = NAN};
    if (n > 0) {
        out->kernel = all[m - 1].end - all[0].ts;
        out->idle = out->kernel - length(all, m);
        m = merge(w, n, 1u << KIND_COMPUTE, all);
        out->compute = length(all, m);
        out->non_compute = out->kernel - out->compute - out->idle;
        uint32_t k = merge(w, n, 1u << KIND_COMM, other);
        double comm = length(other, k);
        if (comm != 0) /* below 0 if all of them are shorter than 1 us */
            out->overlap_percent = 100 * common(all, m, other, k) / comm;
    }
    arena_release(a, mark);
}
