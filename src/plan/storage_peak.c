#include "plan/storage_peak.h"

#include "plan/liveness.h"

struct storage {
    int64_t bytes;
    struct life life; /* times are those of nodes, in the order of the graph */
    bool known;
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
                 bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx, struct storage *l)
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

/* By root. Inputs stay with the caller. */
static struct storage *find_lives(const tuck_graph *g, const struct storages *s, struct arena *a,
                                  bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx)
{
    struct storage *at = arena_array(a, struct storage, (size_t)s->n + 1);
    const uint32_t *last = last_mentions(g, s, a);
    uint32_t time = LIFE_START;

    for (uint32_t i = 0; i <= s->n; i++)
        at[i] = (struct storage){.life = life_begin(LIFE_END)};
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        bool input = x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR;

        time++;
        for (uint32_t k = 0; k < s->count[n]; k++) {
            struct storage *l = &at[memory_of(s, n, k)];
            grow(g, node_type(g, n), k, size, ctx, l);
            if (l->life.made != LIFE_END)
                continue;
            l->life = life_begin(input ? LIFE_START : time);
            if (input)
                life_keep(&l->life);
        }
        for (uint32_t i = 0; i < x->n_vals; i++) {
            uint32_t from = x->vals[i].a;
            if (x->vals[i].kind == TUCK_V_NODE && (last[from] == 0 || last[from] == n))
                for (uint32_t k = 0; k < s->count[from]; k++)
                    life_use(&at[memory_of(s, from, k)].life,
                             x->kind == TUCK_OUTPUT ? LIFE_END : time);
        }
    }
    return at;
}

void storage_peak(const tuck_graph *g, const struct storages *s, struct arena *a,
                  bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx,
                  struct storage_peak *out)
{
    const struct storage *at = find_lives(g, s, a, size, ctx);
    uint32_t *order = arena_array(a, uint32_t, g->node.len);
    struct live_walk w = {.order = order,
                          .alloc = arena_zeroed(a, g->node.len * sizeof(*w.alloc)),
                          .freed = arena_zeroed(a, g->node.len * sizeof(*w.freed))};

    *out = (struct storage_peak){.peak = 0};
    for_each_node (g, n)
        order[w.n++] = n;
    for (uint32_t i = 1; i <= s->n; i++) {
        out->unknown += at[i].life.made != LIFE_END && !at[i].known;
        live_enter(&w, at[i].life, at[i].bytes, at[i].bytes);
    }
    struct live_most most = live_walk(&w);
    out->inputs = w.input;
    out->peak = most.bytes;
    out->node = most.op != PROBLEM_NONE ? most.op : 0;
}
