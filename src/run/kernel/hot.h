/* The inner loops of all kernels, compiled for several sets of instructions. Values do not depend
 * on which one runs: no loop is reassociated or contracted. */
#ifndef TUCK_RUN_KERNEL_HOT_H
#define TUCK_RUN_KERNEL_HOT_H

#include "run/kernel/elem.h"

/* Numbers of a call that a loop over elements needs. */
struct point_params {
    double f[4];
    int64_t i[4];
};

typedef void (*point_fn)(const struct point_params *params, void *out, const void *const *in,
                         int64_t n);

/* Special cases of kernels, which have functions of their own. */
enum {
    OP_KERNEL_cube = OP_KERNEL_END,
    OP_KERNEL_inverse_square,
    OP_KERNEL_gelu_tanh,
    OP_KERNEL_gelu_tanh_backward,
    POINT_END
};

enum reduce_op { REDUCE_SUM, REDUCE_PROD, REDUCE_MAX, REDUCE_MIN, REDUCE_OPS };

/* n elements to one; acc[i] = acc[i] op x[i]. */
typedef void (*reduce_fn)(void *to, const void *x, int64_t n);

struct hot {
    const point_fn (*point)[K_END];   /* by kernel, by kind */
    reduce_fn row[REDUCE_OPS][K_END]; /* by kind; NULL: not defined */
    reduce_fn column[REDUCE_OPS][K_END];
    double (*square_deviation)(const float *x, float mean, int64_t n);
    double (*square_deviation64)(const double *x, double mean, int64_t n);
    const struct rows_f32 *rows_f32; /* in rows.h */
    const struct rows_f64 *rows_f64;
};

extern const struct hot hot_base, hot_avx2;

/* What this machine can run. */
const struct hot *hot_get(void);

#endif
