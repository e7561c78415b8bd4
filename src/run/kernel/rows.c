/* Norms, softmax and attention for float and double. */
#include "run/kernel/rows.h"

#include "run/kernel/hot.h"

void rows_softmax(enum kind k, void *y, const void *x, int64_t n, int64_t step, bool logarithm)
{
    if (k == K_F32)
        hot_get()->rows_f32->softmax(y, x, n, step, logarithm);
    else
        hot_get()->rows_f64->softmax(y, x, n, step, logarithm);
}

void rows_softmax_backward(enum kind k, void *dx, const void *g, const void *y, int64_t n,
                           int64_t step, bool logarithm)
{
    if (k == K_F32)
        hot_get()->rows_f32->softmax_backward(dx, g, y, n, step, logarithm);
    else
        hot_get()->rows_f64->softmax_backward(dx, g, y, n, step, logarithm);
}

void rows_norm(enum kind k, void *y, void *mean, void *rstd, const void *x, const void *w,
               const void *b, int64_t rows, int64_t n, double eps, bool rms)
{
    if (k == K_F32)
        hot_get()->rows_f32->norm(y, mean, rstd, x, w, b, rows, n, eps, rms);
    else
        hot_get()->rows_f64->norm(y, mean, rstd, x, w, b, rows, n, eps, rms);
}

void rows_norm_backward(enum kind k, void *dx, void *dw, void *db, const void *g, const void *x,
                        const void *mean, const void *rstd, const void *w, int64_t rows, int64_t n,
                        bool rms)
{
    if (k == K_F32)
        hot_get()->rows_f32->norm_backward(dx, dw, db, g, x, mean, rstd, w, rows, n, rms);
    else
        hot_get()->rows_f64->norm_backward(dx, dw, db, g, x, mean, rstd, w, rows, n, rms);
}

void rows_batch_norm(enum kind k, const struct batch_norm *o, void *y, const void *x, const void *w,
                     const void *b, void *running_mean, void *running_var, void *save_mean,
                     void *save_rstd)
{
    if (k == K_F32)
        hot_get()->rows_f32->batch_norm(o, y, x, w, b, running_mean, running_var, save_mean,
                                        save_rstd);
    else
        hot_get()->rows_f64->batch_norm(o, y, x, w, b, running_mean, running_var, save_mean,
                                        save_rstd);
}

void rows_batch_norm_backward(enum kind k, const struct batch_norm *o, void *dx, void *dw, void *db,
                              const void *g, const void *x, const void *w, const void *mean,
                              const void *rstd)
{
    if (k == K_F32)
        hot_get()->rows_f32->batch_norm_backward(o, dx, dw, db, g, x, w, mean, rstd);
    else
        hot_get()->rows_f64->batch_norm_backward(o, dx, dw, db, g, x, w, mean, rstd);
}

void rows_attention(enum kind k, const struct attention_block *o, void *s, void *lse,
                    const void *mask)
{
    if (k == K_F32)
        hot_get()->rows_f32->attention(o, s, lse, mask);
    else
        hot_get()->rows_f64->attention(o, s, lse, mask);
}

void rows_attention_again(enum kind k, const struct attention_block *o, void *s, const void *lse,
                          const void *mask)
{
    if (k == K_F32)
        hot_get()->rows_f32->attention_again(o, s, lse, mask);
    else
        hot_get()->rows_f64->attention_again(o, s, lse, mask);
}

void rows_attention_scores(enum kind k, const struct attention_block *o, void *dp, const void *p,
                           const void *g, int64_t g_step, const void *y, int64_t y_step,
                           int64_t width)
{
    if (k == K_F32)
        hot_get()->rows_f32->attention_scores(o, dp, p, g, g_step, y, y_step, width);
    else
        hot_get()->rows_f64->attention_scores(o, dp, p, g, g_step, y, y_step, width);
}
