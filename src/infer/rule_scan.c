/* Shape rules of scans, sorts, searches, dropout, and numbers from lists. */
#include "infer/rule.h"

/* Sums and products of integers are int64. */
bool shape_scan(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum dtype dtype;

    if (t == NULL)
        return false;
    if (op_result_alias_of(x->sig, 0) == 0)
        return out_type(x, in_type(x, 0));
    if (!in_dtype(x, in_param(x, "dtype"), &dtype)) {
        unsigned c = dtype_at((enum dtype)t->dtype)->category;
        bool whole = (c == DTYPE_IS_BOOL || c == DTYPE_IS_INT) && in_param(x, "dtype") >= 0;
        dtype = whole ? DTYPE_I64 : (enum dtype)t->dtype;
    }
    return out_tensor(x, dtype, t->n, t->size, NULL, t->device);
}

/* Another dtype in the order of t's strides; unknown strides stay unknown. */
static type_id in_order_of(struct infer *x, const struct type *t, enum dtype dtype)
{
    return type_tensor(x->type, dtype, t->n, t->size, reference_strides(x, &t, 1, t->n, t->size),
                       t->device);
}

/* A scan's results are contiguous, a sort's keep the order of strides. */
bool shape_sort(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    bool scan = x->row->cls == OP_SCAN;
    type_id item[2];
    for (int i = 0; i < 2; i++) {
        enum dtype d = i == 0 ? (enum dtype)t->dtype : DTYPE_I64;
        item[i] = scan ? new_tensor(x, d, t->n, t->size, NULL, t->device) : in_order_of(x, t, d);
    }
    return out_list(x, item, 2);
}

bool shape_argsort(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_type(x, in_order_of(x, t, DTYPE_I64));
}

bool shape_topk(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id k;
    int64_t dim;
    uint32_t d;

    if (t == NULL || !in_sym(x, 1, &k) || !in_int(x, 2, &dim) || !wrap_dim(dim, t->n, &d))
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i == d ? k : t->size[i];
    type_id item[2] = {new_tensor(x, (enum dtype)t->dtype, t->n, size, NULL, t->device),
                       new_tensor(x, DTYPE_I64, t->n, size, NULL, t->device)};
    return out_list(x, item, 2);
}

bool shape_searchsorted(struct infer *x)
{
    int p = in_param(x, "self"), q = in_param(x, "boundaries");
    const struct type *t = in_tensor(x, p);
    const struct type *table = in_tensor(x, q >= 0 ? q : in_param(x, "sorted_sequence"));
    enum dtype_category kind;
    bool narrow = false;

    if (!in_bool(x, in_param(x, "out_int32"), &narrow) || table == NULL)
        return false;
    if (t == NULL && !in_number(x, p, &kind))
        return false;
    return out_tensor(x, narrow ? DTYPE_I32 : DTYPE_I64, t ? t->n : 0, t ? t->size : NULL, NULL,
                      t ? t->device : table->device);
}

bool shape_histc(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id bins;

    return t != NULL && in_sym(x, in_param(x, "bins"), &bins) &&
           out_tensor(x, (enum dtype)t->dtype, 1, &bins, NULL, t->device);
}

/* If nothing is dropped, the operand itself; otherwise mask * input * scale, where the mask's
 * layout comes first. */
bool shape_native_dropout_backward(struct infer *x)
{
    const struct type *pair[] = {in_tensor(x, 0), in_tensor(x, 1)}, *grad = pair[0];
    const sym_id *size;
    uint32_t n;

    if (grad == NULL || pair[1] == NULL || !grad->strided ||
        !dtype_is_float((enum dtype)grad->dtype) || !broadcast_sizes(x, pair, 2, &n, &size))
        return false;
    bool last = suggested_format(x, grad) != FORMAT_CONTIGUOUS && n == grad->n;
    return out_tensor(x, (enum dtype)grad->dtype, n, size,
                      last ? channels_last_strides(x, n, size) : NULL, grad->device);
}

bool shape_native_dropout(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    bool train = true;
    sym_id p;
    struct sym_num rate;

    if (t == NULL || !in_sym(x, 1, &p) || !sym_as_number(x->sym, p, &rate))
        return false;
    if (in_given(x, 2) && !in_bool(x, 2, &train))
        return false;
    double drop = rate.kind == SYM_T_FLOAT ? rate.f : (double)rate.i;
    type_id item[2] = {in_type(x, 0), in_order_of(x, t, DTYPE_B8)};
    if (!train || drop == 0)
        return out_list(x, item, 2);
    if (!t->strided || drop == 1) {
        item[0] = in_order_of(x, t, (enum dtype)t->dtype);
        return out_list(x, item, 2);
    }
    struct type draw = *t, mask = *t, product = *t, wide = *t;
    const struct type *one = t, *pair[2] = {&mask, &wide};
    draw.stride = reference_strides(x, &one, 1, t->n, t->size);
    one = &draw;
    mask.stride = reference_strides(x, &one, 1, t->n, t->size);
    if (t->dtype == DTYPE_F16 || t->dtype == DTYPE_BF16)
        wide.stride = like_strides(x, t, FORMAT_PRESERVE);
    product.stride = reference_strides(x, pair, 2, t->n, t->size);
    one = &product;
    item[0] = in_order_of(x, one, (enum dtype)t->dtype);
    one = &draw;
    item[1] = in_order_of(x, one, DTYPE_B8);
    return out_list(x, item, 2);
}

bool shape_multinomial(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id size[2];

    if (t == NULL || t->n < 1 || t->n > 2)
        return false;
    size[0] = t->size[0];
    return in_sym(x, 1, &size[t->n - 1]) && out_tensor(x, DTYPE_I64, t->n, size, NULL, t->device);
}

/* ---- lists ---- */

bool shape_foreach_reduce(struct infer *x)
{
    const struct type *const *t;
    uint32_t n;
    enum dtype given;
    bool has_dtype = in_dtype(x, in_param(x, "dtype"), &given);

    if (!in_tensors(x, 0, &t, &n))
        return false;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++) {
        enum dtype d = t[i] == NULL ? DTYPE_NONE : has_dtype ? given : (enum dtype)t[i]->dtype;
        /* Norms are real; the largest value keeps its dtype. */
        item[i] = t[i] == NULL ? 0
                               : new_tensor(x, in_param(x, "ord") >= 0 ? dtype_real_of(d) : d, 0,
                                            NULL, NULL, t[i]->device);
    }
    return out_list(x, item, n);
}
