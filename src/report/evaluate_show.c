/* Evaluations as JSON and as tables. */
#include <stdlib.h>

#include "base/layout.h"
#include "base/json.h"
#include "study/evaluate.h"
#include "cost/assumed.h"
#include "report/origin_show.h"

const char evaluation_no_collectives[] =
    "no collectives: DDP's reducer and FSDP2's hooks communicate outside the graph. To have them "
    "in "
    "it:\n"
    "  DDP: torch._dynamo.config.optimize_ddp = \"python_reducer\", and compile the function that "
    "calls backward();\n"
    "  sharding: DTensor parameters that are gathered by redistribute() in a parametrization";

static const char *group_name(const struct program *p, uint32_t group)
{
    return group == PROGRAM_NONE ? "" : program_str(p, p->group[group].name);
}

static void collective_json(struct json_out *j, const struct evaluation *e, uint32_t i)
{
    const struct program *p = e->program;
    const struct program_op *op = &p->op[i];

    json_open(j, NULL, '{');
    json_str(j, "node", program_str(p, op->name));
    json_str(j, "coll", tuck_coll_name((tuck_coll)op->coll));
    json_str(j, "group", group_name(p, op->group));
    json_int(j, "bytes", op->message);
    json_str(j, "algorithm", program_str(p, op->algorithm));
    json_bool(j, "async", (op->flags & PROGRAM_ASYNC) != 0);
    json_float(j, "ns", ns_of_ps(e->span[i].end - e->span[i].start));
    json_float(j, "start_ns", ns_of_ps(e->span[i].start));
    json_float(j, "end_ns", ns_of_ps(e->span[i].end));
    json_float(j, "exposed_ns", ns_of_ps(e->span[i].exposed));
    origin_json(j, p, op);
    json_close(j, '}');
}

static void op_json(struct json_out *j, const struct evaluation *e, uint32_t i)
{
    const struct program *p = e->program;
    const struct program_op *op = &p->op[i];

    json_open(j, NULL, '{');
    json_str(j, "name", program_str(p, op->name));
    json_str(j, "kind", program_kind_name[op->kind]);
    json_str(j, "stream", op->kind == PROGRAM_COLLECTIVE ? group_name(p, op->group) : "compute");
    json_float(j, "start_ns", ns_of_ps(e->span[i].start));
    json_float(j, "end_ns", ns_of_ps(e->span[i].end));
    json_close(j, '}');
}

static void bound_json(struct json_out *j, const char *key, const struct bound *b)
{
    json_open(j, key, '{');
    json_str(j, "binds", bound_name(b->kind));
    for (int k = 0; k < BOUND_BY_END; k++)
        json_float(j, bound_name((enum bound_kind)k), ns_of_ps(b->each[k]));
    if (b->weak)
        json_bool(j, "weak", true);
    json_close(j, '}');
}

void evaluation_json_ops(const struct evaluation *e, bool timeline, struct json_out *j)
{
    const struct program *p = e->program;

    json_open(j, "collectives", '[');
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE)
            collective_json(j, e, i);
    json_close(j, ']');
    if (!timeline)
        return;
    json_open(j, "timeline", '[');
    for (uint32_t i = 0; i < p->n_op; i++)
        op_json(j, e, i);
    json_close(j, ']');
}

void evaluation_json(const struct evaluation *e, bool timeline, struct buf *out)
{
    const struct program *p = e->program;
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_str(&j, "name", program_str(p, p->name));
    json_float(&j, "step_ns", ns_of_ps(e->time.makespan));
    json_float(&j, "compute_ns", ns_of_ps(e->time.compute));
    json_float(&j, "comm_ns", ns_of_ps(e->time.comm));
    json_float(&j, "launch_ns", ns_of_ps(e->time.launch));
    json_float(&j, "exposed_ns", ns_of_ps(e->time.exposed));
    json_float(&j, "slowed_ns", ns_of_ps(e->slowed));
    json_int(&j, "peak_bytes", e->peak);
    json_int(&j, "resident_bytes", e->resident);
    cost_assumed_json(&j, e->assumed, e->n_assumed, p->used_default);
    json_int(&j, "ops_unknown", e->gaps.n_unknown);
    json_int(&j, "buffers_unknown", e->gaps.n_buf);
    if (evaluation_is_bounded(e)) {
        json_float(&j, "bound_ns", ns_of_ps(e->any.ps));
        json_float(&j, "bound_order_ns", ns_of_ps(e->order.ps));
        json_float(&j, "gap", evaluation_gap(e));
        bound_json(&j, "bound", &e->any);
        bound_json(&j, "bound_order", &e->order);
    }
    evaluation_json_ops(e, timeline, &j);
    json_close(&j, '}');
    json_end(&j);
}

/* ---- tables ---- */

static void put_ms(struct buf *b, enum ink k, const char *what, int64_t ps, int64_t of)
{
    buf_printf(b, "  %-23s ", what);
    ink_printf(b, k, "%10.3f ms", (double)ps / 1e9);
    if (of > 0)
        ink_printf(b, INK_DIM, "  %5.1f %%", 100 * (double)ps / (double)of);
    buf_chr(b, '\n');
}

struct row {
    uint32_t op;
    int64_t exposed, length;
};

static int most_exposed(const void *x, const void *y)
{
    const struct row *a = x, *b = y;

    if (a->exposed != b->exposed)
        return a->exposed > b->exposed ? -1 : 1;
    if (a->length != b->length)
        return a->length > b->length ? -1 : 1;
    return a->op < b->op ? -1 : a->op > b->op;
}

/* Shows the algorithm on a line of its own, unless the library chooses it. */
static void put_collective(const struct evaluation *e, const struct row *r, int wide, int group,
                           struct buf *b)
{
    const struct program *p = e->program;
    const struct program_op *op = &p->op[r->op];
    const char *by = program_str(p, op->algorithm);

    buf_str(b, "  ");
    put_name(b, program_str(p, op->name), wide);
    buf_printf(b, " %-14s ", tuck_coll_name((tuck_coll)op->coll));
    put_name(b, group_name(p, op->group), group);
    buf_printf(b, " %8.2f %9.1f", (double)op->message / 1048576, (double)r->length / 1e6);
    ink_printf(b, ink_exposed((double)r->exposed), " %9.1f", (double)r->exposed / 1e6);
    buf_chr(b, '\n');
    if (*by != '\0' && strcmp(by, tuck_algorithm_name(TUCK_ALGO_LIBRARY)) != 0)
        wrap_line(b, INK_DIM, LAYOUT_SAY, "by %s", by);
    origin_say(b, p, op);
}

void evaluation_collectives(const struct evaluation *e, uint32_t most, struct buf *b)
{
    const struct program *p = e->program;
    struct row *row = NULL;
    uint32_t n = 0, cap = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        cap += p->op[i].kind == PROGRAM_COLLECTIVE;
    if (cap == 0 || most == 0)
        return;
    row = mem_resize(b->mem, NULL, 0, cap * sizeof(*row));
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].kind == PROGRAM_COLLECTIVE)
            row[n++] = (struct row){i, e->span[i].exposed, e->span[i].end - e->span[i].start};
    qsort(row, n, sizeof(*row), most_exposed);
    size_t long_name = 0, long_group = 0;
    for (uint32_t i = 0; i < n && i < most; i++) {
        const struct program_op *op = &p->op[row[i].op];
        long_name = name_longer(long_name, program_str(p, op->name));
        long_group = name_longer(long_group, group_name(p, op->group));
    }
    int group = name_column(b, long_group, 5, 68), wide = name_column(b, long_name, 18, 47 + group);
    buf_chr(b, '\n');
    ink_line(b, INK_HEAD, "  collectives, most exposed first");
    ink_line(b, INK_HEAD, "  %-*s %-14s %-*s %8s %9s %9s", wide, "node", "kind", group, "group",
             "MiB", "us", "exposed");
    for (uint32_t i = 0; i < n && i < most; i++)
        put_collective(e, &row[i], wide, group, b);
    if (n > most)
        ink_line(b, INK_DIM, "  … and %u more", n - most);
    mem_free(b->mem, row, cap * sizeof(*row));
}

void evaluation_timeline(const struct evaluation *e, const struct sim_span *span, struct buf *b)
{
    const struct program *p = e->program;

    buf_chr(b, '\n');
    size_t longest = 0;

    for (uint32_t i = 0; i < p->n_group; i++)
        longest = name_longer(longest, program_str(p, p->group[i].name));
    int on = name_column(b, longest + 6, 7, 52);
    ink_line(b, INK_HEAD, "  %11s %11s %10s  %-*s %s", "from us", "to us", "stall us", on, "on",
             "op");
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        bool coll = op->kind == PROGRAM_COLLECTIVE;
        buf_printf(b, "  %11.3f %11.3f", (double)span[i].start / 1e6, (double)span[i].end / 1e6);
        ink_printf(b, span[i].stood > 0 ? INK_BAD : INK_DIM, " %10.3f",
                   (double)span[i].stood / 1e6);
        ink_begin(b, coll ? INK_LIMIT : INK_DIM);
        buf_str(b, coll ? "  group " : "  ");
        put_name(b, coll ? group_name(p, op->group) : "compute", coll ? on - 6 : on);
        ink_end(b, coll ? INK_LIMIT : INK_DIM);
        buf_chr(b, ' ');
        put_short(b, program_str(p, op->name), (int)b->width - 39 - on);
        buf_chr(b, '\n');
    }
}

/* If times are missing, the rest is not a bound. */
static void put_bounds(const struct evaluation *e, struct buf *b)
{
    if (!evaluation_is_bounded(e)) {
        buf_printf(b, "  %-23s %10s", "bound", "?");
        ink_line(b, INK_LIMIT, "   the time of %u op%s is not known", e->gaps.n_unknown,
                 e->gaps.n_unknown == 1 ? "" : "s");
        return;
    }
    buf_printf(b, "  %-23s ", "bound");
    ink_printf(b, INK_LIMIT, "%10.3f ms", (double)e->any.ps / 1e9);
    buf_printf(b, ", %.1f %% under the step",
               e->time.makespan ? 100 - 100 * (double)e->any.ps / (double)e->time.makespan : 0);
    buf_chr(b, '\n');
    wrap_line(b, INK_DIM, LAYOUT_SAY, "%s", evaluation_meaning(e));
    buf_printf(b, "  %-23s ", "bound (reordering only)");
    ink_printf(b, INK_LIMIT, "%10.3f ms", (double)e->order.ps / 1e9);
    buf_chr(b, '\n');
    wrap_line(b, INK_DIM, LAYOUT_SAY, "for these collectives in any order (%s)",
              bound_name(e->order.kind));
}

void evaluation_table(const struct evaluation *e, uint32_t n, bool timeline, struct buf *b)
{
    cost_assumed_table(b, NULL, 0, e->program->used_default);
    put_ms(b, INK_HEAD, "step", e->time.makespan, 0);
    put_ms(b, INK_PLAIN, "compute", e->time.compute, e->time.makespan);
    put_ms(b, INK_PLAIN, "communication", e->time.comm, e->time.makespan);
    put_ms(b, ink_exposed((double)e->time.exposed), "exposed", e->time.exposed, e->time.makespan);
    if (e->slowed > 0)
        put_ms(b, INK_BAD, "slowed", e->slowed, e->time.makespan);
    if (e->time.launch > 0)
        put_ms(b, INK_PLAIN, "launches", e->time.launch, e->time.makespan);
    buf_printf(b, "  %-23s %10.2f MiB", "peak memory", (double)e->peak / 1048576);
    ink_line(b, INK_DIM, ", plus %.2f MiB of resident inputs", (double)e->resident / 1048576);
    if (e->gaps.n_buf > 0)
        wrap_line(b, INK_LIMIT, LAYOUT_SAY, "at least: %u buffer%s of unknown size %s left out",
                  e->gaps.n_buf, e->gaps.n_buf == 1 ? "" : "s", e->gaps.n_buf == 1 ? "is" : "are");
    put_bounds(e, b);
    if (!evaluation_communicates(e))
        wrap_hang(b, INK_LIMIT, 2, "%s", evaluation_no_collectives);
    evaluation_collectives(e, n, b);
    if (timeline)
        evaluation_timeline(e, e->span, b);
}
