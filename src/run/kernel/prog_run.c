/* Loops: running their steps. */
#include "run/kernel/prog.h"
#include "run/kernel/reduction.h"

enum { FLUSH_ROWS = 256 }; /* sums over rows are added up at two levels */

struct run {
    const struct prog *p;
    const struct hot *hot;
    char *scratch;
    char *base[256]; /* by mem: where the tile begins */
    void *reg[1024]; /* by value */
    int64_t width, rows, n;
    int64_t before;                  /* rows before the tile */
    int64_t dense_width, dense_rows; /* of the tiles that `dense` is about */
    bool dense[256]; /* by mem: do the elements of a tile lie there one after the other? */
};

static int inner_dims(const struct prog *p)
{
    return p->inner > 0 ? p->inner : 1;
}

/* Do the elements of the tile lie there one after the other? */
static bool is_dense(const struct run *r, const struct prog_mem *m)
{
    int64_t bytes = dtype_at(m->dtype)->bytes, next = bytes;
    const struct prog *p = r->p;
    int outer = inner_dims(p);

    if (m->row)
        return r->rows == 1 || m->step[outer] == bytes;
    if (p->inner == 0) {
        if (r->width > 1 && m->step[0] != next)
            return false;
        next *= r->width;
    } else {
        for (int d = 0; d < p->inner; d++) {
            if (p->size[d] > 1 && m->step[d] != next)
                return false;
            next *= p->size[d];
        }
    }
    return r->rows == 1 || m->step[outer] == next;
}

static void move_run(bool load, char *reg, char *mem, enum dtype d, int64_t step, int64_t n)
{
    int64_t stride = step / dtype_at(d)->bytes;

    if (load)
        elem_load(reg, mem, d, stride, n);
    else
        elem_store(mem, reg, d, stride, n);
}

/* One row of a tile: all inner dimensions, or a block of the only one. */
static void move_row(const struct run *r, bool load, char *reg, char *mem, const struct prog_mem *m)
{
    const struct prog *p = r->p;
    int64_t at[PROG_DIMS] = {0};
    int bytes = kind_bytes[kind_of(m->dtype)];

    if (p->inner <= 1) {
        move_run(load, reg, mem, m->dtype, m->step[0], r->width);
        return;
    }
    for (;;) {
        move_run(load, reg, mem, m->dtype, m->step[0], p->size[0]);
        reg += p->size[0] * bytes;
        int d = 1;
        for (; d < p->inner; d++) {
            mem += m->step[d];
            if (++at[d] < p->size[d])
                break;
            mem -= m->step[d] * p->size[d];
            at[d] = 0;
        }
        if (d == p->inner)
            return;
    }
}

static void move_tile(const struct run *r, bool load, uint16_t value, const struct step *s)
{
    const struct prog_mem *m = &r->p->mem[s->mem];
    char *reg = r->reg[value], *mem = r->base[s->mem];
    int outer = inner_dims(r->p), bytes = kind_bytes[kind_of(m->dtype)];

    if (reg == mem)
        return; /* the tile is its own register */
    if (m->row || r->dense[s->mem]) {
        move_run(load, reg, mem, m->dtype, m->row ? m->step[outer] : dtype_at(m->dtype)->bytes,
                 m->row ? r->rows : r->n);
        return;
    }
    if (m->step[outer] == 0 && load && r->rows > 1) { /* the same row for all */
        move_row(r, load, reg, mem, m);
        for (int64_t i = 1; i < r->rows; i++)
            memcpy(reg + i * r->width * bytes, reg, (size_t)(r->width * bytes));
        return;
    }
    for (int64_t i = 0; i < r->rows; i++)
        move_row(r, load, reg + i * r->width * bytes, mem + i * m->step[outer], m);
}

static void spread(const struct run *r, const struct step *s)
{
    size_t bytes = kind_bytes[s->kind];
    char *to = r->reg[s->out];
    const char *from = r->reg[s->in[0]];

    for (int64_t i = 0; i < r->rows; i++)
        elem_fill(to + i * r->width * (int64_t)bytes, from + i * (int64_t)bytes, bytes, r->width);
}

static void divide(void *x, enum kind kind, double by)
{
    if (kind == K_F32)
        *(float *)x = (float)(*(float *)x / by);
    else if (kind == K_F64)
        *(double *)x /= by;
    else if (kind == K_C64)
        for (int i = 0; i < 2; i++)
            ((float *)x)[i] = (float)(((float *)x)[i] / by);
}

static void reduce(const struct run *r, const struct step *s)
{
    int64_t bytes = kind_bytes[s->kind];
    char *to = r->reg[s->out];
    const char *from = r->reg[s->in[0]];

    for (int64_t i = 0; i < r->rows; i++) {
        reduction_row(r->hot, s->reduce, s->kind, to + i * bytes, from + i * r->width * bytes,
                      r->width);
        if (s->divide != 0)
            divide(to + i * bytes, s->kind, s->divide);
    }
}

/* As kernel_var_mean() does it: the mean first, then the squares of deviations, block by block. */
#define VARIANCE(T, KIND, deviation)                                                               \
    do {                                                                                           \
        const T *x = (const T *)r->reg[s->in[0]] + i * r->width;                                   \
        T mean;                                                                                    \
        double sum = 0;                                                                            \
        reduction_row(r->hot, REDUCE_SUM, KIND, &mean, x, r->width);                               \
        mean = (T)(mean / (double)r->width);                                                       \
        for (int64_t k = 0; k < r->width; k += ELEM_BLOCK)                                         \
            sum += r->hot->deviation(x + k, mean,                                                  \
                                     r->width - k < ELEM_BLOCK ? r->width - k : ELEM_BLOCK);       \
        ((T *)r->reg[s->out2])[i] = mean;                                                          \
        ((T *)r->reg[s->out])[i] = (T)((T)sum / s->divide);                                        \
    } while (0)

static void variance(const struct run *r, const struct step *s)
{
    for (int64_t i = 0; i < r->rows; i++) {
        if (s->kind == K_F32)
            VARIANCE(float, K_F32, square_deviation);
        else
            VARIANCE(double, K_F64, square_deviation64);
    }
}

static void point(const struct run *r, const struct step *s)
{
    const void *in[PROG_IN];

    for (int i = 0; i < s->n_in; i++)
        in[i] = r->reg[s->in[i]];
    s->fn(&s->params, r->reg[s->out], in, s->row ? r->rows : r->n);
}

static size_t column_bytes(const struct run *r, const struct step *s)
{
    return ((size_t)r->p->width * kind_bytes[s->kind] + 63) / 64 * 64;
}

static void first_sums(const struct run *r, const struct step *s, char *sums)
{
    _Alignas(16) char first[16];

    r->hot->row[s->reduce][s->kind](first, NULL, 0); /* of no element: the neutral one */
    elem_fill(sums, first, kind_bytes[s->kind], r->p->width);
}

static void flush(const struct run *r, const struct step *s, char *sums)
{
    r->hot->column[s->reduce][s->kind](sums + column_bytes(r, s), sums, r->p->width);
    first_sums(r, s, sums);
}

static void column(const struct run *r, const struct step *s, char *sums)
{
    int64_t bytes = r->width * kind_bytes[s->kind];

    for (int64_t i = 0; i < r->rows; i++) {
        r->hot->column[s->reduce][s->kind](sums, (char *)r->reg[s->in[0]] + i * bytes, r->width);
        if ((r->before + i + 1) % FLUSH_ROWS == 0)
            flush(r, s, sums);
    }
}

/* All tiles but the last of a row or a column have one shape. */
static void find_dense(struct run *r)
{
    for (uint16_t m = 0; m < r->p->n_mem; m++)
        r->dense[m] = is_dense(r, &r->p->mem[m]);
    r->dense_width = r->width;
    r->dense_rows = r->rows;
}

static void run_tile(struct run *r)
{
    const struct prog *p = r->p;
    char *sums = r->scratch + p->columns;

    r->n = r->rows * r->width;
    if (r->width != r->dense_width || r->rows != r->dense_rows)
        find_dense(r);
    for (uint16_t v = 0; v < p->n_value; v++)
        if (p->value[v].direct != 0) {
            uint16_t m = (uint16_t)(p->value[v].direct - 1);

            r->reg[v] = r->dense[m] ? (void *)r->base[m]
                                    : r->scratch + (size_t)p->value[v].at * RT_ALIGN;
        }
    for (uint16_t i = 0; i < p->n_step; i++) {
        const struct step *s = &p->step[i];

        switch ((enum step_what)s->what) {
        case STEP_LOAD: move_tile(r, true, s->out, s); break;
        case STEP_STORE: move_tile(r, false, s->in[0], s); break;
        case STEP_POINT: point(r, s); break;
        case STEP_SPREAD: spread(r, s); break;
        case STEP_REDUCE: reduce(r, s); break;
        case STEP_VAR: variance(r, s); break;
        case STEP_CONVERT:
            elem_convert(r->reg[s->out], s->kind, r->reg[s->in[0]], s->from_kind,
                         s->row ? r->rows : r->n);
            break;
        case STEP_ROUND:
            elem_convert(r->reg[s->out], s->kind, r->reg[s->in[0]], s->kind,
                         s->row ? r->rows : r->n);
            elem_round(r->reg[s->out], s->dtype, s->row ? r->rows : r->n);
            break;
        case STEP_COLUMN:
            column(r, s, sums);
            sums += 2 * column_bytes(r, s);
            break;
        }
    }
}

/* ---- sums over the outer dimensions ---- */

static void begin_columns(const struct run *r)
{
    char *sums = r->scratch + r->p->columns;

    for (uint16_t i = 0; i < r->p->n_step; i++) {
        const struct step *s = &r->p->step[i];

        if (s->what != STEP_COLUMN)
            continue;
        first_sums(r, s, sums);
        first_sums(r, s, sums + column_bytes(r, s));
        sums += 2 * column_bytes(r, s);
    }
}

static void end_columns(struct run *r)
{
    char *sums = r->scratch + r->p->columns;

    for (uint16_t i = 0; i < r->p->n_step; i++) {
        const struct step *s = &r->p->step[i];

        if (s->what != STEP_COLUMN)
            continue;
        char *total = sums + column_bytes(r, s);
        flush(r, s, sums);
        if (s->divide != 0)
            for (int64_t k = 0; k < r->p->width; k++)
                divide(total + k * kind_bytes[s->kind], s->kind, s->divide);
        move_row(r, false, total, r->p->mem[s->mem].base, &r->p->mem[s->mem]);
        sums += 2 * column_bytes(r, s);
    }
}

/* ---- walking over the space ---- */

static void begin(struct run *r, const struct prog *p, void *scratch)
{
    r->p = p;
    r->hot = hot_get();
    r->scratch = scratch;
    for (uint16_t m = 0; m < p->n_mem; m++)
        r->base[m] = p->mem[m].base;
    for (uint16_t v = 0; v < p->n_value; v++) {
        const struct prog_value *x = &p->value[v];

        r->reg[v] = r->scratch + (size_t)x->at * RT_ALIGN;
        if (x->constant)
            elem_fill(r->reg[v], &x->fill, kind_bytes[x->kind], p->rows * (x->row ? 1 : p->width));
    }
    r->width = p->width;
    r->before = 0;
    r->dense_width = r->dense_rows = -1;
    begin_columns(r);
}

static void advance(struct run *r, int dim, int64_t by)
{
    for (uint16_t m = 0; m < r->p->n_mem; m++)
        r->base[m] += r->p->mem[m].step[dim] * by;
}

/* All tiles at one index of the dimensions beyond the first outer one. */
static void run_rows(struct run *r)
{
    const struct prog *p = r->p;
    int outer = inner_dims(p);
    int64_t all = p->size[outer], width = p->inner > 0 ? p->width : p->size[0];

    for (int64_t i = 0; i < all; i += p->rows) {
        r->rows = all - i < p->rows ? all - i : p->rows;
        for (int64_t k = 0; k < width; k += p->width) {
            r->width = width - k < p->width ? width - k : p->width;
            run_tile(r);
            if (p->inner == 0)
                advance(r, 0, r->width);
        }
        if (p->inner == 0)
            advance(r, 0, -width);
        advance(r, outer, r->rows);
        r->before += r->rows;
    }
    advance(r, outer, -all);
}

void prog_run(const struct prog *p, void *scratch)
{
    struct run r;
    int64_t at[PROG_DIMS] = {0};
    int outer = inner_dims(p);

    begin(&r, p, scratch);
    for (int d = 0; d < p->n; d++)
        if (p->size[d] == 0) {
            end_columns(&r);
            return;
        }
    for (;;) {
        run_rows(&r);
        int d = outer + 1;
        for (; d < p->n; d++) {
            advance(&r, d, 1);
            if (++at[d] < p->size[d])
                break;
            advance(&r, d, -p->size[d]);
            at[d] = 0;
        }
        if (d >= p->n)
            break;
    }
    end_columns(&r);
}
