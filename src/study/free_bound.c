/* The free bound: the time that no pass can remove from a graph, however it rewrites it.
 * It holds for every pass of the table:
 *
 *   loops and copies   may be joined or removed; what must be read and written in any case counts
 *                      (free_loops.c)
 *   FSDP's copies      may be removed (remove_fsdp2_unsharded_param_graph_input_usage,
 *                      reinplace_fsdp_all_gather)
 *   dead code          is removed by every pass
 *   collectives        may be merged with those of their kind, group and reduction that they are
 *                      not ordered against: charged their bytes at the best rate of any such
 *                      message. Those that can merge with none keep their time. Latency counts
 *                      where they take turns (free_turns.h). An all-reduce of a group with
 *                      symmetric memory may be one-shot: the cheaper of the two
 *   reduce-scatters    whose results are only added up may become one (dedup_fsdp_reduce_scatter):
 *                      charged nothing
 *   everything else    stays, with its time
 *
 * Heads and tails (sim/sides.h) follow the data alone. prop_free_bound runs random pipelines over
 * random graphs and the corpus against it.
 */
#include <math.h>
#include <stdlib.h>

#include "op/ops.h"
#include "study/free_turns.h"
#include "study/rank_input.h"

enum { PAIRS_MOST = 1 << 22 }; /* above, all collectives of a key may be merged */

static bool may_merge(const struct free_items *x, uint32_t v)
{
    const uint32_t kinds = OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_REDUCE;

    return (op_at(acting_op(x->g, x->node[v]))->flags & kinds) != 0;
}

static int by_key(const void *p, const void *q)
{
    const struct free_member *x = p, *y = q;

    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->coll != y->coll)
        return x->coll < y->coll ? -1 : 1;
    if (x->reduce_op != y->reduce_op)
        return x->reduce_op < y->reduce_op ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* Of those that one needs, none can be in a message with it. */
static void take_ordered(struct free_items *x, struct free_member *m, uint32_t n)
{
    uint64_t pairs = (uint64_t)n * (n - 1) / 2;

    if (n < 2 || pairs > PAIRS_MOST || x->s.n > SIDES_EXACT)
        return;
    uint32_t *item = arena_array(x->a, uint32_t, n);
    int64_t *bytes = arena_array(x->a, int64_t, n), *apart = arena_array(x->a, int64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        item[i] = m[i].item;
        bytes[i] = m[i].bytes;
    }
    sides_weigh_apart(&x->s, item, bytes, n, x->a, apart);
    for (uint32_t i = 0; i < n; i++)
        m[i].together -= apart[i];
}

static void find_together(struct free_items *x, struct free_member *m, uint32_t n)
{
    qsort(m, n, sizeof(*m), by_key);
    for (uint32_t i = 0, end; i < n; i = end) {
        int64_t sum = 0;
        for (end = i; end < n && free_same_key(&m[end], &m[i]); end++)
            sum += m[end].bytes;
        for (uint32_t k = i; k < end; k++)
            m[k].together = sum;
        take_ordered(x, m + i, end - i);
    }
}

static void set_transfer(struct free_items *x, uint32_t v, int64_t ps)
{
    x->s.transfer[v] = ps;
    x->s.work[v] = x->s.is_async[v] ? 0 : ps;
}

/* The collectives in graphs that a node calls: their kinds are not known here, so the cheapest. */
static int64_t nested_ps(struct free_items *x, struct free_rates *r, uint32_t op, int64_t all)
{
    const struct program_op *o = &x->p->op[op];
    double least = INFINITY;

    if (o->group == PROGRAM_NONE || o->message <= 0)
        return 0;
    for (int k = 1; k < FREE_KINDS; k++)
        least = fmin(least, free_rate(r, o->group, (tuck_coll)k, 1, all));
    int64_t ps = ps_round(least * (double)o->message * PS_PER_US);
    return ps < x->problem->ps[op] ? ps : x->problem->ps[op];
}

static struct free_members charge_collectives(struct free_items *x, struct free_rates *r)
{
    const struct program *p = x->p;
    struct free_member *m = arena_array(x->a, struct free_member, p->n_op);
    int64_t *all = arena_zeroed(x->a, ((size_t)p->n_group + 1) * sizeof(*all));
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_op; i++)
        if (p->op[i].group != PROGRAM_NONE && p->op[i].message > 0)
            all[p->op[i].group] += p->op[i].message;
    for (uint32_t v = 0; v < x->s.n; v++) {
        uint32_t op = x->op[v];
        if (op == PROGRAM_NONE || p->op[op].kind != PROGRAM_COLLECTIVE || x->vanishes[op])
            continue;
        const struct program_op *o = &p->op[op];
        if (program_is_nested(o))
            set_transfer(x, v, nested_ps(x, r, op, all[o->group == PROGRAM_NONE ? 0 : o->group]));
        else if (!may_merge(x, v) || o->group == PROGRAM_NONE)
            set_transfer(x, v, x->problem->ps[op]);
        else if (o->message > 0 && coll_modelled(o->coll) != 0)
            m[n++] = (struct free_member){v, o->group, o->reduce_op, o->coll, o->message, 0};
    }
    find_together(x, m, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t own = x->problem->ps[x->op[m[i].item]], ps = own;
        if (m[i].together > m[i].bytes || free_may_be_one_shot(r, m[i].group, (tuck_coll)m[i].coll))
            ps = (int64_t)(free_rate(r, m[i].group, (tuck_coll)m[i].coll, m[i].bytes,
                                     m[i].together) *
                           (double)m[i].bytes * PS_PER_US);
        set_transfer(x, m[i].item, ps < own ? ps : own);
    }
    return (struct free_members){m, n};
}

static void charge_kernels(struct free_items *x, int64_t launch_ps)
{
    for (uint32_t v = 0; v < x->s.n; v++) {
        uint32_t op = x->op[v];
        if (op != PROGRAM_NONE && !x->vanishes[op] && x->p->op[op].kind != PROGRAM_COLLECTIVE &&
            x->p->op[op].kind != PROGRAM_WAIT)
            x->s.work[v] = launch_ps + x->problem->ps[op];
    }
}

/* Only the transfer rate counts, not a kernel's minimum time: a thousand small kernels may be
 * joined into one. */
static double memory_rate(const tuck_cluster *c)
{
    const double large = 0x1p40;
    enum cost_bound ignored;

    return (double)(cost_kernel_ps(c, DTYPE_NONE, 0, 2 * large, &ignored) -
                    cost_kernel_ps(c, DTYPE_NONE, 0, large, &ignored)) /
           large;
}

/* Where messages take turns, their latency counts, too. */
static void add_turns(const struct free_items *x, const struct free_rates *r,
                      const struct free_members *m, struct evaluation *e)
{
    uint32_t group = e->any.group;
    int64_t ps = free_turns(x, r, m, e->any.ps, e->time.makespan, &group);

    if (ps <= e->any.ps)
        return;
    e->any.each[BOUND_BY_LINK] = ps;
    e->any.group = group;
    bound_choose(&e->any);
}

void evaluate_free_bound(const tuck_graph *g, const struct machine *m, struct cost_run *run,
                         struct evaluation *e)
{
    struct free_items x = {
        .g = g, .p = e->program, .problem = e->problem, .a = &e->arena, .run = run};
    struct free_rates r;
    struct arena_mark mark = arena_mark(&e->arena);

    cost_run_graph(run, g);
    free_items_find(&x);
    charge_kernels(&x, m->cluster->launch_ps);
    free_loops_charge(&x, memory_rate(m->cluster));
    free_rates_begin(&r, g, e->program, m, &e->laws, &e->arena);
    struct free_members members = charge_collectives(&x, &r);
    sides_find(&x.s, &e->arena);
    bound_of_sides(&x.s, &e->arena, &e->any);
    if (!e->any.weak)
        add_turns(&x, &r, &members, e);
    e->any.op = e->any.op == SIDES_NONE ? PROBLEM_NONE : x.op[e->any.op];
    e->any.head = e->any.tail = e->any.rest = NULL; /* by item: of no use to others */
    arena_release(&e->arena, mark);
}
