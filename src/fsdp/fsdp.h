/* Passes for steps that FSDP shards. */
#ifndef TUCK_FSDP_FSDP_H
#define TUCK_FSDP_FSDP_H

#include "fx/ops.h"
#include "fx/storage.h"
#include "pass/pass.h"

extern const struct pass pass_reinplace_fsdp_all_gather;
extern const struct pass pass_remove_fsdp2_unsharded_param_graph_input_usage;
extern const struct pass pass_dedup_fsdp_reduce_scatter;

/* ---- what the passes of this folder share ---- */

/* An operator that a pattern is made of: its row, and its signature in the run's arena. */
struct fsdp_op {
    uint32_t row;
    struct op_sig sig;
};

struct fsdp_op fsdp_op(struct pass_run *r, const char *name);

static inline bool fsdp_is(const tuck_graph *g, uint32_t n, const struct fsdp_op *op)
{
    const struct fx_node *x = node_at(g, n);

    return x->kind == TUCK_CALL_FUNCTION && x->op == op->row;
}

/* The operand of that name, or NULL; and the node that it is, or 0. */
const tuck_value *fsdp_operand(const tuck_graph *g, const struct fsdp_op *op, uint32_t n,
                               const char *name);
uint32_t fsdp_node_operand(const tuck_graph *g, const struct fsdp_op *op, uint32_t n,
                           const char *name);

#endif
