#include "support/sym_tensor.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

struct chunk {
    struct chunk *next;
    size_t used, cap;
    max_align_t at[];
};

void *pool_get(struct pool *p, size_t size)
{
    enum { LEAST = 1 << 16, ALIGN = sizeof(max_align_t) };

    size = (size + ALIGN - 1) / ALIGN * ALIGN;
    if (p->first == NULL || p->first->cap - p->first->used < size) {
        size_t cap = size > LEAST ? size : LEAST;
        struct chunk *c = malloc(sizeof(*c) + cap);
        if (c == NULL)
            abort();
        *c = (struct chunk){.next = p->first, .cap = cap};
        p->first = c;
    }
    void *at = (char *)p->first->at + p->first->used;
    p->first->used += size;
    return memset(at, 0, size);
}

void pool_done(struct pool *p)
{
    while (p->first != NULL) {
        struct chunk *c = p->first;
        p->first = c->next;
        free(c);
    }
}

/* ---- numbers ---- */

uint64_t field_add(uint64_t a, uint64_t b)
{
    return (a + b) % FIELD;
}

uint64_t field_neg(uint64_t a)
{
    return a ? FIELD - a : 0;
}

__extension__ typedef unsigned __int128 wide;

uint64_t field_mul(uint64_t a, uint64_t b)
{
    wide x = (wide)a * b;

    /* 2^54 is 33 here; twice, then 60 bits are left */
    for (int i = 0; i < 2; i++)
        x = (x >> 54) * 33 + (x & ((UINT64_C(1) << 54) - 1));
    return (uint64_t)x % FIELD;
}

uint64_t field_inv(uint64_t a)
{
    uint64_t r = 1;

    if (a == 0)
        return 0;
    for (uint64_t e = FIELD - 2; e > 0; e >>= 1, a = field_mul(a, a))
        if (e & 1)
            r = field_mul(r, a);
    return r;
}

uint64_t field_conj(uint64_t v)
{
    return v == VALUE_NOTHING ? v : field_neg(field_of(v));
}

uint64_t field_int(int64_t v)
{
    return v < 0 ? field_neg((uint64_t)-v % FIELD) : (uint64_t)v % FIELD;
}

uint64_t field_hash(uint64_t a, uint64_t b)
{
    struct rng r = {a * 0xD1342543DE82EF95u + b};

    rng_next(&r);
    r.state ^= a;
    return rng_next(&r) % FIELD;
}

/* ---- dtypes ---- */

const struct sym_dtype symeval_dtypes[] = {
    {"b8", "torch.bool", 1, 7, 0},         {"u8", "torch.uint8", 1, 55, 1},
    {"i8", "torch.int8", 1, 37, 2},        {"i16", "torch.int16", 2, 28, 3},
    {"i32", "torch.int32", 4, 26, 4},      {"i64", "torch.int64", 8, 35, 5},
    {"f16", "torch.float16", 2, 16, 6},    {"bf16", "torch.bfloat16", 2, 0, 7},
    {"f32", "torch.float32", 4, 15, 8},    {"f64", "torch.float64", 8, 14, 9},
    {"c32", "torch.complex32", 4, 10, 10}, {"c64", "torch.complex64", 8, 9, 11},
};

enum { FIELD_BITS = 54, FIRST_FLOAT = 6, FLOAT_RANK = 6, LAST_FLOAT_RANK = 9, BOOL = 0 };
enum { N_DTYPES = sizeof(symeval_dtypes) / sizeof(*symeval_dtypes) };

int dtype_named(const char *name, size_t len)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (strlen(symeval_dtypes[i].name) == len && memcmp(symeval_dtypes[i].name, name, len) == 0)
            return i;
    return -1;
}

int dtype_of_python(const char *python)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (strcmp(symeval_dtypes[i].python, python) == 0)
            return i;
    return -1;
}

int dtype_of_number(int64_t number)
{
    for (int i = 0; i < N_DTYPES; i++)
        if (symeval_dtypes[i].number == number)
            return i;
    return -1;
}

int dtype_promoted(int a, int b)
{
    int x = symeval_dtypes[a].rank, y = symeval_dtypes[b].rank;

    if (x + y == 2 * FLOAT_RANK + 1 && a != b) /* f16 and bf16 */
        return dtype_named("f32", 3);
    return x > y ? a : b;
}

/* ---- cells ---- */

/* 56 bits of number, 5 of dtype, 3 of part. */
static cell cell_of(uint64_t v, int dtype, int part)
{
    return v == VALUE_NOTHING ? CELL_NOTHING : v | (uint64_t)dtype << 56 | (uint64_t)part << 61;
}

static uint64_t value_of(const cell *c, int dtype, int size)
{
    uint64_t v = c[0] & ((UINT64_C(1) << 56) - 1), h = (uint64_t)dtype;
    bool whole = true;

    for (int i = 0; i < size; i++) {
        if (c[i] == CELL_NOTHING)
            return VALUE_NOTHING;
        whole &= c[i] == cell_of(v, dtype, i);
    }
    for (int i = 0; i < size && !whole; i++)
        h = field_hash(c[i], h);
    return whole ? v : h;
}

/* ---- tensors ---- */

int64_t tensor_numel(const struct tensor *t)
{
    int64_t n = 1;

    for (int i = 0; i < t->n_dim; i++)
        n *= t->size[i];
    return n;
}

int tensor_item(const struct tensor *t)
{
    return symeval_dtypes[t->dtype].size;
}

bool tensor_fits(const struct tensor *t)
{
    int64_t last = t->off;

    if (tensor_numel(t) == 0)
        return t->off >= 0;
    for (int i = 0; i < t->n_dim; i++)
        last += (t->size[i] - 1) * t->stride[i];
    return t->off >= 0 && (last + 1) * tensor_item(t) <= t->st->n;
}

int64_t tensor_place(const struct tensor *t, int64_t i)
{
    int64_t at = t->off;

    for (int d = t->n_dim - 1; d >= 0; d--) {
        at += i % t->size[d] * t->stride[d];
        i /= t->size[d];
    }
    return at;
}

uint64_t tensor_load(const struct tensor *t, int64_t i)
{
    int size = tensor_item(t);

    uint64_t v = value_of(t->st->at + tensor_place(t, i) * size, t->dtype, size);

    return t->conj ? field_conj(v) : v;
}

void tensor_store(const struct tensor *t, int64_t i, uint64_t v)
{
    int size = tensor_item(t);
    cell *at = t->st->at + tensor_place(t, i) * size;

    if (t->conj)
        v = field_conj(v);
    for (int k = 0; k < size; k++)
        at[k] = cell_of(v, t->dtype, k);
}

void tensor_take(const struct tensor *t, int64_t i, cell *to)
{
    int size = tensor_item(t);

    memcpy(to, t->st->at + tensor_place(t, i) * size, (size_t)size * sizeof(cell));
    /* Any byte that is not 0 is True, and a copy of it may be 1. */
    if (t->dtype == BOOL && *to != CELL_NOTHING && (*to >> 56 & 31) != BOOL)
        *to = cell_of(field_hash(*to, 0xB001), BOOL, 0);
}

void tensor_put(const struct tensor *t, int64_t i, const cell *from)
{
    int size = tensor_item(t);

    memcpy(t->st->at + tensor_place(t, i) * size, from, (size_t)size * sizeof(cell));
}

bool tensor_contiguous(const struct tensor *t)
{
    int64_t want = 1;

    for (int d = t->n_dim - 1; d >= 0; d--) {
        if (t->size[d] != 1 && t->stride[d] != want)
            return tensor_numel(t) == 0;
        want *= t->size[d];
    }
    return true;
}

bool tensor_dense(const struct tensor *t)
{
    bool done[SYM_DIMS] = {false};
    int64_t want = 1;

    for (int round = 0; round < t->n_dim; round++) {
        int found = -1;
        for (int d = 0; d < t->n_dim && found < 0; d++)
            if (!done[d] && (t->size[d] == 1 || t->stride[d] == want))
                found = d;
        if (found < 0)
            return tensor_numel(t) == 0;
        done[found] = true;
        want *= t->size[found];
    }
    return true;
}

void tensor_pack(struct tensor *t)
{
    int64_t step = 1;

    for (int d = t->n_dim - 1; d >= 0; d--) {
        t->stride[d] = step;
        step *= t->size[d] > 1 ? t->size[d] : 1;
    }
}

void tensor_new(struct pool *p, struct tensor *t)
{
    int64_t last = 0;

    for (int d = 0; d < t->n_dim; d++)
        last += (t->size[d] - 1) * t->stride[d];
    t->off = 0;
    t->conj = false;
    t->st = pool_get(p, sizeof(*t->st));
    t->st->n = tensor_numel(t) == 0 ? 0 : (last + 1) * tensor_item(t);
    t->st->at = POOL_ARRAY(p, cell, t->st->n);
    memset(t->st->at, 0xff, (size_t)t->st->n * sizeof(cell));
}

/* Old dimensions are taken in runs, from the last, that step through memory evenly; new ones must
 * divide each run exactly. */
bool tensor_view(const struct tensor *t, int n_dim, const int64_t *size, struct tensor *out)
{
    struct tensor v = *t;
    int to = n_dim - 1;

    v.n_dim = n_dim;
    for (int d = 0; d < n_dim; d++)
        v.size[d] = size[d];
    if (tensor_numel(&v) != tensor_numel(t))
        return false;
    if (tensor_contiguous(t))
        tensor_pack(&v);
    for (int from = t->n_dim - 1; from >= 0 && !tensor_contiguous(t); from--) {
        int64_t step = t->stride[from], run = t->size[from], have = 1;
        while (from > 0 && (t->size[from - 1] == 1 || t->stride[from - 1] == run * step))
            run *= t->size[--from];
        for (; to >= 0 && (have < run || v.size[to] == 1); to--) {
            v.stride[to] = step * have;
            have *= v.size[to];
        }
        if (have != run)
            return false;
    }
    *out = v;
    return true;
}

/* Is every number of `from` also one of `to`? */
static bool is_wider(int from, int to)
{
    int a = symeval_dtypes[from].rank, b = symeval_dtypes[to].rank;

    return a >= FLOAT_RANK && b > a && b <= LAST_FLOAT_RANK &&
           b > FLOAT_RANK + 1; /* f16 and bf16 are not comparable */
}

uint64_t convert(uint64_t v, int from, int to)
{
    if (v == VALUE_NOTHING || from == to)
        return v;
    if (v >> FIELD_BITS != 0) { /* it was widened before */
        from = FIRST_FLOAT + (int)(v >> FIELD_BITS) - 1;
        v &= (UINT64_C(1) << FIELD_BITS) - 1;
    }
    if (from == to)
        return v;
    if (is_wider(from, to))
        return v | (uint64_t)(from - FIRST_FLOAT + 1) << FIELD_BITS;
    return field_hash(v, 0xC0DE0000u + (uint64_t)from * 32 + (uint64_t)to);
}

uint64_t field_of(uint64_t value)
{
    return value == VALUE_NOTHING || value >> FIELD_BITS == 0 ? value : field_hash(value, 0x31DE);
}

bool tensor_broadcast(const struct tensor *t, int n_dim, const int64_t *size, struct tensor *out)
{
    struct tensor b = *t;
    int lead = n_dim - t->n_dim;

    if (lead < 0)
        return false;
    b.n_dim = n_dim;
    for (int d = 0; d < n_dim; d++) {
        int64_t have = d < lead ? 1 : t->size[d - lead];
        b.size[d] = size[d];
        b.stride[d] = d < lead || (have == 1 && size[d] != 1) ? 0 : t->stride[d - lead];
        if (have != size[d] && have != 1)
            return false;
    }
    *out = b;
    return true;
}

bool tensor_copy(const struct tensor *to, const struct tensor *from)
{
    struct tensor b;
    int64_t n = tensor_numel(to);

    if (!tensor_broadcast(from, to->n_dim, to->size, &b))
        return false;
    if (b.dtype != to->dtype || b.conj != to->conj) {
        for (int64_t i = 0; i < n; i++)
            tensor_store(to, i, convert(tensor_load(&b, i), b.dtype, to->dtype));
        return true;
    }
    for (int64_t i = 0; i < n; i++) {
        cell c[8];
        tensor_take(&b, i, c);
        tensor_put(to, i, c);
    }
    return true;
}

/* ---- annotations ---- */

struct expr {
    const struct sym_world *w;
    const char *at, *end;
    bool ok;
};

static int64_t expr_sum(struct expr *e);

static void expr_skip(struct expr *e)
{
    while (e->at < e->end && *e->at == ' ')
        e->at++;
}

static int64_t expr_atom(struct expr *e)
{
    expr_skip(e);
    if (e->at < e->end && *e->at == '(') {
        e->at++;
        int64_t v = expr_sum(e);
        expr_skip(e);
        e->ok &= e->at < e->end && *e->at == ')';
        e->at += e->ok;
        return v;
    }
    const char *start = e->at;
    while (e->at < e->end && (isalnum((unsigned char)*e->at) || *e->at == '_'))
        e->at++;
    if (e->at == start) {
        e->ok = false;
        return 0;
    }
    if (isdigit((unsigned char)*start))
        return strtoll(start, NULL, 10);
    for (size_t i = 0; i < e->w->n_symbol; i++)
        if (strlen(e->w->symbol[i].name) == (size_t)(e->at - start) &&
            memcmp(e->w->symbol[i].name, start, (size_t)(e->at - start)) == 0)
            return e->w->symbol[i].value;
    e->ok = false;
    return 0;
}

static int64_t expr_product(struct expr *e)
{
    int64_t v = expr_atom(e);

    for (expr_skip(e); e->ok && e->at < e->end; expr_skip(e)) {
        if (e->end - e->at > 1 && e->at[0] == '/' && e->at[1] == '/') {
            e->at += 2;
            int64_t by = expr_atom(e);
            e->ok &= by > 0 && v >= 0;
            v = e->ok ? v / by : 0;
        } else if (*e->at == '*') {
            e->at++;
            v *= expr_atom(e);
        } else {
            break;
        }
    }
    return v;
}

static int64_t expr_sum(struct expr *e)
{
    int64_t v = 0;
    int sign = 1;

    expr_skip(e);
    if (e->at < e->end && *e->at == '-') {
        sign = -1;
        e->at++;
    }
    for (;;) {
        v += sign * expr_product(e);
        expr_skip(e);
        if (!e->ok || e->at >= e->end || (*e->at != '+' && *e->at != '-'))
            return v;
        sign = *e->at++ == '+' ? 1 : -1;
    }
}

bool symeval_number(const struct sym_world *w, const char *text, size_t len, int64_t *out)
{
    struct expr e = {w, text, text + len, true};
    int64_t v = expr_sum(&e);

    if (!e.ok || e.at != e.end)
        return false;
    *out = v;
    return true;
}

/* [2*s0, 4]: the numbers, and what follows. NULL if it is not a list. */
static const char *numbers(const struct sym_world *w, const char *s, int64_t *to, int *n)
{
    *n = 0;
    if (*s++ != '[')
        return NULL;
    while (*s != ']') {
        size_t len = 0;
        for (int depth = 0; s[len] != '\0' && (depth > 0 || (s[len] != ',' && s[len] != ']'));
             len++)
            depth += (s[len] == '(') - (s[len] == ')');
        if (s[len] == '\0' || *n == SYM_DIMS || !symeval_number(w, s, len, &to[(*n)++]))
            return NULL;
        s += len;
        if (*s == ',')
            s += 1 + (s[1] == ' ');
    }
    return s + 1;
}

bool symeval_annotation(const struct sym_world *w, const char *text, struct tensor *out,
                        bool *strides)
{
    struct tensor t = {.n_dim = 0};
    size_t len = strcspn(text, "[");
    int n_stride;

    t.dtype = dtype_named(text, len);
    if (t.dtype < 0)
        return false;
    const char *rest = numbers(w, text + len, t.size, &t.n_dim);
    if (rest == NULL)
        return false;
    *strides = *rest == '[';
    if (*strides) {
        rest = numbers(w, rest, t.stride, &n_stride);
        if (rest == NULL || n_stride != t.n_dim)
            return false;
        t.cpu = strcmp(rest, "cpu") == 0;
    }
    if (!*strides)
        tensor_pack(&t);
    *out = t;
    return true;
}
