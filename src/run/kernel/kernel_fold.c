/* Windows of images as columns, and back: im2col, col2im. */
#include "run/kernel/plain.h"

struct fold {
    int64_t planes, h, w, rows, columns; /* of the image; how many windows in each dimension */
    int64_t window[2], dilation[2], padding[2], stride[2];
};

static bool take_pair(int64_t *to, const struct rt_value *v, int64_t least)
{
    for (uint32_t d = 0; d < 2; d++) {
        to[d] = v->kind == RT_INT ? v->i : v->n > 0 ? v->item[d < v->n ? d : v->n - 1].i : least;
        if (to[d] < least || to[d] > INT32_MAX)
            return false;
    }
    return true;
}

/* first: the operand with the window; then dilation, padding and stride. image: (N, C, h, w) or
 * without N. columns: (N, C * window, how many) or without N. */
static bool describe(struct rt_call *c, struct fold *f, const struct rt_tensor *image,
                     const struct rt_tensor *columns, uint32_t first)
{
    int n = image->n;

    if (n < 3 || columns->n != n - 1)
        return kernel_apart(c);
    if (!take_pair(f->window, arg_at(c, first), 1) ||
        !take_pair(f->dilation, arg_at(c, first + 1), 1) ||
        !take_pair(f->padding, arg_at(c, first + 2), 0) ||
        !take_pair(f->stride, arg_at(c, first + 3), 1))
        return kernel_error(c, "no kernel makes columns of windows like these");
    f->planes = plain_count(image, 0, n - 2);
    f->h = image->size[n - 2];
    f->w = image->size[n - 1];
    if (f->h > INT32_MAX || f->w > INT32_MAX)
        return kernel_apart(c);
    int64_t tall = f->h + 2 * f->padding[0] - f->dilation[0] * (f->window[0] - 1) - 1,
            wide = f->w + 2 * f->padding[1] - f->dilation[1] * (f->window[1] - 1) - 1, all, each;
    f->rows = tall < 0 ? 0 : tall / f->stride[0] + 1;
    f->columns = wide < 0 ? 0 : wide / f->stride[1] + 1;
    if (__builtin_mul_overflow(f->window[0], f->window[1], &each) ||
        __builtin_mul_overflow(each, f->rows, &each) ||
        __builtin_mul_overflow(each, f->columns, &each) ||
        __builtin_mul_overflow(each, f->planes, &all))
        return kernel_apart(c);
    return kernel_holds(c, columns, all);
}

/* Bytes of elements: each is moved once; added up where back. */
static void move(const struct fold *f, char *image, char *columns, size_t bytes, bool back)
{
    for (int64_t p = 0; p < f->planes; p++, image += (size_t)(f->h * f->w) * bytes)
        for (int64_t k = 0; k < f->window[0] * f->window[1]; k++)
            for (int64_t i = 0; i < f->rows; i++)
                for (int64_t j = 0; j < f->columns; j++, columns += bytes) {
                    int64_t y = i * f->stride[0] - f->padding[0] +
                                k / f->window[1] * f->dilation[0];
                    int64_t x = j * f->stride[1] - f->padding[1] +
                                k % f->window[1] * f->dilation[1];
                    bool in = y >= 0 && y < f->h && x >= 0 && x < f->w;

                    if (!in && !back)
                        memset(columns, 0, bytes);
                    else if (!back)
                        memcpy(columns, image + (size_t)(y * f->w + x) * bytes, bytes);
                    else if (in)
                        ((double *)(void *)image)[y * f->w + x] += *(double *)(void *)columns;
                }
}

/* (self, kernel_size, dilation, padding, stride) */
bool kernel_im2col(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct fold f;

    if (!kernel_dtype(c, c->out, in->dtype) || !describe(c, &f, in, c->out, 1))
        return false;
    char *image = (char *)(uintptr_t)plain_raw_in(&s, in), *columns = plain_raw_out(&s, c->out);

    move(&f, image, columns, dtype_at(in->dtype)->bytes, false);
    plain_raw_done(&s, c->out, columns);
    return true;
}

/* (self, output_size, kernel_size, dilation, padding, stride): what comes to one place is added */
bool kernel_col2im(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct fold f;

    if (kind_of(in->dtype) >= K_C64)
        return kernel_error(c, "no kernel folds %s", dtype_at(in->dtype)->name);
    if (!describe(c, &f, c->out, in, 2))
        return false;
    double *columns = (double *)(uintptr_t)plain_in(&s, in, K_F64),
           *image = plain_out(&s, c->out, K_F64);

    memset(image, 0, (size_t)rt_numel(c->out) * sizeof(*image));
    move(&f, (char *)image, (char *)columns, sizeof(*image), true);
    plain_done(&s, c->out, image, K_F64);
    return true;
}

size_t scratch_im2col(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_col2im(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
