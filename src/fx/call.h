/* A call and its operands, however they are written.
 *
 * An operand stands at its place or behind its name: all_reduce(x, 'sum', '0') and all_reduce(input = x, …) are the same
 * call. Whoever wants "the operand number p" asks here, and never looks at vals[p].
 */
#ifndef TUCK_FX_CALL_H
#define TUCK_FX_CALL_H

#include "fx/effect.h"
#include "fx/graph.h"

/* What is given for parameter number p of the operator that x calls; NULL: nothing is. */
const tuck_value *call_operand(const tuck_graph *g, const struct fx_node *x, uint32_t p);

/* The node that is given for it; 0: nothing, or no node. */
static inline uint32_t call_node(const tuck_graph *g, const struct fx_node *x, uint32_t p)
{
    const tuck_value *v = call_operand(g, x, p);

    return v != NULL && v->kind == TUCK_V_NODE ? v->a : 0;
}

/* What a view is a view of: the first operand; where that is no node, the first node it mentions; 0: none. */
static inline uint32_t call_base(const tuck_graph *g, const struct fx_node *x)
{
    uint32_t first = call_node(g, x, 0);

    for (uint32_t i = 0; i < x->n_vals && first == 0; i++)
        first = x->vals[i].kind == TUCK_V_NODE ? x->vals[i].a : 0;
    return first;
}

/* Does the mention at vals[slot] belong to the operand for parameter p? */
static inline bool call_mentions(const tuck_graph *g, const struct fx_node *x, uint32_t p,
                                 uint32_t slot)
{
    const tuck_value *v = call_operand(g, x, p);

    return v != NULL && &x->vals[slot] >= v && &x->vals[slot] < value_next(v);
}

#endif
