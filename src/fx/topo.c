/* Stable topological sort: of the nodes that could come next, the one that stood first.
 *
 * Uses are hard: a node stands behind what it uses. On top of them nodes with effects keep the order they
 * have among each other, as long as no use says otherwise: that order is soft. Kahn's algorithm runs over
 * both; only where the soft edges hold up everything, the first node that they alone hold up is let go.
 * A heap of old places gives the next node: O((n + e) log n).
 */
#include "fx/effect.h"

struct heap {
    uint32_t *at; /* places; the smallest is at[0] */
    uint32_t n;
};

struct topo {
    struct mem mem; /* of its own: the graph is touched when everything is known */
    tuck_graph *g;
    struct arena arena;
    uint32_t *node;             /* by place: what stood there */
    uint32_t *place;            /* by node */
    uint32_t *hard;             /* by node: uses of nodes that are not out yet */
    uint8_t *held;              /* by node: the one with effects before it is not out yet */
    uint32_t *next_effect;      /* by node: the next one with effects */
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

static void prepare(struct topo *x)
{
    const tuck_graph *g = x->g;
    uint32_t ids = g->node.len, last = 0;

    x->node = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->order = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->place = arena_array(&x->arena, uint32_t, ids);
    x->hard = arena_array(&x->arena, uint32_t, ids);
    x->held = arena_array(&x->arena, uint8_t, ids);
    x->next_effect = arena_array(&x->arena, uint32_t, ids);
    x->out_yet = arena_array(&x->arena, bool, ids);
    x->ready.at = arena_array(&x->arena, uint32_t, g->n_nodes);
    x->blocked.at = arena_array(&x->arena, uint32_t, g->n_nodes);
    memset(x->hard, 0, ids * sizeof(*x->hard));
    memset(x->held, 0, ids * sizeof(*x->held));
    memset(x->next_effect, 0, ids * sizeof(*x->next_effect));
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
        x->held[n] = last != 0;
        if (last != 0)
            x->next_effect[last] = n;
        last = n;
    }
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
    uint32_t next = x->next_effect[n];
    if (next != 0 && x->held[next]) {
        x->held[next] = 0;
        offer(x, next); /* what blocked holds of it is stepped over later */
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
    bool ok = mem_guard(&x.mem, do_sort, &x);
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
    arena_destroy(&x.arena);
    return !ok ? TUCK_ENOMEM : x.cycle ? TUCK_ELINT : TUCK_OK;
}
