#include "graph/nested.h"

#include "graph/groups.h"
#include "graph/storage.h"

static bool communicates(const struct op_row *row)
{
    return row->cls == OP_COLLECTIVE || row->cls == OP_P2P || row->cls == OP_SYNC_COLLECTIVE;
}

/* The graph that vals[i] of a call refers to; NULL if it is not a graph. */
static const tuck_graph *graph_operand(const tuck_graph *g, const struct fx_node *x, uint32_t i)
{
    return x->vals[i].kind == TUCK_V_NODE ? child_of(g, x->vals[i].a) : NULL;
}

/* Does it call graphs, other than a wrapper of one known call? */
static bool calls_graphs(const tuck_graph *g, const struct fx_node *x)
{
    return x->kind == TUCK_CALL_FUNCTION && op_at(x->op)->cls == OP_HOP &&
           (!call_is_wrapper(x) || wrapped_op(g, x) == 0);
}

/* ---- which groups ---- */

struct walk {
    struct arena *a;
    const tuck_graph *top; /* the graph whose groups are counted */
    bool *used;            /* by group of top */
    bool any;              /* any other group, too */
};

struct level {
    const struct level *out; /* the graph around it, NULL at the top */
    const tuck_graph *g;
    uint32_t call; /* the node of out->g that calls it */
};

/* The index of a placeholder among its graph's inputs. */
static uint32_t input_number(const tuck_graph *g, uint32_t placeholder)
{
    uint32_t k = 0;

    for_each_node (g, n) {
        if (n == placeholder)
            return k;
        k += node_at(g, n)->kind == TUCK_PLACEHOLDER;
    }
    return k;
}

/* Translates a group of a nested graph into one of the top graph. If it is an input, it is what the
 * call passes. */
static int32_t group_on_top(const struct walk *w, const struct level *at, int32_t group)
{
    str_id name = group >= 0 ? at->g->group.at[group].name : 0;
    uint32_t node = group >= 0 ? at->g->group.at[group].node : 0;

    while (name != 0 && node != 0 && at->out != NULL) {
        if (node_at(at->g, node)->kind != TUCK_PLACEHOLDER)
            return LINE_ANY;
        const tuck_value *v = passed_value(at->out->g, at->call, input_number(at->g, node));
        if (v == NULL || (v->kind != TUCK_V_NODE && v->kind != TUCK_V_STR))
            return LINE_ANY;
        name = v->kind == TUCK_V_STR ? v->a : node_at(at->out->g, v->a)->name;
        node = v->kind == TUCK_V_NODE ? v->a : 0;
        at = at->out;
    }
    for (uint32_t i = 0; name != 0 && i < w->top->group.len; i++)
        if (w->top->group.at[i].name == name || (node != 0 && w->top->group.at[i].node == node))
            return (int32_t)i;
    return LINE_ANY;
}

/* Collects the groups of the collectives in graph at->g. Depth is bounded by GRAPH_DEPTH. */
static void look_into(struct walk *w, const struct level *at, int depth)
{
    const tuck_graph *g = at->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        if (x->kind == TUCK_CALL_FUNCTION && communicates(op_at(acting_op(g, n)))) {
            int32_t line = group_on_top(w, at, group_of(g, n));
            if (line >= 0)
                w->used[line] = true;
            else
                w->any = true;
        }
        if (!calls_graphs(g, x))
            continue;
        for (uint32_t i = 0; i < x->n_vals; i++) {
            struct level in = {.out = at, .g = graph_operand(g, x, i), .call = n};
            if (in.g != NULL && depth == 0)
                w->any = true;
            else if (in.g != NULL)
                look_into(w, &in, depth - 1);
        }
    }
}

/* Graphs whose groups are all known by name are searched once, however often they are called; the
 * last few results are cached. */
struct memo {
    const tuck_graph *g[16];
    bool *used[16];
    bool any[16];
    uint32_t next;
};

struct node_line {
    uint32_t node;
    int32_t line;
};

struct found {
    VEC(struct node_line) line; /* in the order of the nodes */
};

static bool has_simple_groups(const tuck_graph *g)
{
    bool simple = g->child.len == 0;

    for (uint32_t i = 0; i < g->group.len; i++)
        simple &= g->group.at[i].node == 0;
    return simple;
}

static void add_graph(struct walk *w, struct memo *m, const struct level *in)
{
    size_t groups = w->top->group.len;
    uint32_t k = 0;

    while (k < 16 && m->g[k] != in->g)
        k++;
    if (k == 16) {
        struct walk own = {.a = w->a, .top = w->top, .used = arena_zeroed(w->a, groups + 1)};
        look_into(&own, in, GRAPH_DEPTH);
        k = m->next++ % 16;
        m->g[k] = has_simple_groups(in->g) ? in->g : NULL;
        m->used[k] = own.used;
        m->any[k] = own.any;
    }
    for (uint32_t q = 0; q < groups; q++)
        w->used[q] |= m->used[k][q];
    w->any |= m->any[k];
}

/* The lines of a call of graphs. */
static void add_call(struct walk *w, struct memo *m, uint32_t n, struct found *f)
{
    const tuck_graph *g = w->top;
    const struct level top = {.g = g};
    const struct fx_node *x = node_at(g, n);

    memset(w->used, 0, g->group.len);
    w->any = false;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        struct level in = {.out = &top, .g = graph_operand(g, x, i), .call = n};
        if (in.g != NULL)
            add_graph(w, m, &in);
    }
    for (uint32_t q = 0; q < g->group.len; q++)
        if (w->used[q])
            vec_push_in(w->a, &f->line, ((struct node_line){n, (int32_t)q}));
    if (w->any)
        vec_push_in(w->a, &f->line, ((struct node_line){n, LINE_ANY}));
}

/* From the order of the nodes to that of their ids. While it is filled, start[n + 1] is where the
 * next line of n goes. */
static void sort_lines(const tuck_graph *g, struct arena *a, const struct found *f,
                       struct comm_lines *out)
{
    out->start = arena_zeroed(a, ((size_t)g->node.len + 2) * sizeof(*out->start));
    out->line = arena_array(a, int32_t, f->line.len + 1);
    out->node = arena_array(a, uint32_t, f->line.len + 1);
    out->n_node = 0;
    for (uint32_t i = 0; i < f->line.len; i++) {
        uint32_t n = f->line.at[i].node;
        if (out->n_node == 0 || out->node[out->n_node - 1] != n)
            out->node[out->n_node++] = n;
        out->start[n + 2]++;
    }
    for (uint32_t n = 1; n < g->node.len; n++)
        out->start[n + 1] += out->start[n];
    for (uint32_t i = 0; i < f->line.len; i++)
        out->line[out->start[f->line.at[i].node + 1]++] = f->line.at[i].line;
}

void comm_lines_find(const tuck_graph *g, const int32_t *group, struct arena *a,
                     struct comm_lines *out)
{
    struct walk w = {.a = a, .top = g, .used = arena_zeroed(a, (size_t)g->group.len + 1)};
    struct memo memo = {.next = 0};
    struct found f = {.line = {0}};

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        if (node_is_silent(x) || (x->kind != TUCK_CALL_FUNCTION && x->kind != TUCK_CALL_METHOD))
            continue;
        if (communicates(op_at(acting_op(g, n))))
            vec_push_in(a, &f.line, ((struct node_line){n, group[n]}));
        else if (g->child.len > 0 && calls_graphs(g, x))
            add_call(&w, &memo, n, &f);
    }
    sort_lines(g, a, &f, out);
}

/* ---- what graphs do ---- */

typedef bool (*question)(const tuck_graph *g, uint32_t n, uint32_t what);

/* Is the answer yes for any node of the graph or of one that it calls? Beyond the depth it is. */
static bool anywhere(const tuck_graph *g, question ask, uint32_t what, int depth)
{
    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);

        if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT)
            continue;
        if (ask(g, n, what))
            return true;
        for (uint32_t i = 0; calls_graphs(g, x) && i < x->n_vals; i++) {
            const tuck_graph *in = graph_operand(g, x, i);
            if (in != NULL && (depth == 0 || anywhere(in, ask, what, depth - 1)))
                return true;
        }
    }
    return false;
}

static bool is_comm(const tuck_graph *g, uint32_t n, uint32_t kind)
{
    const struct op_row *row = op_at(acting_op(g, n));

    return node_at(g, n)->kind == TUCK_CALL_FUNCTION && communicates(row) &&
           (kind == 0 || (row->flags & kind) != 0);
}

/* The same for the graphs that a call takes. */
static bool inside(const tuck_graph *g, const struct fx_node *x, question ask, uint32_t what)
{
    if (!calls_graphs(g, x))
        return false;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        const tuck_graph *in = graph_operand(g, x, i);
        if (in != NULL && anywhere(in, ask, what, GRAPH_DEPTH))
            return true;
    }
    return false;
}

bool node_nests_comm(const tuck_graph *g, uint32_t n, uint32_t kind)
{
    return inside(g, node_at(g, n), is_comm, kind);
}

static bool has_effect(const tuck_graph *g, uint32_t n, uint32_t what)
{
    (void)what;
    return node_has_effect(g, n);
}

bool node_nests_effect(const tuck_graph *g, uint32_t n)
{
    return inside(g, node_at(g, n), has_effect, 0);
}

static bool keeps_order(const tuck_graph *g, uint32_t n, uint32_t what)
{
    const struct op_row *row = op_at(acting_op(g, n));

    (void)what;
    if (communicates(row) || row->cls == OP_WAIT || row->cls == OP_ASSERT)
        return false;
    return (row->flags & OP_F_RANDOM) || (!(row->flags & OP_F_MUTATES) && node_has_effect(g, n));
}

bool node_nests_order(const tuck_graph *g, uint32_t n)
{
    return inside(g, node_at(g, n), keeps_order, 0);
}

/* Only the node itself: graphs that it calls are checked separately. */
static bool writes(const tuck_graph *g, uint32_t n, uint32_t what)
{
    const struct fx_node *x = node_at(g, n);

    (void)what;
    return node_is_barrier(g, n) || (op_at(acting_op(g, n))->flags & OP_F_MUTATES) != 0 ||
           (call_is_wrapper(x) && wrapped_op(g, x) == 0);
}

bool graph_may_write(const tuck_graph *g)
{
    return anywhere(g, writes, 0, GRAPH_DEPTH);
}

bool node_nests_writes(const tuck_graph *g, const struct fx_node *x)
{
    return inside(g, x, writes, 0);
}
