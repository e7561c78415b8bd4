/* Shape rules of tensors made from sizes and numbers. */
#include <math.h>

#include "infer/rule.h"

/* device=, or else cpu, as in traces without a default device. */
static str_id device_or_cpu(struct infer *x)
{
    str_id device;

    return in_device(x, in_param(x, "device"), &device) ? device
                                                        : str_intern(&x->store->str, "cpu", 3);
}

static enum dtype dtype_or(struct infer *x, enum dtype otherwise)
{
    enum dtype d;

    return in_dtype(x, in_param(x, "dtype"), &d) ? d : otherwise;
}

/* The dtype of a tensor made from a number. */
static enum dtype dtype_of_number(struct infer *x, int p)
{
    struct promotion promotion = {0};
    enum dtype_category kind;

    if (!in_number(x, p, &kind))
        return DTYPE_NONE;
    promote_number(&promotion, kind);
    return promoted(&promotion);
}

/* Parameter size, which prims call shape. */
static bool sizes_of(struct infer *x, const sym_id **size, uint32_t *n)
{
    int p = in_param(x, "size");

    return in_syms(x, p >= 0 ? p : in_param(x, "shape"), size, n);
}

bool shape_full(struct infer *x)
{
    int fill = in_param(x, "fill_value");
    enum dtype dtype = dtype_or(x, fill >= 0 ? dtype_of_number(x, fill) : DTYPE_DEFAULT);
    enum mem_format format = in_format(x, in_param(x, "memory_format"));
    const sym_id *size, *stride = NULL;
    uint32_t n, n_stride;

    if (!sizes_of(x, &size, &n))
        return false;
    struct type plain = {.kind = TYPE_TENSOR, .n = n, .size = size};
    if (format != FORMAT_NONE && (stride = like_strides(x, &plain, format)) == NULL)
        return false;
    if (in_param(x, "stride") >= 0 &&
        (!in_syms(x, in_param(x, "stride"), &stride, &n_stride) || n != n_stride))
        return false;
    return out_tensor(x, dtype, n, size, stride, device_or_cpu(x));
}

bool shape_new(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size;
    uint32_t n;
    str_id device;

    if (t == NULL || !sizes_of(x, &size, &n))
        return false;
    if (!in_device(x, in_param(x, "device"), &device))
        device = t->device;
    return out_tensor(x, dtype_or(x, (enum dtype)t->dtype), n, size, NULL, device);
}

bool shape_empty_strided(struct infer *x)
{
    const struct type *t = in_tensor(x, in_param(x, "self"));
    int p = in_param(x, "stride");
    const sym_id *size, *stride;
    uint32_t n, n_stride;
    str_id device;

    if (in_param(x, "self") >= 0 && t == NULL)
        return false;
    if (!sizes_of(x, &size, &n) ||
        !in_syms(x, p >= 0 ? p : in_param(x, "strides"), &stride, &n_stride) || n != n_stride)
        return false;
    if (t == NULL || in_device(x, in_param(x, "device"), &device))
        device = device_or_cpu(x);
    else
        device = t->device;
    return out_tensor(x, dtype_or(x, t ? (enum dtype)t->dtype : DTYPE_DEFAULT), n, size, stride,
                      device);
}

/* physical_layout: the dimensions from the outermost. */
bool shape_empty_permuted(struct infer *x)
{
    const sym_id *size;
    const int64_t *order;
    uint32_t n, n_order;
    sym_id at = num(x, 1);

    if (!sizes_of(x, &size, &n) || !in_ints(x, in_param(x, "physical_layout"), &order, &n_order) ||
        n != n_order)
        return false;
    sym_id *stride = new_syms(x, n);
    if (n > 0)
        memset(stride, 0, n * sizeof(*stride));
    for (uint32_t i = n; i > 0; i--) {
        uint32_t d;
        if (!wrap_dim(order[i - 1], n, &d))
            return false;
        stride[d] = at;
        at = sym_mul(x->sym, at, is_zero(x, size[d]) ? num(x, 1) : size[d]);
    }
    return out_tensor(x, dtype_or(x, DTYPE_DEFAULT), n, size, stride, device_or_cpu(x));
}

bool shape_scalar_tensor(struct infer *x)
{
    return out_tensor(x, dtype_or(x, DTYPE_DEFAULT), 0, NULL, NULL, device_or_cpu(x));
}

/* ---- vectors ---- */

static bool out_vector(struct infer *x, enum dtype dtype, sym_id length)
{
    return out_tensor(x, dtype, 1, &length, NULL, device_or_cpu(x));
}

/* The number of steps in [start, end). */
static sym_id steps(struct infer *x, sym_id start, sym_id end, sym_id step)
{
    struct sym_num a, b, c;

    if (sym_as_number(x->sym, start, &a) && sym_as_number(x->sym, end, &b) &&
        sym_as_number(x->sym, step, &c) &&
        (a.kind == SYM_T_FLOAT || b.kind == SYM_T_FLOAT || c.kind == SYM_T_FLOAT)) {
        double from = a.kind == SYM_T_FLOAT ? a.f : (double)a.i;
        double to = b.kind == SYM_T_FLOAT ? b.f : (double)b.i;
        double by = c.kind == SYM_T_FLOAT ? c.f : (double)c.i;
        double n = ceil((to - from) / by);
        return n >= 0 && n < 9e18 ? num(x, (int64_t)n) : 0;
    }
    if (sym_type(x->sym, start) == SYM_T_FLOAT || sym_type(x->sym, end) == SYM_T_FLOAT ||
        sym_type(x->sym, step) == SYM_T_FLOAT)
        return 0;
    if (hint_of(x, step) < 0)
        return sym_ceildiv(x->sym, sym_sub(x->sym, start, end), sym_neg(x->sym, step));
    return sym_ceildiv(x->sym, sym_sub(x->sym, end, start), step);
}

/* A vector of int64 counts in integers: 1.7 becomes 1. */
static sym_id whole(struct infer *x, sym_id v)
{
    struct sym_num n;

    if (!sym_as_number(x->sym, v, &n) || n.kind != SYM_T_FLOAT)
        return v;
    return n.f > -9e18 && n.f < 9e18 ? num(x, (int64_t)n.f) : 0;
}

bool shape_arange(struct infer *x)
{
    sym_id start = num(x, 0), end, step = num(x, 1);
    enum dtype_category kind;
    bool is_float = false;
    static const char *const names[] = {"start", "end", "step"};

    for (unsigned i = 0; i < 3; i++)
        if (in_number(x, in_param(x, names[i]), &kind))
            is_float |= kind == DTYPE_IS_FLOAT;
    if (!in_sym(x, in_param(x, "end"), &end))
        return false;
    if (in_param(x, "start") >= 0 && !in_sym(x, in_param(x, "start"), &start))
        return false;
    if (in_param(x, "step") >= 0 && !in_sym(x, in_param(x, "step"), &step))
        return false;
    enum dtype dtype = dtype_or(x, is_float ? DTYPE_DEFAULT : DTYPE_I64);
    if (dtype == DTYPE_I64) {
        start = whole(x, start);
        end = whole(x, end);
        step = whole(x, step);
    }
    return !is_zero(x, step) && out_vector(x, dtype, steps(x, start, end, step));
}

bool shape_linspace(struct infer *x)
{
    sym_id n;
    str_id device = 0;
    struct promotion both = {0};

    for (int p = 0; p < 2; p++) {
        const struct type *t = in_tensor(x, p);
        enum dtype_category kind;
        if (t != NULL) {
            promote_tensor(&both, t);
            device = device == 0 ? t->device : device;
        } else if (in_number(x, p, &kind))
            promote_number(&both, kind);
        else
            return false;
    }
    bool is_complex = dtype_at(promoted(&both))->category == DTYPE_IS_COMPLEX;
    if (device == 0 || in_given(x, in_param(x, "device")))
        device = device_or_cpu(x);
    return in_sym(x, in_param(x, "steps"), &n) &&
           out_tensor(x, dtype_or(x, is_complex ? DTYPE_C64 : DTYPE_DEFAULT), 1, &n, NULL, device);
}

bool shape_randperm(struct infer *x)
{
    sym_id n;

    return in_sym(x, in_param(x, "n"), &n) && out_vector(x, dtype_or(x, DTYPE_I64), n);
}

bool shape_iota(struct infer *x)
{
    sym_id n;

    return in_sym(x, 0, &n) && out_vector(x, dtype_or(x, DTYPE_I64), n);
}

bool shape_eye(struct infer *x)
{
    sym_id size[2];

    if (!in_sym(x, 0, &size[0]))
        return false;
    size[1] = size[0];
    if (in_param(x, "m") >= 0 && !in_sym(x, in_param(x, "m"), &size[1]))
        return false;
    return out_tensor(x, dtype_or(x, DTYPE_DEFAULT), 2, size, NULL, device_or_cpu(x));
}

/* ---- random numbers as Inductor draws them ---- */

bool shape_inductor_seeds(struct infer *x)
{
    sym_id n;

    if (in_param(x, "count") < 0)
        return out_tensor(x, DTYPE_I64, 0, NULL, NULL, device_or_cpu(x));
    return in_sym(x, in_param(x, "count"), &n) && out_vector(x, DTYPE_I64, n);
}

bool shape_inductor_lookup_seed(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_tensor(x, (enum dtype)t->dtype, 0, NULL, NULL, t->device);
}

bool shape_inductor_random(struct infer *x)
{
    const struct type *seed = in_tensor(x, in_param(x, "seed"));
    const sym_id *size;
    uint32_t n;
    enum dtype dtype = in_param(x, "low") >= 0 ? DTYPE_I64 : DTYPE_F32;

    if (seed == NULL || !sizes_of(x, &size, &n))
        return false;
    return out_tensor(x, dtype, n, size, NULL, seed->device);
}
