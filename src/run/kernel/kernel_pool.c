/* Pooling of images over the last two dimensions, and batch norm. */
#include <math.h>

#include "run/kernel/pool.h"
#include "run/kernel/rows.h"

struct pool {
    int64_t planes, h, w, out_h, out_w;
    int64_t window[2], stride[2], padding[2], dilation[2];
};

/* Numbers for both dimensions, at least `least`; false if they are none. */
static bool take_pair(int64_t *to, const struct rt_value *v, const int64_t *otherwise,
                      int64_t least)
{
    if (v->kind == RT_LIST && v->n > 2)
        return false;
    for (uint32_t d = 0; d < 2; d++) {
        to[d] = v->kind == RT_INT                ? v->i
                : v->kind == RT_LIST && v->n > 0 ? v->item[d < v->n ? d : v->n - 1].i
                                                 : otherwise[d];
        if (to[d] < least || to[d] > INT32_MAX)
            return false;
    }
    return true;
}

/* Is there a plane of results for each plane, and no window that begins beyond the padding? */
static bool is_pooled(const struct pool *p, const struct rt_tensor *in, const struct rt_tensor *out)
{
    int64_t size[] = {p->h, p->w}, result[] = {p->out_h, p->out_w};

    for (int d = 0; d < in->n - 2; d++)
        if (in->size[d] != out->size[d])
            return false;
    for (int d = 0; d < 2; d++) {
        int64_t room = size[d] + 2 * p->padding[d] - p->dilation[d] * (p->window[d] - 1) - 1;

        if (size[d] > INT32_MAX || size[d] == 0 || p->padding[d] > p->window[d] / 2 ||
            room + p->stride[d] - 1 < 0 || /* rounded up: a part of a window will do */
            result[d] - 1 > (size[d] + p->padding[d] - 1) / p->stride[d])
            return false;
    }
    return true;
}

/* first: the operand with the window; then stride, padding and, with dilation, that. */
static bool describe(struct rt_call *c, struct pool *p, const struct rt_tensor *in,
                     const struct rt_tensor *out, uint32_t first, bool dilation)
{
    static const int64_t ones[] = {1, 1}, zeros[] = {0, 0};

    if (in->n != out->n)
        return kernel_apart(c);
    *p = (struct pool){.planes = plain_count(in, 0, in->n - 2),
                       .h = in->size[in->n - 2],
                       .w = in->size[in->n - 1],
                       .out_h = out->size[out->n - 2],
                       .out_w = out->size[out->n - 1]};
    if (!take_pair(p->window, arg_at(c, first), ones, 1) ||
        !take_pair(p->stride, arg_at(c, first + 1), p->window, 1) ||
        !take_pair(p->padding, arg_at(c, first + 2), zeros, 0) ||
        !take_pair(p->dilation, arg_at(c, dilation ? first + 3 : UINT32_MAX), ones, 1))
        return kernel_error(c,
                            "no kernel pools windows like these: two dimensions, all at least 1");
    return rt_numel(out) == 0 || is_pooled(p, in, out) || kernel_apart(c);
}

/* The largest element of a window; its place in the plane, and in the window. */
static int64_t largest(const struct pool *p, const double *x, int64_t i, int64_t j, int64_t *offset)
{
    int64_t best = -1;

    for (int64_t a = 0; a < p->window[0]; a++)
        for (int64_t b = 0; b < p->window[1]; b++) {
            int64_t y = i * p->stride[0] - p->padding[0] + a * p->dilation[0];
            int64_t z = j * p->stride[1] - p->padding[1] + b * p->dilation[1];

            if (y < 0 || y >= p->h || z < 0 || z >= p->w)
                continue;
            double v = x[y * p->w + z];
            if (best < 0 || v > x[best] || isnan(v)) {
                best = y * p->w + z;
                *offset = a * p->window[1] + b;
            }
        }
    return best < 0 ? 0 : best;
}

/* Results: values, and places (int64) or offsets in the window (int8). */
static bool max_pool(struct rt_call *c, bool offsets)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct pool p;

    if (kind_of(in->dtype) != K_F32 && kind_of(in->dtype) != K_F64)
        return kernel_error(c, "no kernel pools integers");
    if (!describe(c, &p, in, c->out, 1, true) || !kernel_same(c, &c->out[1], c->out))
        return false;
    const double *x = plain_in(&s, in, K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64);
    int64_t *place = plain_out(&s, &c->out[1], K_I64), at = 0;

    for (int64_t plane = 0; plane < p.planes; plane++, x += p.h * p.w)
        for (int64_t i = 0; i < p.out_h; i++)
            for (int64_t j = 0; j < p.out_w; j++, at++) {
                int64_t offset = 0, best = largest(&p, x, i, j, &offset);

                y[at] = x[best];
                place[at] = offsets ? offset : best;
            }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, &c->out[1], place, K_I64);
    return true;
}

/* A window of three numbers. */
static bool is_volume(const struct rt_call *c)
{
    return arg_at(c, 1)->kind == RT_LIST && arg_at(c, 1)->n == 3;
}

bool kernel_max_pool(struct rt_call *c)
{
    return max_pool(c, false);
}

bool kernel_max_pool_offsets(struct rt_call *c)
{
    return is_volume(c) ? pool3_max_offsets(c) : max_pool(c, true);
}

/* (offsets, kernel_size, input_size, stride, padding, dilation): places in the plane */
bool kernel_pool_indices(struct rt_call *c)
{
    static const int64_t ones[] = {1, 1};
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t window[2], size[2], stride[2], padding[2], dilation[2];

    if (is_volume(c))
        return pool3_indices(c);
    if (!take_pair(window, arg_at(c, 1), ones, 1) || !take_pair(size, arg_at(c, 2), ones, 0) ||
        !take_pair(stride, arg_at(c, 3), window, 1) || !take_pair(padding, arg_at(c, 4), ones, 0) ||
        !take_pair(dilation, arg_at(c, 5), ones, 1) || kind_of(in->dtype) != K_I64)
        return kernel_error(c,
                            "no kernel pools windows like these: two dimensions, all at least 1");
    if (!kernel_same(c, c->out, in))
        return false;
    const int64_t *offset = plain_in(&s, in, K_I64);
    int64_t *to = plain_out(&s, c->out, K_I64), h = in->size[in->n - 2], w = in->size[in->n - 1];
    for (int64_t i = 0; i < rt_numel(in); i++) {
        int64_t row = i / w % h, col = i % w;
        int64_t at = (int32_t)offset[i]; /* anything else is undefined, and stays small */
        int64_t y = row * stride[0] - padding[0] + at / window[1] * dilation[0];
        int64_t x = col * stride[1] - padding[1] + at % window[1] * dilation[1];

        to[i] = (int64_t)((uint64_t)y * (uint64_t)size[1] + (uint64_t)x);
    }
    plain_done(&s, c->out, to, K_I64);
    return true;
}

bool pool_give_back(struct rt_call *c, const struct rt_tensor *grad, const struct rt_tensor *places)
{
    struct plain s = plain_begin(c);
    const double *g = plain_in(&s, grad, K_F64);
    const int64_t *place = plain_in(&s, places, K_I64);
    double *dx = plain_out(&s, c->out, K_F64);
    int64_t plane = c->out->size[c->out->n - 2] * c->out->size[c->out->n - 1],
            each = grad->size[grad->n - 2] * grad->size[grad->n - 1];

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    for (int64_t i = 0; i < rt_numel(grad); i++) {
        if (place[i] < 0 || place[i] >= plane)
            return kernel_error(c, "index %lld is out of range for %lld pixels",
                                (long long)place[i], (long long)plane);
        dx[i / each * plane + place[i]] += g[i];
    }
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

/* (grad, self, kernel, stride, padding, dilation, ceil_mode, indices) */
bool kernel_max_pool_backward(struct rt_call *c)
{
    const struct rt_tensor *grad = arg_tensor(c, 0), *self = arg_tensor(c, 1);

    if (grad->n != self->n ||
        plain_count(grad, 0, grad->n - 2) != plain_count(self, 0, self->n - 2))
        return kernel_apart(c);
    if (!kernel_same(c, c->out, self) || !kernel_same(c, arg_tensor(c, 7), grad))
        return false;
    return pool_give_back(c, grad, arg_tensor(c, 7));
}

PLAIN_SCRATCH(max_pool)
PLAIN_SCRATCH(max_pool_offsets)
PLAIN_SCRATCH(pool_indices)
PLAIN_SCRATCH(max_pool_backward)

/* ---- averages: (self, kernel, stride, padding, ceil_mode, count_include_pad, divisor) ---- */

static void average(const struct rt_call *c, const struct pool *p, double *x, double *y,
                    uint32_t flags, bool back)
{
    bool include = arg_bool(c, flags, true);
    int64_t divisor = arg_int(c, flags + 1, 0);

    for (int64_t plane = 0; plane < p->planes; plane++, x += p->h * p->w)
        for (int64_t i = 0; i < p->out_h; i++)
            for (int64_t j = 0; j < p->out_w; j++, y++) {
                int64_t a = i * p->stride[0] - p->padding[0], b = j * p->stride[1] - p->padding[1];
                int64_t a_end = a + p->window[0] < p->h + p->padding[0] ? a + p->window[0]
                                                                        : p->h + p->padding[0];
                int64_t b_end = b + p->window[1] < p->w + p->padding[1] ? b + p->window[1]
                                                                        : p->w + p->padding[1];
                int64_t whole = (a_end - a) * (b_end - b);
                double sum = 0;

                a = a < 0 ? 0 : a;
                b = b < 0 ? 0 : b;
                a_end = a_end > p->h ? p->h : a_end;
                b_end = b_end > p->w ? p->w : b_end;
                int64_t by = divisor != 0 ? divisor : include ? whole : (a_end - a) * (b_end - b);
                for (int64_t r = a; r < a_end; r++)
                    for (int64_t k = b; k < b_end; k++) {
                        if (back)
                            x[r * p->w + k] += *y / (double)by;
                        else
                            sum += x[r * p->w + k];
                    }
                if (!back)
                    *y = a < a_end && b < b_end ? sum / (double)by : 0;
            }
}

bool kernel_avg_pool(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct pool p;

    if (!describe(c, &p, arg_tensor(c, 0), c->out, 1, false))
        return false;
    double *x = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *y = plain_out(&s, c->out, K_F64);

    average(c, &p, x, y, 5, false);
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* (grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor) */
bool kernel_avg_pool_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct pool p;

    if (!describe(c, &p, arg_tensor(c, 1), arg_tensor(c, 0), 2, false) ||
        !kernel_same(c, c->out, arg_tensor(c, 1)))
        return false;
    double *g = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    average(c, &p, dx, g, 6, true);
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

PLAIN_SCRATCH(avg_pool)
PLAIN_SCRATCH(avg_pool_backward)

/* ---- batch norm ---- */

static struct batch_norm shape_of(const struct rt_tensor *in)
{
    return (struct batch_norm){
        .outer = in->size[0], .channels = in->size[1], .inner = plain_count(in, 2, in->n)};
}

/* Is operand i, unless it is absent, as long as there are channels? */
static bool has_channels(struct rt_call *c, int64_t channels, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++)
        if (!kernel_holds(c, arg_tensor(c, i), channels))
            return false;
    return true;
}

/* The same for what is saved, if it is, and for running statistics that are results. */
static bool has_results(struct rt_call *c, int64_t channels, bool functional)
{
    for (uint32_t i = 1; i < 3; i++)
        if (out_at(c, i) != NULL && rt_numel(out_at(c, i)) > 0 &&
            !kernel_holds(c, out_at(c, i), channels))
            return false;
    for (uint32_t i = 3; functional && i < 5; i++)
        if (out_at(c, i) == NULL || !kernel_holds(c, out_at(c, i), channels))
            return kernel_apart(c);
    return true;
}

/* The running statistics are operands that are written; or results, if there are five; or there are
 * none. */
static bool batch_norm(struct rt_call *c, bool stats, bool training, double momentum, double eps)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    enum kind k = plain_float(in);
    struct batch_norm o = shape_of(in);
    bool functional = c->n_out >= 5;
    const struct rt_tensor *stat_in[2] = {stats ? arg_tensor(c, 3) : NULL,
                                          stats ? arg_tensor(c, 4) : NULL};
    const struct rt_tensor *stat[2];
    void *running[2];

    if (!kernel_same(c, c->out, in) || !has_channels(c, o.channels, 1, stats ? 4 : 2) ||
        !has_results(c, o.channels, functional))
        return false;
    o.training = training;
    o.momentum = momentum;
    o.eps = eps;
    for (int i = 0; i < 2; i++) {
        stat[i] = functional ? &c->out[3 + i] : stat_in[i];
        if (functional && stat_in[i] != NULL && !copy_tensor(c, stat[i], stat_in[i]))
            return false;
        running[i] = (void *)(uintptr_t)plain_in(&s, stat[i], k);
    }
    if (!training && (running[0] == NULL || running[1] == NULL))
        return kernel_error(c, "batch norm without statistics");
    const void *x = plain_in(&s, in, k), *w = plain_in(&s, arg_tensor(c, 1), k),
               *b = plain_in(&s, arg_tensor(c, 2), k);
    struct rt_tensor *saved[2] = {out_at(c, 1), out_at(c, 2)};
    void *y = plain_out(&s, c->out, k), *save[2];
    for (int i = 0; i < 2; i++)
        save[i] = saved[i] != NULL && rt_numel(saved[i]) > 0 ? plain_out(&s, saved[i], k) : NULL;
    rows_batch_norm(k, &o, y, x, w, b, running[0], running[1], save[0], save[1]);
    plain_done(&s, c->out, y, k);
    for (int i = 0; i < 2; i++) {
        if (save[i] != NULL)
            plain_done(&s, saved[i], save[i], k);
        if (training && running[i] != NULL)
            plain_done(&s, stat[i], running[i], k);
    }
    return true;
}

/* (input, weight, bias, running_mean, running_var, training, momentum, eps), or without the two */
bool kernel_batch_norm(struct rt_call *c)
{
    bool stats = arg_at(c, 3)->kind != RT_BOOL;
    uint32_t at = stats ? 5 : 3;

    return batch_norm(c, stats, arg_bool(c, at, false), arg_float(c, at + 1, 0.1),
                      arg_float(c, at + 2, 1e-5));
}

/* (input, weight, bias, running_mean, running_var, momentum, eps) */
bool kernel_batch_norm_eval(struct rt_call *c)
{
    return batch_norm(c, true, false, arg_float(c, 5, 0.1), arg_float(c, 6, 1e-5));
}

/* (grad, input, weight, running_mean, running_var, save_mean, save_invstd, train, eps, mask) */
bool kernel_batch_norm_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 1);
    enum kind k = plain_float(in);
    struct batch_norm o = shape_of(in);

    if (!kernel_same(c, arg_tensor(c, 0), in) || !has_channels(c, o.channels, 2, 5) ||
        !kernel_same(c, out_at(c, 0), in) || !kernel_holds(c, out_at(c, 1), o.channels) ||
        !kernel_holds(c, out_at(c, 2), o.channels))
        return false;
    const void *g = plain_in(&s, arg_tensor(c, 0), k), *x = plain_in(&s, in, k),
               *w = plain_in(&s, arg_tensor(c, 2), k);
    struct rt_tensor *out[3] = {out_at(c, 0), out_at(c, 1), out_at(c, 2)};
    void *d[3];
    o.training = arg_bool(c, 7, false);
    const void *mean = plain_in(&s, arg_tensor(c, o.training ? 5 : 3), k);
    void *rstd = (void *)(uintptr_t)plain_in(&s, arg_tensor(c, o.training ? 6 : 4), k);
    if (mean == NULL || rstd == NULL)
        return kernel_error(c, "batch norm backward without statistics");
    if (!o.training) { /* from the variance, in a copy */
        char *copy = plain_room(&s, (size_t)o.channels * kind_bytes[k]);

        for (int64_t i = 0; i < o.channels; i++)
            if (k == K_F32)
                ((float *)copy)[i] = (float)(1 /
                                             sqrt((double)((float *)rstd)[i] + arg_float(c, 8, 0)));
            else
                ((double *)copy)[i] = 1 / sqrt(((double *)rstd)[i] + arg_float(c, 8, 0));
        rstd = copy;
    }
    for (int i = 0; i < 3; i++)
        d[i] = plain_out(&s, out[i], k);
    rows_batch_norm_backward(k, &o, d[0], d[1], d[2], g, x, w, mean, rstd);
    for (int i = 0; i < 3; i++)
        plain_done(&s, out[i], d[i], k);
    return true;
}

PLAIN_SCRATCH(batch_norm)
PLAIN_SCRATCH(batch_norm_eval)

size_t scratch_batch_norm_backward(const struct rt_call *c)
{
    return plain_scratch(c, (size_t)arg_tensor(c, 1)->size[1] * 8);
}
