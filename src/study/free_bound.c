/* The free bound: the time that no pass can remove from a graph, however it rewrites it.
 * It holds for every pass of the table:
 *
 *   loops and copies   may be fused or removed; results that remaining ops read must still be
 *                      written
 *   FSDP's copies      may be removed (remove_fsdp2_unsharded_param_graph_input_usage,
 *                      reinplace_fsdp_all_gather)
 *   dead code          is removed by every pass
 *   collectives        are charged their bytes at the best rate that any message on their group has
 *   reduce-scatters    whose results are only added up may become one (dedup_fsdp_reduce_scatter):
 *                      charged nothing
 *   everything else    stays, with its time
 *
 * prop_free_bound runs random pipelines over random graphs and the corpus against it.
 */
#include <math.h>

#include "graph/effect.h"
#include "graph/nested.h"
#include "op/ops.h"
#include "study/rank_input.h"

/* Collectives of one kind on one group. */
enum { KINDS = TUCK_SHARD_DIM_ALLTOALL + 1 };

struct leaving {
    const tuck_graph *g;
    const struct program *p;
    struct arena *a;
    bool *live; /* by node: its result is used, or it has a side effect */
    /* by node: the wait of a reduce-scatter, or computed element by element from such waits only */
    bool *is_sum;
    bool *mergeable; /* by node: a reduce-scatter that may be merged with others */
};

static void each_operand(const struct leaving *x, uint32_t node, void (*f)(bool *mark, uint32_t n),
                         bool *mark)
{
    const struct fx_node *k = node_at(x->g, node);

    for (uint32_t i = 0; i < k->n_vals; i++)
        if (k->vals[i].kind == TUCK_V_NODE)
            f(mark, k->vals[i].a);
}

static void set(bool *mark, uint32_t n)
{
    mark[n] = true;
}

static void find_live(struct leaving *x)
{
    uint32_t n = 0, *order = arena_array(x->a, uint32_t, x->g->node.len);

    for_each_node (x->g, k)
        order[n++] = k;
    while (n-- > 0) {
        uint32_t k = order[n];
        if (node_at(x->g, k)->kind == TUCK_OUTPUT || node_has_effect(x->g, k) ||
            node_nests_effect(x->g, k))
            x->live[k] = true;
        if (x->live[k])
            each_operand(x, k, set, x->live);
    }
}

/* The first operand that is a node, 0 if none. Sets `all` if every such operand has the mark. */
static uint32_t first_node(const struct leaving *x, uint32_t node, const bool *mark, uint32_t *n,
                           bool *all)
{
    const struct fx_node *k = node_at(x->g, node);
    uint32_t first = 0;

    *n = 0;
    *all = true;
    for (uint32_t i = 0; i < k->n_vals; i++)
        if (k->vals[i].kind == TUCK_V_NODE) {
            first = first ? first : k->vals[i].a;
            ++*n;
            *all &= mark[k->vals[i].a];
        }
    return first;
}

/* Whatever is computed element by element from results of reduce-scatters only counts as their
 * sum. */
static void find_sums(struct leaving *x)
{
    for_each_node (x->g, k) {
        const struct op_row *row = op_at(node_op(x->g, k));
        uint32_t n;
        bool all;
        uint32_t from = first_node(x, k, x->is_sum, &n, &all);

        if (row->cls == OP_WAIT && from != 0)
            x->is_sum[k] = (op_at(node_op(x->g, from))->flags & OP_F_REDUCE_SCATTER) != 0;
        else if (row->cls == OP_POINTWISE && n > 1 && all)
            x->is_sum[k] = true;
        if (row->cls == OP_POINTWISE && n > 1 && all)
            for (uint32_t i = 0; i < node_at(x->g, k)->n_vals; i++) {
                const tuck_value *v = &node_at(x->g, k)->vals[i];
                uint32_t m;
                bool ignored;
                if (v->kind == TUCK_V_NODE && op_at(node_op(x->g, v->a))->cls == OP_WAIT)
                    x->mergeable[first_node(x, v->a, x->is_sum, &m, &ignored)] = true;
            }
    }
}

static bool may_vanish(const struct leaving *x, uint32_t i)
{
    const struct program *p = x->p;
    const struct program_op *op = &p->op[i];
    bool live = false;

    if (op->kind == PROGRAM_FUSED || op->kind == PROGRAM_COPY || (op->flags & PROGRAM_LOOP))
        return true;
    for (uint32_t k = p->node_at[i]; k < p->node_at[i + 1]; k++)
        live |= x->live[p->node_id[k]];
    if (p->node_at[i] == p->node_at[i + 1]) /* the op is only a part of its node */
        live = x->live[op->node];
    if (op->kind == PROGRAM_COLLECTIVE)
        return x->mergeable[op->node];
    enum op_class cls = op_at(node_op(x->g, op->node))->cls;
    return !live || cls == OP_FSDP || cls == OP_COPY || cls == OP_FACTORY || cls == OP_VIEW;
}

static int64_t must_be_written(const struct leaving *x, const struct problem *problem,
                               const bool *vanishes)
{
    const struct program *p = x->p;
    bool *read = arena_zeroed(x->a, p->n_buf * sizeof(*read)); /* read by something that stays */
    int64_t bytes = 0;

    for (uint32_t op = 0; op < p->n_op; op++)
        for (uint32_t i = p->use_at[op]; i < p->use_at[op + 1]; i++)
            if (p->use[i].how != PROGRAM_WRITES && !vanishes[op] && p->op[op].kind != PROGRAM_WAIT)
                read[p->use[i].buf] = true;
    for (uint32_t i = 0; i < p->n_buf; i++) {
        uint32_t by = p->buf[i].producer;
        bool needed = read[i] || (p->buf[i].flags & PROGRAM_OUTPUT);
        /* An op that takes no time only allocates memory. */
        if (needed && by != PROGRAM_NONE && vanishes[by] && p->op[by].kind != PROGRAM_COPY &&
            p->op[by].kind != PROGRAM_COLLECTIVE && problem->ps[by] > 0)
            bytes += p->buf[i].bytes;
    }
    return bytes;
}

/* The best rate of any message size on a group, in us per byte; computed once because it is
 * slow. */
static double rate_of(const struct machine *m, const struct cost_fit *fit, struct cost_shape shape,
                      tuck_coll coll, int64_t total, double *known)
{
    if (*known < 0) {
        struct cost_choice how = m->cost.collective;
        how.symmetric = how.hierarchical = true;
        *known = cost_best_rate(m->cluster, shape, coll, total, &how) / m->bandwidth;
        /* In the fitted model a byte is cheapest in the largest message. */
        if (fit != NULL && fit->factor > 0)
            *known *= fit->factor;
        else if (fit != NULL && total > 0)
            *known = fit_us(fit, (double)total, 0) / (double)total / m->bandwidth;
    }
    return *known;
}

/* By op: the least time it can take after any rewrite. */
static int64_t *least_times(const tuck_graph *graph, const struct machine *m, struct evaluation *e,
                            const bool *vanishes)
{
    const struct program *p = e->program;
    int64_t *ps = arena_zeroed(&e->arena, p->n_op * sizeof(*ps));
    int64_t *total = arena_zeroed(&e->arena, ((size_t)p->n_group + 1) * sizeof(*total));
    double *rate = arena_array(&e->arena, double, ((size_t)p->n_group + 1) * KINDS);

    for (size_t i = 0; i < ((size_t)p->n_group + 1) * KINDS; i++)
        rate[i] = -1;
    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].group != PROGRAM_NONE && p->op[i].message > 0)
            total[p->op[i].group] += p->op[i].message;
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];
        int64_t own = e->problem->ps[i];
        tuck_coll coll = coll_modelled(op->coll);

        if (vanishes[i])
            continue;
        if (op->kind != PROGRAM_COLLECTIVE) {
            ps[i] = own;
        } else if (coll != 0 && op->group != PROGRAM_NONE && op->message > 0) {
            struct cost_shape shape = facts_shape(graph, p, m->cluster, op->group);
            const char *name = program_str(p, p->group[op->group].name);
            double us = rate_of(m, laws_find(&e->laws, (int)coll, name), shape, coll,
                                total[op->group], &rate[(size_t)op->group * KINDS + (size_t)coll]) *
                        (double)op->message;
            int64_t least = ps_round(us * PS_PER_US);
            ps[i] = least < own ? least : own;
        } else if (program_is_nested(op) && op->group != PROGRAM_NONE && op->message > 0) {
            /* The kinds of collectives in nested graphs are not known here: assume the cheapest. */
            struct cost_shape shape = facts_shape(graph, p, m->cluster, op->group);
            const char *name = program_str(p, p->group[op->group].name);
            double least = INFINITY;
            for (size_t k = 1; k < KINDS; k++)
                least = fmin(least,
                             rate_of(m, laws_find(&e->laws, (int)k, name), shape, (tuck_coll)k,
                                     total[op->group], &rate[(size_t)op->group * KINDS + k]));
            int64_t all = ps_round(least * (double)op->message * PS_PER_US);
            ps[i] = all < own ? all : own;
        }
    }
    return ps;
}

void evaluate_free_bound(const tuck_graph *g, const struct machine *m, struct evaluation *e)
{
    struct leaving x = {.g = g, .p = e->program, .a = &e->arena};
    bool *vanishes = arena_array(&e->arena, bool, e->program->n_op);
    enum cost_bound ignored;

    x.live = arena_zeroed(&e->arena, g->node.len * sizeof(bool));
    x.is_sum = arena_zeroed(&e->arena, g->node.len * sizeof(bool));
    x.mergeable = arena_zeroed(&e->arena, g->node.len * sizeof(bool));
    find_live(&x);
    find_sums(&x);
    for (uint32_t i = 0; i < e->program->n_op; i++)
        vanishes[i] = may_vanish(&x, i);
    /* Only the transfer rate counts, not a kernel's minimum time: a thousand small kernels may be
     * fused into one. */
    double large = 0x1p40, bytes = (double)must_be_written(&x, e->problem, vanishes);
    double ps = (double)(cost_kernel_ps(m->cluster, DTYPE_NONE, 0, 2 * large, &ignored) -
                         cost_kernel_ps(m->cluster, DTYPE_NONE, 0, large, &ignored)) /
                large * bytes;
    struct bound_options bo = {.ps = least_times(g, m, e, vanishes),
                               .more_compute_ps = ps > 0 ? ps_round(ps) : 0};
    bound_of(e->problem, &bo, &e->arena, &e->any);
}
