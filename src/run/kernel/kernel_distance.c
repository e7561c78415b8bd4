/* Distances between rows (cdist), and the margin loss of many classes; computed in double. */
#include <math.h>

#include "run/kernel/index_place.h"
#include "run/kernel/plain.h"

/* ---- cdist: (..., n, d) and (..., m, d) to (..., n, m) ---- */

struct pairs {
    int64_t batches, n, m, width;
    double p;
};

static bool describe(struct rt_call *c, struct pairs *x, const struct rt_tensor *a,
                     const struct rt_tensor *b, const struct rt_tensor *each, double p)
{
    int n = each->n;

    if (a->n != n || b->n != n || a->size[n - 2] != each->size[n - 2] ||
        b->size[n - 2] != each->size[n - 1] || a->size[n - 1] != b->size[n - 1])
        return kernel_apart(c);
    for (int d = 0; d < n - 2; d++)
        if (a->size[d] != each->size[d] || b->size[d] != each->size[d])
            return kernel_apart(c);
    if (kind_of(a->dtype) >= K_C64 || !(p >= 0))
        return kernel_error(c, "no kernel computes distances like these");
    *x = (struct pairs){plain_count(a, 0, n - 2), a->size[n - 2], b->size[n - 2], a->size[n - 1],
                        p};
    return true;
}

static double distance(const double *a, const double *b, int64_t width, double p)
{
    double sum = 0;

    for (int64_t i = 0; i < width; i++) {
        double z = fabs(a[i] - b[i]);

        if (isinf(p))
            sum = z > sum || isnan(z) ? z : sum;
        else
            sum += p == 0 ? (double)(z != 0) : p == 1 ? z : p == 2 ? z * z : pow(z, p);
    }
    return isinf(p) || p == 0 || p == 1 ? sum : p == 2 ? sqrt(sum) : pow(sum, 1 / p);
}

/* (x1, x2, p, compute_mode) */
bool kernel_cdist(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct pairs x;

    if (!describe(c, &x, arg_tensor(c, 0), arg_tensor(c, 1), c->out, arg_float(c, 2, 2)))
        return false;
    const double *a = plain_in(&s, arg_tensor(c, 0), K_F64),
                 *b = plain_in(&s, arg_tensor(c, 1), K_F64);
    double *y = plain_out(&s, c->out, K_F64);

    for (int64_t k = 0; k < x.batches; k++)
        for (int64_t i = 0; i < x.n; i++)
            for (int64_t j = 0; j < x.m; j++)
                y[(k * x.n + i) * x.m + j] = distance(a + (k * x.n + i) * x.width,
                                                      b + (k * x.m + j) * x.width, x.width, x.p);
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* What a coordinate of x1 gets of the gradient, by how far it is from that of x2. */
static double share(double z, double grad, double dist, double p)
{
    double sign = (z > 0) - (z < 0);

    if (p == 0 || (dist == 0 && p != 1))
        return 0;
    if (p == 1)
        return grad * sign;
    if (isinf(p))
        return fabs(z) == dist ? grad * sign : 0;
    if (p == 2)
        return grad * z / dist;
    return z == 0 ? 0 : sign * pow(fabs(z) / dist, p - 1) * grad;
}

/* (grad, x1, x2, p, cdist): the gradient of x1 */
bool kernel_cdist_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0);
    struct pairs x;

    if (!describe(c, &x, arg_tensor(c, 1), arg_tensor(c, 2), grad, arg_float(c, 3, 2)) ||
        !kernel_same(c, arg_tensor(c, 4), grad) || !kernel_same(c, c->out, arg_tensor(c, 1)))
        return false;
    const double *g = plain_in(&s, grad, K_F64), *a = plain_in(&s, arg_tensor(c, 1), K_F64),
                 *b = plain_in(&s, arg_tensor(c, 2), K_F64),
                 *dist = plain_in(&s, arg_tensor(c, 4), K_F64);
    double *da = plain_out(&s, c->out, K_F64);

    memset(da, 0, (size_t)rt_numel(c->out) * sizeof(*da));
    for (int64_t i = 0; i < x.batches * x.n; i++)
        for (int64_t j = 0; j < x.m; j++) {
            const double *from = a + i * x.width, *to = b + (i / x.n * x.m + j) * x.width;

            for (int64_t d = 0; d < x.width; d++) {
                double z = from[d] - to[d];

                if (c->out->dtype != DTYPE_F64)
                    z = (double)(float)z; /* as the distance was rounded, which it may be */
                da[i * x.width + d] += share(z, g[i * x.m + j], dist[i * x.m + j], x.p);
            }
        }
    plain_done(&s, c->out, da, K_F64);
    return true;
}

/* ---- multi_margin_loss ---- */

struct margin {
    int64_t n, classes, p, reduction;
    double margin;
    const double *x, *weight;
    const int64_t *target;
};

/* (self, target, p, margin, weight, reduction) from operand `first` on */
static bool take_margin(struct rt_call *c, struct plain *s, struct margin *m, uint32_t first)
{
    const struct rt_tensor *x = arg_tensor(c, first), *target = arg_tensor(c, first + 1),
                           *weight = arg_tensor(c, first + 4);

    if (x->n < 1 || x->n > 2 || target->n > 1 || kind_of(x->dtype) >= K_C64)
        return kernel_apart(c);
    *m = (struct margin){.n = x->n == 2 ? x->size[0] : 1,
                         .classes = x->size[x->n - 1],
                         .p = arg_int(c, first + 2, 1),
                         .reduction = arg_int(c, first + 5, 1),
                         .margin = arg_float(c, first + 3, 1)};
    if (m->p < 1 || m->p > 2)
        return kernel_error(c, "no kernel takes margins to the power of %lld", (long long)m->p);
    if (!kernel_holds(c, target, m->n) || !kernel_holds(c, weight, m->classes))
        return false;
    m->x = plain_in(s, x, K_F64);
    m->target = plain_in(s, target, K_I64);
    m->weight = plain_in(s, weight, K_F64);
    for (int64_t i = 0; i < m->n; i++)
        if (m->target[i] < 0 || m->target[i] >= m->classes)
            return index_out_of_range(c, m->target[i], m->classes);
    return true;
}

/* By how much class k of row i is too close to that of the target; 0 if it is not. */
static double excess(const struct margin *m, int64_t i, int64_t k)
{
    const double *row = m->x + i * m->classes;
    double z = m->margin - row[m->target[i]] + row[k];

    return k != m->target[i] && z > 0 ? z : 0;
}

static double factor(const struct margin *m, int64_t i)
{
    double by = m->reduction == 1 ? (double)m->n * (double)m->classes : (double)m->classes;

    return (m->weight != NULL ? m->weight[m->target[i]] : 1) / by;
}

bool kernel_multi_margin_loss(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct margin m;

    if (!take_margin(c, &s, &m, 0) || !kernel_holds(c, c->out, m.reduction == 0 ? m.n : 1))
        return false;
    double *y = plain_out(&s, c->out, K_F64), all = 0;
    for (int64_t i = 0; i < m.n; i++) {
        double sum = 0;

        for (int64_t k = 0; k < m.classes; k++)
            sum += m.p == 1 ? excess(&m, i, k) : excess(&m, i, k) * excess(&m, i, k);
        all += sum * factor(&m, i);
        if (m.reduction == 0)
            y[i] = sum * factor(&m, i);
    }
    if (m.reduction != 0)
        y[0] = all;
    plain_done(&s, c->out, y, K_F64);
    return true;
}

/* (grad, self, target, p, margin, weight, reduction) */
bool kernel_multi_margin_loss_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct margin m;

    if (!take_margin(c, &s, &m, 1) || !kernel_same(c, c->out, arg_tensor(c, 1)) ||
        !kernel_holds(c, arg_tensor(c, 0), m.reduction == 0 ? m.n : 1))
        return false;
    const double *g = plain_in(&s, arg_tensor(c, 0), K_F64);
    double *dx = plain_out(&s, c->out, K_F64);

    for (int64_t i = 0; i < m.n; i++) {
        double by = factor(&m, i) * g[m.reduction == 0 ? i : 0], sum = 0;

        for (int64_t k = 0; k < m.classes; k++) {
            double z = excess(&m, i, k), d = m.p == 1 ? by * (double)(z > 0) : 2 * by * z;

            dx[i * m.classes + k] = d;
            sum += d;
        }
        dx[i * m.classes + m.target[i]] = -sum;
    }
    plain_done(&s, c->out, dx, K_F64);
    return true;
}

PLAIN_SCRATCH(cdist)
PLAIN_SCRATCH(cdist_backward)
PLAIN_SCRATCH(multi_margin_loss)
PLAIN_SCRATCH(multi_margin_loss_backward)
