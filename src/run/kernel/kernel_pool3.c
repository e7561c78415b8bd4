/* Pooling over the last three dimensions. */
#include <math.h>

#include "run/kernel/pool.h"

enum { D3 = 3 };

struct pool3 {
    int64_t planes, in[D3], out[D3], window[D3], stride[D3], padding[D3], dilation[D3];
};

/* The part of a window that is in the volume, in one dimension: every step-th from `begin` on. */
struct reach {
    int64_t begin, end, step;
};

/* Numbers for the three dimensions, at least `least`; false if they are none. */
static bool take_three(int64_t *to, const struct rt_value *v, const int64_t *otherwise,
                       int64_t least)
{
    if (v->kind == RT_LIST && v->n > D3)
        return false;
    for (uint32_t d = 0; d < D3; d++) {
        to[d] = v->kind == RT_INT                ? v->i
                : v->kind == RT_LIST && v->n > 0 ? v->item[d < v->n ? d : v->n - 1].i
                                                 : otherwise[d];
        if (to[d] < least || to[d] > INT32_MAX)
            return false;
    }
    return true;
}

/* Is there a volume of results for each volume, and no window that begins beyond the padding? */
static bool is_pooled(const struct pool3 *p, const struct rt_tensor *in,
                      const struct rt_tensor *out)
{
    for (int d = 0; d < in->n - D3; d++)
        if (in->size[d] != out->size[d])
            return false;
    for (int d = 0; d < D3; d++) {
        int64_t room = p->in[d] + 2 * p->padding[d] - p->dilation[d] * (p->window[d] - 1) - 1;

        if (p->in[d] > INT32_MAX || p->in[d] == 0 || p->padding[d] > p->window[d] / 2 ||
            room + p->stride[d] - 1 < 0 ||
            p->out[d] - 1 > (p->in[d] + p->padding[d] - 1) / p->stride[d])
            return false;
    }
    return true;
}

static bool volumes(struct rt_call *c, struct pool3 *p, const struct rt_tensor *in,
                    const struct rt_tensor *out)
{
    *p = (struct pool3){0};
    if (in->n != out->n || in->n < D3)
        return kernel_apart(c);
    p->planes = plain_count(in, 0, in->n - D3);
    for (int d = 0; d < D3; d++) {
        p->in[d] = in->size[in->n - D3 + d];
        p->out[d] = out->size[out->n - D3 + d];
    }
    return true;
}

/* first: the operand with the window; then stride, padding and, with dilation, that. */
static bool describe(struct rt_call *c, struct pool3 *p, const struct rt_tensor *in,
                     const struct rt_tensor *out, uint32_t first, bool dilation)
{
    static const int64_t ones[] = {1, 1, 1}, zeros[] = {0, 0, 0};

    if (!volumes(c, p, in, out))
        return false;
    if (!take_three(p->window, arg_at(c, first), ones, 1) ||
        !take_three(p->stride, arg_at(c, first + 1), p->window, 1) ||
        !take_three(p->padding, arg_at(c, first + 2), zeros, 0) ||
        !take_three(p->dilation, arg_at(c, dilation ? first + 3 : UINT32_MAX), ones, 1))
        return kernel_error(c, "no kernel pools windows like these: three numbers, at least 1");
    return rt_numel(out) == 0 || is_pooled(p, in, out) || kernel_apart(c);
}

static struct reach reach_of(const struct pool3 *p, int d, int64_t i)
{
    int64_t begin = i * p->stride[d] - p->padding[d], step = p->dilation[d];
    struct reach r = {begin, begin + (p->window[d] - 1) * step + 1, step};

    if (r.begin < 0)
        r.begin += (-r.begin + step - 1) / step * step;
    r.end = r.end > p->in[d] ? p->in[d] : r.end;
    return r;
}

/* Index i of all results into one of each dimension. */
static void place_of(const int64_t *size, int64_t i, int64_t *at)
{
    for (int d = D3 - 1; d >= 0; d--) {
        at[d] = i % size[d];
        i /= size[d];
    }
}

static int64_t largest(const struct pool3 *p, const double *x, const struct reach *r)
{
    int64_t best = -1;

    for (int64_t i = r[0].begin; i < r[0].end; i += r[0].step)
        for (int64_t j = r[1].begin; j < r[1].end; j += r[1].step)
            for (int64_t k = r[2].begin; k < r[2].end; k += r[2].step) {
                int64_t at = (i * p->in[1] + j) * p->in[2] + k;

                if (best < 0 || x[at] > x[best] || isnan(x[at]))
                    best = at;
            }
    return best < 0 ? 0 : best;
}

/* The place of an element, as the number of one in the window of the result at `at`. */
static int64_t offset_of(const struct pool3 *p, const int64_t *at, int64_t place)
{
    int64_t in[D3], offset = 0;

    place_of(p->in, place, in);
    for (int d = 0; d < D3; d++)
        offset = offset * p->window[d] +
                 (in[d] - at[d] * p->stride[d] + p->padding[d]) / p->dilation[d];
    return offset;
}

/* Values, and their places in the volume or in their windows. */
static bool max_pool(struct rt_call *c, bool offsets)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct pool3 p;

    if (kind_of(in->dtype) != K_F32 && kind_of(in->dtype) != K_F64)
        return kernel_error(c, "no kernel pools %s", dtype_at(in->dtype)->name);
    if (!describe(c, &p, in, c->out, 1, true) || !kernel_same(c, &c->out[1], c->out))
        return false;
    const double *x = plain_in(&s, in, K_F64);
    double *y = plain_out(&s, &c->out[0], K_F64);
    int64_t *place = plain_out(&s, &c->out[1], K_I64), each = p.out[0] * p.out[1] * p.out[2];

    for (int64_t i = 0; i < p.planes * each; i++) {
        const double *plane = x + i / each * (p.in[0] * p.in[1] * p.in[2]);
        struct reach r[D3];
        int64_t at[D3];

        place_of(p.out, i % each, at);
        for (int d = 0; d < D3; d++)
            r[d] = reach_of(&p, d, at[d]);
        int64_t best = largest(&p, plane, r);
        y[i] = plane[best];
        place[i] = offsets ? offset_of(&p, at, best) : best;
    }
    plain_done(&s, &c->out[0], y, K_F64);
    plain_done(&s, &c->out[1], place, K_I64);
    return true;
}

/* (self, kernel, stride, padding, dilation, ceil_mode) */
bool kernel_max_pool3(struct rt_call *c)
{
    return max_pool(c, false);
}

bool pool3_max_offsets(struct rt_call *c)
{
    return max_pool(c, true);
}

/* (offsets, kernel_size, input_size, stride, padding, dilation) */
bool pool3_indices(struct rt_call *c)
{
    static const int64_t ones[] = {1, 1, 1};
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t size[D3];
    struct pool3 p;

    if (!volumes(c, &p, in, in) || !kernel_same(c, c->out, in))
        return false;
    if (!take_three(p.window, arg_at(c, 1), ones, 1) || !take_three(size, arg_at(c, 2), ones, 0) ||
        !take_three(p.stride, arg_at(c, 3), p.window, 1) ||
        !take_three(p.padding, arg_at(c, 4), ones, 0) ||
        !take_three(p.dilation, arg_at(c, 5), ones, 1) || kind_of(in->dtype) != K_I64)
        return kernel_error(c, "no kernel pools windows like these: three numbers, at least 1");
    const int64_t *offset = plain_in(&s, in, K_I64);
    int64_t *to = plain_out(&s, c->out, K_I64), each = p.out[0] * p.out[1] * p.out[2];
    for (int64_t i = 0; i < rt_numel(in); i++) {
        int64_t at[D3], in_window[D3];
        uint64_t place = 0;

        place_of(p.out, i % each, at);
        place_of(p.window, (int32_t)offset[i], in_window); /* others are undefined: small */
        for (int d = 0; d < D3; d++)
            place = place * (uint64_t)size[d] + (uint64_t)at[d] * (uint64_t)p.stride[d] -
                    (uint64_t)p.padding[d] + (uint64_t)in_window[d] * (uint64_t)p.dilation[d];
        to[i] = (int64_t)place;
    }
    plain_done(&s, c->out, to, K_I64);
    return true;
}

/* (grad, self, kernel, stride, padding, dilation, ceil_mode, indices) */
bool kernel_max_pool3_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0), *self = arg_tensor(c, 1),
                           *places = arg_tensor(c, 7);
    struct pool3 p;

    if (!volumes(c, &p, self, grad) || !kernel_same(c, c->out, self) ||
        !kernel_same(c, places, grad))
        return false;
    int64_t volume = p.in[0] * p.in[1] * p.in[2], each = p.out[0] * p.out[1] * p.out[2];
    if (plain_count(grad, 0, grad->n - D3) != p.planes)
        return kernel_apart(c);
    const double *g = plain_in(&s, grad, K_F64);
    const int64_t *place = plain_in(&s, places, K_I64);
    double *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    for (int64_t i = 0; i < rt_numel(grad); i++) {
        if (place[i] < 0 || place[i] >= volume)
            return kernel_error(c, "index %lld is out of range for %lld elements",
                                (long long)place[i], (long long)volume);
        dx[i / each * volume + place[i]] += g[i];
    }
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

/* Each result is the sum over its part of the volume by a number; or, backward, each element of
 * that part gets so much of it. */
static double average(const struct pool3 *p, double *x, const struct reach *r, double by,
                      const double *grad)
{
    double sum = 0;

    for (int64_t i = r[0].begin; i < r[0].end; i++)
        for (int64_t j = r[1].begin; j < r[1].end; j++)
            for (int64_t k = r[2].begin; k < r[2].end; k++) {
                double *at = &x[(i * p->in[1] + j) * p->in[2] + k];

                if (grad != NULL)
                    *at += *grad / by;
                else
                    sum += *at;
            }
    return by != 0 ? sum / by : 0;
}

/* flags: the operands count_include_pad and divisor_override. x, y: large and small volumes. */
static void averages(const struct rt_call *c, const struct pool3 *p, double *x, double *y,
                     uint32_t flags, bool back)
{
    bool include = arg_bool(c, flags, true);
    int64_t divisor = arg_int(c, flags + 1, 0), each = p->out[0] * p->out[1] * p->out[2];

    for (int64_t i = 0; i < p->planes * each; i++) {
        double inside = 1, whole = 1;
        struct reach r[D3];
        int64_t at[D3];

        place_of(p->out, i % each, at);
        for (int d = 0; d < D3; d++) {
            int64_t begin = at[d] * p->stride[d] - p->padding[d], end = begin + p->window[d],
                    limit = p->in[d] + p->padding[d];

            r[d] = reach_of(p, d, at[d]);
            inside *= (double)(r[d].end > r[d].begin ? r[d].end - r[d].begin : 0);
            whole *= (double)((end < limit ? end : limit) - begin);
        }
        double by = divisor != 0 ? (double)divisor : include ? whole : inside;
        double v = average(p, x + i / each * (p->in[0] * p->in[1] * p->in[2]), r, by,
                           back ? &y[i] : NULL);
        if (!back)
            y[i] = v;
    }
}

/* (self, kernel, stride, padding, ceil_mode, count_include_pad, divisor) */
bool kernel_avg_pool3(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct pool3 p;

    if (!describe(c, &p, arg_tensor(c, 0), c->out, 1, false))
        return false;
    double *x = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *y = plain_out(&s, c->out, K_F64);

    averages(c, &p, x, y, 5, false);
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* (grad, self, kernel, stride, padding, ceil_mode, count_include_pad, divisor) */
bool kernel_avg_pool3_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct pool3 p;

    if (!describe(c, &p, arg_tensor(c, 1), arg_tensor(c, 0), 2, false) ||
        !kernel_same(c, c->out, arg_tensor(c, 1)))
        return false;
    double *g = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    averages(c, &p, dx, g, 6, true);
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

/* Windows of such sizes that there are as many as results. */
static bool adaptive(struct rt_call *c, const struct rt_tensor *large,
                     const struct rt_tensor *small, double *x, double *y, bool back)
{
    struct pool3 p;

    if (!volumes(c, &p, large, small))
        return false;
    int64_t each = p.out[0] * p.out[1] * p.out[2], volume = p.in[0] * p.in[1] * p.in[2];
    for (int64_t i = 0; i < p.planes * each; i++) {
        struct reach r[D3];
        int64_t at[D3];
        double by = 1;

        place_of(p.out, i % each, at);
        for (int d = 0; d < D3; d++) {
            r[d] = (struct reach){at[d] * p.in[d] / p.out[d],
                                  ((at[d] + 1) * p.in[d] + p.out[d] - 1) / p.out[d], 1};
            by *= (double)(r[d].end - r[d].begin);
        }
        double v = average(&p, x + i / each * volume, r, by, back ? &y[i] : NULL);
        if (!back)
            y[i] = v;
    }
    return true;
}

static bool is_adaptive(struct rt_call *c, const struct rt_tensor *large,
                        const struct rt_tensor *small)
{
    int n = large->n;

    if (small->n != n || n < D3 || plain_count(small, 0, n - D3) != plain_count(large, 0, n - D3) ||
        (rt_numel(small) > 0 && rt_numel(large) == 0))
        return kernel_apart(c);
    for (int d = n - D3; d < n; d++)
        if (large->size[d] > INT32_MAX || small->size[d] > INT32_MAX)
            return kernel_apart(c);
    return true;
}

/* (self, output_size) */
bool kernel_adaptive_avg_pool3(struct rt_call *c)
{
    struct plain s = plain_begin(c);

    if (!is_adaptive(c, arg_tensor(c, 0), c->out))
        return false;
    double *x = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *y = plain_out(&s, c->out, K_F64);

    if (!adaptive(c, arg_tensor(c, 0), c->out, x, y, false))
        return false;
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* (grad, self) */
bool kernel_adaptive_avg_pool3_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);

    if (!is_adaptive(c, c->out, arg_tensor(c, 0)) || !kernel_same(c, arg_tensor(c, 1), c->out))
        return false;
    double *g = (double *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), K_F64),
           *dx = plain_out(&s, c->out, K_F64);

    memset(dx, 0, (size_t)rt_numel(c->out) * sizeof(*dx));
    if (!adaptive(c, c->out, arg_tensor(c, 0), dx, g, true))
        return false;
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

PLAIN_SCRATCH(max_pool3)
PLAIN_SCRATCH(max_pool3_backward)
PLAIN_SCRATCH(avg_pool3)
PLAIN_SCRATCH(avg_pool3_backward)
PLAIN_SCRATCH(adaptive_avg_pool3)
PLAIN_SCRATCH(adaptive_avg_pool3_backward)
