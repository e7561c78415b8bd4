/* The functions that loops vectorize, against the C library in double: within 2 ulp. Every 5,917th
 * float is tried, and the numbers at which functions change their form. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/kernel/hot_math.h"

struct function {
    const char *name;
    float (*ours)(float x);
    double (*exact)(double x);
    bool flushes; /* what has no normal float may be 0 */
};

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* Of the distance between two floats near `exact`. */
static double ulps(float got, double exact)
{
    float near = (float)exact;

    if (isnan(exact) || isnan(got))
        return isnan(exact) && isnan(got) ? 0 : INFINITY;
    if (isinf(near) || isinf(got))
        return near == got ? 0 : fabs(exact) < (double)0x1.fffffep127f ? INFINITY : 1;
    int e = 0;
    frexp(exact, &e);
    return fabs((double)got - exact) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static void check(const struct function *f, float x)
{
    double exact = f->exact((double)x), off = ulps(f->ours(x), exact);

    if (off > 2 && !(f->flushes && fabs(exact) < 0x1p-126 && f->ours(x) == 0))
        fail_msg("%s(%a) is %a: %g ulp off", f->name, (double)x, (double)f->ours(x), off);
}

static void close_to_exact(void **state)
{
    const struct function all[] = {{"exp", f32_exp, exp, false},
                                   {"log", f32_log, log, false},
                                   {"tanh", f32_tanh, tanh, false},
                                   {"erf", f32_erf, erf, false},
                                   {"sigmoid", f32_sigmoid, sigmoid, true}};
    const float special[] = {0,         -0.f, 1,         -1,    0.625f, INFINITY,
                             -INFINITY, NAN,  0x1p-149f, 88.8f, -104};

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        for (size_t k = 0; k < sizeof(special) / sizeof(*special); k++)
            check(&all[i], special[k]);
        for (uint64_t u = 0; u <= UINT32_MAX; u += 61 * 97)
            check(&all[i], bits_float((uint32_t)u));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(close_to_exact)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
