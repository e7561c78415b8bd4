/* rows_code.h for float and double: included like hot_reduce.h, after it. */
#include "run/kernel/rows.h"

#define T float
#define N(name) name##_f32
#define EXP f32_exp
#define MAXIMUM f32_max
#include "run/kernel/rows_code.h"
static const struct rows_f32 rows_f32 = ROWS_TABLE;
#undef T
#undef N
#undef EXP
#undef MAXIMUM

#define T double
#define N(name) name##_f64
#define EXP exp
#define MAXIMUM f64_max
#include "run/kernel/rows_code.h"
static const struct rows_f64 rows_f64 = ROWS_TABLE;
#undef T
#undef N
#undef EXP
#undef MAXIMUM
