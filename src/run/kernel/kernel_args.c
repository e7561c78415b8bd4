/* How kernels read operands, and how they fail. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "run/kernel/kernels.h"

const struct rt_value *arg_at(const struct rt_call *c, uint32_t i)
{
    static const struct rt_value none = {.kind = RT_NONE};

    return i < c->n_arg ? &c->arg[i] : &none;
}

const struct rt_tensor *arg_tensor(const struct rt_call *c, uint32_t i)
{
    const struct rt_value *v = arg_at(c, i);

    return v->kind == RT_TENSOR ? v->tensor : NULL;
}

int64_t arg_int(const struct rt_call *c, uint32_t i, int64_t otherwise)
{
    const struct rt_value *v = arg_at(c, i);

    switch (v->kind) {
    case RT_INT: return v->i;
    case RT_BOOL: return v->b;
    case RT_FLOAT: /* a text may say 1e300 */
        return v->f > -0x1p63 && v->f < 0x1p63 ? (int64_t)v->f : otherwise;
    default: return otherwise;
    }
}

double arg_float(const struct rt_call *c, uint32_t i, double otherwise)
{
    const struct rt_value *v = arg_at(c, i);

    switch (v->kind) {
    case RT_INT: return (double)v->i;
    case RT_BOOL: return v->b;
    case RT_FLOAT: return v->f;
    case RT_COMPLEX: return v->z[0];
    default: return otherwise;
    }
}

bool arg_bool(const struct rt_call *c, uint32_t i, bool otherwise)
{
    const struct rt_value *v = arg_at(c, i);

    switch (v->kind) {
    case RT_INT: return v->i != 0;
    case RT_BOOL: return v->b;
    default: return otherwise;
    }
}

struct rt_tensor *out_at(const struct rt_call *c, uint32_t i)
{
    return i < c->n_out && c->out[i].dtype != DTYPE_NONE ? &c->out[i] : NULL;
}

bool kernel_error(struct rt_call *c, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    if (c->error_size > 0)
        vsnprintf(c->error, c->error_size, format, list);
    va_end(list);
    return false;
}

bool kernel_apart(struct rt_call *c)
{
    return kernel_error(c, "the sizes of its operands do not go together");
}

bool kernel_holds(struct rt_call *c, const struct rt_tensor *t, int64_t n)
{
    return t == NULL || rt_numel(t) == n || kernel_apart(c);
}

bool kernel_same(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *like)
{
    return t == NULL ||
           (t->n == like->n && memcmp(t->size, like->size, t->n * sizeof(*t->size)) == 0) ||
           kernel_apart(c);
}

bool kernel_dtype(struct rt_call *c, const struct rt_tensor *t, enum dtype d)
{
    return t == NULL || t->dtype == d ||
           kernel_error(c, "a tensor is %s and not %s", dtype_at(t->dtype)->name,
                        dtype_at(d)->name);
}

bool kernel_like(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *like)
{
    return t == NULL || (kernel_same(c, t, like) && kernel_dtype(c, t, like->dtype));
}

bool kernel_dim(struct rt_call *c, const struct rt_tensor *t, int64_t dim, int *out)
{
    int64_t n = t->n > 0 ? t->n : 1;

    *out = (int)(dim < 0 ? dim + n : dim);
    return (dim >= -n && dim < n) ||
           kernel_error(c, "dimension %lld of a tensor of %d", (long long)dim, t->n);
}

size_t kernel_bytes(int64_t a, int64_t b, int64_t bytes)
{
    int64_t n;

    return __builtin_mul_overflow(a, b, &n) || __builtin_mul_overflow(n, bytes, &n) ||
                   n > KERNEL_MOST_BYTES
               ? (size_t)KERNEL_MOST_BYTES
               : (size_t)n;
}

bool kernel_product(struct rt_call *c, const struct rt_value *list, int64_t *out)
{
    *out = 1;
    for (uint32_t i = 0; i < list->n; i++)
        if (list->item[i].i < 0 || __builtin_mul_overflow(*out, list->item[i].i, out))
            return kernel_error(c, "a size that no tensor has");
    return true;
}

bool kernel_within(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *of,
                   int except)
{
    if (t == NULL)
        return true;
    if ((t->n > 0 ? t->n : 1) != (of->n > 0 ? of->n : 1))
        return kernel_apart(c);
    for (int d = 0; d < t->n && d < of->n; d++)
        if (d != except && t->size[d] > of->size[d])
            return kernel_apart(c);
    return true;
}

bool kernel_broadcasts(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *to)
{
    if (t == NULL)
        return true;
    for (int d = 0; d < t->n; d++) {
        int at = to->n - t->n + d;
        if (t->size[d] != 1 && (at < 0 || t->size[d] != to->size[at]))
            return kernel_apart(c);
    }
    return true;
}
