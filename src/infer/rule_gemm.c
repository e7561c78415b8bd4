/* Shape rules of matrix products. Results are contiguous for any layout of the operands. */
#include "infer/rule.h"

/* The dtype of a product: out_dtype= if given, else the first factor's. */
static enum dtype product_dtype(struct infer *x, const struct type *a)
{
    enum dtype d;

    return in_dtype(x, in_param(x, "out_dtype"), &d) ? d : (enum dtype)a->dtype;
}

/* The sizes of a batched matrix product: a's except the last, and b's last. */
static bool out_product(struct infer *x, enum dtype dtype, const struct type *a,
                        const struct type *b, uint32_t n)
{
    if (a == NULL || b == NULL || a->n != n || b->n != n ||
        !sizes_meet(x, a->size[n - 1], b->size[n - 2]) ||
        (n > 2 && !sizes_meet(x, a->size[0], b->size[0])))
        return false;
    sym_id *size = new_syms(x, n);
    memcpy(size, a->size, (n - 1) * sizeof(*size));
    size[n - 1] = b->size[n - 1];
    return out_tensor(x, dtype, n, size, NULL, a->device);
}

bool shape_mm(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);

    return a != NULL && out_product(x, product_dtype(x, a), a, b, 2);
}

bool shape_int_mm(struct infer *x)
{
    return out_product(x, DTYPE_I32, in_tensor(x, 0), in_tensor(x, 1), 2);
}

bool shape_addmm(struct infer *x)
{
    const struct type *a = in_tensor(x, 1), *b = in_tensor(x, 2);

    return a != NULL && out_product(x, product_dtype(x, a), a, b, 2);
}

bool shape_bmm(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);

    return a != NULL && out_product(x, product_dtype(x, a), a, b, 3);
}

bool shape_baddbmm(struct infer *x)
{
    const struct type *a = in_tensor(x, 1), *b = in_tensor(x, 2);

    return a != NULL && out_product(x, product_dtype(x, a), a, b, 3);
}

bool shape_addbmm(struct infer *x)
{
    const struct type *a = in_tensor(x, 1), *b = in_tensor(x, 2);

    if (a == NULL || b == NULL || a->n != 3 || b->n != 3 ||
        !sizes_meet(x, a->size[2], b->size[1]) || !sizes_meet(x, a->size[0], b->size[0]))
        return false;
    return out_tensor(x, (enum dtype)a->dtype, 2, (sym_id[]){a->size[1], b->size[2]}, NULL,
                      a->device);
}

bool shape_mv(struct infer *x)
{
    int added = in_param(x, "mat"); /* of addmv */
    int at = added != NO_PARAM ? added : 0;
    const struct type *a = in_tensor(x, at), *b = in_tensor(x, at + 1), *self = in_tensor(x, 0);

    if (a == NULL || self == NULL || a->n != 2 ||
        (b != NULL && b->n == 1 && !sizes_meet(x, a->size[1], b->size[0])))
        return false;
    /* torch's kernels disagree about the result of an empty product plus a broadcast vector. */
    if (added != NO_PARAM && is_zero(x, a->size[0]) && (self->n != 1 || !is_zero(x, self->size[0])))
        return false;
    return out_tensor(x, (enum dtype)a->dtype, 1, a->size, NULL, a->device);
}

bool shape_dot(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);

    if (a != NULL && b != NULL && a->n == 1 && b->n == 1 && !sizes_meet(x, a->size[0], b->size[0]))
        return false;
    return a != NULL && out_tensor(x, (enum dtype)a->dtype, 0, NULL, NULL, a->device);
}

/* outer and ger are an element-wise product; addr adds a matrix to it, also element-wise. */
bool shape_outer(struct infer *x)
{
    bool added = in_param(x, "vec1") != NO_PARAM;
    const struct type *a = in_tensor(x, added), *b = in_tensor(x, added + 1);
    struct promotion p = {0};

    if (a == NULL || b == NULL || a->n != 1 || b->n != 1)
        return false;
    promote_tensor(&p, a);
    promote_tensor(&p, b);
    sym_id *size = new_syms(x, 2);
    size[0] = a->size[0];
    size[1] = b->size[0];
    const struct type *t = step_plain(x, a, 2, size);
    if (added) {
        const struct type *matrix = in_tensor(x, 0);
        if (matrix == NULL || matrix->n > 2)
            return false;
        promote_tensor(&p, matrix);
        t = tidy_only(x, step_two(x, matrix, t), &matrix, 1);
    }
    if (promoted(&p) == DTYPE_NONE)
        return false;
    return out_type(x, as_item(x, t, promoted(&p)));
}

/* Matrices in the last two dimensions; earlier dimensions broadcast; a vector has one dimension
 * less. */
static bool out_matmul(struct infer *x, const struct type *a, const struct type *b)
{
    if (a == NULL || b == NULL || a->n == 0 || b->n == 0 ||
        !sizes_meet(x, a->size[a->n - 1], b->size[b->n > 1 ? b->n - 2 : 0]))
        return false;
    uint32_t batch_a = a->n > 2 ? a->n - 2 : 0, batch_b = b->n > 2 ? b->n - 2 : 0, n;
    struct type left = {.n = batch_a, .size = a->size}, right = {.n = batch_b, .size = b->size};
    const sym_id *batch;

    if (!broadcast_sizes(x, (const struct type *[]){&left, &right}, 2, &n, &batch))
        return false;
    sym_id *size = new_syms(x, n + 2);
    if (n > 0)
        memcpy(size, batch, n * sizeof(*size));
    if (a->n > 1)
        size[n++] = a->size[a->n - 2];
    if (b->n > 1)
        size[n++] = b->size[b->n - 1];
    return out_tensor(x, (enum dtype)a->dtype, n, size, NULL, a->device);
}

bool shape_matmul(struct infer *x)
{
    return out_matmul(x, in_tensor(x, 0), in_tensor(x, 1));
}

bool shape_linear(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *w = in_tensor(x, 1);

    if (a == NULL || w == NULL || a->n == 0 || w->n == 0 || w->n > 2 ||
        !sizes_meet(x, a->size[a->n - 1], w->size[w->n - 1]))
        return false;
    sym_id *size = new_syms(x, a->n);
    memcpy(size, a->size, (a->n - 1) * sizeof(*size));
    if (w->n == 2)
        size[a->n - 1] = w->size[0];
    return out_tensor(x, (enum dtype)a->dtype, w->n == 2 ? a->n : a->n - 1, size, NULL, a->device);
}

/* Gradients of weight and bias are returned together, if either is requested. */
bool shape_linear_backward(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *grad = in_tensor(x, 1), *w = in_tensor(x, 2);
    const int64_t *mask;
    uint32_t n;

    if (a == NULL || grad == NULL || w == NULL || grad->n == 0 || !in_ints(x, 3, &mask, &n) ||
        n != 3)
        return false;
    type_id item[3] = {type_none(x->type), type_none(x->type), type_none(x->type)};
    enum dtype dtype = (enum dtype)grad->dtype;
    if (mask[0])
        item[0] = new_tensor(x, dtype, a->n, a->size, NULL, grad->device);
    if (mask[1] || mask[2]) {
        item[1] = new_tensor(x, dtype, w->n, w->size, NULL, grad->device);
        item[2] = new_tensor(x, dtype, 1, &grad->size[grad->n - 1], NULL, grad->device);
    }
    return out_list(x, item, 3);
}

bool shape_scaled_mm(struct infer *x)
{
    return shape_mm(x);
}

/* Groups are consecutive in a 2-d factor, and stacked in a 3-d one; a product of two 2-d factors
 * has one matrix per group. 8-bit factors give bfloat16. */
bool shape_grouped_mm(struct infer *x)
{
    const struct type *a = in_tensor(x, 0), *b = in_tensor(x, 1);
    const struct type *offs = in_tensor(x, in_param(x, "offs"));

    if (a == NULL || b == NULL || a->n < 2 || a->n > 3 || b->n < 2 || b->n > 3)
        return false;
    enum dtype dtype = product_dtype(x, a);
    if (dtype_at(dtype)->category == DTYPE_IS_FLOAT8)
        dtype = DTYPE_BF16;
    sym_id row = a->size[a->n - 2], column = b->size[b->n - 1];
    if (a->n != b->n)
        return out_tensor(x, dtype, 2, (sym_id[]){row, column}, NULL, a->device);
    if (a->n == 2 && (offs == NULL || offs->n != 1))
        return false;
    sym_id groups = a->n == 3 ? a->size[0] : offs->size[0];
    return out_tensor(x, dtype, 3, (sym_id[]){groups, row, column}, NULL, a->device);
}
