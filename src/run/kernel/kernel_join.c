/* Tensors put together from others: cat, stack, pad, *_scatter, repeat, copies into a tensor. */
#include "run/kernel/plain.h"

/* The part of t from `begin` on, of `size` elements along a dimension, every step-th. */
static struct rt_tensor slice(const struct rt_tensor *t, int dim, int64_t begin, int64_t size,
                              int64_t step)
{
    struct rt_tensor x = *t;

    x.data = (char *)t->data + begin * t->stride[dim] * dtype_at(t->dtype)->bytes;
    x.size[dim] = size;
    x.stride[dim] *= step;
    return x;
}

/* Where element i lies, if all are counted in their order. */
static char *element(const struct rt_tensor *t, int64_t i)
{
    int64_t at = 0;

    for (int d = t->n - 1; d >= 0; d--) {
        at += i % t->size[d] * t->stride[d];
        i /= t->size[d];
    }
    return (char *)t->data + at * dtype_at(t->dtype)->bytes;
}

/* Sizes of `like`, in the memory of a contiguous tensor. */
static struct rt_tensor seen_as(const struct rt_tensor *t, const struct rt_tensor *like)
{
    struct rt_tensor x = *like;

    x.data = t->data;
    for (int64_t d = like->n - 1, step = 1; d >= 0; step *= like->size[d--])
        x.stride[d] = step;
    return x;
}

/* Other sizes where a view cannot have them. */
bool kernel_reshape(struct rt_call *c)
{
    const struct rt_tensor *from = arg_tensor(c, 0), *to = c->out;
    int64_t n = rt_numel(to);
    struct rt_tensor seen;

    if (n != rt_numel(from) || from->dtype != to->dtype)
        return kernel_error(c, "a reshape of %lld elements to %lld", (long long)rt_numel(from),
                            (long long)n);
    if (rt_contiguous(to)) {
        seen = seen_as(to, from);
        return copy_tensor(c, &seen, from);
    }
    if (rt_contiguous(from)) {
        seen = seen_as(from, to);
        return copy_tensor(c, to, &seen);
    }
    for (int64_t i = 0; i < n; i++)
        memcpy(element(to, i), element(from, i), dtype_at(to->dtype)->bytes);
    return true;
}

/* (tensors, dim) */
bool kernel_cat(struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 0);
    const struct rt_tensor *out = c->out;
    int64_t at = 0;
    int dim;

    if (out->n == 0 || !kernel_dim(c, out, arg_int(c, 1, 0), &dim))
        return out->n == 0 ? kernel_apart(c) : false;

    for (uint32_t i = 0; i < list->n; i++) {
        const struct rt_tensor *t = list->item[i].tensor;

        if (t->n == 1 && t->size[0] == 0 && out->n != 1)
            continue; /* torch leaves out empty vectors, whatever the others are */
        if (t->n != out->n || t->size[dim] > out->size[dim] - at)
            return kernel_apart(c);
        struct rt_tensor part = slice(out, dim, at, t->size[dim], 1);
        if (!kernel_same(c, t, &part) || !copy_tensor(c, &part, t))
            return false;
        at += t->size[dim];
    }
    return at == out->size[dim] || rt_numel(out) == 0 || kernel_apart(c);
}

/* t at index i of a dimension, without that dimension. */
static struct rt_tensor selected(const struct rt_tensor *t, int dim, int64_t i)
{
    struct rt_tensor part = slice(t, dim, i < 0 ? i + t->size[dim] : i, 1, 1);

    for (int d = dim; d + 1 < part.n; d++) {
        part.size[d] = part.size[d + 1];
        part.stride[d] = part.stride[d + 1];
    }
    part.n--;
    return part;
}

/* (tensors, dim): a new dimension */
bool kernel_stack(struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 0);
    int dim;

    if (c->out->n == 0 || !kernel_dim(c, c->out, arg_int(c, 1, 0), &dim) ||
        list->n != c->out->size[dim])
        return kernel_apart(c);
    for (uint32_t i = 0; i < list->n; i++) {
        struct rt_tensor part = selected(c->out, dim, i);

        if (!kernel_same(c, list->item[i].tensor, &part) ||
            !copy_tensor(c, &part, list->item[i].tensor))
            return false;
    }
    return true;
}

static void clamp_slice(int64_t *begin, int64_t *end, int64_t size)
{
    *begin = *begin < 0 ? *begin + size : *begin;
    *end = *end < 0 ? *end + size : *end;
    *begin = *begin < 0 ? 0 : *begin > size ? size : *begin;
    *end = *end < *begin ? *begin : *end > size ? size : *end;
}

/* Operands 2 to 5: the part of the result that dim, start, end and step name. */
static bool part_of(struct rt_call *c, struct rt_tensor *part)
{
    int64_t step = arg_int(c, 5, 1), begin = arg_int(c, 3, 0), end = arg_int(c, 4, INT64_MAX);
    int dim;

    if (c->out->n == 0 || step < 1 || !kernel_dim(c, c->out, arg_int(c, 2, 0), &dim))
        return kernel_error(c, "a slice that there is not");
    clamp_slice(&begin, &end, c->out->size[dim]);
    int64_t count = end > begin ? (end - begin - 1) / step + 1 : 0;
    *part = slice(c->out, dim, begin, count, count > 1 ? step : 1);
    return true;
}

/* Operands 2 and 3: the same for dim and index. */
static bool selected_part(struct rt_call *c, struct rt_tensor *part)
{
    int64_t i = arg_int(c, 3, 0);
    int dim;

    if (c->out->n == 0 || !kernel_dim(c, c->out, arg_int(c, 2, 0), &dim))
        return kernel_error(c, "a slice that there is not");
    if (i < -c->out->size[dim] || i >= c->out->size[dim])
        return kernel_error(c, "index %lld is out of range for %lld elements", (long long)i,
                            (long long)c->out->size[dim]);
    *part = selected(c->out, dim, i);
    return true;
}

/* (self, src, dim, start, end, step) */
bool kernel_slice_scatter(struct rt_call *c)
{
    struct rt_tensor part;

    return kernel_same(c, c->out, arg_tensor(c, 0)) && part_of(c, &part) &&
           copy_tensor(c, c->out, arg_tensor(c, 0)) && copy_tensor(c, &part, arg_tensor(c, 1));
}

/* (self, src, dim, index) */
bool kernel_select_scatter(struct rt_call *c)
{
    struct rt_tensor part;

    return kernel_same(c, c->out, arg_tensor(c, 0)) && selected_part(c, &part) &&
           copy_tensor(c, c->out, arg_tensor(c, 0)) && copy_tensor(c, &part, arg_tensor(c, 1));
}

/* (self, src, size, stride, storage_offset): self begins where its storage does */
bool kernel_as_strided_scatter(struct rt_call *c)
{
    const struct rt_value *size = arg_at(c, 2), *stride = arg_at(c, 3);
    struct rt_tensor part = *c->out;
    int64_t at = arg_int(c, 4, 0), last = at, most = 0;

    if (size->kind != RT_LIST || stride->kind != RT_LIST || size->n != stride->n ||
        size->n > RT_DIMS || at < 0 || !kernel_same(c, c->out, arg_tensor(c, 0)))
        return kernel_apart(c);
    for (int d = 0; d < c->out->n; d++)
        most += (c->out->size[d] - 1) * c->out->stride[d];
    part.n = (uint8_t)size->n;
    for (uint32_t d = 0; d < size->n; d++) {
        int64_t more;

        part.size[d] = size->item[d].i;
        part.stride[d] = stride->item[d].i;
        if (part.size[d] < 0 || part.stride[d] < 0 ||
            __builtin_mul_overflow(part.size[d] - 1, part.stride[d], &more) ||
            __builtin_add_overflow(last, more, &last))
            return kernel_apart(c);
    }
    if (rt_numel(&part) > 0 && (rt_numel(c->out) == 0 || last > most))
        return kernel_error(c, "it reaches outside of its operand");
    part.data = (char *)part.data + at * dtype_at(part.dtype)->bytes;
    return copy_tensor(c, c->out, arg_tensor(c, 0)) && copy_tensor(c, &part, arg_tensor(c, 1));
}

static const struct rt_value zero = {.kind = RT_INT};

/* (grad, input_sizes, dim, start, end, step) */
bool kernel_slice_backward(struct rt_call *c)
{
    struct rt_tensor part;

    return part_of(c, &part) && fill_tensor(c, c->out, &zero) &&
           copy_tensor(c, &part, arg_tensor(c, 0));
}

/* (grad, input_sizes, dim, index) */
bool kernel_select_backward(struct rt_call *c)
{
    struct rt_tensor part;

    return selected_part(c, &part) && fill_tensor(c, c->out, &zero) &&
           copy_tensor(c, &part, arg_tensor(c, 0));
}

/* Operands at, at + 1 and at + 2: the diagonal of the result that offset and both dimensions name,
 * as its last dimension. */
static bool diagonal_part(struct rt_call *c, uint32_t at, struct rt_tensor *part)
{
    int64_t offset = arg_int(c, at, 0);
    const struct rt_tensor *t = c->out;
    int a, b, n = 0;

    if (t->n < 2 || !kernel_dim(c, t, arg_int(c, at + 1, 0), &a) ||
        !kernel_dim(c, t, arg_int(c, at + 2, 1), &b) || a == b || offset < -t->size[a] ||
        offset > t->size[b])
        return kernel_error(c, "a diagonal that there is not");
    int64_t rows = t->size[a] + (offset < 0 ? offset : 0),
            columns = t->size[b] - (offset > 0 ? offset : 0),
            first = offset < 0 ? -offset * t->stride[a] : offset * t->stride[b];
    *part = *t;
    for (int d = 0; d < t->n; d++)
        if (d != a && d != b) {
            part->size[n] = t->size[d];
            part->stride[n++] = t->stride[d];
        }
    part->size[n] = rows < columns ? rows : columns;
    part->stride[n++] = t->stride[a] + t->stride[b];
    part->n = (uint8_t)n;
    if (part->size[n - 1] > 0)
        part->data = (char *)t->data + first * dtype_at(t->dtype)->bytes;
    return true;
}

/* (self, src, offset, dim1, dim2) */
bool kernel_diagonal_scatter(struct rt_call *c)
{
    struct rt_tensor part;

    return kernel_same(c, c->out, arg_tensor(c, 0)) && diagonal_part(c, 2, &part) &&
           kernel_same(c, arg_tensor(c, 1), &part) && copy_tensor(c, c->out, arg_tensor(c, 0)) &&
           copy_tensor(c, &part, arg_tensor(c, 1));
}

/* (grad, input_sizes, offset, dim1, dim2) */
bool kernel_diagonal_backward(struct rt_call *c)
{
    struct rt_tensor part;

    return diagonal_part(c, 2, &part) && kernel_same(c, arg_tensor(c, 0), &part) &&
           fill_tensor(c, c->out, &zero) && copy_tensor(c, &part, arg_tensor(c, 0));
}

/* (self, offset, dim1, dim2) */
bool kernel_diag_embed(struct rt_call *c)
{
    struct rt_tensor part;

    return diagonal_part(c, 1, &part) && kernel_same(c, arg_tensor(c, 0), &part) &&
           fill_tensor(c, c->out, &zero) && copy_tensor(c, &part, arg_tensor(c, 0));
}

/* (tensors): matrices along the diagonal of a larger one, zeros elsewhere */
bool kernel_block_diag(struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 0);
    const struct rt_tensor *out = c->out;
    int64_t row = 0, column = 0;

    if (out->n != 2)
        return kernel_apart(c);
    if (!fill_tensor(c, out, &zero))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct rt_tensor *t = list->item[i].tensor;
        int64_t rows = t->n > 1 ? t->size[0] : 1, columns = t->n > 0 ? t->size[t->n - 1] : 1;

        if (t->n > 2 || rows > out->size[0] - row || columns > out->size[1] - column)
            return kernel_apart(c);
        struct rt_tensor part = slice(out, 0, row, rows, 1);
        part = slice(&part, 1, column, columns, 1);
        if (!copy_tensor(c, &part, t))
            return false;
        row += rows;
        column += columns;
    }
    return (row == out->size[0] && column == out->size[1]) || kernel_apart(c);
}

/* (grad, input_sizes, dim, size, step): windows along a dimension, elements in the last one */
bool kernel_unfold_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0), *out = c->out;
    int64_t size = arg_int(c, 3, 0), step = arg_int(c, 4, 1);
    int dim;

    if (!kernel_dim(c, out, arg_int(c, 2, 0), &dim) || kind_of(out->dtype) >= K_C64 ||
        grad->n != out->n + 1 || grad->size[grad->n - 1] != size || step < 1)
        return kernel_apart(c);
    for (int d = 0; d < out->n; d++)
        if (grad->size[d] != (d == dim ? (out->size[d] - size) / step + 1 : out->size[d]))
            return kernel_apart(c);
    int64_t n = out->n > 0 ? out->size[dim] : 1, windows = out->n > 0 ? grad->size[dim] : 1,
            inner = out->n > 0 ? plain_count(out, dim + 1, out->n) : 1, count = rt_numel(grad);
    const double *g = plain_in(&s, grad, K_F64);
    double *x = plain_out(&s, out, K_F64);

    memset(x, 0, (size_t)rt_numel(out) * sizeof(*x));
    for (int64_t i = 0; i < count;
         i++) { /* i = ((outer * windows + window) * inner + at) * size + k */
        int64_t k = i % size, at = i / size % inner, window = i / size / inner % windows,
                outer = i / size / inner / windows;

        x[(outer * n + window * step + k) * inner + at] += g[i];
    }
    plain_done(&s, out, x, K_F64);
    return true;
}

size_t scratch_unfold_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* (self, shifts, dims): without dims, all elements are one line */
bool kernel_roll(struct rt_call *c)
{
    const struct rt_value *shifts = arg_at(c, 1), *dims = arg_at(c, 2);
    struct rt_tensor in = *arg_tensor(c, 0), out = *c->out;
    int64_t cut[RT_DIMS] = {0}; /* what comes first in the result begins here */

    if (!kernel_like(c, &out, &in))
        return false;
    if (rt_numel(&in) == 0)
        return true;
    if (dims->kind != RT_LIST || dims->n == 0) {
        int64_t n = rt_numel(&in), by = shifts->kind == RT_LIST && shifts->n > 0 ? shifts->item[0].i
                                                                                 : arg_int(c, 1, 0);

        for (int64_t i = 0, to = (by % n + n) % n; i < n; i++, to = to + 1 < n ? to + 1 : 0)
            memcpy(element(&out, to), element(&in, i), dtype_at(in.dtype)->bytes);
        return true;
    }
    if (shifts->kind != RT_LIST || shifts->n != dims->n)
        return kernel_error(c, "%u dimensions, but not as many shifts", dims->n);
    for (uint32_t i = 0; i < shifts->n; i++) {
        int d;
        if (!kernel_dim(c, &in, dims->item[i].i, &d))
            return false;
        int64_t size = in.n > 0 ? in.size[d] : 1, by = shifts->item[i].i % size;

        cut[d] = (cut[d] + 2 * size - by) % size;
    }
    for (uint32_t half = 0; half < 1u << in.n;
         half++) { /* by dimension: the part before the cut? */
        struct rt_tensor from = in, to = out;

        for (int d = 0; d < in.n; d++) {
            int64_t rest = in.size[d] - cut[d];

            from = slice(&from, d, half >> d & 1 ? 0 : cut[d], half >> d & 1 ? cut[d] : rest, 1);
            to = slice(&to, d, half >> d & 1 ? rest : 0, half >> d & 1 ? cut[d] : rest, 1);
        }
        if (!copy_tensor(c, &to, &from))
            return false;
    }
    return true;
}

/* (self, src): src in the layout of self, which an in-place form returns */
bool kernel_copy_from(struct rt_call *c)
{
    struct rt_tensor *to = out_at(c, 0);

    return fill_tensor(c, to != NULL ? to : arg_tensor(c, 0), arg_at(c, 1));
}

/* (self, pad, value): pairs from the last dimension on; negative numbers cut */
bool kernel_pad(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    const struct rt_value *pad = arg_at(c, 1);
    struct rt_tensor to = *c->out, from = *in;
    if (to.n != in->n || pad->kind != RT_LIST || pad->n % 2 != 0 || pad->n / 2 > in->n)
        return kernel_apart(c);
    if (!fill_tensor(c, c->out, arg_at(c, 2)->kind == RT_NONE ? &zero : arg_at(c, 2)))
        return false;
    for (uint32_t i = 0; i + 1 < pad->n; i += 2) {
        int d = in->n - 1 - (int)(i / 2);
        int64_t before = pad->item[i].i, after = pad->item[i + 1].i, size = in->size[d];

        if (before < -size || after < -size || before > to.size[d] || after > to.size[d] ||
            size + before + after != to.size[d])
            return kernel_error(c, "padding does not make dimension %d as large as the result", d);
        int64_t first = before < 0 ? -before : 0, left = size - first + (after < 0 ? after : 0);
        if (left < 0)
            return kernel_error(c, "padding leaves less than nothing of dimension %d", d);
        from = slice(&from, d, first, left, 1);
        to = slice(&to, d, before > 0 ? before : 0, left, 1);
    }
    return kernel_same(c, &from, &to) && copy_tensor(c, &to, &from);
}

/* (self, repeats) */
bool kernel_repeat(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0), *out = c->out;
    struct rt_tensor from = *in, to = *out;
    int n = 0;

    if (in->n > out->n)
        return kernel_apart(c);
    if (2 * out->n > RT_DIMS)
        return kernel_error(c, "repeat of more than %d dimensions", RT_DIMS / 2);
    for (int d = 0; d < out->n; d++) { /* each dimension as (times, size) */
        int at = d - out->n + in->n;
        int64_t size = at >= 0 ? in->size[at] : 1, times = size > 0 ? out->size[d] / size : 0;

        if (times * size != out->size[d])
            return kernel_apart(c);
        to.size[n] = from.size[n] = times;
        to.stride[n] = out->stride[d] * size;
        from.stride[n++] = 0;
        to.size[n] = from.size[n] = size;
        to.stride[n] = out->stride[d];
        from.stride[n++] = at >= 0 ? in->stride[at] : 0;
    }
    to.n = from.n = (uint8_t)n;
    return rt_numel(out) == 0 || copy_tensor(c, &to, &from);
}

/* (self, dims) */
bool kernel_flip(struct rt_call *c)
{
    struct rt_tensor from = *arg_tensor(c, 0);
    const struct rt_value *dims = arg_at(c, 1);

    if (!kernel_same(c, c->out, &from) || dims->kind != RT_LIST)
        return dims->kind != RT_LIST ? kernel_apart(c) : false;
    if (rt_numel(&from) == 0)
        return true;
    for (uint32_t i = 0; i < dims->n; i++) {
        int d;

        if (!kernel_dim(c, &from, dims->item[i].i, &d))
            return false;
        if (from.n == 0)
            continue;
        from = slice(&from, d, from.size[d] - 1, from.size[d], -1);
    }
    return copy_tensor(c, c->out, &from);
}
