/* Convolutions: the windows of an image as columns of a matrix, times the filters. One to three
 * dimensions; fewer are taken as three, with sizes of 1. A transposed one makes the image of what
 * stands at the places of its windows: it is the way back of another convolution. */
#include "run/kernel/gemm.h"
#include "run/kernel/hot.h"

struct conv {
    enum kind kind;
    bool transposed;
    int64_t batch, in, out, groups;        /* channels of the image, and at each place */
    int64_t size[3], window[3], result[3]; /* of the image; how many places there are */
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

/* Are there as many places as the image has windows? A transposed convolution may add to the image
 * what no window covers. */
static bool is_result(const struct conv *v, const int64_t *more)
{
    for (int d = 0; d < 3; d++) {
        int64_t room = v->size[d] + 2 * v->padding[d] - v->dilation[d] * (v->window[d] - 1) - 1;

        if (v->size[d] > INT32_MAX || v->window[d] > INT32_MAX || v->window[d] < 1 || room < 0 ||
            v->result[d] > INT32_MAX)
            return false;
        if (v->transposed ? room != (v->result[d] - 1) * v->stride[d] + more[d]
                          : v->result[d] != room / v->stride[d] + 1)
            return false;
    }
    return true;
}

/* input, weight and result, and where stride, padding, dilation, transposed, what is added to the
 * image, and groups are. */
static bool describe(struct rt_call *c, struct conv *v, const struct rt_tensor *input,
                     const struct rt_tensor *weight, const struct rt_tensor *result, uint32_t at)
{
    bool transposed = arg_bool(c, at + 3, false);
    const struct rt_tensor *image = transposed ? result : input,
                           *places = transposed ? input : result;
    int64_t more[3] = {0};
    int n = input->n - 2;

    if (n < 1 || n > 3 || weight->n != input->n || result->n != input->n)
        return kernel_error(c, "a convolution of %d dimensions", n);
    if (kind_of(input->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes convolutions of complex numbers");
    *v = (struct conv){.kind = plain_float(input),
                       .transposed = transposed,
                       .batch = image->size[0],
                       .in = image->size[1],
                       .out = places->size[1],
                       .groups = arg_int(c, at + 5, 1)};
    take_sizes(v->size, image);
    take_sizes(v->window, weight);
    take_sizes(v->result, places);
    if (!take_list(v->stride, arg_at(c, at), n, 1, 1) ||
        !take_list(v->padding, arg_at(c, at + 1), n, 0, 0) ||
        !take_list(v->dilation, arg_at(c, at + 2), n, 1, 1) ||
        (transposed && !take_list(more, arg_at(c, at + 4), n, 0, 0)))
        return kernel_error(c, "a stride, padding or dilation that no convolution has");
    if (!is_result(v, more) || v->groups < 1 || v->in % v->groups != 0 || v->out % v->groups != 0 ||
        weight->size[0] != v->out || weight->size[1] != v->in / v->groups ||
        places->size[0] != v->batch)
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

/* The filters of a group. */
static struct matrix filters(const struct conv *v, char *w, int64_t group)
{
    int64_t out = v->out / v->groups;

    return dense(w + group * out * v->patch * kind_bytes[v->kind], out, v->patch);
}

/* What stands at the places of group i, counted through all images. */
static struct matrix at_places(const struct conv *v, char *p, int64_t i)
{
    int64_t out = v->out / v->groups;

    return dense(p + i * out * v->places * kind_bytes[v->kind], out, v->places);
}

static char *image_at(const struct conv *v, char *p, int64_t i)
{
    return p + i * (v->in / v->groups) * v->pixels * kind_bytes[v->kind];
}

/* Channels of the result, and elements of each. */
static int64_t result_channels(const struct conv *v)
{
    return v->transposed ? v->in : v->out;
}

static int64_t result_elements(const struct conv *v)
{
    return v->transposed ? v->pixels : v->places;
}

/* The image that belongs to places: each window times the filters, added up. */
static bool spread(struct rt_call *c, const struct conv *v, struct matrix col, struct matrix w,
                   struct matrix places, char *image, void *room)
{
    if (!gemm(c, v->kind, col, turned(w), places, 1, 0, room))
        return false;
    columns(v, image, col.p, true);
    return true;
}

static void fill_bias(const struct conv *v, char *y, const char *bias)
{
    int64_t bytes = kind_bytes[v->kind], n = result_elements(v), channels = result_channels(v);

    for (int64_t i = 0; i < v->batch * channels; i++)
        elem_fill(y + i * n * bytes, bias + i % channels * bytes, (size_t)bytes, n);
}

/* (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups) */
bool kernel_convolution(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    struct conv v;

    if (!describe(c, &v, arg_tensor(c, 0), arg_tensor(c, 1), c->out, 3) ||
        !kernel_holds(c, arg_tensor(c, 2), result_channels(&v)))
        return false;
    enum kind k = v.kind;
    char *x = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 0), k),
         *w = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 1), k), *y = plain_out(&s, c->out, k);
    const char *bias = plain_in(&s, arg_tensor(c, 2), k);
    struct matrix col = dense(plain_room(&s, (size_t)(v.patch * v.places * kind_bytes[k])), v.patch,
                              v.places);

    if (bias != NULL)
        fill_bias(&v, y, bias);
    else if (v.transposed)
        memset(y, 0, (size_t)(rt_numel(c->out) * kind_bytes[k]));
    for (int64_t i = 0; i < v.batch * v.groups; i++) {
        struct matrix wg = filters(&v, w, i % v.groups);

        if (v.transposed) {
            if (!spread(c, &v, col, wg, at_places(&v, x, i), image_at(&v, y, i), s.at))
                return false;
            continue;
        }
        columns(&v, image_at(&v, x, i), col.p, false);
        if (!gemm(c, k, at_places(&v, y, i), wg, col, 1, bias != NULL, s.at))
            return false;
    }
    plain_done(&s, c->out, y, k);
    return true;
}

/* The gradient of the bias: sums over what the result has of each channel. */
static void bias_gradient(const struct conv *v, char *to, const char *grad)
{
    int64_t bytes = kind_bytes[v->kind], n = result_elements(v), channels = result_channels(v);

    for (int64_t i = 0; i < v->batch * channels; i++) {
        _Alignas(16) char sum[16];

        hot_get()->row[REDUCE_SUM][v->kind](sum, grad + i * n * bytes, n);
        hot_get()->column[REDUCE_SUM][v->kind](to + i % channels * bytes, sum, 1);
    }
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
        !kernel_same(c, out_t[1], arg_tensor(c, 2)) ||
        !kernel_holds(c, out_t[2], result_channels(&v)))
        return false;
    enum kind k = v.kind;
    char *g = (char *)(uintptr_t)plain_in(&s, grad, k),
         *x = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 1), k),
         *w = (char *)(uintptr_t)plain_in(&s, arg_tensor(c, 2), k);
    char *image = v.transposed ? g : x, *places = v.transposed ? x : g, *d[3];
    for (int i = 0; i < 3; i++) {
        d[i] = plain_out(&s, out_t[i], k);
        if (d[i] != NULL)
            memset(d[i], 0, (size_t)(rt_numel(out_t[i]) * kind_bytes[k]));
    }
    struct matrix col = dense(plain_room(&s, (size_t)(v.patch * v.places * kind_bytes[k])), v.patch,
                              v.places);
    for (int64_t i = 0; i < v.batch * v.groups; i++) {
        struct matrix at = at_places(&v, places, i), wg = filters(&v, w, i % v.groups);
        bool ok = true;

        if (d[1] != NULL || (d[0] != NULL && v.transposed))
            columns(&v, image_at(&v, image, i), col.p, false);
        if (d[1] != NULL)
            ok = gemm(c, k, filters(&v, d[1], i % v.groups), at, turned(col), 1, 1, s.at);
        if (d[0] != NULL && ok)
            ok = v.transposed ? gemm(c, k, at_places(&v, d[0], i), wg, col, 1, 0, s.at)
                              : spread(c, &v, col, wg, at, image_at(&v, d[0], i), s.at);
        if (!ok)
            return false;
    }
    if (d[2] != NULL)
        bias_gradient(&v, d[2], g);
    for (int i = 0; i < 3; i++)
        plain_done(&s, out_t[i], d[i], k);
    return true;
}

static size_t conv_scratch(const struct rt_call *c, uint32_t input, const struct rt_tensor *result)
{
    const struct rt_tensor *weight = arg_tensor(c, input + 1), *in = arg_tensor(c, input),
                           *places = arg_bool(c, input == 0 ? 6 : 7, false) ? in : result;

    return plain_scratch(c, kernel_bytes(plain_count(weight, 1, weight->n),
                                         plain_count(places, 2, places->n), 8)) +
           4096;
}

size_t scratch_convolution(const struct rt_call *c)
{
    return conv_scratch(c, 0, c->out);
}

size_t scratch_convolution_backward(const struct rt_call *c)
{
    return conv_scratch(c, 1, arg_tensor(c, 0));
}
