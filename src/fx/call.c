#include "fx/call.h"

static uint32_t op_of(const tuck_graph *g, const struct fx_node *x)
{
    return x->kind == TUCK_CALL_METHOD ? method_op(graph_str(g, x->target)) : x->op;
}

const tuck_value *call_operand(const tuck_graph *g, const struct fx_node *x, uint32_t p)
{
    const tuck_value *v = x->vals;

    if (p == 0 && x->n_args > 0)
        return v;
    for (uint32_t i = 0; i < x->n_args; i++, v = value_next(v))
        if (i == p)
            return v;
    if (x->n_kwargs == 0)
        return NULL;
    const struct op_row *row = op_at(op_of(g, x));
    for (uint32_t i = 0; i < x->n_kwargs; i++) {
        const struct str *key = str_at(&g->store->str, v->a);
        if (op_param_is(row, p, key->at, key->len))
            return v + 1;
        v = value_next(v + 1);
    }
    return NULL;
}
