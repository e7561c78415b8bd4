/* Inner loops for machines with AVX2. */
#if defined(__x86_64__)

/* Before the switch: what the C library defines is not compiled for AVX2. */
#include "run/kernel/hot.h"
#include "run/kernel/hot_math.h"
#include "run/kernel/rows.h"

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,f16c"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,f16c")
#endif

#include "run/kernel/hot_point.h"
#include "run/kernel/hot_reduce.h"
#include "run/kernel/hot_rows.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

const struct hot hot_avx2 = HOT_TABLE;

#else
typedef int hot_avx2_has_no_code;
#endif
