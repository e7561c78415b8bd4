/* Group norm: the rows of layer norm are the groups of channels of an image; weights are those of
 * channels. Computed in double. */
#include <math.h>

#include "run/kernel/plain.h"

struct groups {
    int64_t n, channels, inner, groups, share; /* share: channels of a group */
};

/* (…, N, C, HxW, group, …) from operand `at` on */
static struct groups groups_at(const struct rt_call *c, uint32_t at)
{
    struct groups g = {arg_int(c, at, 0), arg_int(c, at + 1, 0), arg_int(c, at + 2, 0),
                       arg_int(c, at + 3, 1), 0};

    g.groups = g.groups > 0 ? g.groups : 1;
    g.share = g.channels / g.groups;
    return g;
}

static bool matches(struct rt_call *c, const struct rt_tensor *in, const struct groups *g)
{
    int64_t planes, all;

    if (g->n >= 0 && g->channels > 0 && g->inner >= 0 && g->channels % g->groups == 0 &&
        !__builtin_mul_overflow(g->n, g->channels, &planes) &&
        !__builtin_mul_overflow(planes, g->inner, &all) && rt_numel(in) == all)
        return true;
    return kernel_error(c, "group norm of %lld x %lld x %lld elements has %lld", (long long)g->n,
                        (long long)g->channels, (long long)g->inner, (long long)rt_numel(in));
}

/* The sum of a row, and of the squares of what is left without its mean. */
static void statistics(const double *x, int64_t n, double eps, double *mean, double *rstd)
{
    double sum = 0, square = 0;

    for (int64_t i = 0; i < n; i++)
        sum += x[i];
    *mean = sum / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (x[i] - *mean) * (x[i] - *mean);
    *rstd = 1 / sqrt(square / (double)n + eps);
}

/* (input, weight, bias, N, C, HxW, group, eps) -> out, mean, rstd */
bool kernel_group_norm(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct groups g = groups_at(c, 3);

    if (!matches(c, in, &g) || !kernel_holds(c, arg_tensor(c, 1), g.channels) ||
        !kernel_holds(c, arg_tensor(c, 2), g.channels) ||
        !kernel_holds(c, &c->out[0], rt_numel(in)) ||
        !kernel_holds(c, &c->out[1], g.n * g.groups) ||
        !kernel_holds(c, &c->out[2], g.n * g.groups))
        return false;
    const double *x = plain_in(&s, in, K_F64), *w = plain_in(&s, arg_tensor(c, 1), K_F64),
                 *b = plain_in(&s, arg_tensor(c, 2), K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64), *mean = plain_out(&s, &c->out[1], K_F64),
           *rstd = plain_out(&s, &c->out[2], K_F64);
    int64_t n = g.share * g.inner;
    for (int64_t row = 0; row < g.n * g.groups; row++) {
        statistics(x + row * n, n, arg_float(c, 7, 0), &mean[row], &rstd[row]);
        for (int64_t i = 0; i < n; i++) {
            int64_t channel = row % g.groups * g.share + i / g.inner;
            double v = (x[row * n + i] - mean[row]) * rstd[row];

            y[row * n + i] = v * (w != NULL ? w[channel] : 1) + (b != NULL ? b[channel] : 0);
        }
    }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, &c->out[1], mean, K_F64);
    plain_done(&s, &c->out[2], rstd, K_F64);
    return true;
}

size_t scratch_group_norm(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* The gradient of one row's input. */
static void row_backward(const struct groups *g, int64_t row, double *dx, const double *grad,
                         const double *x, const double *w, double mean, double rstd)
{
    int64_t n = g->share * g->inner, first = row % g->groups * g->share;
    double sum = 0, along = 0;

    for (int64_t i = 0; i < n; i++) {
        double d = grad[i] * (w != NULL ? w[first + i / g->inner] : 1);

        sum += d;
        along += d * (x[i] - mean) * rstd;
    }
    for (int64_t i = 0; i < n; i++) {
        double d = grad[i] * (w != NULL ? w[first + i / g->inner] : 1);

        dx[i] = rstd * (d - (sum + (x[i] - mean) * rstd * along) / (double)n);
    }
}

/* (grad, input, mean, rstd, weight, N, C, HxW, group, mask) -> input, weight, bias */
bool kernel_group_norm_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 1);
    struct rt_tensor *out[3] = {out_at(c, 0), out_at(c, 1), out_at(c, 2)};
    struct groups g = groups_at(c, 5);
    double *d[3];

    if (!matches(c, in, &g) || !kernel_holds(c, arg_tensor(c, 0), rt_numel(in)) ||
        !kernel_holds(c, arg_tensor(c, 2), g.n * g.groups) ||
        !kernel_holds(c, arg_tensor(c, 3), g.n * g.groups) ||
        !kernel_holds(c, arg_tensor(c, 4), g.channels) || !kernel_holds(c, out[0], rt_numel(in)) ||
        !kernel_holds(c, out[1], g.channels) || !kernel_holds(c, out[2], g.channels))
        return false;
    const double *grad = plain_in(&s, arg_tensor(c, 0), K_F64), *x = plain_in(&s, in, K_F64),
                 *mean = plain_in(&s, arg_tensor(c, 2), K_F64),
                 *rstd = plain_in(&s, arg_tensor(c, 3), K_F64),
                 *w = plain_in(&s, arg_tensor(c, 4), K_F64);
    for (int i = 0; i < 3; i++)
        d[i] = plain_out(&s, out[i], K_F64);
    for (int i = 1; i < 3; i++)
        if (d[i] != NULL)
            memset(d[i], 0, (size_t)g.channels * sizeof(*d[i]));
    int64_t n = g.share * g.inner;
    for (int64_t row = 0; row < g.n * g.groups; row++) {
        if (d[0] != NULL)
            row_backward(&g, row, d[0] + row * n, grad + row * n, x + row * n, w, mean[row],
                         rstd[row]);
        for (int64_t i = 0; i < n; i++) {
            int64_t channel = row % g.groups * g.share + i / g.inner, at = row * n + i;

            if (d[1] != NULL)
                d[1][channel] += grad[at] * (x[at] - mean[row]) * rstd[row];
            if (d[2] != NULL)
                d[2][channel] += grad[at];
        }
    }
    for (int i = 0; i < 3; i++)
        plain_done(&s, out[i], d[i], K_F64);
    return true;
}

size_t scratch_group_norm_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
