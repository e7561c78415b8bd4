/* A call and its operands.
 *
 * An operand is given by position or by name: all_reduce(x, 'sum', '0') and all_reduce(input = x,
 * …) are the same call. To get "operand number p", use these functions, never vals[p].
 */
#ifndef TUCK_GRAPH_CALL_H
#define TUCK_GRAPH_CALL_H

#include "graph/effect.h"
#include "graph/graph.h"

/* Parameters of triton_kernel_wrapper_functional: the kernel's operands by name, and the
 * names of those it writes. */
enum { TRITON_OPERANDS = 4, TRITON_CLONED = 5 };

/* The value given for parameter number p of the operator that x calls; NULL if none. */
const tuck_value *call_operand(const tuck_graph *g, const struct fx_node *x, uint32_t p);

/* The node given for it; 0 if none, or not a node. */
static inline uint32_t call_node(const tuck_graph *g, const struct fx_node *x, uint32_t p)
{
    const tuck_value *v = call_operand(g, x, p);

    return v != NULL && v->kind == TUCK_V_NODE ? v->a : 0;
}

/* Which result of its operand a getitem takes: x[1], or x['name'] of a Triton kernel, whose results
 * have names. False: unknown, or counted from the end. */
bool call_item(const tuck_graph *g, const struct fx_node *x, uint32_t *out);

/* What a view is a view of: the first operand or, if that is not a node, the first node it
 * mentions; 0 if none. */
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

/* ---- wrappers ----
 *
 * control_deps(deps, graph of one call, operands…) and with_effects(token, operator, operands…)
 * call another operator, which does the work. These functions look through them, so that a
 * collective in a wrapper is a collective.
 */

static inline bool call_is_wrapper(const struct fx_node *x)
{
    uint16_t shape = op_at(x->op)->shape;

    return x->kind == TUCK_CALL_FUNCTION &&
           (shape == OP_SHAPE_control_deps || shape == OP_SHAPE_with_effects);
}

/* The row of the operator inside a wrapper; 0 if unknown, or if it takes graphs itself. */
uint32_t wrapped_op(const tuck_graph *g, const struct fx_node *x);

/* Does a wrapper call an unknown operator? */
bool wraps_unknown(const tuck_graph *g, const struct fx_node *x);

/* The row of what node n does: its own, or that of the operator inside; 0 if unknown. */
static inline uint32_t acting_op(const tuck_graph *g, uint32_t n)
{
    uint32_t inside = call_is_wrapper(node_at(g, n)) ? wrapped_op(g, node_at(g, n)) : 0;

    return inside != 0 ? inside : node_op(g, n);
}

/* The call that does the work: the node, or the inner call with the outer operands, made in the
 * arena. */
const struct fx_node *acting_call(const tuck_graph *g, uint32_t n, struct arena *a);

/* Which of a node's results is the operator's first: with_effects puts a token before it. */
static inline uint32_t acting_result(const tuck_graph *g, uint32_t n)
{
    return op_at(node_at(g, n)->op)->shape == OP_SHAPE_with_effects;
}

/* Has the node surely nothing to do with communication, neither itself nor in what it wraps or
 * calls? A quick answer, which holds for most nodes. */
static inline bool node_is_silent(const struct fx_node *x)
{
    enum op_class cls = (enum op_class)op_at(x->op)->cls;

    if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT)
        return true;
    return x->kind == TUCK_CALL_FUNCTION && x->op != 0 && cls != OP_COLLECTIVE && cls != OP_P2P &&
           cls != OP_SYNC_COLLECTIVE && cls != OP_WAIT && cls != OP_HOP;
}

/* ---- calls of graphs ---- */

/* What a call passes for input number k of the graph it takes; NULL if unknown. */
const tuck_value *passed_value(const tuck_graph *g, uint32_t call, uint32_t k);

/* The number of the first argument of invoke_subgraph(graph, 'name', …) that is passed on: the name
 * may be missing. */
uint32_t first_passed(const tuck_graph *g, const struct fx_node *node);

#endif
