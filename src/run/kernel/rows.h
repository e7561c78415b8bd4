/* Norms, softmax and attention on plain arrays of float or double. */
#ifndef TUCK_RUN_KERNEL_ROWS_H
#define TUCK_RUN_KERNEL_ROWS_H

#include "run/kernel/plain.h"

struct batch_norm {
    int64_t outer, channels, inner;
    bool training;
    double momentum, eps;
};

/* Some rows of one head's scores. */
struct attention_block {
    int64_t rows, keys; /* of the block: keys that no row of it sees are left out */
    int64_t first;      /* the number of the first row */
    int64_t mask_step;  /* elements from row to row */
    double scale;
    bool causal;
};

/* The functions for one type. */
#define ROWS(name, T)                                                                              \
    struct name {                                                                                  \
        void (*softmax)(T * y, const T *x, int64_t n, int64_t step, bool logarithm);               \
        void (*softmax_backward)(T * dx, const T *g, const T *y, int64_t n, int64_t step,          \
                                 bool logarithm);                                                  \
        void (*norm)(T * y, T *mean, T *rstd, const T *x, const T *w, const T *b, int64_t rows,    \
                     int64_t n, double eps, bool rms);                                             \
        void (*norm_backward)(T * dx, T *dw, T *db, const T *g, const T *x, const T *mean,         \
                              const T *rstd, const T *w, int64_t rows, int64_t n, bool rms);       \
        void (*batch_norm)(const struct batch_norm *o, T *y, const T *x, const T *w, const T *b,   \
                           T *running_mean, T *running_var, T *save_mean, T *save_rstd);           \
        void (*batch_norm_backward)(const struct batch_norm *o, T *dx, T *dw, T *db, const T *g,   \
                                    const T *x, const T *w, const T *mean, const T *rstd);         \
        void (*attention)(const struct attention_block *o, T *s, T *lse, const T *mask);           \
        void (*attention_again)(const struct attention_block *o, T *s, const T *lse,               \
                                const T *mask);                                                    \
        void (*attention_scores)(const struct attention_block *o, T *dp, const T *p, const T *g,   \
                                 int64_t g_step, const T *y, int64_t y_step, int64_t width);       \
    }
ROWS(rows_f32, float);
ROWS(rows_f64, double);

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

void rows_attention(enum kind k, const struct attention_block *o, void *s, void *lse,
                    const void *mask);
void rows_attention_again(enum kind k, const struct attention_block *o, void *s, const void *lse,
                          const void *mask);
/* Elements of a row of g and of y lie side by side. */
void rows_attention_scores(enum kind k, const struct attention_block *o, void *dp, const void *p,
                           const void *g, int64_t g_step, const void *y, int64_t y_step,
                           int64_t width);

#endif
