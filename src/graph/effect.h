/* What a node does besides giving a result, and which operands it writes or shares. */
#ifndef TUCK_GRAPH_EFFECT_H
#define TUCK_GRAPH_EFFECT_H

#include "graph/graph.h"
#include "op/ops.h"

/* The row of a method: x.add_ is aten.add_; 0 = unknown. */
uint32_t method_op(const char *name);

/* The row of what a node calls, of functions and of methods; 0 = unknown. */
static inline uint32_t node_op(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    return x->kind == TUCK_CALL_METHOD ? method_op(graph_str(g, x->target)) : x->op;
}

/* Would something be missed if the node and its result were gone? True for whatever writes, draws
 * random numbers, communicates, checks, or is not known. What nested graphs do is not looked at. */
bool node_has_effect(const tuck_graph *g, uint32_t n);

/* Signatures, parsed when first asked for. */
struct sigs {
    struct arena arena;
    struct op_sig **at; /* by row */
};

void sigs_init(struct sigs *s, struct mem *m);
void sigs_destroy(struct sigs *s);
const struct op_sig *sigs_get(struct sigs *s, uint32_t op); /* NULL: unknown */

/* Walks the top-level operands of a node with the parameters they are for. */
struct operand {
    const tuck_value *v;          /* the operand, NULL before the first and after the last */
    const struct op_param *param; /* NULL: not known */
    uint32_t i;
};

/* Is it the one for parameter p? */
static inline bool operand_is(const struct operand *o, const struct op_sig *sig, uint32_t p)
{
    return o->param != NULL ? o->param == &sig->params[p] : o->i == p;
}

bool operand_next(const tuck_graph *g, const struct fx_node *x, const struct op_sig *sig,
                  struct operand *o);

#endif
