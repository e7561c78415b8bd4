/* Elements: loading, storing, converting. Every inner loop is plain, so that compilers vectorize
 * it; 16-bit floats are converted by integer operations for that reason. */
#include "run/kernel/elem.h"

#include "run/kernel/vector.h"

const uint8_t kind_bytes[K_END + 1] = {1, 8, 4, 8, 8, 16, 0};

enum kind kind_of(enum dtype d)
{
    switch (d) {
    case DTYPE_F32:
    case DTYPE_F16:
    case DTYPE_BF16:
    case DTYPE_F8E4M3FN:
    case DTYPE_F8E5M2: return K_F32;
    case DTYPE_F64: return K_F64;
    case DTYPE_I64:
    case DTYPE_I32:
    case DTYPE_I16:
    case DTYPE_I8:
    case DTYPE_U8:
    case DTYPE_U16:
    case DTYPE_U32:
    case DTYPE_U64: return K_I64;
    case DTYPE_B8: return K_BOOL;
    case DTYPE_C64: return K_C64;
    case DTYPE_C128: return K_C128;
    default: return K_END;
    }
}

/* ---- 16-bit floats ---- */

static inline float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13, u;
    float f;

    memcpy(&f, &rest, sizeof(f));
    f *= 0x1p112f; /* the difference of the exponents' offsets; also right for denormals */
    memcpy(&u, &f, sizeof(u));
    u = (h & 0x7c00) == 0x7c00 ? rest | 0x7f800000 : u;
    u |= sign;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint16_t f32_to_f16(float f)
{
    uint32_t u, sign, small, big, out;
    float g;

    memcpy(&u, &f, sizeof(u));
    sign = u >> 16 & 0x8000;
    u &= 0x7fffffff;
    memcpy(&g, &u, sizeof(g));
    g += 0.5f; /* a denormal of float16 is a multiple of 2^-24, the last bit of numbers near 0.5 */
    memcpy(&small, &g, sizeof(small));
    small -= 0x3f000000;
    big = (u + 0xfff + (u >> 13 & 1) - (112u << 23)) >> 13;
    out = u < 0x38800000 ? small : big;
    out = u >= 0x47800000 ? (u > 0x7f800000 ? 0x7e00 : 0x7c00) : out;
    return (uint16_t)(out | sign);
}

float elem_f16(uint16_t h)
{
    return f16_to_f32(h);
}

uint16_t elem_to_f16(float f)
{
    return f32_to_f16(f);
}

static inline uint16_t f32_to_bf16(float f)
{
    uint32_t u, out;

    memcpy(&u, &f, sizeof(u));
    out = (u + 0x7fff + (u >> 16 & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : out);
}

/* ---- 8-bit floats ---- */

/* A float16 with fewer bits. */
static inline float e5m2_to_f32(uint8_t h)
{
    return f16_to_f32((uint16_t)(h << 8));
}

/* Of `low` bits of the fraction, from the smallest exponent on: to the nearest, ties to even. */
static inline uint32_t narrowed(uint32_t u, uint32_t low, uint32_t exponent)
{
    uint32_t least = exponent << 23, shift = 23 - low;
    float g, unit;

    if (u >= least)
        return (u + (1u << (shift - 1)) - 1 + (u >> shift & 1) - ((exponent - 1) << 23)) >> shift;
    memcpy(&g, &u, sizeof(g)); /* a denormal: adding a number that has its last bit there rounds */
    uint32_t one = (exponent - 1 + 24 - low) << 23;
    memcpy(&unit, &one, sizeof(unit));
    g += unit;
    memcpy(&u, &g, sizeof(u));
    return u - one;
}

static inline uint8_t f32_to_e5m2(float f)
{
    uint32_t u, out;

    memcpy(&u, &f, sizeof(u));
    uint32_t sign = u >> 24 & 0x80;
    u &= 0x7fffffff;
    out = u > 0x7f800000 ? 0x7f : u >= 0x47800000 ? 0x7c : narrowed(u, 2, 113);
    return (uint8_t)(out | sign);
}

/* There is no infinity: what is too large is the largest number, as in torch 2.13. */
static inline float e4m3_to_f32(uint8_t h)
{
    uint32_t sign = (uint32_t)(h & 0x80) << 24, rest = (uint32_t)(h & 0x7f) << 20, u;
    float f;

    memcpy(&f, &rest, sizeof(f));
    f *= 0x1p120f;
    memcpy(&u, &f, sizeof(u));
    u = ((h & 0x7f) == 0x7f ? 0x7fc00000 : u) | sign;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint8_t f32_to_e4m3(float f)
{
    uint32_t u, out;

    memcpy(&u, &f, sizeof(u));
    uint32_t sign = u >> 24 & 0x80;
    u &= 0x7fffffff;
    out = u > 0x7f800000 ? 0x7f : u >= 0x43e00000 ? 0x7e : narrowed(u, 3, 121);
    return (uint8_t)(out | sign);
}

/* ---- loading and storing ---- */

/* The loop twice: elements side by side are worth code of their own. */
#define EACH(n, stride, body)                                                                      \
    do {                                                                                           \
        if ((stride) == 1) {                                                                       \
            const int64_t s = 1;                                                                   \
            VEC_LOOP for (int64_t i = 0; i < (n); i++) body;                                       \
        } else {                                                                                   \
            const int64_t s = (stride);                                                            \
            for (int64_t i = 0; i < (n); i++)                                                      \
                body;                                                                              \
        }                                                                                          \
    } while (0)

#define LOAD(reg_type, mem_type, convert)                                                          \
    do {                                                                                           \
        reg_type *r = reg;                                                                         \
        const mem_type *m = from;                                                                  \
        EACH(n, stride, r[i] = convert(m[i * s]));                                                 \
    } while (0)

#define STORE(reg_type, mem_type, convert)                                                         \
    do {                                                                                           \
        const reg_type *r = reg;                                                                   \
        mem_type *m = to;                                                                          \
        EACH(n, stride, m[i * s] = (mem_type)convert(r[i]));                                       \
    } while (0)

void elem_load(void *reg, const void *from, enum dtype d, int64_t stride, int64_t n)
{
    switch (d) {
    case DTYPE_F16: LOAD(float, uint16_t, f16_to_f32); break;
    case DTYPE_BF16: LOAD(float, uint16_t, elem_bf16); break;
    case DTYPE_F8E4M3FN: LOAD(float, uint8_t, e4m3_to_f32); break;
    case DTYPE_F8E5M2: LOAD(float, uint8_t, e5m2_to_f32); break;
    case DTYPE_I32: LOAD(int64_t, int32_t, ); break;
    case DTYPE_I16: LOAD(int64_t, int16_t, ); break;
    case DTYPE_I8: LOAD(int64_t, int8_t, ); break;
    case DTYPE_U8: LOAD(int64_t, uint8_t, ); break;
    case DTYPE_U16: LOAD(int64_t, uint16_t, ); break;
    case DTYPE_U32: LOAD(int64_t, uint32_t, ); break;
    case DTYPE_B8: LOAD(uint8_t, uint8_t, 0 !=); break;
    default: {
        size_t bytes = kind_bytes[kind_of(d)];

        elem_move(reg, 1, from, stride, bytes, n);
    }
    }
}

void elem_store(void *to, const void *reg, enum dtype d, int64_t stride, int64_t n)
{
    switch (d) {
    case DTYPE_F16: STORE(float, uint16_t, f32_to_f16); break;
    case DTYPE_BF16: STORE(float, uint16_t, f32_to_bf16); break;
    case DTYPE_F8E4M3FN: STORE(float, uint8_t, f32_to_e4m3); break;
    case DTYPE_F8E5M2: STORE(float, uint8_t, f32_to_e5m2); break;
    case DTYPE_I32:
    case DTYPE_U32: STORE(int64_t, uint32_t, ); break;
    case DTYPE_I16:
    case DTYPE_U16: STORE(int64_t, uint16_t, ); break;
    case DTYPE_I8:
    case DTYPE_U8: STORE(int64_t, uint8_t, ); break;
    default: elem_move(to, stride, reg, 1, kind_bytes[kind_of(d)], n);
    }
}

void elem_round(void *reg, enum dtype d, int64_t n)
{
#define ROUND(type, there, back)                                                                   \
    do {                                                                                           \
        type *r = reg;                                                                             \
        VEC_LOOP for (int64_t i = 0; i < n; i++) r[i] = back(there(r[i]));                         \
    } while (0)
    switch (d) {
    case DTYPE_F16: ROUND(float, f32_to_f16, f16_to_f32); break;
    case DTYPE_BF16: ROUND(float, f32_to_bf16, elem_bf16); break;
    case DTYPE_F8E4M3FN: ROUND(float, f32_to_e4m3, e4m3_to_f32); break;
    case DTYPE_F8E5M2: ROUND(float, f32_to_e5m2, e5m2_to_f32); break;
    case DTYPE_I32: ROUND(int64_t, (int32_t), ); break;
    case DTYPE_I16: ROUND(int64_t, (int16_t), ); break;
    case DTYPE_I8: ROUND(int64_t, (int8_t), ); break;
    case DTYPE_U8: ROUND(int64_t, (uint8_t), ); break;
    case DTYPE_U16: ROUND(int64_t, (uint16_t), ); break;
    case DTYPE_U32: ROUND(int64_t, (uint32_t), ); break;
    default: break;
    }
}

struct pair {
    uint64_t a, b;
};

void elem_move(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t bytes,
               int64_t n)
{
    if (to_stride == 1 && from_stride == 1) {
        if (n > 0)
            memcpy(to, from, (size_t)n * bytes);
        return;
    }
#define MOVE(type)                                                                                 \
    do {                                                                                           \
        type *t = to;                                                                              \
        const type *f = from;                                                                      \
        EACH(n, to_stride, t[i * s] = f[i * from_stride]);                                         \
    } while (0)
    switch (bytes) {
    case 1: MOVE(uint8_t); break;
    case 2: MOVE(uint16_t); break;
    case 4: MOVE(uint32_t); break;
    case 8: MOVE(uint64_t); break;
    default: MOVE(struct pair); break;
    }
}

void elem_fill(void *reg, const void *from, size_t bytes, int64_t n)
{
    elem_move(reg, 1, from, 0, bytes, n);
}

/* ---- kinds ---- */

/* Out of the range of int64_t, the result is what x86 gives, in C and for vectors alike. */
static inline int64_t to_int(double x)
{
    return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN;
}

#define CONVERT(to_type, from_type, value)                                                         \
    do {                                                                                           \
        to_type *t = to;                                                                           \
        const from_type *f = from;                                                                 \
        VEC_LOOP for (int64_t i = 0; i < n; i++) t[i] = value;                                     \
    } while (0)

/* To a number, to a pair; from a number, from a pair. */
#define FROM_EACH(to_type, cast)                                                                   \
    switch (from_kind) {                                                                           \
    case K_BOOL: CONVERT(to_type, uint8_t, (to_type)f[i]); break;                                  \
    case K_I64: CONVERT(to_type, int64_t, (to_type)f[i]); break;                                   \
    case K_F32: CONVERT(to_type, float, (to_type)cast(f[i])); break;                               \
    case K_F64: CONVERT(to_type, double, (to_type)cast(f[i])); break;                              \
    case K_C64: CONVERT(to_type, float, (to_type)cast(f[2 * i])); break;                           \
    case K_C128: CONVERT(to_type, double, (to_type)cast(f[2 * i])); break;                         \
    default: break;                                                                                \
    }

#define CONVERT_PAIR(to_type, from_type, real, imag)                                               \
    do {                                                                                           \
        to_type *t = to;                                                                           \
        const from_type *f = from;                                                                 \
        VEC_LOOP for (int64_t i = 0; i < n; i++)                                                   \
        {                                                                                          \
            t[2 * i] = (to_type)real;                                                              \
            t[2 * i + 1] = (to_type)imag;                                                          \
        }                                                                                          \
    } while (0)

#define PAIR_FROM_EACH(to_type)                                                                    \
    switch (from_kind) {                                                                           \
    case K_BOOL: CONVERT_PAIR(to_type, uint8_t, f[i], 0); break;                                   \
    case K_I64: CONVERT_PAIR(to_type, int64_t, f[i], 0); break;                                    \
    case K_F32: CONVERT_PAIR(to_type, float, f[i], 0); break;                                      \
    case K_F64: CONVERT_PAIR(to_type, double, f[i], 0); break;                                     \
    case K_C64: CONVERT_PAIR(to_type, float, f[2 * i], f[2 * i + 1]); break;                       \
    case K_C128: CONVERT_PAIR(to_type, double, f[2 * i], f[2 * i + 1]); break;                     \
    default: break;                                                                                \
    }

static void to_bool(uint8_t *to, const void *from, enum kind from_kind, int64_t n)
{
    switch (from_kind) {
    case K_I64: CONVERT(uint8_t, int64_t, f[i] != 0); break;
    case K_F32: CONVERT(uint8_t, float, f[i] != 0); break;
    case K_F64: CONVERT(uint8_t, double, f[i] != 0); break;
    case K_C64: CONVERT(uint8_t, float, (f[2 * i] != 0) | (f[2 * i + 1] != 0)); break;
    case K_C128: CONVERT(uint8_t, double, (f[2 * i] != 0) | (f[2 * i + 1] != 0)); break;
    default: break;
    }
}

void elem_convert(void *to, enum kind kind, const void *from, enum kind from_kind, int64_t n)
{
    if (kind == from_kind) {
        if (to != from && n > 0)
            memcpy(to, from, (size_t)n * kind_bytes[kind]);
        return;
    }
    switch (kind) {
    case K_BOOL: to_bool(to, from, from_kind, n); break;
    case K_I64: FROM_EACH(int64_t, to_int); break;
    case K_F32: FROM_EACH(float, ); break;
    case K_F64: FROM_EACH(double, ); break;
    case K_C64: PAIR_FROM_EACH(float); break;
    case K_C128: PAIR_FROM_EACH(double); break;
    default: break;
    }
}
