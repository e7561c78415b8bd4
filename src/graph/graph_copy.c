/* Copies a graph and the graphs nested in it: a compact copy with new node ids, for callers; and
 * one with the same node ids, for passes. Strings and annotations stay in the store, which the copy
 * shares. */
#include "graph/graph.h"

struct pair {
    const tuck_graph *from;
    tuck_graph *to;
};

struct copy {
    const tuck_graph *from;
    tuck_graph *to; /* owns everything made so far */
    struct mem *mem;
    VEC(struct pair) todo;
    VEC(uint32_t) id; /* by node of the original: its number in the copy */
};

static size_t more_than(uint32_t n)
{
    return (size_t)n + n / 8;
}

static void copy_nodes(struct copy *x, const tuck_graph *g, tuck_graph *c)
{
    x->id.len = 0;
    vec_reserve(x->mem, &x->id, g->node.len);
    memset(x->id.at, 0, g->node.len * sizeof(*x->id.at));
    /* Copies are usually edited: with some spare room, the first edit does not move everything. */
    vec_reserve(x->mem, &c->node, more_than(g->n_nodes));
    vec_reserve(x->mem, &c->use, more_than(g->use.len));
    for_each_node (g, n) {
        struct fx_node init = g->node.at[n];

        init.vals = NULL;
        init.n_vals = init.n_args = init.n_kwargs = 0;
        init.use_first = init.use_last = init.n_uses = 0;
        x->id.at[n] = graph_add_node(c, 0, init);
    }
    c->output = x->id.at[g->output];
    /* Arguments come in a second round: a graph under construction may use a node before it is
     * defined. */
    for_each_node (g, n) {
        const struct fx_node *node = &g->node.at[n];
        tuck_value *v = arena_array(&c->arena, tuck_value, node->n_vals);

        vec_reserve(x->mem, &c->use, node->n_vals);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            v[i] = node->vals[i];
            if (v[i].kind == TUCK_V_NODE)
                v[i].a = x->id.at[v[i].a];
        }
        graph_take_vals(c, x->id.at[n], v, node->n_vals, node->n_args, node->n_kwargs);
    }
}

static void copy_frees(struct copy *x, const tuck_graph *g, tuck_graph *c)
{
    if (!g->frees_verbatim)
        return;
    for (uint32_t i = 0; i < FX_FIRST_ID; i++)
        vec_push(x->mem, &c->frees_at, 0);
    for_each_node (g, n) {
        vec_push(x->mem, &c->frees_at, c->frees.len);
        if (n + 1 < g->frees_at.len)
            for (uint32_t i = g->frees_at.at[n]; i < g->frees_at.at[n + 1]; i++)
                vec_push(x->mem, &c->frees, x->id.at[g->frees.at[i]]);
    }
    vec_push(x->mem, &c->frees_at, c->frees.len);
}

static void copy_lists(struct copy *x, const tuck_graph *g, tuck_graph *c)
{
    for (uint32_t i = 0; i < g->param.len; i++) {
        struct fx_param q = g->param.at[i];
        q.node = x->id.at[q.node];
        vec_push(x->mem, &c->param, q);
    }
    for (uint32_t i = 0; i < g->note.len; i++) {
        struct fx_placeholder_note note = g->note.at[i];
        note.node = x->id.at[note.node];
        if (note.node != 0)
            vec_push(x->mem, &c->note, note);
    }
    for (uint32_t i = 0; i < g->remark.len && !g->edited; i++) {
        struct fx_remark q = g->remark.at[i];
        q.node = x->id.at[q.node];
        vec_push(x->mem, &c->remark, q);
    }
    for (uint32_t i = 0; i < g->out_descriptor.len; i++)
        vec_push(x->mem, &c->out_descriptor, g->out_descriptor.at[i]);
    for (uint32_t i = 0; i < g->hint.len; i++)
        vec_push(x->mem, &c->hint, g->hint.at[i]);
    c->n_script_hint = g->n_script_hint;
    for (uint32_t i = 0; i < g->group.len; i++) {
        struct fx_group q = g->group.at[i];

        q.node = x->id.at[q.node];
        if (q.node == 0 && g->group.at[i].node != 0)
            continue; /* the node that yielded it no longer exists */
        if (q.ranks != NULL && q.size > 0) {
            int64_t *ranks = arena_array(&c->arena, int64_t, (size_t)q.size);
            memcpy(ranks, q.ranks, (size_t)q.size * sizeof(*ranks));
            q.ranks = ranks;
        }
        vec_push(x->mem, &c->group, q);
    }
}

static void copy_one(struct copy *x, const tuck_graph *g, tuck_graph *c)
{
    c->name = g->name;
    c->gap = g->gap;
    c->known = g->known;
    c->script = g->script;
    c->style = g->style;
    c->rank = g->rank;
    c->first_line = g->first_line;
    c->source_name = g->source_name;
    c->fresh = g->fresh;
    c->edited = g->edited;
    copy_nodes(x, g, c);
    copy_lists(x, g, c);
    copy_frees(x, g, c);
    c->frees_verbatim = g->frees_verbatim;
}

static void do_copy(void *p)
{
    struct copy *x = p;

    x->to = graph_new(x->from->store);
    vec_push(x->mem, &x->todo, ((struct pair){x->from, x->to}));
    while (x->todo.len > 0) {
        struct pair one = x->todo.at[--x->todo.len];

        copy_one(x, one.from, one.to);
        for (uint32_t i = 0; i < one.from->child.len; i++) {
            vec_reserve(x->mem, &one.to->child, 1);
            tuck_graph *c = graph_new(x->from->store);
            c->name = one.from->child.at[i]->name;
            one.to->child.at[one.to->child.len++] = c;
            graph_enter_child(one.to, i);
            vec_push(x->mem, &x->todo, ((struct pair){one.from->child.at[i], c}));
        }
    }
}

tuck_status tuck_graph_copy(const tuck_graph *g, tuck_graph **g_out)
{
    if (g == NULL || g_out == NULL)
        return TUCK_EINVAL;
    struct copy x = {.from = g, .mem = &g->store->mem};
    bool ok = mem_guard(x.mem, do_copy, &x);

    vec_free(x.mem, &x.todo);
    vec_free(x.mem, &x.id);
    if (!ok) {
        graph_free(x.to);
        return TUCK_ENOMEM;
    }
    *g_out = x.to;
    return TUCK_OK;
}

/* ---- with the same ids ---- */

struct clone {
    const tuck_graph *from;
    tuck_graph *to;
    VEC(struct pair) todo;
};

#define COPY_LIST(m, to, from)                                                                     \
    do {                                                                                           \
        vec_reserve(m, &(to), (from).len);                                                         \
        if ((from).len > 0)                                                                        \
            memcpy((to).at, (from).at, (from).len * sizeof(*(from).at));                           \
        (to).len = (from).len;                                                                     \
    } while (0)

/* Puts all argument lists into one block; in the original they may be scattered. */
static void clone_values(const tuck_graph *g, tuck_graph *c)
{
    size_t n_vals = 0;

    for_each_node (g, n)
        n_vals += g->node.at[n].n_vals;
    tuck_value *v = arena_array(&c->arena, tuck_value, n_vals);
    for_each_node (c, n) {
        struct fx_node *x = &c->node.at[n];
        const tuck_value *from = x->vals;
        x->vals = v;
        for (uint32_t i = 0; i < x->n_vals; i++) /* few: a call of memcpy() would take longer */
            *v++ = from[i];
    }
}

static void clone_groups(struct mem *m, const tuck_graph *g, tuck_graph *c)
{
    COPY_LIST(m, c->group, g->group);
    for (uint32_t i = 0; i < c->group.len; i++) {
        struct fx_group *q = &c->group.at[i];
        if (q->ranks == NULL || q->size <= 0)
            continue;
        int64_t *ranks = arena_array(&c->arena, int64_t, (size_t)q->size);
        memcpy(ranks, q->ranks, (size_t)q->size * sizeof(*ranks));
        q->ranks = ranks;
    }
}

static void clone_one(struct mem *m, const tuck_graph *g, tuck_graph *c)
{
    c->name = g->name;
    c->gap = g->gap;
    c->known = g->known;
    c->script = g->script;
    c->rank = g->rank;
    c->n_script_hint = g->n_script_hint;
    COPY_LIST(m, c->hint, g->hint);
    c->style = g->style;
    c->first_line = g->first_line;
    c->source_name = g->source_name;
    c->fresh = g->fresh;
    c->edited = g->edited;
    c->ordered = g->ordered;
    c->frees_verbatim = g->frees_verbatim;
    c->output = g->output;
    c->n_nodes = g->n_nodes;
    c->free_use = g->free_use;
    c->result = g->result;
    c->revision = g->revision;
    c->typed_at = g->typed_at;
    c->loose_at = g->loose_at;
    vec_reserve(m, &c->node, more_than(g->node.len));
    vec_reserve(m, &c->use, more_than(g->use.len));
    c->node.len = c->use.len = 0;
    COPY_LIST(m, c->node, g->node);
    COPY_LIST(m, c->use, g->use);
    clone_values(g, c);
    clone_groups(m, g, c);
    COPY_LIST(m, c->param, g->param);
    COPY_LIST(m, c->note, g->note);
    COPY_LIST(m, c->remark, g->remark);
    COPY_LIST(m, c->out_descriptor, g->out_descriptor);
    COPY_LIST(m, c->type, g->type);
    if (g->loose_at == g->revision)
        COPY_LIST(m, c->loose, g->loose);
    COPY_LIST(m, c->frees_at, g->frees_at);
    COPY_LIST(m, c->frees, g->frees);
}

static void do_clone(void *p)
{
    struct clone *x = p;
    struct mem *m = &x->from->store->mem;

    x->to = graph_new(x->from->store);
    vec_push(m, &x->todo, ((struct pair){x->from, x->to}));
    while (x->todo.len > 0) {
        struct pair one = x->todo.at[--x->todo.len];

        clone_one(m, one.from, one.to);
        for (uint32_t i = 0; i < one.from->child.len; i++) {
            vec_reserve(m, &one.to->child, 1);
            tuck_graph *c = graph_new(x->from->store);
            c->name = one.from->child.at[i]->name;
            one.to->child.at[one.to->child.len++] = c;
            graph_enter_child(one.to, i);
            vec_push(m, &x->todo, ((struct pair){one.from->child.at[i], c}));
        }
    }
}

tuck_graph *graph_clone(const tuck_graph *g)
{
    struct mem *m = &g->store->mem;
    struct clone x = {.from = g};
    bool ok = mem_guard(m, do_clone, &x);

    vec_free(m, &x.todo);
    if (!ok) {
        graph_free(x.to);
        return NULL;
    }
    return x.to;
}
