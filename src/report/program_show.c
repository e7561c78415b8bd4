#include "report/program_show.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/units.h"
#include "cost/cluster.h"
#include "lower/gaps.h"
#include "graph/symbol_values.h"

static void line(struct buf *out, const char *what, int64_t bytes)
{
    char text[32];

    buf_printf(out, "  %-18s %15lld", what, (long long)bytes);
    ink_line(out, INK_DIM, "  %s", text_of_bytes(bytes, text));
}

static void put_counts(const struct program *p, struct buf *out)
{
    size_t kind[PROGRAM_KIND_END] = {0}, comm = 0, kernels = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        kind[p->op[i].kind]++;
        kernels += program_is_kernel(&p->op[i]);
    }
    for (uint32_t i = 0; i < p->n_buf; i++)
        comm += p->buf[i].layout == PROGRAM_COMM;
    size_t from = wrap_begin(out);
    buf_printf(out, "  %-18s %15u", "ops", p->n_op);
    for (int k = 0; k < PROGRAM_KIND_END; k++)
        ink_printf(out, INK_DIM, "%s%zu %s", k ? ", " : "  ", kind[k], program_kind_name[k]);
    wrap_end(out, from, 38);
    buf_printf(out, "\n  %-18s %15zu\n", "kernels", kernels);
    buf_printf(out, "  %-18s %15u", "buffers", p->n_buf);
    ink_line(out, INK_DIM, "  %u inputs, %zu in symmetric memory", p->n_input, comm);
    if (p->n_unknown > 0)
        ink_line(out, INK_LIMIT, "  %-18s %15u  counted as 0", "of unknown size", p->n_unknown);
}

static void put_memory(const struct program *p, struct buf *out)
{
    line(out, "peak", p->peak);
    line(out, "resident inputs", p->resident);
    line(out, "arena", p->arena_bytes);
    buf_printf(out, "  %-18s %14.2f%%", "fragmentation",
               p->arena_bytes > 0
                   ? 100.0 * (double)(p->arena_bytes - p->arena_least) / (double)p->arena_bytes
                   : 0.0);
    ink_line(out, INK_DIM, "  of the arena, above what is live at once");
    for (uint32_t i = 0; i < p->n_group; i++)
        if (p->heap[i] > 0) {
            char what[64];
            snprintf(what, sizeof(what), "heap of %s", program_str(p, p->group[i].name));
            line(out, what, p->heap[i]);
        }
    if (p->comm_digest != 0)
        buf_printf(out, "  %-18s %016llx\n", "heap digest", (unsigned long long)p->comm_digest);
}

void program_summary(const struct program *p, const char *machine, struct buf *out)
{
    int64_t ps = 0;
    uint32_t unknown = 0;
    char text[32];

    ink_line(out, INK_HEAD, "%s", program_str(p, p->name));
    put_counts(p, out);
    put_memory(p, out);
    if (machine == NULL)
        return;
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (p->op[i].kind == PROGRAM_COLLECTIVE)
            continue;
        unknown += p->op[i].ps < 0;
        ps = p->op[i].ps > 0 ? ps_add(ps, p->op[i].ps) : ps;
    }
    buf_printf(out, "  %-18s %15s", "compute", text_of_ps(ps, text));
    ink_line(out, INK_DIM, "  on %s", machine);
    if (unknown > 0)
        ink_line(out, INK_LIMIT, "  %-18s %15u  counted as 0", "of unknown time", unknown);
}

void program_peak_line(const struct program *p, struct buf *out)
{
    char text[32];
    uint32_t unknown = gaps_of(p).n_buf;

    buf_printf(out, "%s: %s%lld bytes (%s)", program_str(p, p->name),
               unknown > 0 ? "at least " : "", (long long)p->peak, text_of_bytes(p->peak, text));
    if (unknown > 0)
        buf_printf(out, "; %u buffer%s of unknown size", unknown, unknown == 1 ? "" : "s");
    buf_chr(out, '\n');
}

void program_notes(const struct program *p, const tuck_cluster *c, struct buf *out)
{
    buf_printf(out, "# times on %s%s\n", tuck_cluster_name(c),
               c->assumed ? " (assumed; --cluster names another)" : "");
    for (uint32_t i = 0; i < p->n_group; i++) {
        const char *name = program_str(p, p->group[i].name);
        if (shape_is_assumed(c, name, p->group[i].size))
            buf_printf(out,
                       "# group %s: %" PRId64 " ranks, assumed; give it with --group %s=SIZE\n",
                       name, shape_of_group(c, name, 0, NULL).p, name);
    }
    if (p->used_default)
        buf_printf(out,
                   "# %d, assumed, for sizes that depend on data; give it with --assume u0=N\n",
                   ASSUME_UNBACKED);
}
