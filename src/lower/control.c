/* control_deps((a, b), graph, operands…): the one operator in the graph, behind a and b.
 *
 * Schedulers wrap whatever they want to hold in place, collectives and waits among it. Each such node is lowered as
 * the operator inside it would be: a copy of the inner call with the outer operands in place of the graph's inputs
 * stands for it wherever operands are looked at. What it must come behind becomes fake edges.
 */
#include "fx/groups.h"
#include "lower/lower.h"

/* The only call of the nested graph; 0: it is not just one. */
static uint32_t only_call(const tuck_graph *child)
{
    uint32_t found = 0, calls = 0;

    for_each_node (child, n) {
        uint8_t kind = node_at(child, n)->kind;
        if (kind == TUCK_PLACEHOLDER || kind == TUCK_OUTPUT)
            continue;
        found = n;
        calls++;
    }
    return calls == 1 && node_at(child, found)->kind == TUCK_CALL_FUNCTION ? found : 0;
}

/* By node of the child: the outer operand that it stands for. False: one of them is a list. */
static bool bind(const struct fx_node *x, const tuck_value *first, const tuck_graph *child,
                 const tuck_value **of)
{
    uint32_t i = 2;

    for_each_node (child, p) {
        if (node_at(child, p)->kind != TUCK_PLACEHOLDER)
            continue;
        if (i++ >= x->n_args || value_is_container(first))
            return false;
        of[p] = first;
        first = value_next(first);
    }
    return true;
}

static const struct fx_node *inner_call(struct lower *l, const struct fx_node *x)
{
    const tuck_value *sub = x->n_args >= 2 ? value_next(x->vals) : NULL;
    const tuck_graph *child = sub && sub->kind == TUCK_V_NODE ? child_of(l->g, sub->a) : NULL;
    uint32_t call = child ? only_call(child) : 0;

    if (call == 0 || op_at(node_at(child, call)->op)->cls == OP_HOP)
        return NULL;
    const tuck_value **of = arena_zeroed(&l->scratch, child->node.len * sizeof(*of));
    if (!bind(x, value_next(sub), child, of))
        return NULL;
    struct fx_node *y = arena_new(&l->scratch, struct fx_node);
    *y = *node_at(child, call);
    tuck_value *vals = arena_array(&l->scratch, tuck_value, y->n_vals ? y->n_vals : 1);
    for (uint32_t i = 0; i < y->n_vals; i++) {
        vals[i] = y->vals[i];
        if (vals[i].kind != TUCK_V_NODE)
            continue;
        if (of[vals[i].a] == NULL)
            return NULL;
        vals[i] = *of[vals[i].a];
    }
    y->vals = vals;
    return y;
}

void lower_find_inner(struct lower *l)
{
    const tuck_graph *g = l->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        if (x->kind != TUCK_CALL_FUNCTION || op_at(x->op)->shape != OP_SHAPE_control_deps)
            continue;
        if (l->inner == NULL)
            l->inner = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->inner));
        l->inner[n] = inner_call(l, x);
    }
}

uint32_t lower_group_of(struct lower *l, uint32_t node)
{
    const tuck_graph *g = l->g;

    if (l->inner == NULL || l->inner[node] == NULL)
        return l->group[node] >= 0 ? (uint32_t)l->group[node] : PROGRAM_NONE;
    const tuck_graph *child = child_of(g, value_next(node_at(g, node)->vals)->a);
    int in = group_of(child, only_call(child));
    if (in < 0)
        return PROGRAM_NONE;
    const struct fx_group *x = &child->group.at[in];
    str_id name = lower_keep(l, graph_str(g, x->name));
    for (uint32_t i = 0; i < l->groups.len; i++)
        if (l->groups.at[i].name == name)
            return i;
    vec_push_in(&l->scratch, &l->groups, ((struct program_group){name, x->size, x->rank}));
    return l->groups.len - 1;
}

void lower_follows_controls(struct lower *l, uint32_t op, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);

    if (op_at(x->op)->shape != OP_SHAPE_control_deps || x->n_args == 0)
        return;
    const tuck_value *end = value_next(x->vals);
    for (const tuck_value *v = x->vals; v < end; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        lower_depends(l, op, l->made_by[v->a], PROGRAM_FAKE);
        for (uint32_t k = l->more_from[v->a]; k != 0; k = l->link.at[k].next)
            lower_depends(l, op, l->link.at[k].op, PROGRAM_FAKE);
    }
}

/* A graph of several calls: one op that reads all it is given. */
static uint32_t whole(struct lower *l, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);
    uint32_t op = lower_op(l, PROGRAM_COMPUTE, node, "", lower_kernel(l, node));
    const tuck_value *v = x->vals, *end = x->vals + x->n_vals;

    lower_joins(l, op, node);
    for (v = x->n_args >= 2 ? value_next(value_next(v)) : end; v < end; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        for (uint32_t k = 0; k < l->s.count[v->a]; k++)
            lower_uses(l, op, l->storage[storage_of(&l->s, v->a, k)].buf, PROGRAM_READS);
        lower_depends(l, op, l->made_by[v->a], 0);
    }
    lower_results(l, op, node);
    return op;
}

void lower_control_deps(struct lower *l, uint32_t node)
{
    const struct fx_node *x = lower_call(l, node);
    const struct op_row *row = op_at(x->op);
    uint32_t op;

    if (l->inner == NULL || l->inner[node] == NULL) {
        op = whole(l, node);
    } else {
        bool gemm = row->cls == OP_GEMM || row->cls == OP_CONV || row->cls == OP_ATTENTION;
        op = lower_plain(l, node, gemm ? PROGRAM_GEMM : PROGRAM_COMPUTE);
        if (row->cls == OP_VIEW || row->cls == OP_GETITEM ||
            (row->cls == OP_FACTORY && row->moves == OP_MOVES_none))
            l->op.at[op].flags |= PROGRAM_NOP;
        else if ((row->flags & OP_F_LOWERED) || row->cls == OP_COPY || row->cls == OP_FACTORY)
            l->op.at[op].flags |= gemm ? 0 : PROGRAM_LOOP;
    }
    lower_follows_controls(l, op, node);
}
