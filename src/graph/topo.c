/* Stable topological sort: of the nodes that could come next, takes the one that was first.
 *
 * Uses are hard constraints: a node comes after what it uses; so are the edges that a pass adds.
 * tuck_graph_sort() adds soft ones: nodes with effects keep their order among each other, and so do
 * reads and writes of one storage, as long as no use contradicts it. Kahn's algorithm runs over
 * both; only if soft edges block everything, the first node that only they block is released. A set
 * of old positions gives the next node: O((n + e) log n).
 */
#include "base/csr.h"
#include "graph/topo.h"

#include "graph/effect.h"
#include "graph/nested.h"
#include "graph/storage.h"

/* A set of positions that gives the smallest: one bit each, and for every 64 bits of a level one
 * bit above that says whether any is set. */
struct place_set {
    uint64_t *level[6]; /* 64 ** 6 exceeds any number of nodes */
    int n_level;
    uint32_t n;
};

struct topo {
    tuck_graph *g;
    struct arena *a;
    const struct topo_edges *edges; /* the caller's hard edges, or NULL */
    bool effects;                   /* use soft edges */
    uint32_t *node;                 /* by position: the node that was there */
    uint32_t *place;                /* by node */
    /* by node: uses and hard edges from nodes that are not out yet */
    uint32_t *hard;
    uint32_t *held; /* by node: soft edges from nodes that are not out yet */
    struct topo_fan extra, soft;
    bool *out_yet;                   /* by node */
    struct place_set ready, blocked; /* blocked: by soft edges alone */
    VEC(uint32_t) points;            /* erased nodes with nothing left before them */
    uint32_t *order;                 /* the result, without return */
    uint32_t n_order, n;
    bool cycle;
};

static void set_init(struct place_set *s, struct arena *a, uint32_t places)
{
    size_t words = places;

    do {
        words = (words + 63) / 64;
        s->level[s->n_level++] = arena_zeroed(a, (words + 1) * sizeof(uint64_t));
    } while (words > 1);
}

static void set_add(struct place_set *s, uint32_t v)
{
    assert_hot((s->level[0][v / 64] >> v % 64 & 1) == 0);
    s->n++;
    for (int l = 0; l < s->n_level; l++, v /= 64) {
        uint64_t *w = &s->level[l][v / 64], was = *w;
        *w |= (uint64_t)1 << v % 64;
        if (was != 0)
            break;
    }
}

static uint32_t set_take(struct place_set *s)
{
    uint32_t v = 0;

    s->n--;
    for (int l = s->n_level; l-- > 0;)
        v = v * 64 + (uint32_t)__builtin_ctzll(s->level[l][v]);
    for (uint32_t l = 0, k = v; l < (uint32_t)s->n_level; l++, k /= 64)
        if ((s->level[l][k / 64] &= ~((uint64_t)1 << k % 64)) != 0)
            break;
    return v;
}

struct topo_fan topo_fan_out(const tuck_graph *g, struct arena *a, const struct topo_edges *e)
{
    size_t ids = g->node.len;
    struct topo_fan f = {.start = csr_begin(a, ids), .to = arena_array(a, uint32_t, e->edge.len)};

    for (uint32_t i = 0; i < e->edge.len; i++)
        csr_count(f.start, e->edge.at[i].from);
    csr_sum(f.start, ids);
    for (uint32_t i = 0; i < e->edge.len; i++)
        f.to[csr_place(f.start, e->edge.at[i].from)] = e->edge.at[i].to;
    return f;
}

static void count_ends(const struct topo_edges *e, uint32_t *count)
{
    for (uint32_t i = 0; i < e->edge.len; i++)
        count[e->edge.at[i].to]++;
}

/* Nodes with effects, in their current order. */
static void line_up_effects(struct topo *x, struct topo_edges *soft)
{
    const tuck_graph *g = x->g;
    uint32_t last = 0;

    for_each_node (g, n) {
        uint8_t kind = node_at(g, n)->kind;

        if (kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT || kind == TUCK_RESULT ||
            !(node_has_effect(g, n) || node_nests_effect(g, n)))
            continue;
        if (last != 0)
            topo_edge_add(x->a, soft, last, n);
        last = n;
    }
}

/* Erased nodes that edges name; those that follow nothing are released at once. */
static void find_points(struct topo *x)
{
    const struct topo_edges *e = x->edges;

    for (uint32_t i = 0; i < e->edge.len; i++) {
        uint32_t n = e->edge.at[i].from;
        if (!node_alive(x->g, n) && x->hard[n] == 0 && !x->out_yet[n]) {
            x->out_yet[n] = true;
            vec_push_in(x->a, &x->points, n);
        }
    }
}

static void prepare(struct topo *x)
{
    const tuck_graph *g = x->g;
    uint32_t ids = g->node.len;
    struct topo_edges soft = {0};

    x->node = arena_array(x->a, uint32_t, g->n_nodes);
    x->order = arena_array(x->a, uint32_t, g->n_nodes);
    x->place = arena_zeroed(x->a, ids * sizeof(*x->place));
    x->hard = arena_zeroed(x->a, ids * sizeof(*x->hard));
    x->out_yet = arena_zeroed(x->a, ids * sizeof(*x->out_yet));
    set_init(&x->ready, x->a, g->n_nodes);
    if (x->effects) {
        set_init(&x->blocked, x->a, g->n_nodes);
        x->held = arena_zeroed(x->a, ids * sizeof(*x->held));
    }
    for_each_node (g, n) {
        const struct fx_node *node = node_at(g, n);

        x->place[n] = x->n;
        x->node[x->n++] = n;
        for (uint32_t i = 0; i < node->n_vals; i++)
            x->hard[n] += node->vals[i].kind == TUCK_V_NODE;
    }
    if (x->effects) {
        line_up_effects(x, &soft);
        topo_keep_storages(g, x->a, &soft);
        x->soft = topo_fan_out(g, x->a, &soft);
        count_ends(&soft, x->held);
    }
    if (x->edges != NULL) {
        x->extra = topo_fan_out(g, x->a, x->edges);
        count_ends(x->edges, x->hard);
        find_points(x);
    }
}

/* The return comes last; further names of an opaque statement come right after it. */
static bool goes_alone(const struct topo *x, uint32_t n)
{
    uint8_t kind = node_at(x->g, n)->kind;

    return kind != TUCK_OUTPUT && kind != TUCK_RESULT;
}

static void offer(struct topo *x, uint32_t n)
{
    if (x->hard[n] == 0 && goes_alone(x, n) && !x->out_yet[n])
        set_add(x->effects && x->held[n] ? &x->blocked : &x->ready, x->place[n]);
}

/* Releases the caller's edges that begin at n. */
static void let_go(struct topo *x, uint32_t n)
{
    if (x->edges == NULL)
        return;
    for (uint32_t i = x->extra.start[n]; i < x->extra.start[n + 1]; i++) {
        uint32_t to = x->extra.to[i];
        if (--x->hard[to] > 0)
            continue;
        if (node_alive(x->g, to)) {
            offer(x, to);
        } else {
            x->out_yet[to] = true;
            vec_push_in(x->a, &x->points, to);
        }
    }
}

static void put_out(struct topo *x, uint32_t n)
{
    const tuck_graph *g = x->g;
    uint32_t soft_end = x->effects ? x->soft.start[n + 1] : 0;

    x->order[x->n_order++] = n;
    x->out_yet[n] = true;
    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next)
        if (--x->hard[g->use.at[u].user] == 0)
            offer(x, g->use.at[u].user);
    let_go(x, n);
    for (uint32_t i = x->effects ? x->soft.start[n] : 0; i < soft_end; i++) {
        uint32_t to = x->soft.to[i];
        if (x->held[to] > 0 && --x->held[to] == 0)
            offer(x, to); /* its entry in blocked is skipped later */
    }
    if (node_at(g, n)->kind == TUCK_OPAQUE)
        for (uint32_t k = node_at(g, n)->next; node_at(g, k)->kind == TUCK_RESULT;
             k = node_at(g, k)->next)
            put_out(x, k); /* one level only: results are not statements */
}

static void do_sort(void *p)
{
    struct topo *x = p;

    prepare(x);
    for (uint32_t i = 0; i < x->n; i++)
        offer(x, x->node[i]);
    for (;;) {
        while (x->points.len > 0)
            let_go(x, x->points.at[--x->points.len]);
        struct place_set *h = x->ready.n > 0 ? &x->ready : &x->blocked;

        if (h->n == 0)
            break;
        uint32_t n = x->node[set_take(h)];
        if (!x->out_yet[n]) {
            if (x->effects)
                x->held[n] = 0;
            put_out(x, n);
        }
    }
    x->cycle = x->n_order + (x->g->output != 0) < x->n;
}

/* Follows nodes that are not out yet from use to use until one repeats: that is a cycle. */
static void report_cycle(struct topo *x, tuck_diags *diags)
{
    const tuck_graph *g = x->g;
    uint32_t n = 0, at = 0, from;
    struct buf b;

    for (uint32_t i = 0; i < x->n && n == 0; i++)
        if (!x->out_yet[x->node[i]] && x->node[i] != g->output)
            n = x->node[i];
    /* now: the step at which it was visited */
    memset(x->place, 0, g->node.len * sizeof(*x->place));
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
    buf_init(&b, x->a->mem);
    for (uint32_t i = from; i < at && i < from + 16; i++)
        buf_printf(&b, "'%s' uses ", graph_str(g, node_at(g, x->order[i])->name));
    if (at - from > 16)
        buf_printf(&b, "… uses ");
    buf_printf(&b, "'%s'", graph_str(g, node_at(g, n)->name));
    struct diag_source src = {.file = graph_str(g, g->source_name)};
    diag_add(diags, TUCK_ERROR,
             (struct diag_pos){
                 .source = &src, .line = node_at(g, n)->line, .column = node_at(g, n)->column},
             "no order of the nodes is valid", "cycle: %s", buf_text(&b));
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

/* Links the nodes in the sorted order. */
static void take_order(struct topo *x)
{
    tuck_graph *g = x->g;
    bool moved = false;

    for (uint32_t i = 0; i < x->n_order && !moved; i++)
        moved = x->order[i] != x->node[i];
    if (!moved)
        return;
    uint32_t prev = 0;
    for (uint32_t i = 0; i < x->n_order; i++) {
        g->node.at[prev].next = x->order[i];
        g->node.at[x->order[i]].prev = prev;
        prev = x->order[i];
    }
    g->node.at[prev].next = g->output; /* 0, the head, if there is none */
    g->node.at[g->output].prev = prev;
    if (g->output != 0) {
        g->node.at[g->output].next = 0;
        g->node.at[0].prev = g->output;
    }
    graph_reordered(g);
}

tuck_status tuck_graph_sort(tuck_graph *g, tuck_diags *diags)
{
    if (g == NULL)
        return TUCK_EINVAL;
    struct mem mem; /* of its own: the graph changes only when everything is known */
    struct arena arena;
    struct topo x = {.g = g, .a = &arena, .effects = true};

    mem_init(&mem, &g->store->mem.alloc);
    arena_init(&arena, &mem);
    bool ok = graph_begin_edit(g) && mem_guard(&mem, do_sort, &x);
    if (ok && x.cycle) {
        struct cycle_args a = {&x, diags};
        ok = mem_guard(&mem, do_report, &a);
    } else if (ok) {
        take_order(&x);
    }
    arena_destroy(&arena);
    return !ok ? TUCK_ENOMEM : x.cycle ? TUCK_ELINT : TUCK_OK;
}

/* Do the edges hold in the current order? An erased node has no position: it counts as right after
 * the last node it follows, found by iterating over the edges until nothing changes, or until it
 * gives up. */
static bool edges_hold(const tuck_graph *g, const struct topo_edges *e, uint32_t *place)
{
    enum { ROUNDS = 4 };

    for (int round = 0; round < ROUNDS; round++) {
        bool changed = false;
        for (uint32_t i = 0; i < e->edge.len; i++) {
            uint32_t from = place[e->edge.at[i].from], *to = &place[e->edge.at[i].to];
            if (from < *to)
                continue;
            if (node_alive(g, e->edge.at[i].to))
                return false;
            changed |= from > *to;
            *to = from;
        }
        if (!changed)
            return true;
    }
    return false;
}

/* Is there nothing to sort? A sorted graph stays as it is. False: perhaps there is. */
static bool is_in_order(const tuck_graph *g, struct arena *a, const struct topo_edges *e)
{
    uint32_t *place = arena_zeroed(a, g->node.len * sizeof(*place)), n_place = 0, last = 0;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        uint8_t before = g->node.at[x->prev].kind;

        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE && place[x->vals[i].a] == 0)
                return false;
        if (x->kind == TUCK_RESULT && before != TUCK_OPAQUE && before != TUCK_RESULT)
            return false;
        place[n] = ++n_place;
        last = n;
    }
    return (g->output == 0 || last == g->output) && edges_hold(g, e, place);
}

bool topo_sort_with(tuck_graph *g, struct arena *a, const struct topo_edges *e)
{
    struct topo x = {.g = g, .a = a, .edges = e};
    struct arena_mark mark = arena_mark(a);

    if (!is_in_order(g, a, e)) {
        arena_release(a, mark);
        do_sort(&x);
        if (!x.cycle)
            take_order(&x);
        assert_hot(x.cycle || is_in_order(g, a, e));
    }
    arena_release(a, mark);
    return !x.cycle;
}
