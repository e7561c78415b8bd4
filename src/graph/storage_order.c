/* Checks that edits keep the order of reads and writes; and the bytes of storages. */
#include <inttypes.h>

#include "op/ops.h"
#include "graph/storage.h"

/* One walk in order with the last write of each storage. */
struct tracker {
    const struct storages *s;
    uint32_t *last;      /* by storage: node that wrote it last */
    const bool *written; /* by storage: it is written somewhere */
    const bool *touched; /* by node: it is in such a storage */
    VEC(uint32_t) found; /* writers before the accesses of the current node */
    struct mem *mem;
    uint32_t node;
};

static void note_access(void *ctx, uint32_t storage, enum access how)
{
    struct tracker *t = ctx;

    (void)how;
    if (t->written[storage])
        vec_push(t->mem, &t->found, t->last[storage]);
}

static void note_write(void *ctx, uint32_t storage, enum access how)
{
    struct tracker *t = ctx;

    if (how == ACCESS_WRITE)
        t->last[storage] = t->node;
}

static void tracker_start(struct tracker *t, const struct storages *s, struct arena *a)
{
    size_t n = (size_t)s->n + 1;

    *t = (struct tracker){.s = s, .mem = a->mem};
    t->last = arena_zeroed(a, n * sizeof(*t->last));
    t->written = storages_written(s, a);
    t->touched = storages_touched(s, t->written, a);
}

/* Puts the writers before node n's accesses into t->found; then its own writes count. */
static void tracker_step(struct tracker *t, uint32_t n)
{
    t->node = n;
    t->found.len = 0;
    if (!node_mentions(t->s->g, n, t->touched))
        return;
    storage_accesses(t->s, n, note_access, t);
    if (node_may_write(t->s->g, n))
        storage_accesses(t->s, n, note_write, t);
}

struct entry {
    uint32_t node, writer;
};

struct record {
    tuck_graph *g;
    struct arena scratch;
    struct storages s;
    struct tracker t;
    VEC(struct entry) entry;
};

static void do_record(void *p)
{
    struct record *r = p;
    tuck_graph *g = r->g;
    struct mem *m = &g->store->mem;

    storages_build(g, &r->scratch, &r->s);
    tracker_start(&r->t, &r->s, &r->scratch);
    for_each_node (g, n) {
        tracker_step(&r->t, n);
        for (uint32_t i = 0; i < r->t.found.len; i++)
            vec_push(m, &r->entry, ((struct entry){n, r->t.found.at[i]}));
    }
    /* By node id, not by order. While it is filled, start[n + 1] is where n's next entry goes. */
    struct storage_order *o = arena_new(&g->arena, struct storage_order);
    o->n_node = g->node.len;
    o->n_writer = r->entry.len;
    o->start = arena_zeroed(&g->arena, ((size_t)g->node.len + 2) * sizeof(*o->start));
    o->writer = arena_array(&g->arena, uint32_t, o->n_writer);
    for (uint32_t i = 0; i < o->n_writer; i++)
        o->start[r->entry.at[i].node + 2]++;
    for (uint32_t n = 1; n < g->node.len; n++)
        o->start[n + 1] += o->start[n];
    for (uint32_t i = 0; i < o->n_writer; i++)
        o->writer[o->start[r->entry.at[i].node + 1]++] = r->entry.at[i].writer;
    g->order = o;
}

void storage_order_record(tuck_graph *g)
{
    struct record r = {.g = g};
    struct mem *m = &g->store->mem;
    bool writes = false;

    for_each_node (g, n)
        writes |= node_may_write(g, n);
    g->order = NULL;
    g->order_at = g->revision;
    if (!writes) /* nothing that edits could break */
        return;
    arena_init(&r.scratch, m);
    bool ok = mem_guard(m, do_record, &r);
    vec_free(m, &r.t.found);
    vec_free(m, &r.entry);
    arena_destroy(&r.scratch);
    if (!ok) {
        g->order_at = 0;
        mem_exhausted(m);
    }
}

static void do_begin(void *g)
{
    storage_order_record(g);
}

bool graph_begin_edit(tuck_graph *g)
{
    bool recorded = g->edited || (g->order_at != 0 && g->order_at == g->revision);

    return recorded || mem_guard(&g->store->mem, do_begin, g);
}

struct check {
    const tuck_graph *g;
    tuck_diags *diags;
    struct mem mem; /* its own guard: checking does not change the graph */
    struct arena scratch;
    struct storages s;
    struct tracker t;
    bool fine;
};

static void complain(struct check *c, uint32_t n, uint32_t was, uint32_t is)
{
    const tuck_graph *g = c->g;
    const struct fx_node *x = node_at(g, n);
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    struct diag_pos pos = {.source = &src, .line = x->line, .column = x->column};
    const char *name = graph_str(g, x->name);

    c->fine = false;
    if (was != 0)
        diag_add(c->diags, TUCK_ERROR, pos, NULL,
                 "'%s' was moved before '%s', which writes the same storage", name,
                 graph_str(g, node_at(g, was)->name));
    else
        diag_add(c->diags, TUCK_ERROR, pos, NULL,
                 "'%s' was moved after '%s', which writes the same storage", name,
                 graph_str(g, node_at(g, is)->name));
}

/* The writer, if it existed before: for new ones nothing is checked. */
static uint32_t known_writer(const struct check *c, uint32_t w)
{
    return w != 0 && w < c->g->order->n_node ? w : 0;
}

static void do_check(void *p)
{
    struct check *c = p;
    const tuck_graph *g = c->g;
    const struct storage_order *o = g->order;

    storages_build(g, &c->scratch, &c->s);
    tracker_start(&c->t, &c->s, &c->scratch);
    c->t.mem = &c->mem;
    for_each_node (g, n) {
        tracker_step(&c->t, n);
        if (n >= o->n_node)
            continue;
        uint32_t had = o->start[n + 1] - o->start[n];
        /* Arguments may have been replaced: compare only if the number of accesses is the same. */
        if (had != c->t.found.len)
            continue;
        for (uint32_t i = 0; i < had; i++) {
            uint32_t was = o->writer[o->start[n] + i], is = c->t.found.at[i];
            bool gone = was != 0 && !node_alive(g, was);
            bool newer = is != 0 && known_writer(c, is) == 0;
            if (was != is && !gone && !newer)
                complain(c, n, was, is);
        }
    }
}

tuck_status storage_order_check(const tuck_graph *g, tuck_diags *diags)
{
    struct check c = {.g = g, .diags = diags, .fine = true};

    if (g->order == NULL)
        return TUCK_OK;
    mem_init(&c.mem, &g->store->mem.alloc);
    arena_init(&c.scratch, &c.mem);
    bool ok = mem_guard(&c.mem, do_check, &c);
    vec_free(&c.mem, &c.t.found);
    arena_destroy(&c.scratch);
    return !ok ? TUCK_ENOMEM : c.fine ? TUCK_OK : TUCK_ELINT;
}

/* ---- memory ---- */

bool storage_bytes(const tuck_graph *g, type_id id, bool (*size)(void *, sym_id, int64_t *),
                   void *ctx, int64_t *out)
{
    struct fx_store *st = g->store;
    const struct type *t = type_at(&st->type, id);
    int64_t last = 0;

    if (t->kind != TYPE_TENSOR)
        return false;
    int64_t numel = 1;
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t n, stride = 0;
        if (!sym_as_int(&st->sym, t->size[i], &n) && (size == NULL || !size(ctx, t->size[i], &n)))
            return false;
        if (!size_mul(numel, n, &numel))
            return false;
        if (t->strided && !sym_as_int(&st->sym, t->stride[i], &stride) &&
            (size == NULL || !size(ctx, t->stride[i], &stride)))
            return false;
        if (n < 0 || stride < 0) /* no tensor has such */
            return false;
        if (n > 0 && (!size_mul(n - 1, stride, &stride) || !size_add(last, stride, &last)))
            return false;
    }
    if (numel == 0) {
        *out = 0;
        return true;
    }
    int64_t elements = numel;
    if (t->strided && !size_add(last, 1, &elements))
        return false;
    return size_mul(elements, dtype_at((enum dtype)t->dtype)->bytes, out);
}
