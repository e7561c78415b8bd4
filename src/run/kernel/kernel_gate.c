/* Activations whose operands a loop cannot take: halves of a tensor, numbers before the tensor. */
#include <math.h>

#include "run/kernel/plain.h"

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* elu_backward(grad, alpha, scale, input_scale, is_result, self or result) */
bool kernel_elu_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0), *of = arg_tensor(c, 5);
    double negative = arg_float(c, 1, 1) * arg_float(c, 2, 1), scale = arg_float(c, 2, 1),
           inside = arg_float(c, 3, 1);
    bool result = arg_bool(c, 4, false);

    if (kind_of(grad->dtype) >= K_C64 || kind_of(of->dtype) >= K_C64)
        return kernel_apart(c);
    int64_t n = rt_numel(c->out);
    const double *g = plain_spread(&s, grad), *x = plain_spread(&s, of);
    if (g == NULL || x == NULL)
        return false;
    double *y = plain_out(&s, c->out, K_F64);
    for (int64_t i = 0; i < n; i++)
        y[i] = g[i] * (!(x[i] <= 0) ? scale
                       : result     ? inside * (x[i] + negative)
                                    : inside * negative * exp(x[i] * inside));
    plain_done(&s, c->out, y, K_F64);
    return true;
}

size_t scratch_elu_backward(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(c->out), 2, 8) + 2 * RT_ALIGN);
}

/* Halves of the whole along a dimension: [outer][2][n] elements. */
struct halves {
    int64_t outer, n;
};

static bool take_halves(struct rt_call *c, const struct rt_tensor *whole,
                        const struct rt_tensor *half, int64_t along, struct halves *h)
{
    int dim;

    if (whole->n == 0 || half->n != whole->n || kind_of(whole->dtype) >= K_C64 ||
        kind_of(half->dtype) >= K_C64)
        return kernel_apart(c);
    if (!kernel_dim(c, whole, along, &dim))
        return false;
    for (int d = 0; d < whole->n; d++)
        if (whole->size[d] != (d == dim ? 2 : 1) * half->size[d])
            return kernel_apart(c);
    h->outer = plain_count(whole, 0, dim);
    h->n = plain_count(half, dim, half->n);
    return true;
}

/* glu(self, dim): the first half times the sigmoid of the second */
bool kernel_glu(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct halves h;

    if (!take_halves(c, arg_tensor(c, 0), c->out, arg_int(c, 1, -1), &h))
        return false;
    const double *x = plain_in(&s, arg_tensor(c, 0), K_F64);
    double *y = plain_out(&s, c->out, K_F64);
    for (int64_t o = 0; o < h.outer; o++)
        for (int64_t i = 0; i < h.n; i++)
            y[o * h.n + i] = x[2 * o * h.n + i] * sigmoid(x[(2 * o + 1) * h.n + i]);
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* glu_backward(grad, self, dim) */
bool kernel_glu_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *of = arg_tensor(c, 1);
    struct halves h;

    if (!take_halves(c, of, arg_tensor(c, 0), arg_int(c, 2, -1), &h) || !kernel_same(c, c->out, of))
        return false;
    const double *g = plain_in(&s, arg_tensor(c, 0), K_F64), *x = plain_in(&s, of, K_F64);
    double *y = plain_out(&s, c->out, K_F64);
    for (int64_t o = 0; o < h.outer; o++)
        for (int64_t i = 0; i < h.n; i++) {
            int64_t first = 2 * o * h.n + i, second = first + h.n;
            double gate = sigmoid(x[second]), grad = g[o * h.n + i];

            y[first] = grad * gate;
            y[second] = grad * x[first] * gate * (1 - gate);
        }
    plain_done(&s, c->out, y, K_F64);
    return true;
}

size_t scratch_glu(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_glu_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* log_sigmoid_forward(self): the result, and exp(-|x|) for the way back, unless that has no room */
bool kernel_log_sigmoid_forward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct rt_tensor *buffer = out_at(c, 1);

    if (buffer != NULL && rt_numel(buffer) == 0)
        buffer = NULL;
    if (!kernel_same(c, c->out, in) || !kernel_same(c, buffer, in) || kind_of(in->dtype) >= K_C64)
        return kernel_apart(c);
    const double *x = plain_in(&s, in, K_F64);
    double *y = plain_out(&s, c->out, K_F64), *z = plain_out(&s, buffer, K_F64);
    for (int64_t i = 0; i < rt_numel(in); i++) {
        double e = exp(-fabs(x[i]));

        y[i] = (x[i] < 0 ? x[i] : 0) - log1p(e);
        if (z != NULL)
            z[i] = e;
    }
    plain_done(&s, c->out, y, K_F64);
    plain_done(&s, buffer, z, K_F64);
    return true;
}

size_t scratch_log_sigmoid_forward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* _prelu_kernel_backward(grad, self, weight): by self, and by the weight as large as self */
bool kernel_prelu_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 1);
    struct rt_tensor *by_self = out_at(c, 0), *by_weight = out_at(c, 1);

    if (kind_of(in->dtype) >= K_C64 || by_self == NULL || !kernel_same(c, by_self, in) ||
        !kernel_same(c, by_weight, in))
        return kernel_apart(c);
    const double *g = plain_spread(&s, arg_tensor(c, 0)), *x = plain_spread(&s, in),
                 *w = plain_spread(&s, arg_tensor(c, 2));
    if (g == NULL || x == NULL || w == NULL)
        return false;
    double *dx = plain_out(&s, by_self, K_F64), *dw = plain_out(&s, by_weight, K_F64);
    for (int64_t i = 0; i < rt_numel(in); i++) {
        dx[i] = x[i] > 0 ? g[i] : w[i] * g[i];
        if (dw != NULL)
            dw[i] = x[i] > 0 ? 0 : x[i] * g[i];
    }
    plain_done(&s, by_self, dx, K_F64);
    plain_done(&s, by_weight, dw, K_F64);
    return true;
}

size_t scratch_prelu_backward(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(arg_tensor(c, 1)), 3, 8) + 3 * RT_ALIGN);
}
