/* Elements in memory and in registers.
 *
 * A kernel computes on registers: plain arrays of one of six kinds, a block of elements at a time.
 * float16 and bfloat16 are computed as float, all integers as int64_t: results are narrowed when
 * they are stored, which gives what arithmetic in the narrow type would.
 */
#ifndef TUCK_RUN_KERNEL_ELEM_H
#define TUCK_RUN_KERNEL_ELEM_H

#include <string.h>

#include "run/kernel/kernel.h"

enum kind {
    K_BOOL, /* uint8_t, 0 or 1 */
    K_I64,
    K_F32,
    K_F64,
    K_C64,  /* two floats */
    K_C128, /* two doubles */
    K_END   /* no kernel computes with it */
};

/* The elements of a register: 2 KiB of floats, so that a loop's registers stay in the L1 cache. */
enum { ELEM_BLOCK = 512 };

extern const uint8_t kind_bytes[K_END + 1];

enum kind kind_of(enum dtype d);

/* n elements, `stride` elements apart, into a register of the dtype's kind; and back. */
void elem_load(void *reg, const void *from, enum dtype d, int64_t stride, int64_t n);
void elem_store(void *to, const void *reg, enum dtype d, int64_t stride, int64_t n);

/* One kind to another as torch's .to() does: a float is truncated, complex numbers lose their
 * imaginary part, what is not 0 is true. In place only if the kinds are equal. */
void elem_convert(void *to, enum kind kind, const void *from, enum kind from_kind, int64_t n);

/* Floats rounded to what the dtype holds, for values that never reach memory; also wraps integers.
 */
void elem_round(void *reg, enum dtype d, int64_t n);

/* Bytes of one element moved, of any dtype. */
void elem_move(void *to, int64_t to_stride, const void *from, int64_t from_stride, size_t bytes,
               int64_t n);

/* n times the element at `from`. */
void elem_fill(void *reg, const void *from, size_t bytes, int64_t n);

float elem_f16(uint16_t h);
uint16_t elem_to_f16(float f);

static inline float elem_bf16(uint16_t h)
{
    uint32_t u = (uint32_t)h << 16;
    float f;

    memcpy(&f, &u, sizeof(f));
    return f;
}

static inline uint16_t elem_to_bf16(float f)
{
    uint32_t u;

    memcpy(&u, &f, sizeof(u));
    if ((u & 0x7fffffff) > 0x7f800000)
        return 0x7fc0;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

#endif
