/* Reductions: rows of elements side by side to one element each, or rows added up. */
#include "run/kernel/reduction.h"

#include <math.h>

enum { FLUSH = 256 };

struct dim {
    int64_t size, in, out; /* bytes */
    bool reduced;
};

struct state {
    const struct reduction *r;
    const struct hot *hot;
    struct dim dim[RT_DIMS + 1];
    int n;
    int64_t in_bytes, out_bytes;
    enum kind from;
    const char *mean; /* where the means of the current row begin, relative to out */
};

int64_t reduction_dims(const struct rt_call *c, const struct rt_tensor *in, uint32_t i,
                       bool *reduced)
{
    const struct rt_value *v = arg_at(c, i);
    bool all = v->kind == RT_NONE || (v->kind == RT_LIST && v->n == 0);
    int64_t count = 1;

    for (int d = 0; d < RT_DIMS; d++)
        reduced[d] = all;
    for (uint32_t k = 0; !all && k < (v->kind == RT_LIST ? v->n : 1); k++) {
        int64_t d = v->kind == RT_LIST ? v->item[k].i : v->i;

        d = d < 0 ? d + in->n : d;
        if (d >= 0 && d < RT_DIMS)
            reduced[d] = true;
    }
    for (int d = 0; d < in->n; d++)
        count *= reduced[d] ? in->size[d] : 1;
    return count;
}

static void begin(struct state *s, const struct reduction *r)
{
    const struct rt_tensor *in = r->in, *out = r->out;
    int kept = 0, at = 0;

    *s = (struct state){.r = r, .hot = hot_get(), .from = kind_of(in->dtype)};
    s->in_bytes = dtype_at(in->dtype)->bytes;
    s->out_bytes = dtype_at(out->dtype)->bytes;
    for (int d = 0; d < in->n; d++)
        kept += !r->reduced[d];
    for (int d = 0; d < in->n; d++) {
        bool there = out->n == in->n || !r->reduced[d]; /* keepdim? */
        int64_t out_step = there ? out->stride[at] * s->out_bytes : 0;

        at += there;
        if (in->size[d] != 1 || in->n == 0)
            s->dim[s->n++] = (struct dim){in->size[d], in->stride[d] * s->in_bytes,
                                          r->reduced[d] ? 0 : out_step, r->reduced[d]};
    }
    (void)kept;
    for (int i = 1; i < s->n; i++) /* the innermost first */
        for (int j = i; j > 0 && (s->dim[j].in < 0 ? -s->dim[j].in : s->dim[j].in) <=
                                     (s->dim[j - 1].in < 0 ? -s->dim[j - 1].in : s->dim[j - 1].in);
             j--) {
            struct dim x = s->dim[j];

            s->dim[j] = s->dim[j - 1];
            s->dim[j - 1] = x;
        }
    int last = 0;
    for (int d = 1; d < s->n; d++) {
        struct dim *x = &s->dim[last], *y = &s->dim[d];

        if (x->reduced == y->reduced && y->in == x->in * x->size && y->out == x->out * x->size)
            x->size *= y->size;
        else
            s->dim[++last] = *y;
    }
    s->n = s->n > 0 ? last + 1 : 0;
    if (s->n == 0)
        s->dim[s->n++] = (struct dim){1, s->in_bytes, 0, true};
}

#define MAP(T, absolute, raised)                                                                   \
    do {                                                                                           \
        T *y = reg;                                                                                \
        const T *m = (const void *)mean;                                                           \
        switch (s->r->map) {                                                                       \
        case MAP_SQUARE:                                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] *= y[i];                                                                      \
            break;                                                                                 \
        case MAP_ABS:                                                                              \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = absolute(y[i]);                                                             \
            break;                                                                                 \
        case MAP_NOT_ZERO:                                                                         \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = y[i] != 0;                                                                  \
            break;                                                                                 \
        case MAP_POWER:                                                                            \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = raised(absolute(y[i]), (T)s->r->power);                                     \
            break;                                                                                 \
        case MAP_DEVIATION:                                                                        \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (y[i] - m[i]) * (y[i] - m[i]);                                              \
            break;                                                                                 \
        default: break;                                                                            \
        }                                                                                          \
    } while (0)

/* Elements from p on; of MAP_DEVIATION: means from q on, with the given step. */
static void load(const struct state *s, void *reg, const char *p, int64_t step, const char *q,
                 int64_t q_step, int64_t n)
{
    const struct reduction *r = s->r;
    _Alignas(RT_ALIGN) char room[ELEM_BLOCK * 16], mean[ELEM_BLOCK * 8];

    if (s->from == r->kind) {
        elem_load(reg, p, r->in->dtype, step / s->in_bytes, n);
    } else {
        elem_load(room, p, r->in->dtype, step / s->in_bytes, n);
        elem_convert(reg, r->kind, room, s->from, n);
    }
    if (r->map == MAP_DEVIATION)
        elem_load(mean, q, r->kind == K_F32 ? DTYPE_F32 : DTYPE_F64, q_step / kind_bytes[r->kind],
                  n);
    if (r->map == MAP_NONE)
        return;
    if (r->kind == K_F32)
        MAP(float, fabsf, powf);
    else
        MAP(double, fabs, pow);
}

static void put(const struct state *s, char *to, void *value, int64_t step, int64_t n)
{
    const struct reduction *r = s->r;
    enum kind out = kind_of(r->out->dtype);
    _Alignas(RT_ALIGN) char room[ELEM_BLOCK * 16];

    for (int64_t i = 0; i < n; i++) {
        char *x = (char *)value + i * kind_bytes[r->kind];

        if (r->kind == K_F32) {
            float *f = (float *)x;

            *f = r->divide != 0 ? (float)(*f / r->divide) : *f;
            *f = r->end == END_ROOT    ? sqrtf(*f)
                 : r->end == END_POWER ? powf(*f, (float)(1 / r->power))
                                       : *f;
        } else if (r->kind == K_F64) {
            double *f = (double *)x;

            *f = r->divide != 0 ? *f / r->divide : *f;
            *f = r->end == END_ROOT ? sqrt(*f) : r->end == END_POWER ? pow(*f, 1 / r->power) : *f;
        } else if (r->kind == K_C64 && r->divide != 0) {
            ((float *)x)[0] /= (float)r->divide;
            ((float *)x)[1] /= (float)r->divide;
        } else if (r->kind == K_C128 && r->divide != 0) {
            ((double *)x)[0] /= r->divide;
            ((double *)x)[1] /= r->divide;
        }
    }
    if (out != r->kind) {
        elem_convert(room, out, value, r->kind, n);
        value = room;
    }
    elem_store(to, value, r->out->dtype, step / s->out_bytes, n);
}

/* The next index of some dimensions, those with reduced == which, from `first` on. */
static bool next(const struct state *s, int64_t *at, int first, bool which, int64_t *in,
                 int64_t *out)
{
    for (int d = first; d < s->n; d++) {
        const struct dim *x = &s->dim[d];

        if (x->reduced != which)
            continue;
        *in += x->in;
        *out += x->out;
        if (++at[d] < x->size)
            return true;
        *in -= x->in * x->size;
        *out -= x->out * x->size;
        at[d] = 0;
    }
    return false;
}

static void neutral(const struct state *s, void *to)
{
    s->hot->row[s->r->op][s->r->kind](to, NULL, 0);
}

/* Means are laid out like out, but are of the computed kind. */
static const char *mean_at(const struct state *s, int64_t out)
{
    const struct reduction *r = s->r;

    return r->mean == NULL ? NULL
                           : (const char *)r->mean->data + out / s->out_bytes * kind_bytes[r->kind];
}

/* ---- rows of elements side by side ---- */

/* Sums of floats are added up in double precision, block by block. */
struct row_total {
    _Alignas(16) char total[16];
    double sum;
};

static void row_begin(const struct hot *hot, enum reduce_op op, enum kind kind, struct row_total *t)
{
    hot->row[op][kind](t->total, NULL, 0); /* of no element: the neutral one */
    t->sum = 0;
}

/* At most ELEM_BLOCK elements. */
static void row_add(const struct hot *hot, enum reduce_op op, enum kind kind, struct row_total *t,
                    const void *x, int64_t n)
{
    _Alignas(16) char part[16];

    hot->row[op][kind](part, x, n);
    if (op == REDUCE_SUM && kind == K_F32)
        t->sum += *(float *)part;
    else
        hot->column[op][kind](t->total, part, 1);
}

static void row_end(enum reduce_op op, enum kind kind, struct row_total *t)
{
    if (op == REDUCE_SUM && kind == K_F32)
        *(float *)t->total = (float)t->sum;
}

void reduction_row(const struct hot *hot, enum reduce_op op, enum kind kind, void *to,
                   const void *x, int64_t n)
{
    struct row_total t;

    row_begin(hot, op, kind, &t);
    for (int64_t i = 0; i < n; i += ELEM_BLOCK)
        row_add(hot, op, kind, &t, (const char *)x + i * kind_bytes[kind],
                n - i < ELEM_BLOCK ? n - i : ELEM_BLOCK);
    row_end(op, kind, &t);
    memcpy(to, t.total, kind_bytes[kind]);
}

/* The innermost dimension is reduced. */
static void by_rows(const struct state *s)
{
    const struct reduction *r = s->r;
    const struct dim *row = &s->dim[0];
    _Alignas(RT_ALIGN) char x[ELEM_BLOCK * 16];
    int64_t at[RT_DIMS + 1] = {0}, in = 0, out = 0;
    int64_t bytes = kind_bytes[r->kind];

    do {
        struct row_total t;
        int64_t inner[RT_DIMS + 1] = {0}, from = in, to = out;

        row_begin(s->hot, r->op, r->kind, &t);
        do {
            for (int64_t i = 0; i < row->size; i += ELEM_BLOCK) {
                int64_t n = row->size - i < ELEM_BLOCK ? row->size - i : ELEM_BLOCK;
                const char *p = (const char *)r->in->data + from + i * row->in;
                bool direct = r->map == MAP_NONE && s->from == r->kind && row->in == bytes &&
                              s->in_bytes == bytes && r->kind != K_BOOL;

                if (!direct)
                    load(s, x, p, row->in, mean_at(s, out), 0, n);
                row_add(s->hot, r->op, r->kind, &t, direct ? p : x, n);
            }
        } while (next(s, inner, 1, true, &from, &to));
        row_end(r->op, r->kind, &t);
        put(s, (char *)r->out->data + out, t.total, s->out_bytes, 1);
    } while (next(s, at, 1, false, &in, &out));
}

/* The innermost dimension stays: rows are added up. */
static void by_columns(const struct state *s)
{
    const struct reduction *r = s->r;
    const struct dim *row = &s->dim[0];
    _Alignas(RT_ALIGN) char x[ELEM_BLOCK * 16], sums[2][ELEM_BLOCK * 16];
    int64_t at[RT_DIMS + 1] = {0}, in = 0, out = 0;
    int64_t bytes = kind_bytes[r->kind];

    do {
        for (int64_t i = 0; i < row->size; i += ELEM_BLOCK) {
            int64_t n = row->size - i < ELEM_BLOCK ? row->size - i : ELEM_BLOCK;
            int64_t inner[RT_DIMS + 1] = {0}, from = in + i * row->in, to = out, since = 0;
            int64_t q_step = row->out / s->out_bytes * bytes;
            _Alignas(16) char first[16];

            neutral(s, first);
            elem_fill(sums[0], first, (size_t)bytes, n);
            elem_fill(sums[1], first, (size_t)bytes, n);
            do {
                const char *p = (const char *)r->in->data + from;
                bool direct = r->map == MAP_NONE && s->from == r->kind && row->in == bytes &&
                              s->in_bytes == bytes && r->kind != K_BOOL;

                if (!direct)
                    load(s, x, p, row->in, mean_at(s, out + i * row->out), q_step, n);
                s->hot->column[r->op][r->kind](sums[0], direct ? p : x, n);
                if (++since == FLUSH) {
                    s->hot->column[r->op][r->kind](sums[1], sums[0], n);
                    elem_fill(sums[0], first, (size_t)bytes, n);
                    since = 0;
                }
            } while (next(s, inner, 1, true, &from, &to));
            s->hot->column[r->op][r->kind](sums[1], sums[0], n);
            put(s, (char *)r->out->data + out + i * row->out, sums[1], row->out, n);
        }
    } while (next(s, at, 1, false, &in, &out));
}

/* Of no element: every result is the neutral one. */
static void empty(const struct state *s)
{
    const struct reduction *r = s->r;
    int64_t n = rt_numel(r->out), at[RT_DIMS] = {0}, p = 0;
    _Alignas(16) char x[16];

    for (int64_t i = 0; i < n; i++) {
        neutral(s, x);
        put(s, (char *)r->out->data + p * s->out_bytes, x, s->out_bytes, 1);
        for (int d = r->out->n - 1; d >= 0; d--) {
            p += r->out->stride[d];
            if (++at[d] < r->out->size[d])
                break;
            p -= r->out->stride[d] * r->out->size[d];
            at[d] = 0;
        }
    }
}

void reduction_run(const struct reduction *r)
{
    struct state s;

    begin(&s, r);
    if (rt_numel(r->in) == 0)
        empty(&s);
    else if (s.dim[0].reduced)
        by_rows(&s);
    else
        by_columns(&s);
}
