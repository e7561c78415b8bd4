/* Reading and writing at positions given by tensors. */
#include "run/kernel/hot.h"
#include "run/kernel/index_mask.h"
#include "run/kernel/index_place.h"
#include "run/kernel/plain.h"

/* ---- index, index_put ---- */

/* Self's dimensions: some are indexed by tensors that broadcast with each other, the rest are
 * taken whole. Indexed positions come first in the result, or where the indexed dimensions are if
 * those are neighbors. */
struct indexing {
    const int64_t *index[RT_DIMS];          /* by dimension of self: the broadcast index, or NULL */
    int n_self;                             /* dimensions of self, masks expanded */
    int64_t size[RT_DIMS], stride[RT_DIMS]; /* of self, contiguous */
    int64_t n_index;                        /* elements of the broadcast index */
    int64_t before, run, after_count;       /* whole dimensions before, after and between */
    int n_before, n_after;
    bool together;
};

static void dense_strides(struct rt_tensor *t)
{
    uint64_t step = 1; /* may wrap: what is too large to count is not run */

    for (int d = t->n - 1; d >= 0; d--) {
        t->stride[d] = (int64_t)step;
        step *= (uint64_t)t->size[d];
    }
}

static struct rt_tensor broadcast_like(const struct rt_value *list)
{
    struct rt_tensor like = {.n = 0, .dtype = DTYPE_I64};

    for (uint32_t i = 0; i < list->n; i++) {
        if (list->item[i].kind != RT_TENSOR)
            continue;
        const struct rt_tensor *t = list->item[i].tensor;
        int n = t->n > like.n ? t->n : like.n;
        struct rt_tensor x = like;

        for (int d = 0; d < n; d++) {
            int a = d - n + like.n, b = d - n + t->n;
            int64_t p = a >= 0 ? like.size[a] : 1, q = b >= 0 ? t->size[b] : 1;

            x.size[d] = p == 1 ? q : p;
        }
        x.n = (uint8_t)n;
        like = x;
    }
    dense_strides(&like);
    return like;
}

/* Are there no more indices than dimensions, and can they be broadcast to each other? */
static bool is_indexing(struct rt_call *c, const struct rt_tensor *self,
                        const struct rt_value *list)
{
    struct rt_tensor like = broadcast_like(list);

    if (list->n > self->n)
        return kernel_error(c, "%u indices of %d dimensions", list->n, self->n);
    for (uint32_t i = 0; i < list->n; i++) {
        if (list->item[i].kind != RT_TENSOR)
            continue;
        enum dtype d = list->item[i].tensor->dtype;
        if (kind_of(d) != K_I64)
            return kernel_error(c, "an index of %s", dtype_at(d)->name);
        if (!kernel_broadcasts(c, list->item[i].tensor, &like))
            return false;
    }
    return true;
}

static bool take_indices(struct plain *s, struct indexing *x, const struct rt_tensor *self,
                         const struct rt_value *list)
{
    struct rt_tensor like = broadcast_like(list);
    int64_t step = 1;

    if (!is_indexing(s->c, self, list))
        return false;

    *x = (struct indexing){.n_self = self->n, .n_index = rt_numel(&like)};
    for (int d = self->n - 1; d >= 0; d--) {
        x->size[d] = self->size[d];
        x->stride[d] = step;
        step *= self->size[d];
    }
    for (uint32_t i = 0; i < list->n && i < RT_DIMS; i++) {
        const struct rt_tensor *t = list->item[i].kind == RT_TENSOR ? list->item[i].tensor : NULL;

        if (t == NULL)
            continue;
        int64_t *all = plain_room(s, (size_t)x->n_index * sizeof(int64_t));
        struct rt_tensor to = like;
        to.data = all;
        copy_tensor(s->c, &to, t);
        for (int64_t k = 0; k < x->n_index; k++) {
            int64_t at = index_position(all[k], x->size[i]);

            if (at < 0)
                return index_out_of_range(s->c, all[k], x->size[i]);
            all[k] = at;
        }
        x->index[i] = all;
    }
    return true;
}

/* Is there a whole dimension between two indexed ones? Then the index comes first. */
static bool is_apart(const struct indexing *x)
{
    int phase = 0;

    for (int d = 0; d < x->n_self; d++) {
        bool indexed = x->index[d] != NULL;

        if (phase == 0 && indexed)
            phase = 1;
        else if (phase == 1 && !indexed)
            phase = 2;
        else if (phase == 2 && indexed)
            return true;
    }
    return false;
}

/* Calls `each` for every pair of places, in the order of the result: bytes in self, and elements in
 * the result. A run of whole dimensions at the end is one call. */
struct places {
    int64_t outer, run, after; /* of whole dimensions: before the index, after it, in a run */
    int whole[RT_DIMS], n_whole, n_first, n_run;
};

static struct places find_places(const struct indexing *x)
{
    struct places p = {.outer = 1, .run = 1, .after = 1};
    int first = x->n_self, last = -1;
    bool apart = is_apart(x);

    for (int d = 0; d < x->n_self; d++)
        if (x->index[d] != NULL) {
            first = d < first ? d : first;
            last = d;
        }
    for (int d = 0; d < x->n_self; d++) {
        if (x->index[d] != NULL)
            continue;
        p.whole[p.n_whole++] = d;
        if (d < first && !apart) {
            p.outer *= x->size[d];
            p.n_first = p.n_whole;
        } else if (d > last) {
            p.run *= x->size[d];
            p.n_run++;
        } else {
            p.after *= x->size[d];
        }
    }
    return p;
}

/* The place in self of the outer-th, k-th, middle-th element. */
static int64_t place_of(const struct indexing *x, const struct places *p, int64_t outer, int64_t k,
                        int64_t middle)
{
    int64_t at = 0;

    for (int i = p->n_first - 1; i >= 0; i--) {
        int d = p->whole[i];

        at += outer % x->size[d] * x->stride[d];
        outer /= x->size[d];
    }
    for (int i = p->n_whole - p->n_run - 1; i >= p->n_first; i--) {
        int d = p->whole[i];

        at += middle % x->size[d] * x->stride[d];
        middle /= x->size[d];
    }
    for (int d = 0; d < x->n_self; d++)
        if (x->index[d] != NULL)
            at += x->index[d][k] * x->stride[d];
    return at;
}

/* (self, indices) */
bool kernel_index(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *self = arg_tensor(c, 0);
    struct unmasked u;
    struct indexing x;

    if (!kernel_dtype(c, c->out, self->dtype) || !mask_expand(c, &s, self, arg_at(c, 1), &u) ||
        !take_indices(&s, &x, self, &u.list))
        return false;
    struct places p = find_places(&x);
    if (!kernel_holds(c, c->out, p.outer * x.n_index * p.after * p.run))
        return false;
    const char *from = plain_raw_in(&s, self);
    char *to = plain_raw_out(&s, c->out), *at = to;
    int64_t bytes = dtype_at(self->dtype)->bytes;
    if (rt_numel(c->out) > 0)
        for (int64_t o = 0; o < p.outer; o++)
            for (int64_t k = 0; k < x.n_index; k++)
                for (int64_t m = 0; m < p.after; m++, at += p.run * bytes)
                    memcpy(at, from + place_of(&x, &p, o, k, m) * bytes, (size_t)(p.run * bytes));
    plain_raw_done(&s, c->out, to);
    return true;
}

/* The list as it is at most, when masks are expanded; for scratch, which is asked for before data
 * are there. */
static void largest(const struct rt_call *c, const struct rt_tensor *self,
                    const struct rt_value *list, struct unmasked *u)
{
    struct rt_call looked_at = *c;
    char error[8];

    looked_at.error = error;
    looked_at.error_size = sizeof(error);
    if (!mask_expand(&looked_at, NULL, self, list, u))
        u->list.n = 0; /* and it is not run */
}

size_t scratch_index(const struct rt_call *c)
{
    struct unmasked u;

    largest(c, arg_tensor(c, 0), arg_at(c, 1), &u);
    struct rt_tensor like = broadcast_like(&u.list);
    return 2 * plain_scratch(c, 0) + kernel_bytes(u.list.n + 1, rt_numel(&like), 8) +
           ((size_t)u.list.n + 1) * RT_ALIGN + mask_bytes(arg_at(c, 1));
}

int64_t count_index(const struct rt_call *c)
{
    return mask_count(arg_at(c, 1));
}

/* values, broadcast to the result of indexing, as a plain array; NULL if they cannot be. */
static const char *broadcast_values(struct plain *s, const struct indexing *x,
                                    const struct places *p, const struct rt_value *list,
                                    const struct rt_tensor *values, enum dtype d)
{
    struct rt_tensor like = broadcast_like(list), t = {.dtype = (uint8_t)d};
    int n = 0;

    for (int i = 0; i < p->n_first; i++)
        t.size[n++] = x->size[p->whole[i]];
    for (int i = 0; i < like.n; i++)
        t.size[n++] = like.size[i];
    for (int i = p->n_first; i < p->n_whole; i++)
        t.size[n++] = x->size[p->whole[i]];
    t.n = (uint8_t)n;
    dense_strides(&t);
    t.data = plain_room(s, (size_t)rt_numel(&t) * dtype_at(d)->bytes);
    return copy_tensor(s->c, &t, values) ? t.data : NULL;
}

/* (self, indices, values, accumulate) */
static bool put(struct rt_call *c, const struct rt_tensor *self, const struct rt_value *list,
                const struct rt_tensor *values, bool accumulate)
{
    struct plain s = plain_begin(c);
    struct unmasked u;
    struct indexing x;
    const struct rt_tensor *out = out_at(c, 0), *result = out != NULL ? out : self;

    if (!kernel_like(c, result, self) || !mask_expand(c, &s, self, list, &u))
        return false;
    list = &u.list;
    if (!take_indices(&s, &x, self, list))
        return false;
    struct places p = find_places(&x);
    if (broadcast_like(list).n + p.n_whole > RT_DIMS)
        return kernel_error(c, "more than %d dimensions", RT_DIMS);
    enum dtype d = self->dtype;
    int64_t bytes = dtype_at(d)->bytes;
    if (rt_numel(self) == 0)
        return true;
    const char *from = broadcast_values(&s, &x, &p, list, values, d);
    if (from == NULL)
        return false;
    if (result->data != self->data && !copy_tensor(c, result, self))
        return false;
    char *to = (char *)(uintptr_t)plain_raw_in(&s, result);
    for (int64_t o = 0; o < p.outer; o++)
        for (int64_t k = 0; k < x.n_index; k++)
            for (int64_t m = 0; m < p.after; m++, from += p.run * bytes) {
                char *place = to + place_of(&x, &p, o, k, m) * bytes;

                if (accumulate)
                    index_add_run(place, from, d, p.run);
                else
                    memcpy(place, from, (size_t)(p.run * bytes));
            }
    plain_raw_done(&s, result, to);
    return true;
}

/* self with one value wherever the mask, which has self's first dimensions, is true. */
static bool put_where(struct rt_call *c, const struct rt_tensor *self, const struct rt_tensor *mask,
                      const struct rt_tensor *value)
{
    const struct rt_tensor *result = out_at(c, 0) != NULL ? c->out : self;
    struct rt_tensor row = *result;
    int64_t at[RT_DIMS] = {0}, bytes = dtype_at(result->dtype)->bytes;

    if (!kernel_like(c, result, self))
        return false;
    if (result->data != self->data && !copy_tensor(c, result, self))
        return false;
    row.n = (uint8_t)(result->n - mask->n);
    for (int d = 0; d < row.n; d++) {
        row.size[d] = result->size[d + mask->n];
        row.stride[d] = result->stride[d + mask->n];
    }
    for (int64_t k = 0; k < rt_numel(mask); k++) {
        int64_t m = 0, r = 0;

        for (int d = 0; d < mask->n; d++) {
            m += at[d] * mask->stride[d];
            r += at[d] * result->stride[d];
        }
        row.data = (char *)result->data + r * bytes;
        if (((const uint8_t *)mask->data)[m] && !copy_tensor(c, &row, value))
            return false;
        for (int d = mask->n - 1; d >= 0 && ++at[d] == mask->size[d]; d--)
            at[d] = 0;
    }
    return true;
}

/* Is it the one mask that put_where() takes? */
static const struct rt_tensor *only_mask(const struct rt_tensor *self, const struct rt_value *list,
                                         const struct rt_tensor *values)
{
    const struct rt_tensor *m = list->n == 1 && list->item[0].kind == RT_TENSOR
                                    ? list->item[0].tensor
                                    : NULL;

    if (m == NULL || m->dtype != DTYPE_B8 || m->n > self->n || rt_numel(values) != 1)
        return NULL;
    for (int d = 0; d < m->n; d++)
        if (m->size[d] != self->size[d])
            return NULL;
    return m;
}

bool kernel_index_put(struct rt_call *c)
{
    const struct rt_tensor *mask = only_mask(arg_tensor(c, 0), arg_at(c, 1), arg_tensor(c, 2));

    if (mask != NULL && !arg_bool(c, 3, false))
        return put_where(c, arg_tensor(c, 0), mask, arg_tensor(c, 2));
    return put(c, arg_tensor(c, 0), arg_at(c, 1), arg_tensor(c, 2), arg_bool(c, 3, false));
}

static size_t put_scratch(const struct rt_call *c, const struct rt_tensor *self,
                          const struct rt_value *list)
{
    struct unmasked u;
    int64_t whole = 1;

    largest(c, self, list, &u);
    struct rt_tensor like = broadcast_like(&u.list);
    for (int d = 0; d < self->n; d++)
        if (d >= (int)u.list.n || u.list.item[d].kind != RT_TENSOR)
            whole *= self->size[d] > 0 ? self->size[d] : 1;
    return 2 * plain_scratch(c, 0) + kernel_bytes(u.list.n + 1, rt_numel(&like), 8) +
           ((size_t)u.list.n + 1) * RT_ALIGN + mask_bytes(list) +
           kernel_bytes(rt_numel(&like), whole, dtype_at(self->dtype)->bytes) + 128;
}

size_t scratch_index_put(const struct rt_call *c)
{
    return put_scratch(c, arg_tensor(c, 0), arg_at(c, 1));
}

/* A contiguous tensor of the size that values and mask have together, without data. */
static struct rt_tensor masked_like(const struct rt_tensor *values, const struct rt_tensor *mask)
{
    struct rt_tensor t = {.dtype = values->dtype, .n = values->n > mask->n ? values->n : mask->n};

    for (int d = t.n - 1; d >= 0; d--) {
        int v = d - (t.n - values->n), m = d - (t.n - mask->n);
        int64_t size = v >= 0 ? values->size[v] : 1;

        t.size[d] = m >= 0 && mask->size[m] != 1 ? mask->size[m] : size;
    }
    dense_strides(&t);
    return t;
}

/* A number wherever the mask, broadcast to t, is false. */
static bool fill_unless(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *mask,
                        const struct rt_value *number)
{
    struct rt_tensor one = {.dtype = t->dtype};
    int64_t at[RT_DIMS] = {0}, bytes = dtype_at(t->dtype)->bytes;

    for (int64_t k = 0; k < rt_numel(t); k++) {
        int64_t m = 0, p = 0;

        for (int d = 0; d < t->n; d++) {
            int of = d - (t->n - mask->n);

            p += at[d] * t->stride[d];
            m += of >= 0 && mask->size[of] > 1 ? at[d] * mask->stride[of] : 0;
        }
        one.data = (char *)t->data + p * bytes;
        if (!((const uint8_t *)mask->data)[m] && !fill_tensor(c, &one, number))
            return false;
        for (int d = t->n - 1; d >= 0 && ++at[d] == t->size[d]; d--)
            at[d] = 0;
    }
    return true;
}

/* Indices that lie in self: limited, as torch does, and not negative. Where a mask is false they do
 * not matter. */
static void limit(struct rt_call *c, struct plain *s, const struct rt_tensor *self,
                  const struct rt_value *list, const struct rt_tensor *like, struct rt_value *safe,
                  struct rt_tensor *index)
{
    for (uint32_t i = 0; i < list->n; i++) {
        safe[i] = list->item[i];
        if (list->item[i].kind != RT_TENSOR)
            continue;
        index[i] = *like;
        index[i].data = plain_room(s, (size_t)rt_numel(like) * 8);
        copy_tensor(c, &index[i], list->item[i].tensor);
        int64_t size = self->size[i], *at = index[i].data;
        for (int64_t k = 0; k < rt_numel(like); k++) {
            int64_t x = at[k] < -size ? -size : at[k] >= size ? size - 1 : at[k];

            at[k] = x < 0 ? x + size : x;
        }
        safe[i].tensor = &index[i];
    }
}

/* _unsafe_masked_index(self, mask, indices, fill) */
bool kernel_masked_index(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *mask = arg_tensor(c, 1);
    const struct rt_value *list = arg_at(c, 2);
    struct plain s = plain_begin(c);
    struct rt_tensor like = broadcast_like(list), index[RT_DIMS];
    struct rt_value safe[RT_DIMS], fixed = {.kind = RT_LIST, .n = list->n, .item = safe},
                                   chosen[2] = {{.kind = RT_TENSOR, .tensor = self}, fixed};

    if (rt_numel(c->out) == 0)
        return true;
    if (!is_indexing(c, self, list) || !kernel_broadcasts(c, mask, c->out))
        return false;
    limit(c, &s, self, list, &like, safe, index);
    struct rt_call inner = *c;
    inner.scratch = s.at;
    inner.arg = chosen;
    inner.n_arg = 2;
    if (rt_numel(self) == 0)
        return fill_tensor(c, c->out, arg_at(c, 3));
    if (!kernel_index(&inner))
        return false;
    return fill_unless(c, c->out, mask, arg_at(c, 3));
}

size_t scratch_masked_index(const struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 2);
    struct rt_tensor like = broadcast_like(list);

    return 2 * put_scratch(c, arg_tensor(c, 0), list) +
           kernel_bytes(list->n + 2, rt_numel(&like), 8) + ((size_t)list->n + 2) * RT_ALIGN + 512;
}

/* _unsafe_masked_index_put_accumulate(self, mask, indices, values): where the mask is false,
 * nothing is added, and the index does not matter. */
bool kernel_masked_index_put(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *mask = arg_tensor(c, 1),
                           *values = arg_tensor(c, 3);
    const struct rt_value *list = arg_at(c, 2);
    struct plain s = plain_begin(c);
    struct rt_tensor like = broadcast_like(list);
    struct rt_value safe[RT_DIMS];
    struct rt_tensor index[RT_DIMS];

    struct rt_tensor wide = masked_like(values, mask), keep = wide; /* zeros where it is false */
    if (!is_indexing(c, self, list) || !kernel_broadcasts(c, mask, &wide) ||
        !kernel_broadcasts(c, values, &wide))
        return false;
    limit(c, &s, self, list, &like, safe, index);
    int64_t n = rt_numel(&wide), bytes = dtype_at(wide.dtype)->bytes;
    wide.data = plain_room(&s, (size_t)(n * bytes));
    keep.dtype = DTYPE_B8;
    keep.data = plain_room(&s, (size_t)n);
    if (!copy_tensor(c, &wide, values) || !copy_tensor(c, &keep, mask))
        return false;
    for (int64_t k = 0; k < n; k++)
        if (!((const uint8_t *)keep.data)[k])
            memset((char *)wide.data + k * bytes, 0, (size_t)bytes);
    struct rt_value fixed = {.kind = RT_LIST, .n = list->n, .item = safe};
    struct rt_call inner = *c;
    inner.scratch = s.at;
    return put(&inner, self, &fixed, &wide, true);
}

size_t scratch_masked_index_put(const struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 2);
    struct rt_tensor like = broadcast_like(list),
                     wide = masked_like(arg_tensor(c, 3), arg_tensor(c, 1));

    return 2 * put_scratch(c, arg_tensor(c, 0), list) +
           kernel_bytes(list->n + 2, rt_numel(&like), 8) + ((size_t)list->n + 2) * RT_ALIGN +
           kernel_bytes(rt_numel(&wide), 3, 16) + 512;
}

/* ---- embedding ---- */

/* Has t so many rows? */
static bool kernel_rows(struct rt_call *c, const struct rt_tensor *t, int64_t rows, int64_t width)
{
    int64_t n;

    return !__builtin_mul_overflow(rows, width, &n) ? kernel_holds(c, t, n) : kernel_apart(c);
}

/* (weight, indices) */
bool kernel_embedding(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *weight = arg_tensor(c, 0), *indices = arg_tensor(c, 1);

    if (weight->n != 2 || !kernel_dtype(c, c->out, weight->dtype) ||
        !kernel_rows(c, c->out, rt_numel(indices), weight->size[1]))
        return weight->n != 2 ? kernel_apart(c) : false;
    const int64_t *index = plain_in(&s, indices, K_I64);
    int64_t n = rt_numel(indices), width = weight->size[1], bytes = dtype_at(weight->dtype)->bytes;
    char *to = plain_raw_out(&s, c->out);

    for (int64_t i = 0; i < n; i++) {
        int64_t row = index[i];

        if (row < 0 || row >= weight->size[0])
            return index_out_of_range(c, row, weight->size[0]);
        elem_move(to + i * width * bytes, 1, (char *)weight->data + row * weight->stride[0] * bytes,
                  weight->stride[1], (size_t)bytes, width);
    }
    plain_raw_done(&s, c->out, to);
    return true;
}

size_t scratch_embedding(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* (grad, indices, num_weights, padding_idx, scale_grad_by_freq): sums in float */
bool kernel_embedding_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0), *indices = arg_tensor(c, 1);

    if (c->out->n != 2 || !kernel_rows(c, grad, rt_numel(indices), c->out->size[1]))
        return c->out->n != 2 ? kernel_apart(c) : false;
    const int64_t *index = plain_in(&s, indices, K_I64);
    enum kind k = plain_float(c->out);
    const char *g = plain_in(&s, grad, k);
    char *to = plain_out(&s, c->out, k);
    int64_t n = rt_numel(indices), width = c->out->size[1], bytes = kind_bytes[k];
    int64_t padding = arg_int(c, 3, -1), rows = c->out->size[0];

    if (arg_bool(c, 4, false))
        return kernel_error(c, "no kernel scales gradients of embeddings by frequency");
    memset(to, 0, (size_t)(rows * width * bytes));
    for (int64_t i = 0; i < n; i++) {
        if (index[i] == padding)
            continue;
        if (index[i] < 0 || index[i] >= rows)
            return index_out_of_range(c, index[i], rows);
        hot_get()->column[REDUCE_SUM][k](to + index[i] * width * bytes, g + i * width * bytes,
                                         width);
    }
    plain_done(&s, c->out, to, k);
    return true;
}

size_t scratch_embedding_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
