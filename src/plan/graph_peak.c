#include "plan/graph_peak.h"

#include "graph/storage.h"
#include "lower/copies.h"
#include "plan/liveness.h"

struct storage {
    int64_t bytes;
    uint32_t last; /* the last node that uses it, 0 if none */
    bool live, kept;
};

/* Items of a list that are never taken out of it: they live as long as the list is used. */
struct rest {
    int64_t bytes;
    uint32_t last; /* the last node that uses the list, 0 if none */
};

struct peak_args {
    tuck_graph *g;
    struct graph_peak *out;
    struct assume assume;
    struct sigs sigs;
    struct arena arena;
    struct storages s;
    struct storage *at; /* by root */
    struct rest *rest;  /* by node */
};

static bool size_of(void *ctx, sym_id v, int64_t *out)
{
    return assume_value(ctx, v, out);
}

/* Is it an input without a type that is only returned? torch annotates tensors, so it is not a
 * tensor. */
static bool is_handed_through(const tuck_graph *g, uint32_t n)
{
    if (node_at(g, n)->kind != TUCK_PLACEHOLDER)
        return false;
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next)
        if (node_at(g, g->use.at[u].user)->kind != TUCK_OUTPUT)
            return false;
    return true;
}

/* The size of a storage when it first occurs; 0 on the host. */
static int64_t bytes_of(struct peak_args *x, uint32_t n, uint32_t k)
{
    const struct typetab *types = &x->g->store->type;
    type_id id = node_type(x->g, n);
    const struct type *t = type_at(types, id);
    int64_t bytes;

    if (t->kind == TYPE_LIST)
        id = k < t->n ? t->item[k] : 0;
    t = type_at(types, id);
    if (t->kind == TYPE_TENSOR && strncmp(graph_str(x->g, t->device), "cpu", 3) == 0)
        return 0;
    if (t->kind == TYPE_TENSOR && storage_bytes(x->g, id, size_of, &x->assume, &bytes))
        return bytes;
    x->out->unknown += t->kind == TYPE_TENSOR ||
                       (t->kind == TYPE_UNKNOWN && !is_handed_through(x->g, n));
    return 0;
}

static int64_t allocate(struct peak_args *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    int64_t fresh = 0;
    bool made = false;

    for (uint32_t k = 0; k < x->s.count[n]; k++) {
        struct storage *s = &x->at[memory_of(&x->s, n, k)];
        if (s->live)
            continue;
        s->live = true;
        s->kept = strncmp(graph_str(g, node_at(g, n)->name), "primals", 7) == 0;
        s->bytes = bytes_of(x, n, k);
        fresh += s->bytes;
        made = true;
    }
    for (uint32_t k = x->s.count[n]; made && t->kind == TYPE_LIST && k < t->n; k++)
        x->rest[n].bytes += bytes_of(x, n, k);
    return fresh + x->rest[n].bytes;
}

static int64_t release(struct peak_args *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    int64_t freed = 0;

    for (uint32_t i = 0; i < node->n_vals; i++) {
        uint32_t from = node->vals[i].a;
        if (node->vals[i].kind != TUCK_V_NODE)
            continue;
        for (uint32_t k = 0; k < x->s.count[from]; k++) {
            struct storage *s = &x->at[memory_of(&x->s, from, k)];
            if (s->last != n || s->kept)
                continue;
            freed += s->bytes;
            s->kept = true; /* count it once */
        }
        if (x->rest[from].last == n) {
            freed += x->rest[from].bytes;
            x->rest[from].last = 0;
        }
    }
    return freed;
}

static bool is_input(const struct fx_node *x)
{
    return x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR;
}

/* The operator of a node; for a control_deps, the operator inside it. */
static const struct op_row *row_of(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const tuck_value *sub = x->n_args >= 2 ? value_next(x->vals) : NULL;
    const tuck_graph *child;

    if (op_at(x->op)->shape == OP_SHAPE_control_deps && sub && sub->kind == TUCK_V_NODE &&
        (child = child_of(g, sub->a)) != NULL && child->output != 0) {
        const tuck_value *out = node_at(child, child->output)->vals;
        if (out->kind == TUCK_V_NODE)
            return op_at(node_at(child, out->a)->op);
    }
    return op_at(x->op);
}

/* Sharing follows PyTorch's fake tensors, on which those estimates are based. */
static void find_apart(const struct peak_args *x, bool *apart)
{
    for_each_node (x->g, n)
        if (row_of(x->g, n)->flags & OP_F_FAKE_APART)
            apart[n] = true;
}

static void do_peak(void *arg)
{
    struct peak_args *x = arg;
    tuck_graph *g = x->g;
    struct copies c = {.g = g, .assume = &x->assume, .sigs = &x->sigs};
    struct live_walk w = {.n = 0};

    infer_need(g);
    copies_find(&c, &x->arena);
    find_apart(x, c.copies);
    storages_build_apart(g, &x->arena, c.copies, &x->s);
    x->at = arena_zeroed(&x->arena, ((size_t)x->s.n + 1) * sizeof(*x->at));
    x->rest = arena_zeroed(&x->arena, g->node.len * sizeof(*x->rest));
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++) {
            if (node->vals[i].kind != TUCK_V_NODE)
                continue;
            x->rest[node->vals[i].a].last = n;
            for (uint32_t k = 0; k < x->s.count[node->vals[i].a]; k++)
                x->at[memory_of(&x->s, node->vals[i].a, k)].last = n;
        }
        if (is_input(node))
            w.input += allocate(x, n);
    }
    uint32_t *order = arena_array(&x->arena, uint32_t, g->node.len);
    int64_t *alloc = arena_zeroed(&x->arena, g->node.len * sizeof(*alloc));
    int64_t *freed = arena_zeroed(&x->arena, g->node.len * sizeof(*freed));
    for_each_node (g, n) {
        if (is_input(node_at(g, n)) || n == g->output)
            continue;
        order[w.n++] = n;
        alloc[n] = allocate(x, n);
        freed[n] = release(x, n);
    }
    w.order = order;
    w.alloc = alloc;
    w.freed = freed;
    struct live_most most = live_walk(&w);
    x->out->initial = w.input;
    x->out->peak = most.bytes;
    x->out->node = most.op != PROBLEM_NONE ? most.op : 0;
}

tuck_status memory_graph_peak(tuck_graph *g, const struct fx_hint *hint, size_t n_hint,
                              struct graph_peak *out)
{
    struct graph_peak result = {.peak = 0};
    struct peak_args x = {.g = g, .out = &result};

    x.assume = (struct assume){.store = g->store, .given = hint, .n_given = n_hint};
    arena_init(&x.arena, &g->store->mem);
    sigs_init(&x.sigs, &g->store->mem);
    bool ok = mem_guard(&g->store->mem, do_peak, &x);
    sigs_destroy(&x.sigs);
    arena_destroy(&x.arena);
    if (ok)
        *out = result;
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
