/* Shape rules of indexing: reads at positions given by tensors. */
#include "infer/rule.h"

static bool fresh_of(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    return out_tensor(x, (enum dtype)t->dtype, n, size, NULL, t->device);
}

/* ---- x[i, None, j] ---- */

static bool is_mask(const struct type *t)
{
    return t->dtype == DTYPE_B8 || t->dtype == DTYPE_U8;
}

/* One entry per dimension of t: the tensor that indexes it, or NULL. A mask of k dimensions counts
 * as k vectors with as many elements as it has ones. */
static bool spread_indices(struct infer *x, const struct type *t, const struct type *const *index,
                           const bool *absent, uint32_t n, const struct type **out)
{
    uint32_t d = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t span = absent[i] || !is_mask(index[i]) ? 1 : index[i]->n;
        if (d + span > t->n)
            return false;
        if (absent[i]) {
            d++;
            continue;
        }
        const struct type *use = index[i];
        if (is_mask(use)) {
            struct type *ones = arena_alloc(x->arena, sizeof(*ones));
            sym_id *count = new_syms(x, 1);
            *ones = *use;
            *count = fresh_symbol(x);
            ones->n = 1;
            ones->size = count;
            use = ones;
        }
        for (uint32_t k = 0; k < span; k++)
            out[d++] = use;
    }
    return true;
}

/* Sizes and strides of t indexed: the indexed dimensions are replaced by those of the indices, in
 * place if they are adjacent, else in front. Strides are those of a loop over t in which the new
 * dimensions do not move. */
static type_id indexed(struct infer *x, const struct type *t, const struct type *const *index)
{
    uint32_t first = t->n, last = 0, n_index = 0, n_new, n = 0, k = 0;
    const struct type **list = arena_array(x->arena, const struct type *, t->n);
    const sym_id *new_size;

    for (uint32_t d = 0; d < t->n; d++)
        if (index[d] != NULL) {
            first = d < first ? d : first;
            last = d;
            list[n_index++] = index[d];
        }
    if (n_index == 0 || !t->strided || !broadcast_sizes(x, list, n_index, &n_new, &new_size))
        return 0;
    /* PyTorch's index.Tensor decides by the last index and does not broadcast one on the cpu
     * without dimensions. */
    bool empty = is_zero(x, numel(x, t));
    if ((x->row->flags & OP_F_DATADEP || empty) && list[n_index - 1]->n == 0 &&
        is_cpu(x, list[n_index - 1]->device))
        n_new = 0;
    bool adjacent = last - first + 1 == n_index;
    uint32_t at = adjacent ? first : 0, n_out = t->n - n_index + n_new;
    sym_id *size = new_syms(x, n_out), *stride = new_syms(x, n_out);
    for (uint32_t i = 0; i < n_out; i++) {
        if (i >= at && i < at + n_new) {
            size[i] = new_size[k++];
            stride[i] = num(x, 0);
            continue;
        }
        while (index[n] != NULL)
            n++;
        size[i] = t->size[n];
        stride[i] = t->stride[n++];
    }
    if (empty)
        return new_tensor(x, (enum dtype)t->dtype, n_out, size, NULL, t->device);
    /* If the indices have no dimensions, PyTorch uses the first strides. */
    for (uint32_t i = 0, d = 0, rest = 0; n_new == 0 && i < n_out; i++) {
        if (adjacent) {
            stride[i] = t->stride[i];
            continue;
        }
        while (i < n_index && index[d] == NULL)
            d++;
        while (i >= n_index && index[rest] != NULL)
            rest++;
        stride[i] = t->stride[i < n_index ? d++ : rest++];
    }
    struct type *seen = arena_alloc(x->arena, sizeof(*seen));
    *seen = *t;
    seen->n = n_out;
    seen->size = size;
    seen->stride = stride;
    const struct type *one = seen;
    return new_tensor(x, (enum dtype)t->dtype, n_out, size,
                      reference_strides(x, &one, 1, n_out, size), t->device);
}

bool shape_index(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *mask = in_tensor(x, in_param(x, "mask"));
    int p = in_param(x, "indices");
    const struct type *const *index;
    uint32_t n, n_dim;

    if (t == NULL || !in_tensors(x, p, &index, &n) || x->arg[p]->kind == TUCK_V_NODE)
        return false;
    bool *absent = arena_zeroed(x->arena, n + 1);
    const tuck_value *v = x->arg[p] + 1;
    for (uint32_t i = 0; i < n; i++, v = value_next(v)) {
        absent[i] = v->kind == TUCK_V_NONE;
        if (!absent[i] && index[i] == NULL)
            return false; /* unknown */
    }
    const struct type **by_dim = arena_zeroed(x->arena, (t->n + 1) * sizeof(*by_dim));
    if (!spread_indices(x, t, index, absent, n, by_dim))
        return false;
    type_id result = indexed(x, t, by_dim);
    if (result == 0 || in_param(x, "mask") < 0 || is_zero(x, numel(x, t)))
        return out_type(x, result);
    /* _unsafe_masked_index continues with masked_fill(~mask). */
    struct type *read = arena_alloc(x->arena, sizeof(*read));
    *read = *type_at(x->type, result);
    if (mask == NULL || !mask->strided)
        return false;
    struct type *zeros = arena_alloc(x->arena, sizeof(*zeros));
    *zeros = *mask;
    zeros->stride = reference_strides(x, &mask, 1, mask->n, mask->size);
    static const struct type number = {.kind = TYPE_TENSOR, .strided = true};
    const struct type *all[] = {zeros, &number, read};
    const sym_id *size;
    if (!broadcast_sizes(x, all, 3, &n_dim, &size))
        return false;
    return out_contiguous(x, t, n_dim, size, reference_strides(x, all, 3, n_dim, size));
}

/* ---- along one dimension ---- */

bool shape_gather(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *index = in_tensor(x, 2);

    return t != NULL && index != NULL && fresh_of(x, t, index->n, index->size);
}

bool shape_index_select(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *index = in_tensor(x, 2);
    int64_t dim;
    uint32_t d;

    if (t == NULL || index == NULL || index->n > 1 || !in_int(x, 1, &dim) ||
        !wrap_dim(dim, t->n, &d))
        return false;
    if (t->n == 0)
        return fresh_of(x, t, 0, t->size);
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    size[d] = numel(x, index);
    return fresh_of(x, t, t->n, size);
}

bool shape_take(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *index = in_tensor(x, 1);
    int p_dim = in_param(x, "dim");
    int64_t dim;
    uint32_t d;

    if (t == NULL || index == NULL)
        return false;
    if (p_dim < 0)
        return fresh_of(x, t, index->n, index->size);
    if (!in_given(x, p_dim)) { /* take_along_dim over all elements */
        sym_id all = numel(x, index);
        return fresh_of(x, t, 1, &all);
    }
    if (!in_int(x, p_dim, &dim) || t->n != index->n || !wrap_dim(dim, t->n, &d))
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i == d || is_one(x, t->size[i]) ? index->size[i] : t->size[i];
    return fresh_of(x, t, t->n, size);
}

/* ---- embeddings ---- */

bool shape_embedding(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *index = in_tensor(x, 1);

    if (t == NULL || index == NULL || t->n != 2)
        return false;
    sym_id *size = new_syms(x, index->n + 1);
    for (uint32_t i = 0; i < index->n; i++)
        size[i] = index->size[i];
    size[index->n] = t->size[1];
    return fresh_of(x, t, index->n + 1, size);
}

bool shape_embedding_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0);
    sym_id rows;

    if (grad == NULL || grad->n == 0 || !in_sym(x, 2, &rows))
        return false;
    return fresh_of(x, grad, 2, (sym_id[]){rows, grad->size[grad->n - 1]});
}

bool shape_embedding_bag_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0);
    int sparse = in_param(x, "sparse");
    bool is_sparse = false;
    sym_id rows;

    if (grad == NULL || grad->n != 2 || !in_sym(x, in_param(x, "num_weights"), &rows) ||
        (sparse >= 0 && (!in_bool(x, sparse, &is_sparse) || is_sparse)))
        return false;
    return fresh_of(x, grad, 2, (sym_id[]){rows, grad->size[1]});
}

bool shape_masked_scatter(struct infer *x)
{
    const struct type *pair[] = {in_tensor(x, 0), in_tensor(x, 1)};
    const sym_id *size;
    uint32_t n;

    if (pair[0] == NULL || pair[1] == NULL || !broadcast_sizes(x, pair, 2, &n, &size))
        return false;
    return fresh_of(x, pair[0], n, size);
}

bool shape_index_fill(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || !t->strided)
        return false;
    return out_tensor(x, (enum dtype)t->dtype, t->n, t->size, is_dense(x, t) ? t->stride : NULL,
                      t->device);
}

/* The sums, each index's bag, the bags' sizes, and for mode max the position of the largest. The
 * bag is not needed for a sum of dense rows in a common dtype. */
static bool bags_of(struct infer *x, bool forward_only)
{
    enum { SUM, MEAN, MAX };
    const struct type *t = in_tensor(x, 0), *index = in_tensor(x, 1), *start = in_tensor(x, 2);
    int64_t mode, skip = -1;
    bool last;

    if (t == NULL || index == NULL || start == NULL || t->n != 2 || index->n != 1 ||
        start->n != 1 || !t->strided || !in_int(x, in_param(x, "mode"), &mode) ||
        !in_bool(x, in_param(x, "include_last_offset"), &last))
        return false;
    if (in_given(x, in_param(x, "per_sample_weights")) || !is_cpu(x, t->device) || mode > MAX ||
        (in_param(x, "padding_idx") >= 0 && !in_int(x, in_param(x, "padding_idx"), &skip)))
        return false;
    sym_id bags = last ? sym_sub(x->sym, start->size[0], num(x, 1)) : start->size[0];
    sym_id one = num(x, 1), none = num(x, 0), rows[2] = {bags, t->size[1]};
    enum dtype dtype = (enum dtype)index->dtype;
    bool fast = is_one(x, t->stride[1]) && skip < 0 &&
                (t->dtype == DTYPE_F32 || t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16);
    const sym_id *stride = contiguous_strides(x, 2, rows);
    type_id item[4];

    item[0] = new_tensor(x, (enum dtype)t->dtype, 2, rows, stride, t->device);
    item[1] = new_tensor(x, dtype, 1, mode == SUM && fast ? &none : index->size, &one, t->device);
    item[2] = new_tensor(x, dtype, 1, forward_only ? start->size : &bags, &one, t->device);
    item[3] = mode == MAX ? new_tensor(x, dtype, 2, rows, stride, t->device)
                          : new_tensor(x, dtype, 1, &bags, &one, t->device);
    return out_list(x, item, 4);
}

bool shape_embedding_bag(struct infer *x)
{
    return bags_of(x, false);
}

bool shape_embedding_bag_forward(struct infer *x)
{
    return bags_of(x, true);
}

/* ---- data-dependent sizes ---- */

bool shape_masked_select(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id count = fresh_symbol(x);

    return t != NULL && fresh_of(x, t, 1, &count);
}

/* One row per non-zero element, stored column by column; or a list of the columns. */
bool shape_nonzero(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id count, one = num(x, 1);

    if (t == NULL)
        return false;
    count = is_zero(x, numel(x, t)) ? num(x, 0) : fresh_symbol(x);
    if (x->sig->results[0].depth == 0)
        return out_tensor(x, DTYPE_I64, 2, (sym_id[]){count, num(x, t->n)}, (sym_id[]){one, count},
                          t->device);
    uint32_t n = t->n ? t->n : 1;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++)
        item[i] = new_tensor(x, DTYPE_I64, 1, &count, &one, t->device);
    return out_list(x, item, n);
}

bool shape_nonzero_static(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id rows;

    if (t == NULL || !in_sym(x, 1, &rows))
        return false;
    sym_id size[] = {rows, num(x, t->n)}, by_column[] = {num(x, 1), rows};
    return out_tensor(x, DTYPE_I64, 2, size, is_cpu(x, t->device) ? NULL : by_column, t->device);
}

/* A comparison of the operand, with one more dimension, and a vector of the classes. */
bool shape_one_hot(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id classes, one = num(x, 1);

    if (t == NULL || !t->strided || !in_sym(x, 1, &classes) || sym_is_int(x->sym, classes, -1))
        return false;
    uint32_t n = t->n + 1;
    sym_id *size = new_syms(x, n), *wide = new_syms(x, n), *stride = new_syms(x, n);
    for (uint32_t i = 0; i < n; i++) {
        size[i] = i < t->n ? t->size[i] : classes;
        wide[i] = i < t->n ? t->size[i] : one;
        stride[i] = i < t->n ? t->stride[i] : one;
    }
    struct type *column = arena_alloc(x->arena, sizeof(*column)), *row;
    row = arena_alloc(x->arena, sizeof(*row));
    *column = *row = *t;
    column->n = n;
    column->size = wide;
    column->stride = stride;
    row->n = 1;
    row->size = &classes;
    row->stride = &one;
    const struct type *both[] = {column, row};
    return out_tensor(x, DTYPE_I64, n, size, reference_strides(x, both, 2, n, size), t->device);
}
