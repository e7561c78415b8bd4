/* Steps, and how their time is spent. */
#include "job/trace_study.h"

#include <stdlib.h>

/* ---- covers ---- */

static int by_start(const void *a, const void *b)
{
    const struct trace_span *x = a, *y = b;

    return (x->start > y->start) - (x->start < y->start);
}

void trace_cover_make(const struct trace_span *s, uint32_t n, uint32_t classes, struct arena *a,
                      struct trace_cover *out)
{
    struct trace_span *list = arena_array(a, struct trace_span, n + 1);
    uint32_t k = 0, m = 0;

    for (uint32_t i = 0; i < n; i++)
        if (classes & (1u << s[i].cls) && s[i].end > s[i].start)
            list[k++] = s[i];
    qsort(list, k, sizeof(*list), by_start);
    int64_t *start = arena_array(a, int64_t, k + 1), *end = arena_array(a, int64_t, k + 1),
            *before = arena_array(a, int64_t, k + 1);
    for (uint32_t i = 0; i < k; i++) {
        if (m > 0 && list[i].start <= end[m - 1]) {
            if (list[i].end > end[m - 1])
                end[m - 1] = list[i].end;
            continue;
        }
        before[m] = m > 0 ? before[m - 1] + end[m - 1] - start[m - 1] : 0;
        start[m] = list[i].start;
        end[m++] = list[i].end;
    }
    before[m] = m > 0 ? before[m - 1] + end[m - 1] - start[m - 1] : 0;
    *out = (struct trace_cover){start, end, before, m};
}

/* Covered before `when`. */
static int64_t covered_until(const struct trace_cover *c, int64_t when)
{
    uint32_t low = 0, high = c->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (c->start[mid] < when)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == 0)
        return 0;
    int64_t end = c->end[low - 1] < when ? c->end[low - 1] : when;
    return c->before[low - 1] + end - c->start[low - 1];
}

int64_t trace_covered(const struct trace_cover *c, int64_t start, int64_t end)
{
    return end > start ? covered_until(c, end) - covered_until(c, start) : 0;
}

/* ---- steps ---- */

static int by_begin(const void *a, const void *b)
{
    const struct trace_step_figures *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int by_number(const void *a, const void *b)
{
    const struct trace_step_figures *x = a, *y = b;

    return (x->number > y->number) - (x->number < y->number);
}

static void gather_steps(struct trace_part *p, bool on_device, struct arena *a)
{
    const struct trace *t = p->t;

    for (uint32_t i = 0; i < t->step.len; i++) {
        const struct trace_step *s = &t->step.at[i];
        struct trace_step_figures x = {
            .number = s->number, .start = s->start, .end = s->start + s->dur, .x.step = s->dur};
        if (s->on_device == on_device && s->number >= 0)
            vec_push_in(a, &p->step, x);
    }
}

/* Nested annotations, as two profilers write them, are one step. */
static void drop_nested(struct trace_part *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->step.len; i++) {
        struct trace_step_figures *s = &p->step.at[i];
        if (n > 0 && p->step.at[n - 1].end > s->start && p->step.at[n - 1].end >= s->end)
            continue; /* inside of the one before */
        p->step.at[n++] = *s;
    }
    p->step.len = n;
}

/* Each stream has its own copy of an annotation: a step lasts from the first to the last. */
static void join_copies(struct trace_part *p)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->step.len; i++) {
        struct trace_step_figures *s = &p->step.at[i], *last = &p->step.at[n > 0 ? n - 1 : 0];
        if (n == 0 || last->number != s->number) {
            p->step.at[n++] = *s;
            continue;
        }
        last->start = s->start < last->start ? s->start : last->start;
        last->end = s->end > last->end ? s->end : last->end;
        last->x.step = last->end - last->start;
    }
    p->step.len = n;
}

static void sort_steps(struct trace_part *p, int (*by)(const void *, const void *))
{
    if (p->step.len > 0)
        qsort(p->step.at, p->step.len, sizeof(*p->step.at), by);
}

/* Only where the profiler did not record the host, steps are those of the device. */
static void find_steps(struct trace_part *p, struct arena *a)
{
    gather_steps(p, false, a);
    if (p->step.len > 0) {
        sort_steps(p, by_begin);
        drop_nested(p);
        return;
    }
    gather_steps(p, true, a);
    sort_steps(p, by_number);
    join_copies(p);
    sort_steps(p, by_begin);
    p->device_steps = p->step.len > 0;
}

uint32_t trace_step_at(const struct trace_part *p, int64_t when)
{
    uint32_t low = 0, high = p->step.len;

    if (p->step.len == 1 && p->step.at[0].number < 0)
        return 0;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (p->step.at[mid].start <= when)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && when < p->step.at[low - 1].end ? low - 1 : TRACE_NONE;
}

/* ---- spans ---- */

static int by_correlation(const void *a, const void *b)
{
    const struct trace_launch *x = a, *y = b;

    if (x->correlation != y->correlation)
        return x->correlation < y->correlation ? -1 : 1;
    return (x->start > y->start) - (x->start < y->start);
}

static const struct trace_launch *launch_of(const struct trace_launch *l, uint32_t n,
                                            int64_t correlation)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (l[mid].correlation < correlation)
            low = mid + 1;
        else
            high = mid;
    }
    return correlation >= 0 && low < n && l[low].correlation == correlation ? &l[low] : NULL;
}

static struct trace_launch *sorted_launches(const struct trace *t, struct arena *a)
{
    struct trace_launch *l = arena_array(a, struct trace_launch, t->launch.len + 1);

    if (t->launch.len > 0)
        memcpy(l, t->launch.at, t->launch.len * sizeof(*l));
    qsort(l, t->launch.len, sizeof(*l), by_correlation);
    return l;
}

static void gather_spans(struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    struct trace_launch *l = p->device ? sorted_launches(t, a) : NULL;
    const struct trace_event *list = p->device ? t->gpu.at : t->cpu.at;
    uint32_t n = p->device ? t->gpu.len : t->cpu.len;

    vec_reserve_in(a, &p->span, n);
    for (uint32_t i = 0; i < n; i++) {
        const struct trace_event *e = &list[i];
        const struct trace_launch *by = p->device && !p->device_steps
                                            ? launch_of(l, t->launch.len, e->correlation)
                                            : NULL;

        if (e->cls == TRACE_OTHER || (p->pid != 0 && e->pid != p->pid))
            continue;
        struct trace_span s = {.start = e->start,
                               .end = trace_end(e),
                               .issued = by != NULL ? by->start : e->start,
                               .event = i,
                               .step = trace_step_at(p, by != NULL ? by->start : e->start),
                               .cls = e->cls};
        vec_push_in(a, &p->span, s);
    }
}

static int by_step(const void *a, const void *b)
{
    const struct trace_span *x = a, *y = b;

    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return (x->event > y->event) - (x->event < y->event);
}

/* Without annotations the whole trace is one step. */
static void whole_trace(struct trace_part *p, struct arena *a)
{
    struct trace_step_figures x = {.number = -1, .start = INT64_MAX, .end = INT64_MIN};

    for (uint32_t i = 0; i < p->span.len; i++) {
        if (p->span.at[i].start < x.start)
            x.start = p->span.at[i].start;
        if (p->span.at[i].end > x.end)
            x.end = p->span.at[i].end;
        p->span.at[i].step = 0;
    }
    if (p->span.len == 0)
        return;
    int64_t zero = p->t->base_us; /* a simulated step begins at 0 */
    if (p->t->ours && zero >= 0 && zero < TRACE_MOST_US && x.start > -zero * 1000000)
        x.start = -zero * 1000000;
    x.x.step = x.end - x.start;
    vec_push_in(a, &p->step, x);
}

/* ---- figures ---- */

struct edge {
    int64_t when;
    int8_t by;
    uint8_t cls;
};

static int by_when(const void *a, const void *b)
{
    const struct edge *x = a, *y = b;

    return (x->when > y->when) - (x->when < y->when);
}

enum {
    C = 1 << TRACE_COMPUTE,
    M = 1 << TRACE_COMM,
    MEM = 1 << TRACE_MEMORY,
    CALL = 1 << TRACE_CALL,
    WAIT = 1 << TRACE_WAIT
};

/* How long each set of classes ran. */
static void sweep(const struct trace_span *s, uint32_t n, struct arena *a, int64_t time[64])
{
    struct arena_mark mark = arena_mark(a);
    struct edge *e = arena_array(a, struct edge, 2 * (size_t)n + 1);
    uint32_t running[TRACE_CLASS_END] = {0}, set = 0;

    memset(time, 0, 64 * sizeof(*time));
    for (uint32_t i = 0; i < n; i++) {
        e[2 * i] = (struct edge){s[i].start, 1, s[i].cls};
        e[2 * i + 1] = (struct edge){s[i].end, -1, s[i].cls};
    }
    qsort(e, 2 * (size_t)n, sizeof(*e), by_when);
    for (uint32_t i = 0; i < 2 * n; i++) {
        if (i > 0)
            time[set] += e[i].when - e[i - 1].when;
        running[e[i].cls] +=
            (uint32_t)e[i].by; /* may be below 0 for a moment: a span of length 0 */
        set = running[e[i].cls] != 0 ? set | 1u << e[i].cls : set & ~(1u << e[i].cls);
    }
    arena_release(a, mark);
}

/* The sum over sets with one of `with` and none of `without`. */
static int64_t time_of(const int64_t time[64], uint32_t with, uint32_t without)
{
    int64_t sum = 0;

    for (uint32_t set = 1; set < 64; set++)
        if ((set & with) && !(set & without))
            sum += time[set];
    return sum;
}

static void figures(struct trace_part *p, struct trace_step_figures *step,
                    const struct trace_span *s, uint32_t n, bool waits, struct arena *a)
{
    struct trace_figures *x = &step->x;
    int64_t time[64], first = INT64_MAX, last = INT64_MIN;

    for (uint32_t i = 0; i < n; i++) {
        first = s[i].start < first ? s[i].start : first;
        last = s[i].end > last ? s[i].end : last;
        x->n_kernel += s[i].cls == TRACE_COMPUTE;
    }
    if (!p->device || p->t->ours) {
        first = step->start;
        last = step->end;
    }
    sweep(s, n, a, time);
    x->span = n > 0 || !p->device ? last - first : 0;
    x->compute = time_of(time, C, p->device ? 0 : CALL | WAIT);
    x->comm = time_of(time, M, 0);
    x->both = time_of(time, M, 0) - time_of(time, M, C);
    x->exposed = waits ? time_of(time, WAIT, 0) : time_of(time, M, C);
    x->memory = time_of(time, MEM, C | M);
    x->calls = p->device ? 0 : time_of(time, CALL, WAIT);
    x->idle = x->span - (p->device && !waits ? time_of(time, C | M | MEM, 0)
                         : waits             ? x->compute + x->exposed + x->calls + x->memory
                                             : time_of(time, C | M | CALL, 0));
}

static void add_up(struct trace_figures *sum, const struct trace_figures *x)
{
    sum->step += x->step;
    sum->span += x->span;
    sum->compute += x->compute;
    sum->comm += x->comm;
    sum->exposed += x->exposed;
    sum->both += x->both;
    sum->memory += x->memory;
    sum->calls += x->calls;
    sum->idle += x->idle;
    sum->n_kernel += x->n_kernel;
    sum->n_coll += x->n_coll;
}

/* A collective is charged what it is exposed by itself: two at a time are charged twice. */
static void expose(struct trace_part *p, bool waits, struct arena *a)
{
    struct trace_cover cover;

    trace_cover_make(p->span.at, p->span.len, waits ? WAIT : C, a, &cover);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        struct trace_coll *c = &p->coll.at[i];
        const struct trace_event *e = p->device ? &p->t->gpu.at[c->event] : &p->t->cpu.at[c->event];
        int64_t covered = trace_covered(&cover, c->start, c->end);

        c->exposed = waits ? covered : c->end - c->start - covered;
        if (p->t->ours && e->cls == TRACE_COMM && p->t->more.at[e->more].exposed >= 0)
            c->exposed = p->t->more.at[e->more].exposed;
        if (c->step != TRACE_NONE)
            p->step.at[c->step].x.n_coll++;
    }
}

/* What was launched outside of all steps. */
static void look_outside(struct trace_part *p, struct arena *a)
{
    enum { ALL = C | M | MEM };
    uint32_t k = p->span.len;
    struct trace_cover cover;

    while (k > 0 && p->span.at[k - 1].step == TRACE_NONE)
        k--;
    for (uint32_t i = k; i < p->span.len; i++)
        p->n_outside += (ALL >> p->span.at[i].cls) & 1;
    if (p->n_outside == 0)
        return;
    trace_cover_make(&p->span.at[k], p->span.len - k, ALL, a, &cover);
    p->outside = cover.before[cover.n];
}

void trace_study(const struct trace *t, str_id pid, struct arena *a, struct trace_part *out)
{
    bool waits = false;

    *out = (struct trace_part){.t = t, .pid = pid, .label = "", .device = t->gpu.len > 0};
    find_steps(out, a);
    gather_spans(out, a);
    if (out->step.len == 0)
        whole_trace(out, a);
    if (out->span.len > 0)
        qsort(out->span.at, out->span.len, sizeof(*out->span.at), by_step);
    for (uint32_t i = 0; i < out->span.len; i++)
        waits |= out->span.at[i].cls == TRACE_WAIT;
    look_outside(out, a);
    trace_colls(out, a);
    expose(out, waits, a);
    for (uint32_t i = 0, k = 0; i < out->step.len; i++) {
        while (k < out->span.len && out->span.at[k].step < i)
            k++;
        uint32_t from = k;
        while (k < out->span.len && out->span.at[k].step == i)
            k++;
        struct trace_figures *x = &out->step.at[i].x;
        figures(out, &out->step.at[i], out->span.len > 0 ? &out->span.at[from] : NULL, k - from,
                waits && !t->ours, a);
        if (t->ours) { /* the simulator knows what it charged to each */
            x->exposed = 0;
            for (uint32_t c = 0; c < out->coll.len; c++)
                x->exposed += out->coll.at[c].step == i ? out->coll.at[c].exposed : 0;
            x->idle = x->span - x->compute - x->exposed;
        }
        add_up(&out->sum, x);
    }
}
