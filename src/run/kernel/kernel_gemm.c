/* mm, addmm, bmm, baddbmm and their kin. */
#include "run/kernel/gemm.h"

/* One product of matrices or of batches of them: operands and result as 3-d tensors in the kind
 * that is computed in. */
struct product {
    const struct rt_tensor *a, *b, *add; /* add: may be NULL */
    struct rt_tensor *out;
    double alpha, beta;
};

static enum kind kind_for(const struct rt_tensor *t)
{
    return kind_of(t->dtype) == K_BOOL ? K_I64 : kind_of(t->dtype);
}

static struct matrix at_batch(const struct rt_tensor *t, int64_t i, enum kind k)
{
    int64_t step = t->n > 2 && t->size[0] != 1 ? t->stride[0] * i : 0;

    return gemm_matrix(t, (char *)t->data + step * kind_bytes[k]);
}

static size_t product_scratch(const struct rt_call *c, const struct product *x)
{
    enum kind k = kind_for(x->out);
    struct matrix o = gemm_matrix(x->out, NULL), a = gemm_matrix(x->a, NULL),
                  b = gemm_matrix(x->b, NULL);
    bool natural = gemm_natural(x->out, k) && gemm_natural(x->a, k) && gemm_natural(x->b, k);

    if (k == K_END)
        return 0;
    return gemm_room(&o, &a, &b) * kind_bytes[k] + 4 * RT_ALIGN +
           (natural ? 0 : (k == K_C128 ? 2 : 1) * plain_scratch(c, 0)); /* that of 8 bytes each */
}

/* Do the sizes of factors and result go together? */
static bool is_product(struct rt_call *c, const struct product *x)
{
    struct matrix o = gemm_matrix(x->out, NULL), a = gemm_matrix(x->a, NULL),
                  b = gemm_matrix(x->b, NULL);
    int64_t batch = x->out->n > 2 ? x->out->size[0] : 1, of_a = x->a->n > 2 ? x->a->size[0] : 1,
            of_b = x->b->n > 2 ? x->b->size[0] : 1;

    if (x->a->n < 2 || x->b->n < 2 || x->out->n < 2 || x->out->n > 3 || x->a->n > 3 || x->b->n > 3)
        return kernel_error(c, "a product of other than matrices and batches of them");
    if (a.rows != o.rows || b.cols != o.cols || a.cols != b.rows || (of_a != 1 && of_a != batch) ||
        (of_b != 1 && of_b != batch))
        return kernel_error(c, "the sizes of its operands do not go together");
    return kernel_broadcasts(c, x->add, x->out);
}

static bool multiply(struct rt_call *c, const struct product *x)
{
    struct plain s = plain_begin(c);
    enum kind k = kind_for(x->out);

    if (k == K_END)
        return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                            dtype_at(x->out->dtype)->name);
    if (!is_product(c, x))
        return false;
    struct rt_tensor a = gemm_operand(&s, x->a, k, true), b = gemm_operand(&s, x->b, k, true),
                     out = gemm_operand(&s, x->out, k, false);
    double beta = x->add != NULL ? x->beta : 0;
    if (beta != 0 && x->add->data != out.data)
        copy_tensor(c, &out, x->add);
    for (int64_t i = 0; i < (out.n > 2 ? out.size[0] : 1); i++)
        if (!gemm(c, k, at_batch(&out, i, k), at_batch(&a, i, k), at_batch(&b, i, k), x->alpha,
                  beta, s.at))
            return false;
    if (out.data != x->out->data)
        copy_tensor(c, x->out, &out);
    return true;
}

static struct product mm_of(const struct rt_call *c)
{
    return (struct product){arg_tensor(c, 0), arg_tensor(c, 1), NULL, out_at(c, 0), 1, 0};
}

static struct product addmm_of(const struct rt_call *c)
{
    return (struct product){arg_tensor(c, 1), arg_tensor(c, 2),   arg_tensor(c, 0),
                            out_at(c, 0),     arg_float(c, 4, 1), arg_float(c, 3, 1)};
}

bool kernel_mm(struct rt_call *c)
{
    struct product x = mm_of(c);

    return multiply(c, &x);
}

size_t scratch_mm(const struct rt_call *c)
{
    struct product x = mm_of(c);

    return product_scratch(c, &x);
}

bool kernel_addmm(struct rt_call *c)
{
    struct product x = addmm_of(c);

    if (arg_at(c, 3)->kind == RT_COMPLEX || arg_at(c, 4)->kind == RT_COMPLEX)
        return kernel_error(c, "no kernel multiplies with a complex factor");
    return multiply(c, &x);
}

size_t scratch_addmm(const struct rt_call *c)
{
    struct product x = addmm_of(c);

    return product_scratch(c, &x);
}

/* ---- vectors ---- */

static struct rt_tensor with_ones(const struct rt_tensor *t, bool row)
{
    struct rt_tensor x = *t;

    x.n = 2;
    x.size[0] = row ? 1 : t->n > 0 ? t->size[0] : 1;
    x.size[1] = row ? (t->n > 0 ? t->size[0] : 1) : 1;
    x.stride[0] = x.stride[1] = t->n > 0 ? t->stride[0] : 1;
    return x;
}

/* Matrix by vector, or vector by vector. */
bool kernel_mv(struct rt_call *c)
{
    struct rt_tensor a = *arg_tensor(c, 0), b = with_ones(arg_tensor(c, 1), false),
                     out = with_ones(c->out, false);

    if (a.n > 2 || arg_tensor(c, 1)->n > 1 || c->out->n > 1)
        return kernel_error(c, "a product of other than a matrix and a vector");
    if (a.n < 2)
        a = with_ones(arg_tensor(c, 0), true);
    struct product x = {&a, &b, NULL, &out, 1, 0};
    return multiply(c, &x);
}

size_t scratch_mv(const struct rt_call *c)
{
    const struct rt_tensor *a = arg_tensor(c, 0);

    return plain_scratch(c, 0) + (size_t)(rt_numel(a) + 2 * rt_numel(arg_tensor(c, 1))) * 16 + 1024;
}

/* What addmv and addr multiply: vectors with a dimension of size 1. */
struct widened {
    struct rt_tensor a, b, add, out;
};

/* addmv(self, mat, vec, beta, alpha) */
static struct product addmv_of(const struct rt_call *c, struct widened *w)
{
    *w = (struct widened){*arg_tensor(c, 1), with_ones(arg_tensor(c, 2), false),
                          with_ones(arg_tensor(c, 0), false), with_ones(c->out, false)};
    return (struct product){&w->a, &w->b, &w->add, &w->out, arg_float(c, 4, 1), arg_float(c, 3, 1)};
}

bool kernel_addmv(struct rt_call *c)
{
    struct widened w;
    struct product x = addmv_of(c, &w);

    if (w.a.n != 2 || arg_tensor(c, 2)->n != 1 || c->out->n != 1 || arg_tensor(c, 0)->n > 1)
        return kernel_error(c, "a product of other than a matrix and a vector");
    return multiply(c, &x);
}

size_t scratch_addmv(const struct rt_call *c)
{
    struct widened w;
    struct product x = addmv_of(c, &w);

    return product_scratch(c, &x);
}

/* addr(self, vec1, vec2, beta, alpha) */
static struct product addr_of(const struct rt_call *c, struct widened *w)
{
    *w = (struct widened){with_ones(arg_tensor(c, 1), false), with_ones(arg_tensor(c, 2), true),
                          *arg_tensor(c, 0), *c->out};
    return (struct product){&w->a, &w->b, &w->add, &w->out, arg_float(c, 4, 1), arg_float(c, 3, 1)};
}

bool kernel_addr(struct rt_call *c)
{
    struct widened w;
    struct product x = addr_of(c, &w);

    if (arg_tensor(c, 1)->n > 1 || arg_tensor(c, 2)->n > 1 || c->out->n != 2)
        return kernel_error(c, "a product of other than vectors");
    return multiply(c, &x);
}

size_t scratch_addr(const struct rt_call *c)
{
    struct widened w;
    struct product x = addr_of(c, &w);

    return product_scratch(c, &x);
}

/* ---- groups: offs says where each group of rows, columns or of the inner dimension ends ---- */

static int64_t group_end(const struct rt_tensor *offs, int64_t i)
{
    int64_t x;

    elem_load(&x, (char *)offs->data + i * offs->stride[0] * dtype_at(offs->dtype)->bytes,
              offs->dtype, 1, 1);
    return x;
}

static struct matrix part(struct matrix m, int64_t row, int64_t rows, int64_t col, int64_t cols,
                          enum kind k)
{
    m.p = (char *)m.p + (row * m.row_step + col * m.col_step) * kind_bytes[k];
    m.rows = rows;
    m.cols = cols;
    return m;
}

static bool one_group(struct rt_call *c, enum kind k, const struct rt_tensor *t, int64_t i,
                      int64_t begin, int64_t end, void *room)
{
    struct matrix o = at_batch(&t[0], i, k), a = at_batch(&t[1], i, k), b = at_batch(&t[2], i, k);

    if (t[1].n == 2 && t[2].n == 2) {
        a = part(a, 0, a.rows, begin, end - begin, k);
        b = part(b, begin, end - begin, 0, b.cols, k);
    } else if (t[1].n == 2) {
        a = part(a, begin, end - begin, 0, a.cols, k);
        o = part(o, begin, end - begin, 0, o.cols, k);
    } else if (t[2].n == 2) {
        b = part(b, 0, b.rows, begin, end - begin, k);
        o = part(o, 0, o.rows, begin, end - begin, k);
    }
    return gemm(c, k, o, a, b, 1, 0, room);
}

/* How many groups there are: as many as offsets, or matrices of operands and of the result. */
static bool is_grouped(const struct rt_call *c, const struct rt_tensor *a,
                       const struct rt_tensor *b, const struct rt_tensor *offs)
{
    const struct rt_tensor *o = c->out;
    bool flat = a->n == 2 || b->n == 2;
    int64_t n = offs != NULL && offs->n == 1 ? offs->size[0] : a->n == 3 ? a->size[0] : -1;

    if (a->n > 3 || b->n > 3 || o->n != (a->n == b->n ? 3 : 2) || flat != (offs != NULL) || n < 0)
        return false;
    if ((a->n == 3 && a->size[0] != n) || (b->n == 3 && b->size[0] != n) ||
        (o->n == 3 && o->size[0] != n))
        return false;
    return a->size[a->n - 1] == b->size[b->n - 2] && o->size[o->n - 2] == a->size[a->n - 2] &&
           o->size[o->n - 1] == b->size[b->n - 1];
}

bool kernel_grouped_mm(struct rt_call *c)
{
    const struct rt_tensor *a = arg_tensor(c, 0), *b = arg_tensor(c, 1), *offs = arg_tensor(c, 2);
    struct plain s = plain_begin(c);
    enum kind k = kind_for(c->out);

    if (arg_tensor(c, 3) != NULL)
        return kernel_error(c, "no kernel computes grouped products with a bias");
    if (!is_grouped(c, a, b, offs))
        return kernel_apart(c);
    struct rt_tensor t[] = {gemm_operand(&s, c->out, k, false), gemm_operand(&s, a, k, true),
                            gemm_operand(&s, b, k, true)};
    int64_t n = offs != NULL ? offs->size[0] : t[0].size[0], begin = 0;
    int64_t most = a->n == 2 ? (b->n == 2 ? a->size[1] : a->size[0]) : b->size[b->n - 1];
    if (offs != NULL && (a->n == 2) != (b->n == 2)) /* rows beyond the last group */
        memset(t[0].data, 0,
               t[0].data != c->out->data || rt_contiguous(c->out)
                   ? (size_t)rt_numel(c->out) * kind_bytes[k]
                   : 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t end = offs != NULL ? group_end(offs, i) : 0;

        if (offs != NULL && (end < begin || end > most))
            return kernel_error(c, "group %lld ends at %lld, after %lld, of %lld", (long long)i,
                                (long long)end, (long long)begin, (long long)most);
        if (!one_group(c, k, t, i, begin, end, s.at))
            return false;
        begin = end;
    }
    if (t[0].data != c->out->data)
        copy_tensor(c, c->out, &t[0]);
    return true;
}

size_t scratch_grouped_mm(const struct rt_call *c)
{
    return 2 * plain_scratch(c, 1024);
}
