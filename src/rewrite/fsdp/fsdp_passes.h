/* Passes for steps that use FSDP. */
#ifndef TUCK_REWRITE_FSDP_FSDP_PASSES_H
#define TUCK_REWRITE_FSDP_FSDP_PASSES_H

#include "op/ops.h"
#include "graph/storage.h"
#include "rewrite/comm_order.h"
#include "pass/pass.h"

extern const struct pass pass_reinplace_fsdp_all_gather;
extern const struct pass pass_remove_fsdp2_unsharded_param_graph_input_usage;
extern const struct pass pass_dedup_fsdp_reduce_scatter;
extern const struct pass pass_pre_bucket_fsdp_collectives;

/* ---- what the passes of this folder share ---- */

/* The table row of an operator in a pattern. */
static inline uint32_t fsdp_row(const char *name)
{
    uint32_t row = op_find(name, strlen(name));

    assert(row != 0);
    return row;
}

static inline bool fsdp_is(const tuck_graph *g, uint32_t n, uint32_t row)
{
    const struct fx_node *x = node_at(g, n);

    return x->kind == TUCK_CALL_FUNCTION && x->op == row;
}

/* The operand with that name, or NULL; the second function: its node, or 0. */
static inline const tuck_value *fsdp_operand(struct pass_run *r, uint32_t n, const char *name)
{
    return comm_operand(r->g, &r->sigs, n, name);
}

static inline uint32_t fsdp_node_operand(struct pass_run *r, uint32_t n, const char *name)
{
    const tuck_value *v = fsdp_operand(r, n, name);

    return v != NULL && v->kind == TUCK_V_NODE ? v->a : 0;
}

#endif
