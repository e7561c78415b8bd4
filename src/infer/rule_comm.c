/* Shape rules of communication: collectives, operators fused with them, and the buffers around
 * them. */
#include "infer/rule.h"

/* The group's size, from the operand or from the group. */
static bool group_size(struct infer *x, sym_id *out)
{
    int64_t n;

    if (in_sym(x, in_param(x, "group_size"), out))
        return true;
    if (!in_group_size(x, &n))
        return false;
    *out = num(x, n);
    return true;
}

/* t with a dimension multiplied or divided by the group's size, new and contiguous. */
static type_id scaled(struct infer *x, const struct type *t, uint32_t d, sym_id by, bool up)
{
    sym_id *size = new_syms(x, t->n);

    if (d >= t->n)
        return 0;
    memcpy(size, t->size, t->n * sizeof(*size));
    size[d] = up ? sym_mul(x->sym, size[d], by) : sym_floordiv(x->sym, size[d], by);
    return new_tensor(x, (enum dtype)t->dtype, t->n, size, contiguous_strides(x, t->n, size),
                      t->device);
}

static bool scaled_one(struct infer *x, bool up)
{
    const struct type *t = in_tensor(x, 0);
    sym_id by;

    if (t != NULL && t->n == 0 && up && group_size(x, &by)) /* scalars become a vector */
        return out_tensor(x, (enum dtype)t->dtype, 1, &by, NULL, t->device);
    return t != NULL && group_size(x, &by) && out_type(x, scaled(x, t, 0, by, up));
}

static bool scaled_list(struct infer *x, bool up)
{
    const struct type *const *t;
    uint32_t n;
    sym_id by;

    if (!in_tensors(x, 0, &t, &n) || !group_size(x, &by))
        return false;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++)
        item[i] = t[i] ? scaled(x, t[i], 0, by, up) : 0;
    return out_list(x, item, n);
}

bool shape_all_gather(struct infer *x)
{
    return scaled_one(x, true);
}

bool shape_all_gather_list(struct infer *x)
{
    return scaled_list(x, true);
}

bool shape_all_gather_low(struct infer *x)
{
    return scaled_one(x, true);
}

bool shape_reduce_scatter(struct infer *x)
{
    return scaled_one(x, false);
}

bool shape_reduce_scatter_list(struct infer *x)
{
    return scaled_list(x, false);
}

bool shape_reduce_scatter_low(struct infer *x)
{
    return scaled_one(x, false);
}

bool shape_all_to_all(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *split;
    uint32_t n;

    if (t == NULL || t->n == 0)
        return false;
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    if (in_given(x, 1)) {
        if (!in_syms(x, 1, &split, &n))
            return false;
        size[0] = num(x, 0);
        for (uint32_t i = 0; i < n; i++)
            size[0] = sym_add(x->sym, size[0], split[i]);
    }
    return out_tensor(x, (enum dtype)t->dtype, t->n, size, NULL, t->device);
}

bool shape_shard_dim_alltoall(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t gather, shard;
    uint32_t a, b;
    sym_id by;

    if (t == NULL || t->n == 0 || !in_int(x, 1, &gather) || !in_int(x, 2, &shard) ||
        !group_size(x, &by) || !wrap_dim(gather, t->n, &a) || !wrap_dim(shard, t->n, &b))
        return false;
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    size[a] = sym_mul(x->sym, size[a], by);
    /* A slice, copied unless it is already contiguous. */
    const sym_id *whole = contiguous_strides(x, t->n, size);
    size[b] = sym_floordiv(x->sym, size[b], by);
    return out_contiguous(x, t, t->n, size, whole);
}

/* ---- sends and receives ---- */

/* An empty result to wait for. */
static type_id sent(struct infer *x, const struct type *t)
{
    sym_id none = num(x, 0), one = num(x, 1);

    return new_tensor(x, (enum dtype)t->dtype, 1, &none, &one, t->device);
}

bool shape_isend(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_type(x, sent(x, t));
}

bool shape_batch_p2p(struct infer *x)
{
    int p_kinds = in_param(x, "op_list"), p_tensors = in_param(x, "tensors");
    const tuck_value *kinds = p_kinds >= 0 ? x->arg[p_kinds] : NULL, *v, *given;
    const struct type *const *t;
    uint32_t n;

    if (kinds == NULL || !value_is_container(kinds) || !in_tensors(x, p_tensors, &t, &n) ||
        kinds->a != n || x->arg[p_tensors]->kind == TUCK_V_NODE)
        return false;
    type_id *item = arena_array(x->arena, type_id, n);
    v = kinds + 1;
    given = x->arg[p_tensors] + 1;
    for (uint32_t i = 0; i < n; i++, v = value_next(v), given = value_next(given)) {
        if (t[i] == NULL || v->kind != TUCK_V_STR)
            return false;
        bool send = strcmp(str_text(&x->store->str, v->a), "isend") == 0;
        item[i] = send ? sent(x, t[i]) : x->types[given->a];
    }
    return out_list(x, item, n);
}

/* ---- fused with matrix products ---- */

/* Strides of a result gathered along d: that dimension is outermost. */
static sym_id *gathered_strides(struct infer *x, uint32_t n, const sym_id *size, uint32_t d)
{
    sym_id *stride = new_syms(x, n), at = num(x, 1);

    for (uint32_t i = n; i > 0; i--)
        if (i - 1 != d) {
            stride[i - 1] = at;
            at = sym_mul(x->sym, at, size[i - 1]);
        }
    stride[d] = at;
    return stride;
}

/* [..., k] x [k, n] */
static sym_id *product_size(struct infer *x, const struct type *a, const struct type *b)
{
    if (a->n < 2 || b->n != 2)
        return NULL;
    sym_id *size = new_syms(x, a->n);
    memcpy(size, a->size, a->n * sizeof(*size));
    size[a->n - 1] = b->size[1];
    return size;
}

bool shape_fused_ag_mm(struct infer *x)
{
    const struct type *a = in_tensor(x, 0);
    const struct type *const *b;
    int64_t dim;
    uint32_t n, d;
    sym_id by;
    bool keep = true;

    if (a == NULL || !in_tensors(x, 1, &b, &n) || !in_int(x, in_param(x, "gather_dim"), &dim) ||
        !wrap_dim(dim, a->n, &d) || a->n == 0 || !group_size(x, &by))
        return false;
    if (in_param(x, "return_A") >= 0 && !in_bool(x, in_param(x, "return_A"), &keep))
        return false;
    sym_id *size = new_syms(x, a->n);
    memcpy(size, a->size, a->n * sizeof(*size));
    size[d] = sym_mul(x->sym, size[d], by);
    struct type all = *a;
    all.size = size;
    type_id *item = arena_array(x->arena, type_id, n), result[2];
    result[0] = keep ? new_tensor(x, (enum dtype)a->dtype, a->n, size,
                                  gathered_strides(x, a->n, size, d), a->device)
                     : type_none(x->type);
    int p_dtypes = in_param(x, "out_dtypes");
    const tuck_value *dtypes = p_dtypes >= 0 ? x->arg[p_dtypes] : NULL;
    const tuck_value *v = dtypes != NULL && value_is_container(dtypes) ? dtypes + 1 : NULL;
    for (uint32_t i = 0; i < n; i++) {
        sym_id *out = b[i] ? product_size(x, &all, b[i]) : NULL;
        enum dtype dtype = (enum dtype)a->dtype;
        if (v != NULL && i < dtypes->a) {
            const struct str *name = str_at(&x->store->str, v->a);
            if (v->kind == TUCK_V_DTYPE)
                dtype = dtype_by_name(name->at, name->len);
            v = value_next(v);
        }
        item[i] = out ? new_tensor(x, dtype, a->n, out, gathered_strides(x, a->n, out, d),
                                   a->device)
                      : 0;
    }
    result[1] = type_list(x->type, item, n);
    return out_list(x, result, 2);
}

bool shape_fused_mm_rs(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);
    int64_t dim;
    uint32_t d;
    sym_id by, *size;

    if (a == NULL || b == NULL || !in_int(x, in_param(x, "scatter_dim"), &dim) ||
        !wrap_dim(dim, a->n, &d) || !group_size(x, &by) || (size = product_size(x, a, b)) == NULL)
        return false;
    size[d] = sym_floordiv(x->sym, size[d], by);
    return out_tensor(x, (enum dtype)a->dtype, a->n, size, NULL, a->device);
}

bool shape_fused_scaled_mm_rs(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);
    int p_shape = in_param(x, "output_shape");
    enum dtype dtype = DTYPE_NONE;
    const sym_id *given;
    int64_t dim;
    uint32_t n, d;
    sym_id by, *size;

    if (a == NULL || b == NULL || !in_int(x, in_param(x, "orig_scatter_dim"), &dim) ||
        !group_size(x, &by) || (size = product_size(x, a, b)) == NULL)
        return false;
    n = a->n;
    if (in_given(x, p_shape)) {
        if (!in_syms(x, p_shape, &given, &n))
            return false;
        size = new_syms(x, n);
        memcpy(size, given, n * sizeof(*size));
    }
    if (n == 0 || !wrap_dim(dim, n, &d))
        return false;
    if (!in_dtype(x, in_param(x, "out_dtype"), &dtype))
        dtype = (enum dtype)a->dtype;
    size[d] = sym_floordiv(x->sym, size[d], by);
    return out_tensor(x, dtype, n, size, NULL, a->device);
}

/* ---- flat buffers ---- */

/* This rank's part of the buffer, and the buffer. */
bool shape_all_gather_copy_in(struct infer *x)
{
    const struct type *buffer = in_tensor(x, 1);
    sym_id length;

    if (buffer == NULL || buffer->n != 1 || !in_sym(x, 3, &length))
        return false;
    type_id part = new_tensor(x, (enum dtype)buffer->dtype, 1, &length, buffer->stride,
                              buffer->device);
    return out_list(x, (type_id[]){part, in_type(x, 1)}, 2);
}

/* The same up to torch 2.6: the buffer is made here, of the given dtype, for all ranks. */
bool shape_all_gather_copy_in_new(struct infer *x)
{
    sym_id length, by;
    enum dtype dtype;
    str_id device;

    if (!in_sym(x, in_param(x, "all_gather_input_numel"), &length) ||
        !in_sym(x, in_param(x, "world_size"), &by) || !in_dtype(x, in_param(x, "dtype"), &dtype) ||
        !in_device(x, in_param(x, "device"), &device))
        return false;
    sym_id whole = sym_mul(x->sym, length, by);
    type_id part = new_tensor(x, dtype, 1, &length, NULL, device);
    return out_list(x, (type_id[]){part, new_tensor(x, dtype, 1, &whole, NULL, device)}, 2);
}

/* The dtype that a number in out_dtype_ints of torch 2.13 means. */
static enum dtype dtype_by_index(int64_t index)
{
    for (int d = DTYPE_NONE + 1; d < DTYPE_END; d++)
        if (dtype_at((enum dtype)d)->index_2_13 == index)
            return (enum dtype)d;
    return DTYPE_NONE;
}

/* Every input in its output dtype, counted in elements of the buffer's dtype, times the number of
 * ranks. */
bool shape_bucket_all_gather(struct infer *x)
{
    const struct type *const *t;
    const int64_t *index;
    enum dtype dtype;
    sym_id total = num(x, 0), by;
    uint32_t n, n_index;

    if (!in_tensors(x, 0, &t, &n) || n == 0 || !in_dtype(x, in_param(x, "dtype"), &dtype) ||
        !in_ints(x, in_param(x, "out_dtype_ints"), &index, &n_index) || n_index != n ||
        !group_size(x, &by))
        return false;
    for (uint32_t i = 0; i < n; i++) {
        int64_t bytes = dtype_at(dtype_by_index(index[i]))->bytes;
        if (t[i] == NULL || bytes == 0)
            return false;
        sym_id length = sym_mul(x->sym, numel(x, t[i]), num(x, bytes));
        total = sym_add(x->sym, total,
                        sym_floordiv(x->sym, length, num(x, dtype_at(dtype)->bytes)));
    }
    total = sym_mul(x->sym, total, by);
    return out_tensor(x, dtype, 1, &total, NULL, t[0]->device);
}

bool shape_bucket_reduce_scatter(struct infer *x)
{
    const struct type *const *t;
    enum dtype dtype = DTYPE_NONE;
    sym_id total = num(x, 0);
    uint32_t n;

    if (!in_tensors(x, 0, &t, &n) || n == 0)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (t[i] == NULL)
            return false;
        dtype = i == 0 ? (enum dtype)t[i]->dtype : dtype_promote(dtype, (enum dtype)t[i]->dtype);
        total = sym_add(x->sym, total, numel(x, t[i]));
    }
    return out_tensor(x, dtype, 1, &total, NULL, t[0]->device);
}

/* The existing gradient or the new one; on fake tensors either is a copy without gaps. */
bool shape_accumulate_grad(struct infer *x)
{
    int p = in_given(x, 1) ? 1 : 2;
    const struct type *t = in_tensor(x, p);

    if (!in_given(x, p))
        return out_none(x);
    return t != NULL && out_type(x, new_like(x, t, (enum dtype)t->dtype));
}
