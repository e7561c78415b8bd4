/* Stable topological sort: of the nodes that could come next, the one that stood first.
 *
 * Uses are hard: a node stands behind what it uses. On top of them nodes with effects keep the order they
 * have among each other, and reads and writes of one storage keep theirs, as long as no use says otherwise:
 * that order is soft. Kahn's algorithm runs over
 * both; only where the soft edges hold up everything, the first node that they alone hold up is let go.
 * A heap of old places gives the next node: O((n + e) log n).
 */
#include "fx/effect.h"
#include "fx/storage.h"

struct heap {
    uint32_t *at; /* places; the smallest is at[0] */
    uint32_t n;
};

struct soft { /* `to` should stay behind `from` */
    uint32_t from, to;
};

struct topo {
    struct mem mem; /* of its own: the graph is touched when everything is known */
    tuck_graph *g;
    struct arena arena;
    uint32_t *node;             /* by place: what stood there */
    uint32_t *place;            /* by node */
    uint32_t *hard;             /* by node: uses of nodes that are not out yet */
    uint32_t *held;             /* by node: soft edges from nodes that are not out yet */
    VEC(struct soft) soft;      /* all soft edges, by `from` once they are sorted */
    uint32_t *soft_start;       /* by node: its first */
    bool *out_yet;              /* by node */
    struct heap ready, blocked; /* blocked: by soft edges alone */
    uint32_t *order;            /* the result, without return */
    uint32_t n_order, n;
    bool cycle;
};

static void heap_push(struct heap *h, uint32_t v)
{
    uint32_t i = h->n++;

    for (; i > 0 && h->at[(i - 1) / 2] > v; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = v;
}

static uint32_t heap_pop(struct heap *h)
{
    uint32_t top = h->at[0], v = h->at[--h->n], i = 0;

    for (;;) {
        uint32_t k = 2 * i + 1;
        if (k >= h->n)
            break;
        if (k + 1 < h->n && h->at[k + 1] < h->at[k])
            k++;
        if (h->at[k] >= v)
            break;
        h->at[i] = h->at[k];
        i = k;
    }
    h->at[i] = v;
    return top;
}

static void add_soft(struct topo *x, uint32_t from, uint32_t to)
{
    if (from != to)
        vec_push(&x->mem, &x->soft, ((struct soft){from, to}));
}

struct reading {
    uint32_t node, next;
};

/* Reads and writes of storages that somebody writes: a read stays between the writes around it. */
struct accesses {
    struct topo *x;
    uint32_t *writer;          /* by storage: who wrote it last */
    uint32_t *reader;          /* by storage: the newest entry of `reads` since then */
    bool *written;             /* by storage: by anybody */
    VEC(struct reading) reads; /* [0] unused: 0 ends a list */
    uint32_t node;
};

static void mark_written(void *ctx, uint32_t storage, enum access how)
{
    struct accesses *a = ctx;

    a->written[storage] |= how == ACCESS_WRITE;
}

static void meet_access(void *ctx, uint32_t storage, enum access how)
{
    struct accesses *a = ctx;

    if (!a->written[storage])
        return;
    if (a->writer[storage] != 0)
        add_soft(a->x, a->writer[storage], a->node);
    if (how == ACCESS_READ) {
        vec_reserve(&a->x->mem, &a->reads, 1);
        a->reads.at[a->reads.len].node = a->node;
        a->reads.at[a->reads.len].next = a->reader[storage];
        a->reader[storage] = a->reads.len++;
    } else {
        for (uint32_t r = a->reader[storage]; r != 0; r = a->reads.at[r].next)
            add_soft(a->x, a->reads.at[r].node, a->node);
        a->reader[storage] = 0;
        a->writer[storage] = a->node;
    }
}

static void do_accesses(void *p)
{
    struct accesses *a = p;
    struct topo *x = a->x;
    struct storages s;

    storages_build(x->g, &x->arena, &s);
    size_t n = (size_t)s.n + 1;
    a->writer = arena_zeroed(&x->arena, n * sizeof(*a->writer));
    a->reader = arena_zeroed(&x->arena, n * sizeof(*a->reader));
    a->written = arena_zeroed(&x->arena, n * sizeof(*a->written));
    vec_reserve(&x->mem, &a->reads, 1);
    a->reads.len = 1;
    for_each_node (x->g, k)
        storage_accesses(&s, k, mark_written, a);
    for_each_node (x->g, k) {
        a->node = k;
        storage_accesses(&s, k, meet_access, a);
    }
}

static void add_accesses(struct topo *x)
{
    struct accesses a = {.x = x};
    bool writes = false;

    for_each_node (x->g, n)
        writes |= node_may_write(x->g, n);
    if (!writes)
        return;
    bool ok = mem_guard(&x->mem, do_accesses, &a);
    vec_free(&x->mem, &a.reads);
    if (!ok)
        mem_exhausted(&x->mem);
}

/* Edges by where they begin, so that a node finds its own. */
static void sort_soft(struct topo *x)
{
    uint32_t ids = x->g->node.len;
    uint32_t *start = arena_zeroed(&x->arena, ((size_t)ids + 1) * sizeof(*start));
    struct soft *sorted = arena_array(&x->arena, struct soft, x->soft.len);

    for (uint32_t i = 0; i < x->soft.len; i++) {
        start[x->soft.at[i].from + 1]++;
        x->held[x->soft.at[i].to]++;
    }
    for (uint32_t n = 0; n < ids; n++)
        start[n + 1] += start[n];
    x->soft_start = arena_array(&x->arena, uint32_t, (size_t)ids + 1);
    memcpy(x->soft_start, start, ((size_t)ids + 1) * sizeof(*start));
    for (uint32_t i = 0; i < x->soft.len; i++)
        sorted[start[x->soft.at[i].from]++] = x->soft.at[i];
    if (x->soft.len > 0)
        memcpy(x->soft.at, sorted, x->soft.len * sizeof(*sorted));
}

static void prepare(struct topo *x)
{
    const tuck_graph *g = x->g;
    uint32_t ids = g->node.len, last = 0;

    x->node = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->order = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->place = arena_array(&x->arena, uint32_t, ids);
    x->hard = arena_array(&x->arena, uint32_t, ids);
    x->held = arena_array(&x->arena, uint32_t, ids);
    x->out_yet = arena_array(&x->arena, bool, ids);
    x->ready.at = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->blocked.at = arena_array(&x->arena, uint32_t, g->n_nodes);
    memset(x->hard, 0, ids * sizeof(*x->hard));
    memset(x->held, 0, ids * sizeof(*x->held));
    memset(x->out_yet, 0, ids * sizeof(*x->out_yet));
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);

        x->place[n] = x->n;
        x->node[x->n++] = n;
        for (uint32_t i = 0; i < node->n_vals; i++)
            x->hard[n] += node->vals[i].kind == TUCK_V_NODE;
        if (node->kind == TUCK_PLACEHOLDER || node->kind == TUCK_OUTPUT ||
            node->kind == TUCK_RESULT || !node_has_effect(g, n))
            continue;
        if (last != 0)
            add_soft(x, last, n);
        last = n;
    }
    add_accesses(x);
    sort_soft(x);
}

/* The return comes last by itself, further names of an opaque statement right behind it. */
static bool goes_alone(const struct topo *x, uint32_t n)
{
    uint8_t kind = node_at(x->g, n)->kind;

    return kind != TUCK_OUTPUT && kind != TUCK_RESULT;
}

static void offer(struct topo *x, uint32_t n)
{
    if (x->hard[n] == 0 && goes_alone(x, n) && !x->out_yet[n])
        heap_push(x->held[n] ? &x->blocked : &x->ready, x->place[n]);
}

static void put_out(struct topo *x, uint32_t n)
{
    const tuck_graph *g = x->g;

    x->order[x->n_order++] = n;
    x->out_yet[n] = true;
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next)
        if (--x->hard[g->use.at[u].user] == 0)
            offer(x, g->use.at[u].user);
    for (uint32_t i = x->soft_start[n]; i < x->soft_start[n + 1]; i++) {
        uint32_t to = x->soft.at[i].to;
        if (x->held[to] > 0 && --x->held[to] == 0)
            offer(x, to); /* what blocked holds of it is stepped over later */
    }
    if (node_at(g, n)->kind == TUCK_OPAQUE)
        for (uint32_t k = node_at(g, n)->next; node_at(g, k)->kind == TUCK_RESULT;
             k = node_at(g, k)->next)
            put_out(x, k); /* one level: results are no statements */
}

static void do_sort(void *p)
{
    struct topo *x = p;

    prepare(x);
    for (uint32_t i = 0; i < x->n; i++)
        offer(x, x->node[i]);
    for (;;) {
        struct heap *h = x->ready.n > 0 ? &x->ready : &x->blocked;

        if (h->n == 0)
            break;
        uint32_t n = x->node[heap_pop(h)];
        if (!x->out_yet[n]) {
            x->held[n] = 0;
            put_out(x, n);
        }
    }
    x->cycle = x->n_order + (x->g->output != 0) < x->n;
}

/* Follow what is not out yet from use to use until a node comes again: that is a cycle. */
static void report_cycle(struct topo *x, tuck_diags *diags)
{
    const tuck_graph *g = x->g;
    uint32_t n = 0, at = 0, from;
    struct buf b;

    for (uint32_t i = 0; i < x->n && n == 0; i++)
        if (!x->out_yet[x->node[i]] && x->node[i] != g->output)
            n = x->node[i];
    memset(x->place, 0, g->node.len * sizeof(*x->place)); /* now: step at which it was met */
    while (x->place[n] == 0) {
        const struct fx_node *node = node_at(g, n);

        x->order[at++] = n;
        x->place[n] = at;
        for (uint32_t i = 0; i < node->n_vals; i++)
            if (node->vals[i].kind == TUCK_V_NODE && !x->out_yet[node->vals[i].a]) {
                n = node->vals[i].a;
                break;
            }
    }
    from = x->place[n] - 1;
    buf_init(&b, &x->mem);
    for (uint32_t i = from; i < at && i < from + 16; i++)
        buf_printf(&b, "'%s' uses ", graph_str(g, node_at(g, x->order[i])->name));
    if (at - from > 16)
        buf_printf(&b, "… uses ");
    buf_printf(&b, "'%s'", graph_str(g, node_at(g, n)->name));
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    diag_add(diags, TUCK_ERROR,
             (struct diag_pos){
                 .source = &src, .line = node_at(g, n)->line, .column = node_at(g, n)->column},
             "no order of the nodes can be right", "cycle: %s", buf_text(&b));
    buf_destroy(&b);
}

struct cycle_args {
    struct topo *x;
    tuck_diags *diags;
};

static void do_report(void *p)
{
    struct cycle_args *a = p;

    report_cycle(a->x, a->diags);
}

tuck_status tuck_graph_sort(tuck_graph *g, tuck_diags *diags)
{
    if (g == NULL)
        return TUCK_EINVAL;
    struct topo x = {.g = g};

    mem_init(&x.mem, &g->store->mem.alloc);
    arena_init(&x.arena, &x.mem);
    bool ok = graph_begin_edit(g) && mem_guard(&x.mem, do_sort, &x);
    if (ok && x.cycle) {
        struct cycle_args a = {&x, diags};
        ok = mem_guard(&x.mem, do_report, &a);
    } else if (ok) {
        bool moved = false;
        for (uint32_t i = 0; i < x.n_order; i++) {
            moved |= x.order[i] != x.node[i];
            graph_unlink(g, x.order[i]);
            graph_link_before(g, x.order[i], g->output);
        }
        if (moved)
            graph_edited(g, true);
    }
    vec_free(&x.mem, &x.soft);
    arena_destroy(&x.arena);
    return !ok ? TUCK_ENOMEM : x.cycle ? TUCK_ELINT : TUCK_OK;
}
