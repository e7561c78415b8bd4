#include "rewrite/bucket/torch_order.h"

static void operands(struct stable_sort *s, uint32_t n)
{
    const struct torch_order *t = s->ctx;
    const struct fx_node *x = node_at(t->g, n);

    for (uint32_t k = 0; k < x->n_vals; k++)
        if (x->vals[k].kind == TUCK_V_NODE)
            stable_needs(s, x->vals[k].a);
}

void torch_order_begin(struct torch_order *t, tuck_graph *g, struct arena *a)
{
    *t = (struct torch_order){.g = g, .sort = {.a = a, .operands = operands}};
    t->sort.ctx = t;
}

static void relink(struct torch_order *t, const uint32_t *node, uint32_t n, uint32_t before)
{
    for (uint32_t k = 0; k < n; k++)
        graph_unlink(t->g, node[k]);
    for (uint32_t k = 0; k < n; k++)
        graph_link_before(t->g, node[k], before);
}

void torch_order_resume(struct torch_order *t)
{
    if (t->list.len > 0)
        relink(t, t->list.at, t->list.len, 0);
}

/* Operands of the bucket that are no inputs of the graph. */
static uint32_t want(struct torch_order *t, const struct bucket *b)
{
    uint32_t n = 0;

    t->n_bucket++;
    while (t->wanted.len < t->g->node.len)
        vec_push_in(t->sort.a, &t->wanted, 0);
    for (uint32_t k = 0; k <= b->n; k++) {
        uint32_t from = k < b->n ? b->member[k].input : b->member[0].group_node;
        if (from == 0 || node_at(t->g, from)->kind == TUCK_PLACEHOLDER ||
            t->wanted.at[from] == t->n_bucket)
            continue;
        t->wanted.at[from] = t->n_bucket;
        n++;
    }
    return n;
}

void torch_order_bucket(struct torch_order *t, const struct bucket *b, uint32_t first,
                        uint32_t last)
{
    const tuck_graph *g = t->g;
    uint32_t missing = want(t, b);

    for (uint32_t n = node_at(g, first)->prev; n != 0 && missing > 0; n = node_at(g, n)->prev)
        if (t->wanted.at[n] == t->n_bucket) {
            first = n;
            missing--;
        }
    for (uint32_t n = node_at(g, last)->next; n != 0 && missing > 0; n = node_at(g, n)->next)
        if (t->wanted.at[n] == t->n_bucket) {
            last = n;
            missing--;
        }
    uint32_t behind = node_at(g, last)->next;
    t->region.len = 0;
    for (uint32_t n = first; n != behind; n = node_at(g, n)->next)
        vec_push_in(t->sort.a, &t->region, n);
    if (stable_sort(&t->sort, g->node.len, t->region.at, t->region.len))
        relink(t, t->sort.out.at, t->region.len, behind);
}

static bool keeps(const struct torch_order *t, const struct topo_edges *e, uint32_t *at)
{
    for (uint32_t k = 0; k < t->sort.out.len; k++)
        at[t->sort.out.at[k]] = k;
    for (uint32_t k = 0; k < e->edge.len; k++) {
        uint32_t from = e->edge.at[k].from, to = e->edge.at[k].to;
        if (node_alive(t->g, from) && node_alive(t->g, to) && from != to && at[from] > at[to])
            return false;
    }
    return true;
}

bool torch_order_all(struct torch_order *t, const struct topo_edges *e)
{
    struct arena *a = t->sort.a;
    uint32_t *at = arena_zeroed(a, t->g->node.len * sizeof(*at));

    t->list.len = 0;
    for_each_node (t->g, n)
        vec_push_in(a, &t->list, n);
    t->sorted = stable_sort(&t->sort, t->g->node.len, t->list.at, t->list.len) && keeps(t, e, at);
    if (!t->sorted)
        return false;
    relink(t, t->sort.out.at, t->sort.out.len, 0);
    graph_edited(t->g, true);
    return true;
}

void torch_order_leave(const struct torch_order *t)
{
    if (t->sorted)
        graph_set_loose(t->g, t->list.at, t->list.len);
}
