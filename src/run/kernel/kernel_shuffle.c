/* Channels and pixels in another order: both sides are views of the same sizes, and one is copied
 * into the other. */
#include "run/kernel/kernels.h"

/* Dimension d of t as two: `outer` times n elements. false if that does not go. */
static bool split(struct rt_tensor *t, int d, int64_t n)
{
    if (t->n == RT_DIMS || n < 1 || t->size[d] % n != 0)
        return false;
    for (int i = t->n; i > d + 1; i--) {
        t->size[i] = t->size[i - 1];
        t->stride[i] = t->stride[i - 1];
    }
    t->size[d + 1] = n;
    t->stride[d + 1] = t->stride[d];
    t->size[d] /= n;
    t->stride[d] *= n;
    t->n++;
    return true;
}

/* Dimension `from` put before dimension `to`, which comes before it. */
static void move(struct rt_tensor *t, int from, int to)
{
    int64_t size = t->size[from], stride = t->stride[from];

    for (int i = from; i > to; i--) {
        t->size[i] = t->size[i - 1];
        t->stride[i] = t->stride[i - 1];
    }
    t->size[to] = size;
    t->stride[to] = stride;
}

/* copy_tensor() would broadcast. */
static bool copied(struct rt_call *c, const struct rt_tensor *to, const struct rt_tensor *from)
{
    return kernel_same(c, to, from) && copy_tensor(c, to, from);
}

/* (self, groups) */
bool kernel_channel_shuffle(struct rt_call *c)
{
    struct rt_tensor from = *arg_tensor(c, 0), to = *c->out;
    int64_t groups = arg_int(c, 1, 1);

    if (from.n < 3 || to.n != from.n || groups < 1 || from.size[1] % groups != 0 ||
        from.size[1] == 0 || !split(&from, 1, from.size[1] / groups) || !split(&to, 1, groups))
        return kernel_apart(c);
    move(&to, 2, 1);
    return copied(c, &to, &from);
}

/* large [..., c, h * by, w * by] and small [..., c * by * by, h, w], seen in the same way */
static bool shuffled(struct rt_tensor *large, struct rt_tensor *small, int64_t by)
{
    int n = large->n;

    if (n < 3 || small->n != n || by < 1 || by > INT32_MAX || !split(large, n - 1, by) ||
        !split(large, n - 2, by) || !split(small, n - 3, by) || !split(small, n - 3, by))
        return false;
    move(large, n - 1, n - 2); /* c, by, h, w, by */
    move(large, n + 1, n - 1); /* c, by, by, h, w */
    return true;
}

/* (self, factor) */
bool kernel_pixel_shuffle(struct rt_call *c)
{
    struct rt_tensor from = *arg_tensor(c, 0), to = *c->out;

    if (rt_numel(&to) == 0) /* of nothing torch gives any sizes */
        return true;
    return shuffled(&to, &from, arg_int(c, 1, 1)) ? copied(c, &to, &from) : kernel_apart(c);
}

bool kernel_pixel_unshuffle(struct rt_call *c)
{
    struct rt_tensor from = *arg_tensor(c, 0), to = *c->out;

    if (rt_numel(&to) == 0)
        return true;
    return shuffled(&from, &to, arg_int(c, 1, 1)) ? copied(c, &to, &from) : kernel_apart(c);
}
