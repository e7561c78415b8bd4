#include "study/diff.h"

#include "op/ops.h"
#include "rewrite/comm_order.h"

enum { KINDS = TUCK_BROADCAST + 1, CLIMB = 16 };

/* ---- which nodes are the same ---- */

static void list_nodes(struct diff *d, struct diff_side *s)
{
    uint32_t n = s->g->node.len;

    s->node = arena_array(&d->arena, uint32_t, n);
    s->place = arena_array(&d->arena, uint32_t, n);
    s->match = arena_zeroed(&d->arena, n * sizeof(*s->match));
    s->became = arena_zeroed(&d->arena, n * sizeof(*s->became));
    memset(s->place, -1, n * sizeof(*s->place));
    for_each_node (s->g, k)
        if (node_at(s->g, k)->kind != TUCK_PLACEHOLDER && node_at(s->g, k)->kind != TUCK_OUTPUT) {
            s->place[k] = s->n;
            s->node[s->n++] = k;
        }
}

static const char *target(const tuck_graph *g, uint32_t n)
{
    return graph_str(g, node_at(g, n)->target);
}

static void pair(struct diff *d, uint32_t a, uint32_t b)
{
    d->a.match[a] = b;
    d->b.match[b] = a;
}

static void match_names(struct diff *d)
{
    for_each_node (d->a.g, k) {
        uint32_t other = tuck_graph_find(d->b.g, graph_str(d->a.g, node_at(d->a.g, k)->name)).id;
        if (other != 0 && node_at(d->a.g, k)->kind == node_at(d->b.g, other)->kind &&
            (node_at(d->a.g, k)->kind == TUCK_PLACEHOLDER ||
             strcmp(target(d->a.g, k), target(d->b.g, other)) == 0))
            pair(d, k, other);
    }
}

/* Describes what a node computes in terms of the second graph's nodes. False if it uses something
 * that only the first graph has. */
static bool meaning(const struct diff *d, const struct diff_side *s, uint32_t n, struct buf *out)
{
    const struct fx_node *x = node_at(s->g, n);

    out->len = 0;
    buf_printf(out, "%s %u", target(s->g, n), x->n_args);
    for (uint32_t i = 0; i < x->n_vals; i++) {
        const tuck_value *v = &x->vals[i];

        buf_printf(out, " %u:", v->kind);
        if (v->kind == TUCK_V_NODE) {
            uint32_t in_b = s == &d->a ? s->match[v->a] : v->a;
            if (in_b == 0)
                return false;
            buf_printf(out, "%u", in_b);
        } else if (v->kind == TUCK_V_BOOL || v->kind == TUCK_V_INT) {
            buf_printf(out, "%lld", (long long)v->u.i);
        } else if (value_is_container(v)) {
            buf_printf(out, "%u", v->a);
        } else if (v->kind != TUCK_V_NONE) {
            buf_str(out, graph_str(s->g, v->a));
        }
    }
    return true;
}

static void match_meanings(struct diff *d)
{
    VEC(uint32_t) first = {NULL, 0, 0}; /* by meaning: a node of the second graph */
    /* the next node with the same meaning */
    uint32_t *next = arena_zeroed(&d->arena, d->b.g->node.len * sizeof(*next));

    for (uint32_t i = d->b.n; i-- > 0;) {
        uint32_t k = d->b.node[i];
        if (d->b.match[k] != 0 || !meaning(d, &d->b, k, &d->text))
            continue;
        str_id id = str_intern(&d->words, d->text.at, d->text.len);
        while (first.len <= id)
            vec_push_in(&d->arena, &first, 0);
        next[k] = first.at[id];
        first.at[id] = k;
    }
    for (uint32_t i = 0; i < d->a.n; i++) {
        uint32_t k = d->a.node[i];
        if (d->a.match[k] != 0 || !meaning(d, &d->a, k, &d->text))
            continue;
        str_id id = str_find(&d->words, d->text.at, d->text.len);
        if (id == 0 || id >= first.len || first.at[id] == 0)
            continue;
        uint32_t other = first.at[id];
        first.at[id] = next[other];
        pair(d, k, other);
    }
}

/* ---- what was merged ---- */

/* The node that a view, or one result of several, belongs to. */
static uint32_t base_of(const tuck_graph *g, uint32_t n)
{
    for (int i = 0; i < CLIMB; i++) {
        enum op_class cls = op_at(node_op(g, n))->cls;
        uint32_t from = call_base(g, node_at(g, n));
        if ((cls != OP_VIEW && cls != OP_GETITEM) || from == 0)
            break;
        n = from;
    }
    return n;
}

/* For each new collective of the second graph, marks the nodes that reach it through other new
 * nodes. What is written into a buffer goes where the buffer goes. */
static void find_flows(struct diff *d, uint32_t (*into)[KINDS])
{
    const tuck_graph *g = d->b.g;

    for (uint32_t i = d->b.n; i-- > 0;) {
        uint32_t n = d->b.node[i], v[KINDS];
        const struct fx_node *x = node_at(g, n);

        if (d->b.match[n] != 0)
            continue;
        memcpy(v, into[n], sizeof(v));
        if (op_at(node_op(g, n))->flags & OP_F_MUTATES)
            for (uint32_t k = 0; k < x->n_vals; k++)
                for (uint32_t c = 0; x->vals[k].kind == TUCK_V_NODE && c < KINDS; c++) {
                    uint32_t to = into[base_of(g, x->vals[k].a)][c];
                    v[c] = v[c] ? v[c] : to;
                }
        if (comm_kind(g, n) != 0 && comm_communicates(g, n)) {
            memset(v, 0, sizeof(v));
            v[comm_kind(g, n)] = n;
        }
        for (uint32_t k = 0; k < x->n_vals; k++)
            for (uint32_t c = 0; x->vals[k].kind == TUCK_V_NODE && c < KINDS; c++)
                if (v[c] != 0)
                    into[x->vals[k].a][c] = v[c];
    }
}

static void find_merged(struct diff *d)
{
    uint32_t(*into)[KINDS] = arena_zeroed(&d->arena, d->b.g->node.len * sizeof(*into));

    find_flows(d, into);
    for (uint32_t i = 0; i < d->a.n; i++) {
        uint32_t n = d->a.node[i], from = call_base(d->a.g, node_at(d->a.g, n));

        if (d->a.match[n] != 0 || comm_kind(d->a.g, n) == 0 || !comm_communicates(d->a.g, n))
            continue;
        for (int k = 0; k < CLIMB && from != 0 && d->a.match[from] == 0; k++)
            from = call_base(d->a.g, node_at(d->a.g, from));
        if (from != 0 && d->a.match[from] != 0)
            d->a.became[n] = into[d->a.match[from]][comm_kind(d->a.g, n)];
    }
    d->first_part = arena_zeroed(&d->arena, d->b.g->node.len * sizeof(*d->first_part));
    d->next_part = arena_zeroed(&d->arena, d->a.g->node.len * sizeof(*d->next_part));
    for (uint32_t i = d->a.n; i-- > 0;) {
        uint32_t n = d->a.node[i], to = d->a.became[n];
        if (to != 0) {
            d->next_part[n] = d->first_part[to];
            d->first_part[to] = n;
        }
    }
}

/* ---- what moved ---- */

/* The longest sequence of nodes that has the same order in both graphs: all others moved. */
static void find_moves(struct diff *d)
{
    uint32_t n = 0, longest = 0;
    /* nodes of the second graph that both have */
    uint32_t *common = arena_array(&d->arena, uint32_t, d->b.n + 1);
    uint32_t *rank = arena_zeroed(&d->arena, d->a.g->node.len * sizeof(*rank));
    /* by length of a sequence: its last node */
    uint32_t *tail = arena_array(&d->arena, uint32_t, d->b.n + 1),
             *before = arena_array(&d->arena, uint32_t, d->b.n + 1);
    bool *stays = arena_zeroed(&d->arena, d->b.n + 1);

    for (uint32_t i = 0; i < d->a.n; i++)
        if (d->a.match[d->a.node[i]] != 0)
            rank[d->a.node[i]] = n++;
    n = 0;
    for (uint32_t i = 0; i < d->b.n; i++)
        if (d->b.match[d->b.node[i]] != 0)
            common[n++] = d->b.node[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t r = rank[d->b.match[common[i]]], low = 0, high = longest;
        while (low < high) {
            uint32_t mid = (low + high) / 2;
            if (rank[d->b.match[common[tail[mid]]]] < r)
                low = mid + 1;
            else
                high = mid;
        }
        before[i] = low > 0 ? tail[low - 1] : UINT32_MAX;
        tail[low] = i;
        longest = low + 1 > longest ? low + 1 : longest;
    }
    for (uint32_t i = longest ? tail[longest - 1] : UINT32_MAX; i != UINT32_MAX; i = before[i])
        stays[i] = true;
    /* Positions count only unmoved nodes. No longer sequence keeps its order, so each moved node
     * has passed at least one of them. */
    uint32_t *stay_before = arena_zeroed(&d->arena, ((size_t)n + 1) * sizeof(*stay_before)),
             passed = 0;
    for (uint32_t i = 0; i < n; i++)
        stay_before[rank[d->b.match[common[i]]] + 1] = stays[i];
    for (uint32_t i = 0; i < n; i++)
        stay_before[i + 1] += stay_before[i];
    d->move = arena_array(&d->arena, struct diff_move, n - longest + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = rank[d->b.match[common[i]]];
        passed += stays[i];
        if (!stays[i])
            d->move[d->n_move++] = (struct diff_move){common[i], from, i,
                                                      (int64_t)passed - (int64_t)stay_before[from]};
    }
}

/* ---- together ---- */

static void do_diff(void *arg)
{
    struct diff *d = arg;

    list_nodes(d, &d->a);
    list_nodes(d, &d->b);
    match_names(d);
    match_meanings(d);
    find_merged(d);
    find_moves(d);
}

tuck_status diff_graphs(tuck_graph *a, struct evaluation *ea, tuck_graph *b, struct evaluation *eb,
                        struct diff *d)
{
    *d = (struct diff){.a = {.g = a, .e = ea}, .b = {.g = b, .e = eb}};
    mem_init(&d->mem, &a->store->mem.alloc);
    arena_init(&d->arena, &d->mem);
    strtab_init(&d->words, &d->mem);
    buf_init(&d->text, &d->mem);
    return mem_guard(&d->mem, do_diff, d) ? TUCK_OK : TUCK_ENOMEM;
}

void diff_end(struct diff *d)
{
    buf_destroy(&d->text);
    strtab_destroy(&d->words);
    arena_destroy(&d->arena);
    *d = (struct diff){.n_move = 0};
}
