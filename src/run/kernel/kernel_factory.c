/* Tensors from numbers. */
#include <math.h>

#include "run/kernel/plain.h"

bool fill_tensor(struct rt_call *c, const struct rt_tensor *to, const struct rt_value *v)
{
    _Alignas(16) char x[16] = {0};
    struct rt_tensor one = {.data = x, .n = 0};

    switch (v->kind) {
    case RT_BOOL: one.dtype = DTYPE_B8, memcpy(x, &v->b, 1); break;
    case RT_INT: one.dtype = DTYPE_I64, memcpy(x, &v->i, 8); break;
    case RT_FLOAT: one.dtype = DTYPE_F64, memcpy(x, &v->f, 8); break;
    case RT_COMPLEX: one.dtype = DTYPE_C128, memcpy(x, v->z, 16); break;
    case RT_TENSOR: return copy_tensor(c, to, v->tensor);
    default: return kernel_error(c, "%s of something that is no number", c->kernel->name);
    }
    return copy_tensor(c, to, &one);
}

/* (size or tensor, value) */
/* (size, value) or (self, value), or (self, size, value) */
bool kernel_full(struct rt_call *c)
{
    return fill_tensor(c, c->out, arg_at(c, arg_at(c, 1)->kind == RT_LIST ? 2 : 1));
}

bool kernel_scalar_tensor(struct rt_call *c)
{
    return fill_tensor(c, c->out, arg_at(c, 0));
}

bool kernel_zeros(struct rt_call *c)
{
    struct rt_value zero = {.kind = RT_INT, .i = 0};

    return out_at(c, 0) == NULL || fill_tensor(c, c->out, &zero);
}

bool kernel_ones(struct rt_call *c)
{
    struct rt_value one = {.kind = RT_INT, .i = 1};

    return fill_tensor(c, c->out, &one);
}

/* Contents are undefined; zeros are as good as any, and the same in every run. */
bool kernel_empty(struct rt_call *c)
{
    return kernel_zeros(c);
}

static bool steps(struct rt_call *c, double start, double step, int64_t first, int64_t by,
                  bool whole)
{
    const struct rt_tensor *to = c->out;
    enum kind k = kind_of(to->dtype);
    int64_t n = rt_numel(to), bytes = dtype_at(to->dtype)->bytes;

    if (to->n != 1)
        return kernel_error(c, "numbers one after the other in %d dimensions", to->n);
    for (int64_t i = 0; i < n; i++) {
        int64_t x = (int64_t)((uint64_t)first + (uint64_t)i * (uint64_t)by);
        double f = whole ? (double)x : start + (double)i * step;
        _Alignas(16) char from[16], v[16];

        memcpy(from, whole ? (void *)&x : (void *)&f, 8);
        elem_convert(v, k, from, whole ? K_I64 : K_F64, 1);
        elem_store((char *)to->data + i * to->stride[0] * bytes, v, to->dtype, 1, 1);
    }
    return true;
}

static bool is_whole(const struct rt_value *v)
{
    return v->kind != RT_FLOAT;
}

/* arange(end), .start(start, end), .start_step(start, end, step) */
bool kernel_arange(struct rt_call *c)
{
    bool has_start = arg_at(c, 1)->kind == RT_INT || arg_at(c, 1)->kind == RT_FLOAT ||
                     arg_at(c, 1)->kind == RT_BOOL;
    bool has_step = has_start && (arg_at(c, 2)->kind == RT_INT || arg_at(c, 2)->kind == RT_FLOAT);
    double start = has_start ? arg_float(c, 0, 0) : 0, step = has_step ? arg_float(c, 2, 1) : 1;
    bool whole = kind_of(c->out->dtype) == K_I64 || /* then torch cuts both before it counts */
                 ((!has_start || is_whole(arg_at(c, 0))) && (!has_step || is_whole(arg_at(c, 2))));

    return steps(c, start, step, has_start ? arg_int(c, 0, 0) : 0, has_step ? arg_int(c, 2, 1) : 1,
                 whole);
}

/* iota(length, *, start, step) */
bool kernel_iota(struct rt_call *c)
{
    return steps(c, 0, 0, arg_int(c, 1, 0), arg_int(c, 2, 1), true);
}

/* eye(n, m) */
bool kernel_eye(struct rt_call *c)
{
    struct rt_tensor to = *c->out;
    struct rt_value one = {.kind = RT_INT, .i = 1};

    if (to.n != 2)
        return kernel_error(c, "a matrix of %d dimensions", to.n);
    if (!kernel_zeros(c))
        return false;
    int64_t n = to.size[0] < to.size[1] ? to.size[0] : to.size[1];
    to.n = 1;
    to.size[0] = n;
    to.stride[0] += to.stride[1];
    return fill_tensor(c, &to, &one);
}

/* Triangles: (self, diagonal). */
static bool triangle(struct rt_call *c, bool upper)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct rt_tensor row = *c->out;
    int64_t k = arg_int(c, 1, 0), rows = in->size[in->n - 2], cols = in->size[in->n - 1];
    struct rt_value zero = {.kind = RT_INT, .i = 0};

    if (!kernel_same(c, c->out, in) || (row.data != in->data && !copy_tensor(c, c->out, in)))
        return false;
    if (k > cols || k < -rows) /* no number that could overflow */
        k = k > 0 ? cols : -rows;
    int64_t bytes = dtype_at(row.dtype)->bytes;
    for (int64_t i = 0; i < rows && rt_numel(in) > 0; i++) {
        int64_t edge = i + k + (upper ? 0 : 1);
        int64_t begin = upper ? 0 : edge < 0 ? 0 : edge > cols ? cols : edge;
        int64_t end = upper ? (edge < 0 ? 0 : edge > cols ? cols : edge) : cols;

        row = *c->out;
        row.data = (char *)row.data +
                   (i * row.stride[row.n - 2] + begin * row.stride[row.n - 1]) * bytes;
        row.size[row.n - 2] = 1;
        row.size[row.n - 1] = end - begin;
        if (!fill_tensor(c, &row, &zero))
            return false;
    }
    return true;
}

bool kernel_tril(struct rt_call *c)
{
    return triangle(c, false);
}

bool kernel_triu(struct rt_call *c)
{
    return triangle(c, true);
}

/* linspace(start, end, steps): the second half is counted from the end */
bool kernel_linspace(struct rt_call *c)
{
    const struct rt_tensor *to = c->out;
    int64_t n = rt_numel(to), bytes = dtype_at(to->dtype)->bytes;
    double start = arg_float(c, 0, 0), end = arg_float(c, 1, 0),
           step = n > 1 ? (end - start) / (double)(n - 1) : 0;
    enum kind k = kind_of(to->dtype);

    if (to->n != 1 || k >= K_C64)
        return kernel_apart(c);
    for (int64_t i = 0; i < n; i++) {
        double x = i < n / 2 || n == 1 ? start + step * (double)i
                                       : end - step * (double)(n - 1 - i);
        _Alignas(16) char v[16];

        elem_convert(v, k, &x, K_F64, 1);
        elem_store((char *)to->data + i * to->stride[0] * bytes, v, to->dtype, 1, 1);
    }
    return true;
}

/* (row, col, offset): rows and columns of the lower triangle */
static bool triangle_indices(struct rt_call *c, bool upper)
{
    const struct rt_tensor *to = c->out;
    int64_t rows = arg_int(c, 0, 0), columns = arg_int(c, 1, 0), offset = arg_int(c, 2, 0), n = 0;
    int64_t bytes = dtype_at(to->dtype)->bytes;

    if (to->n != 2 || to->size[0] != 2 || rows < 0 || columns < 0 || rows > INT32_MAX ||
        columns > INT32_MAX || offset < -INT32_MAX || offset > INT32_MAX)
        return kernel_apart(c);
    for (int64_t i = 0; i < rows; i++) {
        int64_t begin = upper ? i + offset : 0, end = upper ? columns : i + offset + 1;

        begin = begin < 0 ? 0 : begin;
        end = end > columns ? columns : end;
        for (int64_t j = begin; j < end; j++, n++) {
            if (n == to->size[1])
                return kernel_apart(c);
            char *at = (char *)to->data + n * to->stride[1] * bytes;
            elem_store(at, &i, to->dtype, 1, 1);
            elem_store(at + to->stride[0] * bytes, &j, to->dtype, 1, 1);
        }
    }
    return n == to->size[1] || kernel_apart(c);
}

bool kernel_tril_indices(struct rt_call *c)
{
    return triangle_indices(c, false);
}

bool kernel_triu_indices(struct rt_call *c)
{
    return triangle_indices(c, true);
}
