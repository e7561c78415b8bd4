/* Decides how each node is lowered, and which nodes are fused into one loop.
 *
 * A run is a stretch of the graph with only loops, views, numbers and empty tensors. Within a run,
 * loops that pass values to each other form one region, of at most REGION_MAX nodes. The last value
 * that a collective reads ends the run, so that communication does not wait for the rest of a loop,
 * and so does what a mutation reads. No edge leads from one region of a run to another, and no
 * region reads an empty tensor that comes after its first node, so a region may be emitted as a
 * whole at that node.
 *
 * The same walk finds loops that became adjacent in an order of ops but must not be fused.
 */
#include "lower/region.h"

#include "lower/lower.h"

enum { REGION_MAX = 64, CAT_MAX = 8 };

static uint32_t list_len(const tuck_graph *g, const struct fx_node *x)
{
    const tuck_value *v = call_operand(g, x, 0);

    return v != NULL && value_is_container(v) ? v->a : 0;
}

/* Would Inductor make a loop of it? Follows torch's own estimate. */
static bool is_fusible(const tuck_graph *g, const struct fx_node *x, const struct op_row *row)
{
    const uint32_t never = OP_F_MUTATES | OP_F_EFFECT | OP_F_RANDOM | OP_F_HOST | OP_F_RESTRIDES;

    return (row->flags & OP_F_LOWERED) && !(row->flags & never) && row->cls != OP_HOP &&
           (row->cls != OP_FACTORY || (row->flags & OP_F_FUSIBLE)) &&
           (row->cls != OP_COPY || list_len(g, x) <= CAT_MAX);
}

/* Allocates memory, but launches no kernel. */
static bool is_empty(const tuck_graph *g, uint32_t n)
{
    const struct op_row *row = op_at(node_op(g, n));

    return row->cls == OP_FACTORY && row->moves == OP_MOVES_none;
}

/* The role of a call inside a wrapper: never part of a loop, and not a view, because others must
 * come after it. */
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
        return is_fusible(g, x, row) ? ROLE_FUSIBLE : ROLE_OP;
    default: return is_fusible(g, x, row) ? ROLE_FUSIBLE : ROLE_OP;
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
    const tuck_graph *g;
    const uint8_t *role;  /* by node: enum lower_role, with ROLE_ENDS if the run ends after it */
    uint32_t *shows;      /* by node: for a view, the node whose result it shows; else itself */
    uint32_t *run;        /* by node: the run it is in */
    uint32_t *parent;     /* by node: union-find over the loops of a run */
    uint32_t *size, *met; /* met: by loop, the last query that visited it */
    uint32_t *first;      /* by loop: the place of its first node */
    uint32_t *needs;      /* by loop: that of the last empty tensor of this run that it reads */
    uint32_t *place;      /* by node: of those that were met */
    uint32_t now, asked;  /* the current run; number of queries so far */
    uint32_t n_met;
};

static enum lower_role role(const struct runs *r, uint32_t n)
{
    return r->role[n] & ~ROLE_ENDS;
}

static uint32_t find(struct runs *r, uint32_t n)
{
    while (r->parent[n] != n) {
        r->parent[n] = r->parent[r->parent[n]];
        n = r->parent[n];
    }
    return n;
}

static void begin(struct runs *r, const tuck_graph *g, const uint8_t *roles, struct arena *scratch)
{
    size_t n_id = g->node.len;

    *r = (struct runs){.g = g, .role = roles, .now = 1};
    r->shows = arena_zeroed(scratch, n_id * sizeof(*r->shows));
    r->run = arena_zeroed(scratch, n_id * sizeof(*r->run));
    r->parent = arena_zeroed(scratch, n_id * sizeof(*r->parent));
    r->size = arena_zeroed(scratch, n_id * sizeof(*r->size));
    r->met = arena_zeroed(scratch, n_id * sizeof(*r->met));
    r->first = arena_zeroed(scratch, n_id * sizeof(*r->first));
    r->needs = arena_zeroed(scratch, n_id * sizeof(*r->needs));
    r->place = arena_zeroed(scratch, n_id * sizeof(*r->place));
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        uint32_t of = role(r, n) == ROLE_VIEW ? call_base(g, x) : 0;

        r->shows[n] = of != 0 ? r->shows[of] : n;
    }
}

/* What a collective or a mutation reads ends a run; of several operands of a collective, the one
 * that is made last: it waits for that. */
static void find_ends(const struct lower *l, const struct runs *r, uint8_t *roles)
{
    for_each_node (l->g, n) {
        const struct fx_node *x = lower_call(l, n);
        bool writes = lower_may_write(l, n);
        uint32_t last = 0;

        if (role(r, n) != ROLE_COLLECTIVE && !writes)
            continue;
        for (uint32_t i = 0; i < x->n_vals; i++) {
            uint32_t v = x->vals[i].kind == TUCK_V_NODE ? r->shows[x->vals[i].a] : 0;
            if (v != 0 && writes)
                roles[v] |= ROLE_ENDS;
            if (v != 0 && (last == 0 || l->place[v] > l->place[last]))
                last = v;
        }
        roles[last] |= ROLE_ENDS;
    }
}

/* The loop of this run that an operand comes from, 0 if none. */
static uint32_t loop_of(struct runs *r, tuck_value v)
{
    uint32_t a = v.kind == TUCK_V_NODE ? r->shows[v.a] : 0;

    return a != 0 && role(r, a) == ROLE_FUSIBLE && r->run[a] == r->now ? find(r, a) : 0;
}

/* The size of the loop if n joined those it reads from. */
static uint32_t joined_size(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->g, n);
    uint32_t total = 1;

    r->asked++;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t u = loop_of(r, x->vals[i]);
        if (u != 0 && r->met[u] != r->asked) {
            r->met[u] = r->asked;
            total += r->size[u];
        }
    }
    return total;
}

/* The loop of n alone. */
static void begin_loop(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->g, n);

    r->parent[n] = n;
    r->size[n] = 1;
    r->run[n] = r->now;
    r->first[n] = r->place[n];
    r->needs[n] = 0;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t a = x->vals[i].kind == TUCK_V_NODE ? r->shows[x->vals[i].a] : 0;
        if (a != 0 && is_empty(r->g, a) && r->run[a] == r->now && r->place[a] > r->needs[n])
            r->needs[n] = r->place[a];
    }
}

/* Would the loop begin before an empty tensor that it reads, if n joined those it reads from? */
static bool is_early(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->g, n);
    uint32_t first = r->place[n], needs;

    begin_loop(r, n);
    needs = r->needs[n];
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t u = loop_of(r, x->vals[i]);
        if (u == 0)
            continue;
        first = r->first[u] < first ? r->first[u] : first;
        needs = r->needs[u] > needs ? r->needs[u] : needs;
    }
    return needs > first;
}

/* Adds node n to the loops it reads from; if that gets too long, n begins the next run. */
static void add(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->g, n);

    if (x->apart || joined_size(r, n) > REGION_MAX || is_early(r, n))
        r->now++; /* so that nothing it reads is in its run */
    begin_loop(r, n);
    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t u = loop_of(r, x->vals[i]), v = find(r, n);
        if (u == 0 || u == v)
            continue;
        r->parent[v] = u;
        r->size[u] += r->size[v];
        r->first[u] = r->first[v] < r->first[u] ? r->first[v] : r->first[u];
        r->needs[u] = r->needs[v] > r->needs[u] ? r->needs[v] : r->needs[u];
    }
    if (r->role[n] & ROLE_ENDS)
        r->now++;
}

/* A number computed by a loop of this run, or a view with sizes from one: its users depend on that
 * loop without reading it, so they must not be part of another loop of the run. */
static bool joins_loops(struct runs *r, uint32_t n)
{
    const struct fx_node *x = node_at(r->g, n);
    uint32_t of = role(r, n) == ROLE_VIEW ? call_base(r->g, x) : 0;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        if (x->vals[i].a != of && loop_of(r, x->vals[i]) != 0)
            return true;
        of = x->vals[i].a == of ? 0 : of; /* the view's base; if it occurs again, it is for sizes */
    }
    return false;
}

static void walk(struct runs *r, uint32_t n)
{
    enum lower_role what = role(r, n);

    r->place[n] = ++r->n_met;
    if (is_empty(r->g, n))
        r->run[n] = r->now;
    if (what == ROLE_FUSIBLE)
        add(r, n);
    else if ((what != ROLE_VIEW && what != ROLE_NOTHING && !is_empty(r->g, n)) || joins_loops(r, n))
        r->now++;
}

static bool is_eager(const struct machine *m)
{
    return m != NULL && m->cluster != NULL && m->cluster->unfused;
}

void lower_regions(struct lower *l)
{
    const tuck_graph *g = l->g;
    uint32_t n_id = g->node.len;
    struct runs r;

    l->region = arena_zeroed(&l->scratch, n_id * sizeof(*l->region));
    if (l->o->no_fuse || is_eager(l->o->machine))
        return;
    l->p->role = arena_array(&l->p->arena, uint8_t, n_id);
    memcpy(l->p->role, l->role, n_id);
    begin(&r, g, l->p->role, &l->scratch);
    find_ends(l, &r, l->p->role);
    for_each_node (g, n)
        walk(&r, n);
    uint32_t *number = arena_zeroed(&l->scratch, n_id * sizeof(*number)); /* by root */
    for_each_node (g, n) {
        if (role(&r, n) != ROLE_FUSIBLE)
            continue;
        uint32_t top = find(&r, n);
        if (r.size[top] < 2)
            continue;
        if (number[top] == 0)
            number[top] = ++l->n_region;
        l->region[n] = number[top];
    }
}

/* ---- adjacent loops ---- */

/* Does a node of this op read from a loop of this run? The op itself is not in it yet. */
static bool reads_loops(struct runs *r, const struct program *p, uint32_t op)
{
    for (uint32_t k = p->node_at[op]; k < p->node_at[op + 1]; k++) {
        const struct fx_node *x = node_at(r->g, p->node_id[k]);
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (loop_of(r, x->vals[i]) != 0)
                return true;
    }
    return false;
}

void region_keep_apart(tuck_graph *g, const struct program *p, struct arena *scratch)
{
    struct runs r;
    uint32_t *op_of; /* by node: 1 + the op that begins with it, 0 if none */

    for_each_node (g, n)
        g->node.at[n].apart = false;
    if (p->role == NULL) /* no loops */
        return;
    begin(&r, g, p->role, scratch);
    op_of = arena_zeroed(scratch, g->node.len * sizeof(*op_of));
    for (uint32_t op = 0; op < p->n_op; op++)
        if (p->node_at[op] < p->node_at[op + 1])
            op_of[p->node_id[p->node_at[op]]] = op + 1;
    for_each_node (g, n) {
        if (role(&r, n) == ROLE_FUSIBLE && op_of[n] != 0 && reads_loops(&r, p, op_of[n] - 1) &&
            joined_size(&r, n) <= REGION_MAX)
            g->node.at[n].apart = true;
        walk(&r, n);
    }
}
