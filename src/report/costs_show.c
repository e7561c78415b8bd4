/* Prints the costs of a graph's nodes: a table and JSON. */
#include <math.h>
#include <stdio.h>

#include "base/layout.h"
#include "base/json.h"
#include "base/units.h"
#include "study/node_costs.h"

/* Longer names shift only their own operator, not the other rows. */
enum { MOST_PADDED = 20 };

static const char *op_name(const tuck_graph *g, uint32_t n)
{
    const char *target = graph_str(g, node_at(g, n)->target);

    return strncmp(target, "torch.ops.", 10) == 0 ? target + 10 : target;
}

/* The laws used for collectives that a profile does not name. */
static void put_laws(const struct cost_laws *l, struct buf *out)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct cost_fit *f = &l->at[i];
        size_t from = wrap_begin(out);
        buf_printf(out, "  law          %s on group %s: ", tuck_coll_name((tuck_coll)f->coll),
                   f->group);
        if (f->factor > 0)
            buf_printf(out, "%.3g times the model's, from one size", f->factor);
        else if (isfinite(f->law.b))
            buf_printf(out, "%.4g us%s + bytes / %.4g GB/s, from %u sizes", f->law.a,
                       f->law.c > 0 ? " + a root" : "", f->law.b / 1000, f->n);
        else
            buf_printf(out, "%.4g us for any size, from %u sizes", f->law.a, f->n);
        ink_printf(out, INK_DIM, "; off by at most %.1f %%", 100 * f->residual);
        wrap_end(out, from, 15);
        buf_chr(out, '\n');
    }
}

static void put_title(const struct node_costs *c, struct buf *out)
{
    const char *name = tuck_graph_name(c->g), *file = graph_str(c->g, c->g->source_name);

    if (*file != '\0')
        ink_line(out, INK_HEAD, "%s:%u: %s", file, c->g->first_line, *name ? name : "def forward");
    else
        ink_line(out, INK_HEAD, "%s", *name ? name : "def forward");
    buf_printf(out, "  cluster      %s", tuck_cluster_name(c->run.c));
    ink_line(out, INK_DIM, "%s", c->run.c->assumed ? ", assumed; give it with --cluster" : "");
}

static void put_kernels(const struct node_costs *c, struct buf *out)
{
    int64_t all = 0;
    char t[32], u[32], v[32];

    for (int i = 0; i <= BOUND_UNKNOWN; i++)
        all = i == BOUND_COLLECTIVE ? all : ps_add(all, c->total_ps[i]);
    int64_t kernels = all - c->inside_ps;
    size_t from = wrap_begin(out);
    buf_printf(out, "  kernels      %s: arithmetic %s, memory %s", text_of_ps(kernels, t),
               text_of_ps(c->total_ps[BOUND_COMPUTE], u), text_of_ps(c->total_ps[BOUND_MEMORY], v));
    buf_printf(out, ", too small %s", text_of_ps(c->total_ps[BOUND_KERNEL], t));
    if (c->count[BOUND_NESTED] > 0)
        buf_printf(out, ", nested %s", text_of_ps(c->total_ps[BOUND_NESTED] - c->inside_ps, t));
    if (c->count[BOUND_PROFILE] > 0)
        buf_printf(out, ", by profile %s", text_of_ps(c->total_ps[BOUND_PROFILE], t));
    wrap_end(out, from, 15);
    buf_chr(out, '\n');
}

static void put_head(const struct node_costs *c, struct buf *out)
{
    char t[32];

    put_kernels(c, out);
    buf_printf(out, "  collectives  %s, %zu of them", text_of_ps(c->total_ps[BOUND_COLLECTIVE], t),
               c->count[BOUND_COLLECTIVE]);
    if (c->inside_ps > 0)
        buf_printf(out, ", and %s in nested graphs", text_of_ps(c->inside_ps, t));
    buf_chr(out, '\n');
    if (c->count[BOUND_UNKNOWN] > 0)
        ink_line(out, INK_LIMIT, "  unknown      %zu node%s whose sizes or groups are not known",
                 c->count[BOUND_UNKNOWN], c->count[BOUND_UNKNOWN] == 1 ? "" : "s");
    put_laws(&c->run.options.laws, out);
    cost_assumed_table(out, c->assumed, c->n_assumed, c->assume.used_default);
}

/* The operator goes on its own line if the row has no room for it. */
static void put_node(const struct node_costs *c, const struct node_cost *x, int wide,
                     struct buf *out)
{
    char t[32], b[32], flops[32] = "";

    if (x->part.flops > 0)
        snprintf(flops, sizeof(flops), "%.2f", x->part.flops / 1e9);
    size_t from = wrap_begin(out);
    buf_printf(out, "  %8s  ", text_of_ps(x->part.ps, t));
    ink_printf(out, x->part.bound == BOUND_COLLECTIVE ? INK_LIMIT : INK_PLAIN, "%-10s",
               cost_bound_name((enum cost_bound)x->part.bound));
    buf_printf(out, " %9s %9s  ", flops, text_of_bytes(x->part.bytes, b));
    for (size_t n = put_short(out, graph_str(c->g, node_at(c->g, x->node)->name), wide);
         n < (size_t)wide && n < MOST_PADDED; n++)
        buf_chr(out, ' ');
    put_last(out, from, INK_DIM, op_name(c->g, x->node));
}

void node_costs_table(const struct node_costs *c, uint32_t top, struct buf *out)
{
    uint32_t n = top > c->order.len ? c->order.len : top;

    put_title(c, out);
    put_head(c, out);
    if (n == 0)
        return;
    size_t longest = 0;
    for (uint32_t i = 0; i < n; i++)
        longest = name_longer(
            longest, graph_str(c->g, node_at(c->g, c->node.at[c->order.at[i]].node)->name));
    int wide = name_column(out, longest, 8, 44);
    ink_line(out, INK_HEAD, "  %8s  %-10s %9s %9s  %-*s %s", "time", "bound", "GFLOP", "bytes",
             wide > MOST_PADDED ? MOST_PADDED : wide, "node", "operator");
    for (uint32_t i = 0; i < n; i++)
        put_node(c, &c->node.at[c->order.at[i]], wide, out);
    if (n < c->order.len)
        ink_line(out, INK_DIM, "  … and %u more; --top 0 shows all", c->order.len - n);
}

static void json_node(const struct node_costs *c, const struct node_cost *x, struct json_out *j)
{
    json_open(j, NULL, '{');
    j->flat = true;
    json_str(j, "name", graph_str(c->g, node_at(c->g, x->node)->name));
    if (x->part.bound == BOUND_UNKNOWN)
        json_null(j, "ns");
    else
        json_float(j, "ns", ns_of_ps(x->part.ps));
    json_str(j, "bound", cost_bound_name((enum cost_bound)x->part.bound));
    json_float(j, "flops", x->part.flops);
    json_int(j, "bytes", x->part.bytes);
    if (x->part.comm_ps > 0)
        json_float(j, "communication_ns", ns_of_ps(x->part.comm_ps));
    if (x->part.coll != 0)
        json_str(j, "coll", tuck_coll_name((tuck_coll)x->part.coll));
    json_close(j, '}');
    j->flat = false;
}

void node_costs_json(const struct node_costs *c, struct buf *out)
{
    struct json_out j;

    json_begin(&j, out);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    if (out->head == NULL) { /* otherwise the list of documents has it */
        json_str(&j, "file", graph_str(c->g, c->g->source_name));
        json_int(&j, "line", c->g->first_line);
    }
    json_str(&j, "cluster", tuck_cluster_name(c->run.c));
    json_bool(&j, "cluster_assumed", c->run.c->assumed);
    json_str(&j, "model", tuck_cost_model_name(c->run.options.collective.model));
    cost_assumed_json(&j, c->assumed, c->n_assumed, c->assume.used_default);
    json_open(&j, "nodes", '[');
    for (uint32_t i = 0; i < c->node.len; i++)
        json_node(c, &c->node.at[i], &j);
    json_close(&j, ']');
    json_close(&j, '}');
    json_end(&j);
}
