#include "graph/message.h"

/* The bytes of a tensor, or of all tensors of a list; numbers and tokens have none. -1 if
 * unknown. */
static int64_t bytes_of(const tuck_graph *g, type_id id, struct assume *a)
{
    const struct type *t = type_at(&g->store->type, id);
    int64_t sum = 0, bytes;

    if (t->kind == TYPE_TENSOR || t->kind == TYPE_UNKNOWN)
        return assume_bytes(a, id, &bytes) ? bytes : -1;
    for (uint32_t i = 0; t->kind == TYPE_LIST && i < t->n; i++) {
        const struct type *item = type_at(&g->store->type, t->item[i]);
        if (item->kind != TYPE_TENSOR && item->kind != TYPE_UNKNOWN)
            continue;
        if (!assume_bytes(a, t->item[i], &bytes) || !size_add(sum, bytes, &sum))
            return -1;
    }
    return sum;
}

static int64_t operand_bytes(const tuck_graph *g, const tuck_value *v, struct assume *a)
{
    int64_t sum = 0;

    for (const tuck_value *end = value_next(v); v < end; v++) {
        if (v->kind != TUCK_V_NODE)
            continue;
        int64_t bytes = bytes_of(g, node_type(g, v->a), a);
        if (bytes < 0 || !size_add(sum, bytes, &sum))
            return -1;
    }
    return sum;
}

int64_t message_bytes(const tuck_graph *g, uint32_t n, int64_t ranks, struct sigs *sigs,
                      struct assume *assume, struct arena *scratch)
{
    const struct fx_node *x = acting_call(g, n, scratch);
    const struct op_row *row = op_at(acting_op(g, n));
    int64_t most = bytes_of(g, node_type(g, n), assume);
    struct operand o = {.v = NULL};

    if (row->moves == OP_MOVES_gathered) {
        uint32_t shard = call_node(g, x, 0);
        most = shard != 0 ? bytes_of(g, node_type(g, shard), assume) : -1;
    }
    if (row->moves == OP_MOVES_gathered || row->moves == OP_MOVES_scattered)
        return most >= 0 && ranks > 0 && size_mul(most, ranks, &most) ? most : -1;
    while (operand_next(g, x, sigs_get(sigs, acting_op(g, n)), &o)) {
        if (o.param == NULL || o.param->type != OP_T_TENSOR)
            continue; /* a group may be a node, too */
        int64_t bytes = operand_bytes(g, o.v, assume);
        if (bytes < 0)
            return -1;
        most = bytes > most ? bytes : most;
    }
    return most;
}
