/* Shape rules of parts: slices, selects, lists of them, real and imaginary parts; and copies of
 * views. */
#include "infer/rule.h"
#include "infer/infer_run.h"

/* t with one dimension's size and stride replaced. */
static type_id part(struct infer *x, const struct type *t, uint32_t d, sym_id length, sym_id step)
{
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);

    for (uint32_t i = 0; i < t->n; i++) {
        size[i] = i == d ? length : t->size[i];
        stride[i] = !t->strided           ? 0
                    : i == d && step != 0 ? sym_mul(x->sym, t->stride[i], step)
                                          : t->stride[i];
    }
    return type_tensor(x->type, (enum dtype)t->dtype, t->n, size, t->strided ? stride : NULL,
                       t->device);
}

static bool is_number(const struct infer *x, sym_id v, int64_t *out)
{
    return sym_as_int(x->sym, v, out);
}

/* A position in a dimension: counted from the end if negative, clamped to 0 … size. A symbol is
 * assumed to be within; otherwise PyTorch prints the size itself. */
static sym_id place_in(struct infer *x, sym_id at, sym_id size)
{
    struct symtab *s = x->sym;
    int64_t v, n;

    if (!is_number(x, at, &v)) {
        const struct sym_node *e = sym_at(s, at);
        bool negative = e->op == SYM_MUL && sym_nonneg(s, sym_neg(s, at));
        return negative ? sym_add(s, size, at) : at;
    }
    if (is_number(x, size, &n)) {
        v = v < 0 ? (n + v < 0 ? 0 : n + v) : v;
        return v > n ? size : num(x, v);
    }
    if (v == 0)
        return at;
    if (v < 0)
        return v == -1 ? sym_add(s, size, at) : sym_max(s, num(x, 0), sym_add(s, size, at));
    return v == INT64_MAX ? size : sym_min(s, at, size);
}

/* Number of elements from start to end, by step. */
static sym_id length_of(struct infer *x, sym_id start, sym_id end, sym_id step)
{
    struct symtab *s = x->sym;
    sym_id length = sym_sub(s, end, start);
    int64_t v;

    if (length == 0)
        return 0;
    if (is_number(x, length, &v))
        length = v < 0 ? num(x, 0) : length;
    else if (is_number(x, start, &v) && v > 1)
        length = sym_max(s, num(x, 0), length);
    return is_one(x, step) ? length : sym_ceildiv(s, length, step);
}

sym_id sliced_size(struct infer *x, sym_id size, sym_id start, sym_id end, sym_id step)
{
    return length_of(x, place_in(x, start, size), place_in(x, end, size), step);
}

bool shape_slice(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id start = num(x, 0), end, step;
    int64_t dim;
    uint32_t d;

    if (t == NULL || t->n == 0 || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n, &d))
        return false;
    end = t->size[d];
    if ((in_given(x, 2) && !in_sym(x, 2, &start)) || (in_given(x, 3) && !in_sym(x, 3, &end)) ||
        !in_sym(x, 4, &step))
        return false;
    return out_type(x, part(x, t, d, sliced_size(x, t->size[d], start, end, step), step));
}

bool shape_narrow(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id length;
    int64_t dim;
    uint32_t d;

    if (t == NULL || t->n == 0 || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n, &d) ||
        !in_sym(x, 3, &length))
        return false;
    return out_type(x, part(x, t, d, length, 0));
}

bool shape_narrow_copy(struct infer *x)
{
    if (!shape_narrow(x))
        return false;
    struct type t = *type_at(x->type, x->result);
    return out_tensor(x, (enum dtype)t.dtype, t.n, t.size, NULL, t.device);
}

bool shape_roll(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    if (is_zero(x, numel(x, t))) /* a clone */
        return out_type(x, new_like(x, t, (enum dtype)t->dtype));
    return out_tensor(x, (enum dtype)t->dtype, t->n, t->size, NULL, t->device);
}

static type_id without(struct infer *x, const struct type *t, uint32_t d)
{
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);
    uint32_t k = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (i != d) {
            size[k] = t->size[i];
            stride[k++] = t->strided ? t->stride[i] : 0;
        }
    return type_tensor(x->type, (enum dtype)t->dtype, k, size, t->strided ? stride : NULL,
                       t->device);
}

bool shape_select(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t dim;
    uint32_t d;

    if (t == NULL || t->n == 0 || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n, &d))
        return false;
    return out_type(x, without(x, t, d));
}

/* ---- lists ---- */

enum { MAX_PARTS = 1 << 20 };

static bool split_sizes(struct infer *x, const struct type *t, uint32_t d, const sym_id *size,
                        uint32_t n)
{
    type_id *item = arena_array(x->arena, type_id, n);

    for (uint32_t i = 0; i < n; i++)
        item[i] = part(x, t, d, size[i], 0);
    return out_list(x, item, n);
}

/* Parts of one size; the last one has the rest. */
static bool split_even(struct infer *x, const struct type *t, uint32_t d, sym_id each)
{
    struct symtab *s = x->sym;
    int64_t size, step, n;

    if (is_number(x, t->size[d], &size) && is_number(x, each, &step)) {
        if (step < 0 || (step == 0 && size != 0))
            return false;
        n = step == 0 || size == 0 ? 1 : (size - 1) / step + 1;
    } else if (!is_number(x, sym_ceildiv(s, t->size[d], each), &n)) {
        return false;
    }
    if (n < 1 || n > MAX_PARTS)
        return false;
    sym_id *list = new_syms(x, (uint32_t)n);
    for (int64_t i = 0; i < n; i++)
        list[i] = each;
    list[n - 1] = sym_sub(s, t->size[d], sym_mul(s, each, num(x, n - 1)));
    return split_sizes(x, t, d, list, (uint32_t)n);
}

/* The dimension of a list of parts, and whether a list of sizes (or positions) is given. */
static bool split_operands(struct infer *x, const struct type **t, uint32_t *d, bool *list)
{
    int64_t dim;

    *t = in_tensor(x, 0);
    if (*t == NULL || (*t)->n == 0 || !in_int(x, in_param(x, "dim"), &dim) ||
        !wrap_dim(dim, (*t)->n, d))
        return false;
    *list = x->sig->n_params > 1 && x->arg[1] != NULL && value_is_container(x->arg[1]);
    return true;
}

bool shape_split(struct infer *x)
{
    const struct type *t;
    const sym_id *size;
    uint32_t d, n;
    bool list;
    sym_id each;

    if (!split_operands(x, &t, &d, &list))
        return false;
    if (!list && in_sym(x, 1, &each))
        return split_even(x, t, d, each);
    return in_syms(x, 1, &size, &n) && split_sizes(x, t, d, size, n);
}

/* Cuts before each of these positions. */
static bool cut_at(struct infer *x, const struct type *t, uint32_t d, const sym_id *at, uint32_t n)
{
    sym_id *size = new_syms(x, n + 1), start = num(x, 0);

    for (uint32_t i = 0; i <= n; i++) {
        sym_id end = i < n ? place_in(x, at[i], t->size[d]) : t->size[d];
        size[i] = length_of(x, start, end, num(x, 1));
        start = end;
    }
    return split_sizes(x, t, d, size, n + 1);
}

/* n parts whose sizes differ by at most one, the larger ones first. */
static bool cut_into(struct infer *x, const struct type *t, uint32_t d, int64_t n)
{
    struct symtab *s = x->sym;
    sym_id parts = num(x, n);

    if (n < 1 || n > MAX_PARTS)
        return false;
    sym_id *size = new_syms(x, (uint32_t)n);
    for (int64_t i = 0; i < n; i++) /* ceil((size - i) / n) */
        size[i] = sym_floordiv(s, sym_add(s, t->size[d], num(x, n - 1 - i)), parts);
    return split_sizes(x, t, d, size, (uint32_t)n);
}

bool shape_chunk(struct infer *x)
{
    const struct type *t;
    const sym_id *at;
    uint32_t d, n;
    bool list;
    int64_t chunks;

    if (!split_operands(x, &t, &d, &list))
        return false;
    if (in_param(x, "indices") >= 0)
        return in_syms(x, 1, &at, &n) && cut_at(x, t, d, at, n);
    if (!in_int(x, 1, &chunks) || chunks < 1 || chunks > MAX_PARTS)
        return false;
    if (in_param(x, "sections") >= 0)
        return cut_into(x, t, d, chunks);
    if (!is_zero(x, t->size[d]))
        return split_even(x, t, d, sym_ceildiv(x->sym, t->size[d], num(x, chunks)));
    sym_id *zeros = new_syms(x, (uint32_t)chunks);
    for (int64_t i = 0; i < chunks; i++)
        zeros[i] = num(x, 0);
    return split_sizes(x, t, d, zeros, (uint32_t)chunks);
}

static bool split_along(struct infer *x, uint32_t d)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *at;
    int64_t sections;
    uint32_t n;

    if (t == NULL || d >= t->n)
        return false;
    if (in_param(x, "indices") >= 0)
        return in_syms(x, 1, &at, &n) && cut_at(x, t, d, at, n);
    return in_int(x, 1, &sections) && cut_into(x, t, d, sections);
}

bool shape_hsplit(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && split_along(x, t->n > 1);
}

bool shape_vsplit(struct infer *x)
{
    return split_along(x, 0);
}

bool shape_dsplit(struct infer *x)
{
    return split_along(x, 2);
}

bool shape_unbind(struct infer *x)
{
    const struct type *t;
    uint32_t d;
    bool list;
    int64_t n;

    if (!split_operands(x, &t, &d, &list) || !is_number(x, t->size[d], &n) || n < 0 ||
        n > MAX_PARTS)
        return false;
    type_id *item = arena_array(x->arena, type_id, (uint32_t)n);
    for (int64_t i = 0; i < n; i++)
        item[i] = without(x, t, d);
    return out_list(x, item, (uint32_t)n);
}

/* ---- real and imaginary parts ---- */

bool shape_view_as_real(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || dtype_at((enum dtype)t->dtype)->category != DTYPE_IS_COMPLEX || !t->strided)
        return false;
    sym_id *size = new_syms(x, t->n + 1), *stride = new_syms(x, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++) {
        size[i] = t->size[i];
        stride[i] = sym_mul(x->sym, t->stride[i], num(x, 2));
    }
    size[t->n] = num(x, 2);
    stride[t->n] = num(x, 1);
    return out_tensor(x, dtype_real_of((enum dtype)t->dtype), t->n + 1, size, stride, t->device);
}

bool shape_view_as_complex(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || t->n == 0 || !t->strided || !sym_is_int(x->sym, t->size[t->n - 1], 2))
        return false;
    sym_id *stride = new_syms(x, t->n);
    for (uint32_t i = 0; i + 1 < t->n; i++)
        stride[i] = sym_floordiv(x->sym, t->stride[i], num(x, 2));
    return out_tensor(x, dtype_complex_of((enum dtype)t->dtype), t->n - 1, t->size, stride,
                      t->device);
}

bool shape_real(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    if (dtype_at((enum dtype)t->dtype)->category != DTYPE_IS_COMPLEX)
        return out_type(x, in_type(x, 0));
    if (!t->strided)
        return false;
    sym_id *stride = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        stride[i] = sym_mul(x->sym, t->stride[i], num(x, 2));
    return out_tensor(x, dtype_real_of((enum dtype)t->dtype), t->n, t->size, stride, t->device);
}

/* ---- copies ---- */

/* The type without gaps: what clone() makes of a view. */
static type_id copied(struct infer *x, type_id id)
{
    struct type t = *type_at(x->type, id);

    if (t.kind != TYPE_TENSOR)
        return 0;
    return type_tensor(x->type, (enum dtype)t.dtype, t.n, t.size,
                       contiguous_strides(x, t.n, t.size), t.device);
}

/* The view operator that x_copy copies: aten.permute.default for aten.permute_copy.default. */
static uint32_t view_of_copy(const struct infer *x)
{
    const char *name = x->row->name, *copy = strstr(name, "_copy.");
    char base[64];

    if (copy == NULL || strlen(name) >= sizeof(base))
        return 0;
    size_t n = (size_t)(copy - name);
    memcpy(base, name, n);
    strcpy(base + n, copy + 5);
    return op_find(base, strlen(base));
}

bool shape_view_copy(struct infer *x)
{
    uint32_t op = view_of_copy(x);

    bool copies = op == 0 ||
                  op_at(op)->shape == OP_SHAPE_view; /* whether it can be a view or not */
    if (!(copies ? shape_reshape(x) : rule_at(op_at(op)->shape)(x)))
        return false;
    return out_type(x, copied(x, x->result));
}

bool shape_split_copy(struct infer *x)
{
    uint32_t op = view_of_copy(x);

    if (op == 0 || !rule_at(op_at(op)->shape)(x))
        return false;
    struct type t = *type_at(x->type, x->result);
    type_id *item = arena_array(x->arena, type_id, t.n);
    for (uint32_t i = 0; i < t.n; i++)
        item[i] = copied(x, t.item[i]);
    return out_list(x, item, t.n);
}

bool shape_backward_sizes(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size;
    uint32_t n;

    if (t == NULL || !in_syms(x, 1, &size, &n))
        return false;
    if (in_param(x, "input_sizes") < 0) { /* sum_to_size: nothing to sum, or a sum in t's order */
        bool same = n == t->n && n > 0;
        for (uint32_t i = 0; same && i < n; i++)
            same = same_size(x, size[i], t->size[i]);
        if (same)
            return out_type(x, in_type(x, 0));
        if (!is_contiguous(x, t) || is_zero(x, numel(x, t)))
            return false;
        enum dtype_category kind = (enum dtype_category)dtype_at((enum dtype)t->dtype)->category;
        return out_tensor(
            x, kind == DTYPE_IS_INT || kind == DTYPE_IS_BOOL ? DTYPE_I64 : (enum dtype)t->dtype, n,
            size, NULL, t->device);
    }
    return out_tensor(x, (enum dtype)t->dtype, n, size, NULL, t->device);
}
