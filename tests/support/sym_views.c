/* Views, copies and factories. */
#include "support/sym_ops.h"

#include <string.h>

/* ---- views ---- */

static bool new_sizes(const struct call *c, const char *name, int64_t numel, int64_t *size, int *n)
{
    int64_t known = 1;
    int open = -1;

    if (!ints_operand(c, 1, name, size, n, SYM_DIMS))
        return false;
    for (int d = 0; d < *n; d++) {
        if (size[d] == -1 && open < 0)
            open = d;
        else if (size[d] < 0)
            return call_fail(c, "a size below 0");
        else
            known *= size[d];
    }
    if (open >= 0)
        size[open] = known ? numel / known : 0;
    if ((open >= 0 ? known * size[open] : known) != numel)
        return call_fail(c, "%lld elements viewed as another number of them", (long long)numel);
    return true;
}

static bool op_view(const struct call *c, struct value *out)
{
    struct tensor t, v;
    int64_t size[SYM_DIMS];
    int n;

    if (!tensor_operand(c, 0, "self", &t) || !new_sizes(c, "size", tensor_numel(&t), size, &n))
        return false;
    if (!tensor_view(&t, n, size, &v))
        return call_fail(c, "its strides allow no such view");
    return yield_tensor(c, &v, out);
}

static bool op_reshape(const struct call *c, struct value *out)
{
    struct tensor t, v;
    int64_t size[SYM_DIMS];
    int n;

    if (!tensor_operand(c, 0, "self", &t) || !new_sizes(c, "shape", tensor_numel(&t), size, &n))
        return false;
    if (!tensor_view(&t, n, size, &v)) {
        packed_copy(c, &t, &t);
        tensor_view(&t, n, size, &v);
    }
    return yield_tensor(c, &v, out);
}

static bool op_flatten(const struct call *c, struct value *out)
{
    struct tensor t, v;
    int first, last, n = 0;
    int64_t size[SYM_DIMS];

    if (!tensor_operand(c, 0, "self", &t))
        return false;
    if (t.n_dim == 0) {
        size[n++] = 1;
    } else {
        if (!dim_operand(c, 1, "start_dim", t.n_dim, 0, &first) ||
            !dim_operand(c, 2, "end_dim", t.n_dim, -1, &last))
            return false;
        for (int d = 0; d < t.n_dim; d++)
            if (d > first && d <= last)
                size[n - 1] *= t.size[d];
            else
                size[n++] = t.size[d];
    }
    if (!tensor_view(&t, n, size, &v)) {
        packed_copy(c, &t, &t);
        tensor_view(&t, n, size, &v);
    }
    return yield_tensor(c, &v, out);
}

static int64_t clamp(int64_t v, int64_t end)
{
    v += v < 0 ? end : 0;
    return v < 0 ? 0 : v > end ? end : v;
}

static bool op_slice(const struct call *c, struct value *out)
{
    struct tensor t;
    int64_t start = 0, end = 0, step = 1;
    int d;

    if (!tensor_operand(c, 0, "self", &t) || !dim_operand(c, 1, "dim", t.n_dim, 0, &d) ||
        !int_operand(c, 2, "start", 0, &start) || !int_operand(c, 3, "end", INT64_MAX, &end) ||
        !int_operand(c, 4, "step", 1, &step))
        return false;
    start = clamp(start, t.size[d]);
    end = clamp(end, t.size[d]);
    t.off += start * t.stride[d];
    t.size[d] = end > start ? (end - start + step - 1) / step : 0;
    t.stride[d] *= step;
    return yield_tensor(c, &t, out);
}

static bool op_select(const struct call *c, struct value *out)
{
    struct tensor t;
    int64_t i = 0;
    int d;

    if (!tensor_operand(c, 0, "self", &t) || !dim_operand(c, 1, "dim", t.n_dim, 0, &d) ||
        !int_operand(c, 2, "index", 0, &i))
        return false;
    t.off += (i < 0 ? i + t.size[d] : i) * t.stride[d];
    for (t.n_dim--; d < t.n_dim; d++) {
        t.size[d] = t.size[d + 1];
        t.stride[d] = t.stride[d + 1];
    }
    return yield_tensor(c, &t, out);
}

static bool op_as_strided(const struct call *c, struct value *out)
{
    struct tensor t;
    int n;

    if (!tensor_operand(c, 0, "self", &t) ||
        !ints_operand(c, 1, "size", t.size, &t.n_dim, SYM_DIMS) ||
        !ints_operand(c, 2, "stride", t.stride, &n, SYM_DIMS) ||
        !int_operand(c, 3, "storage_offset", t.off, &t.off))
        return false;
    return yield_tensor(c, &t, out);
}

static bool op_as_strided_copy(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!op_as_strided(c, out))
        return false;
    packed_copy(c, out->t, &t);
    return yield_tensor(c, &t, out);
}

/* The whole storage is copied, so the result lies in the copy where self lies in it. */
static bool op_as_strided_scatter(const struct call *c, struct value *out)
{
    struct tensor t, src, part, whole;
    int n;

    if (!tensor_operand(c, 0, "self", &t) || !tensor_operand(c, 1, "src", &src))
        return false;
    part = t;
    if (!ints_operand(c, 2, "size", part.size, &part.n_dim, SYM_DIMS) ||
        !ints_operand(c, 3, "stride", part.stride, &n, SYM_DIMS) ||
        !int_operand(c, 4, "storage_offset", part.off, &part.off))
        return false;
    reads(c, &t);
    reads(c, &src);
    whole = t;
    whole.n_dim = 1;
    whole.size[0] = t.st->n / tensor_item(&t);
    whole.stride[0] = 1;
    tensor_new(&c->e->pool, &whole);
    memcpy(whole.st->at, t.st->at, (size_t)whole.st->n * sizeof(cell));
    part.st = t.st = whole.st;
    if (!tensor_fits(&part) || !tensor_copy(&part, &src))
        return call_fail(c, "it does not fit");
    return yield_tensor(c, &t, out);
}

/* view_as_complex: pairs become one number each; view_as_real: the other way round. */
static bool op_view_as_complex(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "self", &t))
        return false;
    int to = tensor_item(&t) == 4 ? dtype_named("c64", 3) : dtype_named("c32", 3);
    if (t.n_dim == 0 || t.size[t.n_dim - 1] != 2 || t.stride[t.n_dim - 1] != 1 || t.off % 2 != 0)
        return call_fail(c, "is not made of pairs that begin at an even place");
    t.n_dim--;
    for (int d = 0; d < t.n_dim; d++) {
        if (t.stride[d] % 2 != 0)
            return call_fail(c, "has an odd stride");
        t.stride[d] /= 2;
    }
    t.off /= 2;
    t.dtype = to;
    return yield_tensor(c, &t, out);
}

static bool op_view_as_real(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "self", &t) || t.n_dim == SYM_DIMS)
        return false;
    t.dtype = tensor_item(&t) == 8 ? dtype_named("f32", 3) : dtype_named("f16", 3);
    for (int d = 0; d < t.n_dim; d++)
        t.stride[d] *= 2;
    t.size[t.n_dim] = 2;
    t.stride[t.n_dim++] = 1;
    t.off *= 2;
    return yield_tensor(c, &t, out);
}

/* A view, as in torch: it shows what the operand is when it is read. */
static bool op_conj(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "self", &t))
        return false;
    t.conj = !t.conj;
    return yield_tensor(c, &t, out);
}

static bool op_storage_offset(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "self", &t))
        return false;
    *out = (struct value){.kind = V_INT, .i = t.off};
    return true;
}

static bool op_permute(const struct call *c, struct value *out)
{
    struct tensor t, p;
    int64_t dims[SYM_DIMS];
    int n;

    if (!tensor_operand(c, 0, "self", &t) || !ints_operand(c, 1, "dims", dims, &n, SYM_DIMS))
        return false;
    p = t;
    for (int d = 0; d < n; d++) {
        int from = (int)(dims[d] < 0 ? dims[d] + n : dims[d]);
        p.size[d] = t.size[from];
        p.stride[d] = t.stride[from];
    }
    return yield_tensor(c, &p, out);
}

static bool op_transpose(const struct call *c, struct value *out)
{
    struct tensor t, p;
    int a, b;

    if (!tensor_operand(c, 0, "self", &t) || !dim_operand(c, 1, "dim0", t.n_dim, 0, &a) ||
        !dim_operand(c, 2, "dim1", t.n_dim, 1, &b))
        return false;
    p = t;
    p.size[a] = t.size[b], p.stride[a] = t.stride[b];
    p.size[b] = t.size[a], p.stride[b] = t.stride[a];
    return yield_tensor(c, &p, out);
}

static bool op_unsqueeze(const struct call *c, struct value *out)
{
    struct tensor t;
    int d;

    if (!tensor_operand(c, 0, "self", &t) || t.n_dim == SYM_DIMS ||
        !dim_operand(c, 1, "dim", t.n_dim + 1, 0, &d))
        return false;
    for (int k = t.n_dim++; k > d; k--) {
        t.size[k] = t.size[k - 1];
        t.stride[k] = t.stride[k - 1];
    }
    t.stride[d] = d + 1 < t.n_dim ? t.size[d + 1] * t.stride[d + 1] : 1;
    t.size[d] = 1;
    return yield_tensor(c, &t, out);
}

static bool op_alias(const struct call *c, struct value *out)
{
    struct tensor t;

    return tensor_operand(c, 0, "self", &t) && yield_tensor(c, &t, out);
}

static bool op_view_dtype(const struct call *c, struct value *out)
{
    struct tensor t;
    int to, from_size, to_size;

    if (!tensor_operand(c, 0, "self", &t) || !dtype_operand(c, 1, -1, &to))
        return false;
    from_size = tensor_item(&t);
    to_size = symeval_dtypes[to].size;
    int64_t bytes = t.off * from_size, last = t.n_dim ? t.size[t.n_dim - 1] * from_size : from_size;
    if (from_size != to_size && (t.n_dim == 0 || t.stride[t.n_dim - 1] != 1))
        return call_fail(c, "the last dimension must lie densely");
    if (bytes % to_size || last % to_size)
        return call_fail(c, "its bytes are no whole number of %s", symeval_dtypes[to].name);
    for (int d = 0; d < t.n_dim - 1 && from_size != to_size; d++) {
        if (t.stride[d] * from_size % to_size)
            return call_fail(c, "its strides are no whole number of %s", symeval_dtypes[to].name);
        t.stride[d] = t.stride[d] * from_size / to_size;
    }
    if (t.n_dim > 0)
        t.size[t.n_dim - 1] = last / to_size;
    t.off = bytes / to_size;
    t.dtype = to;
    return yield_tensor(c, &t, out);
}

static bool split_by(const struct call *c, struct tensor t, int d, const struct value *sizes,
                     struct value *out)
{
    int64_t at = 0;

    *out = list_value(c->e, sizes->n);
    for (size_t i = 0; i < sizes->n; i++) {
        struct tensor p = t;
        p.size[d] = sizes->item[i].i;
        p.off += at * t.stride[d];
        at += p.size[d];
        if (!yield_tensor(c, &p, &out->item[i]))
            return false;
    }
    return at == t.size[d] ||
           call_fail(c, "split sizes sum to %lld of %lld", (long long)at, (long long)t.size[d]);
}

static bool split(const struct call *c, const char *name, struct value *out)
{
    struct tensor t;
    struct value sizes;
    int d;

    if (!tensor_operand(c, 0, "self", &t) || !operand(c, 1, name, &sizes) ||
        !dim_operand(c, 2, "dim", t.n_dim, 0, &d))
        return false;
    if (sizes.kind == V_INT && sizes.i > 0) {
        int64_t step = sizes.i, whole = t.size[d];
        sizes = list_value(c->e, (size_t)(whole == 0 ? 1 : (whole + step - 1) / step));
        for (size_t i = 0; i < sizes.n; i++) {
            int64_t rest = whole - (int64_t)i * step;
            sizes.item[i] = (struct value){.kind = V_INT, .i = rest < step ? rest : step};
        }
    }
    if (sizes.kind != V_LIST)
        return call_fail(c, "no split sizes");
    return split_by(c, t, d, &sizes, out);
}

static bool op_split(const struct call *c, struct value *out)
{
    return split(c, "split_size", out);
}

static bool op_split_sizes(const struct call *c, struct value *out)
{
    return split(c, "split_sizes", out);
}

/* ---- copies ---- */

static bool op_clone(const struct call *c, struct value *out)
{
    struct tensor t, p;
    const char *format;

    if (!tensor_operand(c, 0, "self", &t) || !text_operand(c, BY_KEYWORD, "memory_format", &format))
        return false;
    reads(c, &t);
    p = t;
    if (!tensor_dense(&t) || (format && strcmp(format, "torch.contiguous_format") == 0))
        tensor_pack(&p);
    tensor_new(&c->e->pool, &p);
    tensor_copy(&p, &t);
    return yield_tensor(c, &p, out);
}

static bool to_dtype(const struct call *c, const char *name, size_t pos, struct value *out)
{
    struct tensor t, p;

    if (!tensor_operand(c, 0, name, &t))
        return false;
    p = t;
    if (!dtype_operand(c, pos, t.dtype, &p.dtype))
        return false;
    reads(c, &t);
    if (!tensor_dense(&t))
        tensor_pack(&p);
    tensor_new(&c->e->pool, &p);
    tensor_copy(&p, &t);
    return yield_tensor(c, &p, out);
}

static bool op_convert(const struct call *c, struct value *out)
{
    return to_dtype(c, "a", 1, out);
}

static bool op_to_copy(const struct call *c, struct value *out)
{
    return to_dtype(c, "self", BY_KEYWORD, out);
}

static bool cat_into(const struct call *c, const struct value *ins, int d, const struct tensor *to)
{
    int64_t at = 0;

    for (size_t i = 0; i < ins->n; i++) {
        struct tensor piece = *to;
        const struct tensor *x = ins->item[i].t;

        reads(c, x);
        if (x->cpu != to->cpu)
            return call_fail(c, "operand %zu is on another device", i);
        piece.size[d] = x->size[d];
        piece.off += at * to->stride[d];
        at += x->size[d];
        if (x->n_dim != to->n_dim || at > to->size[d] || !tensor_copy(&piece, x))
            return call_fail(c, "operand %zu does not fit", i);
    }
    return at == to->size[d] || call_fail(c, "the operands do not fill the result");
}

static bool op_cat(const struct call *c, struct value *out)
{
    struct value ins;
    struct tensor t;
    int d;

    if (!list_operand(c, 0, "tensors", &ins))
        return false;
    if (ins.n == 0)
        return call_fail(c, "nothing to concatenate");
    t = *ins.item[0].t;
    if (!dim_operand(c, 1, "dim", t.n_dim, 0, &d))
        return false;
    for (size_t i = 1; i < ins.n; i++) {
        const struct tensor *x = ins.item[i].t;
        t.size[d] += x->size[d];
        t.dtype = dtype_promoted(t.dtype, x->dtype);
    }
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    return cat_into(c, &ins, d, &t) && yield_tensor(c, &t, out);
}

static bool op_cat_out(const struct call *c, struct value *out)
{
    struct value ins;
    struct tensor t;
    int d;

    if (!list_operand(c, 0, "tensors", &ins) || !tensor_operand(c, BY_KEYWORD, "out", &t) ||
        !dim_operand(c, 1, "dim", t.n_dim, 0, &d))
        return false;
    writes(c, &t);
    return cat_into(c, &ins, d, &t) && yield_tensor(c, &t, out);
}

static bool op_copy_(const struct call *c, struct value *out)
{
    struct tensor t, s;

    if (!tensor_operand(c, 0, "self", &t) || !tensor_operand(c, 1, "src", &s))
        return false;
    reads(c, &s);
    writes(c, &t);
    if (t.st == s.st) /* as if copied through a temporary */
        packed_copy(c, &s, &s);
    if (!tensor_copy(&t, &s))
        return call_fail(c, "sizes do not match");
    return yield_tensor(c, &t, out);
}

static bool op_foreach_copy_(const struct call *c, struct value *out)
{
    struct value to, from;

    (void)out;
    if (!list_operand(c, 0, "self", &to) || !list_operand(c, 1, "src", &from))
        return false;
    for (size_t i = 0; i < to.n && i < from.n; i++) {
        reads(c, from.item[i].t);
        writes(c, to.item[i].t);
        if (!tensor_copy(to.item[i].t, from.item[i].t))
            return call_fail(c, "sizes of pair %zu do not match", i);
    }
    return to.n == from.n || call_fail(c, "lists of different lengths");
}

/* ---- factories ---- */

static bool op_empty(const struct call *c, struct value *out)
{
    const char *device;
    struct tensor t = {.n_dim = 0};

    if (!ints_operand(c, 0, "size", t.size, &t.n_dim, SYM_DIMS) ||
        !dtype_operand(c, BY_KEYWORD, dtype_named("f32", 3), &t.dtype) ||
        !text_operand(c, BY_KEYWORD, "device", &device))
        return false;
    t.cpu = device == NULL || strstr(device, "cpu") != NULL;
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    return yield_tensor(c, &t, out);
}

static bool op_new_empty(const struct call *c, struct value *out)
{
    struct tensor like, t = {.n_dim = 0};

    if (!tensor_operand(c, 0, "self", &like) ||
        !ints_operand(c, 1, "size", t.size, &t.n_dim, SYM_DIMS) ||
        !dtype_operand(c, BY_KEYWORD, like.dtype, &t.dtype))
        return false;
    t.cpu = like.cpu;
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    return yield_tensor(c, &t, out);
}

static bool op_full(const struct call *c, struct value *out)
{
    struct value fill;
    int64_t v = 0;

    if (!op_empty(c, out) || !operand(c, 1, "fill_value", &fill))
        return false;
    v = fill.kind == V_INT ? fill.i : fill.kind == V_FLOAT ? (int64_t)fill.f : 0;
    for (int64_t i = 0; i < tensor_numel(out->t); i++)
        tensor_store(out->t, i, field_int(v));
    return true;
}

/* ---- the list ---- */

const struct sym_op symeval_view_ops[] = {
    {"aten._conj.default", op_conj, NULL},
    {"aten._foreach_copy_.default", op_foreach_copy_, NULL},
    {"aten._to_copy.default", op_to_copy, NULL},
    {"aten._unsafe_view.default", op_view, NULL},
    {"aten.alias.default", op_alias, NULL},
    {"aten.as_strided.default", op_as_strided, NULL},
    {"aten.as_strided_copy.default", op_as_strided_copy, NULL},
    {"aten.as_strided_scatter.default", op_as_strided_scatter, NULL},
    {"aten.cat.default", op_cat, NULL},
    {"aten.cat.out", op_cat_out, NULL},
    {"aten.clone.default", op_clone, NULL},
    {"aten.copy_.default", op_copy_, NULL},
    {"aten.detach.default", op_alias, NULL},
    {"aten.empty.memory_format", op_empty, NULL},
    {"aten.flatten.using_ints", op_flatten, NULL},
    {"aten.full.default", op_full, NULL},
    {"aten.new_empty.default", op_new_empty, NULL},
    {"aten.permute.default", op_permute, NULL},
    {"aten.reshape.default", op_reshape, NULL},
    {"aten.select.int", op_select, NULL},
    {"aten.slice.Tensor", op_slice, NULL},
    {"aten.split.Tensor", op_split, NULL},
    {"aten.split.default", op_split, NULL},
    {"aten.split.sizes", op_split, NULL},
    {"aten.split_with_sizes.default", op_split_sizes, NULL},
    {"aten.storage_offset.default", op_storage_offset, NULL},
    {"aten.sym_storage_offset.default", op_storage_offset, NULL},
    {"aten.t.default", op_transpose, NULL},
    {"aten.transpose.int", op_transpose, NULL},
    {"aten.unsqueeze.default", op_unsqueeze, NULL},
    {"aten.view.default", op_view, NULL},
    {"aten.view.dtype", op_view_dtype, NULL},
    {"aten.view_as_complex.default", op_view_as_complex, NULL},
    {"aten.view_as_real.default", op_view_as_real, NULL},
    {"aten.zeros.default", op_full, NULL},
    {"prims.convert_element_type.default", op_convert, NULL},
};

const size_t symeval_n_view_ops = sizeof(symeval_view_ops) / sizeof(*symeval_view_ops);
