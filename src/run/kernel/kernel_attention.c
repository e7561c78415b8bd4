/* Attention by two products for some queries of a head, with their scores in scratch: [batch,
 * heads, length, width]. Heads of key and value may be fewer, shared by as many queries. If it is
 * causal, keys that none of these queries sees are left out. Which weights dropout takes follows
 * from a seed, which the forms for GPUs return, so that the way back takes the same ones. */
#include <math.h>

#include "run/kernel/draw.h"
#include "run/kernel/gemm.h"
#include "run/kernel/rows.h"

struct attention {
    const struct rt_tensor *q, *k, *v, *mask;
    bool causal;
    double scale, dropout;
    const struct rt_tensor *seed; /* if something is dropped */
    uint64_t key;
    enum kind kind;
    int64_t batch, heads, length, keys, width, value_width, share;
};

static bool take_seed(struct rt_call *c, struct attention *a)
{
    if (a->seed == NULL || rt_numel(a->seed) == 0)
        return kernel_error(c, "attention with dropout, but without a seed");
    if (!(a->dropout > 0 && a->dropout < 1))
        return kernel_error(c, "dropout with a probability of %g", a->dropout);
    struct rt_tensor first = *a->seed;
    first.n = 0;
    a->key = draw_mix((uint64_t)rt_item(&first).i);
    return true;
}

static bool describe(struct rt_call *c, struct attention *a)
{
    const struct rt_tensor *q = a->q, *k = a->k, *v = a->v;

    if (q == NULL || k == NULL || v == NULL || q->n != 4 || k->n != 4 || v->n != 4)
        return kernel_error(c, "attention of other than four dimensions");
    if (a->dropout != 0 && !take_seed(c, a))
        return false;
    if (kind_of(q->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes attention of complex numbers");
    a->kind = plain_float(q);
    a->batch = q->size[0];
    a->heads = q->size[1];
    a->length = q->size[2];
    a->width = q->size[3];
    a->keys = k->size[2];
    a->value_width = v->size[3];
    a->share = k->size[1] > 0 ? a->heads / k->size[1] : 1;
    if (k->size[0] != a->batch || v->size[0] != a->batch || k->size[3] != a->width ||
        v->size[1] != k->size[1] || v->size[2] != a->keys || a->share * k->size[1] != a->heads)
        return kernel_apart(c);
    if (a->mask != NULL && (a->mask->n < 2 || (a->mask->n > 2 && a->mask->n != 4)))
        return kernel_error(c, "a mask of %d dimensions", a->mask->n);
    if (!kernel_broadcasts(
            c, a->mask,
            &(struct rt_tensor){.n = 4, .size = {a->batch, a->heads, a->length, a->keys}}))
        return false;
    if (a->scale == 0)
        a->scale = 1 / sqrt((double)a->width);
    return true;
}

static double scale_at(const struct rt_call *c, uint32_t i)
{
    return arg_at(c, i)->kind == RT_FLOAT || arg_at(c, i)->kind == RT_INT ? arg_float(c, i, 0) : 0;
}

enum { QUERIES = 128 }; /* their scores stay in the second cache */

/* As it is if elements of a row lie side by side, else contiguous in the scratch. */
static struct rt_tensor take(struct plain *s, const struct rt_tensor *t, enum kind k, bool read)
{
    struct rt_tensor x = *t;

    if (gemm_natural(t, k) && (t->stride[3] == 1 || t->size[3] == 1) &&
        (t->size[2] == 1 || t->stride[2] >= t->size[3]))
        return x;
    x.data = read ? (void *)(uintptr_t)plain_in(s, t, k)
                  : plain_room(s, (size_t)rt_numel(t) * kind_bytes[k]);
    x.dtype = k == K_F32 ? DTYPE_F32 : DTYPE_F64;
    for (int64_t d = t->n - 1, step = 1; d >= 0; step *= t->size[d--])
        x.stride[d] = step;
    return x;
}

static bool give_back(struct rt_call *c, const struct rt_tensor *to, const struct rt_tensor *from)
{
    return from->data == to->data || copy_tensor(c, to, from);
}

/* Rows from `first` on of a head. */
static struct matrix head(const struct rt_tensor *t, int64_t number, int64_t first, int64_t rows)
{
    int64_t b = number / t->size[1], h = number % t->size[1];
    int64_t at = b * t->stride[0] + h * t->stride[1] + first * t->stride[2];

    return (struct matrix){(char *)t->data + at * dtype_at(t->dtype)->bytes, rows, t->size[3],
                           t->stride[2], 1};
}

/* The queries from `first` on, and the keys that they see. */
static struct attention_block block_at(const struct attention *a, int64_t first)
{
    int64_t rows = a->length - first < QUERIES ? a->length - first : QUERIES;
    int64_t seen = a->causal && first + rows < a->keys ? first + rows : a->keys;

    return (struct attention_block){rows, seen, first, a->keys, a->scale, a->causal};
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
    int64_t rows = q->size[2] < QUERIES ? q->size[2] : QUERIES;

    return kernel_bytes(rows, k->size[2], 8) + RT_ALIGN;
}

static size_t mask_bytes(const struct attention *a)
{
    return a->mask != NULL ? kernel_bytes(a->length, a->keys, 8) + RT_ALIGN : 0;
}

static const void *mask_row(const void *mask, const struct attention *a, int64_t first)
{
    return mask == NULL ? NULL : (const char *)mask + first * a->keys * kind_bytes[a->kind];
}

/* Takes weights of a block of head i, and scales those that stay. */
static void drop(const struct attention *a, const struct attention_block *b, int64_t i, void *p)
{
    double scale = 1 / (1 - a->dropout);
    uint64_t least = (uint64_t)ldexp(a->dropout, 64);

    if (a->dropout == 0)
        return;
    for (int64_t r = 0; r < b->rows; r++)
        for (int64_t k = 0; k < b->keys; k++) {
            int64_t at = r * b->keys + k, number = (i * a->length + b->first + r) * a->keys + k;
            double by = draw_bits(a->key, number) >= least ? scale : 0;

            if (a->kind == K_F32)
                ((float *)p)[at] *= (float)by;
            else
                ((double *)p)[at] *= by;
        }
}

/* Is t like the queries, with the width of values? */
static bool is_output(struct rt_call *c, const struct attention *a, const struct rt_tensor *t)
{
    return (t->n == 4 && t->size[0] == a->batch && t->size[1] == a->heads &&
            t->size[2] == a->length && t->size[3] == a->value_width) ||
           kernel_apart(c);
}

/* Logarithms of sums, unless they are absent: at least one for each query. */
static bool is_lse(struct rt_call *c, const struct attention *a, const struct rt_tensor *t)
{
    if (t == NULL)
        return true;
    if (t->n == 3)
        return (t->size[0] == a->batch && t->size[1] == a->heads && t->size[2] >= a->length) ||
               kernel_apart(c);
    return kernel_holds(c, t, a->batch * a->heads * a->length);
}

/* lse may be absent; it may have room for more rows than there are queries. */
static bool forward(struct rt_call *c, struct attention *a, struct rt_tensor *out,
                    struct rt_tensor *lse_out)
{
    struct plain s = plain_begin(c);

    if (!describe(c, a) || !is_output(c, a, out) || !is_lse(c, a, lse_out))
        return false;
    enum kind kind = a->kind;
    int64_t bytes = kind_bytes[kind];
    struct rt_tensor q = take(&s, a->q, kind, true), k = take(&s, a->k, kind, true),
                     v = take(&s, a->v, kind, true), o = take(&s, out, kind, false);
    char *lse = lse_out != NULL ? plain_out(&s, lse_out, kind) : NULL;
    void *scores = plain_room(&s, score_bytes(a->q, a->k)), *mask = plain_room(&s, mask_bytes(a));
    int64_t lse_rows = lse_out != NULL && lse_out->n == 3 ? lse_out->size[2] : a->length;
    if (lse != NULL)
        memset(lse, 0, (size_t)rt_numel(lse_out) * (size_t)bytes);
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        int64_t shared = i / a->heads * (a->heads / a->share) + i % a->heads / a->share;
        const void *m = mask_of(c, a, i / a->heads, i % a->heads, mask);

        for (int64_t first = 0; first < a->length; first += QUERIES) {
            struct attention_block b = block_at(a, first);
            struct matrix p = {scores, b.rows, b.keys, b.keys, 1};

            if (!gemm(c, kind, p, head(&q, i, first, b.rows), turned(head(&k, shared, 0, b.keys)),
                      1, 0, s.at))
                return false;
            rows_attention(kind, &b, scores,
                           lse != NULL ? lse + (i * lse_rows + first) * bytes : NULL,
                           mask_row(m, a, first));
            drop(a, &b, i, scores);
            if (!gemm(c, kind, head(&o, i, first, b.rows), p, head(&v, shared, 0, b.keys), 1, 0,
                      s.at))
                return false;
        }
    }
    if (lse != NULL)
        plain_done(&s, lse_out, lse, kind);
    return give_back(c, out, &o);
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

/* The forms for GPUs: the logarithms may be left out; the seed is result `seed`, and the next one
 * how many numbers were drawn before. */
static bool forward_on_gpu(struct rt_call *c, struct attention *a, uint32_t seed)
{
    const struct rt_value drawn = {.kind = RT_INT,
                                   .i = a->dropout != 0 ? (int64_t)(c->key >> 1) : 0};
    const struct rt_value zero = {.kind = RT_INT};
    struct rt_tensor *lse = out_at(c, 1);

    if (lse != NULL && rt_numel(lse) == 0)
        lse = NULL;
    for (uint32_t i = seed; i < seed + 2; i++)
        if (out_at(c, i) != NULL && !fill_tensor(c, out_at(c, i), i == seed ? &drawn : &zero))
            return false;
    a->seed = out_at(c, seed);
    if (out_at(c, 8) != NULL && rt_numel(out_at(c, 8)) > 0)
        return kernel_error(c, "no kernel returns the weights of attention");
    return forward(c, a, &c->out[0], lse);
}

/* _flash(q, k, v, dropout_p, is_causal, return_debug_mask, *, scale) -> 9 */
bool kernel_attention_flash(struct rt_call *c)
{
    struct attention a = {.q = arg_tensor(c, 0),
                          .k = arg_tensor(c, 1),
                          .v = arg_tensor(c, 2),
                          .causal = arg_bool(c, 4, false),
                          .scale = scale_at(c, 6),
                          .dropout = arg_float(c, 3, 0)};

    return forward_on_gpu(c, &a, 6);
}

/* _efficient(q, k, v, attn_bias, compute_log_sumexp, dropout_p, is_causal, *, scale) -> 4, and
 * _cudnn, which has return_debug_mask before the scale -> 9 */
static bool forward_with_bias(struct rt_call *c, uint32_t scale, uint32_t seed)
{
    struct attention a = {.q = arg_tensor(c, 0),
                          .k = arg_tensor(c, 1),
                          .v = arg_tensor(c, 2),
                          .mask = arg_tensor(c, 3),
                          .causal = arg_bool(c, 6, false),
                          .scale = scale_at(c, scale),
                          .dropout = arg_float(c, 5, 0)};

    return forward_on_gpu(c, &a, seed);
}

bool kernel_attention_efficient(struct rt_call *c)
{
    return forward_with_bias(c, 7, 2);
}

bool kernel_attention_cudnn(struct rt_call *c)
{
    return forward_with_bias(c, 8, 6);
}

static size_t attention_scratch(const struct rt_call *c, uint32_t q)
{
    const struct rt_tensor *a = arg_tensor(c, q), *b = arg_tensor(c, q + 1);

    return plain_scratch(c, 0) +
           (a != NULL && b != NULL && a->n == 4 && b->n == 4
                ? 3 * score_bytes(a, b) + kernel_bytes(a->size[2], b->size[2], 8) + RT_ALIGN
                : 0) +
           plain_scratch(c, 0);
}

#define SCRATCH_OF(name, q)                                                                        \
    size_t scratch_##name(const struct rt_call *c)                                                 \
    {                                                                                              \
        return attention_scratch(c, q);                                                            \
    }
SCRATCH_OF(attention_cpu, 0)
SCRATCH_OF(attention_flash, 0)
SCRATCH_OF(attention_efficient, 0)
SCRATCH_OF(attention_cudnn, 0)

/* ---- backward ---- */

/* What the gradients of one head are made of. */
struct backward {
    struct rt_tensor g, q, k, v, o, d[3];
    const char *lse;
    void *p, *dp, *kept, *room;
};

/* Keys that no query sees have no gradient. */
static void clear_unseen(const struct attention *a, const struct backward *w, int64_t shared,
                         int64_t seen)
{
    for (int t = 1; t < 3; t++) {
        struct matrix m = head(&w->d[t], shared, seen, a->keys - seen);

        for (int64_t r = 0; r < m.rows; r++)
            memset((char *)m.p + r * m.row_step * kind_bytes[a->kind], 0,
                   (size_t)(m.cols * kind_bytes[a->kind]));
    }
}

/* add: gradients of keys and values are added to what is there. */
static bool block_backward(struct rt_call *c, const struct attention *a, const struct backward *w,
                           struct attention_block b, int64_t i, int64_t shared, const void *mask,
                           double add)
{
    enum kind kind = a->kind;
    struct matrix p = {w->p, b.rows, b.keys, b.keys, 1}, dp = {w->dp, b.rows, b.keys, b.keys, 1};
    struct matrix g = head(&w->g, i, b.first, b.rows), q = head(&w->q, i, b.first, b.rows),
                  o = head(&w->o, i, b.first, b.rows), k = head(&w->k, shared, 0, b.keys),
                  v = head(&w->v, shared, 0, b.keys);
    const char *lse = w->lse + b.first * kind_bytes[kind];

    if (!gemm(c, kind, p, q, turned(k), 1, 0, w->room))
        return false;
    rows_attention_again(kind, &b, w->p, lse, mask_row(mask, a, b.first));
    struct matrix kept = p; /* the weights that were not dropped */
    if (a->dropout != 0) {
        kept.p = memcpy(w->kept, w->p, (size_t)(b.rows * b.keys * kind_bytes[kind]));
        drop(a, &b, i, kept.p);
    }
    if (!gemm(c, kind, head(&w->d[2], shared, 0, b.keys), turned(kept), g, 1, add, w->room) ||
        !gemm(c, kind, dp, g, turned(v), 1, 0, w->room))
        return false;
    drop(a, &b, i, w->dp);
    rows_attention_scores(kind, &b, w->dp, w->p, g.p, g.row_step, o.p, o.row_step, a->value_width);
    return gemm(c, kind, head(&w->d[0], i, b.first, b.rows), dp, k, 1, 0, w->room) &&
           gemm(c, kind, head(&w->d[1], shared, 0, b.keys), turned(dp), q, 1, add, w->room);
}

static bool backward(struct rt_call *c, struct attention *a, const struct rt_tensor *grad,
                     const struct rt_tensor *out, const struct rt_tensor *lse_in)
{
    struct plain s = plain_begin(c);
    struct rt_tensor *to[3] = {out_at(c, 0), out_at(c, 1), out_at(c, 2)};

    if (!describe(c, a) || !is_output(c, a, grad) || !is_output(c, a, out) ||
        !is_lse(c, a, lse_in) || !kernel_same(c, to[0], a->q) || !kernel_same(c, to[1], a->k) ||
        !kernel_same(c, to[2], a->v))
        return false;
    if (to[0] == NULL || to[1] == NULL || to[2] == NULL)
        return kernel_error(c, "attention backward without the gradient of an operand");
    enum kind kind = a->kind;
    struct backward w = {.g = take(&s, grad, kind, true),
                         .q = take(&s, a->q, kind, true),
                         .k = take(&s, a->k, kind, true),
                         .v = take(&s, a->v, kind, true),
                         .o = take(&s, out, kind, true)};
    for (int t = 0; t < 3; t++)
        w.d[t] = take(&s, to[t], kind, false);
    const char *lse = plain_in(&s, lse_in, kind);
    w.p = plain_room(&s, score_bytes(a->q, a->k));
    w.dp = plain_room(&s, score_bytes(a->q, a->k));
    w.kept = plain_room(&s, a->dropout != 0 ? score_bytes(a->q, a->k) : 0);
    void *mask = plain_room(&s, mask_bytes(a));
    w.room = s.at;
    int64_t lse_rows = lse_in->n == 3 ? lse_in->size[2] : a->length;
    for (int64_t i = 0; i < a->batch * a->heads; i++) {
        int64_t shared = i / a->heads * (a->heads / a->share) + i % a->heads / a->share;
        bool add = i % a->share != 0; /* the first of those that share a head begins its sums */
        const void *m = mask_of(c, a, i / a->heads, i % a->heads, mask);
        int64_t last = (a->length - 1) / QUERIES * QUERIES;

        w.lse = lse + i * lse_rows * kind_bytes[kind];
        if (!add)
            clear_unseen(a, &w, shared, a->length > 0 ? block_at(a, last).keys : 0);
        /* The last queries see most keys, and begin the sums. */
        for (int64_t first = last; a->length > 0 && first >= 0; first -= QUERIES, add = true)
            if (!block_backward(c, a, &w, block_at(a, first), i, shared, m, add))
                return false;
    }
    return give_back(c, to[0], &w.d[0]) && give_back(c, to[1], &w.d[1]) &&
           give_back(c, to[2], &w.d[2]);
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

/* q, k and v follow the gradient everywhere; mask: the operand of a bias, 0 if there is none. */
static struct attention backward_of(const struct rt_call *c, uint32_t mask, uint32_t seed,
                                    uint32_t dropout, uint32_t causal, uint32_t scale)
{
    return (struct attention){.q = arg_tensor(c, 1),
                              .k = arg_tensor(c, 2),
                              .v = arg_tensor(c, 3),
                              .mask = mask != 0 ? arg_tensor(c, mask) : NULL,
                              .causal = arg_bool(c, causal, false),
                              .scale = scale_at(c, scale),
                              .seed = arg_tensor(c, seed),
                              .dropout = arg_float(c, dropout, 0)};
}

/* _flash_backward(grad, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
 * is_causal, philox_seed, philox_offset, *, scale) */
bool kernel_attention_flash_backward(struct rt_call *c)
{
    struct attention a = backward_of(c, 0, 12, 10, 11, 14);

    return backward(c, &a, arg_tensor(c, 0), arg_tensor(c, 4), arg_tensor(c, 5));
}

/* _efficient_backward(grad, q, k, v, attn_bias, out, lse, philox_seed, philox_offset, dropout_p,
 * grad_input_mask, is_causal, *, scale) */
bool kernel_attention_efficient_backward(struct rt_call *c)
{
    struct attention a = backward_of(c, 4, 7, 9, 11, 12);

    if (out_at(c, 3) != NULL)
        return kernel_error(c, "no kernel computes the gradient of the bias of attention");
    return backward(c, &a, arg_tensor(c, 0), arg_tensor(c, 5), arg_tensor(c, 6));
}

/* _cudnn_backward(grad, q, k, v, out, lse, philox_seed, philox_offset, attn_bias, cum_seq_q,
 * cum_seq_k, max_q, max_k, dropout_p, is_causal, *, scale) */
bool kernel_attention_cudnn_backward(struct rt_call *c)
{
    struct attention a = backward_of(c, 8, 6, 13, 14, 15);

    return backward(c, &a, arg_tensor(c, 0), arg_tensor(c, 4), arg_tensor(c, 5));
}

SCRATCH_OF(attention_cpu_backward, 1)
SCRATCH_OF(attention_flash_backward, 1)
SCRATCH_OF(attention_efficient_backward, 1)
SCRATCH_OF(attention_cudnn_backward, 1)
#undef SCRATCH_OF
