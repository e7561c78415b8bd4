#include "memory/graph_peak.h"

#include "fx/storage.h"
#include "lower/copies.h"

struct storage {
    int64_t bytes;
    uint32_t last; /* the last node that uses it, 0: none */
    bool live, kept;
};

struct peak_args {
    tuck_graph *g;
    struct graph_peak *out;
    struct assume assume;
    struct sigs sigs;
    struct arena arena;
    struct storages s;
    struct storage *at; /* by root */
};

static bool size_of(void *ctx, sym_id v, int64_t *out)
{
    return assume_value(ctx, v, out);
}

/* What a storage is when it first shows up; on the host it is nothing. */
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
    x->out->unknown += t->kind == TYPE_TENSOR || t->kind == TYPE_UNKNOWN;
    return 0;
}

static int64_t allocate(struct peak_args *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    int64_t fresh = 0;

    for (uint32_t k = 0; k < x->s.count[n]; k++) {
        struct storage *s = &x->at[storage_of(&x->s, n, k)];
        if (s->live)
            continue;
        s->live = true;
        s->kept = strncmp(graph_str(g, node_at(g, n)->name), "primals", 7) == 0;
        s->bytes = bytes_of(x, n, k);
        fresh += s->bytes;
    }
    return fresh;
}

static int64_t release(struct peak_args *x, uint32_t n)
{
    const struct fx_node *node = node_at(x->g, n);
    int64_t freed = 0;

    for (uint32_t i = 0; i < node->n_vals; i++)
        for (uint32_t k = 0; node->vals[i].kind == TUCK_V_NODE && k < x->s.count[node->vals[i].a];
             k++) {
            struct storage *s = &x->at[storage_of(&x->s, node->vals[i].a, k)];
            if (s->last != n || s->kept)
                continue;
            freed += s->bytes;
            s->kept = true; /* once */
        }
    return freed;
}

static bool is_input(const struct fx_node *x)
{
    return x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR;
}

static void do_peak(void *arg)
{
    struct peak_args *x = arg;
    tuck_graph *g = x->g;
    struct infer_options infer = {.before = NULL};
    struct copies c = {.g = g, .assume = &x->assume, .sigs = &x->sigs};
    int64_t live = 0;

    if (g->type.len < g->node.len)
        infer_graph(g, &infer, NULL);
    copies_find(&c, &x->arena);
    storages_build_apart(g, &x->arena, c.copies, &x->s);
    x->at = arena_zeroed(&x->arena, ((size_t)x->s.n + 1) * sizeof(*x->at));
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);
        for (uint32_t i = 0; i < node->n_vals; i++)
            for (uint32_t k = 0;
                 node->vals[i].kind == TUCK_V_NODE && k < x->s.count[node->vals[i].a]; k++)
                x->at[storage_of(&x->s, node->vals[i].a, k)].last = n;
        if (is_input(node))
            live += allocate(x, n);
    }
    x->out->peak = x->out->initial = live;
    for_each_node (g, n) {
        if (is_input(node_at(g, n)) || n == g->output)
            continue;
        live += allocate(x, n);
        if (live > x->out->peak) {
            x->out->peak = live;
            x->out->node = n;
        }
        live -= release(x, n);
    }
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
