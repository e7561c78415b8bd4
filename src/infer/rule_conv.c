/* Shape rules of convolutions. */
#include "infer/rule.h"

/* Arguments of a convolution; lists have one item per spatial dimension. */
struct window {
    uint32_t n;
    const sym_id *stride, *padding, *dilation, *output_padding;
    bool transposed, same; /* same: padding='same' */
    sym_id groups;
};

/* A list of n numbers; one of length 1 is repeated. */
static bool spatial_list(struct infer *x, const char *name, uint32_t n, const sym_id **out)
{
    uint32_t len;

    if (!in_syms(x, in_param(x, name), out, &len) || (len != n && len != 1))
        return false;
    if (len == n)
        return true;
    sym_id *all = new_syms(x, n);
    for (uint32_t i = 0; i < n; i++)
        all[i] = (*out)[0];
    *out = all;
    return true;
}

static bool read_window(struct infer *x, uint32_t n, struct window *w)
{
    int transposed = in_param(x, "transposed"), extra = in_param(x, "output_padding");
    const char *padding;
    sym_id *zero = new_syms(x, n);

    for (uint32_t i = 0; i < n; i++)
        zero[i] = num(x, 0);
    *w = (struct window){.n = n, .padding = zero, .output_padding = zero};
    /* conv_transpose*() have no flag, but are the only ones here with output_padding. */
    if (transposed == NO_PARAM)
        w->transposed = extra != NO_PARAM;
    else if (!in_bool(x, transposed, &w->transposed))
        return false;
    if (in_str(x, in_param(x, "padding"), &padding) && *padding != '[')
        w->same = strcmp(padding, "same") == 0;
    else if (!spatial_list(x, "padding", n, &w->padding))
        return false;
    return spatial_list(x, "stride", n, &w->stride) &&
           spatial_list(x, "dilation", n, &w->dilation) &&
           (!w->transposed || spatial_list(x, "output_padding", n, &w->output_padding)) &&
           in_sym(x, in_param(x, "groups"), &w->groups);
}

/* The size along spatial dimension i, for size `in` and kernel `k`. */
static sym_id window_size(struct infer *x, const struct window *w, uint32_t i, sym_id in, sym_id k)
{
    struct symtab *t = x->sym;
    sym_id one = num(x, 1), two = num(x, 2);
    sym_id span = sym_mul(t, w->dilation[i], sym_sub(t, k, one)); /* of the kernel, minus 1 */
    sym_id pad = sym_mul(t, two, w->padding[i]);

    if (w->same)
        pad = span;
    if (w->transposed) {
        sym_id size = sym_mul(t, sym_sub(t, in, one), w->stride[i]);
        size = sym_add(t, sym_sub(t, size, pad), span);
        return sym_add(t, size, sym_add(t, w->output_padding[i], one));
    }
    sym_id room = sym_sub(t, sym_sub(t, sym_add(t, in, pad), span), one);
    return sym_add(t, sym_floordiv(t, room, w->stride[i]), one);
}

/* t as torch computes with it: with a batch dimension in front, and with a second spatial dimension
 * of size 1 before a single one. */
static struct type widen(struct infer *x, const struct type *t, bool batch, bool flat)
{
    sym_id *size = new_syms(x, t->n + 2), *stride = new_syms(x, t->n + 2);
    uint32_t n = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        sym_id span = t->strided ? sym_mul(x->sym, t->size[i], t->stride[i]) : 0;

        if ((i == 0 && batch) || (i == (batch ? 1u : 2u) && flat)) {
            size[n] = num(x, 1);
            stride[n++] = span;
        }
        size[n] = t->size[i];
        stride[n++] = t->strided ? t->stride[i] : 0;
    }
    return (struct type){.kind = TYPE_TENSOR,
                         .dtype = t->dtype,
                         .strided = t->strided,
                         .n = n,
                         .size = size,
                         .stride = stride,
                         .device = t->device};
}

enum layout { LAYOUT_PLAIN, LAYOUT_LAST, LAYOUT_UNKNOWN };

/* On cpu the result is channels-last if the image or the kernel is; with three spatial dimensions
 * only if oneDNN computes it, which for 16-bit floats depends on the processor and for single
 * images on the number of threads. On other devices it depends on the library that torch was built
 * with: cuDNN does the same except in float64; others do not. */
static enum layout conv_layout(struct infer *x, const struct type *in, const struct type *weight)
{
    if (!in->strided || !weight->strided)
        return LAYOUT_UNKNOWN;
    if (!is_channels_last(x, in) && !is_channels_last(x, weight))
        return LAYOUT_PLAIN;
    if (is_zero(x, numel(x, in)))
        return LAYOUT_PLAIN;
    if (!on_cpu(x, in))
        return in->dtype == DTYPE_F64 ? LAYOUT_PLAIN : LAYOUT_UNKNOWN;
    if (in->n == 4 || (in->dtype == DTYPE_F32 && !is_one(x, in->size[0])))
        return LAYOUT_LAST;
    return in->dtype == DTYPE_F64 ? LAYOUT_PLAIN : LAYOUT_UNKNOWN;
}

/* batch, flat: dimensions that widen() added and that are removed again. */
static type_id conv_tensor(struct infer *x, const struct type *like, uint32_t n, const sym_id *size,
                           enum layout layout, bool batch, bool flat)
{
    enum dtype dtype = (enum dtype)like->dtype;

    if (layout == LAYOUT_UNKNOWN)
        return type_tensor(x->type, dtype, n, size, NULL, like->device);
    if (layout == LAYOUT_PLAIN)
        return new_tensor(x, dtype, n, size, NULL, like->device);
    struct type wide = widen(x, &(struct type){.n = n, .size = size}, batch, flat);
    const sym_id *last = channels_last_strides(x, wide.n, wide.size);
    sym_id *stride = new_syms(x, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i + batch;
        stride[i] = last[at + (flat && at >= 2)];
    }
    return new_tensor(x, dtype, n, size, stride, like->device);
}

bool shape_conv(struct infer *x)
{
    const struct type *in = in_tensor(x, 0), *weight = in_tensor(x, 1);
    struct window w;

    if (in == NULL || weight == NULL || weight->n < 3 || weight->n > 5 ||
        (in->n != weight->n && in->n + 1 != weight->n) || !read_window(x, weight->n - 2, &w))
        return false;
    uint32_t batch = in->n == weight->n; /* number of dimensions before the channels */
    sym_id *size = new_syms(x, in->n);
    size[0] = in->size[0];
    size[batch] = w.transposed ? sym_mul(x->sym, weight->size[1], w.groups) : weight->size[0];
    for (uint32_t i = 0; i < w.n; i++) {
        uint32_t d = batch + 1 + i;
        size[d] = window_size(x, &w, i, in->size[d], weight->size[2 + i]);
    }
    bool flat = w.n == 1; /* made contiguous, so that it does not look like another layout */
    struct type wide_in = widen(x, flat ? step_pack(x, in, FORMAT_CONTIGUOUS) : in, !batch, flat);
    struct type wide_weight = widen(x, weight, false, flat);
    enum layout layout = conv_layout(x, &wide_in, &wide_weight);
    return out_type(x, conv_tensor(x, in, in->n, size, layout, !batch, flat));
}

bool shape_conv_nd(struct infer *x)
{
    return shape_conv(x);
}

bool shape_conv_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0), *in = in_tensor(x, 1), *weight = in_tensor(x, 2);
    const int64_t *mask;
    uint32_t n;

    if (grad == NULL || in == NULL || weight == NULL || grad->n < 3 ||
        !in_ints(x, in_param(x, "output_mask"), &mask, &n) || n != 3)
        return false;
    bool flat = weight->n == 3;
    struct type wide_in = widen(x, flat ? step_pack(x, in, FORMAT_CONTIGUOUS) : in, false, flat);
    struct type wide_weight = widen(x, weight, false, flat);
    enum layout layout = conv_layout(x, &wide_in, &wide_weight);
    if (is_zero(x, numel(x, in)) && is_channels_last(x, &wide_weight))
        layout = LAYOUT_UNKNOWN; /* nothing is computed: kernels differ */
    type_id item[3] = {type_none(x->type), type_none(x->type), type_none(x->type)};
    if (mask[0])
        item[0] = conv_tensor(x, grad, in->n, in->size, layout, false, flat);
    if (mask[1])
        item[1] = conv_tensor(x, grad, weight->n, weight->size, layout, false, flat);
    if (mask[2])
        item[2] = new_tensor(x, (enum dtype)grad->dtype, 1, &grad->size[1], NULL, grad->device);
    return out_list(x, item, 3);
}
