#include "rewrite/place.h"

#include "graph/effect.h"
#include "infer/infer.h"
#include "op/ops.h"
#include "graph/storage.h"

enum { UNKNOWN, NO, YES };

struct place {
    const tuck_graph *g;
    struct arena *a;
    uint8_t *child; /* by name of a nested graph, once computed: does it depend on positions? */
};

static int bytes_of(const tuck_graph *g, uint32_t n)
{
    const struct type *t = type_at(&g->store->type, node_type(g, n));

    return node_type(g, n) != 0 && t->kind == TYPE_TENSOR && t->dtype != DTYPE_NONE
               ? dtype_at((enum dtype)t->dtype)->bytes
               : 0;
}

/* Bytes per element of the first tensor operand; 0 if unknown. */
static int bytes_given(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            return bytes_of(g, x->vals[i].a);
    return 0;
}

/* The operator itself, not its operands. A view as elements of the same or smaller size may begin
 * anywhere. */
static bool op_looks(const tuck_graph *g, uint32_t n)
{
    const struct op_row *row = op_at(node_op(g, n));

    if (row->cls != OP_VIEW && !(row->flags & OP_F_PLACE))
        return false;
    int from = bytes_given(g, n), to = bytes_of(g, n);
    if (from != 0 && to != 0 && from != to)
        return to > from; /* x.view(torch.float64), under any name */
    return row->flags & OP_F_PLACE;
}

/* An operator passed as an operand, such as to with_effects; an unknown one may depend on the
 * position. */
static bool operand_looks(const tuck_graph *g, const tuck_value *v)
{
    const struct str *name = str_at(&g->store->str, v->a);
    uint32_t op = op_find(name->at, name->len);

    return op == 0 || op_at(op)->flags & OP_F_PLACE;
}

/* Looks into a nested graph and all graphs nested in it. */
static bool graph_looks(struct place *p, const tuck_graph *child)
{
    VEC(const tuck_graph *) todo = {0};

    vec_push_in(p->a, &todo, child);
    while (todo.len > 0) {
        const tuck_graph *g = todo.at[--todo.len];
        for_each_node (g, n) {
            const struct fx_node *x = node_at(g, n);
            if (op_looks(g, n) || (node_is_barrier(g, n) && x->kind != TUCK_CALL_METHOD))
                return true;
            for (uint32_t i = 0; op_at(x->op)->cls == OP_HOP && i < x->n_vals; i++)
                if (x->vals[i].kind == TUCK_V_OP && operand_looks(g, &x->vals[i]))
                    return true;
        }
        for (uint32_t i = 0; i < g->child.len; i++)
            vec_push_in(p->a, &todo, g->child.at[i]);
    }
    return false;
}

static bool held_looks(struct place *p, uint32_t get_attr)
{
    const tuck_graph *child = child_of(p->g, get_attr);

    if (child == NULL)
        return false;
    if (p->child == NULL)
        p->child = arena_zeroed(p->a, p->g->store->str.all.len);
    uint8_t *known = &p->child[node_at(p->g, get_attr)->target];
    if (*known == UNKNOWN)
        *known = graph_looks(p, child) ? YES : NO;
    return *known == YES;
}

static bool node_looks(struct place *p, uint32_t n)
{
    const struct fx_node *x = node_at(p->g, n);

    if (op_looks(p->g, n))
        return true;
    for (uint32_t i = 0; op_at(x->op)->cls == OP_HOP && i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_OP     ? operand_looks(p->g, &x->vals[i])
            : x->vals[i].kind == TUCK_V_NODE ? held_looks(p, x->vals[i].a)
                                             : false)
            return true;
    return false;
}

/* Marks the storages of n's operands. */
static void watch_operands(const struct storages *s, uint32_t n, bool *watched)
{
    const struct fx_node *x = node_at(s->g, n);

    for (uint32_t i = 0; i < x->n_vals; i++) {
        uint32_t k, end;
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        for (storage_mentions(s, n, i, &k, &end); k < end; k++)
            watched[storage_of(s, x->vals[i].a, k)] = true;
    }
}

const bool *place_watched(struct pass_run *r)
{
    const tuck_graph *g = r->g;
    struct arena *a = &r->arena;
    struct place p = {.g = g, .a = a};
    struct storages s;
    bool *watched = NULL, *of_node;

    for_each_node (g, n) {
        if (!node_looks(&p, n))
            continue;
        if (watched == NULL) {
            storages_build(g, a, &s);
            watched = arena_zeroed(a, (size_t)s.n + 1);
        }
        watch_operands(&s, n, watched);
    }
    if (watched == NULL)
        return NULL;
    of_node = arena_zeroed(a, g->node.len * sizeof(*of_node));
    for_each_node (g, n)
        for (uint32_t k = 0; k < s.count[n]; k++)
            of_node[n] |= watched[storage_of(&s, n, k)];
    return of_node;
}

static bool asks_strides(const tuck_graph *g, uint32_t n)
{
    const struct op_row *row = op_at(node_op(g, n));

    return row->flags & (OP_F_RESTRIDES | OP_F_EXACT) || row->shape == OP_SHAPE_sym_stride ||
           row->shape == OP_SHAPE_is_contiguous || row->shape == OP_SHAPE_is_dense;
}

const bool *place_strides_matter(struct pass_run *r)
{
    const tuck_graph *g = r->g;
    struct place p = {.g = g, .a = &r->arena};
    bool *matter = arena_zeroed(&r->arena, g->node.len * sizeof(*matter));

    for (uint32_t n = g->node.at[0].prev; n != 0; n = node_at(g, n)->prev) {
        const struct fx_node *x = node_at(g, n);
        if (n == g->output ||
            !(matter[n] || asks_strides(g, n) || node_is_barrier(g, n) || node_looks(&p, n)))
            continue;
        for (uint32_t i = 0; i < x->n_vals; i++)
            if (x->vals[i].kind == TUCK_V_NODE)
                matter[x->vals[i].a] = true;
    }
    return matter;
}
