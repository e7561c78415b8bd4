/* Pooling of images into as many windows as results are wanted, over the last two dimensions. */
#include <math.h>

#include "run/kernel/pool.h"

/* Window i of n over size elements. */
static int64_t window(int64_t i, int64_t n, int64_t size, int64_t *end)
{
    *end = ((i + 1) * size + n - 1) / n;
    return i * size / n;
}

/* y: means of windows of x; or, backward, x: what each element gets of y. */
static void adaptive(const struct rt_tensor *large, const struct rt_tensor *small, double *x,
                     double *y, bool backward)
{
    int n = large->n;
    int64_t h = large->size[n - 2], w = large->size[n - 1], oh = small->size[n - 2],
            ow = small->size[n - 1], planes = plain_count(large, 0, n - 2), rows, columns;

    for (int64_t p = 0; p < planes; p++, x += h * w)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++, y++) {
                int64_t top = window(i, oh, h, &rows), left = window(j, ow, w, &columns);
                double count = (double)((rows - top) * (columns - left)), sum = 0;

                for (int64_t r = top; r < rows; r++)
                    for (int64_t k = left; k < columns; k++)
                        if (backward)
                            x[r * w + k] += *y / count;
                        else
                            sum += x[r * w + k];
                if (!backward)
                    *y = sum / count;
            }
}

/* Planes of both go together, and none of the large ones is empty. */
static bool is_adaptive(struct rt_call *c, const struct rt_tensor *large,
                        const struct rt_tensor *small)
{
    int n = large->n;

    if (small->n != n || plain_count(small, 0, n - 2) != plain_count(large, 0, n - 2) ||
        large->size[n - 2] > INT32_MAX || large->size[n - 1] > INT32_MAX ||
        (rt_numel(small) > 0 && rt_numel(large) == 0))
        return kernel_apart(c);
    return true;
}

/* (self, output_size) */
bool kernel_adaptive_avg_pool(struct rt_call *c)
{
    struct plain s = plain_begin(c);

    if (!is_adaptive(c, arg_tensor(c, 0), c->out))
        return false;
    double *x = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *y = plain_out(&s, c->out, K_F64);

    adaptive(arg_tensor(c, 0), c->out, x, y, false);
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* (grad, self) */
bool kernel_adaptive_avg_pool_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);

    if (!is_adaptive(c, c->out, arg_tensor(c, 0)) || !kernel_same(c, arg_tensor(c, 1), c->out))
        return false;
    double *g = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    adaptive(c->out, arg_tensor(c, 0), dx, g, true);
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

/* The place of the largest element of a window in the plane; the first of equal ones, or a NaN. */
static int64_t largest(const double *x, int64_t w, int64_t top, int64_t bottom, int64_t left,
                       int64_t right)
{
    int64_t best = top * w + left;

    for (int64_t r = top; r < bottom; r++)
        for (int64_t k = left; k < right; k++)
            if (x[r * w + k] > x[best] || isnan(x[r * w + k]))
                best = r * w + k;
    return best;
}

/* (self, output_size): the elements, and their places */
bool kernel_adaptive_max_pool(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int n = in->n;

    if (!is_adaptive(c, in, c->out) || !kernel_same(c, &c->out[1], c->out))
        return false;
    const double *x = plain_in(&s, in, K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64);
    int64_t *place = plain_out(&s, &c->out[1], K_I64), at = 0, bottom, right;
    int64_t h = in->size[n - 2], w = in->size[n - 1], oh = c->out->size[n - 2],
            ow = c->out->size[n - 1];

    for (int64_t p = 0; p < plain_count(in, 0, n - 2); p++, x += h * w)
        for (int64_t i = 0; i < oh; i++)
            for (int64_t j = 0; j < ow; j++, at++) {
                int64_t top = window(i, oh, h, &bottom), left = window(j, ow, w, &right);

                place[at] = largest(x, w, top, bottom, left, right);
                y[at] = x[place[at]];
            }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, &c->out[1], place, K_I64);
    return true;
}

/* (grad, self, indices) */
bool kernel_adaptive_max_pool_backward(struct rt_call *c)
{
    const struct rt_tensor *grad = arg_tensor(c, 0), *places = arg_tensor(c, 2);

    return is_adaptive(c, c->out, grad) && kernel_same(c, arg_tensor(c, 1), c->out) &&
           kernel_same(c, places, grad) && pool_give_back(c, grad, places);
}

PLAIN_SCRATCH(adaptive_avg_pool)
PLAIN_SCRATCH(adaptive_avg_pool_backward)
PLAIN_SCRATCH(adaptive_max_pool)
PLAIN_SCRATCH(adaptive_max_pool_backward)
