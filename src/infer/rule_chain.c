/* Layouts of operators that PyTorch computes in several steps: a rule repeats the steps that
 * determine the result's layout. */
#include "infer/rule.h"

static struct type *chained(struct infer *x, const struct type *like, uint32_t n,
                            const sym_id *size, const sym_id *stride)
{
    struct type *t = arena_new(x->arena, struct type);

    *t = (struct type){.kind = TYPE_TENSOR,
                       .dtype = like->dtype,
                       .strided = stride != NULL,
                       .n = n,
                       .size = size,
                       .stride = stride,
                       .device = like->device};
    return t;
}

const struct type *step_two(struct infer *x, const struct type *a, const struct type *b)
{
    const struct type *all[2] = {a, b};
    const sym_id *size;
    uint32_t n;

    if (!broadcast_sizes(x, all, 2, &n, &size))
        return chained(x, a, a->n, a->size, NULL);
    return chained(x, a, n, size, reference_strides(x, all, 2, n, size));
}

const struct type *step_one(struct infer *x, const struct type *a)
{
    return chained(x, a, a->n, a->size, reference_strides(x, &a, 1, a->n, a->size));
}

const struct type *step_copy(struct infer *x, const struct type *a)
{
    return chained(x, a, a->n, a->size, a->strided ? like_strides(x, a, FORMAT_PRESERVE) : NULL);
}

const struct type *step_pack(struct infer *x, const struct type *a, enum mem_format format)
{
    if (!a->strided || is_contiguous_as(x, a, format))
        return a;
    return chained(x, a, a->n, a->size, like_strides(x, a, format));
}

const struct type *step_reshape(struct infer *x, const struct type *a, uint32_t n,
                                const sym_id *size)
{
    if (!a->strided)
        return chained(x, a, n, size, NULL);
    const sym_id *view = view_strides(x, a, n, size);
    return chained(x, a, n, size, view ? view : contiguous_strides(x, n, size));
}

const struct type *step_plain(struct infer *x, const struct type *t, uint32_t n, const sym_id *size)
{
    return chained(x, t, n, size, contiguous_strides(x, n, size));
}

enum mem_format suggested_format(struct infer *x, const struct type *t)
{
    if (!is_channels_last(x, t))
        return FORMAT_CONTIGUOUS;
    return t->n == 4 ? FORMAT_CHANNELS_LAST : FORMAT_CHANNELS_LAST_3D;
}

bool is_tidy(struct infer *x, const struct type *t)
{
    bool ones = false, plain = true;

    if (!t->strided)
        return false;
    const sym_id *stride = contiguous_strides(x, t->n, t->size);
    for (uint32_t i = 0; i < t->n; i++) {
        ones |= is_one(x, t->size[i]);
        plain &= same_size(x, t->stride[i], stride[i]);
    }
    return !ones || plain;
}

const struct type *tidy_only(struct infer *x, const struct type *t, const struct type *const *of,
                             uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (of[i] != NULL && !is_tidy(x, of[i]))
            return chained(x, t, t->n, t->size, NULL);
    return t;
}

type_id as_item(struct infer *x, const struct type *t, enum dtype dtype)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (is_zero(x, t->size[i]))
            return new_tensor(x, dtype, t->n, t->size, NULL, t->device);
    return type_tensor(x->type, dtype, t->n, t->size, t->strided ? t->stride : NULL, t->device);
}
