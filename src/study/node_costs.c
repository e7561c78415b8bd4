#include "study/node_costs.h"

#include <inttypes.h>
#include <stdlib.h>

static int longer(const void *a, const void *b, void *all)
{
    const struct node_cost *x = (struct node_cost *)all + *(const uint32_t *)a;
    const struct node_cost *y = (struct node_cost *)all + *(const uint32_t *)b;

    if (x->part.ps != y->part.ps)
        return x->part.ps > y->part.ps ? -1 : 1;
    return (x > y) - (x < y);
}

/* A measured collective still counts as a collective. */
static enum cost_bound counts_as(const struct cost_part *p)
{
    bool measured = p->coll != 0 && (p->bound == BOUND_PROFILE || p->bound == BOUND_CALLER);

    return measured ? BOUND_COLLECTIVE : (enum cost_bound)p->bound;
}

static void add_node(struct node_costs *c, uint32_t n)
{
    struct node_cost x = {.node = n};

    cost_node(&c->run, n, &x.part);
    enum cost_bound as = counts_as(&x.part);
    c->count[as]++;
    if (x.part.bound == BOUND_NESTED)
        c->inside_ps = ps_add(c->inside_ps, x.part.comm_ps);
    c->unknown_colls += x.part.bound == BOUND_UNKNOWN && x.part.coll != 0;
    if (x.part.ps > 0) {
        c->total_ps[as] = ps_add(c->total_ps[as], x.part.ps);
        vec_push(&c->mem, &c->order, c->node.len);
    }
    vec_push(&c->mem, &c->node, x);
}

static void do_find(void *arg)
{
    struct node_costs *c = arg;

    cost_run_graph(&c->run, c->g);
    c->n_assumed = cost_assumed_find(c->g, c->machine.cluster, &c->run.arena, &c->assumed);
    for_each_node (c->g, n)
        add_node(c, n);
    if (c->order.len > 0)
        qsort_r(c->order.at, c->order.len, sizeof(*c->order.at), longer, c->node.at);
}

static void warn_large(const tuck_graph *g, const tuck_cluster *c, tuck_diags *diags)
{
    struct diag_source source = {.file = graph_str(g, g->source_name)};
    int64_t ranks = tuck_cluster_ranks(c);

    for (uint32_t i = 0; i < g->group.len; i++)
        if (g->group.at[i].size > ranks)
            diag_add(diags, TUCK_WARNING, (struct diag_pos){.source = &source}, NULL,
                     "group '%s' has %" PRId64 " ranks, cluster '%s' has %" PRId64
                     "; priced as if it had more nodes",
                     graph_str(g, g->group.at[i].name), g->group.at[i].size, tuck_cluster_name(c),
                     ranks);
}

tuck_status node_costs_find(struct node_costs *c, tuck_graph *g, const struct machine *m,
                            tuck_diags *diags)
{
    *c = (struct node_costs){.g = g, .machine = *m};
    mem_init(&c->mem, &g->store->mem.alloc);
    warn_large(g, m->cluster, diags);
    tuck_status st = laws_fit(&c->machine, g);
    c->assume = machine_symbols(&c->machine, g->store);
    cost_run_init(&c->run, &c->mem, m->cluster, &c->machine.cost, &c->assume);
    if (st == TUCK_OK && !mem_guard(&c->mem, do_find, c))
        st = TUCK_ENOMEM;
    return st;
}

void node_costs_end(struct node_costs *c)
{
    vec_free(&c->mem, &c->node);
    vec_free(&c->mem, &c->order);
    cost_run_done(&c->run);
}

/* ---- unknown costs ---- */

struct telling {
    struct node_costs *c;
    struct gaps gaps;
    struct buf text;
};

static void do_tell(void *arg)
{
    struct telling *t = arg;
    const struct node_costs *c = t->c;
    uint32_t named = 0;

    buf_str(&t->text, "\n  ");
    for (uint32_t i = 0; i < c->node.len && named < GAPS_NAMED; i++)
        if (c->node.at[i].part.bound == BOUND_UNKNOWN)
            buf_printf(&t->text, "%s%s", named++ ? ", " : "",
                       graph_str(c->g, node_at(c->g, c->node.at[i].node)->name));
    if (t->gaps.n_unknown > named)
        buf_printf(&t->text, ", … (%u more)", t->gaps.n_unknown - named);
    for (uint32_t i = 0; i < c->assume.n_missing; i++)
        buf_printf(&t->text, "%s%s", i == 0 ? "\n  symbols in sizes have no value: " : ", ",
                   c->assume.missing_name[i]);
}

tuck_status node_costs_tell(struct node_costs *c, bool strict, tuck_diags *diags)
{
    struct telling t = {.c = c};
    struct diag_source source = {.file = graph_str(c->g, c->g->source_name)};

    t.gaps = (struct gaps){.n_op = c->node.len - (uint32_t)c->count[BOUND_NOTHING],
                           .n_unknown = (uint32_t)c->count[BOUND_UNKNOWN],
                           .n_coll = c->unknown_colls};
    if (t.gaps.n_unknown == 0)
        return TUCK_OK;
    bool refused = strict || gaps_refuse(&t.gaps);
    if (c->assume.n_missing > 0)
        assume_meet_all(&c->assume, c->g);
    buf_init(&t.text, &c->mem);
    bool ok = mem_guard(&c->mem, do_tell, &t);
    if (ok)
        diag_add(diags, refused ? TUCK_ERROR : TUCK_WARNING, (struct diag_pos){.source = &source},
                 c->assume.n_missing > 0 ? gaps_how_symbols : gaps_how,
                 "the cost of %u of %u nodes is not known:%s", t.gaps.n_unknown, t.gaps.n_op,
                 buf_text(&t.text));
    buf_destroy(&t.text);
    return !ok ? TUCK_ENOMEM : refused ? TUCK_EINVAL : TUCK_OK;
}

/* ---- the times of ops ---- */

static void times_by_node(const tuck_graph *g, const struct program *p, int64_t *ps)
{
    for (uint32_t i = 0; i < p->n_op; i++) {
        if (p->op[i].kind == PROGRAM_COPY || p->op[i].kind == PROGRAM_WAIT)
            continue; /* copies have no node of their own */
        for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
            if (p->op[i].kind == PROGRAM_FUSED && !cost_takes_none(g, p->node_id[k]))
                ps[p->node_id[k]] = 0;
        if (!cost_takes_none(g, p->op[i].node))
            ps[p->op[i].node] = p->op[i].ps;
    }
}

tuck_status node_costs_of_ops(const struct node_costs *c, tuck_diags *diags, int64_t *ps)
{
    struct lower_options lower;
    struct machine machine = c->machine;
    struct program *p = NULL;

    lower_defaults(&lower);
    tuck_status st = evaluate_lower(c->g, &lower, &machine, diags, &p);

    for (uint32_t i = 0; i < tuck_graph_id_end(c->g); i++)
        ps[i] = -1;
    if (st == TUCK_OK)
        times_by_node(c->g, p, ps);
    program_free(p);
    return st;
}
