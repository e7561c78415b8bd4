/* The table of kernels, and what callers need besides. */
#include "run/kernel/kernel.h"

#include "run/kernel/elem.h"
#include "run/kernel/kernel_check.h"
#include "run/kernel/kernels.h"

#define ROW(name, run, scratch, count) {#name, run, scratch, count, OP_KERNEL_##name},
#define NONE(name) ROW(name, NULL, NULL, NULL)
#define PLAIN(name) ROW(name, kernel_##name, NULL, NULL)
#define SCRATCH(name) ROW(name, kernel_##name, scratch_##name, NULL)
#define COUNTED(name) ROW(name, kernel_##name, scratch_##name, count_##name)
#define POINT(name) ROW(name, point_run, point_scratch, NULL)

static const struct kernel_row table[] = {
#define KERNEL(name, form, meaning) form(name)
#include "op/kernels.def"
#undef KERNEL
};

const struct kernel_row *kernel_at(enum op_kernel kernel)
{
    return kernel > OP_KERNEL_none && kernel < OP_KERNEL_END ? &table[kernel] : NULL;
}

size_t kernel_scratch(const struct rt_call *c)
{
    struct rt_call looked_at = *c;
    char error[8];

    if (c->kernel->scratch == NULL)
        return 0;
    looked_at.error = error;
    looked_at.error_size = sizeof(error);
    return kernel_check(&looked_at) ? c->kernel->scratch(c) : 0;
}

bool kernel_count(struct rt_call *c, int64_t *count)
{
    *count = -1;
    if (c->kernel->count != NULL && kernel_check_args(c))
        *count = c->kernel->count(c);
    return *count >= 0;
}

bool kernel_run(struct rt_call *c)
{
    return kernel_check(c) && c->kernel->run(c);
}

int64_t rt_numel(const struct rt_tensor *t)
{
    int64_t n = 1;

    for (int d = 0; d < t->n; d++)
        if (__builtin_mul_overflow(n, t->size[d], &n))
            return INT64_MAX; /* sizes that were broadcast: kernel_bytes() takes it */
    return n;
}

bool rt_contiguous(const struct rt_tensor *t)
{
    int64_t step = 1;

    for (int d = t->n - 1; d >= 0; d--) {
        if (t->size[d] == 0)
            return true;
        if (t->size[d] != 1 && t->stride[d] != step)
            return false;
        step *= t->size[d];
    }
    return true;
}

bool rt_dense(const struct rt_tensor *t)
{
    bool done[RT_DIMS] = {false};
    int64_t step = 1;

    for (int k = 0; k < t->n; k++) {
        int next = -1;

        for (int d = 0; d < t->n; d++) /* sizes of 1 lie anywhere */
            if (!done[d] && (t->size[d] <= 1 || t->stride[d] == step))
                next = d;
        if (next < 0)
            return rt_numel(t) == 0;
        done[next] = true;
        step *= t->size[next];
    }
    return true;
}

struct rt_value rt_item(const struct rt_tensor *t)
{
    struct rt_value v = {.kind = RT_NONE};
    union {
        uint8_t b;
        int64_t i;
        float f[2];
        double d[2];
    } u = {0};
    enum kind k = kind_of(t->dtype);

    if (k == K_END || rt_numel(t) != 1)
        return v;
    elem_load(&u, t->data, t->dtype, 1, 1);
    switch (k) {
    case K_BOOL: v = (struct rt_value){.kind = RT_BOOL, .b = u.b}; break;
    case K_I64: v = (struct rt_value){.kind = RT_INT, .i = u.i}; break;
    case K_F32: v = (struct rt_value){.kind = RT_FLOAT, .f = u.f[0]}; break;
    case K_F64: v = (struct rt_value){.kind = RT_FLOAT, .f = u.d[0]}; break;
    case K_C64: v = (struct rt_value){.kind = RT_COMPLEX, .z = {u.f[0], u.f[1]}}; break;
    default: v = (struct rt_value){.kind = RT_COMPLEX, .z = {u.d[0], u.d[1]}}; break;
    }
    return v;
}
