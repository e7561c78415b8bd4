/* Shape rules of scaled dot product attention. Operands are [batch, heads, length, width] unless
 * the rule says otherwise; the kernels return different layouts. */
#include "infer/rule.h"

struct qkv {
    const struct type *q, *k, *v;
};

/* query, key and value begin at parameter p. */
static bool read_qkv(struct infer *x, int p, struct qkv *out)
{
    *out = (struct qkv){in_tensor(x, p), in_tensor(x, p + 1), in_tensor(x, p + 2)};
    return out->q != NULL && out->k != NULL && out->v != NULL && out->q->n == 4 && out->k->n == 4 &&
           out->v->n == 4;
}

static type_id scalar(struct infer *x, enum dtype dtype, const struct type *like)
{
    return new_tensor(x, dtype, 0, NULL, NULL, like->device);
}

/* A 4-d tensor that stores heads after the length. */
static type_id heads_inside(struct infer *x, enum dtype dtype, const sym_id *size, str_id device)
{
    sym_id order[4] = {size[0], size[2], size[1], size[3]};
    const sym_id *s = contiguous_strides(x, 4, order);

    return new_tensor(x, dtype, 4, size, (sym_id[]){s[0], s[2], s[1], s[3]}, device);
}

/* Dense, of the given sizes, with dimensions in the order of t's strides. */
static type_id in_order_of(struct infer *x, const struct type *t, const sym_id *size)
{
    const sym_id *stride = t->strided ? reference_strides(x, &t, 1, t->n, size) : NULL;

    return type_tensor(x->type, (enum dtype)t->dtype, t->n, size, stride, t->device);
}

/* ---- forward ---- */

/* Attention weights as the flash kernel returns them for debugging: keys rounded up to its blocks.
 * Longer sequences are padded differently. */
static sym_id debug_keys(struct infer *x, const struct qkv *a)
{
    int64_t keys;

    if (!sym_as_int(x->sym, a->k->size[2], &keys) || keys > 256)
        return 0;
    return num(x, keys <= 128 ? 128 : 256);
}

bool shape_sdpa_flash(struct infer *x)
{
    struct qkv a;
    bool debug;

    if (!read_qkv(x, 0, &a) || !in_bool(x, in_param(x, "return_debug_mask"), &debug))
        return false;
    const struct type *q = a.q;
    enum dtype dtype = (enum dtype)q->dtype;
    type_id mask = new_tensor(x, dtype, 1, (sym_id[]){num(x, 0)}, NULL, q->device);
    if (debug)
        mask = new_tensor(x, dtype, 4,
                          (sym_id[]){q->size[0], q->size[1], q->size[2], debug_keys(x, &a)}, NULL,
                          q->device);
    type_id item[9] = {
        in_order_of(x, q, q->size),
        new_tensor(x, DTYPE_F32, 3, q->size, NULL, q->device),
        type_none(x->type), /* where sequences begin: only for varying lengths */
        type_none(x->type),
        type_sym(x->type, q->size[2]),
        type_sym(x->type, a.k->size[2]),
        new_tensor(x, DTYPE_U64, 1, (sym_id[]){num(x, 2)}, NULL, q->device),
        scalar(x, DTYPE_U64, q),
        mask,
    };
    return out_list(x, item, 9);
}

bool shape_sdpa_efficient(struct infer *x)
{
    struct qkv a;
    bool logsumexp;

    if (!read_qkv(x, 0, &a) || !in_bool(x, in_param(x, "compute_log_sumexp"), &logsumexp))
        return false;
    const sym_id *s = a.q->size;
    sym_id out[4] = {s[0], s[1], s[2], a.v->size[3]};
    sym_id block = num(x, 32), rows = num(x, 0);
    if (logsumexp)
        rows = sym_mul(x->sym, sym_ceildiv(x->sym, s[2], block), block);
    type_id item[4] = {
        heads_inside(x, (enum dtype)a.q->dtype, out, a.q->device),
        new_tensor(x, DTYPE_F32, 3, (sym_id[]){s[0], s[1], rows}, NULL, a.q->device),
        scalar(x, DTYPE_I64, a.q),
        scalar(x, DTYPE_I64, a.q),
    };
    return out_list(x, item, 4);
}

/* Is the order of dimensions unambiguous, or is it strictly contiguous? */
static bool has_order(struct infer *x, const struct type *t)
{
    bool plain = t->strided, distinct = t->strided;

    for (uint32_t i = 0; t->strided && i < t->n; i++) {
        plain &= same_size(x, t->stride[i], contiguous_strides(x, t->n, t->size)[i]);
        distinct &= !is_zero(x, t->stride[i]);
        for (uint32_t k = 0; k < i; k++)
            distinct &= hint_of(x, t->stride[i]) != hint_of(x, t->stride[k]);
    }
    return plain || distinct;
}

bool shape_sdpa_cudnn(struct infer *x)
{
    struct qkv a;

    if (!read_qkv(x, 0, &a))
        return false;
    const sym_id *s = a.q->size;
    sym_id out[4] = {s[0], s[1], s[2], a.v->size[3]};
    type_id value = type_tensor(x->type, (enum dtype)a.q->dtype, 4, out, NULL, a.q->device);
    if (has_order(x, a.q))
        value = in_order_of(x, a.q, out);
    type_id item[9] = {
        value,
        new_tensor(x, DTYPE_F32, 4, (sym_id[]){s[0], s[1], s[2], num(x, 1)}, NULL, a.q->device),
        type_none(x->type),
        type_none(x->type),
        type_sym(x->type, s[2]),
        type_sym(x->type, a.k->size[2]),
        scalar(x, DTYPE_I64, a.q),
        scalar(x, DTYPE_I64, a.q),
        type_none(x->type),
    };
    return out_list(x, item, 9);
}

bool shape_sdpa_flash_cpu(struct infer *x)
{
    struct qkv a;

    if (!read_qkv(x, 0, &a))
        return false;
    const struct type *q = a.q;
    const sym_id *s = contiguous_strides(x, 3, (sym_id[]){q->size[0], q->size[2], q->size[1]});
    type_id item[2] = {
        in_order_of(x, q, q->size),
        new_tensor(x, wide_dtype((enum dtype)q->dtype), 3, q->size, (sym_id[]){s[0], s[2], s[1]},
                   q->device),
    };
    return out_list(x, item, 2);
}

/* Matrices in the last two dimensions; earlier dimensions broadcast. */
bool shape_sdpa_math(struct infer *x)
{
    const struct type *q = in_tensor(x, 0), *k = in_tensor(x, 1), *v = in_tensor(x, 2);
    bool grouped;
    uint32_t n, n_out;
    const sym_id *batch, *batch_out;

    if (q == NULL || k == NULL || v == NULL || q->n < 2 || k->n < 2 || v->n < 2 ||
        !in_bool(x, in_param(x, "enable_gqa"), &grouped))
        return false;
    struct type tq = {.n = q->n - 2, .size = q->size}, tk = {.n = k->n - 2, .size = k->size};
    struct type tv = {.n = v->n - 2, .size = v->size};
    if (grouped)
        tk = tv = tq; /* heads of key and value are repeated */
    if (!broadcast_sizes(x, (const struct type *[]){&tq, &tk}, 2, &n, &batch) ||
        !broadcast_sizes(x, (const struct type *[]){&tq, &tk, &tv}, 3, &n_out, &batch_out))
        return false;
    sym_id *weight = new_syms(x, n + 2), *out = new_syms(x, n_out + 2);
    for (uint32_t i = 0; i < n; i++)
        weight[i] = batch[i];
    for (uint32_t i = 0; i < n_out; i++)
        out[i] = batch_out[i];
    weight[n] = out[n_out] = q->size[q->n - 2];
    weight[n + 1] = k->size[k->n - 2];
    out[n_out + 1] = v->size[v->n - 1];
    type_id item[2] = {
        new_tensor(x, (enum dtype)q->dtype, n_out + 2, out, NULL, q->device),
        new_tensor(x, (enum dtype)q->dtype, n + 2, weight, NULL, q->device),
    };
    return out_list(x, item, 2);
}

/* The kernel, and so the layout, is chosen at run time. On cpu there are two, which agree for a
 * contiguous query. */
bool shape_sdpa(struct infer *x)
{
    const struct type *q = in_tensor(x, 0), *v = in_tensor(x, 2);

    if (q == NULL || v == NULL || q->n < 2 || v->n < 2)
        return false;
    sym_id *size = new_syms(x, q->n);
    for (uint32_t i = 0; i < q->n; i++)
        size[i] = i + 1 < q->n ? q->size[i] : v->size[v->n - 1];
    bool known = on_cpu(x, q) && is_contiguous(x, q);
    return out_type(x, type_tensor(x->type, (enum dtype)q->dtype, q->n, size,
                                   known ? contiguous_strides(x, q->n, size) : NULL, q->device));
}

/* ---- backward: query, key, value follow the gradient ---- */

bool shape_sdpa_backward(struct infer *x)
{
    struct qkv a;

    if (!read_qkv(x, 1, &a))
        return false;
    type_id item[3] = {in_order_of(x, a.q, a.q->size), in_order_of(x, a.k, a.k->size),
                       in_order_of(x, a.v, a.v->size)};
    return out_list(x, item, 3);
}

bool shape_sdpa_backward_cpu(struct infer *x)
{
    struct qkv a;

    if (!read_qkv(x, 1, &a))
        return false;
    type_id item[3] = {heads_inside(x, (enum dtype)a.q->dtype, a.q->size, a.q->device),
                       heads_inside(x, (enum dtype)a.k->dtype, a.k->size, a.k->device),
                       heads_inside(x, (enum dtype)a.v->dtype, a.v->size, a.v->device)};
    return out_list(x, item, 3);
}

/* Rows of the bias's gradient begin at multiples of 16 elements. */
static type_id bias_gradient(struct infer *x, const struct type *bias)
{
    sym_id block = num(x, 16);

    if (bias == NULL || bias->n == 0)
        return 0;
    sym_id *whole = new_syms(x, bias->n);
    memcpy(whole, bias->size, bias->n * sizeof(*whole));
    sym_id *last = &whole[bias->n - 1];
    *last = sym_mul(x->sym, sym_ceildiv(x->sym, *last, block), block);
    return new_tensor(x, (enum dtype)bias->dtype, bias->n, bias->size,
                      contiguous_strides(x, bias->n, whole), bias->device);
}

bool shape_sdpa_efficient_backward(struct infer *x)
{
    struct qkv a;
    const int64_t *mask;
    uint32_t n;

    if (!read_qkv(x, 1, &a) || !in_ints(x, in_param(x, "grad_input_mask"), &mask, &n) || n != 4)
        return false;
    type_id item[4] = {heads_inside(x, (enum dtype)a.q->dtype, a.q->size, a.q->device),
                       heads_inside(x, (enum dtype)a.k->dtype, a.k->size, a.k->device),
                       heads_inside(x, (enum dtype)a.v->dtype, a.v->size, a.v->device),
                       type_none(x->type)};
    if (mask[3] && in_given(x, in_param(x, "attn_bias")))
        item[3] = bias_gradient(x, in_tensor(x, in_param(x, "attn_bias")));
    return out_list(x, item, 4);
}
