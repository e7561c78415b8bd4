/* What depends on where a value lies in its storage: views by way of the storage, as_strided and
 * its kin; bytes seen as another dtype or as complex numbers; the offset itself. */
#include "support/random_gen.h"

#include <stdio.h>

/* Which elements of the storage, one after the other or every other one. */
struct strided {
    int64_t size, step, from;
    bool own; /* from where the value itself begins */
};

static struct strided any_strided(struct gen *g, const struct val *v)
{
    int64_t n = gen_numel(v).k;
    struct strided s = {.step = 1 + (int64_t)gen_below(g, 2),
                        .from = (int64_t)gen_below(g, (uint32_t)n),
                        .own = v->begins && gen_one_in(g, 3)};

    s.size = ((s.own ? n : n - s.from) + s.step - 1) / s.step;
    s.step = s.size == 1 ? 1 : s.step;
    return s;
}

/* of: "self = x" or "self = x; src = y" */
static void put_strided(struct gen *g, const char *op, const char *of, struct strided s)
{
    if (s.own)
        gen_call(g, op, "%s; size = [%lld]; stride = [%lld]", of, (long long)s.size,
                 (long long)s.step);
    else
        gen_call(g, op, "%s; size = [%lld]; stride = [%lld]; storage_offset = %lld", of,
                 (long long)s.size, (long long)s.step, (long long)s.from);
}

static struct val row(const struct val *v, int64_t n)
{
    struct val f = *v;

    f.n_dim = 1;
    f.size[0] = (struct dim){n, 0};
    gen_pack(&f);
    return f;
}

/* A copy of those elements, of its own. */
static int copy_strided(struct gen *g, int v, struct strided s)
{
    struct val fresh = gen_fresh(g, v), f = row(&fresh, s.size);
    char of[60];

    int out = gen_begin(g, f, "as_strided_copy");
    snprintf(of, sizeof(of), "self = %s", g->val[v].name);
    put_strided(g, "aten.as_strided_copy.default", of, s);
    return out;
}

static void view_strided(struct gen *g, int v)
{
    struct strided s = any_strided(g, &g->val[v]);
    struct val like = gen_view_of(g, v), f = row(&like, s.size);
    char of[60];

    f.stride[0].k = s.step;
    f.layout = s.step > 1 ? SLICED : PACKED;
    f.begins = s.own || s.from == 0;
    gen_begin(g, f, "as_strided");
    snprintf(of, sizeof(of), "self = %s", g->val[v].name);
    put_strided(g, "aten.as_strided.default", of, s);
}

/* Puts others into a copy of the storage that v lies in; the result lies in the copy as v does. */
static void scatter_strided(struct gen *g, int v)
{
    struct strided s = any_strided(g, &g->val[v]);
    int copy = gen_begin(g, gen_fresh(g, v), "relu");
    struct val f = gen_fresh(g, v);
    char of[120];

    gen_call(g, "aten.relu.default", "self = %s", g->val[v].name);
    int src = copy_strided(g, copy, s);
    f.begins = g->val[v].begins;
    gen_begin(g, f, "as_strided_scatter");
    snprintf(of, sizeof(of), "self = %s; src = %s", g->val[v].name, g->val[src].name);
    put_strided(g, "aten.as_strided_scatter.default", of, s);
}

/* f32 as f64 or bf16, and so on. */
static void view_dtype(struct gen *g, int v)
{
    static const int wider[N_FLOATS] = {F64, F32, F32, -1},
                     narrower[N_FLOATS] = {BF16, -1, -1, F32};
    struct val f = gen_view_of(g, v);
    struct dim *last = &f.size[f.n_dim - 1];
    bool widen = f.begins && last->sym == 0 && last->k % 2 == 0 && gen_one_in(g, 2);
    int to = (widen ? wider : narrower)[f.dtype];

    if (to < 0 || last->sym != 0)
        return;
    last->k = widen ? last->k / 2 : last->k * 2;
    f.dtype = to;
    gen_pack(&f);
    gen_begin(g, f, "view");
    gen_call(g, "aten.view.dtype", "self = %s; dtype = %s", g->val[v].name, gen_dtype_python[to]);
}

/* As rows of two. */
static int view_pairs(struct gen *g, int v)
{
    struct val f = gen_view_of(g, v);

    if (f.size[f.n_dim - 1].k == 2)
        return v;
    f.size[0] = (struct dim){gen_numel(&f).k / 2, 0};
    f.size[1] = (struct dim){2, 0};
    f.n_dim = 2;
    gen_pack(&f);
    int out = gen_begin(g, f, "view");
    gen_call(g, "aten.view.default", "self = %s; size = [-1, 2]", g->val[v].name);
    return out;
}

/* The conjugate of a complex value, which is a view, or the value itself. */
static int conjugated(struct gen *g, int c)
{
    if (gen_one_in(g, 2))
        return c;
    int v = gen_begin(g, gen_view_of(g, c), "_conj");
    gen_call(g, "aten._conj.default", "self = %s", g->val[c].name);
    return v;
}

/* Pairs of numbers as complex ones, multiplied in place or not, and back. */
static void view_complex(struct gen *g, int v)
{
    static const int to[N_FLOATS] = {C64, -1, C32, -1};

    if (!g->val[v].begins || to[g->val[v].dtype] < 0 || gen_numel(&g->val[v]).k % 2 != 0)
        return;
    v = view_pairs(g, v);
    struct val real = gen_view_of(g, v), f = real;
    f.dtype = to[f.dtype];
    f.n_dim--;
    gen_pack(&f);
    int c = gen_begin(g, f, "view_as_complex");
    gen_call(g, "aten.view_as_complex.default", "self = %s", g->val[v].name);
    if (gen_writable(g, v) && gen_one_in(g, 3)) {
        gen_begin(g, gen_view_of(g, c), "mul_");
        gen_call(g, "aten.mul_.Tensor", "self = %s; other = 3", g->val[c].name);
        return;
    }
    int with = conjugated(g, c);
    int m = gen_begin(g, gen_fresh(g, c), "mul");
    gen_call(g, "aten.mul.Tensor", "self = %s; other = %s", g->val[c].name, g->val[with].name);
    real.storage = g->val[m].storage;
    real.changes = real.begins = true;
    gen_begin(g, real, "view_as_real");
    gen_call(g, "aten.view_as_real.default", "self = %s", g->val[m].name);
}

/* Where it begins, as a number, which is returned. */
static void offset(struct gen *g, int v)
{
    struct val number = {.taken = true};

    if (g->n_returned == MAX_VALS)
        return;
    number.storage = gen_new_storage(g);
    int n = gen_add_val(g, number, "storage_offset");
    gen_put(&g->body, "        %s = torch.ops.", g->val[n].name);
    gen_call(g,
             gen_one_in(g, 2) ? "aten.sym_storage_offset.default" : "aten.storage_offset.default",
             "self = %s", g->val[v].name);
    gen_give_back(g, n);
}

void gen_reinterpret(struct gen *g, int v)
{
    if (v < 0 || g->val[v].layout != PACKED || g->val[v].dtype >= N_FLOATS || gen_full(g))
        return;
    if (gen_one_in(g, 8)) {
        offset(g, v);
        return;
    }
    if (gen_is_symbolic(&g->val[v]) || gen_numel(&g->val[v]).k == 0)
        return;
    switch (gen_below(g, 7)) {
    case 0: copy_strided(g, v, any_strided(g, &g->val[v])); break;
    case 1: scatter_strided(g, v); break;
    case 2: view_strided(g, v); break;
    case 3:
    case 4: view_complex(g, v); break;
    default: view_dtype(g, v); break;
    }
}
