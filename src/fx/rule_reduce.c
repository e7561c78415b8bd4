/* Shape rules of reductions. Results are contiguous, whatever the operand's layout is. */
#include "fx/rule.h"

struct sizes {
    uint32_t n;
    sym_id *size;
};

enum empty_dims { EMPTY_IS_ALL, EMPTY_IS_NONE };

/* The operand's sizes without the dimensions that the call names (dim= or dims=; None and a call without
 * either: all), or with 1 in their places. prims take an empty list at its word; most others do not. */
static bool reduced(struct infer *x, const struct type *t, enum empty_dims empty, struct sizes *out)
{
    int p = in_param(x, "dim"), prims = in_param(x, "dims"), keep = in_param(x, "keepdim");
    bool keepdim = false, all = true;
    bool *drop = arena_zeroed(x->arena, (t->n + 1) * sizeof(*drop));

    if (p == NO_PARAM)
        p = prims;
    if (keep != NO_PARAM && !in_bool(x, keep, &keepdim))
        return false;
    if (in_given(x, p)) {
        const int64_t *dim;
        uint32_t n, d;

        if (!in_ints(x, p, &dim, &n))
            return false;
        all = n == 0 && empty == EMPTY_IS_ALL && p != prims;
        for (uint32_t i = 0; i < n; i++) {
            if (!wrap_dim(dim[i], t->n, &d))
                return false;
            drop[d] = true;
        }
    }
    *out = (struct sizes){0, new_syms(x, t->n)};
    for (uint32_t i = 0; i < t->n; i++)
        if (!all && !drop[i])
            out->size[out->n++] = t->size[i];
        else if (keepdim)
            out->size[out->n++] = num(x, 1);
    return true;
}

static bool out_reduced(struct infer *x, const struct type *t, enum dtype dtype,
                        enum empty_dims empty)
{
    struct sizes s;

    return dtype != DTYPE_NONE && reduced(x, t, empty, &s) &&
           out_tensor(x, dtype, s.n, s.size, NULL, t->device);
}

static bool out_two(struct infer *x, const struct type *t, enum dtype first, enum dtype second)
{
    struct sizes s;

    if (!reduced(x, t, EMPTY_IS_ALL, &s))
        return false;
    type_id item[2] = {new_tensor(x, first, s.n, s.size, NULL, t->device),
                       new_tensor(x, second, s.n, s.size, NULL, t->device)};
    return out_list(x, item, 2);
}

/* dtype= or output_dtype=, else the given one. */
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
    return out_reduced(x, t, dtype_or(x, is_integral(d) ? DTYPE_I64 : d), EMPTY_IS_ALL);
}

bool shape_reduce_same(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, dtype_or(x, (enum dtype)t->dtype), EMPTY_IS_ALL);
}

/* torch's fake kernel keeps all dimensions for an empty list, its others none: no answer. */
bool shape_reduce_float(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dim;
    uint32_t n;

    if (t == NULL || !in_ints(x, in_param(x, "dim"), &dim, &n) || n == 0)
        return false;
    enum dtype d = (enum dtype)t->dtype;
    return out_reduced(x, t, is_integral(d) ? DTYPE_DEFAULT : d, EMPTY_IS_ALL);
}

/* uint8 was the bool of old. */
bool shape_reduce_bool(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL &&
           out_reduced(x, t, t->dtype == DTYPE_U8 ? DTYPE_U8 : DTYPE_B8, EMPTY_IS_NONE);
}

bool shape_reduce_pair(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_two(x, t, (enum dtype)t->dtype, DTYPE_I64);
}

bool shape_arg_reduce(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_reduced(x, t, DTYPE_I64, EMPTY_IS_ALL);
}

bool shape_count(struct infer *x)
{
    return shape_arg_reduce(x);
}

bool shape_aminmax(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_two(x, t, (enum dtype)t->dtype, (enum dtype)t->dtype);
}

bool shape_var(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL &&
           out_reduced(x, t, dtype_or(x, dtype_real_of((enum dtype)t->dtype)), EMPTY_IS_ALL);
}

bool shape_var_mean(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_two(x, t, dtype_real_of((enum dtype)t->dtype), (enum dtype)t->dtype);
}

bool shape_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL &&
           out_reduced(x, t, dtype_real_of(dtype_or(x, (enum dtype)t->dtype)), EMPTY_IS_ALL);
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
    type_id item = new_tensor(x, (enum dtype)t->dtype, t->n, size, NULL, t->device);
    return out_list(x, (type_id[]){item, item}, 2);
}
