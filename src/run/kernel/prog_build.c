/* Loops: their steps, the order of dimensions, tiles, registers. */
#include "run/kernel/prog.h"

/* A row that does not fit into this many bytes of registers is not worth a loop. */
#define PROG_MOST (4u << 20)

/* Elements of a tile: few enough for the registers of a loop to stay in the first two caches, many
 * enough that calling a step costs little. */
enum { PROG_TILE = 1024 };

void prog_begin(struct prog *p)
{
    p->n_step = p->n_mem = p->n_value = 0;
    p->full = false;
    p->n = p->inner = 0;
    p->scratch = p->columns = 0;
}

static uint16_t new_value(struct prog *p, enum kind kind, bool row)
{
    if (p->n_value == p->max_value) {
        p->full = true;
        return 0;
    }
    p->value[p->n_value] = (struct prog_value){.kind = (uint8_t)kind, .row = row};
    return p->n_value++;
}

static struct step *new_step(struct prog *p, enum step_what what, uint16_t in, bool row)
{
    if (p->n_step == p->max_step) {
        p->full = true;
        p->n_step--; /* overwritten: the loop is not used */
    }
    struct step *s = &p->step[p->n_step++];
    *s = (struct step){.what = (uint8_t)what, .row = row, .in = {in}, .n_in = 1};
    s->kind = p->value[in].kind;
    return s;
}

static uint16_t new_mem(struct prog *p, const struct prog_mem *m)
{
    if (p->n_mem == p->max_mem) {
        p->full = true;
        return 0;
    }
    p->mem[p->n_mem] = *m;
    return p->n_mem++;
}

uint16_t prog_constant(struct prog *p, enum kind kind, const void *element, bool row)
{
    uint16_t v = new_value(p, kind, row);

    p->value[v].constant = true;
    memcpy(&p->value[v].fill, element, kind_bytes[kind]);
    return v;
}

static bool same_mem(const struct prog *p, const struct prog_mem *a, const struct prog_mem *b)
{
    return a->base == b->base && a->dtype == b->dtype && a->row == b->row &&
           memcmp(a->step, b->step, (size_t)p->n * sizeof(*a->step)) == 0;
}

uint16_t prog_load(struct prog *p, const struct prog_mem *m)
{
    for (uint16_t i = 0; i < p->n_step; i++)
        if (p->step[i].what == STEP_LOAD && same_mem(p, &p->mem[p->step[i].mem], m))
            return p->step[i].out;
    uint16_t v = new_value(p, kind_of(m->dtype), m->row), mem = new_mem(p, m);
    struct step *s = new_step(p, STEP_LOAD, v, m->row);
    s->n_in = 0;
    s->out = v;
    s->dtype = m->dtype;
    s->mem = mem;
    return v;
}

static uint16_t again(const struct prog *p, enum step_what what, uint16_t in, uint8_t kind)
{
    for (uint16_t i = 0; i < p->n_step; i++)
        if (p->step[i].what == what && p->step[i].in[0] == in && p->step[i].kind == kind)
            return p->step[i].out;
    return PROG_NO_VALUE;
}

uint16_t prog_convert(struct prog *p, uint16_t in, enum kind to)
{
    uint8_t from = p->value[in].kind;
    bool row = p->value[in].row;

    if (from == to)
        return in;
    if (p->value[in].constant) {
        _Alignas(16) char x[16];

        elem_convert(x, to, &p->value[in].fill, from, 1);
        return prog_constant(p, to, x, row);
    }
    uint16_t v = again(p, STEP_CONVERT, in, (uint8_t)to);
    if (v != PROG_NO_VALUE)
        return v;
    v = new_value(p, to, row);
    struct step *s = new_step(p, STEP_CONVERT, in, row);
    s->from_kind = from;
    s->kind = (uint8_t)to;
    s->out = v;
    return v;
}

uint16_t prog_round(struct prog *p, uint16_t in, enum dtype d)
{
    if (p->value[in].constant) {
        struct prog_value c = p->value[in];

        elem_round(&c.fill, d, 1);
        return prog_constant(p, c.kind, &c.fill, c.row);
    }
    uint16_t v = new_value(p, p->value[in].kind, p->value[in].row);
    struct step *s = new_step(p, STEP_ROUND, in, p->value[in].row);
    s->dtype = (uint8_t)d;
    s->out = v;
    return v;
}

uint16_t prog_spread(struct prog *p, uint16_t in)
{
    if (!p->value[in].row)
        return in;
    if (p->value[in].constant) {
        struct prog_value c = p->value[in];

        return prog_constant(p, c.kind, &c.fill, false);
    }
    uint16_t v = again(p, STEP_SPREAD, in, p->value[in].kind);
    if (v != PROG_NO_VALUE)
        return v;
    v = new_value(p, p->value[in].kind, false);
    new_step(p, STEP_SPREAD, in, false)->out = v;
    return v;
}

uint16_t prog_point(struct prog *p, point_fn fn, const struct point_params *params, enum kind kind,
                    const uint16_t *in, int n_in, bool row)
{
    uint16_t v = new_value(p, kind, row);
    struct step *s = new_step(p, STEP_POINT, v, row);

    s->n_in = (uint8_t)n_in;
    memcpy(s->in, in, (size_t)n_in * sizeof(*in));
    s->fn = fn;
    s->params = *params;
    s->out = v;
    return v;
}

uint16_t prog_reduce(struct prog *p, enum reduce_op op, uint16_t in, double divide)
{
    uint16_t v = new_value(p, p->value[in].kind, true);
    struct step *s = new_step(p, STEP_REDUCE, in, true);

    s->reduce = (uint8_t)op;
    s->divide = divide;
    s->out = v;
    return v;
}

uint16_t prog_var(struct prog *p, uint16_t in, double divide, uint16_t *mean)
{
    uint16_t v = new_value(p, p->value[in].kind, true);

    *mean = new_value(p, p->value[in].kind, true);
    struct step *s = new_step(p, STEP_VAR, in, true);
    s->divide = divide;
    s->out = v;
    s->out2 = *mean;
    return v;
}

void prog_column(struct prog *p, enum reduce_op op, uint16_t in, double divide,
                 const struct prog_mem *m)
{
    uint16_t mem = new_mem(p, m);
    struct step *s = new_step(p, STEP_COLUMN, in, false);

    s->reduce = (uint8_t)op;
    s->divide = divide;
    s->mem = mem;
}

void prog_store(struct prog *p, uint16_t in, const struct prog_mem *m)
{
    uint16_t mem = new_mem(p, m);
    struct step *s = new_step(p, STEP_STORE, in, m->row);

    s->dtype = m->dtype;
    s->mem = mem;
}

/* ---- dimensions ---- */

static void swap_dims(struct prog *p, int a, int b)
{
    int64_t size = p->size[a];

    p->size[a] = p->size[b];
    p->size[b] = size;
    for (int k = 0; k < p->n_mem; k++) {
        int64_t step = p->mem[k].step[a];

        p->mem[k].step[a] = p->mem[k].step[b];
        p->mem[k].step[b] = step;
    }
}

/* Stores decide first, then loads in their order. */
static bool is_outer(const struct prog *p, int a, int b)
{
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < p->n_step; i++) {
            const struct step *s = &p->step[i];

            if (s->what != (pass == 0 ? STEP_STORE : STEP_LOAD))
                continue;
            int64_t x = p->mem[s->mem].step[a], y = p->mem[s->mem].step[b];
            if (x != 0 && y != 0 && x != y)
                return (x < 0 ? -x : x) > (y < 0 ? -y : y);
        }
    return false;
}

static bool joins(const struct prog *p, int inner, int outer)
{
    for (int k = 0; k < p->n_mem; k++)
        if (p->mem[k].step[outer] != p->mem[k].step[inner] * p->size[inner])
            return false;
    return true;
}

/* Dimensions from `begin` up to `end` that lie in a row in every tensor become one; returns how
 * many are left, moved to `to`. */
static int coalesce(struct prog *p, int begin, int end, int to)
{
    int n = 0;

    for (int d = begin; d < end; d++) {
        if (p->size[d] == 1)
            continue;
        if (n > 0 && joins(p, to + n - 1, d)) {
            p->size[to + n - 1] *= p->size[d];
            continue;
        }
        p->size[to + n] = p->size[d];
        for (int k = 0; k < p->n_mem; k++)
            p->mem[k].step[to + n] = p->mem[k].step[d];
        n++;
    }
    return n;
}

static void add_dim(struct prog *p, int at)
{
    p->size[at] = 1;
    for (int k = 0; k < p->n_mem; k++)
        p->mem[k].step[at] = 0;
}

/* Makes sure of one inner and one outer dimension. */
static void arrange(struct prog *p)
{
    if (p->inner == 0) {
        for (int i = 1; i < p->n; i++)
            for (int j = i; j > 0 && is_outer(p, j - 1, j); j--)
                swap_dims(p, j - 1, j);
        p->n = coalesce(p, 0, p->n, 0);
    } else {
        int inner = coalesce(p, 0, p->inner, 0);
        int outer = coalesce(p, p->inner, p->n, inner > 0 ? inner : 1);

        if (inner == 0)
            add_dim(p, inner++);
        p->inner = inner;
        p->n = inner + outer;
    }
    while (p->n < 2 || p->n == p->inner)
        add_dim(p, p->n++);
}

/* ---- registers ---- */

static void find_last(struct prog *p)
{
    for (uint16_t i = 0; i < p->n_value; i++)
        p->value[i].last = 0;
    for (uint16_t i = 0; i < p->n_step; i++) {
        const struct step *s = &p->step[i];

        for (int k = 0; k < s->n_in; k++)
            p->value[s->in[k]].last = i;
        if (s->what != STEP_STORE && s->what != STEP_COLUMN)
            p->value[s->out].last = i;
        if (s->what == STEP_VAR)
            p->value[s->out2].last = i;
    }
}

/* A load, and a result whose first store needs no conversion, may use memory as a register. */
static void find_direct(struct prog *p)
{
    for (uint16_t i = 0; i < p->n_step; i++) {
        const struct step *s = &p->step[i];
        bool load = s->what == STEP_LOAD;

        if ((!load && s->what != STEP_STORE) || p->mem[s->mem].column)
            continue;
        struct prog_value *v = &p->value[load ? s->out : s->in[0]];
        if (v->direct == 0 && !v->constant && v->row == s->row &&
            kind_bytes[v->kind] == dtype_at(s->dtype)->bytes && kind_of(s->dtype) == v->kind &&
            s->dtype != DTYPE_B8)
            v->direct = (uint16_t)(s->mem + 1);
    }
}

static uint32_t units(const struct prog *p, const struct prog_value *v)
{
    size_t bytes = (size_t)(p->rows * (v->row ? 1 : p->width)) * kind_bytes[v->kind];

    return (uint32_t)((bytes + RT_ALIGN - 1) / RT_ALIGN);
}

/* The places of two values may be one if the first is dead before the second is made. First fit;
 * there are few values. */
static void place(struct prog *p, uint16_t v, uint16_t born, uint16_t *live, uint16_t *n_live)
{
    struct prog_value *x = &p->value[v];
    uint32_t need = units(p, x), at = 0;
    uint16_t kept = 0;

    for (uint16_t i = 0; i < *n_live; i++)
        if (p->value[live[i]].constant || p->value[live[i]].last >= born)
            live[kept++] = live[i];
    *n_live = kept;
    for (bool again_ = true; again_;) {
        again_ = false;
        for (uint16_t i = 0; i < *n_live; i++) {
            const struct prog_value *y = &p->value[live[i]];

            if (at < y->at + units(p, y) && y->at < at + need) {
                at = y->at + units(p, y);
                again_ = true;
            }
        }
    }
    x->at = at;
    live[(*n_live)++] = v;
    if ((size_t)(at + need) * RT_ALIGN > p->scratch)
        p->scratch = (size_t)(at + need) * RT_ALIGN;
}

static void place_all(struct prog *p)
{
    uint16_t live[1024], n_live = 0;

    for (uint16_t v = 0; v < p->n_value; v++)
        if (p->value[v].constant)
            place(p, v, 0, live, &n_live);
    for (uint16_t i = 0; i < p->n_step; i++) {
        const struct step *s = &p->step[i];

        if (s->what == STEP_STORE || s->what == STEP_COLUMN)
            continue;
        place(p, s->out, i, live, &n_live);
        if (s->what == STEP_VAR)
            place(p, s->out2, i, live, &n_live);
    }
}

bool prog_finish(struct prog *p)
{
    if (p->full || p->n_value > 1024)
        return false;
    arrange(p);
    int64_t inner = 1;
    for (int d = 0; d < (p->inner > 0 ? p->inner : 1); d++)
        inner *= p->size[d];
    p->width = p->inner > 0 || inner < PROG_TILE ? inner : PROG_TILE;
    int64_t rows = p->width > 0 ? PROG_TILE / p->width : 1;
    int64_t all = p->size[p->inner > 0 ? p->inner : 1];
    p->rows = rows < 1 ? 1 : rows > all ? all : rows;
    if ((uint64_t)p->width * 16 > PROG_MOST)
        return false;
    find_last(p);
    find_direct(p);
    place_all(p);
    p->columns = p->scratch;
    for (uint16_t i = 0; i < p->n_step; i++)
        if (p->step[i].what == STEP_COLUMN) /* two levels of sums, of whole lines */
            p->scratch += 2 * (((size_t)p->width * kind_bytes[p->step[i].kind] + 63) / 64 * 64);
    return p->scratch <= PROG_MOST;
}
