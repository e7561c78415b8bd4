/* Shape rules of reductions. Results are contiguous for any layout of the operand. */
#include "infer/rule.h"

struct reduced {
    uint32_t n;
    sym_id *size, *stride;
};

enum {
    EMPTY_IS_NONE = 1, /* an empty list of dimensions reduces nothing; elsewhere it means all */
    /* kept dimensions are inserted afterwards: before a size of 0 their stride is 0 */
    PUT_BACK = 2,
};

/* The dimensions in dim= or dims=; all for None or if there is neither. */
static bool reduced_dims(struct infer *x, uint32_t n_dim, unsigned how, bool **out)
{
    int p = in_param(x, "dim"), prims = in_param(x, "dims");
    bool *drop = arena_zeroed(x->arena, (n_dim + 1) * sizeof(*drop)), all = true;

    if (p == NO_PARAM)
        p = prims;
    if (in_given(x, p)) {
        const int64_t *dim;
        uint32_t n, d;

        if (!in_ints(x, p, &dim, &n))
            return false;
        /* prims take an empty list literally, too */
        all = n == 0 && !(how & EMPTY_IS_NONE) && p != prims;
        for (uint32_t i = 0; i < n; i++) {
            if (!wrap_dim(dim[i], n_dim, &d))
                return false;
            drop[d] = true;
        }
    }
    for (uint32_t i = 0; all && i < n_dim; i++)
        drop[i] = true;
    *out = drop;
    return true;
}

static bool reduce(struct infer *x, const struct type *t, unsigned how, struct reduced *out)
{
    int keep = in_param(x, "keepdim");
    bool *drop, keepdim = false;

    if ((keep != NO_PARAM && !in_bool(x, keep, &keepdim)) || !reduced_dims(x, t->n, how, &drop))
        return false;
    *out = (struct reduced){0, new_syms(x, t->n), new_syms(x, t->n)};
    for (uint32_t i = 0; i < t->n; i++)
        if (!drop[i] || keepdim)
            out->size[out->n++] = drop[i] ? num(x, 1) : t->size[i];
    out->stride = contiguous_strides(x, out->n, out->size);
    for (uint32_t i = t->n; keepdim && how & PUT_BACK && i-- > 1;)
        if (drop[i - 1] && (is_zero(x, out->size[i]) || is_zero(x, out->stride[i])))
            out->stride[i - 1] = num(x, 0);
    return true;
}

static bool out_reduced(struct infer *x, const struct type *t, enum dtype dtype, unsigned how)
{
    struct reduced r;

    return dtype != DTYPE_NONE && reduce(x, t, how, &r) &&
           out_tensor(x, dtype, r.n, r.size, r.stride, t->device);
}

static bool out_two(struct infer *x, const struct type *t, enum dtype first, unsigned how_first,
                    enum dtype second, unsigned how_second)
{
    struct reduced a, b;

    if (!reduce(x, t, how_first, &a) || !reduce(x, t, how_second, &b))
        return false;
    type_id item[2] = {new_tensor(x, first, a.n, a.size, a.stride, t->device),
                       new_tensor(x, second, b.n, b.size, b.stride, t->device)};
    return out_list(x, item, 2);
}

/* dtype= or output_dtype=, else `otherwise`. */
static enum dtype dtype_or(struct infer *x, enum dtype otherwise)
{
    enum dtype d;

    return in_dtype(x, in_param(x, "dtype"), &d) || in_dtype(x, in_param(x, "output_dtype"), &d)
               ? d
               : otherwise;
}

static bool is_integral(enum dtype d)
{
    enum dtype_category c = (enum dtype_category)dtype_at(d)->category;

    return c == DTYPE_IS_BOOL || c == DTYPE_IS_INT || c == DTYPE_IS_UINT;
}

bool shape_reduce(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    enum dtype d = (enum dtype)t->dtype;
    return out_reduced(x, t, dtype_or(x, is_integral(d) ? DTYPE_I64 : d), PUT_BACK);
}

bool shape_mean(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, dtype_or(x, (enum dtype)t->dtype), 0);
}

bool shape_nansum(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    enum dtype d = (enum dtype)t->dtype;
    return out_reduced(x, t, dtype_or(x, is_integral(d) ? DTYPE_I64 : d), EMPTY_IS_NONE);
}

bool shape_reduce_same(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, dtype_or(x, (enum dtype)t->dtype), PUT_BACK);
}

/* For an empty list torch's fake kernel keeps all dimensions, its others none: no answer. */
bool shape_reduce_float(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dim;
    uint32_t n;

    if (t == NULL || !in_ints(x, in_param(x, "dim"), &dim, &n) || n == 0)
        return false;
    enum dtype d = (enum dtype)t->dtype;
    return out_reduced(x, t, is_integral(d) ? DTYPE_DEFAULT : d, 0);
}

/* uint8 was bool in old releases. A call that reduces nothing is element-wise. */
/* Without dimensions to reduce it is a copy. */
bool shape_reduce_any(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dim;
    uint32_t n;

    if (t != NULL && in_ints(x, in_param(x, "dim"), &dim, &n) && n == 0)
        return out_type(x, new_like(x, t, t->dtype == DTYPE_U8 ? DTYPE_U8 : DTYPE_B8));
    return shape_reduce_bool(x);
}

bool shape_reduce_bool(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dim;
    uint32_t n;

    if (t == NULL)
        return false;
    enum dtype d = t->dtype == DTYPE_U8 ? DTYPE_U8 : DTYPE_B8;
    if (in_ints(x, in_param(x, "dim"), &dim, &n) && n == 0)
        return out_type(x, as_item(x, step_one(x, t), d));
    return out_reduced(x, t, d, 0);
}

bool shape_reduce_pair(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_two(x, t, (enum dtype)t->dtype, 0, DTYPE_I64, 0);
}

bool shape_arg_reduce(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, DTYPE_I64, 0);
}

bool shape_count(struct infer *x)
{
    return shape_arg_reduce(x);
}

bool shape_aminmax(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL &&
           out_two(x, t, (enum dtype)t->dtype, PUT_BACK, (enum dtype)t->dtype, PUT_BACK);
}

static bool deviation(struct infer *x, unsigned how)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, dtype_or(x, dtype_real_of((enum dtype)t->dtype)), how);
}

static bool deviation_mean(struct infer *x, unsigned how)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL &&
           out_two(x, t, dtype_real_of((enum dtype)t->dtype), how, (enum dtype)t->dtype, 0);
}

bool shape_var(struct infer *x)
{
    return deviation(x, PUT_BACK);
}

bool shape_std(struct infer *x)
{
    return deviation(x, 0);
}

bool shape_var_mean(struct infer *x)
{
    return deviation_mean(x, PUT_BACK);
}

bool shape_std_mean(struct infer *x)
{
    return deviation_mean(x, 0);
}

/* What a norm sums: counts, absolute values and extremes need no more; for powers a root follows,
 * which is one more element-wise step. */
enum norm_kind { NORM_EXTREME, NORM_SUM, NORM_POWER };

static enum norm_kind norm_kind(struct infer *x)
{
    int p = in_param(x, "ord");
    sym_id ord;
    struct sym_num v;

    if (p == NO_PARAM)
        p = in_param(x, "p");
    if (!in_given(x, p))
        return NORM_POWER; /* 2 */
    if (!in_sym(x, p, &ord) || !sym_as_number(x->sym, ord, &v))
        return NORM_EXTREME; /* inf */
    double value = v.kind == SYM_T_FLOAT ? v.f : (double)v.i;
    return value == 0 ? NORM_EXTREME : value == 1 ? NORM_SUM : NORM_POWER;
}

/* A norm over dimensions of size 1 is the absolute value, sometimes in its operand's layout. */
bool shape_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum norm_kind kind = norm_kind(x);
    struct reduced r;
    bool *drop, trivial = kind != NORM_EXTREME;

    if (t == NULL || !reduced_dims(x, t->n, 0, &drop) ||
        !reduce(x, t, kind == NORM_POWER ? 0 : PUT_BACK, &r))
        return false;
    enum dtype dtype = dtype_real_of(dtype_or(x, (enum dtype)t->dtype));
    for (uint32_t i = 0; i < t->n; i++)
        trivial &= !drop[i] || is_one(x, t->size[i]);
    if (trivial && !(is_contiguous(x, t) && is_tidy(x, t)))
        return out_type(x, type_tensor(x->type, dtype, r.n, r.size, NULL, t->device));
    return out_tensor(x, dtype, r.n, r.size, r.stride, t->device);
}

bool shape_softmax_online(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t dim;
    uint32_t d;

    if (t == NULL || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n, &d))
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i == d ? num(x, 1) : t->size[i];
    sym_id *stride = contiguous_strides(x, t->n, size);
    if (d + 1 < t->n && is_zero(x, size[d + 1]))
        stride[d] = size[d + 1]; /* inserted afterwards */
    type_id item = new_tensor(x, (enum dtype)t->dtype, t->n, size, stride, t->device);
    return out_list(x, (type_id[]){item, item}, 2);
}
