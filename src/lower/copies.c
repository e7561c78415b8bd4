/* Operators that either return their operand or copy it: reshape, contiguous, to. The storages of a
 * graph treat them as views, which is safe; if sizes and strides are known, this finds the ones
 * that copy, and they get a buffer of their own. */
#include "lower/copies.h"

#include "graph/storage.h"

static bool number(struct copies *l, sym_id v, int64_t *out)
{
    return assume_value(l->assume, v, out);
}

/* Do both have the same layout? Dimensions of size 1 do not matter. */
static enum copies_kind by_strides(struct copies *l, const struct type *a, const struct type *b)
{
    if (!a->strided || !b->strided || a->n != b->n)
        return COPIES_UNKNOWN;
    for (uint32_t i = 0; i < a->n; i++) {
        int64_t size, x, y;
        if (!number(l, a->size[i], &size) || !number(l, a->stride[i], &x) ||
            !number(l, b->stride[i], &y))
            return COPIES_UNKNOWN;
        if (size == 0)
            return COPIES_NOT;
        if (size != 1 && x != y)
            return COPIES;
    }
    return COPIES_NOT;
}

/* Can b's sizes be had by changing strides alone? From the last dimension on: contiguous dimensions
 * of a form one piece, and every piece must consist of whole dimensions of b. */
static enum copies_kind by_sizes(struct copies *l, const struct type *a, const struct type *b)
{
    uint32_t k = b->n;
    int64_t piece = 1, expect = -1, size, stride, of_b;

    if (!a->strided)
        return COPIES_UNKNOWN;
    for (uint32_t i = a->n; i > 0; i--) {
        if (!number(l, a->size[i - 1], &size) || !number(l, a->stride[i - 1], &stride))
            return COPIES_UNKNOWN;
        if (size == 0)
            return COPIES_NOT;
        if (size == 1)
            continue;
        bool gap = expect >= 0 && stride != expect;
        if (gap && piece != 1)
            return COPIES; /* the piece that ends here does not consist of whole dimensions of b */
        if (!size_mul(piece, size, &piece) || !size_mul(stride, size, &expect))
            return COPIES_UNKNOWN;
        while (k > 0 && piece > 1) {
            if (!number(l, b->size[k - 1], &of_b) || of_b <= 0)
                return COPIES_UNKNOWN;
            if (piece % of_b != 0)
                break;
            piece /= of_b;
            k--;
        }
    }
    return piece == 1 ? COPIES_NOT : COPIES;
}

/* to(…, copy=True) */
static bool must_copy(struct copies *l, const struct fx_node *x)
{
    const struct op_sig *sig = sigs_get(l->sigs, x->op);
    struct operand o = {.v = NULL};

    while (operand_next(l->g, x, sig, &o))
        if (o.param != NULL && strcmp(o.param->name, "copy") == 0)
            return o.v->kind == TUCK_V_BOOL && tuck_value_int(o.v) != 0;
    return false;
}

static enum copies_kind copies(struct copies *l, const struct fx_node *x, const struct op_row *row,
                               type_id from, type_id to)
{
    struct type a = *type_at(&l->g->store->type, from), b = *type_at(&l->g->store->type, to);

    if (a.kind != TYPE_TENSOR || b.kind != TYPE_TENSOR)
        return COPIES_UNKNOWN;
    switch ((enum op_shape)row->shape) {
    case OP_SHAPE_reshape:
    case OP_SHAPE_flatten: return by_sizes(l, &a, &b);
    case OP_SHAPE_contiguous: return by_strides(l, &a, &b);
    case OP_SHAPE_to:
        if (a.dtype != b.dtype || a.device != b.device || must_copy(l, x))
            return COPIES;
        return by_strides(l, &a, &b);
    default: return COPIES_UNKNOWN;
    }
}

static bool is_complex(const struct copies *l, uint32_t n)
{
    const struct type *t = type_at(&l->g->store->type, node_type(l->g, n));

    return t->kind == TYPE_TENSOR && dtype_at((enum dtype)t->dtype)->category == DTYPE_IS_COMPLEX;
}

static bool is_conjugate(const struct copies *l, uint32_t n, const struct op_row *row)
{
    return row->cls == OP_VIEW && row->kernel == OP_KERNEL_conj && is_complex(l, n);
}

/* By storage_root(). */
static void note_write(void *ctx, uint32_t storage, enum access how)
{
    bool *written = ctx;

    written[storage] |= how == ACCESS_WRITE;
}

/* torch marks a view as conjugated; without such marks it is computed. That is the same as long as
 * nobody writes the memory afterwards, also as real numbers. By node: may it be computed? */
static const bool *find_conjugates(const struct copies *l, struct arena *a)
{
    const tuck_graph *g = l->g;
    bool *may = NULL, any = false;
    struct storages s;

    for_each_node (g, n)
        any |= l->conjugates && is_conjugate(l, n, op_at(node_op(g, n)));
    if (!any)
        return NULL;
    storages_build(g, a, &s);
    bool *written = arena_zeroed(a, (size_t)s.n + 1); /* by nodes further down */
    may = arena_zeroed(a, g->node.len * sizeof(*may));
    for (uint32_t n = g->node.at[0].prev; n != 0; n = node_at(g, n)->prev) {
        if (is_conjugate(l, n, op_at(node_op(g, n))))
            may[n] = s.count[n] == 1 && !written[storage_root(&s, s.of[s.first[n]])];
        if (node_may_write(g, n))
            storage_accesses(&s, n, note_write, written);
    }
    return may;
}

void copies_find(struct copies *l, struct arena *a)
{
    const tuck_graph *g = l->g;
    const bool *conjugates = find_conjugates(l, a);

    l->kind = arena_zeroed(a, g->node.len * sizeof(*l->kind));
    l->copies = arena_zeroed(a, g->node.len * sizeof(*l->copies));
    for_each_node (g, n) {
        const struct fx_node *x = acting_call(g, n, a);
        const struct op_row *row = op_at(x == node_at(g, n) ? node_op(g, n) : x->op);

        if (conjugates != NULL && conjugates[n]) {
            l->kind[n] = COPIES;
            l->copies[n] = true;
            continue;
        }
        if (!(row->flags & OP_F_MAYBE) || (row->flags & OP_F_MUTATES) ||
            (row->cls != OP_VIEW && row->cls != OP_COPY) || call_node(g, x, 0) == 0)
            continue;
        enum copies_kind c = copies(l, x, row, node_type(g, call_node(g, x, 0)), node_type(g, n));
        l->kind[n] = (uint8_t)c;
        l->copies[n] = c == COPIES;
    }
}
