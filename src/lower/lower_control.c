/* Wrappers: control_deps((a, b), graph, operands…) runs the one operator in the graph after a and
 * b; with_effects(token, operator, operands…) runs the operator after the one that made the token.
 *
 * Schedulers wrap whatever must stay in place, including collectives and waits. Each such node is
 * lowered like the operator inside it: the acting call (graph/call.h) is used wherever operands are
 * read. The nodes a control_deps must follow become fake edges; a token is a normal edge of no
 * bytes.
 */
#include "lower/lower.h"

void lower_find_inner(struct lower *l)
{
    const tuck_graph *g = l->g;

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        const struct fx_node *call = call_is_wrapper(x) ? acting_call(g, n, &l->scratch) : x;
        if (call == x)
            continue;
        if (l->inner == NULL)
            l->inner = arena_zeroed(&l->scratch, g->node.len * sizeof(*l->inner));
        l->inner[n] = call;
    }
}

uint32_t lower_group_of(struct lower *l, uint32_t node)
{
    return l->group[node] >= 0 ? (uint32_t)l->group[node] : PROGRAM_NONE;
}

void lower_follows_controls(struct lower *l, uint32_t op, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);
    uint32_t token = op_at(x->op)->shape == OP_SHAPE_with_effects ? call_node(l->g, x, 0) : 0;

    if (token != 0)
        lower_depends(l, op, l->made_by[token], 0);
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

/* A graph of several calls, or of an unknown one: one op that uses all operands. */
static uint32_t whole(struct lower *l, uint32_t node)
{
    const struct fx_node *x = node_at(l->g, node);
    uint32_t op = lower_op(l, PROGRAM_COMPUTE, node, "", lower_kernel_str(l, node));
    const tuck_value *v = x->vals, *end = x->vals + x->n_vals;

    lower_joins(l, op, node);
    for (v = x->n_args >= 2 ? value_next(value_next(v)) : end; v < end; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        lower_depends(l, op, l->made_by[v->a], 0);
    }
    lower_accesses(l, op, node);
    lower_follows_effects(l, op, node);
    lower_results(l, op, node);
    return op;
}

void lower_wrapped(struct lower *l, uint32_t node)
{
    const struct fx_node *x = lower_call(l, node);
    const struct op_row *row = op_at(x->op);
    uint32_t op;

    if (l->inner == NULL || l->inner[node] == NULL) {
        op = whole(l, node);
    } else {
        bool gemm = row->cls == OP_GEMM || row->cls == OP_CONV || row->cls == OP_ATTENTION;
        op = lower_plain(l, node, gemm ? PROGRAM_GEMM : PROGRAM_COMPUTE);
        if ((row->cls == OP_VIEW && !l->copies.copies[node]) || row->cls == OP_GETITEM ||
            (row->cls == OP_FACTORY && row->moves == OP_MOVES_none))
            l->op.at[op].flags |= PROGRAM_NOP;
        else if ((row->flags & OP_F_LOWERED) || row->cls == OP_COPY || row->cls == OP_FACTORY)
            l->op.at[op].flags |= gemm ? 0 : PROGRAM_LOOP;
    }
    lower_follows_controls(l, op, node);
}
