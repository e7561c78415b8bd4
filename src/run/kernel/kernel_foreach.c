/* Lists of tensors: copies, norms, steps of optimizers. */
#include <math.h>

#include "run/kernel/plain.h"
#include "run/kernel/walk.h"

static const struct rt_tensor *item(const struct rt_call *c, uint32_t list, uint32_t i)
{
    const struct rt_value *v = arg_at(c, list);

    return v->kind == RT_LIST && i < v->n && v->item[i].kind == RT_TENSOR ? v->item[i].tensor
                                                                          : NULL;
}

/* (self, src), or (self) */
bool kernel_foreach_copy(struct rt_call *c)
{
    uint32_t from = arg_at(c, 1)->kind == RT_LIST ? 1 : 0;

    if (arg_at(c, from)->n != arg_at(c, 0)->n)
        return kernel_error(c, "its lists do not go together");
    for (uint32_t i = 0; i < arg_at(c, 0)->n; i++)
        if (item(c, from, i) == NULL ||
            !copy_tensor(c, out_at(c, i) != NULL ? out_at(c, i) : item(c, 0, i), item(c, from, i)))
            return false;
    return true;
}

bool kernel_foreach_zero(struct rt_call *c)
{
    const struct rt_value zero = {.kind = RT_INT};

    for (uint32_t i = 0; item(c, 0, i) != NULL; i++)
        if (!fill_tensor(c, out_at(c, i) != NULL ? out_at(c, i) : item(c, 0, i), &zero))
            return false;
    return true;
}

/* (self, ord, dtype): the norm over all dimensions of each */
bool kernel_foreach_norm(struct rt_call *c)
{
    if (arg_at(c, 0)->n != c->n_out)
        return kernel_error(c, "its lists do not go together");
    for (uint32_t i = 0; i < c->n_out; i++) {
        struct rt_value arg[3] = {arg_at(c, 0)->item[i], *arg_at(c, 1), {.kind = RT_NONE}};
        struct rt_call one = *c;

        one.arg = arg;
        one.n_arg = 3;
        one.out = &c->out[i];
        one.n_out = 1;
        one.kernel = kernel_at(OP_KERNEL_vector_norm);
        if (!kernel_run(&one))
            return false;
    }
    return true;
}

/* ---- Adam ---- */

struct adam {
    double lr, beta1, beta2, decay, eps, scale;
    bool amsgrad, maximize, apart; /* apart: the decay of weights is no part of the gradient */
};

static bool number(const struct rt_call *c, uint32_t i, double *out)
{
    const struct rt_tensor *t = arg_tensor(c, i);

    if (t != NULL && rt_numel(t) == 1) {
        struct rt_value v = rt_item(t);
        *out = v.kind == RT_FLOAT ? v.f : v.kind == RT_INT ? (double)v.i : v.b;
        return true;
    }
    *out = arg_float(c, i, 0);
    return t == NULL;
}

/* One tensor: weights, gradients, both averages, the largest of the second, and the step. */
static void step_of(const struct adam *o, double *w, double *g, double *m, double *v, double *most,
                    double step, int64_t n)
{
    double first = 1 - pow(o->beta1, step), second = sqrt(1 - pow(o->beta2, step));

    for (int64_t i = 0; i < n; i++) {
        g[i] /= o->scale;
        double d = o->maximize ? -g[i] : g[i];
        if (o->apart)
            w[i] -= o->lr * o->decay * w[i];
        else
            d += o->decay * w[i];
        m[i] += (1 - o->beta1) * (d - m[i]);
        v[i] = o->beta2 * v[i] + (1 - o->beta2) * d * d;
        if (most != NULL)
            most[i] = fmax(most[i], v[i]);
        w[i] -= o->lr / first * m[i] / (sqrt(most != NULL ? most[i] : v[i]) / second + o->eps);
    }
}

/* Tensor t as doubles in a row: how such a copy looks. */
static struct rt_tensor as_doubles(const struct rt_tensor *t, double *data)
{
    struct rt_tensor x = *t;

    x.dtype = DTYPE_F64;
    x.data = data;
    for (int64_t d = x.n - 1, each = 1; d >= 0; each *= x.size[d--])
        x.stride[d] = each;
    return x;
}

/* Item i of the first n lists, as doubles. */
static bool take_lists(struct rt_call *c, struct plain *s, uint32_t i, uint32_t n,
                       const struct rt_tensor **t, double **x)
{
    for (uint32_t k = 0; k < n; k++) {
        t[k] = item(c, k, i);
        if (t[k] == NULL || rt_numel(t[k]) != rt_numel(item(c, 0, i)) ||
            kind_of(t[k]->dtype) >= K_C64)
            return kernel_error(c, "the lists of an optimizer do not fit each other");
        x[k] = plain_room(s, (size_t)rt_numel(t[k]) * sizeof(double));
        struct rt_tensor to = as_doubles(t[k], x[k]);
        if (!copy_tensor(c, &to, t[k]))
            return false;
    }
    return true;
}

/* And back; gradients only if they were scaled. */
static bool give_lists(struct rt_call *c, uint32_t n, const struct rt_tensor *const *t, double **x,
                       bool scaled)
{
    for (uint32_t k = 0; k < n; k++) {
        struct rt_tensor from = as_doubles(t[k], x[k]);

        if ((k != 1 || scaled) && !copy_tensor(c, t[k], &from))
            return false;
    }
    return true;
}

/* (self, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, lr, beta1, beta2,
 * weight_decay, eps, amsgrad, maximize, grad_scale, found_inf) */
static bool adam(struct rt_call *c, bool apart)
{
    struct adam o = {.beta1 = arg_float(c, 7, 0.9),
                     .beta2 = arg_float(c, 8, 0.999),
                     .decay = arg_float(c, 9, 0),
                     .eps = arg_float(c, 10, 1e-8),
                     .amsgrad = arg_bool(c, 11, false),
                     .maximize = arg_bool(c, 12, false),
                     .apart = apart,
                     .scale = 1};
    double found = 0, step = 0;

    if (!number(c, 6, &o.lr) || !number(c, 14, &found) ||
        (arg_tensor(c, 13) != NULL && !number(c, 13, &o.scale)))
        return kernel_error(c, "a number of the optimizer is a tensor of several elements");
    for (uint32_t i = 0; found == 0 && item(c, 0, i) != NULL; i++) {
        const struct rt_tensor *t[5], *steps = item(c, 5, i);
        struct plain s = plain_begin(c);
        double *x[5] = {NULL};

        if (!take_lists(c, &s, i, 4u + o.amsgrad, t, x))
            return false;
        if (steps == NULL || rt_numel(steps) != 1)
            return kernel_error(c, "a step of the optimizer is not one number");
        struct rt_value v = rt_item(steps);
        step = v.kind == RT_FLOAT ? v.f : (double)v.i;
        step_of(&o, x[0], x[1], x[2], x[3], x[4], step, rt_numel(t[0]));
        if (!give_lists(c, 4u + o.amsgrad, t, x, o.scale != 1))
            return false;
    }
    return true;
}

bool kernel_fused_adam(struct rt_call *c)
{
    return adam(c, false);
}

bool kernel_fused_adamw(struct rt_call *c)
{
    return adam(c, true);
}

size_t scratch_fused_adam(const struct rt_call *c)
{
    size_t most = 0;

    for (uint32_t i = 0; item(c, 0, i) != NULL; i++) {
        size_t n = (size_t)rt_numel(item(c, 0, i));
        most = n > most ? n : most;
    }
    return 5 * (most * sizeof(double) + 2 * RT_ALIGN);
}

size_t scratch_fused_adamw(const struct rt_call *c)
{
    return scratch_fused_adam(c);
}

/* ---- SGD ---- */

/* (self, grads, momentum_buffer_list, weight_decay, momentum, lr, dampening, nesterov, maximize,
 * is_first_step, grad_scale, found_inf) */
bool kernel_fused_sgd(struct rt_call *c)
{
    double decay = arg_float(c, 3, 0), momentum = arg_float(c, 4, 0),
           damped = 1 - arg_float(c, 6, 0), lr = 0, scale = 1, found = 0;
    bool nesterov = arg_bool(c, 7, false), maximize = arg_bool(c, 8, false),
         first = arg_bool(c, 9, false);

    if (!number(c, 5, &lr) || !number(c, 11, &found) ||
        (arg_tensor(c, 10) != NULL && !number(c, 10, &scale)))
        return kernel_error(c, "a number of the optimizer is a tensor of several elements");
    for (uint32_t i = 0; found == 0 && item(c, 0, i) != NULL; i++) {
        const struct rt_tensor *t[3];
        struct plain s = plain_begin(c);
        double *x[3] = {NULL};
        uint32_t lists = momentum != 0 ? 3 : 2;

        if (!take_lists(c, &s, i, lists, t, x))
            return false;
        for (int64_t k = 0; k < rt_numel(t[0]); k++) {
            x[1][k] /= scale;
            double d = (maximize ? -x[1][k] : x[1][k]) + decay * x[0][k];
            if (momentum != 0) {
                x[2][k] = first ? d : momentum * x[2][k] + damped * d;
                d = nesterov ? d + momentum * x[2][k] : x[2][k];
            }
            x[0][k] -= lr * d;
        }
        if (!give_lists(c, lists, t, x, scale != 1))
            return false;
    }
    return true;
}

size_t scratch_fused_sgd(const struct rt_call *c)
{
    return scratch_fused_adam(c);
}

/* ---- scaled losses ---- */

static bool set_number(struct rt_call *c, const struct rt_tensor *t, double x)
{
    struct rt_value v = {.kind = RT_FLOAT, .f = x};

    return fill_tensor(c, t, &v);
}

/* (self, found_inf, inv_scale): found_inf becomes 1 if an element is not finite */
bool kernel_amp_unscale(struct rt_call *c)
{
    double by;

    if (!number(c, 2, &by))
        return kernel_apart(c);
    for (uint32_t i = 0; item(c, 0, i) != NULL; i++) {
        const struct rt_tensor *t = item(c, 0, i);
        const struct rt_tensor *walked[] = {t};
        struct walk w;

        if (!dtype_is_float(t->dtype))
            return kernel_apart(c);
        for (bool more = walk_begin(&w, walked, 1, 0); more; more = walk_next(&w, 0)) {
            struct rt_tensor one = {.data = w.p[0], .dtype = t->dtype};
            double x = rt_item(&one).f;

            if (!isfinite(x) && !set_number(c, arg_tensor(c, 1), 1))
                return false;
            if (by != 1 && !set_number(c, &one, x * (double)(float)by))
                return false;
        }
    }
    return true;
}

/* (self, growth_tracker, found_inf, growth, backoff, interval): less after a number that was not
 * finite, more after as many good steps as the interval has */
bool kernel_amp_update(struct rt_call *c)
{
    double scale, good, found;

    if (!number(c, 0, &scale) || !number(c, 1, &good) || !number(c, 2, &found))
        return kernel_apart(c);
    if (found != 0)
        return set_number(c, c->out, scale * arg_float(c, 4, 0.5)) &&
               set_number(c, arg_tensor(c, 1), 0);
    if (good + 1 != (double)arg_int(c, 5, 0))
        return set_number(c, arg_tensor(c, 1), good + 1);
    float grown = (float)(scale * arg_float(c, 3, 2));
    return (!isfinite(grown) || set_number(c, c->out, (double)grown)) &&
           set_number(c, arg_tensor(c, 1), 0);
}
