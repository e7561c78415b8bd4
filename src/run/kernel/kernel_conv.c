/* Convolutions: the windows of an image as columns of a matrix, times the filters. One to three
 * dimensions; fewer are taken as three, with sizes of 1. */
#include "run/kernel/gemm.h"
#include "run/kernel/hot.h"

struct conv {
    enum kind kind;
    int64_t batch, in, out, groups;        /* channels */
    int64_t size[3], window[3], result[3]; /* of images */
    int64_t stride[3], padding[3], dilation[3];
    int64_t pixels, patch, places;
};

static void take_sizes(int64_t *to, const struct rt_tensor *t)
{
    for (int d = 0; d < 3; d++) {
        int at = t->n - 3 + d;

        to[d] = at >= 2 ? t->size[at] : 1;
    }
}

/* A number for each dimension, at least `least`; false if there is none. */
static bool take_list(int64_t *to, const struct rt_value *v, int n, int64_t otherwise,
                      int64_t least)
{
    for (int d = 0; d < 3; d++) {
        int at = d - 3 + n;

        if (at >= 0 && v->kind == RT_LIST && v->n == 0)
            return false;
        to[d] = at < 0                ? otherwise
                : v->kind != RT_LIST  ? v->i
                : (uint32_t)at < v->n ? v->item[at].i
                                      : v->item[v->n - 1].i;
        if (to[d] < least || to[d] > INT32_MAX)
            return false;
    }
    return true;
}

/* Are the result's images as large as those of the input make them? */
static bool is_result(const struct conv *v)
{
    for (int d = 0; d < 3; d++) {
        int64_t room = v->size[d] + 2 * v->padding[d] - v->dilation[d] * (v->window[d] - 1) - 1;

        if (v->size[d] > INT32_MAX || v->window[d] > INT32_MAX || v->window[d] < 1 || room < 0 ||
            v->result[d] != room / v->stride[d] + 1)
            return false;
    }
    return true;
}

/* Do channels go together? */
static bool has_channels(const struct conv *v, const struct rt_tensor *weight,
                         const struct rt_tensor *result)
{
    return v->groups >= 1 && v->in % v->groups == 0 && v->out % v->groups == 0 &&
           weight->size[1] == v->in / v->groups && result->size[0] == v->batch &&
           result->size[1] == v->out;
}

/* input, weight and result, and where stride, padding, dilation, transposed and groups are. */
static bool describe(struct rt_call *c, struct conv *v, const struct rt_tensor *input,
                     const struct rt_tensor *weight, const struct rt_tensor *result, uint32_t at)
{
    int n = input->n - 2;

    if (arg_bool(c, at + 3, false))
        return kernel_error(c, "no kernel computes transposed convolutions");
    if (n < 1 || n > 3 || weight->n != input->n || result->n != input->n)
        return kernel_error(c, "a convolution of %d dimensions", n);
    if (kind_of(input->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes convolutions of complex numbers");
    *v = (struct conv){.kind = plain_float(input),
                       .batch = input->size[0],
                       .in = input->size[1],
                       .out = weight->size[0],
                       .groups = arg_int(c, at + 5, 1)};
    take_sizes(v->size, input);
    take_sizes(v->window, weight);
    take_sizes(v->result, result);
    if (!take_list(v->stride, arg_at(c, at), n, 1, 1) ||
        !take_list(v->padding, arg_at(c, at + 1), n, 0, 0) ||
        !take_list(v->dilation, arg_at(c, at + 2), n, 1, 1))
        return kernel_error(c, "a stride, padding or dilation that no convolution has");
    if (!is_result(v) || !has_channels(v, weight, result))
        return kernel_apart(c);
    v->pixels = v->size[0] * v->size[1] * v->size[2];
    v->places = v->result[0] * v->result[1] * v->result[2];
    v->patch = v->in / v->groups * v->window[0] * v->window[1] * v->window[2];
    return true;
}

/* Walks over all pairs of (element of a window, place of the result): columns from the image, or
 * added to the image. */
static void columns(const struct conv *v, char *image, char *column, bool back)
{
    int64_t bytes = kind_bytes[v->kind];

    for (int64_t ch = 0; ch < v->in / v->groups; ch++, image += v->pixels * bytes)
        for (int64_t a = 0; a < v->window[0]; a++)
            for (int64_t b = 0; b < v->window[1]; b++)
                for (int64_t e = 0; e < v->window[2]; e++)
                    for (int64_t i = 0; i < v->result[0]; i++)
                        for (int64_t j = 0; j < v->result[1]; j++) {
                            int64_t x = i * v->stride[0] - v->padding[0] + a * v->dilation[0];
                            int64_t y = j * v->stride[1] - v->padding[1] + b * v->dilation[1];
                            bool inside = x >= 0 && x < v->size[0] && y >= 0 && y < v->size[1];

                            for (int64_t k = 0; k < v->result[2]; k++, column += bytes) {
                                int64_t z = k * v->stride[2] - v->padding[2] + e * v->dilation[2];
                                bool here = inside && z >= 0 && z < v->size[2];
                                char *p = here ? image +
                                                     ((x * v->size[1] + y) * v->size[2] + z) * bytes
                                               : NULL;

                                if (!back && v->kind == K_F32)
                                    *(float *)column = here ? *(float *)p : 0;
                                else if (!back)
                                    *(double *)column = here ? *(double *)p : 0;
                                else if (here && v->kind == K_F32)
                                    *(float *)p += *(float *)column;
                                else if (here)
                                    *(double *)p += *(double *)column;
                            }
                        }
}

static struct matrix dense(void *p, int64_t rows, int64_t cols)
{
    return (struct matrix){p, rows, cols, cols, 1};
}

static struct matrix turned(struct matrix m)
{
    return (struct matrix){m.p, m.cols, m.rows, m.col_step, m.row_step};
}

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
bool kernel_convolution(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct conv v;

    if (!describe(c, &v, arg_tensor(c, 0), arg_tensor(c, 1), c->out, 3) ||
        !kernel_holds(c, arg_tensor(c, 2), v.out))
        return false;
    enum kind k = v.kind;
    int64_t bytes = kind_bytes[k], in = v.in / v.groups, out = v.out / v.groups;
    char *x = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), k),
         *w = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 1), k), *y = plain_out(&s, c->out, k);
    const char *bias = plain_in(&s, arg_tensor(c, 2), k);
    char *column = plain_room(&s, (size_t)(v.patch * v.places * bytes));
    for (int64_t i = 0; i < v.batch * v.groups; i++) {
        int64_t g = i % v.groups;
        char *to = y + i * out * v.places * bytes;

        columns(&v, x + i * in * v.pixels * bytes, column, false);
        for (int64_t o = 0; bias != NULL && o < out; o++)
            elem_fill(to + o * v.places * bytes, bias + (g * out + o) * bytes, (size_t)bytes,
                      v.places);
        if (!gemm(c, k, dense(to, out, v.places),
                  dense(w + g * out * v.patch * bytes, out, v.patch),
                  dense(column, v.patch, v.places), 1, bias != NULL, s.at))
            return false;
    }
    plain_done(&s, c->out, y, k);
    return true;
}

/* (grad, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
 * mask) */
bool kernel_convolution_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0);
    struct rt_tensor *out_t[3] = {out_at(c, 0), out_at(c, 1), out_at(c, 2)};
    struct conv v;

    if (!describe(c, &v, arg_tensor(c, 1), arg_tensor(c, 2), grad, 4) ||
        !kernel_same(c, out_t[0], arg_tensor(c, 1)) ||
        !kernel_same(c, out_t[1], arg_tensor(c, 2)) || !kernel_holds(c, out_t[2], v.out))
        return false;
    enum kind k = v.kind;
    int64_t bytes = kind_bytes[k], in = v.in / v.groups, out = v.out / v.groups;
    char *g = (char *)(uintptr_t)plain_in(&s, grad, k),
         *x = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 1), k),
         *w = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 2), k);
    char *d[3];
    for (int i = 0; i < 3; i++) {
        d[i] = plain_out(&s, out_t[i], k);
        if (d[i] != NULL)
            memset(d[i], 0, (size_t)(rt_numel(out_t[i]) * bytes));
    }
    char *column = plain_room(&s, (size_t)(v.patch * v.places * bytes));
    for (int64_t i = 0; i < v.batch * v.groups; i++) {
        int64_t group = i % v.groups;
        struct matrix go = dense(g + i * out * v.places * bytes, out, v.places),
                      col = dense(column, v.patch, v.places);
        bool ok = true;

        if (d[1] != NULL) {
            columns(&v, x + i * in * v.pixels * bytes, column, false);
            ok = gemm(c, k, dense(d[1] + group * out * v.patch * bytes, out, v.patch), go,
                      turned(col), 1, 1, s.at);
        }
        if (d[0] != NULL && ok) {
            ok = gemm(c, k, col, turned(dense(w + group * out * v.patch * bytes, out, v.patch)), go,
                      1, 0, s.at);
            columns(&v, d[0] + i * in * v.pixels * bytes, column, true);
        }
        for (int64_t o = 0; d[2] != NULL && o < out; o++) {
            _Alignas(16) char sum[16];

            hot_get()->row[REDUCE_SUM][k](sum, (char *)go.p + o * v.places * bytes, v.places);
            hot_get()->column[REDUCE_SUM][k](d[2] + (group * out + o) * bytes, sum, 1);
        }
        if (!ok)
            return false;
    }
    for (int i = 0; i < 3; i++)
        plain_done(&s, out_t[i], d[i], k);
    return true;
}

static size_t conv_scratch(const struct rt_call *c, uint32_t input, const struct rt_tensor *result)
{
    const struct rt_tensor *weight = arg_tensor(c, input + 1);
    int64_t patch = plain_count(weight, 1, weight->n), places = plain_count(result, 2, result->n);

    return plain_scratch(c, kernel_bytes(patch, places, 8)) + 4096;
}

size_t scratch_convolution(const struct rt_call *c)
{
    return conv_scratch(c, 0, c->out);
}

size_t scratch_convolution_backward(const struct rt_call *c)
{
    return conv_scratch(c, 1, arg_tensor(c, 0));
}
