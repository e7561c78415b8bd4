/* Dead code: unused nodes without effects, also in nested graphs.
 *
 * Erasing one may leave its operands without users; a worklist handles them in turn, so each node
 * and each use is visited once. A call of nested graphs has an effect if anything in them has.
 */
#include "graph/effect.h"
#include "graph/storage.h"

struct tree {
    tuck_graph *g;
    uint32_t first_child; /* its children start there, in order */
    bool effect;          /* something in it, or in what it calls, has an effect */
};

struct dce {
    tuck_graph *root;
    struct mem *mem;
    VEC(struct tree) tree; /* parents before children */
    VEC(uint32_t) work;
    VEC(uint8_t) queued; /* by node: it is or was on the worklist */
    VEC(uint32_t) child; /* by name of a class: the child of the current graph that has it */
    size_t removed;
};

/* Allocates everything first, so that nothing fails half way. */
static void prepare(void *p)
{
    struct dce *x = p;
    uint32_t most = 0, ids = 0;

    vec_push(x->mem, &x->tree, ((struct tree){.g = x->root}));
    for (uint32_t i = 0; i < x->tree.len; i++) {
        tuck_graph *g = x->tree.at[i].g;

        x->tree.at[i].first_child = x->tree.len;
        for (uint32_t k = 0; k < g->child.len; k++)
            vec_push(x->mem, &x->tree, ((struct tree){.g = g->child.at[k]}));
        names_need(g);
        if (!g->edited)
            storage_order_record(g);
        most = g->n_nodes > most ? g->n_nodes : most;
        ids = g->node.len > ids ? g->node.len : ids;
    }
    vec_reserve(x->mem, &x->work, most);
    vec_reserve(x->mem, &x->queued, ids);
    uint32_t n = x->root->store->str.all.len;
    vec_reserve(x->mem, &x->child, n);
    if (n > 0)
        memset(x->child.at, 0, n * sizeof(*x->child.at));
    x->child.len = n;
}

/* Does a call use a nested graph with an effect, or one that the text does not show? An attribute
 * without annotation is assumed to be a graph: tensors have annotations. */
static bool calls_effect(const struct dce *x, const struct tree *t, const struct fx_node *call)
{
    const tuck_graph *g = t->g;

    for (uint32_t i = 0; i < call->n_vals; i++) {
        if (call->vals[i].kind != TUCK_V_NODE)
            continue;
        const struct fx_node *d = node_at(g, call->vals[i].a);
        if (d->kind != TUCK_GET_ATTR)
            continue;
        uint32_t k = x->child.at[d->target];
        bool found = k < g->child.len && g->child.at[k]->name == d->target;
        if (found ? x->tree.at[t->first_child + k].effect : d->ann == 0)
            return true;
    }
    return false;
}

static bool missed(const struct dce *x, const struct tree *t, uint32_t n)
{
    const struct fx_node *node = node_at(t->g, n);

    return node_has_effect(t->g, n) || (name_flags(t->g, node->name) & NAME_INNER) ||
           (op_at(node->op)->cls == OP_HOP && calls_effect(x, t, node));
}

static void queue(struct dce *x, uint32_t n)
{
    if (!x->queued.at[n])
        x->work.at[x->work.len++] = n;
    x->queued.at[n] = 1;
}

static void clean(struct dce *x, struct tree *t)
{
    tuck_graph *g = t->g;
    size_t before = x->removed;

    for (uint32_t k = 0; k < g->child.len; k++)
        x->child.at[g->child.at[k]->name] = k;
    memset(x->queued.at, 0, g->node.len);
    for_each_node (g, n)
        if (node_at(g, n)->n_uses == 0)
            queue(x, n);
    while (x->work.len > 0) {
        uint32_t n = x->work.at[--x->work.len];
        const struct fx_node *node = node_at(g, n);
        const tuck_value *v = node->vals;
        uint32_t n_vals = node->n_vals;

        if (missed(x, t, n))
            continue;
        graph_erase(g, n); /* the values stay readable: they are in the arena */
        x->removed++;
        for (uint32_t i = 0; i < n_vals; i++) {
            uint32_t d = v[i].kind == TUCK_V_NODE ? v[i].a : 0;
            if (d != 0 && node_at(g, d)->n_uses == 0)
                queue(x, d);
        }
    }
    if (x->removed > before)
        graph_edited(g, true);
    for_each_node (g, n)
        if (node_at(g, n)->kind != TUCK_PLACEHOLDER && node_at(g, n)->kind != TUCK_OUTPUT)
            t->effect |= missed(x, t, n);
}

tuck_status tuck_graph_remove_dead(tuck_graph *g, size_t *removed_out)
{
    if (g == NULL)
        return TUCK_EINVAL;
    struct dce x = {.root = g, .mem = &g->store->mem};
    bool ok = mem_guard(x.mem, prepare, &x);

    for (uint32_t i = x.tree.len; ok && i > 0; i--)
        clean(&x, &x.tree.at[i - 1]);
    vec_free(x.mem, &x.tree);
    vec_free(x.mem, &x.work);
    vec_free(x.mem, &x.queued);
    vec_free(x.mem, &x.child);
    if (ok && removed_out != NULL)
        *removed_out = x.removed;
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
