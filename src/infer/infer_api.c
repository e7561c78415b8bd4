/* Public functions of inference. */
#include "graph/symbol_values.h"
#include "infer/infer.h"

struct infer_args {
    tuck_graph *g;
    struct infer_options options;
    tuck_diags *diags;
};

static void do_infer(void *p)
{
    struct infer_args *a = p;

    infer_graph(a->g, &a->options, a->diags);
}

tuck_status tuck_graph_infer(tuck_graph *g, tuck_check check, tuck_diags *diags)
{
    if (g == NULL)
        return TUCK_EINVAL;
    struct infer_args a = {.g = g, .options = {.check = check}, .diags = diags};

    return mem_guard(&g->store->mem, do_infer, &a) ? TUCK_OK : TUCK_ENOMEM;
}

struct describe_args {
    const tuck_graph *g;
    uint32_t node;
};

static void describe(struct buf *b, const void *arg)
{
    const struct describe_args *a = arg;

    type_print(a->g->store, node_type(a->g, a->node), b, true, true);
}

tuck_status tuck_node_type(const tuck_graph *g, tuck_node n, tuck_write_fn write, void *ctx)
{
    if (g == NULL || write == NULL || !node_alive(g, n.id))
        return TUCK_EINVAL;
    return buf_print(&g->store->mem.alloc, false, write, ctx, describe,
                     &(struct describe_args){g, n.id});
}

bool tuck_node_bytes(const tuck_graph *g, tuck_node n, int64_t *out)
{
    if (g == NULL || !node_alive(g, n.id))
        return false;
    const struct type *t = type_at(&g->store->type, node_type(g, n.id));
    int64_t bytes = dtype_at((enum dtype)t->dtype)->bytes;

    if (t->kind != TYPE_TENSOR)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        int64_t size;
        if (!sym_as_int(&g->store->sym, t->size[i], &size) || !size_mul(bytes, size, &bytes))
            return false;
    }
    *out = bytes;
    return true;
}
