/* The inner loops of point.def. Included once for each set of instructions (hot_base.c,
 * hot_avx2.c): everything is static. */
#include <complex.h>
#undef complex /* a name of a kernel */

#include "run/kernel/elem.h"
#include "run/kernel/hot.h"
#include "run/kernel/hot_math.h"
#include "run/kernel/vector.h"

/* ---- what the rows call ---- */

struct c64 {
    float re, im;
};
struct c128 {
    double re, im;
};

#define WRAP(a, op, b) ((int64_t)((uint64_t)(a)op(uint64_t)(b)))

#define COMPLEX(type, real, sine, cosine, length)                                                  \
    HOT struct type type##_add(struct type a, struct type b)                                       \
    {                                                                                              \
        return (struct type){a.re + b.re, a.im + b.im};                                            \
    }                                                                                              \
    HOT struct type type##_scale(real s, struct type a)                                            \
    {                                                                                              \
        return (struct type){s * a.re, s * a.im};                                                  \
    }                                                                                              \
    HOT struct type type##_mul(struct type a, struct type b)                                       \
    {                                                                                              \
        return (struct type){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};                \
    }                                                                                              \
    HOT struct type type##_div(struct type a, struct type b)                                       \
    {                                                                                              \
        real x = b.re < 0 ? -b.re : b.re, y = b.im < 0 ? -b.im : b.im, s = x > y ? x : y;          \
        if (s == 0)                                                                                \
            return (struct type){a.re / s, a.im / s};                                              \
        real re = b.re / s, im = b.im / s, d = re * b.re + im * b.im;                              \
        return (struct type){(a.re * re + a.im * im) / d, (a.im * re - a.re * im) / d};            \
    }                                                                                              \
    HOT struct type type##_polar(real r, real angle)                                               \
    {                                                                                              \
        return (struct type){r * cosine(angle), r * sine(angle)};                                  \
    }                                                                                              \
    HOT struct type type##_sgn(struct type a)                                                      \
    {                                                                                              \
        real r = length(a.re, a.im);                                                               \
        return r == 0 ? (struct type){0, 0} : (struct type){a.re / r, a.im / r};                   \
    }
COMPLEX(c64, float, sinf, cosf, hypotf)
COMPLEX(c128, double, sin, cos, hypot)

/* What the C library has for complex numbers. */
#define OF_LIBRARY(type, real, name, fn)                                                           \
    HOT struct type type##_##name(struct type a)                                                   \
    {                                                                                              \
        real _Complex z;                                                                           \
        memcpy(&z, &a, sizeof(z));                                                                 \
        z = fn(z);                                                                                 \
        memcpy(&a, &z, sizeof(z));                                                                 \
        return a;                                                                                  \
    }
#define COMPLEX_FNS(type, real, sfx)                                                               \
    OF_LIBRARY(type, real, sqrt, csqrt##sfx)                                                       \
    OF_LIBRARY(type, real, log, clog##sfx)                                                         \
    OF_LIBRARY(type, real, sin, csin##sfx)                                                         \
    OF_LIBRARY(type, real, cos, ccos##sfx)                                                         \
    OF_LIBRARY(type, real, tanh, ctanh##sfx)                                                       \
    HOT struct type type##_inverse(struct type a)                                                  \
    {                                                                                              \
        return type##_div((struct type){1, 0}, a);                                                 \
    }                                                                                              \
    HOT struct type type##_sigmoid(struct type a)                                                  \
    {                                                                                              \
        struct type z = type##_polar(exp##sfx(-a.re), -a.im);                                      \
        return type##_inverse((struct type){1 + z.re, z.im});                                      \
    }                                                                                              \
    HOT struct type type##_lerp(struct type a, struct type b, struct type c)                       \
    {                                                                                              \
        struct type d = type##_add(b, type##_scale(-1, a)), rest = {1 - c.re, -c.im};              \
        return hypot##sfx(c.re, c.im) < (real)0.5                                                  \
                   ? type##_add(a, type##_mul(c, d))                                               \
                   : type##_add(b, type##_scale(-1, type##_mul(d, rest)));                         \
    }                                                                                              \
    HOT struct type type##_pow(struct type a, struct type b)                                       \
    {                                                                                              \
        real _Complex x, y;                                                                        \
        if (b.re == 0 && b.im == 0)                                                                \
            return (struct type){1, 0};                                                            \
        memcpy(&x, &a, sizeof(x));                                                                 \
        memcpy(&y, &b, sizeof(y));                                                                 \
        x = cpow##sfx(x, y);                                                                       \
        memcpy(&a, &x, sizeof(x));                                                                 \
        return a;                                                                                  \
    }
COMPLEX_FNS(c64, float, f)
COMPLEX_FNS(c128, double, )

/* Division by 0 gives 0: torch raises an exception, which is no answer either. */
HOT int64_t int_trunc(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? WRAP(0, -, a) : a / b;
}

HOT int64_t int_floor(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return int_trunc(a, b);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

HOT int64_t int_mod(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

HOT int64_t int_pow(int64_t a, int64_t b)
{
    uint64_t y = 1, x = (uint64_t)a;

    if (b < 0)
        return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    for (; b > 0; b >>= 1, x *= x)
        if (b & 1)
            y *= x;
    return (int64_t)y;
}

HOT int64_t int_gcd(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? 0 - (uint64_t)a : (uint64_t)a, y = b < 0 ? 0 - (uint64_t)b : (uint64_t)b;

    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (int64_t)x;
}

HOT int64_t int_lcm(int64_t a, int64_t b)
{
    int64_t by = int_gcd(a, b), x = by == 0 ? 0 : WRAP(int_trunc(a, by), *, b);

    return x < 0 ? WRAP(0, -, x) : x;
}

HOT int64_t int_clamp(int64_t a, const struct point_params *p)
{
    int64_t low = a < p->i[0] ? p->i[0] : a;

    return low > p->i[1] ? p->i[1] : low;
}

/* rounding_mode: 0 none, 1 trunc, 2 floor. */
#define FLOAT_FNS(T, sfx, w)                                                                       \
    HOT T w##_floor_div(T a, T b)                                                                  \
    {                                                                                              \
        if (b == 0)                                                                                \
            return a / b;                                                                          \
        T mod = fmod##sfx(a, b), div = (a - mod) / b;                                              \
        if (mod != 0 && (b < 0) != (mod < 0))                                                      \
            div -= 1;                                                                              \
        if (div == 0)                                                                              \
            return copysign##sfx(0, a / b);                                                        \
        T whole = floor##sfx(div);                                                                 \
        return div - whole > (T)0.5 ? whole + 1 : whole;                                           \
    }                                                                                              \
    HOT T w##_div_mode(T a, T b, int64_t mode)                                                     \
    {                                                                                              \
        return mode == 0 ? a / b : mode == 1 ? trunc##sfx(a / b) : w##_floor_div(a, b);            \
    }                                                                                              \
    HOT T w##_mod(T a, T b)                                                                        \
    {                                                                                              \
        T r = fmod##sfx(a, b);                                                                     \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                           \
    }                                                                                              \
    HOT T w##_lerp(T a, T b, T c)                                                                  \
    {                                                                                              \
        return fabs##sfx(c) < (T)0.5 ? a + c * (b - a) : b - (b - a) * (1 - c);                    \
    }                                                                                              \
    HOT T w##_gelu(T a)                                                                            \
    {                                                                                              \
        return a * (T)0.5 * (1 + w##_erf(a * (T)0.7071067811865476));                              \
    }                                                                                              \
    HOT T w##_gelu_tanh(T a)                                                                       \
    {                                                                                              \
        T inner = (T)0.7978845608028654 * (a + (T)0.044715 * a * a * a);                           \
        return (T)0.5 * a * (1 + w##_tanh(inner));                                                 \
    }                                                                                              \
    HOT T w##_gelu_tanh_backward(T g, T x)                                                         \
    {                                                                                              \
        const T k = (T)0.7978845608028654, q = (T)0.044715;                                        \
        T t = w##_tanh(k * (x + q * x * x * x));                                                   \
        T left = (T)0.5 * (1 + t), right = (T)0.5 * x * (1 - t * t);                               \
        return g * (left + right * (k * (1 + 3 * q * x * x)));                                     \
    }                                                                                              \
    HOT T w##_gelu_backward(T g, T x)                                                              \
    {                                                                                              \
        T cdf = (T)0.5 * (1 + w##_erf(x * (T)0.7071067811865476));                                 \
        T pdf = w##_exp(x * x * (T)-0.5) * (T)0.3989422804014327;                                  \
        return g * (cdf + x * pdf);                                                                \
    }                                                                                              \
    HOT T w##_silu_backward(T g, T x)                                                              \
    {                                                                                              \
        T s = w##_sigmoid(x);                                                                      \
        return g * s * (1 + x * (1 - s));                                                          \
    }                                                                                              \
    HOT T w##_elu(T a, const struct point_params *p)                                               \
    {                                                                                              \
        T scale = (T)p->f[1];                                                                      \
        return a > 0 ? a * scale : expm1##sfx(a * (T)p->f[2]) * ((T)p->f[0] * scale);              \
    }                                                                                              \
    HOT T w##_softplus(T a, const struct point_params *p)                                          \
    {                                                                                              \
        T x = a * (T)p->f[0];                                                                      \
        return x > (T)p->f[1] ? a : log1p##sfx(w##_exp(x)) / (T)p->f[0];                           \
    }                                                                                              \
    HOT T w##_softplus_backward(T g, T x, const struct point_params *p)                            \
    {                                                                                              \
        T z = w##_exp(x * (T)p->f[0]);                                                             \
        return x * (T)p->f[0] > (T)p->f[1] ? g : g * z / (z + 1);                                  \
    }                                                                                              \
    HOT T w##_hardswish_backward(T g, T x)                                                         \
    {                                                                                              \
        return x <= -3 ? 0 : x < 3 ? g * (x / 3 + (T)0.5) : g;                                     \
    }                                                                                              \
    HOT T w##_clamp(T a, const struct point_params *p)                                             \
    {                                                                                              \
        return w##_min(w##_max(a, (T)p->f[0]), (T)p->f[1]);                                        \
    }
FLOAT_FNS(float, f, f32)
FLOAT_FNS(double, , f64)

/* Of losses, p->f[0] is 1, or 1 / the number of elements if their mean is taken. */
#define MORE_FLOAT_FNS(T, sfx, w)                                                                  \
    HOT T w##_logaddexp(T a, T b)                                                                  \
    {                                                                                              \
        T most = w##_max(a, b);                                                                    \
        return a == b && fabs##sfx(a) == (T)INFINITY                                               \
                   ? a                                                                             \
                   : most + log1p##sfx(w##_exp(-fabs##sfx(a - b)));                                \
    }                                                                                              \
    HOT T w##_logaddexp2(T a, T b)                                                                 \
    {                                                                                              \
        T most = w##_max(a, b), part = log1p##sfx(exp2##sfx(-fabs##sfx(a - b)));                   \
        return a == b && fabs##sfx(a) == (T)INFINITY ? a : most + part * (T)1.4426950408889634;    \
    }                                                                                              \
    HOT T w##_logit(T a, const struct point_params *p)                                             \
    {                                                                                              \
        T low = (T)p->f[0], x = p->f[0] < 0 ? a : a < low ? low : a > 1 - low ? 1 - low : a;       \
        return x == 1 ? (T)INFINITY : w##_log(x / (1 - x));                                        \
    }                                                                                              \
    HOT T w##_logit_backward(T g, T x, const struct point_params *p)                               \
    {                                                                                              \
        T low = p->f[0] < 0 ? 0 : (T)p->f[0], outside = p->f[0] < 0 ? (T)NAN : 0;                  \
        T d = x == 0 || x == 1 ? g * (T)INFINITY : g / (x * (1 - x));                              \
        return x < low || x > 1 - low ? outside : d;                                               \
    }                                                                                              \
    HOT T w##_mish(T a)                                                                            \
    {                                                                                              \
        return a * w##_tanh(log1p##sfx(w##_exp(a)));                                               \
    }                                                                                              \
    HOT T w##_mish_backward(T g, T x)                                                              \
    {                                                                                              \
        T t = w##_tanh(log1p##sfx(w##_exp(x)));                                                    \
        return g * (t + x * w##_sigmoid(x) * (1 - t * t));                                         \
    }                                                                                              \
    HOT T w##_log_sigmoid_backward(T g, T x)                                                       \
    {                                                                                              \
        T z = w##_exp(-fabs##sfx(x)), rest = z / (1 + z);                                          \
        return g * (x < 0 ? 1 - rest : rest);                                                      \
    }                                                                                              \
    HOT T w##_selu(T a)                                                                            \
    {                                                                                              \
        const T scale = (T)1.0507009873554805;                                                     \
        return a > 0 ? a * scale : expm1##sfx(a) * ((T)1.6732632423543772 * scale);                \
    }                                                                                              \
    HOT T w##_celu(T a, const struct point_params *p)                                              \
    {                                                                                              \
        return a > 0 ? a : expm1##sfx(a * (T)(1 / p->f[0])) * (T)p->f[0];                          \
    }                                                                                              \
    HOT T w##_softshrink(T a, const struct point_params *p)                                        \
    {                                                                                              \
        T by = (T)p->f[0];                                                                         \
        return a > by ? a - by : a < -by ? a + by : a * 0;                                         \
    }                                                                                              \
    HOT T w##_nan_to_num(T a, const struct point_params *p)                                        \
    {                                                                                              \
        return a != a              ? (T)p->f[0]                                                    \
               : a == (T)INFINITY  ? (T)p->f[1]                                                    \
               : a == -(T)INFINITY ? (T)p->f[2]                                                    \
                                   : a;                                                            \
    }                                                                                              \
    HOT T w##_huber_backward(T g, T x, const struct point_params *p)                               \
    {                                                                                              \
        T mean = (T)p->f[0], most = (T)p->f[1];                                                    \
        return x <= -most ? -mean * g * most : x >= most ? mean * g * most : mean * x * g;         \
    }                                                                                              \
    HOT T w##_smooth_l1_backward(T g, T x, const struct point_params *p)                           \
    {                                                                                              \
        T mean = (T)p->f[0], beta = (T)p->f[1];                                                    \
        return x <= -beta ? -mean * g : x >= beta ? mean * g : mean * x * g / beta;                \
    }                                                                                              \
    HOT T w##_soft_margin_backward(T g, T x, T y, const struct point_params *p)                    \
    {                                                                                              \
        T z = w##_exp(-y * x);                                                                     \
        return -(T)p->f[0] * y * g * z / (z + 1);                                                  \
    }                                                                                              \
    HOT T w##_bce_backward(T g, T x, T y)                                                          \
    {                                                                                              \
        T by = (1 - x) * x;                                                                        \
        return g * (x - y) / (by < (T)1e-12f ? (T)1e-12f : by);                                    \
    }
MORE_FLOAT_FNS(float, f, f32)
MORE_FLOAT_FNS(double, , f64)

/* ---- of distributions: computed in double ---- */

HOT double f64_lgamma(double a)
{
    int sign;

    return a == -(double)INFINITY ? (double)INFINITY : lgamma_r(a, &sign);
}

/* Numbers below 10 are moved up, where the series holds. */
HOT double f64_digamma(double a)
{
    double up = 0, left = 0;

    if (a == 0)
        return copysign((double)INFINITY, -a);
    if (a < 0) {
        double whole = floor(a);

        if (whole == a)
            return (double)NAN;
        left = -M_PI / tan(M_PI * (a - whole));
        a = 1 - a;
    }
    for (; a < 10; a++)
        up -= 1 / a;
    double z = 1 / (a * a);
    double tail = z * (1. / 12 - z * (1. / 120 - z * (1. / 252 - z * (1. / 240 - z * (1. / 132)))));
    return left + up + log(a) - 0.5 / a - tail;
}

/* A first guess, then Newton's method. */
HOT double f64_erfinv(double a)
{
    if (!(a > -1 && a < 1))
        return a == 1 || a == -1 ? a * (double)INFINITY : (double)NAN;
    double w = log1p(-a * a), u = 2 / (M_PI * 0.147) + w / 2;
    double x = copysign(sqrt(fmax(sqrt(u * u - w / 0.147) - u, 0)), a);

    for (int i = 0; i < 3; i++) {
        double off = fabs(a) < 0.5 ? erf(x) - a : copysign(1, a) * (1 - fabs(a) - erfc(fabs(x)));

        off /= M_2_SQRTPI * exp(-x * x);
        x -= off / (1 + x * off);
    }
    return x;
}

/* 10 to the power of p->i[0] */
HOT double f64_decimals(double a, const struct point_params *p)
{
    double by = exp10(fabs((double)p->i[0]));

    return p->i[0] < 0 ? nearbyint(a / by) * by : nearbyint(a * by) / by;
}

HOT float f32_decimals(float a, const struct point_params *p)
{
    float by = (float)exp10(fabs((double)p->i[0]));

    return p->i[0] < 0 ? nearbyintf(a / by) * by : nearbyintf(a * by) / by;
}

/* ---- the loops ---- */

#define POINT_FN(name, kind)                                                                       \
    static void point_##name##_##kind(const struct point_params *params, void *out,                \
                                      const void *const *in, int64_t n)
#define IN(type, name, i) type name = ((const type *)at[i])[k]

#define P1(name, kind, O, A, value) POINT_FN(name, kind) POINT_LOOP(1, O, IN(A, a, 0), value)
#define P2(name, kind, O, A, B, value)                                                             \
    POINT_FN(name, kind) POINT_LOOP(2, O, IN(A, a, 0); IN(B, b, 1), value)
#define P3(name, kind, O, A, B, C, value)                                                          \
    POINT_FN(name, kind) POINT_LOOP(3, O, IN(A, a, 0); IN(B, b, 1); IN(C, c, 2), value)
#define P4(name, kind, O, A, B, C, D, value)                                                       \
    POINT_FN(name, kind)                                                                           \
    POINT_LOOP(4, O, IN(A, a, 0); IN(B, b, 1); IN(C, c, 2); IN(D, d, 3), value)
/* Pointers are copied first: for all that a compiler knows, a result of bytes may lie over them. */
#define POINT_LOOP(n_in, o_type, operands, value)                                                  \
    {                                                                                              \
        const struct point_params pv = *params, *const p = &pv;                                    \
        const void *at[n_in];                                                                      \
        o_type *o = out;                                                                           \
        (void)p;                                                                                   \
        for (int i = 0; i < (n_in); i++)                                                           \
            at[i] = in[i];                                                                         \
        VEC_LOOP for (int64_t k = 0; k < n; k++)                                                   \
        {                                                                                          \
            operands;                                                                              \
            o_type v = value;                                                                      \
            o[k] = v;                                                                              \
        }                                                                                          \
    }
#include "run/kernel/point.def"
#undef P1
#undef P2
#undef P3
#undef P4

/* By kernel and kind. */
#define POINT_ENTRY(name, kind) .fn[OP_KERNEL_##name][kind] = point_##name##_##kind,
#define P1(name, kind, ...) POINT_ENTRY(name, kind)
#define P2(name, kind, ...) POINT_ENTRY(name, kind)
#define P3(name, kind, ...) POINT_ENTRY(name, kind)
#define P4(name, kind, ...) POINT_ENTRY(name, kind)
static const struct {
    point_fn fn[POINT_END][K_END];
} point_table = {
#include "run/kernel/point.def"
};
#undef P1
#undef P2
#undef P3
#undef P4
