/* What a node does besides returning a result, and which operands it writes or shares. */
#ifndef TUCK_GRAPH_EFFECT_H
#define TUCK_GRAPH_EFFECT_H

#include "graph/graph.h"
#include "op/ops.h"

/* The row of a method: x.add_ is aten.add_; 0 if unknown. */
uint32_t method_op(const char *name);

/* The row of what a node calls, for functions and methods; 0 if unknown. */
static inline uint32_t node_op(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);

    return x->kind == TUCK_CALL_METHOD ? method_op(graph_str(g, x->target)) : x->op;
}

/* Would removing the node change anything besides its result? True for everything that writes,
 * draws random numbers, communicates, checks, or is unknown. Does not look into nested graphs. */
bool node_has_effect(const tuck_graph *g, uint32_t n);

/* Signatures, parsed when first needed. */
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

/* Is it the operand for parameter p? */
static inline bool operand_is(const struct operand *o, const struct op_sig *sig, uint32_t p)
{
    return o->param != NULL ? o->param == &sig->params[p] : o->i == p;
}

bool operand_next(const tuck_graph *g, const struct fx_node *x, const struct op_sig *sig,
                  struct operand *o);

#endif
