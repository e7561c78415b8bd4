/* Reductions in blocks that stay in the first cache: every source is read once, every destination
 * written once. */
#include <string.h>

#include "run/comm/reduce.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* gcc vectorizes these loops from -O3 on, clang from -O2. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3")
#endif

enum { BLOCK = 4096 }; /* bytes of an accumulator */

/* ---- 16-bit floating point, in float ---- */

static inline uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof(u));
    return u;
}

static inline float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline float from_bf16(uint16_t h)
{
    return float_of((uint32_t)h << 16);
}

static inline uint16_t to_bf16(float f)
{
    uint32_t u = bits_of(f);
    uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    return (uint16_t)((u & 0x7fffffff) > 0x7f800000 ? 0x7fc0 : rounded);
}

static inline float from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    uint32_t finite = bits_of(float_of(rest) * 0x1p112f); /* also right for subnormal numbers */
    return float_of(sign | ((h & 0x7c00) == 0x7c00 ? rest | 0x7f800000 : finite));
}

static inline uint16_t to_f16(float f)
{
    uint32_t u = bits_of(f), a = u & 0x7fffffff, sign = (u >> 16) & 0x8000;
    uint32_t normal = (a + 0xfff + ((a >> 13) & 1) - (112u << 23)) >> 13;
    uint32_t tiny = bits_of(float_of(a) + 0.5f) - 0x3f000000; /* the addition rounds */
    uint32_t huge = a > 0x7f800000 ? 0x7e00 : 0x7c00;
    return (uint16_t)(sign | (a >= 0x47800000 ? huge : a < 0x38800000 ? tiny : normal));
}

/* ---- One block: acc = a op b, and acc = acc op b ---- */

#define SUM(x, y) ((x) + (y))
#define PRODUCT(x, y) ((x) * (y))
#define LESS(x, y) ((y) < (x) ? (y) : (x))
#define MORE(x, y) ((y) > (x) ? (y) : (x))
/* Not a number wins, as in torch.minimum. */
#define FLESS(x, y) ((y) < (x) || (y) != (y) ? (y) : (x))
#define FMORE(x, y) ((y) > (x) || (y) != (y) ? (y) : (x))
#define BAND(x, y) ((x) & (y))
#define BOR(x, y) ((x) | (y))
#define BXOR(x, y) ((x) ^ (y))

#define LOOP(T, OP)                                                                                \
    do {                                                                                           \
        T *restrict d = acc;                                                                       \
        const T *restrict x = a, *restrict y = b;                                                  \
        if (x == NULL)                                                                             \
            for (size_t i = 0; i < n; i++)                                                         \
                d[i] = (T)OP(d[i], y[i]);                                                          \
        else                                                                                       \
            for (size_t i = 0; i < n; i++)                                                         \
                d[i] = (T)OP(x[i], y[i]);                                                          \
    } while (0)

/* a NULL: acc instead. Unsigned, so that sums wrap: signed integers have the same bits. */
#define INTEGER(NAME, U, S)                                                                        \
    static void NAME(void *acc, const void *a, const void *b, size_t n, enum comm_reduce op)       \
    {                                                                                              \
        switch (op) {                                                                              \
        case COMM_SUM: LOOP(U, SUM); break;                                                        \
        case COMM_PRODUCT: LOOP(U, PRODUCT); break;                                                \
        case COMM_MIN: LOOP(S, LESS); break;                                                       \
        case COMM_MAX: LOOP(S, MORE); break;                                                       \
        case COMM_BAND: LOOP(U, BAND); break;                                                      \
        case COMM_BOR: LOOP(U, BOR); break;                                                        \
        default: LOOP(U, BXOR); break;                                                             \
        }                                                                                          \
    }

INTEGER(run_i8, uint8_t, int8_t)
INTEGER(run_u8, uint8_t, uint8_t)
INTEGER(run_i16, uint16_t, int16_t)
INTEGER(run_u16, uint16_t, uint16_t)
INTEGER(run_i32, uint32_t, int32_t)
INTEGER(run_u32, uint32_t, uint32_t)
INTEGER(run_i64, uint64_t, int64_t)
INTEGER(run_u64, uint64_t, uint64_t)

#define FLOATING(NAME, T)                                                                          \
    static void NAME(void *acc, const void *a, const void *b, size_t n, enum comm_reduce op)       \
    {                                                                                              \
        switch (op) {                                                                              \
        case COMM_PRODUCT: LOOP(T, PRODUCT); break;                                                \
        case COMM_MIN: LOOP(T, FLESS); break;                                                      \
        case COMM_MAX: LOOP(T, FMORE); break;                                                      \
        default: LOOP(T, SUM); break;                                                              \
        }                                                                                          \
    }

FLOATING(run_f32, float)
FLOATING(run_f64, double)

/* 0 or 1 in each byte, whatever was there. */
static void run_bool(void *acc, const void *a, const void *b, size_t n, enum comm_reduce op)
{
    uint8_t *d = acc;
    const uint8_t *x = a != NULL ? a : acc, *y = b;
    for (size_t i = 0; i < n; i++) {
        uint8_t p = x[i] != 0, q = y[i] != 0;
        bool all = op == COMM_PRODUCT || op == COMM_MIN || op == COMM_BAND;
        d[i] = (uint8_t)(op == COMM_BXOR ? p ^ q : all ? p & q : p | q);
    }
}

/* acc is float here; a and b have 16 bits. */
#define HALF(NAME, FROM)                                                                           \
    static void NAME(void *acc, const void *a, const void *b, size_t n, enum comm_reduce op)       \
    {                                                                                              \
        float wide[BLOCK / sizeof(float)];                                                         \
        const uint16_t *y = b;                                                                     \
        if (a != NULL) {                                                                           \
            const uint16_t *x = a;                                                                 \
            float *d = acc;                                                                        \
            for (size_t i = 0; i < n; i++)                                                         \
                d[i] = FROM(x[i]);                                                                 \
        }                                                                                          \
        for (size_t i = 0; i < n; i++)                                                             \
            wide[i] = FROM(y[i]);                                                                  \
        run_f32(acc, NULL, wide, n, op);                                                           \
    }

HALF(run_f16, from_f16)
HALF(run_bf16, from_bf16)

typedef void block_fn(void *acc, const void *a, const void *b, size_t n, enum comm_reduce op);

static block_fn *block_of(enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F64:
    case DTYPE_C128: return run_f64;
    case DTYPE_F32:
    case DTYPE_C64: return run_f32;
    case DTYPE_F16:
    case DTYPE_C32: return run_f16;
    case DTYPE_BF16: return run_bf16;
    case DTYPE_I64: return run_i64;
    case DTYPE_I32: return run_i32;
    case DTYPE_I16: return run_i16;
    case DTYPE_I8: return run_i8;
    case DTYPE_U64: return run_u64;
    case DTYPE_U32: return run_u32;
    case DTYPE_U16: return run_u16;
    case DTYPE_U8: return run_u8;
    default: return run_bool;
    }
}

/* ---- The end of a block: the division of an average, rounding ---- */

static void divide(void *acc, size_t n, bool wide, double by)
{
    if (wide) {
        double *d = acc;
        for (size_t i = 0; i < n; i++)
            d[i] /= by;
    } else {
        float *d = acc, f = (float)by;
        for (size_t i = 0; i < n; i++)
            d[i] /= f;
    }
}

static void round_block(void *restrict to, const float *restrict acc, size_t n, bool bf16)
{
    uint16_t *d = to;
    if (bf16)
        for (size_t i = 0; i < n; i++)
            d[i] = to_bf16(acc[i]);
    else
        for (size_t i = 0; i < n; i++)
            d[i] = to_f16(acc[i]);
}

/* Stores around the caches are not ordered with the flag that says that they are there. */
static void fence(bool stream)
{
#if defined(__SSE2__)
    if (stream)
        _mm_sfence();
#endif
    (void)stream;
}

static void copy(void *dst, const void *src, size_t bytes, bool stream)
{
#if defined(__SSE2__)
    if (stream && bytes >= 256) {
        size_t head = -(uintptr_t)dst & 15;
        char *d = dst;
        const char *s = src;
        memcpy(d, s, head);
        d += head, s += head, bytes -= head;
        for (; bytes >= 64; bytes -= 64, d += 64, s += 64)
            for (int i = 0; i < 64; i += 16)
                _mm_stream_si128((__m128i *)(void *)(d + i),
                                 _mm_loadu_si128((const __m128i *)(const void *)(s + i)));
        memcpy(d, s, bytes);
        return;
    }
#endif
    (void)stream;
    if (bytes > 0 && dst != src)
        memcpy(dst, src, bytes);
}

void copy_run(void *dst, const void *src, size_t bytes, bool stream)
{
    copy(dst, src, bytes, stream);
    fence(stream);
}

/* ---- The sum of two float arrays, the usual case: no accumulator in between ---- */

/* Into two arrays that other ranks may have in their caches: up to here a block is read whole, then
 * written whole. */
enum { TWO_DIRECTLY = 32 << 10 };

typedef float vec __attribute__((vector_size(16), aligned(4), may_alias));

/* The sum goes to `d` and, if it is not NULL, to `e`. */
static void add_two(float *d, float *e, const float *x, const float *y, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        vec p[4];
        for (int k = 0; k < 4; k++)
            p[k] = *(const vec *)(x + i + 4 * k) + *(const vec *)(y + i + 4 * k);
        for (int k = 0; k < 4; k++)
            *(vec *)(d + i + 4 * k) = p[k];
        for (int k = 0; e != NULL && k < 4; k++)
            *(vec *)(e + i + 4 * k) = p[k];
    }
    for (; i < n; i++) {
        float sum = x[i] + y[i];
        d[i] = sum;
        if (e != NULL)
            e[i] = sum;
    }
}

/* The same around the caches, where the processor can. */
static void add_two_around(float *d, float *e, const float *x, const float *y, size_t n)
{
#if defined(__SSE2__)
    size_t head = (-(uintptr_t)d & 63) / sizeof(float), i = head;

    if (n >= 64 && (e == NULL || (((uintptr_t)d ^ (uintptr_t)e) & 63) == 0)) {
        add_two(d, e, x, y, head);
        for (; i + 16 <= n; i += 16) {
            __m128 p[4];
            for (int k = 0; k < 4; k++)
                p[k] = _mm_add_ps(_mm_loadu_ps(x + i + 4 * k), _mm_loadu_ps(y + i + 4 * k));
            for (int k = 0; k < 4; k++)
                _mm_stream_ps(d + i + 4 * k, p[k]);
            for (int k = 0; e != NULL && k < 4; k++)
                _mm_stream_ps(e + i + 4 * k, p[k]);
        }
        d += i, x += i, y += i, n -= i;
        e = e != NULL ? e + i : NULL;
    }
#endif
    add_two(d, e, x, y, n);
    fence(true);
}

static bool add_directly(const struct reduce_job *j)
{
    bool real = j->dtype == DTYPE_F32 || j->dtype == DTYPE_C64;
    size_t n = j->count << (j->dtype == DTYPE_C64);
    if (!real || j->reduce != COMM_SUM || j->n_src != 2 || j->n_dst > 2 ||
        (j->n_dst == 2 && n * sizeof(float) < TWO_DIRECTLY))
        return false;
    float *second = j->n_dst == 2 ? j->dst[1] : NULL;
    (j->stream ? add_two_around : add_two)(j->dst[0], second, j->src[0], j->src[1], n);
    return true;
}

static void run_block(const struct reduce_job *j, block_fn *fn, size_t at, size_t n, size_t size)
{
    _Alignas(64) char acc[BLOCK], narrow[BLOCK / 2];
    const void *result = acc;
    bool half = fn == run_f16 || fn == run_bf16;
    size_t byte = at * size;
    fn(acc, (const char *)j->src[0] + byte, (const char *)j->src[1] + byte, n, j->reduce);
    for (int32_t s = 2; s < j->n_src; s++)
        fn(acc, NULL, (const char *)j->src[s] + byte, n, j->reduce);
    if (j->reduce == COMM_AVG)
        divide(acc, n, fn == run_f64, j->n_src);
    if (half) {
        round_block(narrow, (const float *)(const void *)acc, n, fn == run_bf16);
        result = narrow;
    }
    for (int32_t d = 0; d < j->n_dst; d++)
        copy((char *)j->dst[d] + byte, result, n * size, j->stream);
}

void reduce_run(const struct reduce_job *j)
{
    size_t bytes = dtype_at(j->dtype)->bytes;
    if (j->n_src == 1) {
        for (int32_t d = 0; d < j->n_dst; d++)
            copy_run(j->dst[d], j->src[0], j->count * bytes, j->stream);
        return;
    }
    if (add_directly(j))
        return;
    /* A complex number is two real ones. */
    bool pair = dtype_at(j->dtype)->category == DTYPE_IS_COMPLEX;
    block_fn *fn = block_of(j->dtype);
    size_t size = pair ? bytes / 2 : bytes, count = pair ? j->count * 2 : j->count;
    size_t step = BLOCK / (size < sizeof(float) ? sizeof(float) : size);
    for (size_t at = 0; at < count; at += step)
        run_block(j, fn, at, count - at < step ? count - at : step, size);
    fence(j->stream);
}
