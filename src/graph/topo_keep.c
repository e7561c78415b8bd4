/* The order that a sort must keep: see topo.h. */
#include "graph/topo.h"

#include "graph/effect.h"
#include "graph/nested.h"
#include "graph/storage.h"

struct reading {
    uint32_t node, next;
};

enum { FLIES = 1, FLIES_ON }; /* until the next wait, or beyond */

struct keep {
    const tuck_graph *g;
    struct arena *a;
    struct topo_edges *e;
    uint32_t *writer;          /* by storage: the node that wrote it last */
    uint32_t *reader;          /* by storage: the newest entry of `reads` since then */
    const bool *written;       /* by storage: it is written by some node */
    uint8_t *in_flight;        /* by storage: a transfer writes it until a wait */
    bool several;              /* the starting transfer writes several storages */
    VEC(struct reading) reads; /* [0] unused: 0 ends a list */
    uint32_t node;
};

static void meet_access(void *ctx, uint32_t storage, enum access how)
{
    struct keep *k = ctx;

    if (!k->written[storage])
        return;
    if (k->writer[storage] != 0)
        topo_edge_add(k->a, k->e, k->writer[storage], k->node);
    if (how == ACCESS_READ) {
        vec_push_in(k->a, &k->reads, ((struct reading){k->node, k->reader[storage]}));
        k->reader[storage] = k->reads.len - 1;
    } else {
        for (uint32_t r = k->reader[storage]; r != 0; r = k->reads.at[r].next)
            topo_edge_add(k->a, k->e, k->reads.at[r].node, k->node);
        k->reader[storage] = 0;
        k->writer[storage] = k->node;
    }
}

static void take_off(void *ctx, uint32_t storage, enum access how)
{
    struct keep *k = ctx;

    if (how == ACCESS_WRITE)
        k->in_flight[storage] = k->several ? FLIES_ON : FLIES;
}

/* A wait for the result or for the buffer itself ends the transfer's write. A list of results has
 * several waits; it is not known which of them ends what, so each may be the one. */
static void land(void *ctx, uint32_t storage, enum access how)
{
    struct keep *k = ctx;

    (void)how;
    meet_access(ctx, storage, k->in_flight[storage] ? ACCESS_WRITE : ACCESS_READ);
    if (k->in_flight[storage] == FLIES)
        k->in_flight[storage] = 0;
}

/* What a wait waits for, looking through items of lists; 0 if not a collective of this graph. */
static uint32_t started(const tuck_graph *g, uint32_t wait, struct arena *a)
{
    const struct fx_node *x = acting_call(g, wait, a);
    uint32_t n = op_at(x->op)->cls == OP_WAIT ? call_node(g, x, 0) : 0;
    if (n == 0)
        return 0;
    x = node_at(g, n);
    if (op_at(x->op)->cls == OP_GETITEM && call_node(g, x, 0) != 0)
        n = call_node(g, x, 0);
    uint8_t cls = op_at(acting_op(g, n))->cls;
    return cls == OP_COLLECTIVE || cls == OP_P2P ? n : 0;
}

/* A quick check for most nodes: they only return a result. */
static bool is_plain(const struct fx_node *x)
{
    const struct op_row *row = op_at(x->op);

    return x->kind == TUCK_CALL_FUNCTION && x->op != 0 && row->cls != OP_HOP &&
           !(row->flags & (OP_F_EFFECT | OP_F_MUTATES | OP_F_RANDOM));
}

static void do_storages(struct keep *k)
{
    const tuck_graph *g = k->g;
    struct storages s;
    /* A list of n results has n waits; if each read all n operands, that would be n * n. The first
     * ends the transfer of all. */
    bool *ended = arena_zeroed(k->a, g->node.len * sizeof(*ended));

    storages_build(g, k->a, &s);
    size_t n = (size_t)s.n + 1;
    k->writer = arena_zeroed(k->a, n * sizeof(*k->writer));
    k->reader = arena_zeroed(k->a, n * sizeof(*k->reader));
    k->written = storages_written(&s, k->a);
    const bool *touched = storages_touched(&s, k->written, k->a);
    k->in_flight = arena_zeroed(k->a, n * sizeof(*k->in_flight));
    vec_push_in(k->a, &k->reads, ((struct reading){0, 0}));
    for_each_node (g, x) {
        if (is_plain(node_at(g, x)) && !node_mentions(g, x, touched))
            continue;
        uint32_t start = started(g, x, k->a);
        uint8_t cls = op_at(acting_op(g, x))->cls;

        k->node = x;
        if (start != 0 && !ended[start])
            storage_accesses(&s, start, land, k);
        ended[start] = true;
        storage_accesses(&s, x, cls == OP_WAIT ? land : meet_access, k);
        if (cls == OP_COLLECTIVE || cls == OP_P2P) {
            k->several = s.count[x] > 1;
            storage_accesses(&s, x, take_off, k);
        }
    }
}

void topo_keep_storages(const tuck_graph *g, struct arena *a, struct topo_edges *e)
{
    struct keep k = {.g = g, .a = a, .e = e};

    for_each_node (g, n)
        if (node_may_write(g, n)) { /* otherwise there is nothing to keep */
            do_storages(&k);
            break;
        }
}

/* Random numbers, tokens, graphs with effects: effects other than writes to a storage,
 * communication and checks. */
static bool is_kept_in_line(const tuck_graph *g, uint32_t n)
{
    /* A wrapper of one call does what that does, and says itself what it must follow. */
    uint32_t acting = acting_op(g, n);
    const struct op_row *row = op_at(acting);
    bool wraps = acting != node_op(g, n);

    if (row->flags & OP_F_RANDOM)
        return true;
    switch (row->cls) {
    case OP_COLLECTIVE:
    case OP_SYNC_COLLECTIVE:
    case OP_P2P:
    case OP_WAIT:
    case OP_ASSERT: return false;
    default:
        if (row->flags & OP_F_MUTATES)
            return false;
        return wraps ? (row->flags & OP_F_EFFECT) != 0
                     : node_has_effect(g, n) || node_nests_order(g, n);
    }
}

/* Does it communicate? What is not known may do so, too. */
static bool starts(const tuck_graph *g, uint32_t n)
{
    uint8_t cls = op_at(acting_op(g, n))->cls;

    return cls == OP_COLLECTIVE || cls == OP_SYNC_COLLECTIVE || cls == OP_P2P ||
           node_nests_comm(g, n, 0);
}

static void keep_effects(const tuck_graph *g, struct arena *a, struct topo_edges *e)
{
    VEC(uint32_t) loose = {0}; /* since the barrier */
    uint32_t barrier = 0, line = 0;

    for_each_node (g, n) {
        uint8_t kind = node_at(g, n)->kind;
        bool in_line;

        if (kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT || kind == TUCK_RESULT ||
            is_plain(node_at(g, n)))
            continue;
        if (node_is_barrier(g, n)) {
            if (barrier != 0)
                topo_edge_add(a, e, barrier, n);
            for (uint32_t i = 0; i < loose.len; i++)
                topo_edge_add(a, e, loose.at[i], n);
            loose.len = 0;
            barrier = n;
            line = 0;
        } else if ((in_line = is_kept_in_line(g, n)) || node_may_write(g, n) || starts(g, n)) {
            if (barrier != 0)
                topo_edge_add(a, e, barrier, n);
            if (in_line && line != 0)
                topo_edge_add(a, e, line, n);
            if (in_line)
                line = n;
            vec_push_in(a, &loose, n);
        }
    }
}

/* Every node stays on its side of a wall. */
static void keep_walls(const tuck_graph *g, struct arena *a, struct topo_edges *e)
{
    uint32_t first = g->node.at[0].next, wall = 0;

    for_each_node (g, n) {
        uint8_t kind = node_at(g, n)->kind;

        if (kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT || kind == TUCK_RESULT)
            continue;
        if (wall != 0)
            topo_edge_add(a, e, wall, n);
        if (!(op_at(node_at(g, n)->op)->flags & OP_F_WALL))
            continue;
        for (uint32_t i = first; i != n; i = node_at(g, i)->next)
            if (node_at(g, i)->kind != TUCK_PLACEHOLDER && i != wall)
                topo_edge_add(a, e, i, n);
        first = wall = n;
    }
}

void topo_keep(const tuck_graph *g, struct arena *a, struct topo_edges *e)
{
    topo_keep_storages(g, a, e);
    keep_effects(g, a, e);
    keep_walls(g, a, e);
}

void topo_map(struct topo_edges *e, uint32_t first, const uint32_t *begin, const uint32_t *end,
              uint32_t n)
{
    for (uint32_t i = first; i < e->edge.len; i++) {
        struct topo_edge *x = &e->edge.at[i];

        if (x->from < n && end[x->from] != 0)
            x->from = end[x->from];
        if (x->to < n && begin[x->to] != 0)
            x->to = begin[x->to];
    }
}
