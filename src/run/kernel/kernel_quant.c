/* 8-bit numbers: products with scales, and rounding as if there were only 8 bits. */
#include <math.h>

#include "run/kernel/gemm.h"

/* ---- products ---- */

/* How far apart the scales of rows or columns are: there is one for all, or one for each. */
static bool scale_step(struct rt_call *c, const struct rt_tensor *t, int64_t n, int64_t *step)
{
    *step = rt_numel(t) == 1 ? 0 : 1;
    return rt_numel(t) == 1 || rt_numel(t) == n ||
           kernel_error(c, "%lld scales for %lld rows or columns", (long long)rt_numel(t),
                        (long long)n);
}

/* (a, b, scale_a, scale_b, bias, scale_result) */
bool kernel_scaled_mm(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *a = arg_tensor(c, 0), *b = arg_tensor(c, 1), *out = c->out;
    int64_t of_row, of_column;

    if (a->n != 2 || b->n != 2 || out->n != 2 || a->size[1] != b->size[0] ||
        a->size[0] != out->size[0] || b->size[1] != out->size[1] ||
        !kernel_holds(c, arg_tensor(c, 4), out->size[1]) || !kernel_holds(c, arg_tensor(c, 5), 1))
        return kernel_apart(c);
    int64_t m = out->size[0], n = out->size[1], k = a->size[1];
    if (!scale_step(c, arg_tensor(c, 2), m, &of_row) ||
        !scale_step(c, arg_tensor(c, 3), n, &of_column))
        return false;
    const float *x = plain_in(&s, a, K_F32), *y = plain_in(&s, b, K_F32),
                *row = plain_in(&s, arg_tensor(c, 2), K_F32),
                *column = plain_in(&s, arg_tensor(c, 3), K_F32),
                *bias = plain_in(&s, arg_tensor(c, 4), K_F32),
                *all = plain_in(&s, arg_tensor(c, 5), K_F32);
    float *z = plain_out(&s, out, K_F32);
    struct matrix of_x = {(void *)(uintptr_t)x, m, k, k, 1},
                  of_y = {(void *)(uintptr_t)y, k, n, n, 1};
    if (!gemm(c, K_F32, (struct matrix){z, m, n, n, 1}, of_x, of_y, 1, 0, s.at))
        return false;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float v = z[i * n + j] * row[i * of_row] * column[j * of_column];

            v += bias != NULL ? bias[j] : 0;
            z[i * n + j] = all != NULL ? v * *all : v;
        }
    plain_done(&s, out, z, K_F32);
    return true;
}

size_t scratch_scaled_mm(const struct rt_call *c)
{
    return plain_scratch(c, 4 * RT_ALIGN * sizeof(float)); /* all operands are made dense */
}

/* ---- rounding ---- */

struct steps {
    double scale, zero, least, most;
};

/* A whole number of steps; was it between the two numbers? */
static bool quantized(const struct steps *q, double *x)
{
    float inverse = 1.0F / (float)q->scale;
    double n = q->zero + (double)nearbyintf((float)*x * inverse);
    bool inside = n >= q->least && n <= q->most;

    n = n > q->most ? q->most : n >= q->least ? n : q->least; /* so is what is no number */
    *x = (double)((float)(n - q->zero) * (float)q->scale);
    return inside;
}

/* The number that operand i is, or its element number k. */
static double number_at(const struct rt_call *c, uint32_t i, int64_t k)
{
    const struct rt_tensor *t = arg_tensor(c, i);
    struct rt_tensor one;

    if (t == NULL)
        return arg_float(c, i, 0);
    one = (struct rt_tensor){.dtype = t->dtype, .data = t->data};
    if (t->n > 0)
        one.data = (char *)t->data + k * t->stride[0] * dtype_at(t->dtype)->bytes;
    struct rt_value v = rt_item(&one);
    return v.kind == RT_FLOAT ? v.f : v.kind == RT_INT ? (double)v.i : v.b;
}

/* channels: as many scales, each for `run` elements at a time. */
static bool fake_quantize(struct rt_call *c, uint32_t bounds, int64_t channels, int64_t run,
                          bool enabled)
{
    struct plain s = plain_begin(c);

    if (!kernel_same(c, &c->out[0], arg_tensor(c, 0)) || !kernel_same(c, out_at(c, 1), c->out))
        return false;
    const double *x = plain_in(&s, arg_tensor(c, 0), K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64);
    uint8_t *mask = plain_out(&s, out_at(c, 1), K_BOOL);
    for (int64_t i = 0; i < rt_numel(c->out); i++) {
        int64_t k = channels > 1 ? i / run % channels : 0;
        struct steps q = {number_at(c, 1, k), number_at(c, 2, k), arg_float(c, bounds, 0),
                          arg_float(c, bounds + 1, 0)};

        y[i] = x[i];
        bool inside = !enabled || quantized(&q, &y[i]);
        if (mask != NULL)
            mask[i] = inside;
    }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, out_at(c, 1), mask, K_BOOL);
    return true;
}

/* (self, scale, zero_point, [enabled,] least, most) */
bool kernel_fake_quantize(struct rt_call *c)
{
    bool tensors = arg_tensor(c, 1) != NULL;

    if (tensors &&
        (arg_tensor(c, 2) == NULL || arg_tensor(c, 3) == NULL || rt_numel(arg_tensor(c, 1)) != 1 ||
         rt_numel(arg_tensor(c, 2)) != 1 || rt_numel(arg_tensor(c, 3)) != 1))
        return kernel_apart(c);
    return fake_quantize(c, tensors ? 4 : 3, 1, 1, !tensors || number_at(c, 3, 0) != 0);
}

/* (self, scale, zero_point, axis, least, most) */
bool kernel_fake_quantize_channels(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    int axis;

    if (in->n == 0 || !kernel_dim(c, in, arg_int(c, 3, 0), &axis) || arg_tensor(c, 1)->n != 1 ||
        arg_tensor(c, 2)->n != 1 || !kernel_holds(c, arg_tensor(c, 1), in->size[axis]) ||
        !kernel_holds(c, arg_tensor(c, 2), in->size[axis]))
        return kernel_apart(c);
    return fake_quantize(c, 4, in->size[axis], plain_count(in, axis + 1, in->n), true);
}

size_t scratch_fake_quantize(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_fake_quantize_channels(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
