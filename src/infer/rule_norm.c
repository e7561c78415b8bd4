/* Shape rules of normalizations and softmax. Most are element-wise in the end, and so are their
 * layouts. */
#include "infer/rule.h"

/* For these statistics, cpu kernels keep the operand's dtype, others the dtype they compute in. */
static enum dtype stat_dtype(const struct infer *x, const struct type *t)
{
    return on_cpu(x, t) ? (enum dtype)t->dtype : wide_dtype((enum dtype)t->dtype);
}

/* Three gradients as selected by the mask; 0 in `item` means that one is unknown. */
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

/* 16-bit floats are widened first, which makes a copy. */
static const struct type *widened(struct infer *x, const struct type *t)
{
    return wide_dtype((enum dtype)t->dtype) != (enum dtype)t->dtype ? step_copy(x, t) : t;
}

/* t after a step for each weight and bias that is given; NULL if one is unknown. */
static const struct type *affine(struct infer *x, const struct type *t, const char *const *names,
                                 const struct type *like)
{
    for (; *names; names++) {
        int p = in_param(x, *names);
        if (!in_given(x, p))
            continue;
        const struct type *by = like ? like : in_tensor(x, p);
        if (by == NULL)
            return NULL;
        t = step_two(x, t, by);
    }
    return t;
}

static const char *const weight_bias[] = {"weight", "bias", NULL};
static const char *const weight_only[] = {"weight", NULL};

/* ---- layer norm, rms norm ---- */

struct normal {
    const struct type *t;    /* the operand */
    const struct type *stat; /* contiguous, with size 1 for each normalized dimension */
    uint32_t outer;          /* number of dimensions before those */
};

static bool read_normal(struct infer *x, int p, struct normal *out)
{
    const sym_id *shape;
    uint32_t n;
    const struct type *t = in_tensor(x, p);

    if (t == NULL || !in_syms(x, in_param(x, "normalized_shape"), &shape, &n) || n > t->n)
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i < t->n - n ? t->size[i] : num(x, 1);
    *out = (struct normal){t, step_plain(x, t, t->n, size), t->n - n};
    return true;
}

bool shape_layer_norm(struct infer *x)
{
    struct normal a;

    if (!read_normal(x, 0, &a))
        return false;
    const struct type *t = tidy_only(x, step_pack(x, a.t, FORMAT_CONTIGUOUS), &a.t, 1);
    type_id stat = as_item(x, a.stat, stat_dtype(x, a.t));
    return out_list(x, (type_id[]){as_item(x, t, (enum dtype)a.t->dtype), stat, stat}, 3);
}

bool shape_rms_norm(struct infer *x)
{
    struct normal a;

    if (!read_normal(x, 0, &a))
        return false;
    enum dtype dtype = (enum dtype)a.t->dtype;
    const struct type *of[2] = {a.t, in_tensor(x, in_param(x, "weight"))};
    const struct type *t = affine(x, step_two(x, widened(x, a.t), a.stat), weight_only, NULL);
    if (t == NULL)
        return false;
    t = tidy_only(x, step_pack(x, t, suggested_format(x, a.t)), of, 2);
    type_id item[2] = {as_item(x, t, dtype), as_item(x, a.stat, wide_dtype(dtype))};
    return out_list(x, item, 2);
}

static bool is_empty(struct infer *x, const struct type *t)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (is_zero(x, t->size[i]))
            return true;
    return false;
}

/* Widened into a contiguous tensor; a channels-last one becomes contiguous in any case. */
static const struct type *widened_plain(struct infer *x, const struct type *t)
{
    if (wide_dtype((enum dtype)t->dtype) != (enum dtype)t->dtype || is_channels_last(x, t))
        return step_plain(x, t, t->n, t->size);
    return t;
}

/* Gradients of operand, weight and, for layer norm, bias. */
static bool normal_backward(struct infer *x, bool has_bias)
{
    const struct type *grad = in_tensor(x, 0), *rstd = in_tensor(x, in_param(x, "rstd"));
    int w = in_param(x, "weight"), m = in_param(x, "mean"), b = in_param(x, "bias");
    const struct type *weight = in_tensor(x, w), *mean = in_tensor(x, m);
    struct normal a;

    if (grad == NULL || rstd == NULL || !read_normal(x, 1, &a) || (in_given(x, w) && !weight))
        return false;
    const struct type *in = widened_plain(x, a.t), *g = widened_plain(x, grad);
    const struct type *of[5] = {grad, a.t, rstd, mean, weight};
    enum dtype dtype = (enum dtype)a.t->dtype;
    const struct type *inner = step_plain(x, a.t, a.t->n - a.outer, a.t->size + a.outer);
    type_id item[3];
    if (is_empty(x, a.t)) { /* nothing to sum: zeros, with or without a weight */
        item[0] = as_item(x, step_plain(x, a.t, a.t->n, a.t->size), dtype);
        item[1] = item[2] = as_item(x, inner, dtype);
        return out_masked(x, item, has_bias ? 3 : 2);
    }
    const struct type *hat = step_two(x, has_bias && mean ? step_two(x, in, mean) : in, rstd);
    const struct type *scaled = weight ? step_two(x, g, weight) : g;
    const struct type *t = has_bias ? step_two(x, step_one(x, scaled), a.stat) : scaled;
    t = step_two(x, t, step_two(x, hat, a.stat));
    t = has_bias ? step_two(x, widened_plain(x, rstd), t) : step_two(x, t, rstd);
    item[0] = as_item(x, tidy_only(x, t, of, 5), dtype);
    /* Without dimensions to sum over, the products themselves. */
    const struct type *product = tidy_only(x, step_two(x, g, hat), of, 5);
    const struct type *sum = tidy_only(x, step_copy(x, g), of, 5);
    enum dtype to = has_bias && weight ? (enum dtype)weight->dtype : dtype;
    item[1] = weight ? as_item(x, a.outer ? inner : product, to) : type_none(x->type);
    item[2] = in_given(x, b) ? as_item(x, a.outer ? inner : sum, to) : type_none(x->type);
    return out_masked(x, item, has_bias ? 3 : 2);
}

bool shape_layer_norm_backward(struct infer *x)
{
    return normal_backward(x, true);
}

bool shape_rms_norm_backward(struct infer *x)
{
    return normal_backward(x, false);
}

/* ---- group norm ---- */

struct groups {
    sym_id batch, channels, pixels, groups;
    sym_id size[4]; /* batch, groups, channels per group, pixels */
};

static bool read_groups(struct infer *x, struct groups *g)
{
    if (!in_sym(x, in_param(x, "N"), &g->batch) || !in_sym(x, in_param(x, "C"), &g->channels) ||
        !in_sym(x, in_param(x, "HxW"), &g->pixels) || !in_sym(x, in_param(x, "group"), &g->groups))
        return false;
    g->size[0] = g->batch;
    g->size[1] = g->groups;
    g->size[2] = sym_floordiv(x->sym, g->channels, g->groups);
    g->size[3] = g->pixels;
    return true;
}

bool shape_group_norm(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    struct groups g;

    if (t == NULL || t->n < 2 || !read_groups(x, &g))
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    const sym_id stat_size[4] = {g.batch, g.groups, num(x, 1), num(x, 1)};
    const struct type *stat = step_plain(x, t, 4, stat_size);
    const struct type *in = step_reshape(x, widened(x, t), 4, g.size);
    const struct type *out = step_reshape(x, step_two(x, step_two(x, in, stat), stat), t->n,
                                          t->size);
    sym_id *channel = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        channel[i] = i == 1 ? t->size[1] : num(x, 1);
    out = affine(x, out, weight_bias, step_plain(x, t, t->n, channel));
    out = tidy_only(x, out, &t, 1);
    type_id item = new_tensor(x, dtype, 2, g.size, NULL, t->device);
    return out_list(x, (type_id[]){as_item(x, out, dtype), item, item}, 3);
}

bool shape_group_norm_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0), *t = in_tensor(x, 1);
    struct groups g;

    if (grad == NULL || t == NULL || !read_groups(x, &g))
        return false;
    enum dtype dtype = (enum dtype)t->dtype;
    bool weighted = in_given(x, in_param(x, "weight"));
    const sym_id one = num(x, 1);
    const sym_id by_channel[4] = {g.batch, g.groups, weighted ? g.size[2] : one, one};
    const sym_id by_group[4] = {g.batch, g.groups, one, one};
    const struct type *stat = step_plain(x, t, 4, by_group);
    const struct type *a = step_two(x, step_reshape(x, widened(x, grad), 4, g.size),
                                    step_plain(x, t, 4, by_channel));
    const struct type *b = step_two(x, step_reshape(x, widened(x, t), 4, g.size), stat);
    const struct type *out = step_reshape(x, step_two(x, step_two(x, a, b), stat), t->n, t->size);
    const struct type *rstd = in_tensor(x, in_param(x, "rstd"));
    bool dense = rstd == NULL || is_contiguous(x, rstd); /* as the forward returns it */
    out = tidy_only(x, out, (const struct type *[]){grad, t, dense ? NULL : &(struct type){0}}, 3);
    type_id weight = new_tensor(x, dtype, 1, &g.channels, NULL, t->device);
    type_id item[3] = {as_item(x, out, dtype), weight, weight};
    return out_masked(x, item, 3);
}

/* ---- batch norm ---- */

/* [1, C, 1, ...], or without the leading 1. */
static const struct type *channel_stat(struct infer *x, const struct type *t, bool batch)
{
    sym_id *size = new_syms(x, t->n);

    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i == 1 ? t->size[1] : num(x, 1);
    return step_plain(x, t, batch ? t->n : t->n - 1, batch ? size : size + 1);
}

/* The statistics that a functional variant returns instead of writing them. */
static type_id running_out(struct infer *x, const char *name, const struct type *t, bool training)
{
    const struct type *r = in_tensor(x, in_param(x, name));
    enum dtype wide = wide_dtype((enum dtype)t->dtype);

    if (r == NULL)
        return 0;
    if (training)
        return new_tensor(x, dtype_promote(wide, (enum dtype)r->dtype), r->n, r->size, NULL,
                          r->device);
    return new_like(x, r, wide);
}

/* On cpu nothing is saved unless the statistics come from the batch. */
static bool out_batch_norm(struct infer *x, bool training)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL || t->n < 2 || x->sig->n_results < 3 || x->sig->n_results > 6)
        return false;
    const struct type *stat = channel_stat(x, t, true), *by = channel_stat(x, t, false);
    const struct type *out = step_two(x, step_two(x, widened(x, t), stat), stat);
    out = tidy_only(x, affine(x, out, weight_bias, by), &t, 1);
    sym_id saved = training || !on_cpu(x, t) ? t->size[1] : num(x, 0);
    type_id item[6];
    item[0] = as_item(x, out, (enum dtype)t->dtype);
    item[1] = item[2] = new_tensor(x, stat_dtype(x, t), 1, &saved, NULL, t->device);
    if (!training && !on_cpu(x, t)) /* the mean that is given */
        item[1] = running_out(x, "running_mean", t, false);
    for (uint32_t i = 3; i < x->sig->n_results; i++) {
        const char *name = x->sig->results[i].name;
        if (strcmp(name, "running_mean_out") == 0)
            item[i] = running_out(x, "running_mean", t, training);
        else if (strcmp(name, "running_var_out") == 0)
            item[i] = running_out(x, "running_var", t, training);
        else /* reserved for the backward kernel */
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

/* Libraries save nothing for given statistics; what they save has the weight's dtype. */
bool shape_batch_norm_library(struct infer *x)
{
    const struct type *weight = in_tensor(x, in_param(x, "weight"));
    bool training;

    if (weight == NULL || !in_bool(x, in_param(x, "training"), &training) ||
        !out_batch_norm(x, training))
        return false;
    const struct type *list = type_at(x->type, x->result);
    uint32_t n = list->n;
    type_id item[6];
    memcpy(item, list->item, n * sizeof(*item));
    if (training && n > 3) /* computed as usual */
        return out_list(x, item, n);
    const struct type *t = in_tensor(x, 0);
    sym_id saved = training ? t->size[1] : num(x, 0);
    item[1] = item[2] = new_tensor(x, (enum dtype)weight->dtype, 1, &saved, NULL, weight->device);
    if (n == 3 && t->strided) { /* MIOpen makes a new tensor */
        const sym_id *stride = like_strides(x, t, suggested_format(x, t));
        item[0] = new_tensor(x, (enum dtype)t->dtype, t->n, t->size, stride, t->device);
    }
    return out_list(x, item, n);
}

bool shape_batch_norm_backward(struct infer *x)
{
    const struct type *t = in_tensor(x, in_param(x, "input"));
    int g = in_param(x, "grad_out"), train = in_param(x, "train"), mask_at;
    const struct type *grad = in_tensor(x, g != NO_PARAM ? g : in_param(x, "grad_output"));
    const struct type *weight = in_tensor(x, in_param(x, "weight"));
    bool training = true;
    const int64_t *mask;
    uint32_t n;

    if (train == NO_PARAM)
        train = in_param(x, "update");
    if (t == NULL || grad == NULL || t->n < 2 ||
        (train != NO_PARAM && !in_bool(x, train, &training)))
        return false;
    const struct type *stat = channel_stat(x, t, true), *out = widened(x, grad);
    if (training) {
        out = step_two(x, out, step_two(x, step_two(x, widened(x, t), stat), stat));
        out = step_two(x, out, stat);
    }
    out = step_two(x, out, stat);
    out = tidy_only(x, out, (const struct type *[]){grad, t}, 2);
    enum dtype dtype = weight ? (enum dtype)weight->dtype : (enum dtype)t->dtype;
    type_id channel = new_tensor(x, dtype, 1, &t->size[1], NULL, t->device);
    type_id item[3] = {as_item(x, out, (enum dtype)t->dtype), channel, channel};
    /* The gradient of the operand is returned even if it is not requested. */
    if ((mask_at = in_param(x, "output_mask")) != NO_PARAM) {
        if (!in_ints(x, mask_at, &mask, &n) || n != 3)
            return false;
        for (uint32_t i = 1; i < 3; i++)
            if (!mask[i])
                item[i] = type_none(x->type);
    }
    return out_list(x, item, 3);
}

/* ---- softmax ---- */

/* t's sizes with 1 along dim=. */
static const struct type *along_dim(struct infer *x, const struct type *t)
{
    int64_t dim;
    uint32_t d;

    if (!in_int(x, in_param(x, "dim"), &dim) || !wrap_dim(dim, t->n, &d))
        return NULL;
    sym_id *size = new_syms(x, t->n + 1);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i == d ? num(x, 1) : t->size[i];
    return step_plain(x, t, t->n, size);
}

static bool softmax_dtype(struct infer *x, const struct type *t, enum dtype *out)
{
    bool wide;

    if (t == NULL)
        return false;
    if (!in_dtype(x, in_param(x, "dtype"), out))
        *out = in_bool(x, in_param(x, "half_to_float"), &wide) && wide ? DTYPE_F32
                                                                       : (enum dtype)t->dtype;
    return true;
}

bool shape_softmax(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum dtype dtype;

    return softmax_dtype(x, t, &dtype) && out_tensor(x, dtype, t->n, t->size, NULL, t->device);
}

bool shape_log_softmax(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *stat;
    enum dtype dtype;

    if (!softmax_dtype(x, t, &dtype) || (stat = along_dim(x, t)) == NULL)
        return false;
    const struct type *in = dtype != (enum dtype)t->dtype ? step_copy(x, t) : t;
    in = widened(x, step_pack(x, in, FORMAT_CONTIGUOUS));
    in = step_two(x, step_two(x, in, stat), stat);
    return out_type(x, as_item(x, tidy_only(x, in, &t, 1), dtype));
}

bool shape_softmax_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0), *out = in_tensor(x, 1);
    enum dtype dtype;

    if (grad == NULL || out == NULL || !in_dtype(x, in_param(x, "input_dtype"), &dtype))
        return false;
    const struct type *stat = along_dim(x, grad);
    if (stat == NULL)
        return false;
    const struct type *t = step_two(x, step_two(x, grad, out), step_two(x, out, stat));
    t = tidy_only(x, step_pack(x, t, FORMAT_CONTIGUOUS), (const struct type *[]){grad, out}, 2);
    return out_type(x, as_item(x, t, dtype));
}

bool shape_log_softmax_backward(struct infer *x)
{
    const struct type *grad = in_tensor(x, 0), *out = in_tensor(x, 1);
    enum dtype dtype;

    if (grad == NULL || out == NULL || !in_dtype(x, in_param(x, "input_dtype"), &dtype))
        return false;
    const struct type *stat = along_dim(x, grad);
    if (stat == NULL)
        return false;
    const struct type *t = step_two(x, widened(x, grad), step_two(x, step_one(x, out), stat));
    t = tidy_only(x, t, (const struct type *[]){grad, out}, 2);
    return out_type(x, as_item(x, t, dtype));
}

/* ---- weight norm ---- */

/* v divided by its norm along all dimensions but one, times g. */
bool shape_weight_norm(struct infer *x)
{
    const struct type *v = in_tensor(x, 0), *g = in_tensor(x, 1);
    int64_t dim;
    uint32_t d;

    if (v == NULL || g == NULL || v->dtype != g->dtype || !in_int(x, 2, &dim) || v->n < 2 ||
        g->n != v->n || !wrap_dim(dim, v->n, &d) || !is_tidy(x, v) || !is_contiguous(x, v) ||
        !is_contiguous(x, g))
        return false;
    sym_id *size = new_syms(x, v->n);
    for (uint32_t i = 0; i < v->n; i++)
        size[i] = i == d ? v->size[i] : num(x, 1);
    enum dtype wide = v->dtype == DTYPE_BF16 ? DTYPE_F32 : (enum dtype)v->dtype;
    type_id item[] = {
        new_like(x, v, (enum dtype)v->dtype),
        new_tensor(x, wide, v->n, size, contiguous_strides(x, v->n, size), v->device)};
    return out_list(x, item, 2);
}

bool shape_weight_norm_backward(struct infer *x)
{
    const struct type *v = in_tensor(x, 1), *g = in_tensor(x, 2);

    if (v == NULL || g == NULL)
        return false;
    type_id item[] = {new_like(x, v, (enum dtype)v->dtype), new_like(x, g, (enum dtype)g->dtype)};
    return out_list(x, item, 2);
}
