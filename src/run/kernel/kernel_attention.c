/* Attention by two products a head, with the scores of one head in scratch: [batch, heads, length,
 * width]. Heads of key and value may be fewer, shared by as many queries. */
#include <math.h>

#include "run/kernel/gemm.h"
#include "run/kernel/rows.h"

struct attention {
    const struct rt_tensor *q, *k, *v, *mask;
    bool causal;
    double scale, dropout;
    enum kind kind;
    int64_t batch, heads, length, keys, width, value_width, share;
};

static bool describe(struct rt_call *c, struct attention *a)
{
    const struct rt_tensor *q = a->q, *k = a->k, *v = a->v;

    if (q == NULL || k == NULL || v == NULL || q->n != 4 || k->n != 4 || v->n != 4)
        return kernel_error(c, "attention of other than four dimensions");
    if (a->dropout != 0)
        return kernel_error(c, "no kernel computes attention with dropout");
    a->kind = plain_float(q);
    a->batch = q->size[0];
    a->heads = q->size[1];
    a->length = q->size[2];
    a->width = q->size[3];
    a->keys = k->size[2];
    a->value_width = v->size[3];
    a->share = k->size[1] > 0 ? a->heads / k->size[1] : 1;
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)a->width);
    return true;
}

static double scale_at(const struct rt_call *c, uint32_t i)
{
    return arg_at(c, i)->kind == RT_FLOAT || arg_at(c, i)->kind == RT_INT ? arg_float(c, i, 0) : 0;
}

static struct matrix head(const void *p, enum kind k, int64_t number, int64_t rows, int64_t cols)
{
    return (struct matrix){(char *)(uintptr_t)p + number * rows * cols * kind_bytes[k], rows, cols,
                           cols, 1};
}

static struct matrix turned(struct matrix m)
{
    return (struct matrix){m.p, m.cols, m.rows, m.col_step, m.row_step};
}

/* The mask of a head, broadcast, as a plain array of [length, keys]. */
static const void *mask_of(struct rt_call *c, const struct attention *a, int64_t b, int64_t h,
                           void *room)
{
    struct rt_tensor from,
        to = {.data = room, .n = 2, .size = {a->length, a->keys}, .stride = {a->keys, 1}};

    if (a->mask == NULL)
        return NULL;
    from = *a->mask;
    int64_t bytes = dtype_at(from.dtype)->bytes;
    if (from.n == 4) {
        from.data = (char *)from.data + ((from.size[0] > 1 ? b * from.stride[0] : 0) +
                                         (from.size[1] > 1 ? h * from.stride[1] : 0)) *
                                            bytes;
        for (int d = 0; d < 2; d++) {
            from.size[d] = from.size[d + 2];
            from.stride[d] = from.stride[d + 2];
        }
        from.n = 2;
    }
    to.dtype = a->kind == K_F32 ? DTYPE_F32 : DTYPE_F64;
    copy_tensor(c, &to, &from);
    return room;
}

static size_t score_bytes(const struct rt_tensor *q, const struct rt_tensor *k)
{
    return (size_t)(q->size[2] * k->size[2]) * 8 + RT_ALIGN;
}

/* lse may be absent; it may have room for more rows than there are queries. */
static bool forward(struct rt_call *c, struct attention *a, struct rt_tensor *out,
                    struct rt_tensor *lse_out)
{
    struct plain s = plain_begin(c);

    if (!describe(c, a))
        return false;
    enum kind kind = a->kind;
    int64_t bytes = kind_bytes[kind];
    const char *q = plain_in(&s, a->q, kind), *k = plain_in(&s, a->k, kind),
               *v = plain_in(&s, a->v, kind);
    char *o = plain_out(&s, out, kind);
    char *lse = lse_out != NULL ? plain_out(&s, lse_out, kind) : NULL;
    void *scores = plain_room(&s, score_bytes(a->q, a->k)),
         *mask = plain_room(&s, score_bytes(a->q, a->k));
    int64_t lse_rows = lse_out != NULL && lse_out->n == 3 ? lse_out->size[2] : a->length;
    if (lse != NULL)
        memset(lse, 0, (size_t)rt_numel(lse_out) * (size_t)bytes);
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        int64_t shared = i / a->heads * (a->heads / a->share) + i % a->heads / a->share;
        struct matrix p = {scores, a->length, a->keys, a->keys, 1};

        if (!gemm(c, kind, p, head(q, kind, i, a->length, a->width),
                  turned(head(k, kind, shared, a->keys, a->width)), 1, 0, s.at))
            return false;
        rows_attention(kind, scores, lse != NULL ? lse + i * lse_rows * bytes : NULL,
                       mask_of(c, a, i / a->heads, i % a->heads, mask), a->length, a->keys,
                       a->scale, a->causal);
        if (!gemm(c, kind, head(o, kind, i, a->length, a->value_width), p,
                  head(v, kind, shared, a->keys, a->value_width), 1, 0, s.at))
            return false;
    }
    plain_done(&s, out, o, kind);
    if (lse != NULL)
        plain_done(&s, lse_out, lse, kind);
    return true;
}

/* _for_cpu(q, k, v, dropout_p, is_causal, *, attn_mask, scale) -> out, lse */
bool kernel_attention_cpu(struct rt_call *c)
{
    struct attention a = {.q = arg_tensor(c, 0),
                          .k = arg_tensor(c, 1),
                          .v = arg_tensor(c, 2),
                          .mask = arg_tensor(c, 5),
                          .causal = arg_bool(c, 4, false),
                          .scale = scale_at(c, 6),
                          .dropout = arg_float(c, 3, 0)};
    bool boolean = a.mask != NULL && a.mask->dtype == DTYPE_B8;

    if (boolean)
        return kernel_error(c, "no kernel computes attention with a mask of bools");
    return forward(c, &a, &c->out[0], out_at(c, 1));
}

static size_t attention_scratch(const struct rt_call *c, uint32_t q)
{
    const struct rt_tensor *a = arg_tensor(c, q), *b = arg_tensor(c, q + 1);

    return plain_scratch(c, 0) +
           (a != NULL && b != NULL && a->n == 4 && b->n == 4 ? 4 * score_bytes(a, b) : 0) +
           plain_scratch(c, 0);
}

size_t scratch_attention_cpu(const struct rt_call *c)
{
    return attention_scratch(c, 0);
}

/* ---- backward ---- */

static bool backward(struct rt_call *c, struct attention *a, const struct rt_tensor *grad,
                     const struct rt_tensor *out, const struct rt_tensor *lse_in)
{
    struct plain s = plain_begin(c);

    if (!describe(c, a))
        return false;
    enum kind kind = a->kind;
    int64_t bytes = kind_bytes[kind], n = a->length, keys = a->keys;
    const char *g = plain_in(&s, grad, kind), *q = plain_in(&s, a->q, kind),
               *k = plain_in(&s, a->k, kind), *v = plain_in(&s, a->v, kind),
               *o = plain_in(&s, out, kind), *lse = plain_in(&s, lse_in, kind);
    char *d[3];
    struct rt_tensor *to[3] = {out_at(c, 0), out_at(c, 1), out_at(c, 2)};
    for (int i = 0; i < 3; i++) {
        d[i] = to[i] != NULL ? plain_out(&s, to[i], kind) : NULL;
        if (to[i] == NULL)
            return kernel_error(c, "attention backward without the gradient of an operand");
    }
    void *p_room = plain_room(&s, score_bytes(a->q, a->k)),
         *dp_room = plain_room(&s, score_bytes(a->q, a->k)),
         *mask = plain_room(&s, score_bytes(a->q, a->k));
    struct matrix p = {p_room, n, keys, keys, 1}, dp = {dp_room, n, keys, keys, 1};
    int64_t lse_rows = lse_in->n == 3 ? lse_in->size[2] : n;
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        int64_t shared = i / a->heads * (a->heads / a->share) + i % a->heads / a->share;
        double add = i % a->share != 0; /* the first of those that share a head begins its sums */
        struct matrix gh = head(g, kind, i, n, a->value_width), qh = head(q, kind, i, n, a->width),
                      kh = head(k, kind, shared, keys, a->width),
                      vh = head(v, kind, shared, keys, a->value_width);

        bool ok = gemm(c, kind, p, qh, turned(kh), 1, 0, s.at);
        rows_attention_again(kind, p_room, lse + i * lse_rows * bytes,
                             mask_of(c, a, i / a->heads, i % a->heads, mask), n, keys, a->scale,
                             a->causal);
        ok = ok && gemm(c, kind, head(d[2], kind, shared, keys, a->value_width), turned(p), gh, 1,
                        add, s.at);
        ok = ok && gemm(c, kind, dp, gh, turned(vh), 1, 0, s.at);
        rows_attention_scores(kind, dp_room, p_room, gh.p, o + i * n * a->value_width * bytes, n,
                              keys, a->value_width, a->scale);
        ok = ok && gemm(c, kind, head(d[0], kind, i, n, a->width), dp, kh, 1, 0, s.at);
        ok = ok &&
             gemm(c, kind, head(d[1], kind, shared, keys, a->width), turned(dp), qh, 1, add, s.at);
        if (!ok)
            return false;
    }
    for (int i = 0; i < 3; i++)
        plain_done(&s, to[i], d[i], kind);
    return true;
}

/* _for_cpu_backward(grad, q, k, v, out, lse, dropout_p, is_causal, *, attn_mask, scale) */
bool kernel_attention_cpu_backward(struct rt_call *c)
{
    struct attention a = {.q = arg_tensor(c, 1),
                          .k = arg_tensor(c, 2),
                          .v = arg_tensor(c, 3),
                          .mask = arg_tensor(c, 8),
                          .causal = arg_bool(c, 7, false),
                          .scale = scale_at(c, 9),
                          .dropout = arg_float(c, 6, 0)};

    return backward(c, &a, arg_tensor(c, 0), arg_tensor(c, 4), arg_tensor(c, 5));
}

size_t scratch_attention_cpu_backward(const struct rt_call *c)
{
    return attention_scratch(c, 1);
}
