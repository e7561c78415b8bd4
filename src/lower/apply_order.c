/* Writes an order of ops back into the graph. */
#include "base/heap.h"
#include "graph/effect.h"
#include "op/collective.h"
#include "graph/storage.h"
#include "graph/topo.h"
#include "lower/program.h"
#include "lower/region.h"
#include "lower/verify.h"

struct apply {
    tuck_graph *g;
    bool *of_op;       /* by node: it belongs to an op */
    bool *out;         /* by node: it is already in the new order */
    uint32_t *missing; /* by node without an op: operands that are not in the new order yet */
    struct heap ready; /* such nodes that could come next, by old position */
    uint32_t *later;   /* numbers needed inside the current op's nodes: they go after all of them */
    uint32_t n_later;
};

static bool stays(const struct fx_node *x)
{
    return x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT;
}

static uint32_t pos(const struct apply *a, uint32_t n)
{
    return node_at(a->g, n)->pos;
}

static int by_place(const void *ctx, uint32_t x, uint32_t y)
{
    uint32_t i = pos(ctx, x), k = pos(ctx, y);

    return i < k ? -1 : i > k;
}

/* Attributes and numbers without operands go right before their first user. */
static bool needs_nothing(const struct apply *a, uint32_t n)
{
    return !a->of_op[n] && a->missing[n] == 0 && !stays(node_at(a->g, n));
}

static void put(struct apply *a, uint32_t n)
{
    tuck_graph *g = a->g;
    const struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t v = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
        if (v != 0 && !a->out[v] && needs_nothing(a, v)) {
            a->out[v] = true;
            graph_unlink(g, v);
            graph_link_before(g, v, g->output);
        }
    }
    a->out[n] = true;
    graph_unlink(g, n);
    graph_link_before(g, n, g->output);
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user;
        if (a->of_op[user] || stays(node_at(g, user)) || --a->missing[user] > 0)
            continue;
        if (op_at(node_op(g, user))->cls == OP_SCALAR)
            a->later[a->n_later++] = user; /* between the nodes of a loop it would split the loop */
        else
            heap_push(&a->ready, user);
    }
}

/* Further names of an opaque statement come right after it. */
static void put_results(struct apply *a, const uint32_t *next, uint32_t n)
{
    for (uint32_t k = next[n]; k != 0 && node_at(a->g, k)->kind == TUCK_RESULT; k = next[k])
        if (!a->out[k])
            put(a, k);
}

static void put_ready(struct apply *a)
{
    while (a->ready.n > 0) {
        uint32_t n = heap_pop(&a->ready);
        if (!a->out[n])
            put(a, n);
    }
}

static void put_later(struct apply *a)
{
    while (a->n_later > 0) {
        while (a->n_later > 0)
            heap_push(&a->ready, a->later[--a->n_later]);
        put_ready(a);
    }
}

static bool is_wait(const struct apply *a, uint32_t n)
{
    return op_at(node_op(a->g, n))->cls == OP_WAIT;
}

/* Do any results of the two nodes share memory? */
static bool overlap(const struct storages *s, uint32_t n, uint32_t other)
{
    for (uint32_t i = 0; i < s->count[n]; i++)
        for (uint32_t k = 0; k < s->count[other]; k++)
            if (storage_of(s, n, i) == storage_of(s, other, k))
                return true;
    return false;
}

/* A wait for something already done: the program has no op for it. */
static bool is_idle_wait(const struct apply *a, uint32_t n)
{
    return is_wait(a, n) && !a->of_op[n];
}

/* Does the program itself order n and the other node? An idle wait may be separated from the memory
 * that was sent, but not from what was received. */
static bool is_known(const struct apply *a, const struct storages *s, uint32_t n, uint32_t other)
{
    if (!is_idle_wait(a, n))
        return a->of_op[n];
    const struct fx_node *x = node_at(a->g, other);
    bool meets = overlap(s, n, other);
    for (uint32_t i = 0; i < x->n_vals && !meets; i++)
        meets = x->vals[i].kind == TUCK_V_NODE && overlap(s, n, x->vals[i].a);
    return !meets;
}

/* Reads and writes of storages stay in order. Edges to and from waits are left to the program: it
 * knows which operands were copied, and which waits have nothing to wait for. */
static void keep_sides(const struct apply *a, struct arena *scratch, struct topo_edges *keep)
{
    const tuck_graph *g = a->g;
    struct storages s = {.n = 0}; /* built when an idle wait needs it */
    uint32_t n = 0;

    topo_keep_storages(g, scratch, keep);
    for (uint32_t i = 0; i < keep->edge.len; i++) {
        struct topo_edge e = keep->edge.at[i];
        if (s.g == NULL && (is_idle_wait(a, e.from) || is_idle_wait(a, e.to)))
            storages_build(g, scratch, &s);
        bool wait = is_wait(a, e.from) || is_wait(a, e.to);
        if (!wait || !is_known(a, &s, e.from, e.to) || !is_known(a, &s, e.to, e.from))
            keep->edge.at[n++] = e;
    }
    keep->edge.len = n;
}

/* A collective that no other may pass: of such a kind, or of an unknown group. */
static bool is_fence(const struct program *p, const struct program_op *x)
{
    return x->group >= p->n_group || coll_is_fence(x->coll);
}

/* Keeps collectives of a group, and fences among all, in the order of the ops. */
static void chain(const struct program *p, const uint32_t *order, struct arena *scratch,
                  struct topo_edges *e)
{
    uint32_t *last = arena_zeroed(scratch, ((size_t)p->n_group + 1) * sizeof(*last));
    uint32_t *open = arena_zeroed(scratch, ((size_t)p->n_group + 1) * sizeof(*open));
    uint32_t n_open = 0, fence = 0;

    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;
        const struct program_op *x = &p->op[op];
        if (x->kind != PROGRAM_COLLECTIVE || p->node_at[op] == p->node_at[op + 1])
            continue;
        uint32_t node = p->node_id[p->node_at[op]];
        if (is_fence(p, x)) {
            if (n_open == 0 && fence != 0 && fence != node)
                topo_edge_add(scratch, e, fence, node);
            for (; n_open > 0; n_open--) {
                if (last[open[n_open - 1]] != node)
                    topo_edge_add(scratch, e, last[open[n_open - 1]], node);
                last[open[n_open - 1]] = 0;
            }
            fence = node;
            continue;
        }
        uint32_t before = last[x->group] != 0 ? last[x->group] : fence;
        if (before != 0 && before != node)
            topo_edge_add(scratch, e, before, node);
        if (last[x->group] == 0)
            open[n_open++] = x->group;
        last[x->group] = node;
    }
}

void lower_apply(tuck_graph *g, const struct program *p, const uint32_t *order,
                 struct arena *scratch)
{
    struct apply a = {.g = g};
    size_t ids = g->node.len;

    assert(g->output != 0 || p->n_op == 0);
    if (order != NULL)
        program_order_verify(p, order);

    a.of_op = arena_zeroed(scratch, ids * sizeof(*a.of_op));
    a.out = arena_zeroed(scratch, ids * sizeof(*a.out));
    a.missing = arena_zeroed(scratch, ids * sizeof(*a.missing));
    heap_begin(&a.ready, scratch, g->n_nodes + 1, by_place, &a);
    a.later = arena_array(scratch, uint32_t, (size_t)g->n_nodes + 1);
    uint32_t *next = arena_zeroed(scratch, ids * sizeof(*next)); /* the old order */
    struct topo_edges keep = {0};
    if (!g->edited)
        storage_order_record(g);
    graph_number(g);
    for (uint32_t i = 0; i < p->node_at[p->n_op]; i++) {
        assert_hot(node_alive(g, p->node_id[i])); /* it must be the graph that was lowered */
        a.of_op[p->node_id[i]] = true;
    }
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        next[n] = x->next;
        a.out[n] = x->kind == TUCK_PLACEHOLDER;
        for (uint32_t i = 0; i < x->n_vals; i++)
            a.missing[n] += x->vals[i].kind == TUCK_V_NODE &&
                            node_at(g, x->vals[i].a)->kind != TUCK_PLACEHOLDER;
    }
    keep_sides(&a, scratch, &keep);
    /* What depends on inputs only follows them; what needs nothing waits until it is needed. */
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        bool mentions = false;
        for (uint32_t i = 0; i < x->n_vals; i++)
            mentions |= x->vals[i].kind == TUCK_V_NODE;
        if (mentions && !a.of_op[n] && !stays(x) && a.missing[n] == 0)
            heap_push(&a.ready, n);
    }
    put_ready(&a);
    put_later(&a);
    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;
        for (uint32_t i = p->node_at[op]; i < p->node_at[op + 1]; i++) {
            put(&a, p->node_id[i]);
            put_results(&a, next, p->node_id[i]);
            put_ready(&a);
        }
        put_later(&a);
    }
    /* What nothing needs, and what only the return needs. */
    for (uint32_t n = g->node.at[0].next, after; n != 0; n = after) {
        after = node_at(g, n)->next;
        if (!a.out[n] && !stays(node_at(g, n))) {
            a.out[n] = true;
            graph_unlink(g, n);
            graph_link_before(g, n, g->output);
        }
    }
    /* A program copies the operand of an all-reduce and has no views: their nodes must not cross a
     * write. The old order is valid, so a solution exists. */
    chain(p, order, scratch, &keep);
    topo_sort_with(g, scratch, &keep);
    region_keep_apart(g, p, scratch);
    graph_reordered(g);
    graph_order_verify(g);
}
