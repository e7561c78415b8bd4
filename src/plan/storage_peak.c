#include "plan/storage_peak.h"

#include "plan/liveness.h"

struct life {
    int64_t bytes;
    uint32_t born; /* the node that makes it; 0 if none */
    uint32_t last; /* the last node that uses it; UINT32_MAX if to the end */
    bool known, input;
};

/* By node with several results: the last node that mentions it. All its results live until then, so
 * earlier mentions do not matter; checking each for every result would take n * n for n picks. */
static uint32_t *last_mentions(const tuck_graph *g, const struct storages *s, struct arena *a)
{
    uint32_t *last = arena_zeroed(a, g->node.len * sizeof(*last));

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE && s->count[x->vals[i].a] > 1)
                last[x->vals[i].a] = n;
    }
    return last;
}

/* The largest value in a storage counts: views of a part do not make it smaller. */
static void grow(const tuck_graph *g, type_id t, uint32_t k,
                 bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx, struct life *l)
{
    const struct type *ty = type_at(&g->store->type, t);
    int64_t bytes;

    if (ty->kind == TYPE_LIST && k < ty->n)
        t = ty->item[k];
    if (!storage_bytes(g, t, size, ctx, &bytes))
        return;
    l->known = true;
    if (bytes > l->bytes)
        l->bytes = bytes;
}

/* By root: the nodes from which to which it lives. */
static struct life *find_lives(const tuck_graph *g, const struct storages *s, struct arena *a,
                               bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx)
{
    struct life *life = arena_zeroed(a, ((size_t)s->n + 1) * sizeof(*life));
    const uint32_t *last = last_mentions(g, s, a);

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        for (uint32_t k = 0; k < s->count[n]; k++) {
            struct life *l = &life[memory_of(s, n, k)];
            grow(g, node_type(g, n), k, size, ctx, l);
            if (l->born == 0) {
                l->born = l->last = n;
                l->input = x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR;
            }
        }
        for (uint32_t i = 0; i < x->n_vals; i++) {
            uint32_t from = x->vals[i].a;
            if (x->vals[i].kind == TUCK_V_NODE && (last[from] == 0 || last[from] == n))
                for (uint32_t k = 0; k < s->count[from]; k++)
                    life[memory_of(s, from, k)].last = x->kind == TUCK_OUTPUT ? UINT32_MAX : n;
        }
    }
    return life;
}

void storage_peak(const tuck_graph *g, const struct storages *s, struct arena *a,
                  bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx,
                  struct storage_peak *out)
{
    const struct life *life = find_lives(g, s, a, size, ctx);
    uint32_t *order = arena_array(a, uint32_t, g->node.len);
    int64_t *alloc = arena_zeroed(a, g->node.len * sizeof(*alloc));
    int64_t *freed = arena_zeroed(a, g->node.len * sizeof(*freed));
    struct live_walk w = {.order = order, .alloc = alloc, .freed = freed};

    *out = (struct storage_peak){.peak = 0};
    for_each_node (g, n)
        order[w.n++] = n;
    for (uint32_t i = 1; i <= s->n; i++) {
        const struct life *l = &life[i];
        if (l->born == 0)
            continue;
        out->unknown += !l->known;
        if (l->input) {
            w.input += l->bytes;
            continue;
        }
        alloc[l->born] += l->bytes;
        if (l->last != UINT32_MAX)
            freed[l->last] += l->bytes;
    }
    struct live_most most = live_walk(&w);
    out->inputs = w.input;
    out->peak = most.bytes;
    out->node = most.op != PROBLEM_NONE ? most.op : 0;
}
