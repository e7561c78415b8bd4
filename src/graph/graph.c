#include "graph/graph.h"

#include "op/ops.h"

/* Nodes before FX_FIRST_ID, except for the head, are never alive. */
static void make_head(void *p)
{
    tuck_graph *g = p;
    struct mem *m = &g->store->mem;

    for (uint32_t i = 0; i < FX_FIRST_ID; i++)
        vec_push(m, &g->node, (struct fx_node){.kind = 0});
    vec_push(m, &g->use, (struct fx_use){.user = 0});
}

tuck_graph *graph_new(struct fx_store *s)
{
    tuck_graph *g = mem_resize(&s->mem, NULL, 0, sizeof(*g));

    *g = (tuck_graph){
        .store = s, .serial = ++s->last_serial, .revision = ++s->last_revision, .rank = -1};
    s->refs++;
    arena_init(&g->arena, &s->mem);
    if (!mem_guard(&s->mem, make_head, g)) {
        graph_free(g);
        mem_exhausted(&s->mem);
    }
    return g;
}

void graph_free(tuck_graph *g)
{
    if (g == NULL)
        return;
    struct fx_store *s = g->store;
    struct mem *m = &s->mem;
    tuck_graph *todo = g; /* children are chained through `names`, which each one frees first */

    names_free(g);
    while (todo != NULL) {
        tuck_graph *dead = todo;

        todo = (tuck_graph *)(void *)dead->names;
        for (uint32_t i = 0; i < dead->child.len; i++) {
            tuck_graph *c = dead->child.at[i];
            if (c == NULL)
                continue;
            names_free(c);
            c->names = (struct fx_names *)(void *)todo;
            todo = c;
        }
        vec_free(m, &dead->node);
        vec_free(m, &dead->use);
        vec_free(m, &dead->param);
        vec_free(m, &dead->note);
        vec_free(m, &dead->out_descriptor);
        vec_free(m, &dead->child);
        vec_free(m, &dead->child_slot);
        vec_free(m, &dead->group);
        vec_free(m, &dead->hint);
        vec_free(m, &dead->type);
        vec_free(m, &dead->loose);
        vec_free(m, &dead->frees_at);
        vec_free(m, &dead->frees);
        vec_free(m, &dead->remark);
        arena_destroy(&dead->arena);
        mem_free(m, dead, sizeof(*dead));
        store_release(s);
    }
}

/* The slot of a name: its own, or the free slot where it would go. The number of slots is a power
 * of two. */
static uint32_t *child_slot(const tuck_graph *g, str_id name)
{
    uint32_t mask = g->child_slot.len - 1;

    for (uint32_t i = name * 2654435769u >> 7;; i++) {
        uint32_t *slot = &g->child_slot.at[i & mask];
        if (*slot == 0 || g->child.at[*slot - 1]->name == name)
            return slot;
    }
}

static void fill_slot(tuck_graph *g, uint32_t i)
{
    uint32_t *slot = child_slot(g, g->child.at[i]->name);

    if (*slot == 0)
        *slot = i + 1;
}

void graph_enter_child(tuck_graph *g, uint32_t i)
{
    uint32_t size = g->child_slot.len ? g->child_slot.len : 4;

    g->child.at[i]->parent = g;
    if (i < g->child_slot.len / 2) {
        fill_slot(g, i);
        return;
    }
    while (size / 2 <= i)
        size *= 2;
    vec_reserve(&g->store->mem, &g->child_slot, size - g->child_slot.len);
    g->child_slot.len = size;
    memset(g->child_slot.at, 0, size * sizeof(*g->child_slot.at));
    for (uint32_t k = 0; k <= i; k++)
        fill_slot(g, k);
}

tuck_graph *graph_child_named(const tuck_graph *g, str_id name)
{
    uint32_t slot = g->child_slot.len > 0 ? *child_slot(g, name) : 0;

    return slot != 0 ? g->child.at[slot - 1] : NULL;
}

void graph_changed(tuck_graph *g)
{
    uint64_t now = ++g->store->last_revision;

    for (; g != NULL; g = g->parent)
        g->revision = now;
}

void graph_edited(tuck_graph *g, bool order_too)
{
    g->edited = true;
    g->frees_verbatim = false;
    if (order_too)
        g->ordered = false;
    graph_changed(g);
}

void graph_reordered(tuck_graph *g)
{
    bool typed = g->typed_at == g->revision;

    graph_edited(g, true);
    if (typed)
        g->typed_at = g->revision;
}

void graph_set_loose(tuck_graph *g, const uint32_t *node, uint32_t n)
{
    assert(n == g->n_nodes);
    g->loose.len = 0;
    vec_reserve(&g->store->mem, &g->loose, n);
    memcpy(g->loose.at, node, n * sizeof(*node));
    g->loose.len = n;
    g->loose_at = g->revision;
}

void graph_link_before(tuck_graph *g, uint32_t n, uint32_t before)
{
    struct fx_node *at = g->node.at;

    assert_hot(n != before && n < g->node.len && before < g->node.len);
    at[n].next = before;
    at[n].prev = at[before].prev;
    at[at[n].prev].next = n;
    at[before].prev = n;
}

void graph_unlink(tuck_graph *g, uint32_t n)
{
    struct fx_node *at = g->node.at;

    assert_hot(at[at[n].prev].next == n && at[at[n].next].prev == n); /* it is linked */
    at[at[n].prev].next = at[n].next;
    at[at[n].next].prev = at[n].prev;
}

uint32_t graph_add_node(tuck_graph *g, uint32_t before, struct fx_node init)
{
    vec_push(&g->store->mem, &g->node, init);
    uint32_t n = g->node.len - 1;

    g->n_nodes++;
    graph_link_before(g, n, before);
    return n;
}

static void enter_use(tuck_graph *g, uint32_t use, uint32_t def)
{
    struct fx_node *d = node_at(g, def);
    struct fx_use *u = &g->use.at[use];

    u->next = 0;
    u->prev = d->use_last;
    if (d->use_last != 0)
        g->use.at[d->use_last].next = use;
    else
        d->use_first = use;
    d->use_last = use;
    d->n_uses++;
}

static void leave_use(tuck_graph *g, uint32_t use, uint32_t def)
{
    struct fx_node *d = node_at(g, def);
    struct fx_use *u = &g->use.at[use];

    assert_hot(d->n_uses > 0);
    if (u->prev != 0)
        g->use.at[u->prev].next = u->next;
    else
        d->use_first = u->next;
    if (u->next != 0)
        g->use.at[u->next].prev = u->prev;
    else
        d->use_last = u->prev;
    d->n_uses--;
}

static uint32_t take_use(tuck_graph *g)
{
    uint32_t use = g->free_use;

    if (use != 0) {
        g->free_use = g->use.at[use].next;
        return use;
    }
    vec_push(&g->store->mem, &g->use, (struct fx_use){.user = 0});
    return g->use.len - 1;
}

/* For operators whose operands changed between releases: the row that these operands match. */
static uint32_t op_version(uint32_t op, const tuck_value *vals, uint32_t n_args)
{
    if (!(op_at(op)->flags & OP_F_VERSIONS) || n_args < 2)
        return op;
    return value_next(vals)->kind == TUCK_V_LIST ? op + 1 : op;
}

void graph_take_vals(tuck_graph *g, uint32_t n, tuck_value *vals, uint32_t n_vals, uint32_t n_args,
                     uint32_t n_kwargs)
{
    for (uint32_t i = 0; i < n_vals; i++)
        if (vals[i].kind == TUCK_V_NODE) {
            uint32_t use = take_use(g);

            assert_hot(node_alive(g, vals[i].a));
            g->use.at[use].user = n;
            g->use.at[use].slot = i;
            vals[i].u.i = use;
            enter_use(g, use, vals[i].a);
        }
    struct fx_node *x = node_at(g, n);
    x->vals = vals;
    x->n_vals = n_vals;
    x->n_args = n_args;
    x->n_kwargs = n_kwargs;
    x->op = (uint16_t)op_version(x->op, vals, n_args);
}

void graph_set_vals(tuck_graph *g, uint32_t n, const tuck_value *vals, uint32_t n_vals,
                    uint32_t n_args, uint32_t n_kwargs)
{
    /* Everything that can fail comes first, so that a failure leaves the graph unchanged. */
    tuck_value *copy = arena_array(&g->arena, tuck_value, n_vals);
    vec_reserve(&g->store->mem, &g->use, n_vals);

    if (n_vals > 0)
        memcpy(copy, vals, n_vals * sizeof(*copy));
    graph_take_vals(g, n, copy, n_vals, n_args, n_kwargs);
}

void graph_drop_vals(tuck_graph *g, uint32_t n)
{
    struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE) {
            uint32_t use = (uint32_t)x->vals[i].u.i;

            assert_hot(g->use.at[use].user == n && g->use.at[use].slot == i);
            leave_use(g, use, x->vals[i].a);
            g->use.at[use].next = g->free_use;
            g->free_use = use;
        }
    x->n_vals = x->n_args = x->n_kwargs = 0;
    x->vals = NULL;
}

void graph_redirect_use(tuck_graph *g, uint32_t use, uint32_t to)
{
    struct fx_use *u = &g->use.at[use];
    tuck_value *v = &node_at(g, u->user)->vals[u->slot];

    assert_hot(v->kind == TUCK_V_NODE && (uint32_t)v->u.i == use && node_alive(g, to));
    leave_use(g, use, v->a);
    v->a = to;
    enter_use(g, use, to);
}

void graph_erase(tuck_graph *g, uint32_t n)
{
    assert(node_alive(g, n));
    name_forget(g, node_at(g, n)->name);
    graph_drop_vals(g, n);
    graph_unlink(g, n);
    node_at(g, n)->kind = 0;
    g->n_nodes--;
    if (g->output == n)
        g->output = 0;
}

void graph_swap(tuck_graph *a, tuck_graph *b)
{
    tuck_graph c = *a;

    assert(a->store == b->store);
    *a = *b;
    *b = c;
    for (uint32_t i = 0; i < a->child.len; i++)
        a->child.at[i]->parent = a;
    for (uint32_t i = 0; i < b->child.len; i++)
        b->child.at[i]->parent = b;
}

void graph_number(tuck_graph *g)
{
    uint32_t pos = 0;

    if (g->ordered)
        return;
    for_each_node (g, n)
        g->node.at[n].pos = ++pos;
    assert(pos == g->n_nodes);
    g->ordered = true;
}
