/* Shape rules of element-wise operators: sizes broadcast, dtypes are promoted, strides follow the
 * operands. */
#include <stdio.h>

#include "infer/rule.h"

/* The tensors of a call, in the order of the parameters, and what their dtypes promote to. A Python
 * number in place of a tensor is a tensor without dimensions and device. */
struct operands {
    const struct type **t;
    uint32_t n;
    struct promotion dtype;
};

/* Numbers with these names take part in promotion; alpha, value, threshold and so on do not. */
static bool promotes(const char *name)
{
    static const char *const names[] = {"self", "other", "exponent", "min", "max"};

    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static const struct type *number_type(void)
{
    static const struct type zero_dims = {.kind = TYPE_TENSOR, .dtype = DTYPE_I64, .strided = true};

    return &zero_dims;
}

/* prims take operands unchanged: one dtype, one size, no conversion. */
static bool is_prim(const struct op_row *row)
{
    return strncmp(row->name, "prims.", 6) == 0;
}

/* Adds parameter p if it is a tensor or a number that counts. False: it is an unknown tensor. */
static bool add_operand(struct infer *x, struct operands *o, uint32_t p)
{
    const struct op_param *param = &x->sig->params[p];
    bool tensor = param->type == OP_T_TENSOR && param->depth == 0;
    bool number = param->type == OP_T_SCALAR && promotes(param->name);
    enum dtype_category kind;

    if (!(tensor || number || param->type == OP_T_ANY) || !in_given(x, (int)p))
        return true;
    const struct type *t = in_tensor(x, (int)p);
    if (t != NULL) {
        o->t[o->n++] = t;
        promote_tensor(&o->dtype, t);
        return true;
    }
    if (!in_number(x, (int)p, &kind))
        return false;
    o->t[o->n++] = number_type();
    if (!is_prim(x->row))
        promote_number(&o->dtype, kind);
    return true;
}

static bool gather(struct infer *x, struct operands *o)
{
    *o = (struct operands){.t = arena_array(x->arena, const struct type *, x->sig->n_params)};
    for (uint32_t p = 0; p < x->sig->n_params; p++)
        if (!add_operand(x, o, p))
            return false;
    return o->n > 0;
}

static enum dtype to_float(enum dtype d)
{
    unsigned c = dtype_at(d)->category;

    return c == DTYPE_IS_BOOL || c == DTYPE_IS_INT || c == DTYPE_IS_UINT ? DTYPE_DEFAULT : d;
}

/* ---- strides ---- */

static enum dtype widened(enum dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16 ? DTYPE_F32 : d == DTYPE_C32 ? DTYPE_C64 : d;
}

/* alpha * other is a separate product, unless alpha is 1. */
static bool is_scaled(struct infer *x, uint32_t i)
{
    int p = in_param(x, "alpha");
    sym_id alpha;

    return i == 1 && p >= 0 && in_sym(x, p, &alpha) && !is_one(x, alpha);
}

/* The tensors that determine the layout; those of another dtype than the loop's are copied
 * first. */
static uint32_t laid_out(struct infer *x, const struct operands *o, enum dtype loop, uint32_t n_dim,
                         const sym_id *size, const struct type **out)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < o->n; i++) {
        if (o->t[i] == number_type())
            continue;
        bool copied = loop != DTYPE_NONE && o->t[i]->dtype != loop, scaled = is_scaled(x, i);
        out[n] = o->t[i];
        if ((copied || scaled) && o->t[i]->strided) {
            struct type *copy = arena_alloc(x->arena, sizeof(*copy));
            *copy = *o->t[i];
            if (copied)
                copy->stride = like_strides(x, copy, FORMAT_PRESERVE);
            out[n] = copy;
            if (scaled) { /* broadcast first */
                copy->stride = reference_strides(x, &out[n], 1, n_dim, size);
                copy->size = size;
                copy->n = n_dim;
            }
        }
        n++;
    }
    return n;
}

static const struct type zero_dims = {.kind = TYPE_TENSOR, .dtype = DTYPE_F32, .strided = true};

/* One result over all operands; the loop computes in dtype `loop`. */
static type_id result_in(struct infer *x, const struct operands *o, enum dtype dtype,
                         enum dtype loop)
{
    const struct type **t = arena_array(x->arena, const struct type *, o->n);
    const sym_id *size, *stride;
    uint32_t n;

    if (!broadcast_sizes(x, o->t, o->n, &n, &size))
        return 0;
    unsigned how = x->row->flags;
    bool as_is = is_prim(x->row) || how & OP_F_AS_IS;
    enum dtype wanted = as_is ? DTYPE_NONE : how & OP_F_NARROW ? loop : widened(loop);
    uint32_t k = laid_out(x, o, wanted, n, size, t), kept = 0;
    for (uint32_t i = 0; i < k; i++) /* prims ignore scalars on the host */
        if (!is_prim(x->row) || t[i]->n > 0 || n == 0)
            t[kept++] = t[i];
    stride = reference_strides(x, t, kept, n, size);
    return type_tensor(x->type, dtype, n, size, stride, common_device(x, o->t, o->n));
}

static bool result(struct infer *x, const struct operands *o, enum dtype dtype)
{
    return out_type(x, result_in(x, o, dtype, dtype));
}

/* ---- one tensor ---- */

/* Only the first tensor operand. */
static bool gather_one(struct infer *x, struct operands *o)
{
    if (!gather(x, o))
        return false;
    while (o->n > 0 && o->t[0] == number_type())
        o->t++, o->n--;
    if (o->n == 0)
        return false;
    o->n = 1;
    o->dtype = (struct promotion){0};
    promote_tensor(&o->dtype, o->t[0]);
    return true;
}

bool shape_unary(struct infer *x)
{
    struct operands o;

    return gather_one(x, &o) && result(x, &o, promoted(&o.dtype));
}

bool shape_unary_float(struct infer *x)
{
    struct operands o;

    return gather_one(x, &o) && result(x, &o, to_float(promoted(&o.dtype)));
}

bool shape_unary_real(struct infer *x)
{
    struct operands o;

    if (!gather_one(x, &o))
        return false;
    enum dtype d = promoted(&o.dtype);
    return out_type(x, result_in(x, &o, dtype_real_of(d), d));
}

bool shape_angle(struct infer *x)
{
    struct operands o;

    if (!gather_one(x, &o))
        return false;
    enum dtype d = dtype_real_of(promoted(&o.dtype)), to = dtype_is_float(d) ? d : DTYPE_DEFAULT;
    return out_type(x, result_in(x, &o, to, to));
}

bool shape_unary_bool(struct infer *x)
{
    struct operands o;

    return gather_one(x, &o) && out_type(x, result_in(x, &o, DTYPE_B8, promoted(&o.dtype)));
}

/* The second result: exponents (int32), masks (bool), or a buffer like the first. */
bool shape_unary_pair(struct infer *x)
{
    struct operands o;
    const char *second = x->sig->n_results == 2 ? x->sig->results[1].name : "";

    if (!gather_one(x, &o))
        return false;
    enum dtype d = promoted(&o.dtype);
    enum dtype other = strcmp(second, "exponent") == 0 ? DTYPE_I32
                       : strcmp(second, "mask") == 0   ? DTYPE_B8
                                                       : d;
    type_id item[2] = {result_in(x, &o, d, d), result_in(x, &o, other, d)};
    return item[0] != 0 && item[1] != 0 && out_list(x, item, 2);
}

/* ---- several ---- */

bool shape_broadcast(struct infer *x)
{
    struct operands o;

    if (!gather(x, &o))
        return false;
    enum dtype d = promoted(&o.dtype);
    int p = in_param(x, "exponent");
    sym_id power;
    if (p < 0)
        return result(x, &o, d);
    if (d == DTYPE_B8)
        d = DTYPE_I64; /* a power is never bool */
    if (o.t[0] != number_type() && in_sym(x, p, &power) && is_unit(x, power))
        return out_type(x, new_like(x, o.t[0], d));
    return result(x, &o, d);
}

bool shape_broadcast_float(struct infer *x)
{
    struct operands o;

    return gather(x, &o) && result(x, &o, to_float(promoted(&o.dtype)));
}

/* logical_and and similar operators: unless all are bool, operands are promoted, broadcast, and
 * compared with 0 first. */
bool shape_logical(struct infer *x)
{
    struct operands o;
    const sym_id *size;
    uint32_t n;

    if (!gather(x, &o) || !broadcast_sizes(x, o.t, o.n, &n, &size))
        return false;
    enum dtype d = promoted(&o.dtype);
    for (uint32_t i = 0; i < o.n; i++) {
        struct operands one = {.t = &o.t[i], .n = 1};
        const struct type *step[1];
        if (d == DTYPE_B8 || o.t[i] == number_type() || !o.t[i]->strided)
            continue;
        struct type *copy = arena_alloc(x->arena, sizeof(*copy));
        *copy = *o.t[i];
        laid_out(x, &one, widened(d), n, size, step);
        copy->stride = reference_strides(x, step, 1, n, size);
        copy->size = size;
        copy->n = n;
        copy->dtype = DTYPE_B8;
        o.t[i] = copy;
    }
    return out_type(x, result_in(x, &o, DTYPE_B8, DTYPE_NONE));
}

/* a * b + c in two steps; each may be a number. */
bool shape_fma(struct infer *x)
{
    struct operands o;
    const struct type *t[2];
    const sym_id *size;
    uint32_t n, k;

    if (!gather(x, &o) || o.n != 3)
        return false;
    for (int p = 0; p < 3; p++) {
        enum dtype_category kind;
        if (o.t[p] == number_type() && in_number(x, p, &kind))
            promote_number(&o.dtype, kind);
    }
    enum dtype d = promoted(&o.dtype);
    struct operands factors = {.t = o.t, .n = 2}, rest = {.t = o.t + 2, .n = 1};
    struct type product = {.kind = TYPE_TENSOR};
    k = laid_out(x, &factors, widened(d), 0, NULL, t);
    if (!broadcast_sizes(x, t, k, &n, &size))
        return false;
    product.n = n;
    product.size = size;
    product.stride = reference_strides(x, t, k, n, size);
    product.strided = product.stride != NULL;
    t[0] = &product;
    k = 1 + laid_out(x, &rest, widened(d), 0, NULL, &t[1]);
    if (!broadcast_sizes(x, t, k, &n, &size))
        return false;
    return out_layout(x, d, n, size, reference_strides(x, t, k, n, size),
                      common_device(x, o.t, o.n));
}

bool shape_broadcast_bool(struct infer *x)
{
    struct operands o;

    return gather(x, &o) && out_type(x, result_in(x, &o, DTYPE_B8, promoted(&o.dtype)));
}

/* ---- where, and operators based on it ---- */

/* where(mask, a, b), NULL for a number; a and b are converted to the result's dtype first. A number
 * counts as a tensor without dimensions. */
static type_id chosen(struct infer *x, const struct type *mask, const struct type *a,
                      const struct type *b, enum dtype dtype)
{
    const struct type *all[3] = {mask, a, b}, *t[3];
    const sym_id *size;
    uint32_t n, k = 0;

    for (int i = 0; i < 3; i++) {
        const struct type *one = all[i] ? all[i] : &zero_dims;
        if (all[i] == NULL && is_prim(x->row))
            continue;
        if (i > 0 && one->n > 0 && one->dtype != dtype && one->strided) {
            struct type *copy = arena_alloc(x->arena, sizeof(*copy));
            *copy = *one;
            copy->stride = like_strides(x, one, FORMAT_PRESERVE);
            one = copy;
        }
        t[k++] = one;
    }
    if (!broadcast_sizes(x, t, k, &n, &size))
        return 0;
    return type_tensor(x->type, dtype, n, size, reference_strides(x, t, k, n, size),
                       common_device(x, t, k));
}

bool shape_where(struct infer *x)
{
    const struct type *mask = in_tensor(x, 0), *t[2];
    struct promotion dtype = {0};

    if (mask == NULL)
        return false;
    for (int p = 1; p <= 2; p++) {
        enum dtype_category kind;
        t[p - 1] = in_tensor(x, p);
        if (t[p - 1] != NULL)
            promote_tensor(&dtype, t[p - 1]);
        else if (!in_number(x, p, &kind))
            return false;
        else if (!is_prim(x->row))
            promote_number(&dtype, kind);
    }
    return out_type(x, chosen(x, mask, t[0], t[1], promoted(&dtype)));
}

/* t.contiguous(): itself, or a copy. */
static bool made_contiguous(struct infer *x, type_id id)
{
    struct type t = *type_at(x->type, id);

    if (id == 0 || !t.strided || is_contiguous(x, &t))
        return out_type(x, id);
    return out_tensor(x, (enum dtype)t.dtype, t.n, t.size, NULL, t.device);
}

bool shape_masked_fill(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *mask = in_tensor(x, 1);

    return t != NULL && mask != NULL &&
           made_contiguous(x, chosen(x, mask, NULL, t, (enum dtype)t->dtype));
}

/* where(x <= threshold, 0, x), or the operand itself; backward: where(x <=
 * threshold, 0, gradient). */
bool shape_relu(struct infer *x)
{
    int p = in_param(x, "grad_output");
    const struct type *grad = in_tensor(x, p), *t = in_tensor(x, p >= 0 ? in_param(x, "self") : 0);
    struct operands o = {.t = &t, .n = 1};
    bool inplace = false;

    in_bool(x, in_param(x, "inplace"), &inplace);
    if (inplace)
        return out_type(x, in_type(x, 0));
    if (t == NULL || (p >= 0 && grad == NULL))
        return false;
    struct type mask = *t;
    const struct type *one[1];
    enum dtype_category kind = DTYPE_IS_INT; /* of the number compared with: 0 unless given */
    in_number(x, in_param(x, "threshold"), &kind);
    promote_tensor(&o.dtype, t);
    promote_number(&o.dtype, kind);
    laid_out(x, &o, widened(promoted(&o.dtype)), t->n, t->size, one);
    mask.stride = t->strided ? reference_strides(x, one, 1, t->n, t->size) : NULL;
    t = p >= 0 ? grad : t;
    enum dtype d = p >= 0 && grad->dtype == DTYPE_B8 ? DTYPE_I64 : (enum dtype)t->dtype;
    return out_type(x, chosen(x, &mask, NULL, t, d));
}

/* where(mask of the last two dimensions, x, 0), contiguous. */
bool shape_tri(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || t->n < 2)
        return false;
    struct type mask = {.kind = TYPE_TENSOR, .dtype = DTYPE_B8, .strided = true, .n = 2};
    mask.size = t->size + (t->n - 2);
    mask.stride = contiguous_strides(x, 2, mask.size);
    mask.device = t->device;
    return made_contiguous(x, chosen(x, &mask, t, NULL, (enum dtype)t->dtype));
}

bool shape_complex(struct infer *x)
{
    struct operands o;

    return gather(x, &o) && result(x, &o, dtype_complex_of(promoted(&o.dtype)));
}

/* ---- lists ---- */

/* The row of the operator without _foreach_ in its name. */
static const struct op_row *item_row(const struct infer *x)
{
    static const char mark[] = "_foreach_";
    const char *from = strstr(x->row->name, mark);
    char name[64];

    if (from == NULL)
        return op_at(0);
    const char *rest = from + sizeof(mark) - 1;
    int n = snprintf(name, sizeof(name), "%.*s%.*s", (int)(from - x->row->name), x->row->name,
                     (int)strcspn(rest, "."), rest);
    return op_at(n > 0 && (size_t)n < sizeof(name) ? op_find(name, (size_t)n) : 0);
}

/* Never bool; the first power is a copy. */
static type_id item_power(struct infer *x, const struct operands *o, uint32_t i)
{
    enum dtype d = promoted(&o->dtype);
    const sym_id *power;
    uint32_t n;

    if (d == DTYPE_B8)
        d = DTYPE_I64;
    if (o->t[0] != number_type() && in_syms(x, in_param(x, "exponent"), &power, &n) && n > 0 &&
        is_unit(x, power[i < n ? i : n - 1]))
        return new_like(x, o->t[0], d);
    return result_in(x, o, d, d);
}

/* One item, by that row or by the list's own rule. */
static type_id item_type(struct infer *x, const struct op_row *row, const struct operands *o,
                         uint32_t i)
{
    if (o->n == 0 || (x->row->shape == OP_SHAPE_foreach_clamp && o->n < 2))
        return 0;
    enum dtype d = promoted(&o->dtype), own = (enum dtype)o->t[0]->dtype;
    switch (x->row->shape) {
    case OP_SHAPE_foreach_clamp:
        if (o->t[0] == number_type())
            return 0;
        return bounded(x, &o->dtype, o->t[0], o->t[1] == number_type() ? NULL : o->t[1]);
    case OP_SHAPE_foreach_copy: return new_like(x, o->t[0], own);
    case OP_SHAPE_foreach_pow: return item_power(x, o, i);
    default: break;
    }
    switch (row->shape) {
    case OP_SHAPE_clone: return new_like(x, o->t[0], own);
    case OP_SHAPE_copy: return new_copied(x, o->t[0]);
    case OP_SHAPE_unary: return result_in(x, o, own, own);
    case OP_SHAPE_unary_real: return result_in(x, o, dtype_real_of(own), own);
    case OP_SHAPE_unary_float:
    case OP_SHAPE_broadcast_float: return result_in(x, o, to_float(d), to_float(d));
    case OP_SHAPE_broadcast: return result_in(x, o, d, d);
    default: return 0;
    }
}

struct list_param {
    const struct type *const *t;
    uint32_t n;
};

/* Item i of every list, and what all items share. */
static bool gather_item(struct infer *x, struct operands *o, const struct list_param *list,
                        uint32_t i)
{
    *o = (struct operands){.t = arena_array(x->arena, const struct type *, x->sig->n_params)};
    for (uint32_t p = 0; p < x->sig->n_params; p++) {
        const struct op_param *param = &x->sig->params[p];
        enum dtype_category kind;

        if (param->depth == 0) {
            /* The factor of addcdiv may be a tensor; it is treated as a number. */
            bool factors = param->type == OP_T_TENSOR && strcmp(param->name, "scalars") == 0;
            bool one = param->type == OP_T_SCALAR && strcmp(param->name, "scalar") == 0;
            if (one && in_number(x, (int)p, &kind)) {
                o->t[o->n++] = number_type();
                promote_number(&o->dtype, kind);
            } else if (!factors && !add_operand(x, o, p)) {
                return false;
            }
        } else if (param->type == OP_T_TENSOR) {
            if (i >= list[p].n || list[p].t[i] == NULL)
                return false;
            o->t[o->n++] = list[p].t[i];
            promote_tensor(&o->dtype, list[p].t[i]);
        } else if (param->type == OP_T_SCALAR && list[0].t != NULL && x->sig->n_params == 2) {
            if (!in_number_at(x, (int)p, i, &kind))
                return false;
            o->t[o->n++] = number_type();
            promote_number(&o->dtype, kind);
        }
    }
    return true;
}

bool shape_foreach(struct infer *x)
{
    const struct op_row *row = item_row(x);
    struct list_param *list = arena_zeroed(x->arena, (x->sig->n_params + 1) * sizeof(*list));
    uint32_t n = 0;

    for (uint32_t p = 0; p < x->sig->n_params; p++)
        if (x->sig->params[p].depth == 1 && x->sig->params[p].type == OP_T_TENSOR) {
            if (!in_tensors(x, (int)p, &list[p].t, &list[p].n))
                return false;
            n = list[p].n;
        }
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++) {
        struct operands o;
        item[i] = gather_item(x, &o, list, i) ? item_type(x, row, &o, i) : 0;
    }
    return out_list(x, item, n);
}

bool shape_foreach_clamp(struct infer *x)
{
    return shape_foreach(x);
}

bool shape_foreach_copy(struct infer *x)
{
    return shape_foreach(x);
}

bool shape_foreach_pow(struct infer *x)
{
    return shape_foreach(x);
}
