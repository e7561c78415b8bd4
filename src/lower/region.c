/* What becomes of each node, and which of them become one loop.
 *
 * A run is a stretch of the graph without anything but loops, views and numbers. Inside a run, loops that hand
 * values to each other are one region, of at most REGION_MAX nodes. A value that a collective or a mutation reads
 * ends the run, so that communication does not wait for the rest of a loop. No edge leads from one region of a run
 * to another, so a region may be emitted as a whole where its first node stands.
 */
#include "lower/lower.h"

enum { REGION_MAX = 64, CAT_MAX = 8 };

static uint32_t list_len(const struct fx_node *x)
{
    return x->n_args > 0 && value_is_container(x->vals) ? x->vals->a : 0;
}

/* Would Inductor make a loop of it? As torch's own estimate has it. */
static bool is_fusible(const struct fx_node *x, const struct op_row *row)
{
    const uint32_t never = OP_F_MUTATES | OP_F_EFFECT | OP_F_RANDOM | OP_F_HOST | OP_F_RESTRIDES;

    return (row->flags & OP_F_LOWERED) && !(row->flags & never) && row->cls != OP_HOP &&
           row->cls != OP_FACTORY && (row->cls != OP_COPY || list_len(x) <= CAT_MAX);
}

/* Of what a control_deps calls: never part of a loop, and no view, because others are held behind it. */
static enum lower_role inner_role(const struct fx_node *x)
{
    switch ((enum op_class)op_at(x->op)->cls) {
    case OP_WAIT: return ROLE_WAIT;
    case OP_COLLECTIVE:
    case OP_P2P:
    case OP_SYNC_COLLECTIVE: return ROLE_COLLECTIVE;
    default: return ROLE_OP;
    }
}

static enum lower_role role_of(const struct lower *l, uint32_t n)
{
    const tuck_graph *g = l->g;
    const struct fx_node *x = node_at(g, n);

    if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT || x->kind == TUCK_GET_ATTR ||
        x->kind == TUCK_RESULT)
        return ROLE_NOTHING;
    if (lower_call(l, n) != x)
        return inner_role(lower_call(l, n));
    const struct op_row *row = op_at(node_op(g, n));
    if (l->copies.copies[n])
        return ROLE_FUSIBLE; /* a loop that copies */
    if (node_is_barrier(g, n))
        return ROLE_OP;
    switch ((enum op_class)row->cls) {
    case OP_WAIT: return ROLE_WAIT;
    case OP_COLLECTIVE:
    case OP_P2P:
    case OP_SYNC_COLLECTIVE: return ROLE_COLLECTIVE;
    case OP_GETITEM: return ROLE_VIEW;
    case OP_VIEW: return row->flags & OP_F_MUTATES ? ROLE_OP : ROLE_VIEW;
    case OP_GROUP: return ROLE_NOTHING;
    case OP_SCALAR: return row->flags & OP_F_HOST ? ROLE_OP : ROLE_NOTHING;
    case OP_COPY:
        if (l->copies.kind[n] == COPIES_NOT)
            return ROLE_VIEW;
        return is_fusible(x, row) ? ROLE_FUSIBLE : ROLE_OP;
    default: return is_fusible(x, row) ? ROLE_FUSIBLE : ROLE_OP;
    }
}

void lower_roles(struct lower *l)
{
    const tuck_graph *g = l->g;
    uint32_t place = 0;

    l->role = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->role));
    l->place = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->place));
    for_each_node (g, n) {
        l->role[n] = (uint8_t)role_of(l, n);
        l->place[n] = ++place;
    }
}

/* ---- regions ---- */

struct runs {
    struct lower *l;
    uint32_t *shows;      /* by node: of a view, the node whose result it shows; else itself */
    bool *ends;           /* by node: the run ends behind it */
    uint32_t *run;        /* by node: the run it is in */
    uint32_t *parent;     /* by node: union-find over the loops of a run */
    uint32_t *size, *met; /* met: by loop, the last node that asked for it */
    uint32_t now;         /* the run being filled */
};

static uint32_t find(struct runs *r, uint32_t n)
{
    while (r->parent[n] != n) {
        r->parent[n] = r->parent[r->parent[n]];
        n = r->parent[n];
    }
    return n;
}

static bool ends_runs(const struct lower *l, uint32_t n)
{
    return l->role[n] == ROLE_COLLECTIVE || lower_may_write(l, n);
}

static void find_ends(struct runs *r)
{
    const struct lower *l = r->l;
    const tuck_graph *g = l->g;

    for_each_node (g, n) {
        const struct fx_node *x = lower_call(l, n);
        bool first = true;

        r->shows[n] = n;
        for (uint32_t i = 0; i < x->n_vals; i++) {
            if (x->vals[i].kind != TUCK_V_NODE)
                continue;
            uint32_t a = r->shows[x->vals[i].a];
            if (first && l->role[n] == ROLE_VIEW)
                r->shows[n] = a;
            first = false;
            if (ends_runs(l, n))
                r->ends[a] = true;
        }
    }
}

/* The loop of this run that an operand of n comes from, 0: none. */
static uint32_t loop_of(struct runs *r, const struct fx_node *x, uint32_t i)
{
    uint32_t a = x->vals[i].kind == TUCK_V_NODE ? r->shows[x->vals[i].a] : 0;

    return a != 0 && r->l->role[a] == ROLE_FUSIBLE && r->run[a] == r->now ? find(r, a) : 0;
}

/* Node n joins the loops it reads from; where that would become too long, it begins the next run. */
static void add(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->l->g, n);
    uint32_t total = 1;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t u = loop_of(r, x, i);
        if (u != 0 && r->met[u] != n) {
            r->met[u] = n;
            total += r->size[u];
        }
    }
    r->parent[n] = n;
    r->size[n] = 1;
    if (total > REGION_MAX)
        r->now++; /* nothing it reads is in this run any more */
    r->run[n] = r->now;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t u = loop_of(r, x, i), v = find(r, n);
        if (u == 0 || u == v)
            continue;
        r->parent[v] = u;
        r->size[u] += r->size[v];
    }
    if (r->ends[n])
        r->now++;
}

/* A number that comes from a loop of this run, or a view that takes sizes from one: what uses it depends on that loop
 * without reading it, so it must not be part of another loop of the run. */
static bool joins_loops(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->l->g, n);
    bool view = r->l->role[n] == ROLE_VIEW, first = true;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        if (!(view && first) && loop_of(r, x, i) != 0)
            return true;
        first = false;
    }
    return false;
}

void lower_regions(struct lower *l)
{
    const tuck_graph *g = l->g;
    uint32_t n_id = g->node.len;
    struct runs r = {.l = l, .now = 1};

    l->region = arena_zeroed(&l->scratch, n_id * sizeof(*l->region));
    if (l->o->no_fuse)
        return;
    r.shows = arena_zeroed(&l->scratch, n_id * sizeof(*r.shows));
    r.ends = arena_zeroed(&l->scratch, n_id * sizeof(*r.ends));
    r.run = arena_zeroed(&l->scratch, n_id * sizeof(*r.run));
    r.parent = arena_zeroed(&l->scratch, n_id * sizeof(*r.parent));
    r.size = arena_zeroed(&l->scratch, n_id * sizeof(*r.size));
    r.met = arena_zeroed(&l->scratch, n_id * sizeof(*r.met));
    find_ends(&r);
    for_each_node (g, n) {
        if (l->role[n] == ROLE_FUSIBLE)
            add(&r, n);
        else if ((l->role[n] != ROLE_VIEW && l->role[n] != ROLE_NOTHING) || joins_loops(&r, n))
            r.now++;
    }
    uint32_t *number = arena_zeroed(&l->scratch, n_id * sizeof(*number)); /* by root */
    for_each_node (g, n) {
        if (l->role[n] != ROLE_FUSIBLE)
            continue;
        uint32_t top = find(&r, n);
        if (r.size[top] < 2)
            continue;
        if (number[top] == 0)
            number[top] = ++l->n_region;
        l->region[n] = number[top];
    }
}
