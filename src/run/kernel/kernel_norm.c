/* Softmax, layer norm, RMS norm, negative log likelihood. */
#include <math.h>

#include "run/kernel/rows.h"

/* Every line of a dimension of a plain array: [outer, n, step]. */
static void shape_of(const struct rt_tensor *t, int dim, int64_t *outer, int64_t *n, int64_t *step)
{
    *outer = plain_count(t, 0, dim);
    *n = t->n > 0 ? t->size[dim] : 1;
    *step = plain_count(t, dim + 1, t->n);
}

/* Lines of y that came from a line of -inf alone are 0. */
static void clear_lines(char *y, const char *x, enum kind k, int64_t n, int64_t step)
{
    for (int64_t i = 0; i < n; i++) {
        double v = k == K_F32 ? (double)((const float *)x)[i * step]
                              : ((const double *)x)[i * step];

        if (!isinf(v) || v > 0)
            return;
    }
    for (int64_t i = 0; i < n; i++)
        memset(y + i * step * kind_bytes[k], 0, kind_bytes[k]);
}

/* (self, dim, half_to_float or dtype) */
static bool softmax(struct rt_call *c, bool logarithm, bool safe)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    enum kind k = plain_float(c->out);
    int64_t outer, n, step;
    int dim;

    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim) || !kernel_same(c, c->out, in))
        return false;
    shape_of(in, dim, &outer, &n, &step);
    const char *x = plain_in(&s, in, k);
    char *y = plain_out(&s, c->out, k);
    for (int64_t o = 0; n > 0 && o < outer; o++)
        for (int64_t i = 0; i < step; i++) {
            int64_t at = (o * n * step + i) * kind_bytes[k];

            rows_softmax(k, y + at, x + at, n, step, logarithm);
            if (safe)
                clear_lines(y + at, x + at, k, n, step);
        }
    plain_done(&s, c->out, y, k);
    return true;
}

bool kernel_softmax(struct rt_call *c)
{
    return softmax(c, false, false);
}

bool kernel_safe_softmax(struct rt_call *c)
{
    return softmax(c, false, true);
}

bool kernel_log_softmax(struct rt_call *c)
{
    return softmax(c, true, false);
}

/* (grad, output, dim, input_dtype) */
static bool softmax_backward(struct rt_call *c, bool logarithm)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0);
    enum kind k = plain_float(grad);
    int64_t outer, n, step;
    int dim;

    if (!kernel_dim(c, grad, arg_int(c, 2, 0), &dim) || !kernel_same(c, c->out, grad) ||
        !kernel_same(c, arg_tensor(c, 1), grad))
        return false;
    shape_of(grad, dim, &outer, &n, &step);
    const char *g = plain_in(&s, grad, k), *y = plain_in(&s, arg_tensor(c, 1), k);
    char *dx = plain_out(&s, c->out, k);
    for (int64_t o = 0; n > 0 && o < outer; o++)
        for (int64_t i = 0; i < step; i++) {
            int64_t at = (o * n * step + i) * kind_bytes[k];

            rows_softmax_backward(k, dx + at, g + at, y + at, n, step, logarithm);
        }
    plain_done(&s, c->out, dx, k);
    return true;
}

bool kernel_softmax_backward(struct rt_call *c)
{
    return softmax_backward(c, false);
}

bool kernel_log_softmax_backward(struct rt_call *c)
{
    return softmax_backward(c, true);
}

/* prepare_softmax_online(x, dim): the largest, and the sum of exponentials, with the dimension
 * kept */
bool kernel_softmax_online(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t outer, n, step;
    int dim;

    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim))
        return false;
    shape_of(in, dim, &outer, &n, &step);
    if (!kernel_holds(c, &c->out[0], outer * step) || !kernel_holds(c, &c->out[1], outer * step))
        return false;
    const double *x = plain_in(&s, in, K_F64);
    double *max = plain_out(&s, &c->out[0], K_F64), *sum = plain_out(&s, &c->out[1], K_F64);
    for (int64_t o = 0; o < outer; o++)
        for (int64_t i = 0; i < step; i++) {
            const double *line = x + o * n * step + i;
            double m = -(double)INFINITY, total = 0;

            for (int64_t j = 0; j < n; j++)
                m = isnan(m) || line[j * step] <= m ? m : line[j * step];
            for (int64_t j = 0; j < n; j++)
                total += exp(line[j * step] - m);
            max[o * step + i] = m;
            sum[o * step + i] = total;
        }
    plain_done(&s, &c->out[0], max, K_F64);
    plain_done(&s, &c->out[1], sum, K_F64);
    return true;
}

PLAIN_SCRATCH(softmax)
PLAIN_SCRATCH(safe_softmax)
PLAIN_SCRATCH(log_softmax)
PLAIN_SCRATCH(softmax_backward)
PLAIN_SCRATCH(log_softmax_backward)
PLAIN_SCRATCH(softmax_online)

/* ---- layer norm, RMS norm ---- */

static bool width_of(struct rt_call *c, uint32_t i, int64_t *n)
{
    return arg_at(c, i)->kind == RT_LIST ? kernel_product(c, arg_at(c, i), n) : kernel_apart(c);
}

/* Rows without elements: torch's mean is 0, its rstd is not a number. */
static bool norm_of_nothing(struct rt_call *c, const struct rt_tensor *mean,
                            const struct rt_tensor *rstd)
{
    struct rt_value zero = {.kind = RT_FLOAT}, nan = {.kind = RT_FLOAT, .f = (double)NAN};

    return (mean == NULL || fill_tensor(c, mean, &zero)) &&
           (rstd == NULL || fill_tensor(c, rstd, &nan));
}

/* out, mean and rstd of different dtypes: all of kind k here. */
static bool norm(struct rt_call *c, uint32_t bias, uint32_t eps_at, bool rms)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    enum kind k = plain_float(in);
    struct rt_tensor *mean_out = rms ? NULL : out_at(c, 1), *rstd_out = out_at(c, rms ? 1 : 2);
    int64_t n;

    if (!width_of(c, 1, &n))
        return false;
    if (n == 0)
        return (kernel_holds(c, in, 0) && kernel_holds(c, c->out, 0)) &&
               norm_of_nothing(c, mean_out, rstd_out);
    int64_t rows = rt_numel(in) / n;
    if (!kernel_holds(c, in, rows * n) || !kernel_holds(c, arg_tensor(c, 2), n) ||
        (!rms && !kernel_holds(c, arg_tensor(c, bias), n)) || !kernel_holds(c, c->out, rows * n) ||
        !kernel_holds(c, mean_out, rows) || !kernel_holds(c, rstd_out, rows))
        return false;
    double eps = arg_at(c, eps_at)->kind == RT_NONE ? (in->dtype == DTYPE_F64 ? 0x1p-52 : 0x1p-23)
                                                    : arg_float(c, eps_at, 0);

    const void *x = plain_in(&s, in, k), *w = plain_in(&s, arg_tensor(c, 2), k),
               *b = rms ? NULL : plain_in(&s, arg_tensor(c, bias), k);
    void *y = plain_out(&s, c->out, k), *mean = plain_out(&s, mean_out, k),
         *rstd = plain_out(&s, rstd_out, k);
    rows_norm(k, y, mean, rstd, x, w, b, rows, n, eps, rms);
    plain_done(&s, c->out, y, k);
    plain_done(&s, mean_out, mean, k);
    plain_done(&s, rstd_out, rstd, k);
    return true;
}

/* (input, shape, weight, bias, eps) */
bool kernel_layer_norm(struct rt_call *c)
{
    return norm(c, 3, 4, false);
}

/* (input, shape, weight, eps) */
bool kernel_rms_norm(struct rt_call *c)
{
    return norm(c, 0, 3, true);
}

/* (grad, input, shape, mean, rstd, weight, bias, mask), or without mean and bias */
static bool norm_backward(struct rt_call *c, bool rms)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 1);
    enum kind k = plain_float(in);
    int64_t n;

    if (!width_of(c, 2, &n))
        return false;
    int64_t rows = n > 0 ? rt_numel(in) / n : 0;
    const void *g = plain_in(&s, arg_tensor(c, 0), k), *x = plain_in(&s, in, k),
               *mean = rms ? NULL : plain_in(&s, arg_tensor(c, 3), k),
               *rstd = plain_in(&s, arg_tensor(c, rms ? 3 : 4), k),
               *w = plain_in(&s, arg_tensor(c, rms ? 4 : 5), k);
    struct rt_tensor *out[3] = {out_at(c, 0), out_at(c, 1), rms ? NULL : out_at(c, 2)};
    void *d[3];
    if (!kernel_holds(c, in, rows * n) || !kernel_holds(c, arg_tensor(c, 0), rows * n) ||
        (!rms && !kernel_holds(c, arg_tensor(c, 3), rows)) ||
        !kernel_holds(c, arg_tensor(c, rms ? 3 : 4), rows) ||
        !kernel_holds(c, arg_tensor(c, rms ? 4 : 5), n) || !kernel_holds(c, out[0], rows * n) ||
        !kernel_holds(c, out[1], n) || !kernel_holds(c, out[2], n))
        return false;
    for (int i = 0; i < 3; i++)
        d[i] = plain_out(&s, out[i], k);
    rows_norm_backward(k, d[0], d[1], d[2], g, x, mean, rstd, w, rows, n, rms);
    for (int i = 0; i < 3; i++)
        plain_done(&s, out[i], d[i], k);
    return true;
}

bool kernel_layer_norm_backward(struct rt_call *c)
{
    return norm_backward(c, false);
}

bool kernel_rms_norm_backward(struct rt_call *c)
{
    return norm_backward(c, true);
}

PLAIN_SCRATCH(layer_norm)
PLAIN_SCRATCH(rms_norm)
PLAIN_SCRATCH(layer_norm_backward)
PLAIN_SCRATCH(rms_norm_backward)

/* ---- negative log likelihood: [n, classes, …] or [classes] ---- */

enum { MEAN = 1, SUM = 2 };

struct targets {
    int64_t n, classes, inner; /* targets; elements from class to class */
};

static struct targets targets_of(const struct rt_tensor *self)
{
    int64_t inner = self->n > 2 ? plain_count(self, 2, self->n) : 1;

    return (struct targets){(self->n > 1 ? self->size[0] : 1) * inner,
                            self->n > 0 ? self->size[self->n > 1] : 1, inner};
}

/* Where the score of a target is. */
static int64_t score_at(const struct targets *t, int64_t i, int64_t class)
{
    return (i / t->inner * t->classes + class) * t->inner + i % t->inner;
}

/* (self, target, weight, reduction, ignore_index) -> out, total_weight */
bool kernel_nll_loss(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *self = arg_tensor(c, 0);
    const double *x = plain_in(&s, self, K_F64), *w = plain_in(&s, arg_tensor(c, 2), K_F64);
    const int64_t *target = plain_in(&s, arg_tensor(c, 1), K_I64);
    struct targets t = targets_of(self);
    int64_t how = arg_int(c, 3, MEAN), ignored = arg_int(c, 4, -100);
    bool each = how != MEAN && how != SUM && self->n > 1;
    if (!kernel_holds(c, arg_tensor(c, 1), t.n) || !kernel_holds(c, arg_tensor(c, 2), t.classes) ||
        !kernel_holds(c, c->out, each ? t.n : 1))
        return false;
    double *out = plain_out(&s, &c->out[0], K_F64), sum = 0, total = 0;

    for (int64_t i = 0; i < t.n; i++) {
        double loss = 0, weight = 0;

        if (target[i] != ignored) {
            if (target[i] < 0 || target[i] >= t.classes)
                return kernel_error(c, "target %lld is out of range for %lld classes",
                                    (long long)target[i], (long long)t.classes);
            weight = w != NULL ? w[target[i]] : 1;
            loss = -x[score_at(&t, i, target[i])] * weight;
        }
        sum += loss;
        total += weight;
        if (each)
            out[i] = loss;
    }
    if (!each)
        out[0] = how == MEAN ? sum / total : sum;
    plain_done(&s, &c->out[0], out, K_F64);
    struct rt_tensor one = {.data = &total, .dtype = DTYPE_F64};
    if (each)
        total = 0;
    return copy_tensor(c, &c->out[1], &one);
}

/* (grad, self, target, weight, reduction, ignore_index, total_weight) */
bool kernel_nll_loss_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *self = arg_tensor(c, 1);
    const double *g = plain_in(&s, arg_tensor(c, 0), K_F64),
                 *w = plain_in(&s, arg_tensor(c, 3), K_F64),
                 *total = plain_in(&s, arg_tensor(c, 6), K_F64);
    const int64_t *target = plain_in(&s, arg_tensor(c, 2), K_I64);
    struct targets t = targets_of(self);
    int64_t how = arg_int(c, 4, MEAN), ignored = arg_int(c, 5, -100);
    bool each = how != MEAN && how != SUM && self->n > 1;
    if (!kernel_holds(c, arg_tensor(c, 2), t.n) || !kernel_holds(c, arg_tensor(c, 3), t.classes) ||
        !kernel_holds(c, arg_tensor(c, 0), each ? t.n : 1) || !kernel_same(c, c->out, self) ||
        !kernel_holds(c, arg_tensor(c, 6), 1))
        return false;
    double *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)(t.n * t.classes) * sizeof(*dx));
    for (int64_t i = 0; i < t.n; i++) {
        if (target[i] == ignored)
            continue;
        if (target[i] < 0 || target[i] >= t.classes)
            return kernel_error(c, "target %lld is out of range for %lld classes",
                                (long long)target[i], (long long)t.classes);
        double d = -g[each ? i : 0] * (w != NULL ? w[target[i]] : 1);
        dx[score_at(&t, i, target[i])] = how == MEAN ? d / *total : d;
    }
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

PLAIN_SCRATCH(nll_loss)
PLAIN_SCRATCH(nll_loss_backward)
