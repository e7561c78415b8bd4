/* Shape rules of normalisations, softmax and losses. */
#include "fx/rule.h"

/* Of these statistics kernels on cpu keep the operand's dtype, others the one that they compute in. */
static enum dtype stat_dtype(const struct infer *x, const struct type *t)
{
    return on_cpu(x, t) ? (enum dtype)t->dtype : wide_dtype((enum dtype)t->dtype);
}

/* Three gradients as the mask asks; 0 in `item` is one that cannot be known. */
static bool out_masked(struct infer *x, type_id *item, uint32_t n)
{
    const int64_t *mask;
    uint32_t len;

    if (!in_ints(x, in_param(x, "output_mask"), &mask, &len) || len != n)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (!mask[i])
            item[i] = type_none(x->type);
    return out_list(x, item, n);
}

static type_id optional_like(struct infer *x, const char *name, enum dtype dtype)
{
    int p = in_param(x, name);
    const struct type *t = in_tensor(x, p);

    if (!in_given(x, p))
        return type_none(x->type);
    return t ? new_tensor(x, dtype ? dtype : (enum dtype)t->dtype, t->n, t->size, NULL, t->device)
             : 0;
}

/* ---- layer norm, rms norm ---- */

/* The operand's sizes with 1 for each normalised dimension. */
static bool stat_sizes(struct infer *x, const struct type *t, const sym_id **out)
{
    const sym_id *shape;
    uint32_t n;

    if (!in_syms(x, in_param(x, "normalized_shape"), &shape, &n) || n > t->n)
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i < t->n - n ? t->size[i] : num(x, 1);
    *out = size;
    return true;
}

bool shape_layer_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *stat;

    if (t == NULL || !stat_sizes(x, t, &stat))
        return false;
    enum dtype dtype = stat_dtype(x, t);
    type_id item[3] = {new_tensor(x, (enum dtype)t->dtype, t->n, t->size, NULL, t->device),
                       new_tensor(x, dtype, t->n, stat, NULL, t->device),
                       new_tensor(x, dtype, t->n, stat, NULL, t->device)};
    return out_list(x, item, 3);
}

bool shape_layer_norm_backward(struct infer *x)
{
    const struct type *t = in_tensor(x, in_param(x, "input"));

    if (t == NULL)
        return false;
    type_id item[3] = {new_tensor(x, (enum dtype)t->dtype, t->n, t->size, NULL, t->device),
                       optional_like(x, "weight", DTYPE_NONE),
                       optional_like(x, "bias", DTYPE_NONE)};
    return out_masked(x, item, 3);
}

bool shape_rms_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *stat, *stride = NULL;

    if (t == NULL || !stat_sizes(x, t, &stat))
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    if (is_channels_last(x, t))
        stride = channels_last_strides(x, t->n, t->size);
    else if (t->strided || t->n < 4 || t->n > 5)
        stride = contiguous_strides(x, t->n, t->size);
    type_id item[2] = {type_tensor(x->type, dtype, t->n, t->size, stride, t->device),
                       new_tensor(x, wide_dtype(dtype), t->n, stat, NULL, t->device)};
    return out_list(x, item, 2);
}

bool shape_rms_norm_backward(struct infer *x)
{
    const struct type *t = in_tensor(x, in_param(x, "input"));

    if (t == NULL)
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    type_id item[2] = {new_tensor(x, dtype, t->n, t->size, NULL, t->device),
                       optional_like(x, "weight", dtype)};
    return out_masked(x, item, 2);
}

/* ---- group norm ---- */

bool shape_group_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id batch, groups;

    if (t == NULL || !in_sym(x, in_param(x, "N"), &batch) ||
        !in_sym(x, in_param(x, "group"), &groups))
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    type_id stat = new_tensor(x, dtype, 2, (sym_id[]){batch, groups}, NULL, t->device);
    return out_list(x, (type_id[]){new_like(x, t, dtype), stat, stat}, 3);
}

bool shape_group_norm_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0), *t = in_tensor(x, 1);
    sym_id channels;

    if (grad == NULL || t == NULL || !in_sym(x, in_param(x, "C"), &channels))
        return false;
    const struct type *all[2] = {grad, t};
    const sym_id *stride = elementwise_strides(x, all, 2, t->n, t->size);
    enum dtype dtype = (enum dtype)t->dtype;
    type_id weight = new_tensor(x, dtype, 1, &channels, NULL, t->device);
    type_id item[3] = {type_tensor(x->type, dtype, t->n, t->size, stride, t->device), weight,
                       weight};
    return out_masked(x, item, 3);
}

/* ---- batch norm ---- */

/* On cpu nothing is saved unless the statistics come from the batch. */
static bool out_batch_norm(struct infer *x, bool training)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || t->n < 2 || x->sig->n_results < 3 || x->sig->n_results > 6)
        return false;
    enum dtype dtype = stat_dtype(x, t);
    sym_id saved = training || !on_cpu(x, t) ? t->size[1] : num(x, 0);
    type_id item[6];
    item[0] = new_like(x, t, (enum dtype)t->dtype);
    item[1] = item[2] = new_tensor(x, dtype, 1, &saved, NULL, t->device);
    for (uint32_t i = 3; i < x->sig->n_results; i++) {
        const char *name = x->sig->results[i].name;
        if (strcmp(name, "running_mean_out") == 0)
            item[i] = in_type(x, in_param(x, "running_mean"));
        else if (strcmp(name, "running_var_out") == 0)
            item[i] = in_type(x, in_param(x, "running_var"));
        else /* what the backward kernel wants reserved */
            item[i] = new_tensor(x, DTYPE_U8, 1, (sym_id[]){num(x, 0)}, NULL, t->device);
    }
    return out_list(x, item, x->sig->n_results);
}

bool shape_batch_norm(struct infer *x)
{
    int p = in_param(x, "training");
    bool training = true;

    return (p == NO_PARAM || in_bool(x, p, &training)) && out_batch_norm(x, training);
}

bool shape_batch_norm_eval(struct infer *x)
{
    return out_batch_norm(x, false);
}

bool shape_batch_norm_backward(struct infer *x)
{
    const struct type *t = in_tensor(x, in_param(x, "input"));
    int g = in_param(x, "grad_out");
    const struct type *grad = in_tensor(x, g != NO_PARAM ? g : in_param(x, "grad_output"));

    if (t == NULL || grad == NULL || t->n < 2)
        return false;
    const struct type *all[2] = {grad, t}, *weight = in_tensor(x, in_param(x, "weight"));
    const sym_id *stride = elementwise_strides(x, all, 2, t->n, t->size);
    enum dtype dtype = weight ? (enum dtype)weight->dtype : (enum dtype)t->dtype;
    type_id channel = new_tensor(x, dtype, 1, &t->size[1], NULL, t->device);
    type_id item[3] = {type_tensor(x->type, (enum dtype)t->dtype, t->n, t->size, stride, t->device),
                       channel, channel};
    return in_param(x, "output_mask") == NO_PARAM ? out_list(x, item, 3) : out_masked(x, item, 3);
}

/* ---- softmax ---- */

bool shape_softmax(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum dtype dtype;
    bool wide;

    if (t == NULL)
        return false;
    if (!in_dtype(x, in_param(x, "dtype"), &dtype))
        dtype = in_bool(x, in_param(x, "half_to_float"), &wide) && wide ? DTYPE_F32
                                                                        : (enum dtype)t->dtype;
    return out_tensor(x, dtype, t->n, t->size, NULL, t->device);
}

bool shape_softmax_backward(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum dtype dtype;

    return t != NULL && in_dtype(x, in_param(x, "input_dtype"), &dtype) &&
           out_tensor(x, dtype, t->n, t->size, NULL, t->device);
}

/* Element-wise in gradient and output. */
bool shape_log_softmax_backward(struct infer *x)
{
    const struct type *all[2] = {in_tensor(x, 0), in_tensor(x, 1)};
    enum dtype dtype;

    if (all[0] == NULL || all[1] == NULL || !in_dtype(x, in_param(x, "input_dtype"), &dtype))
        return false;
    const struct type *t = all[0];
    const sym_id *stride = elementwise_strides(x, all, 2, t->n, t->size);
    return out_type(x, type_tensor(x->type, dtype, t->n, t->size, stride, t->device));
}

/* ---- losses ---- */

enum { REDUCTION_NONE };

bool shape_nll_loss(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *target = in_tensor(x, 1);
    int64_t reduction;

    if (t == NULL || target == NULL || !in_int(x, in_param(x, "reduction"), &reduction))
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    uint32_t n = reduction == REDUCTION_NONE && t->n > 1 ? target->n : 0;
    type_id item[2] = {new_tensor(x, dtype, n, target->size, NULL, t->device),
                       new_tensor(x, dtype, 0, NULL, NULL, t->device)};
    return out_list(x, item, 2);
}

bool shape_loss(struct infer *x)
{
    const struct type *all[2] = {in_tensor(x, 0), in_tensor(x, 1)};
    int64_t reduction;
    uint32_t n;
    const sym_id *size;

    if (all[0] == NULL || all[1] == NULL || !in_int(x, in_param(x, "reduction"), &reduction) ||
        !broadcast_sizes(x, all, 2, &n, &size))
        return false;
    enum dtype dtype = dtype_promote((enum dtype)all[0]->dtype, (enum dtype)all[1]->dtype);
    str_id device = common_device(x, all, 2);
    if (dtype == DTYPE_NONE)
        return false;
    if (reduction != REDUCTION_NONE)
        return out_tensor(x, dtype, 0, NULL, NULL, device);
    const sym_id *stride = elementwise_strides(x, all, 2, n, size);
    return out_type(x, type_tensor(x->type, dtype, n, size, stride, device));
}
