#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/comm_case.h"

/* ---- Numbers, one at a time and slowly ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static double half_to_double(uint16_t h, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, e = (h & 0x7fff) >> mantissa_bits;
    int m = h & ((1 << mantissa_bits) - 1);
    double sign = h & 0x8000 ? -1.0 : 1.0;
    if (e == (1 << exponent_bits) - 1)
        return m != 0 ? (double)NAN : sign * (double)INFINITY;
    if (e == 0)
        return sign * ldexp(m, 1 - bias - mantissa_bits);
    return sign * ldexp(1.0 + ldexp(m, -mantissa_bits), e - bias);
}

static uint16_t double_to_half(double x, int exponent_bits, int mantissa_bits)
{
    int bias = (1 << (exponent_bits - 1)) - 1, top = (1 << exponent_bits) - 1;
    uint16_t sign = signbit(x) ? 0x8000 : 0;
    double a = fabs(x);
    if (isnan(x))
        return (uint16_t)(0x7fff & (top << mantissa_bits | 1 << (mantissa_bits - 1)));
    if (a == 0.0)
        return sign;
    if (isinf(a))
        return (uint16_t)(sign | top << mantissa_bits);
    int e = ilogb(a);
    if (e < 1 - bias)
        e = 1 - bias;
    double unit = ldexp(1.0, e - mantissa_bits), q = rint(a / unit); /* to even */
    if (q >= ldexp(1.0, mantissa_bits + 1)) {
        q /= 2;
        e++;
    }
    if (e > bias)
        return (uint16_t)(sign | top << mantissa_bits);
    int field = q < ldexp(1.0, mantissa_bits) ? 0 : e + bias;
    int m = (int)q & ((1 << mantissa_bits) - 1);
    return (uint16_t)(sign | field << mantissa_bits | m);
}

static bool is_bf16(uint8_t d)
{
    return d == DTYPE_BF16;
}

/* The element i of what member r has in part p. */
static void element(const struct comm_case *k, int32_t r, uint32_t p, int64_t i, void *out)
{
    uint64_t x = mix(mix(mix(k->seed + p) ^ (uint64_t)r) ^ (uint64_t)i);
    bool odd = x % 509 == 0;
    uint32_t special = (x >> 20) & 1 ? 0x7f800000 : 0x7fc00000;
    switch (k->dtype) {
    case DTYPE_F32:
    case DTYPE_C64:
        for (int c = 0; c < (k->dtype == DTYPE_C64 ? 2 : 1); c++, x = mix(x)) {
            uint32_t u = (uint32_t)((x & 0x807fffff) | (uint64_t)(121 + (x >> 40) % 13) << 23);
            u = odd ? special : u;
            memcpy((char *)out + 4 * c, &u, 4);
        }
        break;
    case DTYPE_F64:
    case DTYPE_C128:
        for (int c = 0; c < (k->dtype == DTYPE_C128 ? 2 : 1); c++, x = mix(x)) {
            uint64_t u = (x & 0x800fffffffffffffu) | (1017 + (mix(x) >> 40) % 13) << 52;
            memcpy((char *)out + 8 * c, &u, 8);
        }
        break;
    case DTYPE_F16:
    case DTYPE_BF16: {
        double v = ldexp((double)(int64_t)(x >> 44) - 524288.0, -18 - (int)(x % 9));
        uint16_t h = is_bf16(k->dtype) ? double_to_half(odd ? (double)NAN : v, 8, 7)
                                       : double_to_half(odd ? (double)INFINITY : v, 5, 10);
        memcpy(out, &h, 2);
        break;
    }
    case DTYPE_B8: *(uint8_t *)out = x >> 33 & 1; break;
    default: memcpy(out, &x, dtype_at(k->dtype)->bytes); break;
    }
}

static double two(uint8_t op, double a, double b, bool single)
{
    double r;
    switch (op) {
    case COMM_PRODUCT: r = single ? (double)((float)a * (float)b) : a * b; break;
    case COMM_MIN: r = b < a || isnan(b) ? b : a; break;
    case COMM_MAX: r = b > a || isnan(b) ? b : a; break;
    default: r = single ? (double)((float)a + (float)b) : a + b; break;
    }
    return r;
}

static int64_t two_int(uint8_t op, int64_t a, int64_t b, bool is_unsigned)
{
    bool less = is_unsigned ? (uint64_t)b < (uint64_t)a : b < a;
    switch (op) {
    case COMM_SUM: return (int64_t)((uint64_t)a + (uint64_t)b);
    case COMM_PRODUCT: return (int64_t)((uint64_t)a * (uint64_t)b);
    case COMM_MIN: return less ? b : a;
    case COMM_MAX: return less ? a : b;
    case COMM_BAND: return a & b;
    case COMM_BOR: return a | b;
    default: return a ^ b;
    }
}

static int64_t int_of(uint8_t d, const void *p)
{
    switch (d) {
    case DTYPE_I64:
    case DTYPE_U64: return *(const int64_t *)p;
    case DTYPE_I32: return *(const int32_t *)p;
    case DTYPE_U32: return *(const uint32_t *)p;
    case DTYPE_I16: return *(const int16_t *)p;
    case DTYPE_U16: return *(const uint16_t *)p;
    case DTYPE_I8: return *(const int8_t *)p;
    default: return *(const uint8_t *)p;
    }
}

static double real_of(uint8_t d, const void *p, int c)
{
    uint16_t h;
    memcpy(&h, p, 2);
    switch (d) {
    case DTYPE_F32:
    case DTYPE_C64: return (double)((const float *)p)[c];
    case DTYPE_F16: return half_to_double(h, 5, 10);
    case DTYPE_BF16: return half_to_double(h, 8, 7);
    default: return ((const double *)p)[c];
    }
}

static void put_real(uint8_t d, void *p, int c, double x)
{
    uint16_t h = d == DTYPE_F16 ? double_to_half(x, 5, 10) : double_to_half(x, 8, 7);
    switch (d) {
    case DTYPE_F32:
    case DTYPE_C64: ((float *)p)[c] = (float)x; break;
    case DTYPE_F16:
    case DTYPE_BF16: memcpy(p, &h, 2); break;
    default: ((double *)p)[c] = x; break;
    }
}

/* The reduction of element i over all members. */
static void reduced(const struct comm_case *k, int32_t n, uint32_t p, int64_t i, void *out)
{
    _Alignas(16) char x[16];
    uint8_t d = k->dtype, category = dtype_at(d)->category;
    bool single = d != DTYPE_F64 && d != DTYPE_C128;
    element(k, 0, p, i, out);
    if (n == 1)
        return;
    if (category == DTYPE_IS_FLOAT || category == DTYPE_IS_COMPLEX) {
        double acc[2] = {0, 0};
        int parts = category == DTYPE_IS_COMPLEX ? 2 : 1;
        for (int c = 0; c < parts; c++) {
            for (int32_t r = 0; r < n; r++) {
                element(k, r, p, i, x);
                acc[c] = r == 0 ? real_of(d, x, c)
                                : two(k->reduce, acc[c], real_of(d, x, c), single);
            }
            if (k->reduce == COMM_AVG)
                acc[c] = single ? (double)((float)acc[c] / (float)n) : acc[c] / n;
            put_real(d, out, c, acc[c]);
        }
        return;
    }
    int64_t acc = int_of(d, out);
    bool no_sign = category == DTYPE_IS_UINT || d == DTYPE_U8;
    for (int32_t r = 1; r < n; r++) {
        element(k, r, p, i, x);
        int64_t y = int_of(d, x);
        if (d != DTYPE_B8)
            acc = two_int(k->reduce, acc, y, no_sign);
        else if (k->reduce == COMM_SUM)
            acc |= y;
        else
            acc = two_int(k->reduce, acc, y, true);
        memcpy(x, &acc, 8);
        acc = int_of(d, x); /* wraps */
    }
    memcpy(out, &acc, dtype_at(d)->bytes);
}

/* ---- A call ---- */

bool case_heap(struct comm *c, size_t bytes, struct case_heap *h)
{
    *h = (struct case_heap){.base = comm_heap(c, 0, bytes), .bytes = bytes};
    return h->base != NULL;
}

static void *room(struct case_run *run, struct case_heap *h, size_t bytes, bool heap)
{
    size_t take = (bytes + 63) / 64 * 64;
    if (heap && h->bytes - h->used >= take) {
        h->used += take;
        return h->base + h->used - take;
    }
    void *p = malloc(bytes > 0 ? bytes : 1);
    if (p == NULL)
        abort();
    memset(p, 0xa5, bytes);
    run->own[run->n_own++] = p;
    return p;
}

/* Elements that member a sends to member b. */
static int64_t split(const struct comm_case *k, int32_t a, int32_t b)
{
    if (!k->uneven)
        return k->count;
    uint64_t x = mix(mix(k->seed ^ (uint64_t)a << 8) ^ (uint64_t)b);
    return x % 3 == 0 ? 0 : (int64_t)(x >> 8) % (2 * k->count + 1);
}

static int64_t sum_split(const struct comm_case *k, int32_t n, int32_t me, bool in, int32_t until)
{
    int64_t sum = 0;
    for (int32_t i = 0; i < until && i < n; i++)
        sum += in ? split(k, me, i) : split(k, i, me);
    return sum;
}

static int64_t in_count(const struct comm_case *k, const struct comm_group *g)
{
    switch (k->kind) {
    case COMM_BARRIER: return 0;
    case COMM_REDUCE_SCATTER: return k->count * g->n;
    case COMM_ALL_TO_ALL: return sum_split(k, g->n, g->me, true, g->n);
    case COMM_BROADCAST: return g->me == k->root ? k->count : 0;
    case COMM_SCATTER: return g->me == k->root ? k->count * g->n : 0;
    default: return k->count;
    }
}

static int64_t out_count(const struct comm_case *k, const struct comm_group *g)
{
    switch (k->kind) {
    case COMM_BARRIER: return 0;
    case COMM_ALL_GATHER: return k->count * g->n;
    case COMM_ALL_TO_ALL: return sum_split(k, g->n, g->me, false, g->n);
    case COMM_REDUCE: return g->me == k->root ? k->count : 0;
    case COMM_GATHER: return g->me == k->root ? k->count * g->n : 0;
    default: return k->count;
    }
}

/* Where the operand lies in the result, or the reverse, if the kind may work in place. */
static void place_both(const struct comm_case *k, const struct comm_group *g, struct case_run *run,
                       struct case_heap *h, uint8_t place, struct comm_part *p)
{
    size_t size = dtype_at(k->dtype)->bytes, one = (size_t)k->count * size;
    size_t in = (size_t)in_count(k, g) * size, out = (size_t)out_count(k, g) * size;
    bool heap = place == CASE_IN_PLACE_HEAP, same = place >= CASE_IN_PLACE && k->count > 0;
    size_t most = in > out ? in : out;
    char *base;
    if (same && k->kind != COMM_ALL_TO_ALL && k->kind != COMM_GATHER && k->kind != COMM_SCATTER &&
        in > 0 && out > 0) {
        base = room(run, h, most, heap);
        p->in = k->kind == COMM_ALL_GATHER ? base + one * (size_t)g->me : base;
        p->out = k->kind == COMM_REDUCE_SCATTER ? base + one * (size_t)g->me : base;
        return;
    }
    p->in = room(run, h, in, place == CASE_IN_HEAP || place == CASE_HEAP || heap);
    p->out = room(run, h, out, place == CASE_OUT_HEAP || place == CASE_HEAP || heap);
}

static void fill(const struct comm_case *k, const struct comm_group *g, uint32_t at,
                 const struct comm_part *p)
{
    size_t size = dtype_at(k->dtype)->bytes;
    union {
        const void *from;
        char *to;
    } in = {.from = p->in};
    for (int64_t i = 0, n = in_count(k, g); i < n; i++)
        element(k, g->me, at, i, in.to + (size_t)i * size);
}

bool case_start(struct comm *c, const struct comm_case *k, struct case_heap *h,
                struct case_run *run)
{
    const struct comm_group *g = &c->group[k->group];
    uint8_t place = k->place != CASE_MIXED ? k->place
                                           : (uint8_t)(mix(k->seed ^ (uint64_t)g->me) % CASE_MIXED);
    *run = (struct case_run){.part = calloc(k->n_part, sizeof(*run->part)),
                             .split = calloc((size_t)g->n * 2, sizeof(*run->split)),
                             .own = calloc(k->n_part * 2, sizeof(*run->own))};
    if (run->part == NULL || run->split == NULL || run->own == NULL)
        abort();
    for (uint32_t i = 0; i < k->n_part; i++) {
        run->part[i] = (struct comm_part){.count = k->count, .dtype = k->dtype};
        place_both(k, g, run, h, place, &run->part[i]);
        fill(k, g, i, &run->part[i]);
    }
    for (int32_t i = 0; i < g->n; i++) {
        run->split[i] = split(k, g->me, i);
        run->split[g->n + i] = split(k, i, g->me);
    }
    run->call = (struct comm_call){.kind = k->kind,
                                   .reduce = k->reduce,
                                   .group = k->group,
                                   .root = k->root,
                                   .n_part = k->kind == COMM_BARRIER ? 0 : k->n_part,
                                   .part = run->part,
                                   .in_stays = k->stays,
                                   .label = "case"};
    if (k->kind == COMM_ALL_TO_ALL && k->uneven) {
        run->call.in_split = run->split;
        run->call.out_split = run->split + g->n;
    }
    return comm_start(c, &run->call, &run->req);
}

/* What element i of the result must be. */
static void expected(const struct comm_case *k, const struct comm_group *g, uint32_t at, int64_t i,
                     void *out)
{
    switch (k->kind) {
    case COMM_ALL_REDUCE:
    case COMM_REDUCE: reduced(k, g->n, at, i, out); break;
    case COMM_REDUCE_SCATTER: reduced(k, g->n, at, k->count * g->me + i, out); break;
    case COMM_ALL_GATHER:
    case COMM_GATHER: element(k, (int32_t)(i / k->count), at, i % k->count, out); break;
    case COMM_BROADCAST: element(k, k->root, at, i, out); break;
    case COMM_SCATTER: element(k, k->root, at, k->count * g->me + i, out); break;
    default: {
        int32_t from = 0;
        while (i >= split(k, from, g->me))
            i -= split(k, from++, g->me);
        element(k, from, at, sum_split(k, g->n, from, true, g->me) + i, out);
    }
    }
}

static bool both_nan(uint8_t d, const void *a, const void *b)
{
    uint8_t category = dtype_at(d)->category;
    if (category != DTYPE_IS_FLOAT && category != DTYPE_IS_COMPLEX)
        return false;
    for (int c = 0; c < (category == DTYPE_IS_COMPLEX ? 2 : 1); c++) {
        double x = real_of(d, a, c), y = real_of(d, b, c);
        if (!(isnan(x) && isnan(y)) && (x != y || signbit(x) != signbit(y)))
            return false;
    }
    return true;
}

const char *case_check(struct comm *c, const struct comm_case *k, struct case_run *run)
{
    const struct comm_group *g = &c->group[k->group];
    static _Thread_local char wrong[160];
    size_t size = dtype_at(k->dtype)->bytes;
    const char *result = NULL;
    for (uint32_t p = 0; p < k->n_part && result == NULL; p++)
        for (int64_t i = 0, n = out_count(k, g); i < n && result == NULL; i++) {
            _Alignas(16) char want[16], got[16];
            memcpy(got, (char *)run->part[p].out + (size_t)i * size, size);
            expected(k, g, p, i, want);
            if (memcmp(want, got, size) != 0 && !both_nan(k->dtype, want, got)) {
                snprintf(wrong, sizeof(wrong), "rank %d, part %u: element %lld of %lld differs",
                         c->rank, p, (long long)i, (long long)n);
                result = wrong;
            }
        }
    for (uint32_t i = 0; i < run->n_own; i++)
        free(run->own[i]);
    free(run->own);
    free(run->part);
    free(run->split);
    return result;
}

void case_text(const struct comm_case *k, char *text, size_t size)
{
    static const char *const place[] = {"private",  "in in heap",    "out in heap", "heap",
                                        "in place", "in place heap", "mixed"};
    snprintf(text, size, "%s %s %s count %lld group %d root %d parts %u%s, %s, seed %llu",
             comm_kind_name(k->kind), comm_reduce_name(k->reduce), dtype_at(k->dtype)->name,
             (long long)k->count, k->group, k->root, k->n_part, k->uneven ? " uneven" : "",
             place[k->place], (unsigned long long)k->seed);
}

/* ---- All of them ---- */

static const uint8_t all_dtypes[] = {
    DTYPE_F64, DTYPE_F32, DTYPE_F16, DTYPE_BF16, DTYPE_C128, DTYPE_C64, DTYPE_I64, DTYPE_I32,
    DTYPE_I16, DTYPE_I8,  DTYPE_U8,  DTYPE_U16,  DTYPE_U32,  DTYPE_U64, DTYPE_B8,
};
/* Around the limits of the algorithms (in bytes: 24, 1024, 8192, 32 Ki, 256 Ki) and of blocks. */
static const int64_t all_counts[] = {0,  1,   2,   3,    5,    7,    8,    17,   63,    64,
                                     65, 255, 257, 1000, 1025, 2047, 2049, 8193, 16391, 70001};

bool case_number(uint64_t i, int32_t group, int32_t n, struct comm_case *k)
{
    uint64_t n_dtype = sizeof(all_dtypes), n_count = sizeof(all_counts) / sizeof(*all_counts);
    *k = (struct comm_case){.seed = mix(i), .group = group};
    k->kind = i % COMM_P2P;
    i /= COMM_P2P;
    k->dtype = all_dtypes[i % n_dtype];
    i /= n_dtype;
    k->reduce = i % COMM_REDUCES;
    i /= COMM_REDUCES;
    k->count = all_counts[i % n_count];
    i /= n_count;
    k->place = i % CASE_PLACES;
    i /= CASE_PLACES;
    k->root = (int32_t)(k->seed % (uint64_t)n);
    k->n_part = k->seed % 7 == 0 && k->count < 3000 ? 3 : 1;
    k->uneven = k->kind == COMM_ALL_TO_ALL && k->seed % 5 != 0 && k->n_part == 1;
    return i == 0;
}
