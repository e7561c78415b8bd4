/* Shape rules of pooling, resizing and grid sampling. */
#include "infer/rule.h"

/* How many of the last dimensions a list parameter is about: two for i[2]; without a size, as many
 * as the list has. */
static uint32_t n_spatial(struct infer *x, int p, const struct type *t)
{
    const sym_id *list;
    uint32_t n;

    if (p >= 0 && x->sig->params[p].list_size > 0)
        return x->sig->params[p].list_size;
    if (in_syms(x, p, &list, &n))
        return n;
    return t->n > 2 ? t->n - 2 : 0;
}

/* A list of n numbers; one of length 1 is repeated, an absent or empty one becomes `otherwise`. */
static bool spatial_list(struct infer *x, const char *name, uint32_t n, const int64_t *otherwise,
                         const int64_t **out)
{
    const int64_t *list;
    uint32_t len = 0;
    int p = in_param(x, name);

    if (p != NO_PARAM && !in_ints(x, p, &list, &len))
        return false;
    if (len == 0) {
        *out = otherwise;
        return otherwise != NULL;
    }
    if (len != n && len != 1)
        return false;
    int64_t *all = arena_array(x->arena, int64_t, n);
    for (uint32_t i = 0; i < n; i++) {
        all[i] = list[len == 1 ? 0 : i];
        if (all[i] < -INT32_MAX || all[i] > INT32_MAX) /* no window is that large */
            return false;
    }
    *out = all;
    return true;
}

static const int64_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1}, zeros[8];

/* May results be channels-last like `like`? */
enum follow { FOLLOW, STAY_PLAIN };

/* A tensor in the layout that `like` suggests; n_window: its spatial dimensions. A single one gets
 * another of size 1 before it, as torch pools it. */
static type_id new_pooled(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                          const struct type *like, uint32_t n_window, enum follow follow)
{
    if (follow == STAY_PLAIN || like->n != n || n != n_window + 2 || n > 5)
        return new_tensor(x, dtype, n, size, NULL, like->device);
    if (!like->strided)
        return type_tensor(x->type, dtype, n, size, NULL, like->device);
    if (n_window != 1) {
        bool last = is_channels_last(x, like);
        return new_tensor(x, dtype, n, size, last ? channels_last_strides(x, n, size) : NULL,
                          like->device);
    }
    const sym_id *s = like->size, *t = like->stride;
    const sym_id wide_size[4] = {s[0], s[1], num(x, 1), s[2]};
    const sym_id wide_stride[4] = {t[0], t[1], sym_mul(x->sym, s[2], t[2]), t[2]};
    struct type wide = {
        .kind = TYPE_TENSOR, .strided = true, .n = 4, .size = wide_size, .stride = wide_stride};
    if (!is_channels_last(x, &wide))
        return new_tensor(x, dtype, n, size, NULL, like->device);
    const sym_id out_size[4] = {size[0], size[1], num(x, 1), size[2]};
    const sym_id *out = channels_last_strides(x, 4, out_size);
    return new_tensor(x, dtype, n, size, (sym_id[]){out[0], out[1], out[3]}, like->device);
}

/* ---- windows ---- */

/* With ceil_mode the last window may extend past the end, but must begin before it. */
static sym_id pooled(struct infer *x, sym_id in, int64_t kernel, int64_t stride, int64_t padding,
                     int64_t dilation, bool ceil_mode)
{
    struct symtab *t = x->sym;
    int64_t known, span = dilation * (kernel - 1) + 1;

    if (stride <= 0)
        return 0;
    sym_id room = sym_add(t, in, num(x, 2 * padding - span + (ceil_mode ? stride - 1 : 0)));
    sym_id out = sym_add(t, sym_floordiv(t, room, num(x, stride)), num(x, 1));
    if (!ceil_mode || stride == 1)
        return out;
    int64_t n;
    if (!sym_as_int(t, in, &known) || !sym_as_int(t, out, &n) || known > INT64_MAX / 2)
        return 0; /* whether the last window counts depends on the size */
    return n - 1 >= (known + padding + stride - 1) / stride ? num(x, n - 1) : out;
}

static bool pooled_sizes(struct infer *x, const struct type *t, sym_id **out)
{
    int p = in_param(x, "kernel_size");
    uint32_t n = n_spatial(x, p, t);
    const int64_t *kernel, *stride, *padding, *dilation;
    bool ceil_mode = false;
    int ceil = in_param(x, "ceil_mode");

    if (n == 0 || n > 3 || (t->n != n + 1 && t->n != n + 2) ||
        !spatial_list(x, "kernel_size", n, NULL, &kernel) ||
        !spatial_list(x, "stride", n, kernel, &stride) ||
        !spatial_list(x, "padding", n, zeros, &padding) ||
        !spatial_list(x, "dilation", n, ones, &dilation) ||
        (ceil != NO_PARAM && !in_bool(x, ceil, &ceil_mode)))
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = t->size[i];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t d = t->n - n + i;
        size[d] = pooled(x, t->size[d], kernel[i], stride[i], padding[i], dilation[i], ceil_mode);
    }
    *out = size;
    return true;
}

/* Averages over three dimensions have no channels-last form; maxima, which have a dilation, do. */
static enum follow pool_follow(struct infer *x, const struct type *t)
{
    uint32_t n = n_spatial(x, in_param(x, "kernel_size"), t);

    return n == 3 && in_param(x, "dilation") == NO_PARAM ? STAY_PLAIN : FOLLOW;
}

bool shape_pool(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;

    return t != NULL && pooled_sizes(x, t, &size) &&
           out_type(x, new_pooled(x, (enum dtype)t->dtype, t->n, size, t,
                                  n_spatial(x, in_param(x, "kernel_size"), t), pool_follow(x, t)));
}

static bool out_pool_pair(struct infer *x, enum dtype second)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;

    if (t == NULL || !pooled_sizes(x, t, &size))
        return false;
    uint32_t n = n_spatial(x, in_param(x, "kernel_size"), t);
    enum follow follow = pool_follow(x, t);
    type_id item[2] = {new_pooled(x, (enum dtype)t->dtype, t->n, size, t, n, follow),
                       new_pooled(x, second, t->n, size, t, n, follow)};
    return out_list(x, item, 2);
}

bool shape_pool_pair(struct infer *x)
{
    return out_pool_pair(x, DTYPE_I64);
}

/* Offsets are indices converted to a smaller type, which is an element-wise step. */
bool shape_pool_low(struct infer *x)
{
    if (!out_pool_pair(x, DTYPE_I8))
        return false;
    const type_id *pair = type_at(x->type, x->result)->item;
    struct type offsets = *type_at(x->type, pair[1]);
    type_id item[2] = {pair[0], as_item(x, step_one(x, &offsets), DTYPE_I8)};
    return out_list(x, item, 2);
}

bool shape_pool_offsets(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_type(x, as_item(x, tidy_only(x, step_one(x, t), &t, 1), DTYPE_I64));
}

/* ---- given output sizes ---- */

static bool given_sizes(struct infer *x, const struct type *t, uint32_t *n_out, sym_id **out)
{
    int p = in_param(x, "output_size");
    uint32_t n = n_spatial(x, p, t), len;
    const sym_id *list;

    if (!in_syms(x, p, &list, &len) || n == 0 || n > 3 || (len != n && len != 1) ||
        (t->n != n + 1 && t->n != n + 2))
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i < t->n - n ? t->size[i] : list[len == 1 ? 0 : i - (t->n - n)];
    *n_out = n;
    *out = size;
    return true;
}

bool shape_adaptive_pool(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;
    uint32_t n;

    return t != NULL && given_sizes(x, t, &n, &size) &&
           out_type(x, new_pooled(x, (enum dtype)t->dtype, t->n, size, t, n,
                                  n == 3 ? STAY_PLAIN : FOLLOW));
}

bool shape_adaptive_pool_pair(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;
    uint32_t n;

    if (t == NULL || !given_sizes(x, t, &n, &size))
        return false;
    enum follow follow = n == 3 ? STAY_PLAIN : FOLLOW;
    type_id item[2] = {new_pooled(x, (enum dtype)t->dtype, t->n, size, t, n, follow),
                       new_pooled(x, DTYPE_I64, t->n, size, t, n, follow)};
    return out_list(x, item, 2);
}

/* ---- resizing ---- */

/* The integer part of size * factor. */
static sym_id scaled(struct infer *x, sym_id size, sym_id factor)
{
    struct sym_num f;
    int64_t n;

    if (!sym_as_number(x->sym, factor, &f))
        return 0;
    double by = f.kind == SYM_T_FLOAT ? f.f : (double)f.i;
    if (sym_as_int(x->sym, size, &n))
        return num(x, (int64_t)((double)n * by));
    sym_id product = sym_mul(x->sym, sym_to_float(x->sym, size), sym_float(x->sym, by));
    return sym_make1(x->sym, SYM_TRUNC, product);
}

static bool upsampled_sizes(struct infer *x, const struct type *t, sym_id **out)
{
    const sym_id *factor;
    uint32_t n;

    if (t == NULL || t->n < 3 || t->n > 5)
        return false;
    if (in_given(x, in_param(x, "output_size")))
        return given_sizes(x, t, &n, out);
    if (!in_syms(x, in_param(x, "scale_factors"), &factor, &n) || t->n != n + 2)
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i < 2 ? t->size[i] : scaled(x, t->size[i], factor[i - 2]);
    *out = size;
    return true;
}

/* Contiguous, then converted to the layout that the operand suggests; strides that fit both
 * stay. */
static const struct type *upsampled(struct infer *x, const struct type *t, const sym_id *size)
{
    const struct type *out = step_plain(x, t, t->n, size);

    if (!t->strided)
        return tidy_only(x, out, &t, 1);
    return t->n == 3 ? out : step_pack(x, out, suggested_format(x, t));
}

bool shape_upsample(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;

    return upsampled_sizes(x, t, &size) &&
           out_type(x, new_pooled(x, (enum dtype)t->dtype, t->n, size, t, t->n - 2,
                                  t->n == 3 ? STAY_PLAIN : FOLLOW));
}

bool shape_upsample_packed(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;

    return upsampled_sizes(x, t, &size) &&
           out_type(x, as_item(x, upsampled(x, t, size), (enum dtype)t->dtype));
}

/* On devices other than cpu, few channels keep the plain layout. */
bool shape_upsample_linear(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    sym_id *size;

    if (!upsampled_sizes(x, t, &size))
        return false;
    const struct type *out = upsampled(x, t, size), *plain = step_plain(x, t, t->n, size);
    if (!on_cpu(x, t) && hint_of(x, t->size[1]) < 16)
        out = plain;
    out = tidy_only(x, out, (const struct type *[]){t, out}, 2);
    return out_type(x, as_item(x, out, (enum dtype)t->dtype));
}

static bool out_upsample_backward(struct infer *x, enum follow follow)
{
    const struct type *t = in_tensor(x, 0);
    const sym_id *size;
    uint32_t n;

    return t != NULL && in_syms(x, in_param(x, "input_size"), &size, &n) && n == t->n &&
           out_type(x, new_pooled(x, (enum dtype)t->dtype, n, size, t, n - 2,
                                  n == 3 ? STAY_PLAIN : follow));
}

bool shape_upsample_backward(struct infer *x)
{
    return out_upsample_backward(x, FOLLOW);
}

bool shape_upsample_backward_plain(struct infer *x)
{
    return out_upsample_backward(x, STAY_PLAIN);
}

bool shape_grid_sampler(struct infer *x)
{
    const struct type *t = in_tensor(x, 0), *grid = in_tensor(x, 1);

    if (t == NULL || grid == NULL || t->n < 4 || grid->n != t->n)
        return false;
    sym_id *size = new_syms(x, t->n);
    for (uint32_t i = 0; i < t->n; i++)
        size[i] = i < 2 ? t->size[i] : grid->size[i - 1];
    const struct type *out = step_plain(x, t, t->n, size);
    out = tidy_only(x, out, (const struct type *[]){t, grid}, 2);
    for (uint32_t i = 0; i < t->n; i++)
        if (is_one(x, size[i]) && !(is_contiguous(x, t) && is_contiguous(x, grid)))
            return out_type(
                x, type_tensor(x->type, (enum dtype)t->dtype, t->n, size, NULL, t->device));
    return out_type(x, as_item(x, out, (enum dtype)t->dtype));
}
