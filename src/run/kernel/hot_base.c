/* Inner loops for any machine. */
#include "run/kernel/hot_point.h"
#include "run/kernel/hot_reduce.h"
#include "run/kernel/hot_rows.h"

const struct hot hot_base = HOT_TABLE;

const struct hot *hot_get(void)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return &hot_avx2;
#endif
    return &hot_base;
}
