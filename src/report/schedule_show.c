#include "report/schedule_show.h"

#include "pass/pass_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"
#include "plan/liveness.h"

static const char *name_of(const struct schedule *s, uint32_t op)
{
    return problem_name(s->p, op);
}

/* 1500000 → "1.5 us"; times are picoseconds. */
static const char *human_time(double ps, char out[24])
{
    static const struct {
        double ps;
        const char *unit;
    } scale[] = {{1e12, "s"}, {1e9, "ms"}, {1e6, "us"}, {1e3, "ns"}};
    size_t i = 0;

    while (i < 3 && fabs(ps) < scale[i].ps)
        i++;
    snprintf(out, 24, "%.4g %s", ps == 0 ? 0 : ps / scale[i].ps, scale[i].unit);
    return out;
}

static const char *bytes_text(int64_t bytes, char out[24])
{
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)bytes;
    int u = 0;

    for (; v >= 1024 && u < 4; u++)
        v /= 1024;
    snprintf(out, 24, "%.4g %s", v, unit[u]);
    return out;
}

/* ---- tables ---- */

static void put_stats(const struct schedule *s, const struct schedule_report *r, struct buf *out)
{
    double ps = s->p->unit_ps;
    size_t longest = 0;
    char a[24], b[24], c[24], d[24];

    for (uint32_t i = 0; i < r->n_stat; i++)
        longest = name_longer(longest, name_of(s, r->stat[i].op));
    int wide = name_column(out, longest, 12, 50);
    ink_line(out, INK_HEAD, "  %-*s %8s %8s %8s %8s %5s %5s", wide, "op", "time", "under it",
             "exposed", "before", "moves", "along");
    for (uint32_t i = 0; i < r->n_stat; i++) {
        const struct schedule_stat *x = &r->stat[i];
        buf_str(out, "  ");
        put_name(out, name_of(s, x->op), wide);
        buf_printf(out, " %8s %8s ", human_time(x->comm_time * ps, a),
                   human_time(x->comp_time * ps, b));
        ink_printf(out, ink_exposed(x->final_exposed), "%8s",
                   human_time(fmax(0, x->final_exposed) * ps, c));
        buf_printf(out, " %8s %5u %5u\n", human_time(fmax(0, x->initial_exposed) * ps, d), x->moves,
                   x->grouped);
        enum ink k = x->limit == LIMIT_COVERED ? INK_GOOD : INK_LIMIT;
        size_t from = wrap_begin(out);
        buf_fill(out, ' ', LAYOUT_SAY);
        ink_begin(out, k);
        buf_printf(out, "%s%s", x->limit == LIMIT_COVERED ? "" : "stopped by ",
                   schedule_limit_name(x->limit));
        if (x->limit_op != PROBLEM_NONE)
            buf_printf(out, " %s", name_of(s, x->limit_op));
        if (x->limit == LIMIT_MEMORY)
            buf_printf(out, " (%s)", bytes_text(x->limit_peak, a));
        ink_end(out, k);
        wrap_end(out, from, LAYOUT_SAY);
        buf_chr(out, '\n');
    }
}

static bool crosses(const struct schedule *s)
{
    return !s->opt.torch && schedule_crosses_groups(s->p, s->order);
}

void schedule_table(const struct schedule *s, struct buf *out)
{
    char a[24], b[24], c[24], d[24];

    for (uint32_t i = 0; i < s->report.len; i++) {
        const struct schedule_report *r = &s->report.at[i];
        ink_str(out, INK_HEAD, r->pass);
        buf_chr(out, '\n');
        buf_printf(out, "  peak %s -> ", bytes_text(r->peak_before, a));
        ink_str(out, ink_change((double)(r->peak_after - r->peak_before)),
                bytes_text(r->peak_after, b));
        buf_printf(out, ", exposed %s -> ", human_time((double)r->exposed_before, c));
        ink_str(out, ink_change((double)(r->exposed_after - r->exposed_before)),
                human_time((double)r->exposed_after, d));
        buf_printf(out, "\n  %u of %u ops have a new position\n", r->displaced, s->p->n_op);
        if (r->note != NULL)
            wrap_hang(out, INK_DIM, 2, "%s", r->note);
        if (r->n_stat > 0)
            put_stats(s, r, out);
    }
    if (crosses(s))
        wrap_line(out, INK_DIM, 0, "%s", report_crossed);
}

/* ---- JSON ---- */

static void json_stats(struct json_out *j, const struct schedule *s,
                       const struct schedule_report *r)
{
    json_open(j, "stats", '{');
    for (uint32_t i = 0; r != NULL && i < r->n_stat; i++) {
        const struct schedule_stat *x = &r->stat[i];
        json_open(j, name_of(s, x->op), '{');
        j->flat = true;
        json_float(j, "comm_time", x->comm_time);
        json_float(j, "comp_time", x->comp_time);
        json_float(j, "initial_exposed", x->initial_exposed);
        json_float(j, "final_exposed", x->final_exposed);
        json_int(j, "moves", x->moves);
        json_int(j, "grouped", x->grouped);
        json_str(j, "limiting_factor", schedule_limit_name(x->limit));
        if (x->limit_op != PROBLEM_NONE)
            json_str(j, "limited_by", name_of(s, x->limit_op));
        if (x->limit == LIMIT_MEMORY)
            json_int(j, "limiting_peak", x->limit_peak);
        json_close(j, '}');
        j->flat = false;
    }
    json_close(j, '}');
}

static void json_dep(struct json_out *j, const char *name, bool fake)
{
    json_open(j, NULL, '[');
    json_str(j, NULL, name);
    json_bool(j, NULL, fake);
    json_close(j, ']');
}

/* By op of the problem, [name, fake]. Added ones are found through a list per op. */
static void json_deps(struct json_out *j, const struct schedule *s, struct arena *a)
{
    const struct problem *p = s->p;
    uint32_t *head = arena_array(a, uint32_t, p->n_op),
             *next = arena_array(a, uint32_t, s->dep.len);

    for (uint32_t x = 0; x < p->n_op; x++)
        head[x] = PROBLEM_NONE;
    for (uint32_t i = s->dep.len; i > 0; i--) {
        next[i - 1] = head[s->dep.at[i - 1].op];
        head[s->dep.at[i - 1].op] = i - 1;
    }
    json_open(j, "deps", '{');
    for (uint32_t x = 0; x < p->n_op; x++) {
        json_open(j, name_of(s, x), '[');
        j->flat = true;
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++)
            json_dep(j,
                     p->dep_flags[d] & PROBLEM_ON_OP ? name_of(s, p->dep[d])
                                                     : problem_buf_name(p, p->dep[d]),
                     p->dep_flags[d] & PROBLEM_FAKE);
        for (uint32_t i = head[x]; i != PROBLEM_NONE; i = next[i])
            json_dep(j, problem_buf_name(p, s->dep.at[i].buf), true);
        json_close(j, ']');
        j->flat = false;
    }
    json_close(j, '}');
}

static void json_passes(struct json_out *j, const struct schedule *s)
{
    json_open(j, "passes", '[');
    for (uint32_t i = 0; i < s->report.len; i++) {
        const struct schedule_report *r = &s->report.at[i];
        json_open(j, NULL, '{');
        json_str(j, "name", r->pass);
        json_int(j, "peak_before_bytes", r->peak_before);
        json_int(j, "peak_after_bytes", r->peak_after);
        json_float(j, "exposed_before_ns", ns_of_ps(r->exposed_before));
        json_float(j, "exposed_after_ns", ns_of_ps(r->exposed_after));
        json_int(j, "displaced", r->displaced);
        if (r->note != NULL)
            json_str(j, "note", r->note);
        json_stats(j, s, r);
        json_close(j, '}');
    }
    json_close(j, ']');
}

/* Did a pass run that adds dependences, even if it added none? */
static bool has_deps(const struct schedule *s)
{
    for (uint32_t i = 0; i < s->report.len; i++)
        if (strcmp(s->report.at[i].pass, pass_decide_global_ordering_of_comms.name) == 0)
            return true;
    return s->dep.len > 0;
}

void schedule_json(const struct schedule *s, struct buf *out)
{
    struct arena a;
    struct json_out j;

    arena_init(&a, out->mem);
    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_open(&j, "order", '[');
    j.flat = true;
    for (uint32_t i = 0; i < s->p->n_op; i++)
        json_str(&j, NULL, name_of(s, s->order[i]));
    json_close(&j, ']');
    j.flat = false;
    json_int(&j, "peak_bytes", live_peak(s->p, s->order, &a));
    if (crosses(s))
        json_bool(&j, "assumes_same_graph_on_all_ranks", true);
    json_stats(&j, s, s->report.len ? &s->report.at[s->report.len - 1] : NULL);
    if (has_deps(s))
        json_deps(&j, s, &a);
    json_passes(&j, s);
    json_close(&j, '}');
    json_end(&j);
    arena_destroy(&a);
}

/* ---- visualize_overlap ---- */

/* Collectives of one channel, in the order of their starts. */
struct lane {
    uint32_t first, last;
};

struct picture {
    const struct schedule *s;
    struct sim_span *span; /* [op] */
    struct lane *lane;     /* [group], and one for those without a group */
    uint32_t *next;        /* [op] the next collective in its lane */
    struct buf *out;
};

static void enter_lane(struct picture *x, uint32_t c)
{
    const struct problem *p = x->s->p;
    struct lane *l = &x->lane[p->group[c] == PROBLEM_NONE ? p->n_group : p->group[c]];

    x->next[c] = PROBLEM_NONE;
    if (l->first == PROBLEM_NONE)
        l->first = c;
    else
        x->next[l->last] = c;
    l->last = c;
}

/* Names of the collectives that run at the same time as the op. */
static void put_under(struct picture *x, const struct sim_span *at)
{
    for (uint32_t g = 0; g <= x->s->p->n_group; g++) {
        struct lane *l = &x->lane[g];

        while (l->first != PROBLEM_NONE && x->span[l->first].end <= at->start)
            l->first = x->next[l->first];
        for (uint32_t c = l->first; c != PROBLEM_NONE && x->span[c].start < at->end; c = x->next[c])
            ink_printf(x->out, INK_GOOD, "  under %s", name_of(x->s, c));
    }
}

static void put_op(struct picture *x, uint32_t op, int wide)
{
    const struct problem *p = x->s->p;
    const struct sim_span *at = &x->span[op];
    double time = problem_is_wait(p, op) ? 0 : (double)(at->end - at->start);
    char from[24], took[24];

    size_t line = wrap_begin(x->out);
    buf_printf(x->out, "%10s  ", human_time((double)at->start, from));
    put_name(x->out, name_of(x->s, op), wide);
    buf_printf(x->out, " %10s", human_time(time, took));
    if (problem_is_async(p, op))
        ink_str(x->out, INK_DIM, "  starts");
    if (at->stood > 0)
        ink_printf(x->out, INK_BAD, "  idle for %s", human_time((double)at->stood, took));
    if (problem_is_coll(p, op))
        enter_lane(x, op);
    else if (time > 0)
        put_under(x, at);
    wrap_end(x->out, line, 12);
    buf_chr(x->out, '\n');
}

void schedule_overlap(const struct schedule *s, struct buf *out)
{
    const struct problem *p = s->p;
    struct arena a;
    struct picture x = {.s = s, .out = out};
    char all[24], compute[24], exposed[24];
    size_t longest = 0;

    arena_init(&a, out->mem);
    x.span = arena_array(&a, struct sim_span, p->n_op);
    x.next = arena_array(&a, uint32_t, p->n_op);
    x.lane = arena_array(&a, struct lane, (size_t)p->n_group + 1);
    for (uint32_t g = 0; g <= p->n_group; g++)
        x.lane[g] = (struct lane){PROBLEM_NONE, PROBLEM_NONE};
    for (uint32_t i = 0; i < p->n_op; i++)
        longest = name_longer(longest, name_of(s, i));
    int wide = name_column(out, longest, 2, 23);
    struct sim_result r = schedule_spans(p, s->runtime, s->order, x.span, &a);
    ink_line(out, INK_HEAD, "%10s  %-*s %10s", "start", wide, "op", "time");
    for (uint32_t i = 0; i < p->n_op; i++)
        put_op(&x, s->order[i], wide);
    buf_printf(out, "%s in all, %s compute, ", human_time((double)r.makespan, all),
               human_time((double)r.compute, compute));
    ink_line(out, ink_exposed((double)r.exposed), "%s exposed",
             human_time((double)r.exposed, exposed));
    arena_destroy(&a);
}
