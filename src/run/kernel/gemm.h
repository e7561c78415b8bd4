/* Matrix products by OpenBLAS, which is loaded when the first one runs. */
#ifndef TUCK_RUN_KERNEL_GEMM_H
#define TUCK_RUN_KERNEL_GEMM_H

#include "run/kernel/plain.h"

/* Steps in elements. */
struct matrix {
    void *p;
    int64_t rows, cols, row_step, col_step;
};

/* out = alpha * a b + beta * out, of kind K_F32, K_F64, K_C64, K_C128 or K_I64; with beta = 0, out
 * is not read. Any steps will do, but products are fast if each matrix is dense in one direction;
 * another one is copied into room of gemm_room() elements. */
bool gemm(struct rt_call *c, enum kind k, struct matrix out, struct matrix a, struct matrix b,
          double alpha, double beta, void *room);
size_t gemm_room(const struct matrix *out, const struct matrix *a, const struct matrix *b);

/* The last two dimensions of t at a batch index. */
struct matrix gemm_matrix(const struct rt_tensor *t, const void *data);

/* Is an element in memory what it is in a register of this kind? */
bool gemm_natural(const struct rt_tensor *t, enum kind k);

/* t as it is, or converted and contiguous in the scratch; its elements only if it is read. */
struct rt_tensor gemm_operand(struct plain *s, const struct rt_tensor *t, enum kind k, bool read);

#endif
