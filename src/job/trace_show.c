#include "job/trace_show.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/layout.h"

static double ms(int64_t ps)
{
    return (double)ps / 1e9;
}

static double us(int64_t ps)
{
    return (double)ps / PS_PER_US;
}

/* ---- sums by name and by stream ---- */

struct kernel_sum {
    str_id name;
    uint32_t n;
    int64_t ps;
};

static int by_sum(const void *a, const void *b)
{
    const struct kernel_sum *x = a, *y = b;

    if (x->ps != y->ps)
        return x->ps > y->ps ? -1 : 1;
    return (x->name > y->name) - (x->name < y->name);
}

static const struct trace_event *event_at(const struct trace_part *p, const struct trace_span *s)
{
    return p->device ? &p->t->gpu.at[s->event] : &p->t->cpu.at[s->event];
}

/* What computes, by name; nested operators count once each. */
static uint32_t kernels(const struct trace_part *p, struct arena *a, struct kernel_sum **out)
{
    uint32_t *slot = arena_zeroed(a, (p->t->str.all.len + 1) * sizeof(*slot)), n = 0;
    struct kernel_sum *list = arena_array(a, struct kernel_sum, p->t->str.all.len + 1);

    for (uint32_t i = 0; i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        const struct trace_event *e = event_at(p, s);
        if (s->cls != TRACE_COMPUTE)
            continue;
        if (slot[e->name] == 0) {
            list[n] = (struct kernel_sum){.name = e->name};
            slot[e->name] = ++n;
        }
        list[slot[e->name] - 1].n++;
        list[slot[e->name] - 1].ps += s->end - s->start;
    }
    qsort(list, n, sizeof(*list), by_sum);
    *out = list;
    return n;
}

struct stream_sum {
    int32_t stream;
    str_id device; /* its process */
    uint32_t n[TRACE_CLASS_END];
    int64_t ps[TRACE_CLASS_END];
};

static uint32_t streams(const struct trace_part *p, struct arena *a, struct stream_sum **out)
{
    VEC(struct stream_sum) list = {NULL, 0, 0};

    for (uint32_t i = 0; p->device && i < p->span.len; i++) {
        const struct trace_span *s = &p->span.at[i];
        const struct trace_event *e = event_at(p, s);
        int32_t stream = trace_stream(p->t, e);
        uint32_t k = 0;
        while (k < list.len && (list.at[k].stream != stream || list.at[k].device != e->pid))
            k++;
        if (k == 64) /* no job has more; the rest is one row */
            k = 63;
        if (k == list.len)
            vec_push_in(a, &list, ((struct stream_sum){.stream = stream, .device = e->pid}));
        list.at[k].n[s->cls]++;
        list.at[k].ps[s->cls] += s->end - s->start;
    }
    *out = list.at;
    return list.len;
}

/* Are there streams of several devices, as in a job with one process for all of them? */
static bool several_devices(const struct stream_sum *list, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++)
        if (list[i].device != list[0].device)
            return true;
    return false;
}

/* ---- tables ---- */

static void put_title(const struct trace_part *p, struct buf *b)
{
    const struct trace *t = p->t;
    size_t from = wrap_begin(b);

    ink_printf(b, INK_HEAD, "%s", t->file);
    if (*p->label)
        buf_printf(b, ", %s", p->label);
    if (t->rank >= 0)
        buf_printf(b, ", rank %lld", (long long)t->rank);
    if (t->rank >= 0 && t->world > 0)
        buf_printf(b, " of %lld", (long long)t->world);
    if (t->device != 0)
        buf_printf(b, ", %s", trace_str(t, t->device));
    else if (!p->device)
        buf_str(b, ", no device: operators of the host");
    wrap_end(b, from, 4);
    buf_chr(b, '\n');
}

static void put_figures(const char *what, const struct trace_part *p, const struct trace_figures *x,
                        struct buf *b)
{
    buf_printf(b, "  %6s %9.3f %9.3f %9.3f", what, ms(x->step), ms(x->compute), ms(x->comm));
    ink_printf(b, ink_exposed((double)x->exposed), " %9.3f", ms(x->exposed));
    buf_printf(b, " %8.3f %9.3f", ms(p->device ? x->memory : x->calls), ms(x->idle));
    if (x->comm > 0)
        buf_printf(b, " %6.2f%%", 100 * (double)x->both / (double)x->comm);
    buf_chr(b, '\n');
}

static void put_steps(const struct trace_part *p, struct buf *b)
{
    enum { MOST = 32 };
    char name[32];

    if (p->span.len == 0) {
        wrap_line(b, INK_LIMIT, 2, "no kernel, no operator, no collective of %llu events",
                  (unsigned long long)p->t->n_event);
        return;
    }
    ink_line(b, INK_HEAD, "  %6s %9s %9s %9s %9s %8s %9s %7s", "step", "ms", "compute", "comm",
             "exposed", p->device ? "copies" : "calls", "idle", "overlap");
    for (uint32_t i = 0; i < p->step.len && i < MOST; i++) {
        if (p->step.at[i].number >= 0)
            snprintf(name, sizeof(name), "%lld", (long long)p->step.at[i].number);
        else
            snprintf(name, sizeof(name), "whole");
        put_figures(name, p, &p->step.at[i].x, b);
    }
    if (p->step.len > MOST)
        ink_line(b, INK_DIM, "  … and %u more", p->step.len - MOST);
    if (p->step.len > 1)
        put_figures("all", p, &p->sum, b);
    if (p->device_steps)
        wrap_line(b, INK_DIM, 2, "steps are those of the device: the trace has none of the host");
    if (p->n_outside > 0)
        wrap_line(b, INK_DIM, 2, "outside of the steps, and in none of them: %u %s, %.3f ms",
                  p->n_outside, p->device ? "kernels and copies" : "operators and transfers",
                  ms(p->outside));
}

static void put_streams(const struct trace_part *p, struct arena *a, struct buf *b)
{
    struct stream_sum *list;
    uint32_t n = streams(p, a, &list);

    if (n < 1 || p->t->ours)
        return;
    bool several = several_devices(list, n);
    ink_line(b, INK_HEAD, "\n  %8s %8s %10s %8s %10s %8s %10s", "stream", "kernels", "ms", "comm",
             "ms", "copies", "ms");
    for (uint32_t i = 0; i < n; i++) {
        const char *device = several ? trace_str(p->t, list[i].device) : "";
        char name[32];
        snprintf(name, sizeof(name), "%.12s%s%d", device, *device ? ":" : "", list[i].stream);
        buf_printf(b, "  %8s %8u %10.3f %8u %10.3f %8u %10.3f\n", name, list[i].n[TRACE_COMPUTE],
                   ms(list[i].ps[TRACE_COMPUTE]), list[i].n[TRACE_COMM], ms(list[i].ps[TRACE_COMM]),
                   list[i].n[TRACE_MEMORY], ms(list[i].ps[TRACE_MEMORY]));
    }
}

struct shown_sum {
    const char *name;
    uint32_t n, forms; /* forms: that differ in template arguments, parameters or namespaces */
    int64_t ps;
};

static int by_shown_name(const void *a, const void *b)
{
    const struct shown_sum *x = a, *y = b;

    return strcmp(x->name, y->name);
}

static int by_shown_sum(const void *a, const void *b)
{
    const struct shown_sum *x = a, *y = b;

    if (x->ps != y->ps)
        return x->ps > y->ps ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* What has one short name is one row. */
static uint32_t shown_kernels(const struct trace_part *p, struct arena *a, struct shown_sum **out)
{
    struct kernel_sum *full;
    uint32_t n = kernels(p, a, &full), m = 0;
    struct shown_sum *list = arena_array(a, struct shown_sum, n + 1);

    for (uint32_t i = 0; i < n; i++) {
        const char *name;
        size_t len = trace_short_name(trace_str(p->t, full[i].name), &name);
        list[i] = (struct shown_sum){arena_str(a, name, len), full[i].n, 1, full[i].ps};
    }
    qsort(list, n, sizeof(*list), by_shown_name);
    for (uint32_t i = 0; i < n; i++) {
        if (m == 0 || strcmp(list[m - 1].name, list[i].name) != 0) {
            list[m++] = list[i];
            continue;
        }
        list[m - 1].n += list[i].n;
        list[m - 1].forms++;
        list[m - 1].ps += list[i].ps;
    }
    qsort(list, m, sizeof(*list), by_shown_sum);
    *out = list;
    return m;
}

static void put_kernels(const struct trace_part *p, uint32_t top, struct arena *a, struct buf *b)
{
    struct shown_sum *list;
    uint32_t n = shown_kernels(p, a, &list);

    if (n == 0 || top == 0)
        return;
    ink_line(b, INK_HEAD, "\n  %10s %8s %10s  %s", "ms", "times", "us each",
             p->device ? "kernel" : "operator");
    for (uint32_t i = 0; i < n && i < top; i++) {
        buf_printf(b, "  %10.3f %8u %10.1f  ", ms(list[i].ps), list[i].n,
                   us(list[i].ps) / list[i].n);
        put_short(b, list[i].name, 0);
        if (list[i].forms > 1)
            ink_printf(b, INK_DIM, ", %u forms", list[i].forms);
        buf_chr(b, '\n');
    }
    if (n > top)
        ink_line(b, INK_DIM, "  … and %u more", n - top);
}

static int by_exposed(const void *a, const void *b)
{
    const struct trace_coll *const *x = a, *const *y = b;

    if ((*x)->exposed != (*y)->exposed)
        return (*x)->exposed > (*y)->exposed ? -1 : 1;
    return ((*x)->start > (*y)->start) - ((*x)->start < (*y)->start);
}

static void put_coll(const struct trace_part *p, const struct trace_coll *c, bool ranks,
                     struct buf *b)
{
    double gbps = trace_bus_gbps(c->kind, c->bytes, c->p, c->transfer);
    const char *group = trace_str(p->t, c->group);

    buf_printf(b, "  %-14s ", tuck_coll_name(c->kind));
    put_name(b, *group ? group : "?", 6);
    if (c->p > 0)
        buf_printf(b, " %5lld", (long long)c->p);
    else
        ink_printf(b, INK_LIMIT, " %5s", "?");
    if (c->bytes >= 0)
        buf_printf(b, " %8.2f", (double)c->bytes / 1048576);
    else
        ink_printf(b, INK_LIMIT, " %8s", "?");
    buf_printf(b, " %-5s %9.1f", *c->dtype ? c->dtype : "?", us(c->end - c->start));
    if (gbps > 0)
        buf_printf(b, " %6.1f", gbps);
    else
        ink_printf(b, INK_LIMIT, " %6s", "?");
    ink_printf(b, ink_exposed((double)c->exposed), " %9.1f", us(c->exposed));
    if (ranks && c->n_rank > 1)
        buf_printf(b, " %8.1f", us(c->end - c->start - c->transfer));
    else if (ranks)
        ink_printf(b, INK_LIMIT, " %8s", "?");
    buf_chr(b, '\n');
}

static void put_colls(const struct trace_part *p, bool ranks, uint32_t top, struct arena *a,
                      struct buf *b)
{
    const struct trace_coll **list = arena_array(a, const struct trace_coll *, p->coll.len + 1);

    if (p->coll.len == 0)
        return;
    for (uint32_t i = 0; i < p->coll.len; i++)
        list[i] = &p->coll.at[i];
    qsort(list, p->coll.len, sizeof(*list), by_exposed);
    ink_line(b, INK_HEAD, "\n  collectives, most exposed first");
    ink_line(b, INK_HEAD, "  %-14s %-6s %5s %8s %-5s %9s %6s %9s%s", "kind", "group", "ranks",
             "MiB", "dtype", "us", "GB/s", "exposed", ranks ? "   waited" : "");
    for (uint32_t i = 0; i < p->coll.len && i < top; i++)
        put_coll(p, list[i], ranks, b);
    if (p->coll.len > top)
        ink_line(b, INK_DIM, "  … and %u more", p->coll.len - top);
}

/* ---- several files of one rank ---- */

/* The steps of a file. */
struct cycle {
    int64_t rank, first, last;
    uint32_t part;
};

static int by_cycle(const void *a, const void *b)
{
    const struct cycle *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->first != y->first)
        return x->first < y->first ? -1 : 1;
    return (x->part > y->part) - (x->part < y->part);
}

/* Those of files whose rank is known, sorted. */
static uint32_t cycles(const struct trace_set *s, struct arena *a, struct cycle **out)
{
    struct cycle *list = arena_array(a, struct cycle, s->n + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        const struct trace_part *p = &s->part[i];
        if (p->t->rank < 0 || p->t->ours)
            continue;
        list[n] = (struct cycle){p->t->rank, INT64_MAX, INT64_MIN, i};
        for (uint32_t k = 0; k < p->step.len; k++) {
            int64_t number = p->step.at[k].number;
            list[n].first = number < list[n].first ? number : list[n].first;
            list[n].last = number > list[n].last ? number : list[n].last;
        }
        n++;
    }
    qsort(list, n, sizeof(*list), by_cycle);
    *out = list;
    return n;
}

/* Two files that are of one rank are one. */
static uint32_t ranks_of(const struct trace_set *s, struct arena *a)
{
    struct cycle *c;
    uint32_t n = cycles(s, a, &c), ranks = s->n;

    for (uint32_t i = 1; i < n; i++)
        ranks -= c[i].rank == c[i - 1].rank;
    return ranks;
}

/* The profiler's schedule writes a file for each of its cycles, which are different steps. If the
 * steps are the same, nobody knows which file of another rank belongs to which. */
static void note_same_rank(const struct trace_set *s, struct arena *a, struct buf *b)
{
    struct cycle *c;
    uint32_t n = cycles(s, a, &c), several = 0, first = 0, same = 0;
    int64_t last = 0; /* step of the files of this rank so far */

    for (uint32_t i = 1; i < n; i++) {
        if (c[i].rank != c[i - 1].rank)
            continue;
        bool second = i == 1 || c[i - 2].rank != c[i].rank;
        last = second || c[i - 1].last > last ? c[i - 1].last : last;
        first = several == 0 ? i - 1 : first;
        several += second;
        if (same == 0 && c[i].first <= last)
            same = i;
    }
    if (same > 0)
        wrap_line(b, INK_LIMIT, 0,
                  "%s and %s are both of rank %lld and have the same steps, as two runs have: "
                  "collectives of such steps are not matched; name the files of one run",
                  s->part[c[same - 1].part].t->file, s->part[c[same].part].t->file,
                  (long long)c[same].rank);
    else if (several > 0)
        wrap_line(b, INK_DIM, 0,
                  "%s and %s are both of rank %lld, with different steps: cycles of the profiler's "
                  "schedule. All of them are shown%s",
                  s->part[c[first].part].t->file, s->part[c[first + 1].part].t->file,
                  (long long)c[first].rank,
                  several > 1 ? "; ranks are matched where the step is the same" : "");
}

static void note_passed(const struct trace_set *s, struct buf *b)
{
    enum { MOST = 4 };
    size_t from = wrap_begin(b);

    if (s->n_passed == 0)
        return;
    ink_printf(b, INK_DIM,
               "passed over, as %s: ", s->n_passed == 1 ? "it is no trace" : "they are no traces");
    for (uint32_t i = 0; i < s->n_passed && i < MOST; i++)
        ink_printf(b, INK_DIM, "%s%s", i > 0 ? ", " : "", s->passed[i]);
    if (s->n_passed > MOST)
        ink_printf(b, INK_DIM, " and %u more", s->n_passed - MOST);
    wrap_end(b, from, 0);
    buf_chr(b, '\n');
}

static void put_notes(const struct trace_set *s, uint32_t ranks, struct arena *a, struct buf *b)
{
    int64_t world = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        world = s->part[i].t->world > world ? s->part[i].t->world : world;
        if (s->part[i].n_unmatched > 0)
            wrap_line(b, INK_DIM, 0,
                      "%s: %u calls of collectives have no transfer in the trace and are not shown",
                      s->part[i].t->file, s->part[i].n_unmatched);
    }
    note_same_rank(s, a, b);
    if (ranks > 1 && world > (int64_t)ranks && !s->part[0].t->ours)
        wrap_line(b, INK_DIM, 0,
                  "GB/s and waiting are by the shortest time of %u of %lld ranks; the others may "
                  "have been faster",
                  ranks, (long long)world);
    if (s->n_lost > 0)
        wrap_line(b, INK_DIM, 0,
                  "%u collectives have no counterpart on the other ranks: counts, kinds, sizes or "
                  "members of the group differ in their step",
                  s->n_lost);
    note_passed(s, b);
}

void trace_table(const struct trace_set *s, uint32_t top, struct buf *b)
{
    struct arena a;

    arena_init(&a, b->mem);
    uint32_t ranks = ranks_of(s, &a);
    for (uint32_t i = 0; i < s->n; i++) {
        struct arena_mark mark = arena_mark(&a);
        const struct trace_part *p = &s->part[i];

        if (i > 0)
            buf_chr(b, '\n');
        put_title(p, b);
        put_steps(p, b);
        put_streams(p, &a, b);
        put_colls(p, ranks > 1 && !p->t->ours, top, &a, b);
        put_kernels(p, top, &a, b);
        arena_release(&a, mark);
    }
    put_notes(s, ranks, &a, b);
    arena_destroy(&a);
}

/* ---- JSON ---- */

static void figures_json(struct json_out *j, const struct trace_part *p,
                         const struct trace_figures *x)
{
    json_float(j, "step_ns", ns_of_ps(x->step));
    json_float(j, "span_ns", ns_of_ps(x->span));
    json_float(j, "compute_ns", ns_of_ps(x->compute));
    json_float(j, "comm_ns", ns_of_ps(x->comm));
    json_float(j, "exposed_ns", ns_of_ps(x->exposed));
    json_float(j, "overlap_ns", ns_of_ps(x->both));
    if (p->device)
        json_float(j, "copies_ns", ns_of_ps(x->memory));
    else
        json_float(j, "calls_ns", ns_of_ps(x->calls));
    json_float(j, "idle_ns", ns_of_ps(x->idle));
    json_int(j, "kernels", x->n_kernel);
    json_int(j, "collectives", x->n_coll);
}

static void coll_json(struct json_out *j, const struct trace_part *p, const struct trace_coll *c)
{
    const struct trace *t = p->t;
    double gbps = trace_bus_gbps(c->kind, c->bytes, c->p, c->transfer);

    json_open(j, NULL, '{');
    json_str(j, "kind", tuck_coll_name(c->kind));
    json_str(j, "name", trace_str(t, c->name));
    if (c->step != TRACE_NONE && p->step.at[c->step].number >= 0)
        json_int(j, "step", p->step.at[c->step].number);
    if (c->group != 0)
        json_str(j, "group", trace_str(t, c->group));
    if (c->p > 0)
        json_int(j, "ranks", c->p);
    if (c->bytes >= 0)
        json_int(j, "bytes", c->bytes);
    if (*c->dtype)
        json_str(j, "dtype", c->dtype);
    json_float(j, "start_ns", ns_of_ps(c->start));
    json_float(j, "ns", ns_of_ps(c->end - c->start));
    json_float(j, "exposed_ns", ns_of_ps(c->exposed));
    if (gbps > 0)
        json_float(j, "bus_gbps", gbps);
    if (c->n_rank > 1) {
        json_int(j, "matched_ranks", c->n_rank);
        json_float(j, "transfer_ns", ns_of_ps(c->transfer));
        json_float(j, "waited_ns", ns_of_ps(c->end - c->start - c->transfer));
    }
    json_close(j, '}');
}

static void holistic_json(struct json_out *j, const struct trace *t, struct arena *a)
{
    struct trace_holistic h;

    trace_holistic(t, a, &h);
    if (!h.any || t->ours)
        return;
    json_open(j, "holistic", '{');
    json_float(j, "compute_us", h.compute);
    json_float(j, "non_compute_us", h.non_compute);
    json_float(j, "idle_us", h.idle);
    json_float(j, "kernel_us", h.kernel);
    json_float(j, "overlap_percent", h.overlap_percent);
    json_close(j, '}');
}

static void part_json(struct json_out *j, const struct trace_part *p, struct arena *a)
{
    const struct trace *t = p->t;
    struct kernel_sum *list;
    struct stream_sum *stream;

    json_open(j, NULL, '{');
    json_str(j, "file", t->file);
    if (*p->label)
        json_str(j, "label", p->label);
    if (t->rank >= 0)
        json_int(j, "rank", t->rank);
    if (t->world > 0)
        json_int(j, "world", t->world);
    if (t->device != 0)
        json_str(j, "device", trace_str(t, t->device));
    if (t->backend != 0)
        json_str(j, "backend", trace_str(t, t->backend));
    json_int(j, "events", (int64_t)t->n_event);
    json_open(j, "all", '{');
    figures_json(j, p, &p->sum);
    json_close(j, '}');
    holistic_json(j, t, a);
    if (p->n_outside > 0) {
        json_open(j, "outside", '{');
        json_int(j, "events", p->n_outside);
        json_float(j, "ns", ns_of_ps(p->outside));
        json_close(j, '}');
    }
    if (p->device_steps)
        json_str(j, "steps_of", "device");
    json_open(j, "steps", '[');
    for (uint32_t i = 0; i < p->step.len; i++) {
        json_open(j, NULL, '{');
        if (p->step.at[i].number >= 0)
            json_int(j, "step", p->step.at[i].number);
        figures_json(j, p, &p->step.at[i].x);
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "streams", '[');
    uint32_t n_stream = streams(p, a, &stream);
    for (uint32_t i = 0; i < n_stream; i++) {
        json_open(j, NULL, '{');
        if (several_devices(stream, n_stream))
            json_str(j, "device", trace_str(t, stream[i].device));
        json_int(j, "stream", stream[i].stream);
        json_int(j, "kernels", stream[i].n[TRACE_COMPUTE]);
        json_float(j, "kernels_ns", ns_of_ps(stream[i].ps[TRACE_COMPUTE]));
        json_int(j, "collectives", stream[i].n[TRACE_COMM]);
        json_float(j, "collectives_ns", ns_of_ps(stream[i].ps[TRACE_COMM]));
        json_int(j, "copies", stream[i].n[TRACE_MEMORY]);
        json_float(j, "copies_ns", ns_of_ps(stream[i].ps[TRACE_MEMORY]));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_open(j, "collectives", '[');
    for (uint32_t i = 0; i < p->coll.len; i++)
        coll_json(j, p, &p->coll.at[i]);
    json_close(j, ']');
    json_open(j, "kernels", '[');
    for (uint32_t i = 0, n = kernels(p, a, &list); i < n; i++) {
        json_open(j, NULL, '{');
        json_str(j, "name", trace_str(t, list[i].name));
        json_int(j, "times", list[i].n);
        json_float(j, "ns", ns_of_ps(list[i].ps));
        json_close(j, '}');
    }
    json_close(j, ']');
    json_close(j, '}');
}

void trace_json(const struct trace_set *s, struct buf *b)
{
    struct json_out j;
    struct arena a;

    arena_init(&a, b->mem);
    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_int(&j, "unmatched", s->n_lost);
    json_open(&j, "ranks", '[');
    for (uint32_t i = 0; i < s->n; i++) {
        struct arena_mark mark = arena_mark(&a);
        part_json(&j, &s->part[i], &a);
        arena_release(&a, mark);
    }
    json_close(&j, ']');
    if (s->n_passed > 0) {
        json_open(&j, "passed_over", '[');
        for (uint32_t i = 0; i < s->n_passed; i++)
            json_str(&j, NULL, s->passed[i]);
        json_close(&j, ']');
    }
    json_close(&j, '}');
    json_end(&j);
    arena_destroy(&a);
}
