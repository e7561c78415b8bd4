/* Norms, softmax and attention for float and double. */
#include "run/kernel/rows.h"

#include "run/kernel/hot_math.h"

#define T float
#define N(name) name##_f32
#define EXP f32_exp
#define MAXIMUM f32_max
#include "run/kernel/rows_code.h"
#undef T
#undef N
#undef EXP
#undef MAXIMUM

#define T double
#define N(name) name##_f64
#define EXP exp
#define MAXIMUM f64_max
#include "run/kernel/rows_code.h"
#undef T
#undef N

void rows_softmax(enum kind k, void *y, const void *x, int64_t n, int64_t step, bool logarithm)
{
    if (k == K_F32)
        softmax_f32(y, x, n, step, logarithm);
    else
        softmax_f64(y, x, n, step, logarithm);
}

void rows_softmax_backward(enum kind k, void *dx, const void *g, const void *y, int64_t n,
                           int64_t step, bool logarithm)
{
    if (k == K_F32)
        softmax_backward_f32(dx, g, y, n, step, logarithm);
    else
        softmax_backward_f64(dx, g, y, n, step, logarithm);
}

void rows_norm(enum kind k, void *y, void *mean, void *rstd, const void *x, const void *w,
               const void *b, int64_t rows, int64_t n, double eps, bool rms)
{
    if (k == K_F32)
        norm_f32(y, mean, rstd, x, w, b, rows, n, eps, rms);
    else
        norm_f64(y, mean, rstd, x, w, b, rows, n, eps, rms);
}

void rows_norm_backward(enum kind k, void *dx, void *dw, void *db, const void *g, const void *x,
                        const void *mean, const void *rstd, const void *w, int64_t rows, int64_t n,
                        bool rms)
{
    if (k == K_F32)
        norm_backward_f32(dx, dw, db, g, x, mean, rstd, w, rows, n, rms);
    else
        norm_backward_f64(dx, dw, db, g, x, mean, rstd, w, rows, n, rms);
}

void rows_batch_norm(enum kind k, const struct batch_norm *o, void *y, const void *x, const void *w,
                     const void *b, void *running_mean, void *running_var, void *save_mean,
                     void *save_rstd)
{
    if (k == K_F32)
        batch_norm_f32(o, y, x, w, b, running_mean, running_var, save_mean, save_rstd);
    else
        batch_norm_f64(o, y, x, w, b, running_mean, running_var, save_mean, save_rstd);
}

void rows_batch_norm_backward(enum kind k, const struct batch_norm *o, void *dx, void *dw, void *db,
                              const void *g, const void *x, const void *w, const void *mean,
                              const void *rstd)
{
    if (k == K_F32)
        batch_norm_backward_f32(o, dx, dw, db, g, x, w, mean, rstd);
    else
        batch_norm_backward_f64(o, dx, dw, db, g, x, w, mean, rstd);
}

void rows_attention(enum kind k, void *s, void *lse, const void *mask, int64_t q, int64_t n,
                    double scale, bool causal)
{
    if (k == K_F32)
        attention_rows_f32(s, lse, mask, q, n, (float)scale, causal);
    else
        attention_rows_f64(s, lse, mask, q, n, scale, causal);
}

void rows_attention_again(enum kind k, void *s, const void *lse, const void *mask, int64_t q,
                          int64_t n, double scale, bool causal)
{
    if (k == K_F32)
        attention_again_f32(s, lse, mask, q, n, (float)scale, causal);
    else
        attention_again_f64(s, lse, mask, q, n, scale, causal);
}

void rows_attention_scores(enum kind k, void *dp, const void *p, const void *g, const void *o,
                           int64_t q, int64_t n, int64_t width, double scale)
{
    if (k == K_F32)
        attention_scores_f32(dp, p, g, o, q, n, width, (float)scale);
    else
        attention_scores_f64(dp, p, g, o, q, n, width, scale);
}
