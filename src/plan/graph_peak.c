#include "plan/graph_peak.h"

#include "graph/storage.h"
#include "lower/copies.h"
#include "plan/liveness.h"

struct storage {
    int64_t bytes;
    struct life life;
    bool kept; /* by the caller */
};

/* Items of a list that are never taken out of it: they live as long as the list is used. */
struct rest {
    int64_t bytes;
    struct life life;
};

struct peak_args {
    tuck_graph *g;
    struct graph_peak *out;
    const struct graph_peak_more *more;
    struct assume assume;
    struct sigs sigs;
    struct arena arena;
    struct storages s;
    struct storage *at; /* by root */
    struct rest *rest;  /* by node */
    uint32_t *time;     /* by node: LIFE_START for inputs, LIFE_END for the output */
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

static void allocate(struct peak_args *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    struct life life = life_begin(x->time[n]);
    bool made = false;

    for (uint32_t k = 0; k < x->s.count[n]; k++) {
        struct storage *s = &x->at[memory_of(&x->s, n, k)];
        if (s->life.made != LIFE_END)
            continue;
        s->life = life;
        s->kept = strncmp(graph_str(g, node_at(g, n)->name), "primals", 7) == 0 ||
                  (x->more->keep != NULL && x->more->keep[n]);
        s->bytes = bytes_of(x, n, k);
        if (s->bytes > 0 && x->more->input_bytes != NULL && x->more->input_bytes[n] > 0)
            s->bytes = x->more->input_bytes[n];
        made = true;
    }
    for (uint32_t k = x->s.count[n]; made && t->kind == TYPE_LIST && k < t->n; k++) {
        x->rest[n].life = life;
        x->rest[n].bytes += bytes_of(x, n, k);
    }
}

/* What node n uses, it keeps alive. */
static void use(struct peak_args *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);

    for (uint32_t i = 0; i < node->n_vals; i++) {
        uint32_t from = node->vals[i].a;
        if (node->vals[i].kind != TUCK_V_NODE)
            continue;
        life_use(&x->rest[from].life, x->time[n]);
        for (uint32_t k = 0; k < x->s.count[from]; k++)
            life_use(&x->at[memory_of(&x->s, from, k)].life, x->time[n]);
    }
}

/* Only a use frees: what nothing uses lives to the end. */
static void enter(struct live_walk *w, struct life l, int64_t bytes, bool kept)
{
    if (kept || l.last == l.made)
        life_keep(&l);
    live_enter(w, l, bytes, bytes);
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

/* Numbers the nodes that run, and makes room for what they make; the order is in w. */
static void begin(struct peak_args *x, struct live_walk *w)
{
    const tuck_graph *g = x->g;
    uint32_t *order = arena_array(&x->arena, uint32_t, g->node.len);

    x->time = arena_zeroed(&x->arena, g->node.len * sizeof(*x->time));
    x->at = arena_zeroed(&x->arena, ((size_t)x->s.n + 1) * sizeof(*x->at));
    x->rest = arena_zeroed(&x->arena, g->node.len * sizeof(*x->rest));
    for (uint32_t i = 0; i <= x->s.n; i++)
        x->at[i].life = life_begin(LIFE_END);
    for_each_node (g, n) {
        x->rest[n].life = life_begin(LIFE_END);
        if (n == g->output)
            x->time[n] = LIFE_END;
        else if (!is_input(node_at(g, n))) {
            order[w->n++] = n;
            x->time[n] = w->n;
        }
    }
    w->order = order;
    w->alloc = arena_zeroed(&x->arena, g->node.len * sizeof(*w->alloc));
    w->freed = arena_zeroed(&x->arena, g->node.len * sizeof(*w->freed));
}

/* Storages that the graph returns, without those of `after`. */
static int64_t count_returned(struct peak_args *x)
{
    const struct fx_node *out = node_at(x->g, x->g->output);
    bool *done = arena_zeroed(&x->arena, (size_t)x->s.n + 1);
    int64_t bytes = 0;

    for (int pass = 0; pass < 2 && x->g->output != 0; pass++)
        for (uint32_t i = 0; i < out->n_vals; i++) {
            uint32_t n = out->vals[i].a;
            if (out->vals[i].kind != TUCK_V_NODE || x->more->after[n] != (pass == 0))
                continue;
            for (uint32_t k = 0; k < x->s.count[n]; k++) {
                uint32_t root = memory_of(&x->s, n, k);
                bytes += pass == 1 && !done[root] ? x->at[root].bytes : 0;
                done[root] = true;
            }
        }
    return bytes;
}

static void say_roots(const struct peak_args *x)
{
    for_each_node (x->g, n) {
        bool any = x->s.count[n] > 0;
        uint32_t root = any ? memory_of(&x->s, n, 0) : 0;
        x->more->root[n] = any ? root + 1 : 0;
        x->more->bytes[n] = any ? x->at[root].bytes : 0;
    }
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
    begin(x, &w);
    for_each_node (g, n)
        if (x->time[n] == LIFE_START)
            allocate(x, n);
    for (uint32_t i = 0; i < w.n; i++)
        allocate(x, w.order[i]);
    for_each_node (g, n)
        use(x, n);
    for (uint32_t i = 0; i <= x->s.n; i++)
        enter(&w, x->at[i].life, x->at[i].bytes, x->at[i].kept);
    for_each_node (g, n)
        enter(&w, x->rest[n].life, x->rest[n].bytes, false);
    struct live_most most = live_walk(&w);
    x->out->initial = w.input;
    x->out->peak = most.bytes;
    x->out->node = most.op != PROBLEM_NONE ? most.op : 0;
    if (x->more->after != NULL)
        x->out->returned = count_returned(x);
    if (x->more->root != NULL)
        say_roots(x);
}

tuck_status memory_graph_peak(tuck_graph *g, const struct fx_hint *hint, size_t n_hint,
                              struct graph_peak *out)
{
    struct graph_peak_more none = {.keep = NULL};

    return memory_graph_peak_of(g, hint, n_hint, &none, out);
}

tuck_status memory_graph_peak_of(tuck_graph *g, const struct fx_hint *hint, size_t n_hint,
                                 const struct graph_peak_more *more, struct graph_peak *out)
{
    struct graph_peak result = {.peak = 0};
    struct peak_args x = {.g = g, .out = &result, .more = more};

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
