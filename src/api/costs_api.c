/* Costs of collectives and of the nodes of a graph in the public interface. */
#include "api/api.h"
#include "api/machine_api.h"
#include "report/collective_show.h"
#include "study/node_costs.h"

/* ---- a collective ---- */

static void print_collective(struct buf *b, const tuck_print_options *how, const void *arg)
{
    if (how->form == TUCK_PRINT_JSON)
        collective_json(arg, b);
    else
        collective_table(arg, b);
}

tuck_status tuck_collective_cost_print(const tuck_cluster *c, const tuck_collective *q,
                                       const tuck_collective_cost *x, const tuck_print_options *how,
                                       tuck_write_fn write, void *ctx)
{
    struct collective_answer a = {c, q, x};

    if (c == NULL || q == NULL || x == NULL || *tuck_coll_name(q->coll) == '\0')
        return TUCK_EINVAL;
    return api_print(NULL, how, write, ctx, print_collective, &a);
}

/* ---- the nodes of a graph ---- */

struct tuck_costs {
    struct given_machine *given;
    struct node_costs c;
};

static tuck_status find(tuck_costs *x, tuck_graph *g, const tuck_machine *m, tuck_diags *diags)
{
    tuck_status st = machine_take(m, g, MACHINE_TIMES, diags, &x->given);

    if (st != TUCK_OK)
        return st;
    st = node_costs_find(&x->c, g, &x->given->machine, diags);
    if (st == TUCK_OK)
        st = node_costs_tell(&x->c, x->given->machine.strict, diags);
    if (st != TUCK_OK)
        node_costs_end(&x->c);
    return st;
}

tuck_status tuck_graph_costs(tuck_graph *g, const tuck_machine *m, tuck_diags *diags,
                             tuck_costs **out)
{
    if (g == NULL || out == NULL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &g->store->mem.alloc;
    tuck_costs *x = alloc->resize(alloc->ctx, NULL, 0, sizeof(*x));
    if (x == NULL)
        return TUCK_ENOMEM;
    *x = (tuck_costs){.given = NULL};
    tuck_status st = find(x, g, m, diags);
    if (st == TUCK_OK) {
        *out = x;
        return TUCK_OK;
    }
    machine_drop(x->given);
    alloc->resize(alloc->ctx, x, sizeof(*x), 0);
    return st;
}

void tuck_costs_free(tuck_costs *x)
{
    if (x == NULL)
        return;
    tuck_allocator alloc = x->c.mem.alloc;
    node_costs_end(&x->c);
    machine_drop(x->given);
    alloc.resize(alloc.ctx, x, sizeof(*x), 0);
}

size_t tuck_costs_count(const tuck_costs *x)
{
    return x->c.node.len;
}

bool tuck_costs_row(const tuck_costs *x, size_t i, tuck_node_cost *out)
{
    if (i >= x->c.node.len || out == NULL)
        return false;
    const struct node_cost *n = &x->c.node.at[i];
    *out = (tuck_node_cost){.node = {n->node},
                            .ps = n->part.ps,
                            .comm_ps = n->part.comm_ps,
                            .flops = n->part.flops,
                            .bytes = n->part.bytes,
                            .coll = (tuck_coll)n->part.coll,
                            .bound = cost_bound_name((enum cost_bound)n->part.bound)};
    return true;
}

static void print_costs(struct buf *b, const tuck_print_options *how, const void *arg)
{
    enum { ROWS = 20 };
    const tuck_costs *x = arg;

    if (how->form == TUCK_PRINT_JSON)
        node_costs_json(&x->c, b);
    else
        node_costs_table(&x->c, api_top(how, ROWS), b);
}

tuck_status tuck_costs_print(const tuck_costs *x, const tuck_print_options *how,
                             tuck_write_fn write, void *ctx)
{
    return x ? api_print(&x->c.mem.alloc, how, write, ctx, print_costs, x) : TUCK_EINVAL;
}

tuck_status tuck_costs_write_profile(const tuck_costs *x, tuck_diags *diags, tuck_write_fn write,
                                     void *ctx)
{
    if (x == NULL || write == NULL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &x->c.mem.alloc;
    size_t bytes = ((size_t)tuck_graph_id_end(x->c.g) + 1) * sizeof(int64_t);
    int64_t *ps = alloc->resize(alloc->ctx, NULL, 0, bytes);
    if (ps == NULL)
        return TUCK_ENOMEM;
    tuck_status st = node_costs_of_ops(&x->c, diags, ps);
    if (st == TUCK_OK)
        st = tuck_profile_write(x->c.g, ps, write, ctx);
    alloc->resize(alloc->ctx, ps, bytes, 0);
    return st;
}
