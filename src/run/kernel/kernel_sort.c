/* Along lines of one dimension: sorting, selection, running sums, extrema with their places. */
#include <math.h>
#include <stdlib.h>

#include "run/kernel/hot.h"
#include "run/kernel/plain.h"

/* Every line of the dimension, of tensors that agree in all others. */
struct lines {
    const struct rt_tensor *t[3];
    int n_t, dim;
    int64_t at[RT_DIMS];
    bool more;
};

static struct lines lines_begin(int dim, const struct rt_tensor *a, const struct rt_tensor *b,
                                const struct rt_tensor *o)
{
    struct lines l = {.t = {a, b, o}, .n_t = o != NULL ? 3 : b != NULL ? 2 : 1, .dim = dim};

    l.more = true;
    for (int d = 0; d < a->n; d++)
        if (d != dim && a->size[d] == 0)
            l.more = false;
    return l;
}

/* keepdim or not: tensors with a dimension less lack the line's. */
static char *line_of(const struct lines *l, int i)
{
    const struct rt_tensor *t = l->t[i], *a = l->t[0];
    int64_t p = 0;
    int k = 0;

    for (int d = 0; d < a->n; d++) {
        if (d == l->dim && t->n < a->n)
            continue;
        if (d != l->dim)
            p += l->at[d] * t->stride[k];
        k++;
    }
    return (char *)t->data + p * dtype_at(t->dtype)->bytes;
}

static void lines_next(struct lines *l)
{
    const struct rt_tensor *a = l->t[0];

    for (int d = a->n - 1; d >= 0; d--) {
        if (d == l->dim)
            continue;
        if (++l->at[d] < a->size[d])
            return;
        l->at[d] = 0;
    }
    l->more = false;
}

static int64_t line_size(const struct rt_tensor *t, int dim)
{
    return t->n > 0 ? t->size[dim] : 1;
}

static int64_t line_stride(const struct rt_tensor *t, int dim)
{
    return t->n > 0 ? t->stride[dim] : 1;
}

/* ---- sorting: keys that order as torch orders, NaN above everything ---- */

struct item {
    double key;
    int64_t whole, at; /* whole: the key of integers */
};

static int compare_up(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->key != y->key && !(isnan(x->key) && isnan(y->key)))
        return isnan(x->key) ? 1 : isnan(y->key) ? -1 : x->key < y->key ? -1 : 1;
    if (x->whole != y->whole)
        return x->whole < y->whole ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_down(const void *a, const void *b)
{
    const struct item *x = a, *y = b;

    if (x->key != y->key && !(isnan(x->key) && isnan(y->key)))
        return isnan(x->key) ? -1 : isnan(y->key) ? 1 : x->key > y->key ? -1 : 1;
    if (x->whole != y->whole)
        return x->whole > y->whole ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static struct item item_of(const char *p, enum dtype d, int64_t at)
{
    _Alignas(16) char x[16];
    struct item it = {.at = at};
    enum kind k = kind_of(d);

    elem_load(x, p, d, 1, 1);
    if (k == K_I64)
        memcpy(&it.whole, x, 8);
    else
        elem_convert(&it.key, K_F64, x, k, 1);
    return it;
}

/* Merge sort, so that nothing is allocated. */
static void sort_items(struct item *a, struct item *room, int64_t n,
                       int (*compare)(const void *, const void *))
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t i = 0; i < n; i += 2 * width) {
            int64_t mid = i + width < n ? i + width : n,
                    end = i + 2 * width < n ? i + 2 * width : n;
            int64_t x = i, y = mid;

            for (int64_t k = i; k < end; k++)
                room[k] = x < mid && (y >= end || compare(&a[x], &a[y]) <= 0) ? a[x++] : a[y++];
        }
        memcpy(a, room, (size_t)n * sizeof(*a));
    }
}

/* Does t agree with `in` in all dimensions but one? */
static bool is_along(struct rt_call *c, const struct rt_tensor *in, const struct rt_tensor *t,
                     int dim)
{
    for (int d = 0; d < in->n && t->n == in->n; d++)
        if (d != dim && t->size[d] != in->size[d])
            return kernel_apart(c);
    return t->n == in->n || kernel_apart(c);
}

/* Has t one element for each line of `in`, with that dimension or without? */
static bool is_one_each(struct rt_call *c, const struct rt_tensor *in, const struct rt_tensor *t,
                        int dim)
{
    bool kept = t->n == in->n;
    int at = 0;

    if (t->n != (in->n > 0 ? in->n - 1 : 0) && !kept)
        return kernel_apart(c);
    for (int d = 0; d < in->n; d++) {
        if (d == dim && !kept)
            continue;
        if (t->size[at++] != (d == dim ? 1 : in->size[d]))
            return kernel_apart(c);
    }
    return true;
}

/* The first k of a sorted line into values and indices. */
static bool sort_lines(struct rt_call *c, int dim, bool down, int64_t k)
{
    const struct rt_tensor *in = arg_tensor(c, 0), *values = &c->out[0], *places = &c->out[1];
    struct plain s = plain_begin(c);
    int64_t n = line_size(in, dim), bytes = dtype_at(in->dtype)->bytes;
    if (k > n || !is_along(c, in, values, dim) || !kernel_same(c, places, values) ||
        !kernel_dtype(c, values, in->dtype) || !kernel_dtype(c, places, DTYPE_I64))
        return k > n ? kernel_error(c, "%lld of %lld elements", (long long)k, (long long)n) : false;
    struct item *item = plain_room(&s, (size_t)n * sizeof(*item)),
                *room = plain_room(&s, (size_t)n * sizeof(*item));

    if (kind_of(in->dtype) >= K_C64)
        return kernel_error(c, "no kernel sorts %s", dtype_at(in->dtype)->name);
    for (struct lines l = lines_begin(dim, in, values, places); l.more; lines_next(&l)) {
        const char *p = line_of(&l, 0);

        for (int64_t i = 0; i < n; i++)
            item[i] = item_of(p + i * line_stride(in, dim) * bytes, in->dtype, i);
        sort_items(item, room, n, down ? compare_down : compare_up);
        for (int64_t i = 0; i < k; i++) {
            memcpy(line_of(&l, 1) + i * line_stride(values, dim) * bytes,
                   p + item[i].at * line_stride(in, dim) * bytes, (size_t)bytes);
            elem_store(line_of(&l, 2) + i * line_stride(places, dim) * 8, &item[i].at, DTYPE_I64, 1,
                       1);
        }
    }
    return true;
}

/* sort.stable(self, stable, dim, descending) */
bool kernel_sort_stable(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    int dim;

    return kernel_dim(c, in, arg_int(c, 2, -1), &dim) && kernel_same(c, c->out, in) &&
           sort_lines(c, dim, arg_bool(c, 3, false), line_size(in, dim));
}

/* sort(self, dim, descending) */
bool kernel_sort(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    int dim;

    return kernel_dim(c, in, arg_int(c, 1, -1), &dim) && kernel_same(c, c->out, in) &&
           sort_lines(c, dim, arg_bool(c, 2, false), line_size(in, dim));
}

/* topk(self, k, dim, largest, sorted) */
bool kernel_topk(struct rt_call *c)
{
    int dim;

    return kernel_dim(c, arg_tensor(c, 0), arg_int(c, 2, -1), &dim) &&
           is_along(c, arg_tensor(c, 0), c->out, dim) &&
           sort_lines(c, dim, arg_bool(c, 3, true), line_size(&c->out[0], dim));
}

size_t scratch_sort(const struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0);
    int64_t most = 1;

    for (int d = 0; d < in->n; d++)
        most = in->size[d] > most ? in->size[d] : most;
    return 2 * (size_t)most * sizeof(struct item) + 2 * RT_ALIGN;
}

size_t scratch_sort_stable(const struct rt_call *c)
{
    return scratch_sort(c);
}

size_t scratch_topk(const struct rt_call *c)
{
    return scratch_sort(c);
}

/* ---- extrema with places ---- */

/* The first extreme of a line; a NaN is one. */
static int64_t extreme(const char *p, const struct rt_tensor *in, int64_t stride, int64_t n,
                       bool largest)
{
    int64_t bytes = dtype_at(in->dtype)->bytes, best = 0;
    struct item x = item_of(p, in->dtype, 0);

    for (int64_t i = 1; i < n; i++) {
        struct item y = item_of(p + i * stride * bytes, in->dtype, i);

        if (isnan(x.key))
            break;
        if (isnan(y.key) ||
            (largest ? y.key > x.key || y.whole > x.whole : y.key < x.key || y.whole < x.whole)) {
            x = y;
            best = i;
        }
    }
    return best;
}

static bool pair(struct rt_call *c, bool largest)
{
    const struct rt_tensor *in = arg_tensor(c, 0), *values = &c->out[0], *places = &c->out[1];
    int dim;

    if (kind_of(in->dtype) >= K_C64)
        return kernel_error(c, "no kernel orders %s", dtype_at(in->dtype)->name);
    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim) || !is_one_each(c, in, values, dim) ||
        !kernel_same(c, places, values) || !kernel_dtype(c, values, in->dtype) ||
        !kernel_dtype(c, places, DTYPE_I64))
        return false;
    int64_t n = line_size(in, dim), bytes = dtype_at(in->dtype)->bytes;
    if (n == 0 && rt_numel(values) > 0)
        return kernel_error(c, "the largest or smallest of no elements");
    for (struct lines l = lines_begin(dim, in, values, places); l.more && n > 0; lines_next(&l)) {
        int64_t best = extreme(line_of(&l, 0), in, line_stride(in, dim), n, largest);

        memcpy(line_of(&l, 1), line_of(&l, 0) + best * line_stride(in, dim) * bytes, (size_t)bytes);
        memcpy(line_of(&l, 2), &best, sizeof(best));
    }
    return true;
}

bool kernel_max_dim(struct rt_call *c)
{
    return pair(c, true);
}

bool kernel_min_dim(struct rt_call *c)
{
    return pair(c, false);
}

/* (self, dim, keepdim); without dim, of all elements in order */
static bool argument(struct rt_call *c, bool largest)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0), *out = c->out;
    struct rt_tensor flat = *in;

    if (kind_of(in->dtype) >= K_C64)
        return kernel_error(c, "no kernel orders %s", dtype_at(in->dtype)->name);
    if (!kernel_dtype(c, out, DTYPE_I64))
        return false;
    if (arg_at(c, 1)->kind != RT_INT) {
        if (!kernel_holds(c, out, 1))
            return false;
        if (rt_numel(in) == 0)
            return kernel_error(c, "the largest or smallest of no elements");
        flat.data = (void *)(uintptr_t)plain_raw_in(&s, in);
        flat.n = 1;
        flat.size[0] = rt_numel(in);
        flat.stride[0] = 1;
        int64_t best = extreme(flat.data, &flat, 1, flat.size[0], largest);
        memcpy(out->data, &best, sizeof(best));
        return true;
    }
    int dim;
    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim) || !is_one_each(c, in, out, dim))
        return false;
    int64_t n = line_size(in, dim);
    if (n == 0 && rt_numel(out) > 0)
        return kernel_error(c, "the largest or smallest of no elements");
    for (struct lines l = lines_begin(dim, in, out, NULL); l.more && n > 0; lines_next(&l)) {
        int64_t best = extreme(line_of(&l, 0), in, line_stride(in, dim), n, largest);

        memcpy(line_of(&l, 1), &best, sizeof(best));
    }
    return true;
}

bool kernel_argmax(struct rt_call *c)
{
    return argument(c, true);
}

bool kernel_argmin(struct rt_call *c)
{
    return argument(c, false);
}

size_t scratch_argmax(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_argmin(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

/* ---- running sums and products: (self, dim) ---- */

static bool running(struct rt_call *c, enum reduce_op op)
{
    const struct rt_tensor *in = arg_tensor(c, 0), *out = c->out;
    int dim;
    enum kind k = kind_of(out->dtype), from = kind_of(in->dtype);

    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim) || !kernel_same(c, out, in))
        return false;
    int64_t n = line_size(in, dim), in_bytes = dtype_at(in->dtype)->bytes,
            bytes = dtype_at(out->dtype)->bytes;
    if (k == K_END || from == K_END || hot_get()->row[op][k] == NULL)
        return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                            dtype_at(out->dtype)->name);
    for (struct lines l = lines_begin(dim, in, out, NULL); l.more; lines_next(&l)) {
        _Alignas(16) char total[16], x[16], y[16];
        double sum = 0;

        hot_get()->row[op][k](total, NULL, 0);
        for (int64_t i = 0; i < n; i++) {
            elem_load(x, line_of(&l, 0) + i * line_stride(in, dim) * in_bytes, in->dtype, 1, 1);
            elem_convert(y, k, x, from, 1);
            if (k == K_F32 && op == REDUCE_SUM) { /* in double, as torch does */
                float f;

                memcpy(&f, y, sizeof(f));
                sum += f;
                f = (float)sum;
                memcpy(total, &f, sizeof(f));
            } else {
                hot_get()->column[op][k](total, y, 1);
            }
            elem_store(line_of(&l, 1) + i * line_stride(out, dim) * bytes, total, out->dtype, 1, 1);
        }
    }
    return true;
}

bool kernel_cumsum(struct rt_call *c)
{
    return running(c, REDUCE_SUM);
}

bool kernel_cumprod(struct rt_call *c)
{
    return running(c, REDUCE_PROD);
}

/* logcumsumexp(self, dim) */
bool kernel_logcumsumexp(struct rt_call *c)
{
    const struct rt_tensor *in = arg_tensor(c, 0), *out = c->out;
    int dim;

    if (kind_of(in->dtype) >= K_C64 || kind_of(out->dtype) >= K_C64)
        return kernel_error(c, "no kernel computes logcumsumexp of complex numbers");
    if (!kernel_dim(c, in, arg_int(c, 1, 0), &dim) || !kernel_same(c, out, in))
        return false;
    int64_t in_bytes = dtype_at(in->dtype)->bytes, bytes = dtype_at(out->dtype)->bytes;
    for (struct lines l = lines_begin(dim, in, out, NULL); l.more; lines_next(&l)) {
        double sum = -(double)INFINITY;

        for (int64_t i = 0; i < line_size(in, dim); i++) {
            _Alignas(16) char x[16], y[16];
            double next;

            elem_load(x, line_of(&l, 0) + i * line_stride(in, dim) * in_bytes, in->dtype, 1, 1);
            elem_convert(&next, K_F64, x, kind_of(in->dtype), 1);
            double most = next > sum || isnan(next) ? next : sum, less = most == next ? sum : next;
            sum = isinf(most) || isnan(most) ? most : most + log1p(exp(less - most));
            elem_convert(y, kind_of(out->dtype), &sum, K_F64, 1);
            elem_store(line_of(&l, 1) + i * line_stride(out, dim) * bytes, y, out->dtype, 1, 1);
        }
    }
    return true;
}

/* histc(self, bins, min, max) */
bool kernel_histc(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *in = arg_tensor(c, 0);
    const double *x = plain_in(&s, in, K_F64);
    double low = arg_float(c, 2, 0), high = arg_float(c, 3, 0);

    if (c->out->n != 1 || c->out->size[0] < 1 || !(high - low >= 0 && high - low < INFINITY))
        return kernel_error(c, "bins that nothing can be counted in");
    int64_t n = rt_numel(in), bins = c->out->size[0];
    double *count = plain_room(&s, (size_t)bins * sizeof(*count));

    if (low == high && n > 0) {
        low = high = x[0];
        for (int64_t i = 1; i < n; i++) {
            low = x[i] < low ? x[i] : low;
            high = x[i] > high ? x[i] : high;
        }
    }
    if (low == high)
        low -= 1, high += 1;
    if (!(high - low > 0 && high - low < INFINITY))
        return kernel_error(c, "bins that nothing can be counted in");
    memset(count, 0, (size_t)bins * sizeof(*count));
    for (int64_t i = 0; i < n; i++) {
        if (!(x[i] >= low && x[i] <= high))
            continue;
        int64_t at = (int64_t)((x[i] - low) / (high - low) * (double)bins);
        count[at >= bins ? bins - 1 : at]++;
    }
    struct rt_tensor from = {
        .data = count, .dtype = DTYPE_F64, .n = 1, .size = {bins}, .stride = {1}};
    return copy_tensor(c, c->out, &from);
}

size_t scratch_histc(const struct rt_call *c)
{
    return 2 * plain_scratch(c, 0);
}
