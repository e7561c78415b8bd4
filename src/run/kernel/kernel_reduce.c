/* Reductions over dimensions. */
#include <math.h>

#include "run/kernel/plain.h"
#include "run/kernel/reduction.h"

/* dims: the operand with the dimensions; 0 if there is none, and all are reduced. */
static bool run(struct rt_call *c, struct reduction r, uint32_t dims, int64_t *count)
{
    struct rt_call all = *c;

    r.in = arg_tensor(c, 0);
    r.out = out_at(c, 0);
    if (dims == 0)
        all.n_arg = 0;
    *count = reduction_dims(&all, r.in, dims, r.reduced);
    if (r.divide != 0)
        r.divide = *count > 0 ? (double)*count : NAN;
    const struct rt_value *list = arg_at(c, dims);
    if (r.kind == K_BOOL && dims != 0 && list->kind == RT_LIST && list->n == 0)
        memset(r.reduced, 0, sizeof(r.reduced)); /* any and all over no dimension */
    if (r.kind == K_END || kind_of(r.in->dtype) == K_END || hot_get()->row[r.op][r.kind] == NULL)
        return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                            dtype_at(r.kind >= K_C64 ? r.out->dtype : r.in->dtype)->name);
    reduction_run(&r);
    return true;
}

static bool by_list(const struct rt_call *c)
{
    const struct rt_value *v = arg_at(c, 1);

    return v->kind == RT_LIST || v->kind == RT_INT;
}

static bool simple(struct rt_call *c, enum reduce_op op, enum kind kind, bool mean)
{
    struct reduction r = {.op = op, .kind = kind, .divide = mean ? 1 : 0};
    int64_t count;

    return run(c, r, by_list(c) ? 1 : 0, &count);
}

static enum kind sum_kind(const struct rt_call *c)
{
    enum kind k = kind_of(c->out->dtype);

    return k == K_BOOL ? K_I64 : k;
}

bool kernel_sum(struct rt_call *c)
{
    return simple(c, REDUCE_SUM, sum_kind(c), false);
}

bool kernel_mean(struct rt_call *c)
{
    return simple(c, REDUCE_SUM, sum_kind(c), true);
}

bool kernel_prod(struct rt_call *c)
{
    return simple(c, REDUCE_PROD, sum_kind(c), false);
}

bool kernel_amax(struct rt_call *c)
{
    return simple(c, REDUCE_MAX, kind_of(arg_tensor(c, 0)->dtype), false);
}

bool kernel_amin(struct rt_call *c)
{
    return simple(c, REDUCE_MIN, kind_of(arg_tensor(c, 0)->dtype), false);
}

bool kernel_any(struct rt_call *c)
{
    return simple(c, REDUCE_MAX, K_BOOL, false);
}

bool kernel_all(struct rt_call *c)
{
    return simple(c, REDUCE_MIN, K_BOOL, false);
}

bool kernel_count_nonzero(struct rt_call *c)
{
    struct reduction r = {.op = REDUCE_SUM, .kind = K_F64, .map = MAP_NOT_ZERO};
    int64_t count;

    return run(c, r, by_list(c) ? 1 : 0, &count);
}

/* linalg_vector_norm(self, ord, dim, keepdim, dtype) */
bool kernel_vector_norm(struct rt_call *c)
{
    double p = arg_float(c, 1, 2);
    struct reduction r = {.op = REDUCE_SUM, .kind = plain_float(c->out)};
    int64_t count;

    if (p == 2)
        r.map = MAP_SQUARE, r.end = END_ROOT;
    else if (p == 1)
        r.map = MAP_ABS;
    else if (p == 0)
        r.map = MAP_NOT_ZERO;
    else if (isinf(p))
        r.map = MAP_ABS, r.op = p > 0 ? REDUCE_MAX : REDUCE_MIN;
    else
        r.map = MAP_POWER, r.end = END_POWER, r.power = p;
    if (kind_of(arg_tensor(c, 0)->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes norms of complex numbers");
    if (rt_numel(arg_tensor(c, 0)) == 0)
        r.op = REDUCE_SUM; /* 0 */
    return run(c, r, 2, &count);
}

/* ---- variance: the mean first, then the squares of deviations from it ---- */

static bool variance(struct rt_call *c, struct rt_tensor *var, struct rt_tensor *mean,
                     uint32_t dims, double correction, bool root)
{
    struct plain s = plain_begin(c);
    enum kind k = plain_float(var);
    struct rt_tensor wide = *var; /* the mean in the kind it is computed in, laid out like var */
    struct reduction r = {.op = REDUCE_SUM, .kind = k};
    int64_t extent = 1;

    if (kind_of(arg_tensor(c, 0)->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes the variance of complex numbers");
    for (int d = 0; d < var->n; d++)
        extent += (var->size[d] - 1) * var->stride[d];
    r.in = arg_tensor(c, 0);
    wide.dtype = k == K_F32 ? DTYPE_F32 : DTYPE_F64;
    wide.data = plain_room(&s, (size_t)(extent > 0 ? extent : 1) * kind_bytes[k]);
    r.out = &wide;
    r.divide = (double)reduction_dims(c, r.in, dims, r.reduced);
    double freedom = r.divide - correction;
    if (r.divide == 0)
        r.divide = NAN;
    reduction_run(&r);
    r.map = MAP_DEVIATION;
    r.mean = &wide;
    r.out = var;
    r.divide = freedom > 0 ? freedom : 0;
    if (freedom <= 0) /* 0 / 0, or more / 0 */
        r.divide = freedom + correction <= 1 ? NAN : 0x1p-1074;
    r.end = root ? END_ROOT : END_NONE;
    reduction_run(&r);
    return mean == NULL || copy_tensor(c, mean, &wide);
}

/* (self, dim, correction, keepdim) -> var, mean */
bool kernel_var_mean(struct rt_call *c)
{
    return variance(c, &c->out[0], &c->out[1], 1, arg_float(c, 2, 1), false);
}

bool kernel_var(struct rt_call *c)
{
    return variance(c, &c->out[0], NULL, 1, arg_float(c, 2, 1), false);
}

bool kernel_std(struct rt_call *c)
{
    return variance(c, &c->out[0], NULL, 1, arg_float(c, 2, 1), true);
}

bool kernel_std_mean(struct rt_call *c)
{
    return variance(c, &c->out[0], &c->out[1], 1, arg_float(c, 2, 1), true);
}

size_t scratch_var(const struct rt_call *c)
{
    return 4 * plain_scratch(c, 64);
}

size_t scratch_std(const struct rt_call *c)
{
    return scratch_var(c);
}

size_t scratch_std_mean(const struct rt_call *c)
{
    return scratch_var(c);
}

size_t scratch_var_mean(const struct rt_call *c)
{
    return scratch_var(c);
}

/* ---- the logarithm of a sum of exponentials, computed in double ---- */

/* (self, dim, keepdim): the largest, then the sum of what is left above it */
bool kernel_logsumexp(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t n = rt_numel(in), m = rt_numel(c->out), stride[RT_DIMS] = {0}, at[RT_DIMS] = {0};
    bool reduced[RT_DIMS] = {false};

    if (kind_of(in->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes logsumexp of complex numbers");
    reduction_dims(c, in, 1, reduced);
    const double *x = plain_in(&s, in, K_F64);
    double *most = plain_room(&s, (size_t)m * 8), *sum = plain_out(&s, c->out, K_F64);
    for (int64_t d = in->n - 1, step = 1; d >= 0; d--)
        if (!reduced[d]) {
            stride[d] = step;
            step *= in->size[d];
        }
    for (int64_t i = 0; i < m; i++) {
        most[i] = -(double)INFINITY;
        sum[i] = 0;
    }
    for (int turn = 0; turn < 2; turn++)
        for (int64_t i = 0, o = 0; i < n; i++) {
            if (turn == 0)
                most[o] = x[i] > most[o] || isnan(x[i]) ? x[i] : most[o];
            else
                sum[o] += exp(x[i] - (isinf(most[o]) ? 0 : most[o]));
            for (int d = in->n - 1; d >= 0; d--) { /* the next element */
                o += stride[d];
                if (++at[d] < in->size[d])
                    break;
                o -= stride[d] * in->size[d];
                at[d] = 0;
            }
        }
    for (int64_t i = 0; i < m; i++)
        sum[i] = log(sum[i]) + (isinf(most[i]) ? 0 : most[i]);
    plain_done(&s, c->out, sum, K_F64);
    return true;
}

size_t scratch_logsumexp(const struct rt_call *c)
{
    return 2 * plain_scratch(c, 64);
}

/* ---- mse_loss(self, target, reduction): 0 none, 1 mean, 2 sum ---- */

bool kernel_mse_loss(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *a = arg_tensor(c, 0), *b = arg_tensor(c, 1);
    enum kind k = plain_float(c->out);
    struct rt_tensor wide = a->n >= b->n ? *a : *b, other;

    for (int d = 0; d < wide.n; d++) { /* broadcast */
        int at = d - wide.n + a->n, bt = d - wide.n + b->n;
        int64_t x = at >= 0 ? a->size[at] : 1, y = bt >= 0 ? b->size[bt] : 1;

        wide.size[d] = x == 1 ? y : x;
    }
    for (int64_t d = wide.n - 1, step = 1; d >= 0; step *= wide.size[d--])
        wide.stride[d] = step;
    wide.dtype = k == K_F32 ? DTYPE_F32 : DTYPE_F64;
    int64_t n = rt_numel(&wide), reduction = arg_int(c, 2, 1);
    other = wide;
    wide.data = plain_room(&s, (size_t)n * kind_bytes[k]);
    other.data = plain_room(&s, (size_t)n * kind_bytes[k]);
    if (!copy_tensor(c, &wide, a) || !copy_tensor(c, &other, b))
        return false;
    for (int64_t i = 0; i < n; i++)
        if (k == K_F32)
            ((float *)wide.data)[i] -= ((const float *)other.data)[i];
        else
            ((double *)wide.data)[i] -= ((const double *)other.data)[i];
    struct reduction r = {.op = REDUCE_SUM,
                          .map = MAP_SQUARE,
                          .kind = k,
                          .divide = reduction == 1 ? n > 0 ? (double)n : (double)NAN : 0,
                          .in = &wide,
                          .out = c->out};
    memset(r.reduced, reduction != 0, sizeof(r.reduced));
    if (reduction != 0 ? !kernel_holds(c, c->out, 1) : !kernel_same(c, c->out, &wide))
        return false;
    reduction_run(&r);
    return true;
}

size_t scratch_mse_loss(const struct rt_call *c)
{
    const struct rt_tensor *a = arg_tensor(c, 0), *b = arg_tensor(c, 1);
    int64_t n = 1;

    for (int d = 0; d < (a->n > b->n ? a->n : b->n); d++) {
        int at = a->n - 1 - d, bt = b->n - 1 - d;
        int64_t x = at >= 0 ? a->size[at] : 1, y = bt >= 0 ? b->size[bt] : 1;

        if (__builtin_mul_overflow(n, x == 1 ? y : x, &n))
            n = INT64_MAX;
    }
    return 2 * (kernel_bytes(n, 1, 8) + 2 * RT_ALIGN);
}
