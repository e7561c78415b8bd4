/* Types, values, compute, views and writes. */
#include "support/random_gen.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const dtype_name[] = {"f32", "bf16", "f16", "f64", "c64", "c32", "b8"};
const char *const gen_dtype_python[] = {"torch.float32", "torch.bfloat16",  "torch.float16",
                                        "torch.float64", "torch.complex64", "torch.complex32",
                                        "torch.bool"};
const int gen_dtype_size[] = {4, 2, 2, 8, 8, 4, 1};
static const char *const device_name[] = {"cuda:0", "cpu"};
const char *const gen_device_python[] = {"device(type='cuda', index=0)", "device(type='cpu')"};

uint32_t gen_below(struct gen *g, uint32_t n)
{
    return rng_below(g->rng, n);
}

bool gen_one_in(struct gen *g, uint32_t n)
{
    return gen_below(g, n) == 0;
}

void gen_put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

void gen_put(struct text *t, const char *fmt, ...)
{
    char room[512];
    va_list ap;

    va_start(ap, fmt);
    int n = vsnprintf(room, sizeof(room), fmt, ap);
    va_end(ap);
    if (n < 0 || (size_t)n >= sizeof(room))
        abort();
    text_add(t, room, (size_t)n);
}

enum { MAX_OPERANDS = 8 };

/* Takes "a = x; b = y" apart; the first `cut` of them are written without their names. */
static void put_operands(struct gen *g, struct text *t, char *all, int cut)
{
    char *part[MAX_OPERANDS], *rest;
    int n = 0;

    for (char *s = strtok_r(all, ";", &rest); s != NULL; s = strtok_r(NULL, ";", &rest)) {
        if (n == MAX_OPERANDS)
            abort();
        part[n++] = s + strspn(s, " ");
    }
    for (int i = 0; i < n; i++)
        if (*part[i] == '*' && i < cut)
            cut = i;
    for (int i = n - 1; i > cut; i--) { /* those by name: in any order */
        int k = cut + (int)gen_below(g, (uint32_t)(i - cut + 1));
        char *other = part[i];
        part[i] = part[k];
        part[k] = other;
    }
    for (int i = 0; i < n; i++) {
        char *s = part[i] + (*part[i] == '*');
        gen_put(t, "%s%s", i ? ", " : "", i < cut ? strstr(s, " = ") + 3 : s);
    }
}

static void put_formatted(struct gen *g, struct text *t, const char *fmt, va_list ap)
{
    char room[400];
    int n = vsnprintf(room, sizeof(room), fmt, ap);

    if (n < 0 || (size_t)n >= sizeof(room))
        abort();
    put_operands(g, t, room, gen_one_in(g, 8) ? (int)gen_below(g, 4) : MAX_OPERANDS);
}

void gen_operands(struct gen *g, struct text *t, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    put_formatted(g, t, fmt, ap);
    va_end(ap);
}

void gen_call(struct gen *g, const char *op, const char *fmt, ...)
{
    va_list ap;

    gen_put(&g->body, "%s(", op);
    va_start(ap, fmt);
    put_formatted(g, &g->body, fmt, ap);
    va_end(ap);
    gen_put(&g->body, ")\n");
}

/* ---- types ---- */

static void put_dim(struct text *t, struct dim d)
{
    if (d.sym == 0 || d.k == 0)
        gen_put(t, "%lld", (long long)d.k);
    else if (d.k == 1)
        gen_put(t, "s%d", d.sym - 1);
    else
        gen_put(t, "%lld*s%d", (long long)d.k, d.sym - 1);
}

void gen_put_dims(struct text *t, const struct dim *d, int n)
{
    gen_put(t, "[");
    for (int i = 0; i < n; i++) {
        gen_put(t, "%s", i ? ", " : "");
        put_dim(t, d[i]);
    }
    gen_put(t, "]");
}

void gen_put_type(struct text *t, const struct val *v)
{
    gen_put(t, "%s", dtype_name[v->dtype]);
    gen_put_dims(t, v->size, v->n_dim);
    gen_put_dims(t, v->stride, v->n_dim);
    gen_put(t, "%s", device_name[v->device]);
}

static struct dim times(struct dim a, struct dim b)
{
    return (struct dim){a.k * b.k, a.sym ? a.sym : b.sym};
}

static bool same_dim(struct dim a, struct dim b)
{
    return a.k == b.k && a.sym == b.sym;
}

struct dim gen_numel(const struct val *v)
{
    struct dim n = {1, 0};

    for (int i = 0; i < v->n_dim; i++)
        n = times(n, v->size[i]);
    return n;
}

void gen_pack(struct val *v)
{
    struct dim step = {1, 0};

    for (int i = v->n_dim - 1; i >= 0; i--) {
        v->stride[i] = step;
        if (v->size[i].k > 0)
            step = times(step, v->size[i]);
    }
    v->layout = PACKED;
}

static bool same_type(const struct val *a, const struct val *b)
{
    if (a->dtype != b->dtype || a->device != b->device || a->n_dim != b->n_dim ||
        a->layout != b->layout)
        return false;
    for (int i = 0; i < a->n_dim; i++)
        if (!same_dim(a->size[i], b->size[i]) || !same_dim(a->stride[i], b->stride[i]))
            return false;
    return true;
}

bool gen_is_symbolic(const struct val *v)
{
    return gen_numel(v).sym != 0;
}

/* ---- values ---- */

bool gen_full(const struct gen *g)
{
    return g->n_val > MAX_VALS - 40 || g->n_flight > MAX_FLIGHTS - 12;
}

int gen_new_storage(struct gen *g)
{
    g->storage[g->n_storage] = (struct storage){0, 0};
    return g->n_storage++;
}

int gen_add_val(struct gen *g, struct val v, const char *stem)
{
    snprintf(v.name, sizeof(v.name), "%s_%d", stem, g->n_name++);
    g->val[g->n_val] = v;
    return g->n_val++;
}

static int put_name(struct gen *g, struct val v, const char *stem)
{
    int i = gen_add_val(g, v, stem);

    gen_put(&g->body, "        %s", g->val[i].name);
    if (g->annotated) {
        gen_put(&g->body, ": \"");
        gen_put_type(&g->body, &g->val[i]);
        gen_put(&g->body, "\"");
    }
    gen_put(&g->body, " = ");
    return i;
}

/* The caller appends what the value is. */
int gen_begin(struct gen *g, struct val v, const char *stem)
{
    int i = put_name(g, v, stem);

    gen_put(&g->body, "torch.ops.");
    return i;
}

int gen_item(struct gen *g, struct val v, const char *list, int number, int i)
{
    int out = put_name(g, v, "getitem");

    gen_put(&g->body, "%s_%d[%d]\n", list, number, i);
    return out;
}

/* A new value like v, packed unless it is a permutation. */
struct val gen_fresh(struct gen *g, int v)
{
    struct val f = g->val[v];

    if (f.layout == SLICED)
        gen_pack(&f);
    f.storage = gen_new_storage(g);
    f.flying = f.taken = false;
    f.changes = f.begins = true;
    return f;
}

bool gen_readable(const struct gen *g, int v)
{
    return !g->val[v].flying && !g->val[v].taken && g->val[v].dtype < N_FLOATS &&
           g->storage[g->val[v].storage].writes == 0;
}

bool gen_writable(const struct gen *g, int v)
{
    const struct storage *s = &g->storage[g->val[v].storage];

    return gen_readable(g, v) && g->val[v].changes && s->reads == 0;
}

/* One for which the test holds, or -1. */
int gen_pick(struct gen *g, test_fn test)
{
    for (int i = 0; i < 12; i++) {
        int v = (int)gen_below(g, (uint32_t)g->n_val);
        if (g->val[v].n_dim > 0 && test(g, v))
            return v;
    }
    return -1;
}

bool gen_readable_packed(const struct gen *g, int v)
{
    return gen_readable(g, v) && g->val[v].layout == PACKED;
}

int gen_pick_like(struct gen *g, int like)
{
    for (int i = 0; i < 12; i++) {
        int v = (int)gen_below(g, (uint32_t)g->n_val);
        if (gen_readable(g, v) && same_type(&g->val[v], &g->val[like]))
            return v;
    }
    return like;
}

/* ---- inputs ---- */

struct val gen_random_type(struct gen *g)
{
    static const int64_t rows[] = {2, 4, 4, 8}, columns[] = {1, 2, 3, 4};
    struct val v = {.n_dim = 1 + (int)gen_below(g, 2), .changes = true};

    v.dtype = gen_one_in(g, 3) ? (int)gen_below(g, 4) : g->dtype;
    v.device = gen_one_in(g, 12);
    v.size[0] = (struct dim){rows[gen_below(g, 4)], 0};
    v.size[1] = (struct dim){columns[gen_below(g, 4)], 0};
    if (gen_one_in(g, 30))
        v.size[0].k = 0;
    if (gen_one_in(g, 10)) {
        v.n_dim = 3;
        v.size[2] = (struct dim){2, 0};
    }
    if (gen_one_in(g, 8))
        v.size[gen_one_in(g, 2) && v.n_dim > 1].sym = gen_one_in(g, 4) ? 2 : 1;
    gen_pack(&v);
    return v;
}

int gen_add_input(struct gen *g, struct val v, const char *stem)
{
    v.storage = gen_new_storage(g);
    v.begins = true;
    int i = gen_add_val(g, v, stem);
    gen_put(&g->head, ", %s: \"", g->val[i].name);
    gen_put_type(&g->head, &g->val[i]);
    gen_put(&g->head, "\"");
    return i;
}

/* ---- compute, views, writes ---- */

int gen_compute(struct gen *g, int v)
{
    int w = gen_pick_like(g, v), out;
    const char *a = g->val[v].name, *b = g->val[w].name;

    switch (gen_below(g, 4)) {
    case 0:
        out = gen_begin(g, gen_fresh(g, v), "relu");
        gen_call(g, "aten.relu.default", "self = %s", a);
        break;
    case 1:
        out = gen_begin(g, gen_fresh(g, v), "clone");
        gen_call(g, "aten.clone.default", "self = %s", a);
        break;
    case 2:
        out = gen_begin(g, gen_fresh(g, v), "mul");
        gen_call(g, "aten.mul.Tensor", "self = %s; other = %s", a, gen_one_in(g, 2) ? "3" : b);
        break;
    default:
        out = gen_begin(g, gen_fresh(g, v), "add");
        gen_call(g, "aten.add.Tensor", "self = %s; other = %s", a, b);
        break;
    }
    return out;
}

int gen_convert_to(struct gen *g, int v, int dtype)
{
    struct val f = gen_fresh(g, v);
    int out;

    f.dtype = dtype;
    if (gen_one_in(g, 3)) {
        out = gen_begin(g, f, "_to_copy");
        gen_call(g, "aten._to_copy.default", "self = %s; *dtype = %s", g->val[v].name,
                 gen_dtype_python[dtype]);
    } else {
        out = gen_begin(g, f, "convert_element_type");
        gen_call(g, "prims.convert_element_type.default", "a = %s; dtype = %s", g->val[v].name,
                 gen_dtype_python[dtype]);
    }
    return out;
}

int gen_divide(struct gen *g, int v, int by)
{
    int out = gen_begin(g, gen_fresh(g, v), "div");

    gen_call(g, "aten.div.Tensor", "self = %s; other = %d", g->val[v].name, by);
    return out;
}

struct val gen_view_of(struct gen *g, int v)
{
    struct val f = g->val[v];

    f.taken = false;
    return f;
}

static void view_split(struct gen *g, int v)
{
    struct val f = gen_view_of(g, v);
    int64_t rows = f.size[0].k, a = 1 + (int64_t)gen_below(g, (uint32_t)(rows - 1));
    int list = g->n_name++;

    gen_put(&g->body, "        split_%d = torch.ops.", list);
    gen_call(g, "aten.split_with_sizes.default", "self = %s; split_sizes = [%lld, %lld]",
             g->val[v].name, (long long)a, (long long)(rows - a));
    for (int i = 0; i < 2; i++) {
        f.size[0].k = i ? rows - a : a;
        f.begins &= i == 0;
        gen_item(g, f, "split", list, i);
    }
}

static bool readable_permuted(const struct gen *g, int v)
{
    return gen_readable(g, v) && g->val[v].layout == PERMUTED && g->val[v].n_dim == 2 &&
           g->val[v].size[0].k > 1 && g->val[v].size[1].k > 1;
}

/* A reshape whose operand lies across: it copies, and may be written without the operand. */
static void reshape_copy(struct gen *g)
{
    int v = gen_pick(g, readable_permuted);

    if (v < 0)
        return;
    struct val f = gen_fresh(g, v);
    f.size[0] = gen_numel(&f);
    f.n_dim = 1;
    f.layout = PACKED;
    gen_pack(&f);
    gen_begin(g, f, "reshape");
    gen_call(g, "aten.reshape.default", "self = %s; shape = [-1]", g->val[v].name);
}

void gen_view(struct gen *g)
{
    if (gen_one_in(g, 6)) {
        reshape_copy(g);
        return;
    }
    int v = gen_pick(g, gen_readable_packed);

    if (v < 0)
        return;
    struct val f = gen_view_of(g, v);
    switch (gen_below(g, 6)) {
    case 0: /* flat */
        f.size[0] = gen_numel(&f);
        f.n_dim = 1;
        gen_pack(&f);
        gen_begin(g, f, "view");
        if (gen_one_in(g, 2))
            gen_call(g, "aten.view.default", "self = %s; size = [-1]", g->val[v].name);
        else
            gen_call(g, "aten.reshape.default", "self = %s; shape = [-1]", g->val[v].name);
        break;
    case 1: /* some rows */
        if (f.size[0].sym || f.size[0].k < 2)
            return;
        f.size[0].k = 1 + (int64_t)gen_below(g, (uint32_t)(f.size[0].k - 1));
        gen_begin(g, f, "slice");
        gen_call(g, "aten.slice.Tensor", "self = %s; dim = 0; start = 0; end = %lld",
                 g->val[v].name, (long long)f.size[0].k);
        break;
    case 2: /* some columns */
        if (f.n_dim < 2 || f.size[1].sym || f.size[1].k < 2)
            return;
        f.size[1].k--;
        f.layout = SLICED;
        f.begins = false;
        gen_begin(g, f, "slice");
        gen_call(g, "aten.slice.Tensor", "self = %s; dim = 1; start = 1; end = 9223372036854775807",
                 g->val[v].name);
        break;
    case 3:
        if (f.n_dim != 2 || f.size[0].k < 2 || f.size[1].k < 2)
            return;
        f.size[0] = g->val[v].size[1], f.size[1] = g->val[v].size[0];
        f.stride[0] = g->val[v].stride[1], f.stride[1] = g->val[v].stride[0];
        f.layout = PERMUTED;
        gen_begin(g, f, "permute");
        gen_call(g, "aten.permute.default", "self = %s; dims = [1, 0]", g->val[v].name);
        break;
    case 4:
        if (!f.size[0].sym && f.size[0].k > 1)
            view_split(g, v);
        break;
    default:
        gen_begin(g, f, "alias");
        gen_call(g, gen_one_in(g, 2) ? "aten.alias.default" : "aten.detach.default", "self = %s",
                 g->val[v].name);
        break;
    }
}

void gen_write_something(struct gen *g)
{
    int v = gen_pick(g, gen_writable);

    if (v < 0)
        return;
    int w = gen_pick_like(g, v), u = gen_pick_like(g, v);
    struct val f = gen_view_of(g, v);
    bool apart = g->val[w].storage != f.storage && g->val[u].storage != f.storage;

    switch (gen_below(g, 4)) {
    case 0:
        gen_begin(g, f, "mul_");
        gen_call(g, "aten.mul_.Tensor", "self = %s; other = 2", g->val[v].name);
        break;
    case 1:
        if (!apart)
            return;
        gen_begin(g, f, "add_");
        gen_call(g, "aten.add_.Tensor", "self = %s; other = %s", g->val[v].name, g->val[w].name);
        break;
    case 2:
        if (!apart)
            return;
        gen_begin(g, f, "copy_");
        gen_call(g, "aten.copy_.default", "self = %s; src = %s", g->val[v].name, g->val[w].name);
        break;
    default:
        if (!apart)
            return;
        gen_begin(g, f, "add");
        gen_call(g, "aten.add.out", "self = %s; other = %s; *out = %s", g->val[w].name,
                 g->val[u].name, g->val[v].name);
        break;
    }
}
