/* Sizes, strides, device and dtype that result from several operands, as PyTorch decides them.
 *
 * There are two rules for element-wise strides: TensorIterator's, and that of PyTorch's reference
 * implementations in Python, which most operators use on fake tensors, and all if a size is
 * symbolic. Both sort dimensions by the operands' strides; they differ in when they need not sort.
 */
#include "infer/infer_run.h"

sym_id *new_syms(struct infer *x, uint32_t n)
{
    return arena_array(x->arena, sym_id, n);
}

static sym_id *copy_syms(struct infer *x, const sym_id *from, uint32_t n)
{
    sym_id *to = new_syms(x, n);

    if (n > 0)
        memcpy(to, from, n * sizeof(*to));
    return to;
}

/* A size of 0 counts as 1. Symbols are assumed to be at least 1. */
static sym_id at_least_one(struct infer *x, sym_id size)
{
    return is_zero(x, size) ? num(x, 1) : size;
}

/* ---- dense layouts ---- */

static const uint8_t last_2d[] = {1, 3, 2, 0}, last_3d[] = {1, 4, 3, 2, 0};

/* Strides without gaps; order: dimensions from the innermost, NULL means from the last. */
static sym_id *dense_strides(struct infer *x, uint32_t n, const sym_id *size, const uint8_t *order)
{
    sym_id *s = new_syms(x, n), at = num(x, 1);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = order ? order[i] : n - 1 - i;
        s[d] = at;
        at = sym_mul(x->sym, at, at_least_one(x, size[d]));
    }
    return s;
}

sym_id *contiguous_strides(struct infer *x, uint32_t n, const sym_id *size)
{
    return dense_strides(x, n, size, NULL);
}

sym_id *channels_last_strides(struct infer *x, uint32_t n, const sym_id *size)
{
    return dense_strides(x, n, size, n == 5 ? last_3d : last_2d);
}

/* The same as in the reference implementations: a size of 0 counts as 0. */
static sym_id *channels_last_raw(struct infer *x, uint32_t n, const sym_id *size)
{
    sym_id *s = new_syms(x, n), at = num(x, 1);

    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = n == 5 ? last_3d[i] : last_2d[i];
        s[d] = at;
        at = sym_mul(x->sym, at, size[d]);
    }
    return s;
}

static bool is_empty(const struct infer *x, const struct type *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (is_zero(x, t->size[i]))
            return true;
    return false;
}

/* Are the strides those of dense_strides, except for dimensions of size 1? */
static bool is_dense_in_order(struct infer *x, const struct type *t, const uint8_t *order)
{
    sym_id at = num(x, 1);

    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t d = order ? order[i] : t->n - 1 - i;
        if (is_one(x, t->size[d]))
            continue;
        if (!same_size(x, t->stride[d], at))
            return false;
        at = sym_mul(x->sym, at, t->size[d]);
    }
    return true;
}

bool is_contiguous(struct infer *x, const struct type *t)
{
    return t->strided && (is_empty(x, t) || is_dense_in_order(x, t, NULL));
}

bool is_contiguous_as(struct infer *x, const struct type *t, enum mem_format format)
{
    switch (format) {
    case FORMAT_CHANNELS_LAST: return t->strided && t->n == 4 && is_dense_in_order(x, t, last_2d);
    case FORMAT_CHANNELS_LAST_3D:
        return t->strided && t->n == 5 && is_dense_in_order(x, t, last_3d);
    default: return is_contiguous(x, t);
    }
}

bool is_channels_last(struct infer *x, const struct type *t)
{
    int64_t least = 0;

    if ((t->n != 4 && t->n != 5) || !t->strided || hint_of(x, t->stride[1]) == 0)
        return false;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t d = t->n == 5 ? last_3d[i] : last_2d[i];
        int64_t size = hint_of(x, t->size[d]), stride = hint_of(x, t->stride[d]);

        if (size == 0 || stride < least)
            return false;
        /* A tensor with one channel in plain order looks like both; plain wins. */
        if (d == 0 && least == hint_of(x, t->stride[1]))
            return false;
        least = stride;
        if (size > 1 && __builtin_mul_overflow(stride, size, &least))
            return false;
    }
    return true;
}

bool is_dense(struct infer *x, const struct type *t)
{
    struct {
        uint32_t dim;
        int64_t stride;
    } *d = arena_alloc(x->arena, (t->n + 1) * sizeof(*d));
    uint32_t n = 0;
    sym_id at = num(x, 1);

    if (!t->strided)
        return false;
    if (is_contiguous(x, t))
        return true;
    for (uint32_t i = 0; i < t->n; i++)
        if (!is_one(x, t->size[i])) {
            int64_t stride = hint_of(x, t->stride[i]);
            uint32_t k = n++;
            for (; k > 0 && d[k - 1].stride > stride; k--)
                d[k] = d[k - 1];
            d[k].dim = i;
            d[k].stride = stride;
        }
    for (uint32_t i = 0; i < n; i++) {
        if (!same_size(x, t->stride[d[i].dim], at))
            return false;
        at = sym_mul(x->sym, at, t->size[d[i].dim]);
    }
    return true;
}

/* ---- layouts of element-wise results ---- */

static bool all_same_shape(struct infer *x, const struct type *const *t, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++) {
        if (t[k]->n != t[0]->n)
            return false;
        for (uint32_t i = 0; i < t[0]->n; i++)
            if (!same_size(x, t[k]->size[i], t[0]->size[i]))
                return false;
    }
    return true;
}

static bool all_contiguous(struct infer *x, const struct type *const *t, uint32_t n,
                           enum mem_format format)
{
    for (uint32_t k = 0; k < n; k++)
        if (!is_contiguous_as(x, t[k], format))
            return false;
    return true;
}

static bool all_same_strides(const struct type *const *t, uint32_t n)
{
    for (uint32_t k = 1; k < n; k++)
        if (t[0]->n > 0 && memcmp(t[0]->stride, t[k]->stride, t[0]->n * sizeof(sym_id)) != 0)
            return false;
    return true;
}

/* Stride of operand t in dimension d of the result; 0 if it is repeated. */
static int64_t stride_in(struct infer *x, const struct type *t, uint32_t n_dim, const sym_id *size,
                         uint32_t d)
{
    uint32_t missing = n_dim - t->n;

    if (d < missing || (is_one(x, t->size[d - missing]) && !is_one(x, size[d])))
        return 0;
    return hint_of(x, t->stride[d - missing]);
}

/* Which of two dimensions is inner? < 0: a, > 0: b, 0: the operands do not decide. The first
 * operand that repeats neither decides; if strides are equal, the smaller size is inner. */
static int compare_dims(struct infer *x, const struct type *const *t, uint32_t n, uint32_t n_dim,
                        const sym_id *size, uint32_t a, uint32_t b)
{
    for (uint32_t k = 0; k < n; k++) {
        int64_t sa = stride_in(x, t[k], n_dim, size, a), sb = stride_in(x, t[k], n_dim, size, b);

        if (sa == 0 || sb == 0)
            continue;
        if (sa != sb)
            return sa < sb ? -1 : 1;
        if (hint_of(x, size[a]) > hint_of(x, size[b]))
            return 1;
    }
    return 0;
}

/* Dimensions from the innermost out. The comparison is not transitive, so the order of comparing
 * pairs matters: each dimension moves inwards past those it must, skips undecided ones, and stops
 * at the first that is certainly inner. */
static uint32_t *sorted_dims(struct infer *x, const struct type *const *t, uint32_t n,
                             uint32_t n_dim, const sym_id *size)
{
    uint32_t *order = arena_array(x->arena, uint32_t, n_dim);

    for (uint32_t i = 0; i < n_dim; i++) {
        uint32_t at = i;
        order[i] = n_dim - 1 - i;
        for (uint32_t k = i; k > 0; k--) {
            int c = compare_dims(x, t, n, n_dim, size, order[k - 1], order[at]);
            if (c < 0)
                break;
            if (c > 0) {
                uint32_t swap = order[k - 1];
                order[k - 1] = order[at];
                order[at] = swap;
                at = k - 1;
            }
        }
    }
    return order;
}

static sym_id *sorted_strides(struct infer *x, const struct type *const *t, uint32_t n,
                              uint32_t n_dim, const sym_id *size, bool empty_is_one)
{
    const uint32_t *order = sorted_dims(x, t, n, n_dim, size);
    sym_id *out = new_syms(x, n_dim), at = num(x, 1);
    bool plain = true;

    for (uint32_t i = 0; i < n_dim; i++)
        plain &= order[i] == n_dim - 1 - i;
    for (uint32_t i = 0; i < n_dim; i++) {
        sym_id by = size[order[i]];
        out[order[i]] = at;
        at = sym_mul(x->sym, at, plain || empty_is_one ? at_least_one(x, by) : by);
    }
    return out;
}

sym_id *like_strides(struct infer *x, const struct type *t, enum mem_format format)
{
    switch (format) {
    case FORMAT_CONTIGUOUS: return contiguous_strides(x, t->n, t->size);
    case FORMAT_CHANNELS_LAST: return t->n == 4 ? channels_last_raw(x, t->n, t->size) : NULL;
    case FORMAT_CHANNELS_LAST_3D: return t->n == 5 ? channels_last_raw(x, t->n, t->size) : NULL;
    default: break;
    }
    if (!t->strided)
        return NULL;
    if (is_dense(x, t))
        return copy_syms(x, t->stride, t->n);
    return sorted_strides(x, &t, 1, t->n, t->size, true);
}

bool sizes_meet(struct infer *x, sym_id a, sym_id b)
{
    int64_t u, v;

    if (a == b || !sym_as_int(x->sym, a, &u) || !sym_as_int(x->sym, b, &v) || u == v)
        return true;
    x->apart = true;
    x->of[0] = u;
    x->of[1] = v;
    return false;
}

bool broadcast_sizes(struct infer *x, const struct type *const *t, uint32_t n, uint32_t *n_out,
                     const sym_id **size_out)
{
    uint32_t n_dim = 0;

    for (uint32_t k = 0; k < n; k++)
        if (t[k] != NULL && t[k]->n > n_dim)
            n_dim = t[k]->n;
    sym_id *size = new_syms(x, n_dim);
    for (uint32_t i = 0; i < n_dim; i++)
        size[i] = num(x, 1);
    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL)
            continue;
        uint32_t missing = n_dim - t[k]->n;
        for (uint32_t i = 0; i < t[k]->n; i++) {
            sym_id *to = &size[missing + i], from = t[k]->size[i];
            int64_t b;

            if (is_one(x, from) || *to == from)
                continue;
            if (is_one(x, *to))
                *to = from;
            else if (!sizes_meet(x, *to, from))
                return false;
            else if (sym_as_int(x->sym, from, &b))
                *to = from; /* a symbol that must equal a number */
        }
    }
    *n_out = n_dim;
    *size_out = size;
    return true;
}

/* The operands that count: tensors with strides. False: strides of one are unknown. */
static bool only_tensors(struct infer *x, const struct type *const *t, uint32_t n,
                         const struct type ***out, uint32_t *n_out)
{
    const struct type **list = arena_array(x->arena, const struct type *, n);

    *n_out = 0;
    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL)
            continue;
        if (!t[k]->strided)
            return false;
        list[(*n_out)++] = t[k];
    }
    *out = list;
    return true;
}

const struct type *broadcast_to(struct infer *x, const struct type *t, uint32_t n_dim,
                                const sym_id *size)
{
    struct type *to = arena_alloc(x->arena, sizeof(*to));
    sym_id *stride = new_syms(x, n_dim);
    uint32_t missing = n_dim - t->n;

    for (uint32_t i = n_dim; i-- > 0;) {
        sym_id own = i >= missing ? t->size[i - missing] : num(x, 1);
        if (is_one(x, own) && !is_one(x, size[i]))
            stride[i] = num(x, 0);
        else if (i >= missing)
            stride[i] = t->stride[i - missing];
        else
            stride[i] = t->n == 0 ? num(x, 0) : sym_mul(x->sym, size[i + 1], stride[i + 1]);
    }
    *to = *t;
    to->n = n_dim;
    to->size = size;
    to->stride = stride;
    return to;
}

sym_id *reference_strides(struct infer *x, const struct type *const *t, uint32_t n, uint32_t n_dim,
                          const sym_id *size)
{
    const struct type **list;
    uint32_t n_list;

    if (!only_tensors(x, t, n, &list, &n_list))
        return NULL;
    for (uint32_t i = 0; i < n_list; i++)
        list[i] = broadcast_to(x, list[i], n_dim, size);
    bool plain = all_contiguous(x, list, n_list, FORMAT_CONTIGUOUS);
    bool last = all_contiguous(x, list, n_list, FORMAT_CHANNELS_LAST);
    if (plain && !last)
        return contiguous_strides(x, n_dim, size);
    if (last && !plain)
        return channels_last_strides(x, n_dim, size);
    return sorted_strides(x, list, n_list, n_dim, size, true);
}

static bool any_symbolic(struct infer *x, const struct type *const *t, uint32_t n)
{
    int64_t v;

    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; t[k] != NULL && i < t[k]->n; i++)
            if (!sym_as_int(x->sym, t[k]->size[i], &v))
                return true;
    return false;
}

sym_id *elementwise_strides(struct infer *x, const struct type *const *t, uint32_t n,
                            uint32_t n_dim, const sym_id *size)
{
    const struct type **list;
    uint32_t n_list;

    if (any_symbolic(x, t, n))
        return reference_strides(x, t, n, n_dim, size);
    if (!only_tensors(x, t, n, &list, &n_list))
        return NULL;
    if (n_list == 0)
        return contiguous_strides(x, n_dim, size);
    if (all_same_shape(x, list, n_list)) {
        if (all_contiguous(x, list, n_list, FORMAT_CONTIGUOUS))
            return contiguous_strides(x, n_dim, size);
        if (all_contiguous(x, list, n_list, FORMAT_CHANNELS_LAST))
            return channels_last_strides(x, n_dim, size);
        if (all_same_strides(list, n_list) && is_dense(x, list[0]))
            return copy_syms(x, list[0]->stride, n_dim);
    }
    return sorted_strides(x, list, n_list, n_dim, size, false);
}

/* ---- device ---- */

bool is_cpu(const struct infer *x, str_id device)
{
    return strcmp(str_text(&x->store->str, device), "cpu") == 0;
}

str_id common_device(struct infer *x, const struct type *const *t, uint32_t n)
{
    str_id device = 0;

    for (uint32_t k = 0; k < n; k++) {
        if (t[k] == NULL || t[k]->device == 0)
            continue;
        if (t[k]->n > 0 || !is_cpu(x, t[k]->device))
            return t[k]->device;
        device = t[k]->device;
    }
    return device;
}

/* ---- dtype ---- */

static enum dtype either(enum dtype a, enum dtype b)
{
    return a == DTYPE_NONE ? b : b == DTYPE_NONE ? a : dtype_promote(a, b);
}

void promote_tensor(struct promotion *p, const struct type *t)
{
    enum dtype *into = t->n > 0 ? &p->dims : &p->zero_dims;
    enum dtype before = *into;

    *into = either(before, (enum dtype)t->dtype);
    p->refused |= *into == DTYPE_NONE;
}

void promote_number(struct promotion *p, enum dtype_category kind)
{
    static const uint8_t dtype[] = {[DTYPE_IS_BOOL] = DTYPE_B8,
                                    [DTYPE_IS_INT] = DTYPE_I64,
                                    [DTYPE_IS_FLOAT] = DTYPE_DEFAULT,
                                    [DTYPE_IS_COMPLEX] = DTYPE_C64};

    p->numbers = either(p->numbers, (enum dtype)dtype[kind]);
}

static bool is_complex(enum dtype d)
{
    return dtype_at(d)->category == DTYPE_IS_COMPLEX;
}

/* The tensor with dimensions decides, unless the other has a higher kind. */
static enum dtype over(enum dtype high, enum dtype low)
{
    if (high == DTYPE_NONE || low == DTYPE_NONE)
        return either(high, low);
    if (is_complex(high))
        return high;
    if (dtype_is_float(high))
        return is_complex(low) ? dtype_complex_of(high) : high;
    if (high == DTYPE_B8 || dtype_is_float(low) || is_complex(low))
        return dtype_promote(high, low);
    return high;
}

enum dtype promoted(const struct promotion *p)
{
    return p->refused ? DTYPE_NONE : over(p->dims, over(p->zero_dims, p->numbers));
}
