/* Elements chosen by masks and places; results whose sizes depend on data. */
#include "run/kernel/index_mask.h"
#include "run/kernel/index_place.h"

/* ---- nonzero ---- */

/* (self): a row for each element that is not 0, with its index in each dimension */
bool kernel_nonzero(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *t = arg_tensor(c, 0);
    struct rt_tensor from = {.dtype = DTYPE_I64, .n = 2};
    int64_t count = mask_places(t, NULL, 0);

    if (c->out->n != 2 || c->out->size[0] != count || c->out->size[1] != t->n)
        return kernel_error(c, "%lld elements are not 0, that is not its size", (long long)count);
    from.data = plain_room(&s, (size_t)rt_numel(c->out) * sizeof(int64_t));
    from.size[0] = count;
    from.size[1] = t->n;
    from.stride[0] = 1;
    from.stride[1] = count;
    mask_places(t, from.data, count);
    return copy_tensor(c, c->out, &from);
}

size_t scratch_nonzero(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

int64_t count_nonzero(const struct rt_call *c)
{
    return mask_places(arg_tensor(c, 0), NULL, 0);
}

/* ---- masked_select ---- */

/* What self and mask have together, contiguous; false if they cannot be broadcast. */
static bool common(const struct rt_call *c, enum dtype d, struct rt_tensor *t)
{
    const struct rt_tensor *of[] = {arg_tensor(c, 0), arg_tensor(c, 1)};
    int64_t step = 1;

    *t = (struct rt_tensor){.dtype = (uint8_t)d, .n = of[of[1]->n > of[0]->n]->n};
    for (int d1 = t->n - 1; d1 >= 0; d1--) {
        t->size[d1] = 1;
        for (int k = 0; k < 2; k++) {
            int at = d1 - (t->n - of[k]->n);

            if (at >= 0 && of[k]->size[at] != 1) {
                if (t->size[d1] != 1 && t->size[d1] != of[k]->size[at])
                    return false;
                t->size[d1] = of[k]->size[at];
            }
        }
        t->stride[d1] = step;
        step *= t->size[d1];
    }
    return true;
}

/* (self, mask) */
bool kernel_masked_select(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct rt_tensor all, mask;
    int64_t n = 0;

    if (!kernel_dtype(c, c->out, arg_tensor(c, 0)->dtype) ||
        !kernel_dtype(c, arg_tensor(c, 1), DTYPE_B8))
        return false;
    if (!common(c, c->out->dtype, &all) || !common(c, DTYPE_B8, &mask))
        return kernel_apart(c);
    size_t bytes = dtype_at(all.dtype)->bytes;
    all.data = plain_room(&s, (size_t)rt_numel(&all) * bytes);
    mask.data = plain_room(&s, (size_t)rt_numel(&mask));
    if (!copy_tensor(c, &all, arg_tensor(c, 0)) || !copy_tensor(c, &mask, arg_tensor(c, 1)))
        return false;
    const uint8_t *is = mask.data;
    char *to = all.data; /* they move towards the beginning */
    for (int64_t i = 0; i < rt_numel(&all); i++)
        if (is[i])
            memmove(to + (size_t)n++ * bytes, to + (size_t)i * bytes, bytes);
    if (!kernel_holds(c, c->out, n))
        return false;
    plain_raw_done(&s, c->out, to);
    return true;
}

size_t scratch_masked_select(const struct rt_call *c)
{
    struct rt_tensor t;

    if (!common(c, DTYPE_B8, &t))
        return 0;
    return plain_scratch(c, kernel_bytes(rt_numel(&t), 17, 1) + 2 * RT_ALIGN);
}

int64_t count_masked_select(const struct rt_call *c)
{
    const struct rt_tensor *mask = arg_tensor(c, 1);
    struct rt_tensor t;

    if (!common(c, DTYPE_B8, &t) || rt_numel(mask) == 0 || rt_numel(&t) == 0)
        return 0;
    return mask_places(mask, NULL, 0) * (rt_numel(&t) / rt_numel(mask));
}

/* ---- bincount ---- */

/* Element i of a tensor of integers with at most one dimension. */
static int64_t int_at(const struct rt_tensor *t, int64_t i)
{
    int64_t x;

    elem_load(&x, (const char *)t->data + i * t->stride[0] * dtype_at(t->dtype)->bytes, t->dtype, 1,
              1);
    return x;
}

/* (self, weights, minlength) */
bool kernel_bincount(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *t = arg_tensor(c, 0), *weights = arg_tensor(c, 1);

    if (t->n != 1 || !kernel_holds(c, weights, rt_numel(t)))
        return kernel_apart(c);
    enum kind k = kind_of(c->out->dtype) == K_I64 ? K_I64 : K_F64;
    const double *w = plain_in(&s, weights, K_F64);
    void *out = plain_out(&s, c->out, k);
    memset(out, 0, (size_t)rt_numel(c->out) * 8);
    for (int64_t i = 0; i < rt_numel(t); i++) {
        int64_t at = int_at(t, i);

        if (at < 0 || at >= rt_numel(c->out))
            return kernel_error(c, "%lld is out of range for %lld bins", (long long)at,
                                (long long)rt_numel(c->out));
        if (k == K_I64)
            ((int64_t *)out)[at] += w != NULL ? (int64_t)w[i] : 1;
        else
            ((double *)out)[at] += w != NULL ? w[i] : 1;
    }
    plain_done(&s, c->out, out, k);
    return true;
}

size_t scratch_bincount(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

int64_t count_bincount(const struct rt_call *c)
{
    const struct rt_tensor *t = arg_tensor(c, 0);
    int64_t most = arg_int(c, 2, 0);

    for (int64_t i = 0; i < rt_numel(t) && t->n == 1; i++)
        most = int_at(t, i) >= most ? int_at(t, i) + 1 : most;
    return most;
}

/* ---- repeat_interleave ---- */

/* (repeats) */
bool kernel_repeat_index(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *t = arg_tensor(c, 0);
    int64_t n = 0;

    if (t->n != 1 || kind_of(c->out->dtype) != K_I64)
        return kernel_apart(c);
    int64_t *out = plain_out(&s, c->out, K_I64), most = rt_numel(c->out);
    for (int64_t i = 0; i < rt_numel(t); i++) {
        int64_t times = int_at(t, i);

        if (times < 0 || times > most - n)
            return kernel_error(c, "it repeats %lld times, which does not fit its size",
                                (long long)times);
        while (times-- > 0)
            out[n++] = i;
    }
    if (!kernel_holds(c, c->out, n))
        return false;
    plain_done(&s, c->out, out, K_I64);
    return true;
}

size_t scratch_repeat_index(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

int64_t count_repeat_index(const struct rt_call *c)
{
    const struct rt_tensor *t = arg_tensor(c, 0);
    int64_t sum = 0;

    for (int64_t i = 0; i < rt_numel(t) && t->n == 1; i++)
        if (int_at(t, i) < 0 || __builtin_add_overflow(sum, int_at(t, i), &sum))
            return 0;
    return sum;
}

/* ---- masked_scatter, take ---- */

/* (self, mask, source): source's elements, one after the other, where the mask is true */
bool kernel_masked_scatter(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *source = arg_tensor(c, 2);
    struct rt_tensor mask = *c->out;
    size_t bytes = dtype_at(c->out->dtype)->bytes;
    int64_t n = 0, step = 1;

    if (!kernel_dtype(c, arg_tensor(c, 1), DTYPE_B8) || !kernel_dtype(c, source, c->out->dtype) ||
        !kernel_broadcasts(c, arg_tensor(c, 0), c->out))
        return false;
    mask.dtype = DTYPE_B8;
    for (int d = mask.n - 1; d >= 0; step *= mask.size[d--])
        mask.stride[d] = step;
    mask.data = plain_room(&s, (size_t)rt_numel(&mask));
    if (!copy_tensor(c, &mask, arg_tensor(c, 1)))
        return false;
    const char *from = plain_raw_in(&s, source);
    if (c->out->data != arg_tensor(c, 0)->data && !copy_tensor(c, c->out, arg_tensor(c, 0)))
        return false;
    char *to = (char *)(uintptr_t)plain_raw_in(&s, c->out);
    for (int64_t i = 0; i < rt_numel(c->out); i++) {
        if (!((const uint8_t *)mask.data)[i])
            continue;
        if (n == rt_numel(source))
            return kernel_error(c, "the mask has more places than the %lld elements", (long long)n);
        memcpy(to + (size_t)i * bytes, from + (size_t)n++ * bytes, bytes);
    }
    plain_raw_done(&s, c->out, to);
    return true;
}

size_t scratch_masked_scatter(const struct rt_call *c)
{
    return plain_scratch(c, kernel_bytes(rt_numel(c->out), 2, 1) + RT_ALIGN);
}

/* (self, index) */
bool kernel_take(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *self = arg_tensor(c, 0);
    size_t bytes = dtype_at(self->dtype)->bytes;

    if (!kernel_dtype(c, c->out, self->dtype) || !kernel_same(c, c->out, arg_tensor(c, 1)))
        return false;
    const char *from = plain_raw_in(&s, self);
    const int64_t *index = plain_in(&s, arg_tensor(c, 1), K_I64);
    char *to = plain_raw_out(&s, c->out);
    for (int64_t i = 0; i < rt_numel(c->out); i++) {
        int64_t at = index_position(index[i], rt_numel(self));

        if (at < 0)
            return index_out_of_range(c, index[i], rt_numel(self));
        memcpy(to + (size_t)i * bytes, from + (size_t)at * bytes, bytes);
    }
    plain_raw_done(&s, c->out, to);
    return true;
}

size_t scratch_take(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* linalg_cross(self, other, dim) */
bool kernel_cross(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *out = c->out;
    int dim;

    if (kind_of(out->dtype) == K_I64 || kind_of(out->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes cross products of %s",
                            dtype_at(out->dtype)->name);
    if (out->n == 0 || !kernel_dim(c, out, arg_int(c, 2, -1), &dim) || out->size[dim] != 3)
        return kernel_apart(c);
    const double *a = plain_spread(&s, arg_tensor(c, 0)), *b = plain_spread(&s, arg_tensor(c, 1));
    if (a == NULL || b == NULL)
        return false;
    double *y = plain_out(&s, out, K_F64);
    int64_t step = plain_count(out, dim + 1, out->n);
    for (int64_t i = 0; i < rt_numel(out); i++) {
        int64_t at = i / step % 3, from = i - at * step, u = from + (at + 1) % 3 * step,
                v = from + (at + 2) % 3 * step;

        y[i] = a[u] * b[v] - a[v] * b[u];
    }
    plain_done(&s, out, y, K_F64);
    return true;
}

size_t scratch_cross(const struct rt_call *c)
{
    return plain_scratch(c, 2 * (kernel_bytes(rt_numel(c->out), 1, 8) + RT_ALIGN));
}
