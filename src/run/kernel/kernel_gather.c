/* Reading and writing along one dimension, at positions that a tensor gives: gather, scatter and
 * their kin. */
#include "run/kernel/hot.h"
#include "run/kernel/index_place.h"
#include "run/kernel/plain.h"

static int64_t offset_of(const struct rt_tensor *t, const int64_t *at)
{
    int64_t p = 0;

    for (int d = 0; d < t->n; d++)
        p += at[d] * t->stride[d];
    return p;
}

static bool next_index(const struct rt_tensor *t, int64_t *at)
{
    for (int d = t->n - 1; d >= 0; d--) {
        if (++at[d] < t->size[d])
            return true;
        at[d] = 0;
    }
    return false;
}

static char *element(const struct rt_tensor *t, const int64_t *at)
{
    return (char *)t->data + offset_of(t, at) * dtype_at(t->dtype)->bytes;
}

static int64_t index_at(const struct rt_tensor *t, const int64_t *at)
{
    int64_t i;

    elem_load(&i, element(t, at), t->dtype, 1, 1);
    return i;
}

/* (self, dim, index) */
bool kernel_gather(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2);
    int64_t at[RT_DIMS] = {0}, place[RT_DIMS];
    size_t bytes = dtype_at(self->dtype)->bytes;
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !kernel_dtype(c, c->out, self->dtype) ||
        !kernel_holds(c, c->out, rt_numel(index)))
        return false;
    if (rt_numel(index) == 0)
        return true;
    if (!kernel_within(c, index, self, dim) || !kernel_within(c, index, c->out, -1))
        return false;
    do {
        int64_t i = index_at(index, at), n = self->n > 0 ? self->size[dim] : 1;

        memcpy(place, at, sizeof(place));
        place[dim] = index_position(i, n);
        if (place[dim] < 0)
            return index_out_of_range(c, i, n);
        memcpy(element(c->out, at), element(self, place), bytes);
    } while (next_index(index, at));
    return true;
}

enum how { REPLACE, ADD, MULTIPLY, LARGEST, SMALLEST, AVERAGE };

static void combine(char *to, const void *value, enum kind from, enum dtype d, enum how how)
{
    static const uint8_t op[] = {[ADD] = REDUCE_SUM,
                                 [MULTIPLY] = REDUCE_PROD,
                                 [LARGEST] = REDUCE_MAX,
                                 [SMALLEST] = REDUCE_MIN};
    _Alignas(16) char a[16], b[16];
    enum kind k = kind_of(d);

    if (k == K_BOOL && how != REPLACE) /* a sum is true if one is, a product if all are */
        how = how == ADD ? LARGEST : how == MULTIPLY ? SMALLEST : how;
    elem_convert(b, k, value, from, 1);
    if (how != REPLACE) {
        elem_load(a, to, d, 1, 1);
        hot_get()->column[op[how]][k](a, b, 1);
        elem_store(to, a, d, 1, 1);
    } else {
        elem_store(to, b, d, 1, 1);
    }
}

/* Are there such sums, products or extrema of the dtype? */
static bool combines(struct rt_call *c, enum dtype d, enum how how)
{
    bool ordered = how == LARGEST || how == SMALLEST;

    return kind_of(d) < (ordered ? K_C64 : K_END) ||
           kernel_error(c, "no kernel computes %s of %s", c->kernel->name, dtype_at(d)->name);
}

/* Each element of src, or the number, goes to the place that index says. */
static bool scatter(struct rt_call *c, enum how how)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2),
                           *src = arg_tensor(c, 3);
    const struct rt_tensor *to = out_at(c, 0) != NULL ? c->out : self;
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !kernel_like(c, to, self))
        return false;
    if (src != NULL && kind_of(src->dtype) == K_END)
        return kernel_error(c, "no kernel scatters %s", dtype_at(src->dtype)->name);
    int64_t at[RT_DIMS] = {0}, place[RT_DIMS], n = self->n > 0 ? self->size[dim] : 1;
    _Alignas(16) char number[16];
    struct rt_tensor one = {.data = number, .dtype = self->dtype};
    if (src == NULL && !fill_tensor(c, &one, arg_at(c, 3)))
        return false;
    if (to->data != self->data && !copy_tensor(c, to, self))
        return false;
    if (rt_numel(index) == 0)
        return true;
    if (!kernel_within(c, index, self, dim) || !kernel_within(c, to, self, -1) ||
        !kernel_within(c, self, to, -1) || (src != NULL && !kernel_within(c, index, src, -1)))
        return false;
    do {
        int64_t i = index_at(index, at);
        _Alignas(16) char x[16];

        memcpy(place, at, sizeof(place));
        place[dim] = index_position(i, n);
        if (place[dim] < 0)
            return index_out_of_range(c, i, n);
        elem_load(x, src != NULL ? element(src, at) : number, (src != NULL ? src : self)->dtype, 1,
                  1);
        combine(element(to, place), x, kind_of((src != NULL ? src : self)->dtype), self->dtype,
                how);
    } while (next_index(index, at));
    return true;
}

bool kernel_scatter(struct rt_call *c)
{
    return scatter(c, REPLACE);
}

/* (self, dim, index, src or value, add or multiply) */
bool kernel_scatter_op(struct rt_call *c)
{
    const struct rt_value *word = arg_at(c, 4);
    bool adds = word->kind == RT_STR && strcmp(word->str, "add") == 0;

    return scatter(c, adds ? ADD : MULTIPLY);
}

bool kernel_scatter_add(struct rt_call *c)
{
    return scatter(c, ADD);
}

static enum how how_to_reduce(const struct rt_value *v)
{
    static const struct {
        const char *name;
        enum how how;
    } ways[] = {{"sum", ADD},      {"mean", AVERAGE},  {"prod", MULTIPLY},
                {"amax", LARGEST}, {"amin", SMALLEST}, {NULL, REPLACE}};
    int i = 0;

    while (ways[i].name != NULL && (v->kind != RT_STR || strcmp(ways[i].name, v->str) != 0))
        i++;
    return ways[i].how;
}

/* Divides by how many elements came; whole numbers are rounded down. */
static void divide_by(char *p, enum dtype d, int64_t count)
{
    union {
        int64_t i;
        float f[2];
        double d[2];
    } x = {0};

    elem_load(&x, p, d, 1, 1);
    switch (kind_of(d)) {
    case K_I64: x.i = x.i / count - (x.i % count != 0 && x.i < 0); break;
    case K_F32: x.f[0] /= (float)count; break;
    case K_F64: x.d[0] /= (double)count; break;
    case K_C64: x.f[0] /= (float)count, x.f[1] /= (float)count; break;
    case K_C128: x.d[0] /= (double)count, x.d[1] /= (double)count; break;
    default: break;
    }
    elem_store(p, &x, d, 1, 1);
}

/* scatter_reduce(self, dim, index, src, reduce, include_self). Without what was there, the first
 * element that comes to a place replaces it. */
bool kernel_scatter_reduce(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2),
                           *src = arg_tensor(c, 3);
    const struct rt_tensor *to = out_at(c, 0) != NULL ? c->out : self;
    struct plain s = plain_begin(c);
    enum how how = how_to_reduce(arg_at(c, 4));
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !kernel_like(c, to, self))
        return false;
    int64_t at[RT_DIMS] = {0}, place[RT_DIMS], n = self->n > 0 ? self->size[dim] : 1;
    int64_t *count = plain_room(&s, (size_t)rt_numel(self) * sizeof(*count));
    struct rt_tensor counts = *self;

    if (how == REPLACE)
        return kernel_error(c, "no kernel reduces %s in this way", dtype_at(self->dtype)->name);
    if (!combines(c, self->dtype, how))
        return false;
    for (int64_t d = self->n - 1, step = 1; d >= 0; step *= self->size[d--])
        counts.stride[d] = step;
    for (int64_t i = 0; i < rt_numel(self); i++)
        count[i] = arg_bool(c, 5, true);
    if (to->data != self->data && !copy_tensor(c, to, self))
        return false;
    if (rt_numel(index) == 0)
        return true;
    if (!kernel_within(c, index, self, dim) || !kernel_within(c, to, self, -1) ||
        !kernel_within(c, self, to, -1) || !kernel_within(c, index, src, -1))
        return false;
    do {
        int64_t i = index_at(index, at);
        _Alignas(16) char x[16];

        memcpy(place, at, sizeof(place));
        place[dim] = index_position(i, n);
        if (place[dim] < 0)
            return index_out_of_range(c, i, n);
        elem_load(x, element(src, at), src->dtype, 1, 1);
        bool first = count[offset_of(&counts, place)]++ == 0;
        combine(element(to, place), x, kind_of(src->dtype), self->dtype,
                first            ? REPLACE
                : how == AVERAGE ? ADD
                                 : how);
    } while (next_index(index, at));
    memset(at, 0, sizeof(at));
    do
        if (how == AVERAGE && count[offset_of(&counts, at)] > 1)
            divide_by(element(to, at), self->dtype, count[offset_of(&counts, at)]);
    while (next_index(self, at));
    return true;
}

size_t scratch_scatter_reduce(const struct rt_call *c)
{
    return (size_t)rt_numel(arg_tensor(c, 0)) * sizeof(int64_t) + RT_ALIGN;
}

/* (self, dim, index, source, alpha), index_select(self, dim, index): whole slices */
static struct rt_tensor slice_at(const struct rt_tensor *t, int dim, int64_t i)
{
    struct rt_tensor x = *t;

    if (t->n == 0)
        return x;
    x.data = (char *)t->data + i * t->stride[dim] * dtype_at(t->dtype)->bytes;
    x.size[dim] = 1;
    return x;
}

/* Is there an index for each slice of t, all in one dimension? */
static bool along(struct rt_call *c, const struct rt_tensor *index, const struct rt_tensor *t,
                  int dim)
{
    return index->n <= 1 ? kernel_holds(c, index, t->n > 0 ? t->size[dim] : 1)
                         : kernel_holds(c, index, -1);
}

/* Are slices of t those of `of`, in dtype and sizes? */
static bool slices_fit(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *of,
                       int dim)
{
    for (int d = 0; d < of->n && d < t->n; d++)
        if (d != dim && t->size[d] != of->size[d])
            return kernel_apart(c);
    return t->n != of->n ? kernel_apart(c) : kernel_dtype(c, t, of->dtype);
}

bool kernel_index_select(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2);
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !slices_fit(c, c->out, self, dim) ||
        !along(c, index, c->out, dim))
        return false;
    int64_t n = rt_numel(index), size = self->n > 0 ? self->size[dim] : 1, at[RT_DIMS] = {0};
    for (int64_t k = 0; k < n; k++) {
        at[0] = k;
        int64_t i = index_at(index, at);
        if (i < 0 || i >= size)
            return index_out_of_range(c, i, size);
        struct rt_tensor from = slice_at(self, dim, i), to = slice_at(c->out, dim, k);
        if (!copy_tensor(c, &to, &from))
            return false;
    }
    return true;
}

/* by: the factor, 1 if there is none */
static void add_scaled(char *to, const char *from, enum dtype d, const struct rt_value *by)
{
    union {
        int64_t i;
        float f[2];
        double d[2];
    } x = {0};
    int64_t whole = by->kind == RT_BOOL ? by->b : by->kind == RT_FLOAT ? (int64_t)by->f : by->i;
    double factor = by->kind == RT_FLOAT ? by->f : (double)whole;

    if (by->kind != RT_BOOL && by->kind != RT_INT && by->kind != RT_FLOAT) {
        index_add_element(to, from, d);
        return;
    }
    elem_load(&x, from, d, 1, 1);
    switch (kind_of(d)) {
    case K_I64: x.i = (int64_t)((uint64_t)x.i * (uint64_t)whole); break;
    case K_F32: x.f[0] *= (float)factor; break;
    case K_F64: x.d[0] *= factor; break;
    case K_C64: x.f[0] *= (float)factor, x.f[1] *= (float)factor; break;
    case K_C128: x.d[0] *= factor, x.d[1] *= factor; break;
    default: *(uint8_t *)&x &= factor != 0; break;
    }
    _Alignas(16) char scaled[16];
    elem_store(scaled, &x, d, 1, 1);
    index_add_element(to, scaled, d);
}

bool kernel_index_add(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2),
                           *src = arg_tensor(c, 3);
    const struct rt_tensor *out = out_at(c, 0) != NULL ? c->out : self;
    int dim;

    if (arg_at(c, 4)->kind == RT_COMPLEX)
        return kernel_error(c, "no kernel adds at an index with a complex factor");
    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !slices_fit(c, src, self, dim) ||
        !along(c, index, src, dim) || !kernel_like(c, out, self))
        return false;
    int64_t n = rt_numel(index), size = self->n > 0 ? self->size[dim] : 1, at[RT_DIMS] = {0};
    if (out->data != self->data && !copy_tensor(c, out, self))
        return false;
    for (int64_t k = 0; k < n && rt_numel(src) > 0; k++) {
        int64_t in[RT_DIMS] = {0};

        at[0] = k;
        int64_t i = index_at(index, at);
        if (i < 0 || i >= size)
            return index_out_of_range(c, i, size);
        struct rt_tensor from = slice_at(src, dim, k), to = slice_at(out, dim, i);
        do
            add_scaled(element(&to, in), element(&from, in), self->dtype, arg_at(c, 4));
        while (next_index(&from, in));
    }
    return true;
}

/* index_reduce(self, dim, index, source, reduce, include_self) */
bool kernel_index_reduce(struct rt_call *c)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2),
                           *src = arg_tensor(c, 3);
    struct rt_call wide = *c;
    struct rt_value arg[6];
    struct rt_tensor places = *src;
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !slices_fit(c, src, self, dim) ||
        !along(c, index, src, dim) || index->n > 1)
        return index->n > 1 ? kernel_apart(c) : false;
    places.data = index->data; /* the same for all elements of a slice */
    places.dtype = index->dtype;
    for (int d = 0; d < places.n; d++)
        places.stride[d] = d == dim && index->n > 0 ? index->stride[0] : 0;
    for (uint32_t i = 0; i < 6; i++)
        arg[i] = *arg_at(c, i);
    arg[2].tensor = &places;
    wide.arg = arg;
    wide.n_arg = 6;
    return kernel_scatter_reduce(&wide);
}

size_t scratch_index_reduce(const struct rt_call *c)
{
    return scratch_scatter_reduce(c);
}

/* Slices of the result, those that index names, written by src or by a value. */
static bool write_slices(struct rt_call *c, const struct rt_tensor *src, const struct rt_value *v)
{
    const struct rt_tensor *self = arg_tensor(c, 0), *index = arg_tensor(c, 2);
    const struct rt_tensor *out = out_at(c, 0) != NULL ? c->out : self;
    int dim;

    if (!kernel_dim(c, self, arg_int(c, 1, 0), &dim) || !kernel_like(c, out, self) ||
        (src != NULL && !slices_fit(c, src, self, dim)) ||
        !along(c, index, src != NULL ? src : index, src != NULL ? dim : 0))
        return false;
    int64_t n = rt_numel(index), size = self->n > 0 ? self->size[dim] : 1, at[RT_DIMS] = {0};
    if (out->data != self->data && !copy_tensor(c, out, self))
        return false;
    for (int64_t k = 0; k < n; k++) {
        at[0] = k;
        int64_t i = index_at(index, at), there = src == NULL ? index_position(i, size) : i;
        if (there < 0 || there >= size)
            return index_out_of_range(c, i, size);
        struct rt_tensor to = slice_at(out, dim, there), from;
        if (src != NULL)
            from = slice_at(src, dim, k);
        if (src != NULL ? !copy_tensor(c, &to, &from) : !fill_tensor(c, &to, v))
            return false;
    }
    return true;
}

/* (self, dim, index, source) */
bool kernel_index_copy(struct rt_call *c)
{
    return write_slices(c, arg_tensor(c, 3), NULL);
}

/* (self, dim, index, value) */
bool kernel_index_fill(struct rt_call *c)
{
    return write_slices(c, NULL, arg_at(c, 3));
}
