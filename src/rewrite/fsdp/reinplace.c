/* reinplace_fsdp_all_gather: copy-in already writes into a part of the buffer
 * that the gather fills, so the gather can work in place.
 *
 *   c = all_gather_copy_in(shards, buffer, …)   c = all_gather_copy_in(shards, buffer, …)
 *   a = all_gather_into_tensor(c[0], …)     →   a = all_gather_into_tensor_out(c[0], …, out = c[1])
 *
 * The gathered result then lives in the buffer, so nothing after the gather may use the buffer
 * under another name, and the buffer must not belong to the caller.
 */
#include "rewrite/fsdp/fsdp_passes.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/place.h"

struct reinplace {
    struct pass_run *r;
    uint32_t copy_in, gather;
    struct storages s;
    uint32_t *last; /* by storage: the last node that uses it */
    /* by storage: belongs to the caller: an input, an attribute, or returned */
    bool *callers;
    const bool *watched; /* by node, see place_watched() */
    uint32_t node;       /* the current node */
    int64_t removed;     /* removed getitems that were not used */
    int64_t done;
};

/* The copy-in, if n is item i of one; else 0. */
static uint32_t item_of(const struct reinplace *x, uint32_t n, int64_t i)
{
    const tuck_graph *g = x->r->g;
    const struct fx_node *y = node_at(g, n);

    if (op_at(y->op)->form != OP_FORM_GETITEM || y->n_args != 2 || y->vals[0].kind != TUCK_V_NODE ||
        y->vals[1].kind != TUCK_V_INT || y->vals[1].u.i != i)
        return 0;
    return fsdp_is(g, y->vals[0].a, x->copy_in) ? y->vals[0].a : 0;
}

static void remove_unused(struct reinplace *x)
{
    tuck_graph *g = x->r->g;
    uint32_t next;

    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        next = node_at(g, n)->next;
        if (node_at(g, n)->n_uses == 0 && item_of(x, n, 1) != 0 && build_may_erase(x->r, n)) {
            build_erase(x->r, n);
            x->removed++;
        }
    }
}

static void note_access(void *ctx, uint32_t storage, enum access how)
{
    struct reinplace *x = ctx;

    (void)how;
    x->last[storage] = x->node;
}

static void note_storages(struct reinplace *x)
{
    const tuck_graph *g = x->r->g;
    struct arena *a = &x->r->arena;

    storages_build(g, a, &x->s);
    x->watched = place_watched(x->r);
    size_t n_storage = (size_t)x->s.n + 1;
    x->last = arena_zeroed(a, n_storage * sizeof(*x->last));
    x->callers = arena_zeroed(a, n_storage * sizeof(*x->callers));
    for_each_node (g, n) {
        const struct fx_node *y = node_at(g, n);

        x->node = n;
        storage_accesses(&x->s, n, note_access, x);
        if (y->kind == TUCK_PLACEHOLDER || y->kind == TUCK_GET_ATTR)
            for (uint32_t k = 0; k < x->s.count[n]; k++)
                x->callers[storage_of(&x->s, n, k)] = true;
    }
}

/* Do the dtype and size of the copy-in's buffer equal those of the gathered result, as far as
 * known? */
static bool fits(const struct reinplace *x, uint32_t copy_in, uint32_t gather)
{
    const tuck_graph *g = x->r->g;
    const struct type *result = type_at(&g->store->type, node_type(g, gather));
    uint32_t b = fsdp_node_operand(x->r, copy_in, "all_gather_output");
    const struct type *buffer = b ? type_at(&g->store->type, node_type(g, b)) : NULL;

    if (buffer == NULL)
        return false;
    if (result->kind != TYPE_TENSOR || buffer->kind != TYPE_TENSOR)
        return result->kind == TYPE_UNKNOWN || buffer->kind == TYPE_UNKNOWN;
    return result->dtype == buffer->dtype && result->n == 1 && buffer->n == 1 &&
           result->size[0] == buffer->size[0];
}

/* The copy-in whose slice `gather` reads, if its buffer may hold the result; else 0 and the
 * reason. */
static uint32_t match(const struct reinplace *x, uint32_t gather, enum left_reason *why)
{
    uint32_t slice = fsdp_node_operand(x->r, gather, "input");
    uint32_t copy_in = slice ? item_of(x, slice, 0) : 0;

    *why = LEFT_PATTERN;
    if (copy_in == 0)
        return 0;
    uint32_t storage = storage_of(&x->s, slice, 0);
    if (storage == 0 || x->callers[storage] || !fits(x, copy_in, gather))
        return 0;
    *why = LEFT_LAYOUT;
    if (x->watched != NULL && x->watched[gather])
        return 0;
    *why = LEFT_SHARED;
    return x->last[storage] == gather && build_may_erase(x->r, gather) ? copy_in : 0;
}

static void rewrite(struct reinplace *x, uint32_t copy_in, uint32_t gather)
{
    struct build b = build_at(x->r, gather);
    uint32_t buffer = build_getitem(&b, copy_in, 1);

    build_call(&b, "_c10d_functional.all_gather_into_tensor_out.default");
    build_value(&b, fsdp_operand(x->r, gather, "input"));
    build_value(&b, fsdp_operand(x->r, gather, "group_size"));
    build_value(&b, fsdp_operand(x->r, gather, "group_name"));
    build_key(&b, "out");
    build_node(&b, buffer);
    uint32_t out = build_end(&b, "all_gather_into_tensor_out");
    build_replace(x->r, gather, out);
    build_erase(x->r, gather);
    x->done++;
}

static tuck_status run(struct pass_run *r, const void *options)
{
    struct reinplace x = {.r = r,
                          .copy_in = fsdp_row("fsdp.all_gather_copy_in.default"),
                          .gather = fsdp_row("_c10d_functional.all_gather_into_tensor.default")};
    tuck_graph *g = r->g;
    uint32_t next;

    (void)options;
    remove_unused(&x);
    note_storages(&x);
    for (uint32_t n = g->node.at[0].next; n != 0; n = next) {
        enum left_reason why;

        next = node_at(g, n)->next;
        if (!fsdp_is(g, n, x.gather))
            continue;
        uint32_t copy_in = match(&x, n, &why);
        if (copy_in != 0)
            rewrite(&x, copy_in, n);
        else
            report_left(r->report, g, n, why);
    }
    report_count(r->report, "all-gathers in place", x.done);
    report_count(r->report, "unused getitems removed", x.removed);
    return TUCK_OK;
}

const struct pass pass_reinplace_fsdp_all_gather = {
    .name = "reinplace_fsdp_all_gather",
    .help = "let an all-gather write into the buffer that fsdp.all_gather_copy_in filled",
    .needs = PASS_TYPES,
    .on_graph = run,
};
