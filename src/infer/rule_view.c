/* Shape rules of views: the same elements with other sizes and strides. */
#include "infer/rule.h"

static bool like_of(struct infer *x, const struct type *t, uint32_t n, const sym_id *size,
                    const sym_id *stride)
{
    return out_type(x, type_tensor(x->type, (enum dtype)t->dtype, n, size,
                                   t->strided ? stride : NULL, t->device));
}

/* ---- view and reshape ---- */

static bool empty(struct infer *x, uint32_t n, const sym_id *size)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_zero(x, size[i]))
            return true;
    return false;
}

static bool all_numbers(struct infer *x, uint32_t n, const sym_id *size)
{
    int64_t v;

    for (uint32_t i = 0; i < n; i++)
        if (!sym_as_int(x->sym, size[i], &v))
            return false;
    return true;
}

sym_id *inner_view_strides(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    struct symtab *s = x->sym;
    sym_id *out = contiguous_strides(x, n, size);
    uint32_t to = n;

    if (t->n == 0 || empty(x, t->n, t->size))
        return out;
    /* Sizes that are equal only by a guard outside the text cannot be matched; contiguous stays
     * contiguous. */
    if ((!all_numbers(x, t->n, t->size) || !all_numbers(x, n, size)) && is_contiguous(x, t))
        return out;
    /* From the last dimension on, old dimensions without a gap between them form a run; the new
     * dimensions must fill run by run. */
    for (uint32_t from = t->n; from > 0;) {
        sym_id base = t->stride[from - 1], run = t->size[from - 1], filled = num(x, 1);
        for (from--; from > 0; from--) {
            sym_id next = t->size[from - 1];
            if (!is_one(x, next) && !same_size(x, t->stride[from - 1], sym_mul(s, run, base)))
                break;
            run = sym_mul(s, run, next);
        }
        while (to > 0 && (!same_size(x, filled, run) || is_one(x, size[to - 1]))) {
            out[--to] = sym_mul(s, filled, base);
            filled = sym_mul(s, filled, size[to]);
        }
        if (!same_size(x, filled, run))
            return NULL;
    }
    return to == 0 ? out : NULL;
}

/* The dimensions of a tensor that a view has not used yet: top is the next. */
struct unseen {
    sym_id *size, *stride;
    uint32_t top, n;
};

static bool divides(struct infer *x, sym_id by, sym_id all)
{
    return is_one(x, by) ||
           is_zero(x, sym_sub(x->sym, all, sym_mul(x->sym, by, sym_floordiv(x->sym, all, by))));
}

/* Joins the next dimensions until `length` divides the product. They must be without gaps; those of
 * size 1 are not checked. */
static bool join_next(struct infer *x, struct unseen *u, sym_id length)
{
    struct symtab *s = x->sym;
    uint32_t end = u->top;
    sym_id all = u->size[end];

    while (!divides(x, length, all)) {
        if (++end >= u->n)
            return false;
        all = sym_mul(s, all, u->size[end]);
    }
    sym_id stride = u->stride[end];
    for (uint32_t i = end; i-- > u->top;) {
        if (is_one(x, u->size[i]))
            continue;
        if (hint_of(x, u->stride[i]) < hint_of(x, stride))
            stride = u->stride[i];
        if (!is_one(x, u->size[i + 1]) &&
            !same_size(x, u->stride[i], sym_mul(s, u->stride[i + 1], u->size[i + 1])))
            return false;
    }
    u->top = end;
    u->size[end] = all;
    u->stride[end] = stride;
    return true;
}

/* If several strides are possible (sizes of 1), PyTorch's are these: new dimensions are made from
 * the first old ones on, by keeping, joining and cutting. */
sym_id *view_strides(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    struct symtab *s = x->sym;
    sym_id *out = contiguous_strides(x, n, size);
    bool contiguous = is_contiguous(x, t);

    if (t->n == 0 || n == 0 || empty(x, t->n, t->size))
        return out;
    if (contiguous && ((n == 1 && t->n > 1) || (n == 2 && t->n == 1)))
        return out;
    struct unseen u = {new_syms(x, t->n), new_syms(x, t->n), 0, t->n};
    memcpy(u.size, t->size, t->n * sizeof(*u.size));
    memcpy(u.stride, t->stride, t->n * sizeof(*u.stride));
    sym_id last = t->stride[t->n - 1]; /* of the dimension before */
    for (uint32_t i = 0; i < n; i++) {
        if (u.top == u.n) {
            if (!is_one(x, size[i]))
                return contiguous ? contiguous_strides(x, n, size) : NULL;
            out[i] = last;
            continue;
        }
        if (!same_size(x, size[i], u.size[u.top]) && !join_next(x, &u, size[i]))
            return contiguous ? contiguous_strides(x, n, size) : NULL;
        if (same_size(x, size[i], u.size[u.top])) {
            out[i] = last = u.stride[u.top++];
            continue;
        }
        u.size[u.top] = sym_floordiv(s, u.size[u.top], size[i]);
        out[i] = last = sym_mul(s, u.stride[u.top], u.size[u.top]);
    }
    for (; u.top < u.n; u.top++)
        if (!is_one(x, u.size[u.top]))
            return contiguous ? contiguous_strides(x, n, size) : NULL;
    return out;
}

/* Replaces the -1 among the sizes of a view by a number. */
static bool fill_size(struct infer *x, sym_id total, uint32_t n, const sym_id *size,
                      const sym_id **out)
{
    sym_id *list = new_syms(x, n), rest = num(x, 1);
    uint32_t hole = n;

    for (uint32_t i = 0; i < n; i++) {
        list[i] = size[i];
        if (!sym_is_int(x->sym, size[i], -1)) {
            rest = sym_mul(x->sym, rest, size[i]);
        } else if (hole < n) {
            return false;
        } else {
            hole = i;
        }
    }
    if (hole < n) {
        if (is_zero(x, rest))
            return false;
        list[hole] = sym_floordiv(x->sym, total, rest);
    }
    *out = list;
    return true;
}

/* The sizes for view or reshape: given, or those of another tensor. */
static bool wanted_sizes(struct infer *x, const struct type *t, uint32_t *n, const sym_id **size)
{
    const struct type *other = in_tensor(x, in_param(x, "other"));

    if (other != NULL) {
        *size = other->size;
        *n = other->n;
        return true;
    }
    return in_syms(x, 1, size, n) && fill_size(x, numel(x, t), *n, *size, size);
}

static bool as_view(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    if (!t->strided)
        return like_of(x, t, n, size, NULL);
    sym_id *stride = view_strides(x, t, n, size);
    return stride != NULL && like_of(x, t, n, size, stride);
}

static bool as_reshape(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    if (!t->strided)
        return like_of(x, t, n, size, NULL);
    if (inner_view_strides(x, t, n, size) == NULL)
        return like_of(x, t, n, size, contiguous_strides(x, n, size));
    return as_view(x, t, n, size);
}

bool shape_view(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size;
    uint32_t n;

    return t != NULL && wanted_sizes(x, t, &n, &size) && as_view(x, t, n, size);
}

bool shape_reshape(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size;
    uint32_t n;

    return t != NULL && wanted_sizes(x, t, &n, &size) && as_reshape(x, t, n, size);
}

bool shape_flatten(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t first = 0, last = -1;
    uint32_t a, b, k = 0;

    if (t == NULL || (x->sig->n_params > 1 && (!in_int(x, 1, &first) || !in_int(x, 2, &last))))
        return false;
    if (!wrap_dim(first, t->n, &a) || !wrap_dim(last, t->n, &b) || a > b)
        return false;
    if (x->sig->n_params > 1 && a == b && t->n > 0)
        return out_type(x, in_type(x, 0));
    if (x->sig->n_params == 1 && t->strided && !is_contiguous(x, t)) /* ravel copies */
        return like_of(x, t, 1, (sym_id[]){numel(x, t)}, (sym_id[]){num(x, 1)});
    sym_id *size = new_syms(x, t->n + 1), product = num(x, 1);
    for (uint32_t i = 0; i < t->n || i == 0; i++) {
        if (i >= a && i <= b) {
            product = t->n ? sym_mul(x->sym, product, t->size[i]) : product;
            if (i == b)
                size[k++] = product;
        } else {
            size[k++] = t->size[i];
        }
    }
    return as_reshape(x, t, k, size);
}

bool shape_unflatten(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *part;
    int64_t dim;
    uint32_t n, d, k = 0;

    if (t == NULL || t->n == 0 || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n, &d) ||
        !in_syms(x, 2, &part, &n) || !fill_size(x, t->size[d], n, part, &part))
        return false;
    sym_id *size = new_syms(x, t->n + n);
    for (uint32_t i = 0; i < t->n; i++) {
        if (i != d)
            size[k++] = t->size[i];
        for (uint32_t j = 0; i == d && j < n; j++)
            size[k++] = part[j];
    }
    return as_view(x, t, k, size);
}

bool shape_view_dtype(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct symtab *s = x->sym;
    enum dtype to;

    if (t == NULL || !in_dtype(x, 1, &to))
        return false;
    int64_t a = dtype_at((enum dtype)t->dtype)->bytes, b = dtype_at(to)->bytes;
    if (a == 0 || b == 0 || (a != b && (t->n == 0 || !t->strided)))
        return false;
    if (a == b)
        return out_type(x, type_tensor(x->type, to, t->n, t->size, t->stride, t->device));
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);
    sym_id k = num(x, a > b ? a / b : b / a);
    for (uint32_t i = 0; i < t->n; i++) {
        bool last = i + 1 == t->n;
        size[i] = !last   ? t->size[i]
                  : a > b ? sym_mul(s, t->size[i], k)
                          : sym_floordiv(s, t->size[i], k);
        stride[i] = last    ? num(x, 1)
                    : a > b ? sym_mul(s, t->stride[i], k)
                            : sym_floordiv(s, t->stride[i], k);
    }
    return out_tensor(x, to, t->n, size, stride, t->device);
}

/* ---- order of dimensions ---- */

static bool permuted(struct infer *x, const struct type *t, const uint32_t *order)
{
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);

    for (uint32_t i = 0; i < t->n; i++) {
        size[i] = t->size[order[i]];
        stride[i] = t->strided ? t->stride[order[i]] : 0;
    }
    return like_of(x, t, t->n, size, stride);
}

bool shape_permute(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dims;
    uint32_t n;

    if (t == NULL || !in_ints(x, 1, &dims, &n) || n != t->n)
        return false;
    uint32_t *order = arena_array(x->arena, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        if (!wrap_dim(dims[i], n, &order[i]))
            return false;
    return permuted(x, t, order);
}

bool shape_transpose(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t first = -2, second = -1;
    uint32_t a, b;

    if (t == NULL)
        return false;
    if (x->sig->n_params == 3) {
        if (!in_int(x, 1, &first) || !in_int(x, 2, &second))
            return false;
    } else if (t->n < 2) {
        return out_type(x, in_type(x, 0));
    }
    if (!wrap_dim(first, t->n, &a) || !wrap_dim(second, t->n, &b))
        return false;
    uint32_t *order = arena_array(x->arena, uint32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        order[i] = i == a ? b : i == b ? a : i;
    return permuted(x, t, order);
}

bool shape_reverse_dims(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    uint32_t *order = arena_array(x->arena, uint32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        order[i] = t->n - 1 - i;
    return permuted(x, t, order);
}

bool shape_movedim(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *from, *to;
    uint32_t n_from, n_to;

    if (t == NULL || !in_ints(x, 1, &from, &n_from) || !in_ints(x, 2, &to, &n_to) || n_from != n_to)
        return false;
    uint32_t *order = arena_array(x->arena, uint32_t, t->n + 1);
    bool *placed = arena_zeroed(x->arena, t->n + 1), *moved = arena_zeroed(x->arena, t->n + 1);
    for (uint32_t i = 0; i < n_from; i++) {
        uint32_t a, b;
        if (!wrap_dim(from[i], t->n, &a) || !wrap_dim(to[i], t->n, &b) || moved[a] || placed[b])
            return false;
        order[b] = a;
        moved[a] = placed[b] = true;
    }
    for (uint32_t i = 0, a = 0; i < t->n; i++)
        if (!placed[i]) {
            while (moved[a])
                a++;
            order[i] = a++;
        }
    return permuted(x, t, order);
}

/* ---- dimensions of size 1 ---- */

bool shape_unsqueeze(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    int64_t dim;
    uint32_t d, k = 0;

    if (t == NULL || !in_int(x, 1, &dim) || !wrap_dim(dim, t->n + 1, &d))
        return false;
    sym_id *size = new_syms(x, t->n + 1), *stride = new_syms(x, t->n + 1);
    for (uint32_t i = 0; i <= t->n; i++) {
        if (i == d) {
            size[i] = num(x, 1);
            stride[i] = !t->strided ? 0
                        : d < t->n  ? sym_mul(x->sym, t->size[d], t->stride[d])
                                    : num(x, 1);
            continue;
        }
        size[i] = t->size[k];
        stride[i] = t->strided ? t->stride[k] : 0;
        k++;
    }
    return like_of(x, t, t->n + 1, size, stride);
}

bool shape_squeeze(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const int64_t *dims;
    uint32_t n, k = 0, d;

    if (t == NULL)
        return false;
    bool *drop = arena_zeroed(x->arena, t->n + 1);
    if (x->sig->n_params == 1) {
        memset(drop, true, t->n);
    } else {
        if (!in_ints(x, 1, &dims, &n))
            return false;
        for (uint32_t i = 0; i < n; i++) {
            if (!wrap_dim(dims[i], t->n, &d))
                return false;
            drop[d] = true;
        }
    }
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        if (drop[i] && is_one(x, t->size[i]))
            continue;
        size[k] = t->size[i];
        stride[k++] = t->strided ? t->stride[i] : 0;
    }
    return like_of(x, t, k, size, stride);
}

bool expand_to(struct infer *x, const struct type *t, uint32_t n, const sym_id *want, sym_id *size,
               sym_id *stride)
{
    if (n < t->n || !t->strided)
        return false;
    uint32_t missing = n - t->n;
    for (uint32_t i = n; i > 0; i--) {
        uint32_t d = i - 1;
        bool fresh = d < missing;
        sym_id old = fresh ? num(x, 1) : t->size[d - missing];
        /* The stride of a new dimension spans everything inside it, in case it stays of size 1. */
        sym_id step = !fresh      ? t->stride[d - missing]
                      : t->n == 0 ? num(x, 0)
                      : i == n    ? num(x, 1)
                                  : sym_mul(x->sym, size[i], stride[i]);

        size[d] = want[d];
        if (sym_is_int(x->sym, want[d], -1)) {
            if (fresh)
                return false;
            size[d] = old;
        }
        int64_t a, b;
        if (sym_as_int(x->sym, old, &a) && a != 1 && sym_as_int(x->sym, size[d], &b) && a != b)
            return false;
        stride[d] = is_one(x, old) && !is_one(x, size[d]) ? num(x, 0) : step;
    }
    return true;
}

bool shape_expand(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *other = in_tensor(x, in_param(x, "other"));
    const sym_id *want;
    uint32_t n;

    if (t == NULL)
        return false;
    if (other != NULL) {
        want = other->size;
        n = other->n;
    } else if (!in_syms(x, 1, &want, &n)) {
        return false;
    }
    sym_id *size = new_syms(x, n), *stride = new_syms(x, n);
    return expand_to(x, t, n, want, size, stride) && like_of(x, t, n, size, stride);
}

bool shape_broadcast_in_dim(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *want;
    const int64_t *place;
    uint32_t n, n_place;

    if (t == NULL || !t->strided || !in_syms(x, 1, &want, &n) || !in_ints(x, 2, &place, &n_place) ||
        n_place != t->n)
        return false;
    sym_id *stride = new_syms(x, n), step = num(x, 1);
    for (uint32_t i = n, k = n_place; i > 0; i--) {
        bool old = k > 0 && place[k - 1] == (int64_t)i - 1;
        /* step: spans everything inside, before anything is repeated */
        bool repeated = !is_one(x, want[i - 1]);
        if (old) {
            k--;
            repeated &= is_one(x, t->size[k]);
            step = t->stride[k];
        }
        stride[i - 1] = repeated ? num(x, 0) : step;
        if (old)
            step = sym_mul(x->sym, step, t->size[k]);
    }
    return like_of(x, t, n, want, stride);
}

/* ---- others ---- */

bool shape_as_strided(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size, *stride;
    uint32_t n, n_stride;

    if (t == NULL || !in_syms(x, 1, &size, &n) || !in_syms(x, 2, &stride, &n_stride) ||
        n != n_stride)
        return false;
    return out_tensor(x, (enum dtype)t->dtype, n, size, stride, t->device);
}

bool shape_diagonal(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct symtab *s = x->sym;
    int64_t offset, first, second;
    uint32_t a, b, k = 0;

    if (t == NULL || t->n < 2 || !t->strided || !in_int(x, 1, &offset) || !in_int(x, 2, &first) ||
        !in_int(x, 3, &second) || !wrap_dim(first, t->n, &a) || !wrap_dim(second, t->n, &b) ||
        a == b)
        return false;
    sym_id rows = t->size[a], cols = t->size[b];
    if (offset >= 0)
        cols = sym_sub(s, cols, num(x, offset));
    else
        rows = sym_add(s, rows, num(x, offset));
    sym_id *size = new_syms(x, t->n), *stride = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        if (i != a && i != b) {
            size[k] = t->size[i];
            stride[k++] = t->stride[i];
        }
    size[k] = sym_max(s, sym_min(s, rows, cols), num(x, 0));
    stride[k++] = sym_add(s, t->stride[a], t->stride[b]);
    return like_of(x, t, k, size, stride);
}

bool shape_unfold(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct symtab *s = x->sym;
    sym_id window, step;
    int64_t dim;
    uint32_t d;

    if (t == NULL || !t->strided || !in_int(x, 1, &dim) || !in_sym(x, 2, &window) ||
        !in_sym(x, 3, &step) || !wrap_dim(dim, t->n, &d))
        return false;
    if (t->n == 0)
        return like_of(x, t, 1, &window, (sym_id[]){num(x, 1)});
    sym_id *size = new_syms(x, t->n + 1), *stride = new_syms(x, t->n + 1);
    memcpy(size, t->size, t->n * sizeof(*size));
    memcpy(stride, t->stride, t->n * sizeof(*stride));
    size[d] = sym_add(s, sym_floordiv(s, sym_sub(s, t->size[d], window), step), num(x, 1));
    stride[d] = sym_mul(s, t->stride[d], step);
    size[t->n] = window;
    stride[t->n] = t->stride[d];
    return like_of(x, t, t->n + 1, size, stride);
}
