/* Arithmetic on tensors and on sizes, and the list of all operators. */
#include "support/sym_ops.h"

#include <stdlib.h>
#include <string.h>

/* ---- arithmetic ---- */

enum fn { FN_ADD, FN_SUB, FN_MUL, FN_DIV };

static uint64_t apply(enum fn f, uint64_t a, uint64_t b)
{
    if (a == VALUE_NOTHING || b == VALUE_NOTHING)
        return VALUE_NOTHING;
    a = field_of(a);
    b = field_of(b);
    switch (f) {
    case FN_ADD: return field_add(a, b);
    case FN_SUB: return field_add(a, field_neg(b));
    case FN_MUL: return field_mul(a, b);
    default: return field_mul(a, field_inv(b));
    }
}

static uint64_t number_of(const struct value *v)
{
    if (v->kind == V_INT)
        return field_int(v->i);
    if (v->f == (double)(int64_t)v->f)
        return field_int((int64_t)v->f);
    uint64_t bits;
    memcpy(&bits, &v->f, sizeof(bits));
    return field_hash(bits, 0xF10A7);
}

/* to[i] = f(a[i], b[i]); b is a tensor or a number. */
static bool pointwise(const struct call *c, enum fn f, const struct tensor *a,
                      const struct value *b, const struct tensor *to)
{
    struct tensor x, y;
    int dtype = to->dtype;
    int64_t n = tensor_numel(to);
    uint64_t scalar = b->kind == V_TENSOR ? 0 : number_of(b), inverse = 0;

    reads(c, a);
    if (!tensor_broadcast(a, to->n_dim, to->size, &x))
        return call_fail(c, "sizes do not match");
    if (b->kind == V_TENSOR) {
        reads(c, b->t);
        if (a->cpu != b->t->cpu || !tensor_broadcast(b->t, to->n_dim, to->size, &y))
            return call_fail(c, "sizes or devices do not match");
    } else if (f == FN_DIV) {
        inverse = field_inv(scalar);
    }
    for (int64_t i = 0; i < n; i++) {
        uint64_t u = convert(tensor_load(&x, i), x.dtype, dtype);
        if (b->kind == V_TENSOR)
            u = apply(f, u, convert(tensor_load(&y, i), y.dtype, dtype));
        else if (f == FN_DIV)
            u = apply(FN_MUL, u, inverse);
        else
            u = apply(f, u, scalar);
        tensor_store(to, i, u);
    }
    return true;
}

/* The result of a and b: broadcast sizes, the larger dtype; their strides if they agree. */
static bool joined(const struct call *c, const struct tensor *a, const struct value *b,
                   struct tensor *out)
{
    struct tensor t = *a;

    if (b->kind == V_TENSOR) {
        const struct tensor *y = b->t;
        int n = t.n_dim > y->n_dim ? t.n_dim : y->n_dim;
        bool alike = n == t.n_dim && n == y->n_dim &&
                     memcmp(t.size, y->size, (size_t)n * sizeof(*t.size)) == 0 &&
                     memcmp(t.stride, y->stride, (size_t)n * sizeof(*t.size)) == 0;
        for (int d = 0; d < n; d++) {
            int i = d - (n - a->n_dim), k = d - (n - y->n_dim);
            int64_t u = i < 0 ? 1 : a->size[i], v = k < 0 ? 1 : y->size[k];
            if (u != v && u != 1 && v != 1)
                return call_fail(c, "sizes do not match");
            t.size[d] = u == 1 ? v : u;
        }
        t.n_dim = n;
        t.dtype = dtype_promoted(t.dtype, y->dtype);
        if (!alike)
            tensor_pack(&t);
    }
    if (!tensor_dense(&t))
        tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    *out = t;
    return true;
}

static bool binary(const struct call *c, enum fn f, struct value *out)
{
    struct tensor a, t;
    struct value b;

    return tensor_operand(c, 0, "self", &a) && operand(c, 1, "other", &b) &&
           joined(c, &a, &b, &t) && pointwise(c, f, &a, &b, &t) && yield_tensor(c, &t, out);
}

static bool in_place(const struct call *c, enum fn f, struct value *out)
{
    struct tensor a;
    struct value b;

    if (!tensor_operand(c, 0, "self", &a) || !operand(c, 1, "other", &b))
        return false;
    writes(c, &a);
    if (b.kind == V_TENSOR && b.t->st == a.st) { /* as if the other one were read first */
        packed_copy(c, b.t, &a);
        b = tensor_value(c->e, &a);
        tensor_operand(c, 0, "self", &a);
    }
    return pointwise(c, f, &a, &b, &a) && yield_tensor(c, &a, out);
}

static bool into_out(const struct call *c, enum fn f, struct value *out)
{
    struct tensor a, t;
    struct value b;

    if (!tensor_operand(c, 0, "self", &a) || !operand(c, 1, "other", &b) ||
        !tensor_operand(c, BY_KEYWORD, "out", &t))
        return false;
    writes(c, &t);
    return pointwise(c, f, &a, &b, &t) && yield_tensor(c, &t, out);
}

#define ARITHMETIC(name, f)                                                                        \
    static bool op_##name(const struct call *c, struct value *out)                                 \
    {                                                                                              \
        return binary(c, f, out);                                                                  \
    }                                                                                              \
    static bool op_##name##_(const struct call *c, struct value *out)                              \
    {                                                                                              \
        return in_place(c, f, out);                                                                \
    }                                                                                              \
    static bool op_##name##_out(const struct call *c, struct value *out)                           \
    {                                                                                              \
        return into_out(c, f, out);                                                                \
    }

ARITHMETIC(add, FN_ADD)
ARITHMETIC(sub, FN_SUB)
ARITHMETIC(mul, FN_MUL)
ARITHMETIC(div, FN_DIV)

static bool op_relu(const struct call *c, struct value *out)
{
    struct tensor a, t;

    if (!tensor_operand(c, 0, "self", &a) || !joined(c, &a, &(struct value){.kind = V_NONE}, &t))
        return false;
    reads(c, &a);
    for (int64_t i = 0; i < tensor_numel(&t); i++) {
        uint64_t v = tensor_load(&a, i);
        tensor_store(&t, i, v == VALUE_NOTHING ? v : field_hash(v, 0x4E1));
    }
    return yield_tensor(c, &t, out);
}

static bool op_mm(const struct call *c, struct value *out)
{
    struct tensor a, b, t;

    if (!tensor_operand(c, 0, "self", &a) || !tensor_operand(c, 1, "mat2", &b))
        return false;
    if (a.n_dim != 2 || b.n_dim != 2 || a.size[1] != b.size[0] || a.dtype != b.dtype)
        return call_fail(c, "operands do not match");
    reads(c, &a);
    reads(c, &b);
    t = a;
    t.size[1] = b.size[1];
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    for (int64_t i = 0; i < t.size[0]; i++)
        for (int64_t k = 0; k < t.size[1]; k++) {
            uint64_t sum = 0;
            for (int64_t j = 0; j < a.size[1]; j++) {
                uint64_t x = tensor_load(&a, i * a.size[1] + j);
                sum = apply(FN_ADD, sum, apply(FN_MUL, x, tensor_load(&b, j * b.size[1] + k)));
            }
            tensor_store(&t, i * t.size[1] + k, sum);
        }
    return yield_tensor(c, &t, out);
}

static bool op_foreach_div(const struct call *c, struct value *out)
{
    struct value ins, by;

    if (!list_operand(c, 0, "self", &ins) || !operand(c, 1, "scalar", &by))
        return false;
    *out = list_value(c->e, ins.n);
    for (size_t i = 0; i < ins.n; i++) {
        struct value b = by.kind == V_LIST ? by.item[i] : by;
        struct tensor t;
        if (!joined(c, ins.item[i].t, &b, &t) || !pointwise(c, FN_DIV, ins.item[i].t, &b, &t) ||
            !yield_tensor(c, &t, &out->item[i]))
            return false;
    }
    return true;
}

/* ---- numbers ---- */

static bool int_pair(const struct call *c, int64_t *a, int64_t *b)
{
    return int_operand(c, 0, "a", 0, a) && int_operand(c, 1, "b", 0, b);
}

#define INTEGERS(name, expression)                                                                 \
    static bool op_##name(const struct call *c, struct value *out)                                 \
    {                                                                                              \
        int64_t a = 0, b = 0;                                                                      \
        if (!int_pair(c, &a, &b))                                                                  \
            return false;                                                                          \
        *out = (struct value){.kind = V_INT, .i = (expression)};                                   \
        return true;                                                                               \
    }

INTEGERS(iadd, a + b)
INTEGERS(isub, a - b)
INTEGERS(imul, a *b)
INTEGERS(ifloordiv, b == 0 ? 0 : a / b)

static bool op_sym_sum(const struct call *c, struct value *out)
{
    struct value v;
    int64_t sum = 0;

    if (!operand(c, 0, "args", &v))
        return false;
    for (size_t i = 0; i < v.n; i++)
        sum += v.item[i].i;
    *out = (struct value){.kind = V_INT, .i = sum};
    return true;
}

static bool op_sym_size(const struct call *c, struct value *out)
{
    struct tensor t;
    int d;

    if (!tensor_operand(c, 0, "self", &t) || !dim_operand(c, 1, "dim", t.n_dim, 0, &d))
        return false;
    *out = (struct value){.kind = V_INT, .i = t.size[d]};
    return true;
}

static bool op_sym_numel(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "self", &t))
        return false;
    *out = (struct value){.kind = V_INT, .i = tensor_numel(&t)};
    return true;
}

static bool op_getitem(const struct call *c, struct value *out)
{
    struct value v;
    int64_t i = 0;

    if (!operand(c, 0, "a", &v) || !int_operand(c, 1, "b", 0, &i))
        return false;
    if (v.kind != V_LIST || i < 0 || (size_t)i >= v.n)
        return call_fail(c, "there is no item %lld", (long long)i);
    *out = v.item[i];
    return true;
}

/* ---- operators that Tuck does not know ---- */

static bool op_second(const struct call *c, struct value *out)
{
    struct tensor b;

    return tensor_operand(c, 1, "b", &b) && yield_tensor(c, &b, out);
}

static bool op_both(const struct call *c, struct value *out)
{
    struct tensor a, t;
    struct value three = {.kind = V_INT, .i = 3};

    *out = list_value(c->e, 2);
    return op_second(c, &out->item[0]) && tensor_operand(c, 0, "a", &a) &&
           joined(c, &a, &three, &t) && pointwise(c, FN_MUL, &a, &three, &t) &&
           yield_tensor(c, &t, &out->item[1]);
}

static bool op_bump_(const struct call *c, struct value *out)
{
    struct tensor a, b;
    struct value five = {.kind = V_INT, .i = 5};

    if (!tensor_operand(c, 0, "a", &a) || !tensor_operand(c, 1, "b", &b))
        return false;
    writes(c, &b);
    return pointwise(c, FN_MUL, &b, &five, &b) && yield_tensor(c, &a, out);
}

/* ---- the list, sorted ---- */

static const struct sym_op number_ops[] = {
    {"aten._foreach_div.Scalar", op_foreach_div, NULL},
    {"aten._foreach_div.ScalarList", op_foreach_div, NULL},
    {"aten.add.Scalar", op_add, NULL},
    {"aten.add.Tensor", op_add, NULL},
    {"aten.add.out", op_add_out, NULL},
    {"aten.add_.Scalar", op_add_, NULL},
    {"aten.add_.Tensor", op_add_, NULL},
    {"aten.div.Scalar", op_div, NULL},
    {"aten.div.Tensor", op_div, NULL},
    {"aten.div.out", op_div_out, NULL},
    {"aten.div_.Scalar", op_div_, NULL},
    {"aten.div_.Tensor", op_div_, NULL},
    {"aten.mm.default", op_mm, NULL},
    {"aten.mul.Scalar", op_mul, NULL},
    {"aten.mul.Tensor", op_mul, NULL},
    {"aten.mul.out", op_mul_out, NULL},
    {"aten.mul_.Scalar", op_mul_, NULL},
    {"aten.mul_.Tensor", op_mul_, NULL},
    {"aten.relu.default", op_relu, NULL},
    {"aten.sub.Tensor", op_sub, NULL},
    {"aten.sub.out", op_sub_out, NULL},
    {"aten.sub_.Tensor", op_sub_, NULL},
    {"aten.sym_numel.default", op_sym_numel, NULL},
    {"aten.sym_size.int", op_sym_size, NULL},
    {"mylib.both.default", op_both, NULL},
    {"mylib.bump_.default", op_bump_, NULL},
    {"mylib.second.default", op_second, NULL},
    {"operator.add", op_iadd, NULL},
    {"operator.floordiv", op_ifloordiv, NULL},
    {"operator.getitem", op_getitem, NULL},
    {"operator.mul", op_imul, NULL},
    {"operator.sub", op_isub, NULL},
    {"torch.sym_sum", op_sym_sum, NULL},
};

static int by_name(const void *key, const void *row)
{
    return strcmp(key, ((const struct sym_op *)row)->name);
}

const struct sym_op *symeval_op_find(const char *target)
{
    const struct {
        const struct sym_op *row;
        size_t n;
    } lists[] = {{symeval_view_ops, symeval_n_view_ops},
                 {symeval_comm_ops, symeval_n_comm_ops},
                 {number_ops, sizeof(number_ops) / sizeof(*number_ops)}};
    const struct sym_op *op = NULL;

    if (strncmp(target, "torch.ops.", 10) == 0)
        target += 10;
    for (size_t i = 0; i < 3 && op == NULL; i++)
        op = bsearch(target, lists[i].row, lists[i].n, sizeof(*op), by_name);
    return op;
}
