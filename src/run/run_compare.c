/* Compares results of two graphs. */
#include <math.h>
#include <stdio.h>

#include "run/run.h"

bool run_copy_dense(const struct rt_tensor *from, void *to, char *why)
{
    struct rt_tensor out = *from;
    struct rt_value arg = {.kind = RT_TENSOR, .tensor = from};
    int64_t stride = 1;

    for (uint32_t i = out.n; i > 0; i--) {
        out.stride[i - 1] = stride;
        stride *= out.size[i - 1] > 0 ? out.size[i - 1] : 1;
    }
    out.data = to;
    struct rt_call c = {.kernel = kernel_at(OP_KERNEL_copy),
                        .arg = &arg,
                        .n_arg = 1,
                        .out = &out,
                        .n_out = 1,
                        .error = why,
                        .error_size = EXEC_ERROR_BYTES};
    return kernel_run(&c);
}

/* ---- numbers ---- */

static double half(uint16_t h)
{
    int e = h >> 10 & 31, m = h & 1023;
    double v = e == 31 ? (m ? NAN : INFINITY) : e == 0 ? ldexp(m, -24) : ldexp(m + 1024, e - 25);

    return h & 0x8000 ? -v : v;
}

/* A float, and its place among all floats of its dtype: neighbors are one apart. */
struct place {
    double value;
    int64_t rank;
};

static int64_t ordered(int64_t bits, int64_t sign)
{
    return bits & sign ? -(bits & ~sign) : bits;
}

static struct place place_of(const char *at, enum dtype d)
{
    int64_t i = 0;
    uint32_t w;
    float f;
    double v;

    switch (d) {
    case DTYPE_F64:
        memcpy(&i, at, 8);
        memcpy(&v, at, 8);
        return (struct place){v, i < 0 ? -(i & INT64_MAX) : i};
    case DTYPE_F32:
        memcpy(&i, at, 4);
        memcpy(&f, at, 4);
        return (struct place){(double)f, ordered(i, 0x80000000)};
    case DTYPE_BF16:
        memcpy(&i, at, 2);
        w = (uint32_t)i << 16;
        memcpy(&f, &w, 4);
        return (struct place){(double)f, ordered(i, 0x8000)};
    default: memcpy(&i, at, 2); return (struct place){half((uint16_t)i), ordered(i, 0x8000)};
    }
}

static void tolerance(enum dtype d, double *relative, double *absolute)
{
    switch (d) {
    case DTYPE_F64:
        *relative = 1e-7;
        *absolute = 1e-9;
        break;
    case DTYPE_F32:
        *relative = 1e-4;
        *absolute = 1e-5;
        break;
    default:
        *relative = 1.6e-2;
        *absolute = 1e-3;
        break;
    }
}

static void compare_float(const char *a, const char *b, enum dtype d, struct run_compared *out)
{
    struct place x = place_of(a, d), y = place_of(b, d);
    double apart = fabs(x.value - y.value), most = fmax(fabs(x.value), fabs(y.value)), rel, abs;

    if (isnan(x.value) && isnan(y.value))
        return;
    tolerance(d, &rel, &abs);
    if (isnan(x.value) || isnan(y.value) || isinf(apart)) {
        out->ulp = out->relative = out->absolute = INFINITY;
        out->within = false;
        return;
    }
    out->ulp = fmax(out->ulp, fabs((double)(x.rank - y.rank)));
    out->absolute = fmax(out->absolute, apart);
    if (most > 0)
        out->relative = fmax(out->relative, apart / most);
    out->within &= apart <= abs + rel * fabs(x.value);
}

static bool compare_one(const char *a, const char *b, enum dtype d, struct run_compared *out)
{
    const struct dtype_row *row = dtype_at(d);

    if (memcmp(a, b, row->bytes) == 0)
        return true;
    out->equal = false;
    out->different++;
    if (row->category == DTYPE_IS_COMPLEX) {
        compare_float(a, b, dtype_real_of(d), out);
        compare_float(a + row->bytes / 2, b + row->bytes / 2, dtype_real_of(d), out);
    } else if (row->category == DTYPE_IS_FLOAT) {
        compare_float(a, b, d, out);
    } else {
        out->ulp = out->relative = out->absolute = INFINITY;
        out->within = false;
    }
    return false;
}

/* Both contiguous, of one dtype and size. */
void run_compare(const struct rt_tensor *a, const struct rt_tensor *b, struct run_compared *out)
{
    int64_t n = rt_numel(a), elem = dtype_at((enum dtype)a->dtype)->bytes;

    *out = (struct run_compared){.equal = true, .within = true, .elements = n};
    for (int64_t i = 0; i < n; i++)
        compare_one((const char *)a->data + i * elem, (const char *)b->data + i * elem,
                    (enum dtype)a->dtype, out);
}
