/* What of a graph can be run, and how: by a kernel, by the executor itself, or not at all. */
#include "lower/lower.h"
#include "run/exec_core.h"

const struct exec_kernel *exec_own_kernel(const struct exec_kernel *k, size_t n, const char *op)
{
    for (size_t i = n; i > 0; i--)
        if (strcmp(k[i - 1].op, op) == 0)
            return &k[i - 1];
    return NULL;
}

enum exec_way exec_way_of(const struct op_row *row)
{
    static const char *const silent[] = {
        "aten.record_stream.default",
        "prims._sink_tokens.default",
        "torch._C._set_grad_enabled",
        "aten._assert_tensor_metadata.default",
        "aten.sym_constrain_range.default",
        "aten.sym_constrain_range_for_size.default",
        "inductor.resize_storage_bytes_.default"}; /* the plan's memory has its size at any time */

    if (row->shape == OP_SHAPE_local_scalar)
        return WAY_BIND;
    for (size_t i = 0; i < sizeof(silent) / sizeof(*silent); i++)
        if (strcmp(row->name, silent[i]) == 0)
            return WAY_NOTHING;
    if (strncmp(row->name, "profiler.", 9) == 0 || strncmp(row->name, "streams.", 8) == 0)
        return WAY_NOTHING;
    if (row->cls == OP_ASSERT && row->shape == OP_SHAPE_void)
        return WAY_CHECK;
    if (row->cls == OP_COLLECTIVE || row->cls == OP_P2P || row->cls == OP_SYNC_COLLECTIVE)
        return exec_coll_known(row) ? WAY_COLLECTIVE : WAY_NONE;
    if (row->cls == OP_WAIT || row->cls == OP_GETITEM || row->cls == OP_GROUP ||
        (row->cls == OP_VIEW && (row->flags & OP_F_RESTRIDES)))
        return WAY_NOTHING;
    return row->kernel != OP_KERNEL_none ? WAY_KERNEL : WAY_NONE;
}

uint32_t exec_planned_buf(const struct program *p, uint32_t n, uint32_t k)
{
    return k < p->value_at[n + 1] - p->value_at[n] ? p->value[p->value_at[n] + k] : PROGRAM_NONE;
}

/* A wrapped operator is an op of the program whatever it does: there the buffers tell. */
bool exec_is_view(const tuck_graph *g, const struct program *p, uint32_t n, const struct fx_node *c)
{
    const struct op_row *row = op_at(c->op);

    if (row->cls != OP_VIEW)
        return false;
    if (p->role != NULL && !call_is_wrapper(node_at(g, n)))
        return (p->role[n] & ~ROLE_ENDS) == ROLE_VIEW || (row->flags & OP_F_RESTRIDES) != 0;
    const tuck_value *v = call_operand(g, c, 0);
    uint32_t buf = exec_planned_buf(p, n, acting_result(g, n));
    if (v == NULL || v->kind != TUCK_V_NODE || buf != exec_planned_buf(p, v->a, 0))
        return false;
    return buf != PROGRAM_NONE || row->kernel == OP_KERNEL_none;
}

/* A view that changes the operand itself, and somebody sees it: a later node, or the caller. If
 * nobody does, it is a view like any other. place: by node, where it is in the graph. */
static bool is_seen_change(const tuck_graph *g, uint32_t n, const struct op_row *row,
                           const uint32_t *place)
{
    const tuck_value *v = call_operand(g, node_at(g, n), 0);

    if (!(row->flags & OP_F_RESTRIDES))
        return false;
    if (v == NULL || v->kind != TUCK_V_NODE || node_at(g, v->a)->kind != TUCK_CALL_FUNCTION)
        return true;
    for (uint32_t u = node_at(g, v->a)->use_first; u != 0; u = g->use.at[u].next)
        if (place[g->use.at[u].user] > place[n])
            return true;
    return false;
}

/* Views that change the operand itself, or whose elements are not those in memory. */
static bool is_odd_view(const tuck_graph *g, uint32_t n, const struct op_row *row,
                        const uint32_t *place)
{
    static const char *const conjugates[] = {"aten._conj.default", "aten.conj.default",
                                             "aten.adjoint.default", "aten.mH.default",
                                             "aten.matrix_H.default"};
    const struct type *t = type_at(&g->store->type, node_type(g, n));

    if (is_seen_change(g, n, row, place) || row->shape == OP_SHAPE_none ||
        strcmp(row->name, "aten._neg_view.default") == 0)
        return true;
    for (size_t i = 0; i < sizeof(conjugates) / sizeof(*conjugates); i++)
        if (strcmp(row->name, conjugates[i]) == 0)
            return t->kind == TYPE_TENSOR &&
                   dtype_at((enum dtype)t->dtype)->category == DTYPE_IS_COMPLEX;
    return false;
}

struct looking {
    const tuck_graph *g;
    const struct program *p;
    const struct exec_kernel *kernel;
    size_t n_kernel;
    struct buf *text;
    struct arena a;
    bool *said;      /* by operator */
    uint32_t *place; /* by node: where it is in the graph */
    bool missing;
};

static void say(struct looking *l, uint32_t n, uint32_t op, const char *name, const char *why)
{
    const struct fx_node *x = node_at(l->g, n);

    l->missing = true;
    if (op != 0 && l->said[op])
        return;
    l->said[op] = op != 0;
    buf_printf(l->text, "  %s%s, first at '%s'", name, why, graph_str(l->g, x->name));
    if (x->line > 0)
        buf_printf(l->text, ", line %u", x->line);
    buf_chr(l->text, '\n');
}

static bool is_empty_memory(const struct looking *l, const struct op_row *row)
{
    (void)l;
    return row->cls == OP_FACTORY && row->moves == OP_MOVES_none;
}

/* Numbers are computed from their expressions. */
static bool is_number(const struct looking *l, uint32_t n)
{
    return type_at(&l->g->store->type, node_type(l->g, n))->kind == TYPE_SYM;
}

/* What is said behind an operator that cannot be run. */
static const char *advice(const struct op_row *row)
{
    static const char *const fused[] = {"symm_mem.fused_all_gather_matmul.default",
                                        "symm_mem.fused_matmul_reduce_scatter.default",
                                        "_dtensor.shard_dim_alltoall.default"};
    bool splits = false;

    for (size_t i = 0; i < sizeof(fused) / sizeof(*fused); i++)
        splits |= strcmp(row->name, fused[i]) == 0;

    return row->shape == OP_SHAPE_auto_functionalized ? " (it wraps an operator of your own)"
           : row->cls == OP_HOP                       ? " (graphs inside of a graph are not run)"
           : splits ? " (split_fused_collectives makes plain ones of it)"
                    : "";
}

static void look_at(struct looking *l, uint32_t n)
{
    const struct fx_node *x = node_at(l->g, n);

    if (x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_OUTPUT || x->kind == TUCK_GET_ATTR)
        return;
    if (x->kind == TUCK_OPAQUE || x->kind == TUCK_CALL_MODULE || x->kind == TUCK_RESULT) {
        say(l, n, 0, "a statement that Tuck does not understand", "");
        return;
    }
    const struct fx_node *c = acting_call(l->g, n, &l->a);
    uint32_t op = c == x ? node_op(l->g, n) : c->op;
    const struct op_row *row = op_at(op);
    const char *name = op != 0 ? row->name : graph_str(l->g, c->target);
    if (exec_own_kernel(l->kernel, l->n_kernel, name) != NULL)
        return;
    if (op == 0)
        say(l, n, 0, name, "");
    else if (row->cls == OP_HOP)
        say(l, n, op, name, advice(row));
    else if (exec_is_view(l->g, l->p, n, c)) {
        if (is_odd_view(l->g, n, row, l->place))
            say(l, n, op, name, "");
    } else if (!is_number(l, n) && exec_way_of(row) == WAY_NONE && !is_empty_memory(l, row))
        say(l, n, op, name, advice(row));
    else if (is_number(l, n) && (row->flags & OP_F_DATADEP) && exec_way_of(row) == WAY_NONE)
        say(l, n, op, name, "");
}

static void do_look(void *arg)
{
    struct looking *l = arg;
    uint32_t at = 0;

    l->said = arena_zeroed(&l->a, op_n_rows * sizeof(*l->said));
    l->place = arena_zeroed(&l->a, l->g->node.len * sizeof(*l->place));
    for_each_node (l->g, n)
        l->place[n] = at++;
    for_each_node (l->g, n)
        look_at(l, n);
}

bool exec_missing(const tuck_graph *g, const struct program *p, const struct exec_kernel *kernel,
                  size_t n_kernel, struct buf *text)
{
    struct looking l = {.g = g, .p = p, .kernel = kernel, .n_kernel = n_kernel, .text = text};

    arena_init(&l.a, text->mem);
    do_look(&l);
    arena_destroy(&l.a);
    return l.missing;
}
