/* The operators that patterns are made of, and their operands. */
#include "fsdp/fsdp.h"

#include "fx/effect.h"

struct fsdp_op fsdp_op(struct pass_run *r, const char *name)
{
    struct fsdp_op op = {.row = op_find(name, strlen(name))};
    bool ok = op.row != 0 && op_sig_parse(&r->arena, op_at(op.row), &op.sig, NULL);

    assert(ok);
    (void)ok;
    return op;
}

const tuck_value *fsdp_operand(const tuck_graph *g, const struct fsdp_op *op, uint32_t n,
                               const char *name)
{
    struct operand o = {.v = NULL};

    while (operand_next(g, node_at(g, n), &op->sig, &o))
        if (o.param != NULL && strcmp(o.param->name, name) == 0)
            return o.v;
    return NULL;
}

uint32_t fsdp_node_operand(const tuck_graph *g, const struct fsdp_op *op, uint32_t n,
                           const char *name)
{
    const tuck_value *v = fsdp_operand(g, op, n, name);

    return v != NULL && v->kind == TUCK_V_NODE ? v->a : 0;
}
