/* Functions of one number that compilers vectorize: no branches, no calls. The polynomials are
 * least-maximum fits made for this file; each function is within 2 ulp of the exact value, which
 * tests/unit/test_rt_math.c checks (sigmoid may be 0 where there is no normal float). The others
 * call the C library.
 */
#ifndef TUCK_RUN_KERNEL_HOT_MATH_H
#define TUCK_RUN_KERNEL_HOT_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#define HOT static inline __attribute__((always_inline, unused))

HOT float bits_float(uint32_t u)
{
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

HOT uint32_t float_bits(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    return u;
}

HOT float f32_exp(float x)
{
    float z = x < -104.f ? -104.f : x;

    z = z > 89.f ? 89.f : z;
    float n = z * 1.44269504f + 12582912.f; /* 1.5 * 2^23: adding it rounds to an integer */
    n -= 12582912.f;
    float r = z - n * 0.693145752f; /* few bits: the product is exact */
    r -= n * 1.42860677e-06f;
    float q = 0.000199182307f;
    q = q * r + 0.00139460477f;
    q = q * r + 0.00833326465f;
    q = q * r + 0.0416662704f;
    q = q * r + 0.166666669f;
    q = q * r + 0.500000008f;
    float y = q * (r * r) + r + 1.f;
    int32_t k = (int32_t)n, half = k >> 1; /* two factors, because 2^k may be out of range */
    y *= bits_float((uint32_t)(half + 127) << 23);
    y *= bits_float((uint32_t)(k - half + 127) << 23);
    return x != x ? x : y;
}

HOT float f32_log(float x)
{
    float z = x < 0x1p-126f ? x * 0x1p25f : x;
    float e = x < 0x1p-126f ? -25.f : 0.f;
    uint32_t u = float_bits(z) + (0x3f800000 - 0x3f3504f3);

    e += (float)((int32_t)(u >> 23) - 127);
    float f = bits_float((u & 0x7fffff) + 0x3f3504f3) - 1.f;
    float q = 0.0691334337f;
    q = q * f - 0.117880289f;
    q = q * f + 0.118728411f;
    q = q * f - 0.123846491f;
    q = q * f + 0.142187337f;
    q = q * f - 0.166692357f;
    q = q * f + 0.20002221f;
    q = q * f - 0.249999868f;
    q = q * f + 0.333333106f;
    float s = f * f;
    float y = q * f * s;
    y += e * 1.42860677e-06f;
    y -= 0.5f * s;
    y += f;
    y += e * 0.693145752f;
    y = x == INFINITY ? x : y;
    y = x == 0 ? -INFINITY : y;
    return x != x || x < 0 ? NAN : y;
}

HOT float f32_tanh(float x)
{
    float a = fabsf(x), t = x * x;
    float q = 0.00212295508f;
    q = q * t - 0.00815654106f;
    q = q * t + 0.0216927297f;
    q = q * t - 0.0539454052f;
    q = q * t + 0.133331962f;
    q = q * t - 0.333333306f;
    float small = q * t * x + x;
    float big = 1.f - 2.f / (f32_exp(2.f * a) + 1.f);
    big = copysignf(big, x);
    return a < 0.625f ? small : big;
}

HOT float f32_erf(float x)
{
    float a = fabsf(x), t = x * x;
    float q = -9.6801382e-06f;
    q = q * t + 0.000112705451f;
    q = q * t - 0.000848471154f;
    q = q * t + 0.00522107488f;
    q = q * t - 0.0268654458f;
    q = q * t + 0.112837827f;
    q = q * t - 0.376126385f;
    q = q * t + 0.128379167f;
    float small = q * x + x;
    float b = a > 4.f ? 4.f : a;
    float l = 9.37651257e-07f;
    l = l * b - 1.50211894e-05f;
    l = l * b + 8.31131609e-05f;
    l = l * b + 2.32808769e-05f;
    l = l * b - 0.00315338992f;
    l = l * b + 0.0234797966f;
    l = l * b - 0.106559047f;
    l = l * b - 0.634482733f;
    l = l * b - 1.12908689f;
    l = l * b + 0.000104441518f;
    float big = 1.f - f32_exp(l);
    big = copysignf(big, x);
    return a < 0.98f ? small : x != x ? x : big;
}

/* The same names for both widths. */
#define f64_exp exp
#define f64_log log
#define f64_tanh tanh
#define f64_erf erf

HOT float f32_sigmoid(float x)
{
    return 1.f / (1.f + f32_exp(-x));
}

HOT double f64_sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

/* A NaN wins, as in torch. */
HOT float f32_max(float a, float b)
{
    float m = a > b ? a : b;

    return a != a ? a : m;
}

HOT float f32_min(float a, float b)
{
    float m = a < b ? a : b;

    return a != a ? a : m;
}

HOT double f64_max(double a, double b)
{
    double m = a > b ? a : b;

    return a != a ? a : m;
}

HOT double f64_min(double a, double b)
{
    double m = a < b ? a : b;

    return a != a ? a : m;
}

#endif
