/* Operands and results as plain arrays. */
#include "run/kernel/plain.h"

static const uint8_t dtype_of_kind[K_END] = {DTYPE_B8,  DTYPE_I64, DTYPE_F32,
                                             DTYPE_F64, DTYPE_C64, DTYPE_C128};

static size_t padded(size_t bytes)
{
    return (bytes + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
}

static size_t tensor_bytes(const struct rt_tensor *t)
{
    enum kind k = kind_of(t->dtype);
    size_t one = k != K_END ? kind_bytes[k] : dtype_at(t->dtype)->bytes;

    return padded((size_t)rt_numel(t) * (one < 8 ? 8 : one));
}

/* Lists in lists do not occur with tensors. */
static size_t value_bytes(const struct rt_value *v)
{
    size_t sum = 0;

    if (v->kind == RT_TENSOR)
        return tensor_bytes(v->tensor);
    for (uint32_t i = 0; v->kind == RT_LIST && i < v->n; i++)
        if (v->item[i].kind == RT_TENSOR)
            sum += tensor_bytes(v->item[i].tensor);
    return sum;
}

size_t plain_scratch(const struct rt_call *c, size_t more)
{
    size_t sum = padded(more) + RT_ALIGN;

    for (uint32_t i = 0; i < c->n_arg; i++)
        sum += value_bytes(&c->arg[i]);
    for (uint32_t i = 0; i < c->n_out; i++)
        if (c->out[i].dtype != DTYPE_NONE)
            sum += tensor_bytes(&c->out[i]);
    return sum;
}

struct plain plain_begin(struct rt_call *c)
{
    return (struct plain){c, c->scratch};
}

void *plain_room(struct plain *s, size_t bytes)
{
    char *p = s->at;

    s->at += padded(bytes);
    return p;
}

static struct rt_tensor dense(const struct rt_tensor *t, enum dtype d, const void *data)
{
    struct rt_tensor x = *t;
    int64_t step = 1;

    x.data = (void *)(uintptr_t)data;
    x.dtype = (uint8_t)d;
    for (int i = t->n - 1; i >= 0; i--) {
        x.stride[i] = step;
        step *= t->size[i];
    }
    return x;
}

static const void *take(struct plain *s, const struct rt_tensor *t, enum dtype d)
{
    if (t == NULL || (t->dtype == d && rt_contiguous(t)))
        return t != NULL ? t->data : NULL;
    void *p = plain_room(s, (size_t)rt_numel(t) * dtype_at(d)->bytes);
    struct rt_tensor to = dense(t, d, p);
    copy_tensor(s->c, &to, t);
    return p;
}

static void *make(struct plain *s, const struct rt_tensor *t, enum dtype d)
{
    if (t == NULL || (t->dtype == d && rt_contiguous(t)))
        return t != NULL ? t->data : NULL;
    return plain_room(s, (size_t)rt_numel(t) * dtype_at(d)->bytes);
}

static void finish(struct plain *s, const struct rt_tensor *t, enum dtype d, const void *data)
{
    if (t == NULL || data == t->data)
        return;
    struct rt_tensor from = dense(t, d, data);
    copy_tensor(s->c, t, &from);
}

const void *plain_in(struct plain *s, const struct rt_tensor *t, enum kind k)
{
    return take(s, t, dtype_of_kind[k]);
}

void *plain_out(struct plain *s, const struct rt_tensor *t, enum kind k)
{
    return make(s, t, dtype_of_kind[k]);
}

void plain_done(struct plain *s, const struct rt_tensor *t, const void *data, enum kind k)
{
    finish(s, t, dtype_of_kind[k], data);
}

const void *plain_raw_in(struct plain *s, const struct rt_tensor *t)
{
    return take(s, t, t != NULL ? t->dtype : DTYPE_NONE);
}

void *plain_raw_out(struct plain *s, const struct rt_tensor *t)
{
    return make(s, t, t != NULL ? t->dtype : DTYPE_NONE);
}

void plain_raw_done(struct plain *s, const struct rt_tensor *t, const void *data)
{
    finish(s, t, t != NULL ? t->dtype : DTYPE_NONE, data);
}

enum kind plain_float(const struct rt_tensor *t)
{
    return t->dtype == DTYPE_F64 ? K_F64 : K_F32;
}

int64_t plain_count(const struct rt_tensor *t, int begin, int end)
{
    int64_t n = 1;

    for (int d = begin; d < end; d++)
        n *= t->size[d];
    return n;
}

int plain_dim(const struct rt_tensor *t, int64_t dim)
{
    return (int)(dim < 0 ? dim + (t->n > 0 ? t->n : 1) : dim);
}

const double *plain_spread(struct plain *s, const struct rt_tensor *t)
{
    struct rt_tensor to = dense(s->c->out, DTYPE_F64, NULL);

    if (!kernel_broadcasts(s->c, t, &to))
        return NULL;
    to.data = plain_room(s, (size_t)rt_numel(&to) * sizeof(double));
    return copy_tensor(s->c, &to, t) ? to.data : NULL;
}
