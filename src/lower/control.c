/* control_deps((a, b), graph, operands…): the one operator in the graph, behind a and b. */
#include "lower/lower.h"

/* The operator that the nested graph calls; 0: it is not just one. */
static uint32_t inner_op(const tuck_graph *child)
{
    uint32_t found = 0, calls = 0;

    if (child == NULL)
        return 0;
    for_each_node (child, n) {
        if (node_at(child, n)->kind != TUCK_CALL_FUNCTION)
            continue;
        found = node_op(child, n);
        calls++;
    }
    return calls == 1 ? found : 0;
}

void lower_control_deps(struct lower *l, uint32_t node)
{
    const tuck_graph *g = l->g;
    const struct fx_node *x = node_at(g, node);
    const tuck_value *deps = x->vals, *sub = x->n_args >= 2 ? value_next(deps) : NULL;
    uint32_t inner = sub && sub->kind == TUCK_V_NODE ? inner_op(child_of(g, sub->a)) : 0;
    uint8_t cls = op_at(inner)->cls;
    enum program_kind kind = cls == OP_GEMM || cls == OP_CONV || cls == OP_ATTENTION
                                 ? PROGRAM_GEMM
                                 : PROGRAM_COMPUTE;
    uint32_t op = lower_op(l, kind, node, "", inner ? op_at(inner)->name : lower_kernel(l, node));

    lower_joins(l, op, node);
    /* What is named first is order alone; the rest are operands. */
    const tuck_value *end = sub ? sub : deps + x->n_vals;
    for (const tuck_value *v = deps; v < end; v++)
        if (v->kind == TUCK_V_NODE)
            lower_depends(l, op, l->made_by[v->a], PROGRAM_FAKE);
    for (const tuck_value *v = sub ? value_next(sub) : end; v < x->vals + x->n_vals; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        for (uint32_t k = 0; k < l->s.count[v->a]; k++)
            lower_uses(l, op, l->storage[storage_of(&l->s, v->a, k)].buf, PROGRAM_READS);
        lower_depends(l, op, l->made_by[v->a], 0);
    }
    lower_results(l, op, node);
}
