/* Images of another size: upsampling, and padding with what the image has. Along each dimension an
 * element of the larger image is a sum of at most four of the smaller one; a gradient goes back the
 * same way. */
#include <math.h>

#include "run/kernel/plain.h"

enum { TAPS = 4 };

/* Which elements of the smaller image one of the larger is made of, along a dimension. */
struct taps {
    int n;
    int64_t at[TAPS];
    double weight[TAPS];
};

/* As three dimensions; those in front have a size of 1. */
struct resample {
    int n; /* dimensions that there are */
    int64_t planes, small[3], large[3];
    struct taps *taps[3];
};

enum mode { NEAREST, EXACT, LINEAR, CUBIC, REFLECT, REPLICATE };

static struct taps one_tap(int64_t at)
{
    return (struct taps){1, {at}, {1}};
}

static int64_t clamped(int64_t i, int64_t size)
{
    return i < 0 ? 0 : i < size ? i : size - 1;
}

/* torch computes places in float, unless the image is of doubles. */
static double rounded(double x, bool wide)
{
    return wide ? x : (double)(float)x;
}

static struct taps cubic(double place, int64_t size, bool wide)
{
    const double a = -0.75;
    double first = floor(place), t = rounded(place - first, wide), near = 1 - t;
    struct taps x = {.n = TAPS};

    for (int k = 0; k < TAPS; k++)
        x.at[k] = clamped((int64_t)first - 1 + k, size);
    x.weight[0] = ((a * (t + 1) - 5 * a) * (t + 1) + 8 * a) * (t + 1) - 4 * a;
    x.weight[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    x.weight[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    x.weight[3] = ((a * (near + 1) - 5 * a) * (near + 1) + 8 * a) * (near + 1) - 4 * a;
    return x;
}

static struct taps linear(double place, int64_t size, bool wide)
{
    place = place < 0 ? 0 : place;
    int64_t first = clamped((int64_t)place, size);
    double t = rounded(place - (double)first, wide);

    t = t < 0 ? 0 : t > 1 ? 1 : t;
    return (struct taps){2, {first, clamped(first + 1, size)}, {1 - t, t}};
}

/* Of element i, with elements of the smaller image `scale` apart. Where sizes are equal, torch
 * copies whatever the scale, but not for every mode; twice the size it halves. */
static struct taps upsampled(enum mode mode, int64_t i, int64_t size, int64_t large, double scale,
                             bool corners, bool wide)
{
    double place = corners ? rounded(scale * (double)i, wide)
                           : rounded(rounded(scale * ((double)i + 0.5), wide) - 0.5, wide);

    if (large == size && (mode == NEAREST || mode == LINEAR))
        return one_tap(i);
    if (large == 2 * size && mode == NEAREST)
        return one_tap(i / 2);
    switch (mode) {
    case NEAREST: return one_tap(clamped((int64_t)(float)((float)i * (float)scale), size));
    case EXACT: return one_tap(clamped((int64_t)(((float)i + 0.5f) * (float)scale), size));
    case LINEAR: return linear(place, size, wide);
    default: return cubic(place, size, wide);
    }
}

static struct taps padded(enum mode mode, int64_t i, int64_t size)
{
    if (mode == REFLECT)
        i = i < 0 ? -i : i >= size ? 2 * (size - 1) - i : i;
    return one_tap(clamped(i, size));
}

/* ---- operands ---- */

/* The larger image and the smaller one: the last n dimensions of each. */
static bool take_images(struct rt_call *c, struct resample *r, const struct rt_tensor *small,
                        const struct rt_tensor *large, int n)
{
    if (n < 1 || n > 3 || small->n != large->n || small->n < n || kind_of(small->dtype) >= K_C64)
        return kernel_error(c, "no kernel resamples images like these");
    *r = (struct resample){.n = n, .planes = plain_count(small, 0, small->n - n)};
    for (int d = 0; d < small->n - n; d++)
        if (small->size[d] != large->size[d])
            return kernel_apart(c);
    for (int d = 0; d < 3; d++) {
        int at = small->n - 3 + d;

        r->small[d] = d >= 3 - n ? small->size[at] : 1;
        r->large[d] = d >= 3 - n ? large->size[at] : 1;
        if (r->small[d] > INT32_MAX || (r->small[d] == 0 && rt_numel(large) > 0))
            return kernel_apart(c);
    }
    return true;
}

/* The operand of dimension k of r->n: a number each from operand `at` on, or a list of them. */
static double factor(const struct rt_call *c, uint32_t at, int k)
{
    const struct rt_value *list = arg_at(c, at);

    if (list->kind == RT_LIST)
        return (uint32_t)k < list->n && list->item[k].kind == RT_FLOAT ? list->item[k].f : 0;
    return arg_float(c, at + (uint32_t)k, 0);
}

/* corners: the operand that says whether corners lie on corners, 0: none does. */
static void upsample_taps(const struct rt_call *c, struct resample *r, struct plain *s,
                          enum mode mode, uint32_t corners, uint32_t scales, bool wide)
{
    bool aligned = corners > 0 && arg_bool(c, corners, false);

    for (int d = 0; d < 3; d++) {
        bool there = d >= 3 - r->n;
        int64_t in = r->small[d], out = r->large[d];
        double given = there ? factor(c, scales, d - 3 + r->n) : 0;
        double scale = aligned     ? (out > 1 ? (double)(in - 1) / (double)(out - 1) : 0)
                       : given > 0 ? 1 / given
                                   : (double)in / (double)(out > 0 ? out : 1);

        r->taps[d] = plain_room(s, (size_t)out * sizeof(struct taps));
        for (int64_t i = 0; i < out; i++)
            r->taps[d][i] = there ? upsampled(mode, i, in, out, rounded(scale, wide), aligned, wide)
                                  : one_tap(i);
    }
}

/* pad: the operand that says how much comes before and after, the last dimension first. */
static bool pad_taps(struct rt_call *c, struct resample *r, struct plain *s, enum mode mode,
                     const struct rt_value *pad)
{
    for (int d = 0; d < 3; d++) {
        uint32_t k = (uint32_t)(2 - d) * 2;
        bool there = d >= 3 - r->n;
        int64_t before = there ? pad->item[k].i : 0, after = there ? pad->item[k + 1].i : 0,
                most = mode == REFLECT ? r->small[d] - 1 : INT32_MAX;

        if (there && (before > most || after > most || before < -r->small[d] ||
                      after < -r->small[d] || r->small[d] + before + after != r->large[d]))
            return kernel_apart(c);
        r->taps[d] = plain_room(s, (size_t)r->large[d] * sizeof(struct taps));
        for (int64_t i = 0; i < r->large[d]; i++)
            r->taps[d][i] = padded(mode, i - before, r->small[d]);
    }
    return true;
}

/* ---- images ---- */

/* The sum that makes an element of the larger image, or its gradient added to all that made it. */
static double mix(const struct resample *r, double *image, const struct taps *const t[3], bool back,
                  double grad)
{
    double sum = 0;

    for (int a = 0; a < t[0]->n; a++)
        for (int b = 0; b < t[1]->n; b++)
            for (int e = 0; e < t[2]->n; e++) {
                double *p = image + (t[0]->at[a] * r->small[1] + t[1]->at[b]) * r->small[2] +
                            t[2]->at[e],
                       w = t[0]->weight[a] * t[1]->weight[b] * t[2]->weight[e];

                if (back)
                    *p += w * grad;
                else
                    sum += w * *p;
            }
    return sum;
}

static void walk_images(const struct resample *r, double *small, double *large, bool back)
{
    for (int64_t plane = 0; plane < r->planes; plane++) {
        for (int64_t i = 0; i < r->large[0]; i++)
            for (int64_t j = 0; j < r->large[1]; j++)
                for (int64_t k = 0; k < r->large[2]; k++, large++) {
                    const struct taps *t[3] = {&r->taps[0][i], &r->taps[1][j], &r->taps[2][k]};
                    double x = mix(r, small, t, back, *large);

                    if (!back)
                        *large = x;
                }
        small += r->small[0] * r->small[1] * r->small[2];
    }
}

static void run_images(struct rt_call *c, struct resample *r, struct plain *s, bool back)
{
    double *from = (double *)(uintptr_t)plain_in(s, arg_tensor(c, 0), K_F64),
           *to = plain_out(s, c->out, K_F64);

    if (back)
        memset(to, 0, (size_t)rt_numel(c->out) * sizeof(*to));
    walk_images(r, back ? to : from, back ? from : to, back);
    plain_done(s, c->out, to, K_F64);
}

/* corners: see upsample_taps(). Forward: (self, output_size, [corners], scales …); backward:
 * (grad, output_size, input_size, [corners], scales …). */
static bool upsample(struct rt_call *c, enum mode mode, uint32_t corners, bool back)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0), *small = back ? c->out : in,
                           *large = back ? in : c->out;
    uint32_t scales = (back ? 3 : 2) + (corners > 0);
    struct resample r;

    if (!take_images(c, &r, small, large, small->n - 2))
        return false;
    upsample_taps(c, &r, &s, mode, corners, scales, in->dtype == DTYPE_F64);
    run_images(c, &r, &s, back);
    return true;
}

bool kernel_upsample_nearest(struct rt_call *c)
{
    return upsample(c, NEAREST, 0, false);
}

bool kernel_upsample_nearest_backward(struct rt_call *c)
{
    return upsample(c, NEAREST, 0, true);
}

bool kernel_upsample_exact(struct rt_call *c)
{
    return upsample(c, EXACT, 0, false);
}

bool kernel_upsample_exact_backward(struct rt_call *c)
{
    return upsample(c, EXACT, 0, true);
}

bool kernel_upsample_linear(struct rt_call *c)
{
    return upsample(c, LINEAR, 2, false);
}

bool kernel_upsample_linear_backward(struct rt_call *c)
{
    return upsample(c, LINEAR, 3, true);
}

bool kernel_upsample_cubic(struct rt_call *c)
{
    return upsample(c, CUBIC, 2, false);
}

bool kernel_upsample_cubic_backward(struct rt_call *c)
{
    return upsample(c, CUBIC, 3, true);
}

/* Forward: (self, padding); backward: (grad, self, padding). */
static bool pad_images(struct rt_call *c, enum mode mode, bool back)
{
    struct plain s = plain_begin(c);
    const struct rt_value *pad = arg_at(c, back ? 2 : 1);
    const struct rt_tensor *in = arg_tensor(c, 0);
    struct resample r;

    if (pad->kind != RT_LIST || pad->n % 2 != 0)
        return kernel_apart(c);
    if (!take_images(c, &r, back ? c->out : in, back ? in : c->out, (int)pad->n / 2) ||
        !pad_taps(c, &r, &s, mode, pad))
        return false;
    run_images(c, &r, &s, back);
    return true;
}

bool kernel_reflect_pad(struct rt_call *c)
{
    return pad_images(c, REFLECT, false);
}

bool kernel_reflect_pad_backward(struct rt_call *c)
{
    return pad_images(c, REFLECT, true);
}

bool kernel_replicate_pad(struct rt_call *c)
{
    return pad_images(c, REPLICATE, false);
}

bool kernel_replicate_pad_backward(struct rt_call *c)
{
    return pad_images(c, REPLICATE, true);
}

/* ---- scratch ---- */

static size_t image_scratch(const struct rt_call *c, const struct rt_tensor *large)
{
    int64_t most = 3 * RT_ALIGN;

    for (int d = 0; d < large->n; d++)
        most += large->size[d];
    return plain_scratch(c, kernel_bytes(most, 1, sizeof(struct taps)));
}

#define FORTH(name)                                                                                \
    size_t scratch_##name(const struct rt_call *c)                                                 \
    {                                                                                              \
        return image_scratch(c, c->out);                                                           \
    }                                                                                              \
    size_t scratch_##name##_backward(const struct rt_call *c)                                      \
    {                                                                                              \
        return image_scratch(c, arg_tensor(c, 0));                                                 \
    }
FORTH(upsample_nearest)
FORTH(upsample_exact)
FORTH(upsample_linear)
FORTH(upsample_cubic)
FORTH(reflect_pad)
FORTH(replicate_pad)
