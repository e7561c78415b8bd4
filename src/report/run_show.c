#include "report/run_show.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/layout.h"

/* ---- a run ---- */

static void put_ms(struct buf *b, enum ink k, const char *what, double ms, double of)
{
    buf_printf(b, "  %-23s ", what);
    ink_printf(b, k, "%10.3f ms", ms);
    if (of > 0)
        ink_printf(b, INK_DIM, "  %5.1f %%", 100 * ms / of);
    buf_chr(b, '\n');
}

static void extremes(const struct run_show *r, int64_t *least, int64_t *most)
{
    *least = *most = r->n_step > 0 ? r->step_ns[0] : 0;
    for (uint32_t i = 1; i < r->n_step; i++) {
        *least = r->step_ns[i] < *least ? r->step_ns[i] : *least;
        *most = r->step_ns[i] > *most ? r->step_ns[i] : *most;
    }
}

static void put_memory(const tuck_exec_memory *m, struct buf *b)
{
    buf_printf(b, "  %-23s %10.2f MiB", "arena", (double)m->arena_bytes / 1048576);
    ink_line(b, INK_DIM, ", plus %.2f MiB of inputs and %.2f MiB of scratch",
             (double)m->input_bytes / 1048576, (double)m->scratch_bytes / 1048576);
    if (m->grown_bytes > 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY, "%.2f MiB for sizes that depend on data",
                  (double)m->grown_bytes / 1048576);
    if (m->touched_bytes >= 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY,
                  "%lld bytes written of %lld planned, up to byte %lld of %lld",
                  (long long)m->touched_bytes, (long long)m->planned_bytes,
                  (long long)m->highest_byte, (long long)m->arena_bytes);
}

void run_table(const struct run_show *r, uint32_t n, bool timeline, struct buf *b)
{
    const struct evaluation *e = r->e;
    double step = (double)e->time.makespan / 1e9;
    int64_t least, most;

    extremes(r, &least, &most);
    ink_line(b, INK_DIM, "measured on %lld rank%s over %s, %u step%s: %.3f … %.3f ms",
             (long long)r->ranks, r->ranks == 1 ? "" : "s", r->transport, r->n_step,
             r->n_step == 1 ? "" : "s", (double)least / 1e6, (double)most / 1e6);
    put_ms(b, INK_HEAD, "step", step, 0);
    put_ms(b, INK_PLAIN, "compute", (double)e->time.compute / 1e9, step);
    put_ms(b, INK_PLAIN, "communication", (double)e->time.comm / 1e9, step);
    put_ms(b, ink_exposed((double)e->time.exposed), "exposed", (double)e->time.exposed / 1e9, step);
    put_ms(b, INK_PLAIN, "between ops", (double)e->time.launch / 1e9, step);
    put_memory(&r->memory, b);
    evaluation_collectives(e, n, b);
    if (timeline)
        evaluation_timeline(e, e->span, b);
}

void run_json(const struct run_show *r, bool timeline, struct buf *out)
{
    const struct evaluation *e = r->e;
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "name", program_str(e->program, e->program->name));
    json_bool(&j, "measured", true);
    json_int(&j, "ranks", r->ranks);
    json_str(&j, "transport", r->transport);
    json_float(&j, "step_ns", ns_of_ps(e->time.makespan));
    json_float(&j, "compute_ns", ns_of_ps(e->time.compute));
    json_float(&j, "comm_ns", ns_of_ps(e->time.comm));
    json_float(&j, "exposed_ns", ns_of_ps(e->time.exposed));
    json_float(&j, "between_ns", ns_of_ps(e->time.launch));
    json_open(&j, "steps_ns", '[');
    for (uint32_t i = 0; i < r->n_step; i++)
        json_int(&j, NULL, r->step_ns[i]);
    json_close(&j, ']');
    json_open(&j, "memory", '{');
    json_int(&j, "arena_bytes", r->memory.arena_bytes);
    json_int(&j, "peak_bytes", r->memory.peak_bytes);
    json_int(&j, "input_bytes", r->memory.input_bytes);
    json_int(&j, "scratch_bytes", r->memory.scratch_bytes);
    json_int(&j, "grown_bytes", r->memory.grown_bytes);
    json_int(&j, "planned_bytes", r->memory.planned_bytes);
    if (r->memory.touched_bytes >= 0) {
        json_int(&j, "touched_bytes", r->memory.touched_bytes);
        json_int(&j, "highest_byte", r->memory.highest_byte);
    }
    json_int(&j, "allocations", r->memory.allocations);
    json_close(&j, '}');
    evaluation_json_ops(e, timeline, &j);
    json_close(&j, '}');
    json_end(&j);
}

/* ---- a comparison ---- */

static void put_number(struct buf *b, double v)
{
    if (isinf(v))
        buf_printf(b, " %10s", "all");
    else if (v == floor(v) && v < 1e9)
        buf_printf(b, " %10.0f", v);
    else
        buf_printf(b, " %10.2e", v);
}

static void put_compared(const tuck_compared *c, int wide, struct buf *b)
{
    buf_str(b, "  ");
    put_name(b, c->name, wide);
    if (c->equal) {
        buf_str(b, " bit-equal\n");
        return;
    }
    ink_printf(b, c->within ? INK_LIMIT : INK_BAD, " %-9s", c->within ? "close" : "differs");
    put_number(b, c->most_ulp);
    put_number(b, c->most_relative);
    buf_printf(b, " %lld of %lld, rank %d\n", (long long)c->different, (long long)c->elements,
               c->rank);
    if (*c->cause != '\0')
        wrap_line(b, INK_DIM, LAYOUT_SAY, "%s", c->cause);
}

void verify_table(const tuck_compared *row, size_t n, int64_t ranks, struct buf *b)
{
    size_t equal = 0, within = 0, longest = 0;
    bool heading = false;

    for (size_t i = 0; i < n; i++) {
        equal += row[i].equal;
        within += row[i].within;
        longest = row[i].equal ? longest : name_longer(longest, row[i].name);
    }
    int wide = name_column(b, longest, 18, 50);
    ink_line(b, within == n ? INK_GOOD : INK_BAD,
             "%zu of %zu results are bit-equal on %lld rank%s%s", equal, n, (long long)ranks,
             ranks == 1 ? "" : "s",
             equal == n    ? ""
             : within == n ? ", the others within tolerance"
                           : "; some are beyond tolerance");
    for (size_t i = 0; i < n; i++) {
        if (row[i].equal)
            continue;
        if (!heading)
            ink_line(b, INK_HEAD, "  %-*s %-9s %10s %10s different", wide, "result", "", "ulp",
                     "relative");
        heading = true;
        put_compared(&row[i], wide, b);
    }
}

void verify_json(const tuck_compared *row, size_t n, int64_t ranks, struct buf *out)
{
    struct json_out j;
    bool within = true;

    for (size_t i = 0; i < n; i++)
        within &= row[i].within;
    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_int(&j, "ranks", ranks);
    json_bool(&j, "within_tolerance", within);
    json_open(&j, "results", '[');
    for (size_t i = 0; i < n; i++) {
        json_open(&j, NULL, '{');
        json_str(&j, "name", row[i].name);
        json_bool(&j, "equal", row[i].equal);
        json_bool(&j, "within", row[i].within);
        json_float(&j, "ulp", row[i].most_ulp);
        json_float(&j, "relative", row[i].most_relative);
        json_float(&j, "absolute", row[i].most_absolute);
        json_int(&j, "elements", row[i].elements);
        json_int(&j, "different", row[i].different);
        json_int(&j, "rank", row[i].rank);
        json_str(&j, "cause", row[i].cause);
        json_close(&j, '}');
    }
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
