/* Shape rules of operators that return, copy, convert or re-lay out their operand. */
#include "infer/rule.h"

bool shape_void(struct infer *x)
{
    return out_none(x);
}

/* ---- the operand itself ---- */

/* The type of an operand, also of a list written out in the call. */
static type_id operand_type(struct infer *x, int p)
{
    const struct type *const *t;
    uint32_t n;

    if (p < 0 || x->sig->params[p].depth == 0)
        return in_type(x, p);
    if (!in_tensors(x, p, &t, &n))
        return 0;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++)
        item[i] = t[i] == NULL ? 0
                               : type_tensor(x->type, (enum dtype)t[i]->dtype, t[i]->n, t[i]->size,
                                             t[i]->stride, t[i]->device);
    return type_list(x->type, item, n);
}

bool shape_self(struct infer *x)
{
    uint32_t n = x->sig->n_results;

    if (x->row->flags & OP_F_RESTRIDES)
        return false;
    if (n == 1)
        return out_type(x, operand_type(x, op_result_alias_of(x->sig, 0)));
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++)
        item[i] = operand_type(x, op_result_alias_of(x->sig, i));
    return out_list(x, item, n);
}

bool shape_alias(struct infer *x)
{
    return out_type(x, in_type(x, 0));
}

/* ---- new tensors ---- */

static bool out_like(struct infer *x, int p)
{
    const struct type *t = in_tensor(x, p);

    return t != NULL && out_type(x, new_like(x, t, (enum dtype)t->dtype));
}

bool shape_like0(struct infer *x)
{
    return out_like(x, 0);
}

/* The gradient of a pool's input is channels-last if the input is; never without a batch
 * dimension. */
bool shape_like1(struct infer *x)
{
    const struct type *t = in_tensor(x, 1);
    int kernel = in_param(x, "kernel_size");

    if (t == NULL || !t->strided)
        return false;
    bool batch = kernel < 0 || t->n == x->sig->params[kernel].list_size + 2u;
    bool last = batch && is_channels_last(x, t);
    return out_tensor(x, (enum dtype)t->dtype, t->n, t->size,
                      last ? channels_last_strides(x, t->n, t->size) : NULL, t->device);
}

bool shape_plain1(struct infer *x)
{
    const struct type *t = in_tensor(x, 1);

    return t != NULL && out_tensor(x, (enum dtype)t->dtype, t->n, t->size, NULL, t->device);
}

/* Sizes of t with the strides of a memory format, which may be unknown. False: t cannot have that
 * format. */
static bool out_format(struct infer *x, const struct type *t, enum dtype dtype, str_id device,
                       enum mem_format format)
{
    bool known = t->strided || (format != FORMAT_NONE && format != FORMAT_PRESERVE);
    const sym_id *stride = known ? like_strides(x, t, format) : NULL;

    if (known && stride == NULL)
        return false;
    return out_layout(x, dtype, t->n, t->size, stride, device);
}

bool shape_clone(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_format(x, t, (enum dtype)t->dtype, t->device,
                                   in_format(x, in_param(x, "memory_format")));
}

/* dtype= and device=, or the operand's. */
static void options_of(struct infer *x, const struct type *t, enum dtype *dtype, str_id *device)
{
    if (!in_dtype(x, in_param(x, "dtype"), dtype))
        *dtype = (enum dtype)t->dtype;
    if (!in_device(x, in_param(x, "device"), device))
        *device = t->device;
}

/* A copy to another device keeps the strides, even those of repeated dimensions. */
static bool out_moved(struct infer *x, const struct type *t, enum dtype dtype, str_id device,
                      enum mem_format format)
{
    bool other = in_param(x, "other") >= 0;
    bool moved = other ? device != t->device : in_given(x, in_param(x, "device"));
    bool converted = other ? dtype != t->dtype : in_given(x, in_param(x, "dtype"));

    if (moved && !converted && format == FORMAT_NONE)
        return out_layout(x, dtype, t->n, t->size, t->stride, device);
    return out_format(x, t, dtype, device, format);
}

bool shape_to_copy(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum dtype dtype;
    str_id device;

    if (t == NULL)
        return false;
    options_of(x, t, &dtype, &device);
    return out_moved(x, t, dtype, device, in_format(x, in_param(x, "memory_format")));
}

/* empty_like and similar operators keep the order of strides, not the strides. */
bool shape_like(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum mem_format format = in_format(x, in_param(x, "memory_format"));
    enum dtype dtype;
    str_id device;

    if (t == NULL)
        return false;
    options_of(x, t, &dtype, &device);
    if (format != FORMAT_NONE && format != FORMAT_PRESERVE)
        return out_format(x, t, dtype, device, format);
    return out_layout(x, dtype, t->n, t->size, reference_strides(x, &t, 1, t->n, t->size), device);
}

bool shape_like_local(struct infer *x)
{
    const struct type *t = in_tensor(x, 1);

    return t != NULL && out_layout(x, (enum dtype)t->dtype, t->n, t->size,
                                   reference_strides(x, &t, 1, t->n, t->size), t->device);
}

bool shape_like_list(struct infer *x)
{
    const struct type *const *t;
    uint32_t n;

    if (!in_tensors(x, 0, &t, &n))
        return false;
    type_id *item = arena_array(x->arena, type_id, n);
    for (uint32_t i = 0; i < n; i++)
        item[i] = t[i] == NULL ? 0
                               : type_tensor(x->type, (enum dtype)t[i]->dtype, t[i]->n, t[i]->size,
                                             reference_strides(x, &t[i], 1, t[i]->n, t[i]->size),
                                             t[i]->device);
    return out_list(x, item, n);
}

bool shape_plain(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_tensor(x, (enum dtype)t->dtype, t->n, t->size, NULL, t->device);
}

/* Copied, then made contiguous: strides that are contiguous except for dimensions of size 1
 * stay. */
bool shape_index_add(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || !t->strided)
        return false;
    struct type copy = *t;
    copy.stride = reference_strides(x, &t, 1, t->n, t->size);
    return out_tensor(x, (enum dtype)t->dtype, t->n, t->size,
                      is_contiguous(x, &copy) ? copy.stride : NULL, t->device);
}

bool shape_convert(struct infer *x)
{
    return shape_to_copy(x);
}

bool shape_device_put(struct infer *x)
{
    return shape_to_copy(x);
}

/* The memory format that a tensor appears to have. */
static enum mem_format suggested(struct infer *x, const struct type *t)
{
    if (!is_channels_last(x, t))
        return FORMAT_CONTIGUOUS;
    return t->n == 4 ? FORMAT_CHANNELS_LAST : FORMAT_CHANNELS_LAST_3D;
}

bool shape_to(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *other = in_tensor(x, in_param(x, "other"));
    enum mem_format format = in_format(x, in_param(x, "memory_format"));
    bool copy = false;
    enum dtype dtype;
    str_id device;

    if (t == NULL || (in_param(x, "other") >= 0 && other == NULL))
        return false;
    in_bool(x, in_param(x, "copy"), &copy);
    options_of(x, t, &dtype, &device);
    if (other != NULL) {
        dtype = (enum dtype)other->dtype;
        device = other->device;
    }
    bool kept = format == FORMAT_NONE || format == FORMAT_PRESERVE ||
                (t->strided && suggested(x, t) == format);
    if (!copy && kept && dtype == t->dtype && device == t->device)
        return shape_alias(x);
    return out_moved(x, t, dtype, device, format);
}

type_id new_copied(struct infer *x, const struct type *t)
{
    for (uint32_t i = 0; t->strided && i < t->n; i++)
        if (is_zero(x, t->stride[i]) && !is_one(x, t->size[i]) && !is_zero(x, t->size[i]))
            return new_like(x, t, (enum dtype)t->dtype);
    return type_tensor(x->type, (enum dtype)t->dtype, t->n, t->size, t->stride, t->device);
}

bool shape_copy(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_type(x, new_copied(x, t));
}

bool shape_contiguous(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum mem_format format = in_format(x, in_param(x, "memory_format"));

    if (t == NULL || !t->strided)
        return false;
    if (is_contiguous_as(x, t, format))
        return shape_alias(x);
    return out_format(x, t, (enum dtype)t->dtype, t->device, format);
}

bool shape_force_stride(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *stride;
    uint32_t n;

    if (t == NULL || !in_syms(x, 1, &stride, &n) || n != t->n)
        return false;
    return out_layout(x, (enum dtype)t->dtype, n, t->size, stride, t->device);
}
