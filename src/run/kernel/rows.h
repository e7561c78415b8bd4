/* Norms, softmax and attention on plain arrays of float or double. */
#ifndef TUCK_RUN_KERNEL_ROWS_H
#define TUCK_RUN_KERNEL_ROWS_H

#include "run/kernel/plain.h"

struct batch_norm {
    int64_t outer, channels, inner;
    bool training;
    double momentum, eps;
};

/* k: K_F32 or K_F64, of all arrays. */
void rows_softmax(enum kind k, void *y, const void *x, int64_t n, int64_t step, bool logarithm);
void rows_softmax_backward(enum kind k, void *dx, const void *g, const void *y, int64_t n,
                           int64_t step, bool logarithm);
void rows_norm(enum kind k, void *y, void *mean, void *rstd, const void *x, const void *w,
               const void *b, int64_t rows, int64_t n, double eps, bool rms);
void rows_norm_backward(enum kind k, void *dx, void *dw, void *db, const void *g, const void *x,
                        const void *mean, const void *rstd, const void *w, int64_t rows, int64_t n,
                        bool rms);
void rows_batch_norm(enum kind k, const struct batch_norm *o, void *y, const void *x, const void *w,
                     const void *b, void *running_mean, void *running_var, void *save_mean,
                     void *save_rstd);
void rows_batch_norm_backward(enum kind k, const struct batch_norm *o, void *dx, void *dw, void *db,
                              const void *g, const void *x, const void *w, const void *mean,
                              const void *rstd);

void rows_attention(enum kind k, void *s, void *lse, const void *mask, int64_t q, int64_t n,
                    double scale, bool causal);
void rows_attention_again(enum kind k, void *s, const void *lse, const void *mask, int64_t q,
                          int64_t n, double scale, bool causal);
void rows_attention_scores(enum kind k, void *dp, const void *p, const void *g, const void *o,
                           int64_t q, int64_t n, int64_t width, double scale);

#endif
