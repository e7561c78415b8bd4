/* Copies into and out of the flat buffers of FSDP and of buckets. */
#include "run/kernel/plain.h"

/* n elements of a plain vector from `at` on, seen as t is. */
static struct rt_tensor piece(const struct rt_tensor *flat, int64_t at, const struct rt_tensor *t)
{
    struct rt_tensor x = *t;
    int64_t step = flat->stride[flat->n - 1];

    x.data = (char *)flat->data + at * step * dtype_at(flat->dtype)->bytes;
    x.dtype = flat->dtype;
    for (int d = t->n - 1; d >= 0; d--) {
        x.stride[d] = step;
        step *= t->size[d];
    }
    return x;
}

/* All tensors of a list, one after the other, from `at` on. */
static bool flatten(struct rt_call *c, const struct rt_tensor *flat, int64_t at,
                    const struct rt_value *list)
{
    for (uint32_t i = 0; i < list->n; i++) {
        const struct rt_tensor *t = list->item[i].tensor;

        if (at < 0 || rt_numel(t) > flat->size[0] - at)
            return kernel_error(c, "%s needs more than the %lld elements of its buffer",
                                c->kernel->name, (long long)flat->size[0]);
        struct rt_tensor to = piece(flat, at, t);
        if (!copy_tensor(c, &to, t))
            return false;
        at += rt_numel(t);
    }
    return true;
}

/* (inputs, output, split_sizes, numel, rank): the rank's part of the output */
bool kernel_all_gather_copy_in(struct rt_call *c)
{
    const struct rt_tensor *flat = arg_tensor(c, 1);
    int64_t at;

    if (flat->n != 1 || __builtin_mul_overflow(arg_int(c, 3, 0), arg_int(c, 4, 0), &at))
        return kernel_apart(c);
    return flatten(c, flat, at, arg_at(c, 0));
}

/* Where slice i goes: an operand, or a result. */
static const struct rt_tensor *slice_to(const struct rt_call *c, uint32_t i)
{
    const struct rt_value *out = arg_at(c, 3);

    if (out->kind != RT_LIST)
        return out_at(c, i);
    return i < out->n && out->item[i].kind == RT_TENSOR ? out->item[i].tensor : NULL;
}

/* (all_gather_output, sizes, dim, out): slices of a dimension */
bool kernel_split_copy(struct rt_call *c)
{
    const struct rt_tensor *from = arg_tensor(c, 0);
    const struct rt_value *size = arg_at(c, 1);
    int64_t at = 0;
    int dim;

    if (from->n == 0 || size->kind != RT_LIST || !kernel_dim(c, from, arg_int(c, 2, 0), &dim))
        return kernel_apart(c);
    for (uint32_t i = 0; i < size->n; i++) {
        struct rt_tensor part = *from;

        part.data = (char *)from->data + at * from->stride[dim] * dtype_at(from->dtype)->bytes;
        part.size[dim] = size->item[i].i;
        if (size->item[i].i < 0 || size->item[i].i > from->size[dim] - at)
            return kernel_error(c, "the sizes of a split are more than the %lld elements there are",
                                (long long)from->size[dim]);
        at += size->item[i].i;
        if (slice_to(c, i) == NULL)
            return kernel_apart(c);
        struct rt_tensor to = *slice_to(c, i);
        if (rt_numel(&to) == rt_numel(&part) && to.n != part.n && rt_contiguous(&to))
            to = piece(&(struct rt_tensor){.data = to.data,
                                           .dtype = to.dtype,
                                           .n = 1,
                                           .size = {rt_numel(&to)},
                                           .stride = {1}},
                       0, &part);
        if (!copy_tensor(c, &to, &part))
            return false;
    }
    return true;
}

/* What t has at the k-th index of its first `dim` dimensions. */
static struct rt_tensor inside(const struct rt_tensor *t, int dim, int64_t k)
{
    struct rt_tensor x = *t;
    int64_t at = 0;

    for (int d = dim - 1; d >= 0; k /= t->size[d--])
        at += k % t->size[d] * t->stride[d];
    x.data = (char *)t->data + at * dtype_at(t->dtype)->bytes;
    x.n = (uint8_t)(t->n - dim);
    for (int d = 0; d < x.n; d++) {
        x.size[d] = t->size[d + dim];
        x.stride[d] = t->stride[d + dim];
    }
    return x;
}

/* The rows of t, as many for each chunk, into columns of out from `at` on; out is
 * [chunks, columns]. */
static bool put_chunks(struct rt_call *c, const struct rt_tensor *out, int64_t at,
                       const struct rt_tensor *t, int64_t each)
{
    int64_t rows = t->size[0], width = plain_count(t, 1, t->n), bytes = dtype_at(t->dtype)->bytes;

    for (int64_t k = 0; k < out->size[0] && k * each < rows; k++) {
        struct rt_tensor from = *t;

        from.size[0] = rows - k * each < each ? rows - k * each : each;
        from.data = (char *)t->data + k * each * t->stride[0] * bytes;
        struct rt_tensor row = {.data = (char *)out->data +
                                        (k * out->stride[0] + at * out->stride[1]) *
                                            dtype_at(out->dtype)->bytes,
                                .dtype = out->dtype,
                                .n = 1,
                                .size = {each * width},
                                .stride = {out->stride[1]}};
        struct rt_tensor to = piece(&row, 0, &from);
        if (!copy_tensor(c, &to, &from))
            return false;
    }
    return true;
}

/* Are the sizes before dim those of the result? */
static bool leads(const struct rt_tensor *out, const struct rt_tensor *t, int64_t dim)
{
    for (int64_t d = 0; d < dim && d < t->n; d++)
        if (t->size[d] != out->size[d])
            return false;
    return t->n > dim;
}

/* (tensors, dim, num_chunks, out): each tensor padded so that it can be cut into num_chunks along
 * dim, and flat from there on; out has the sizes before dim, num_chunks, and all of a chunk */
bool kernel_chunk_cat(struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 0);
    const struct rt_tensor *out = out_at(c, 0) != NULL ? c->out : arg_tensor(c, 3);
    int64_t dim = arg_int(c, 1, 0), chunks = arg_int(c, 2, 1), at = 0;
    struct rt_value zero = {.kind = RT_INT, .i = 0};

    if (dim < 0 && out != NULL)
        dim += out->n - 1;
    if (out == NULL || dim < 0 || dim > RT_DIMS || chunks < 1 || out->n != dim + 2 ||
        out->size[dim] != chunks)
        return kernel_apart(c);
    if (!fill_tensor(c, out, &zero))
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct rt_tensor *t = list->item[i].tensor;

        if (!leads(out, t, dim))
            return kernel_apart(c);
        int64_t each = (t->size[dim] + chunks - 1) / chunks,
                width = plain_count(t, (int)dim + 1, t->n);
        if (kernel_bytes(each, width, 1) > (size_t)(out->size[dim + 1] - at))
            return kernel_apart(c);
        for (int64_t k = 0; k < plain_count(out, 0, (int)dim); k++) {
            struct rt_tensor from = inside(t, (int)dim, k), to = inside(out, (int)dim, k);

            if (!put_chunks(c, &to, at, &from, each))
                return false;
        }
        at += each * width;
    }
    return true;
}

/* _pre_bucket_all_gather(ins, group_size, dtype, out_dtype_ints, rank): the flat buffer of all
 * ranks, of which this rank's part is filled */
bool kernel_bucket_all_gather(struct rt_call *c)
{
    int64_t group = arg_int(c, 1, 1), rank = arg_int(c, 4, 0);
    const struct rt_value *list = arg_at(c, 0), *as = arg_at(c, 3);
    int64_t bytes = dtype_at(c->out->dtype)->bytes, at;
    struct rt_value zero = {.kind = RT_INT, .i = 0};

    if (group < 1 || rank < 0 || rank >= group)
        return kernel_error(c, "rank %lld of %lld", (long long)rank, (long long)group);
    if (!fill_tensor(c, c->out, &zero))
        return false;
    if (as->kind != RT_LIST || !rt_contiguous(c->out))
        return kernel_apart(c);
    at = rt_numel(c->out) / group * rank * bytes;
    for (uint32_t i = 0; i < list->n;
         i++) { /* each in its own dtype, seen as bytes of the buffer */
        const struct rt_tensor *t = list->item[i].tensor;
        enum dtype d = c->out->dtype;

        for (unsigned k = 1; i < as->n && k < DTYPE_END; k++)
            if (dtype_at(k)->index_2_13 == as->item[i].i && dtype_at(k)->bytes > 0)
                d = k;
        struct rt_tensor flat = {.data = (char *)c->out->data + at,
                                 .dtype = (uint8_t)d,
                                 .n = 1,
                                 .size = {rt_numel(t)},
                                 .stride = {1}};
        if (kernel_bytes(rt_numel(t), 1, dtype_at(d)->bytes) >
            (size_t)(rt_numel(c->out) * bytes - at))
            return kernel_error(c, "the tensors of a bucket are larger than the bucket");
        if (at % dtype_at(d)->bytes != 0)
            return kernel_error(c, "a tensor would begin in the middle of an element");
        at += rt_numel(t) * dtype_at(d)->bytes;
        struct rt_tensor to = piece(&flat, 0, t);
        if (!copy_tensor(c, &to, t))
            return false;
    }
    return true;
}

/* _pre_bucket_reduce_scatter(ins, group_size): [group, ...] parts of all side by side */
bool kernel_bucket_reduce_scatter(struct rt_call *c)
{
    const struct rt_value *list = arg_at(c, 0);
    int64_t group = arg_int(c, 1, 1), row = group > 0 ? rt_numel(c->out) / group : 0, at = 0;

    if (group < 1 || !rt_contiguous(c->out))
        return kernel_error(c, "a bucket of %lld ranks", (long long)group);
    for (uint32_t i = 0; i < list->n; i++) {
        struct rt_tensor from = *list->item[i].tensor;
        int64_t each = rt_numel(&from) / group;

        if (from.n == 0 || from.size[0] % group != 0 || from.n + 1 > RT_DIMS)
            return kernel_error(c, "dimension 0 of a bucket's tensor is not divisible by %lld",
                                (long long)group);
        if (each > row - at)
            return kernel_error(c, "the tensors of a bucket are larger than the bucket");
        for (int d = from.n; d > 1; d--) {
            from.size[d] = from.size[d - 1];
            from.stride[d] = from.stride[d - 1];
        }
        from.size[1] = from.size[0] / group;
        from.stride[1] = from.stride[0];
        from.stride[0] *= from.size[1];
        from.size[0] = group;
        from.n++;
        struct rt_tensor to = piece(&(struct rt_tensor){.data = c->out->data,
                                                        .dtype = c->out->dtype,
                                                        .n = 1,
                                                        .size = {row * group},
                                                        .stride = {1}},
                                    at, &from);
        to.stride[0] = row;
        if (!copy_tensor(c, &to, &from))
            return false;
        at += each;
    }
    return true;
}
