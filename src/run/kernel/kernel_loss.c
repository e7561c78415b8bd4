/* Losses of each element, and their mean or sum; computed in double. mse_loss is in
 * kernel_reduce.c. */
#include <math.h>

#include "run/kernel/plain.h"
#include "run/kernel/reduction.h"

enum { OPERANDS = 4 };

/* A loss of an input, a target, and numbers of the call. weight: 1 if there is none. */
struct element {
    double x, y, weight, other, number;
    bool flag, has_other;
};

typedef double loss_fn(const struct element *e);

static double l1(const struct element *e)
{
    return fabs(e->x - e->y);
}

static double huber(const struct element *e)
{
    double z = fabs(e->x - e->y), delta = e->number;

    return z < delta ? 0.5 * z * z : delta * (z - 0.5 * delta);
}

static double smooth_l1(const struct element *e)
{
    double z = fabs(e->x - e->y), beta = e->number;

    return z < beta ? 0.5 * z * z / beta : z - 0.5 * beta;
}

static double soft_margin(const struct element *e)
{
    double z = -e->x * e->y;

    return z > 40 ? z : log1p(exp(z));
}

/* Logarithms are at least -100, as torch's are. */
static double bce(const struct element *e)
{
    double one = log(e->x), zero = log1p(-e->x);

    one = one < -100 ? -100 : one;
    zero = zero < -100 ? -100 : zero;
    return ((e->y - 1) * zero - e->y * one) * e->weight;
}

/* other: the weight of positive targets */
static double bce_logits(const struct element *e)
{
    double positive = e->has_other ? (e->other - 1) * e->y + 1 : 1, below = e->x < 0 ? -e->x : 0;

    return ((1 - e->y) * e->x + positive * (log1p(exp(-fabs(e->x))) + below)) * e->weight;
}

static double kl_div(const struct element *e)
{
    if (e->flag)
        return exp(e->y) * (e->y - e->x);
    return (e->y == 0 ? 0 : e->y * log(e->y)) - e->y * e->x;
}

/* The operands broadcast together, without data. */
static struct rt_tensor together(const struct rt_call *c, uint32_t n)
{
    struct rt_tensor t = {.dtype = DTYPE_F64};

    for (uint32_t i = 0; i < n; i++) {
        const struct rt_tensor *x = arg_tensor(c, i);
        t.n = x != NULL && x->n > t.n ? x->n : t.n;
    }
    for (int d = 0; d < t.n; d++)
        t.size[d] = 1;
    for (uint32_t i = 0; i < n; i++) {
        const struct rt_tensor *x = arg_tensor(c, i);

        for (int d = 0; x != NULL && d < x->n; d++)
            if (x->size[d] != 1)
                t.size[t.n - x->n + d] = x->size[d];
    }
    uint64_t step = 1; /* may wrap: what is too large to count is not run */
    for (int d = t.n - 1; d >= 0; step *= (uint64_t)t.size[d--])
        t.stride[d] = (int64_t)step;
    return t;
}

/* n: operands that are tensors or absent; the reduction follows them. */
static bool run(struct rt_call *c, uint32_t n, loss_fn *fn)
{
    struct plain s = plain_begin(c);
    struct rt_tensor t = together(c, n);
    int64_t count = rt_numel(&t), how = arg_int(c, n, 1);
    const double *data[OPERANDS] = {0};

    for (uint32_t i = 0; i < n; i++) {
        if (arg_tensor(c, i) == NULL)
            continue;
        struct rt_tensor to = t;
        to.data = plain_room(&s, (size_t)count * sizeof(double));
        data[i] = to.data;
        if (!copy_tensor(c, &to, arg_tensor(c, i)))
            return false;
    }
    double *out = plain_room(&s, (size_t)count * sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        struct element e = {data[0][i],
                            data[1][i],
                            data[2] != NULL ? data[2][i] : 1,
                            data[3] != NULL ? data[3][i] : 1,
                            arg_float(c, n + 1, 1),
                            arg_bool(c, n + 1, false),
                            data[3] != NULL};
        out[i] = fn(&e);
    }
    t.data = out;
    struct reduction r = {.op = REDUCE_SUM,
                          .kind = K_F64,
                          .divide = how == 1 ? count > 0 ? (double)count : (double)NAN : 0,
                          .in = &t,
                          .out = c->out};
    if (!kernel_holds(c, c->out, how == 0 ? count : 1))
        return false;
    if (how == 0)
        return copy_tensor(c, c->out, &t);
    memset(r.reduced, true, sizeof(r.reduced));
    reduction_run(&r);
    return true;
}

#define LOSS(name, n, fn)                                                                          \
    bool kernel_##name(struct rt_call *c)                                                          \
    {                                                                                              \
        return run(c, n, fn);                                                                      \
    }                                                                                              \
    size_t scratch_##name(const struct rt_call *c)                                                 \
    {                                                                                              \
        struct rt_tensor t = together(c, n);                                                       \
                                                                                                   \
        return (OPERANDS + 1) * (kernel_bytes(rt_numel(&t), 1, 8) + RT_ALIGN);                     \
    }
LOSS(l1_loss, 2, l1)
LOSS(huber_loss, 2, huber)
LOSS(smooth_l1_loss, 2, smooth_l1)
LOSS(soft_margin_loss, 2, soft_margin)
LOSS(kl_div_loss, 2, kl_div)
LOSS(bce_loss, 3, bce)
LOSS(bce_logits_loss, 4, bce_logits)
