/* Kernels of the caller's, and what they may ask. */
#include <stdio.h>

#include "run/run.h"

struct tuck_kernel_call {
    struct rt_call *c;
};

bool run_own_kernel(void *kernel, struct rt_call *c)
{
    const tuck_kernel *k = kernel;
    struct tuck_kernel_call call = {c};

    return k->run(k->ctx, &call);
}

static void describe(const struct rt_tensor *t, tuck_tensor *out)
{
    *out = (tuck_tensor){.data = t->data,
                         .dtype = dtype_at((enum dtype)t->dtype)->name,
                         .n = t->n,
                         .sizes = t->size,
                         .strides = t->stride};
}

size_t tuck_kernel_operand_count(const tuck_kernel_call *c)
{
    return c->c->n_arg;
}

bool tuck_kernel_tensor(const tuck_kernel_call *c, size_t operand, int64_t item, tuck_tensor *out)
{
    const struct rt_value *v = operand < c->c->n_arg ? &c->c->arg[operand] : NULL;

    if (v != NULL && item >= 0)
        v = v->kind == RT_LIST && item < (int64_t)v->n ? &v->item[item] : NULL;
    if (v == NULL || v->kind != RT_TENSOR)
        return false;
    describe(v->tensor, out);
    return true;
}

bool tuck_kernel_number(const tuck_kernel_call *c, size_t operand, double *out)
{
    const struct rt_value *v = operand < c->c->n_arg ? &c->c->arg[operand] : NULL;

    if (v == NULL)
        return false;
    switch (v->kind) {
    case RT_INT: *out = (double)v->i; return true;
    case RT_FLOAT: *out = v->f; return true;
    case RT_BOOL: *out = v->b; return true;
    default: return false;
    }
}

bool tuck_kernel_result(const tuck_kernel_call *c, size_t i, tuck_tensor *out)
{
    if (i >= c->c->n_out)
        return false;
    describe(&c->c->out[i], out);
    return true;
}

void tuck_kernel_fail(tuck_kernel_call *c, const char *why)
{
    snprintf(c->c->error, c->c->error_size, "%s", why);
}
