/* Numbers from a seed, the same on every machine and in every order: number i of a key is
 *
 *   splitmix64(key + (i + 1) * 0x9E3779B97F4A7C15)
 *
 * and a key is made of the seed and a name. */
#ifndef TUCK_RUN_KERNEL_DRAW_H
#define TUCK_RUN_KERNEL_DRAW_H

#include <stdint.h>

static inline uint64_t draw_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline uint64_t draw_key(uint64_t of, const char *name)
{
    uint64_t key = of;

    for (; *name != '\0'; name++)
        key = draw_mix(key ^ (unsigned char)*name);
    return key;
}

static inline uint64_t draw_bits(uint64_t key, int64_t i)
{
    return draw_mix(key + ((uint64_t)i + 1) * 0x9E3779B97F4A7C15u);
}

#endif
