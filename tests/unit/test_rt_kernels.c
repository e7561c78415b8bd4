/* Kernels without torch: conversions, strides, broadcasting, errors. With --calls IN OUT, runs the
 * calls of a file instead (tests/torch/kernels.py). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "run/kernel/elem.h"
#include "run/kernel/kernel.h"
#include "support/kernel_calls.h"

static struct rt_tensor dense(void *data, enum dtype d, int n, const int64_t *size)
{
    struct rt_tensor t = {.data = data, .dtype = (uint8_t)d, .n = (uint8_t)n};
    int64_t step = 1;

    for (int i = n - 1; i >= 0; i--) {
        t.size[i] = size[i];
        t.stride[i] = step;
        step *= size[i];
    }
    return t;
}

/* Every float16 goes to float and back; every float near one rounds to the nearest. */
static void halves(void **state)
{
    (void)state;
    for (uint32_t h = 0; h < 0x10000; h++) {
        float f = elem_f16((uint16_t)h);

        if (isnan(f)) {
            assert_true((h & 0x7c00) == 0x7c00 && (h & 0x3ff) != 0);
            continue;
        }
        assert_int_equal(elem_to_f16(f), h);
        if ((h & 0x7fff) < 0x7bff) { /* a little beside the middle of two neighbors */
            float middle = (f + elem_f16((uint16_t)(h + 1))) / 2;

            assert_int_equal(elem_to_f16(nextafterf(middle, f)), h);
            assert_int_equal(elem_to_f16(nextafterf(middle, signbit(f) ? -INFINITY : INFINITY)),
                             h + 1);
            assert_int_equal(elem_to_f16(middle), h & 1 ? h + 1 : h); /* even */
        }
    }
    assert_int_equal(elem_to_f16(65520.f), 0x7c00);
    assert_int_equal(elem_to_f16(65519.f), 0x7bff);
    assert_int_equal(elem_to_f16(NAN) & 0x7fff, 0x7e00);
    assert_int_equal(elem_to_bf16(1.00390625f), 0x3f80);
    assert_int_equal(elem_to_bf16(1.01171875f), 0x3f82);
    assert_int_equal(elem_to_bf16(NAN), 0x7fc0);
}

static void copies(void **state)
{
    float x[6] = {1.5f, -2, 3, 1e30f, -0.f, 300}, y[6];
    int16_t i[6];
    uint8_t b[6];
    struct rt_tensor from = dense(x, DTYPE_F32, 2, (int64_t[]){2, 3});
    struct rt_tensor across = {
        .data = y, .dtype = DTYPE_F32, .n = 2, .size = {2, 3}, .stride = {1, 2}};
    struct rt_value arg = {.kind = RT_TENSOR, .tensor = &from};
    char error[80];
    struct rt_call c = {.kernel = kernel_at(OP_KERNEL_copy),
                        .arg = &arg,
                        .n_arg = 1,
                        .out = &across,
                        .n_out = 1,
                        .error = error,
                        .error_size = sizeof(error)};

    (void)state;
    assert_true(kernel_run(&c));
    assert_true(y[0] == 1.5f && y[1] == 1e30f && y[2] == -2 && y[5] == 300);
    across = dense(i, DTYPE_I16, 2, (int64_t[]){2, 3});
    assert_true(kernel_run(&c));
    assert_true(i[0] == 1 && i[1] == -2 && i[5] == 300);
    across = dense(b, DTYPE_B8, 2, (int64_t[]){2, 3});
    assert_true(kernel_run(&c));
    assert_true(b[0] == 1 && b[4] == 0 && b[5] == 1);
    across.dtype = DTYPE_F8E5M2; /* what is too large is infinity */
    assert_true(kernel_run(&c));
    assert_memory_equal(b, ((uint8_t[]){0x3e, 0xc0, 0x42, 0x7c, 0x80, 0x5d}), sizeof(b));
    across.dtype = DTYPE_F8E4M3FN; /* or the largest number */
    assert_true(kernel_run(&c));
    assert_memory_equal(b, ((uint8_t[]){0x3c, 0xc0, 0x44, 0x7e, 0x80, 0x79}), sizeof(b));
    across.dtype = DTYPE_F8E8M0FNU;
    assert_false(kernel_run(&c));
    assert_string_equal(error, "no kernel converts float32 to float8_e8m0fnu");
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--calls") == 0)
        return kernel_calls(argv[2], argv[3]);

    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves),
        cmocka_unit_test(copies),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
