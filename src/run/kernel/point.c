/* Calls that work element by element: which dtype they compute in, which numbers they need. */
#include "run/kernel/point.h"

#include <float.h>
#include <math.h>

#include "run/kernel/kernels.h"

/* How operands and result are typed. */
enum typing {
    SAME,    /* operands promoted; the result, too */
    COMPARE, /* operands promoted; the result is bool */
    LOGICAL, /* operands are made bool first */
    CHOICE,  /* operand 0 is bool, the others as SAME */
    MASKED,  /* operand 1 is bool; computed in the dtype of operand 0 */
    REAL,    /* complex becomes real */
    PAIR,    /* two reals become complex */
};

/* Which numbers of the call become parameters. */
enum numbers { NOTHING, ALPHA, THREE, FIRST, SECOND, BOUNDS, MODE, REDUCTION, LOSS, FINITE, EDGE };

/* WIDE: numbers are not rounded to a 16-bit dtype before they are used. */
static const struct {
    uint8_t n_in, typing, numbers;
    bool wide;
} points[OP_KERNEL_END] = {
#define UNARY(name) [OP_KERNEL_##name] = {1, SAME, NOTHING, false}
#define BINARY(name) [OP_KERNEL_##name] = {2, SAME, NOTHING, false}
    UNARY(copy),
    UNARY(neg),
    UNARY(conj),
    UNARY(sign),
    UNARY(square),
    UNARY(reciprocal),
    UNARY(sqrt),
    UNARY(rsqrt),
    UNARY(floor),
    UNARY(ceil),
    UNARY(trunc),
    UNARY(round),
    UNARY(frac),
    UNARY(exp),
    UNARY(exp2),
    UNARY(expm1),
    UNARY(log),
    UNARY(log2),
    UNARY(log10),
    UNARY(log1p),
    UNARY(sin),
    UNARY(cos),
    UNARY(tan),
    UNARY(asin),
    UNARY(acos),
    UNARY(atan),
    UNARY(asinh),
    UNARY(acosh),
    UNARY(atanh),
    UNARY(deg2rad),
    UNARY(rad2deg),
    UNARY(sgn),
    UNARY(mish),
    UNARY(selu),
    UNARY(sinh),
    UNARY(cosh),
    UNARY(tanh),
    UNARY(erf),
    UNARY(erfc),
    UNARY(erfinv),
    UNARY(lgamma),
    UNARY(digamma),
    UNARY(sinc),
    UNARY(sigmoid),
    UNARY(relu),
    UNARY(silu),
    UNARY(gelu),
    UNARY(relu6),
    UNARY(hardsigmoid),
    UNARY(hardswish),
    UNARY(log_sigmoid),
    UNARY(bitwise_not),
    BINARY(floor_divide),
    BINARY(remainder),
    BINARY(fmod),
    BINARY(atan2),
    BINARY(hypot),
    BINARY(copysign),
    BINARY(xlogy),
    BINARY(xlog1py),
    BINARY(logaddexp),
    BINARY(logaddexp2),
    BINARY(heaviside),
    BINARY(fmax),
    BINARY(fmin),
    BINARY(prelu),
    BINARY(mish_backward),
    BINARY(log_sigmoid_backward),
    BINARY(pow),
    BINARY(maximum),
    BINARY(minimum),
    BINARY(sigmoid_backward),
    BINARY(tanh_backward),
    BINARY(silu_backward),
    BINARY(gelu_backward),
    BINARY(hardsigmoid_backward),
    BINARY(hardswish_backward),
    BINARY(bitwise_and),
    BINARY(bitwise_or),
    BINARY(bitwise_xor),
    BINARY(gcd),
    BINARY(lcm),
    BINARY(shift_left),
    BINARY(shift_right),
    [OP_KERNEL_add] = {2, SAME, ALPHA, true},
    [OP_KERNEL_sub] = {2, SAME, ALPHA, true},
    [OP_KERNEL_rsub] = {2, SAME, ALPHA, true},
    [OP_KERNEL_mul] = {2, SAME, NOTHING, true},
    [OP_KERNEL_true_div] = {2, SAME, NOTHING, true},
    [OP_KERNEL_div] = {2, SAME, MODE, true},
    [OP_KERNEL_fma] = {3, SAME, NOTHING, false},
    [OP_KERNEL_addcmul] = {3, SAME, THREE, false},
    [OP_KERNEL_addcdiv] = {3, SAME, THREE, false},
    [OP_KERNEL_lerp] = {3, SAME, NOTHING, true},
    [OP_KERNEL_abs] = {1, REAL, NOTHING, false},
    [OP_KERNEL_angle] = {1, REAL, NOTHING, false},
    [OP_KERNEL_round_decimals] = {1, SAME, FIRST, false},
    [OP_KERNEL_leaky_relu] = {1, SAME, FIRST, false},
    [OP_KERNEL_elu] = {1, SAME, FIRST, false},
    [OP_KERNEL_softplus] = {1, SAME, FIRST, false},
    [OP_KERNEL_hardtanh] = {1, SAME, BOUNDS, false},
    [OP_KERNEL_clamp] = {1, SAME, BOUNDS, false},
    [OP_KERNEL_clamp_tensor] = {3, SAME, NOTHING, false},
    [OP_KERNEL_threshold] = {1, SAME, FIRST, false},
    [OP_KERNEL_celu] = {1, SAME, FIRST, false},
    [OP_KERNEL_hardshrink] = {1, SAME, FIRST, false},
    [OP_KERNEL_softshrink] = {1, SAME, FIRST, false},
    [OP_KERNEL_shrink_backward] = {2, SAME, SECOND, false},
    [OP_KERNEL_logit] = {1, SAME, EDGE, false},
    [OP_KERNEL_logit_backward] = {2, SAME, EDGE, false},
    [OP_KERNEL_nan_to_num] = {1, SAME, FINITE, false},
    [OP_KERNEL_huber_loss_backward] = {3, SAME, LOSS, false},
    [OP_KERNEL_smooth_l1_loss_backward] = {3, SAME, LOSS, false},
    [OP_KERNEL_soft_margin_loss_backward] = {3, SAME, LOSS, false},
    [OP_KERNEL_bce_loss_backward] = {4, SAME, LOSS, false},
    [OP_KERNEL_threshold_backward] = {2, SAME, ALPHA, false},
    [OP_KERNEL_leaky_relu_backward] = {2, SAME, SECOND, false},
    [OP_KERNEL_softplus_backward] = {2, SAME, SECOND, false},
    [OP_KERNEL_hardtanh_backward] = {2, SAME, SECOND, false},
    [OP_KERNEL_dropout_backward] = {2, MASKED, SECOND, false},
    [OP_KERNEL_mse_loss_backward] = {3, SAME, REDUCTION, false},
    [OP_KERNEL_complex] = {2, PAIR, NOTHING, false},
    [OP_KERNEL_polar] = {2, PAIR, NOTHING, false},
    [OP_KERNEL_eq] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_ne] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_lt] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_le] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_gt] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_ge] = {2, COMPARE, NOTHING, false},
    [OP_KERNEL_isnan] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_isinf] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_isfinite] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_isposinf] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_isneginf] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_signbit] = {1, COMPARE, NOTHING, false},
    [OP_KERNEL_where] = {3, CHOICE, NOTHING, false},
    [OP_KERNEL_masked_fill] = {3, MASKED, NOTHING, false},
    [OP_KERNEL_logical_and] = {2, LOGICAL, NOTHING, false},
    [OP_KERNEL_logical_or] = {2, LOGICAL, NOTHING, false},
    [OP_KERNEL_logical_xor] = {2, LOGICAL, NOTHING, false},
    [OP_KERNEL_logical_not] = {1, LOGICAL, NOTHING, false},
};

int point_operands(enum op_kernel kernel)
{
    return kernel < OP_KERNEL_END ? points[kernel].n_in : 0;
}

/* ---- dtypes ---- */

static enum dtype number_dtype(const struct rt_value *v)
{
    switch (v->kind) {
    case RT_BOOL: return DTYPE_B8;
    case RT_INT: return DTYPE_I64;
    case RT_FLOAT: return DTYPE_DEFAULT;
    case RT_COMPLEX: return DTYPE_C64;
    default: return DTYPE_NONE;
    }
}

static enum dtype promote(enum dtype a, enum dtype b)
{
    return a == DTYPE_NONE ? b : b == DTYPE_NONE ? a : dtype_promote(a, b);
}

/* A lower rank counts only if its category is higher. */
static enum dtype combine(enum dtype high, enum dtype low)
{
    if (high == DTYPE_NONE || low == DTYPE_NONE)
        return promote(high, low);
    return dtype_at(low)->category > dtype_at(high)->category ? dtype_promote(high, low) : high;
}

/* Tensors with dimensions go before those without, and those before numbers. */
static enum dtype common_dtype(const struct rt_call *c, uint32_t begin, uint32_t end)
{
    enum dtype rank[3] = {DTYPE_NONE, DTYPE_NONE, DTYPE_NONE};

    for (uint32_t i = begin; i < end; i++) {
        const struct rt_tensor *t = arg_tensor(c, i);
        int r = t == NULL ? 2 : t->n == 0;

        rank[r] = promote(rank[r], t != NULL ? t->dtype : number_dtype(arg_at(c, i)));
    }
    return combine(combine(rank[0], rank[1]), rank[2]);
}

static int64_t rounding_mode(const struct rt_value *v)
{
    return v->kind != RT_STR ? 0 : strcmp(v->str, "trunc") == 0 ? 1 : 2;
}

static enum dtype compute_dtype(const struct rt_call *c, enum op_kernel k)
{
    const point_fn *fn = hot_get()->point[k];
    uint32_t n = points[k].n_in;
    enum dtype d;

    switch ((enum typing)points[k].typing) {
    case LOGICAL: return DTYPE_B8;
    case CHOICE: d = common_dtype(c, 1, n); break;
    case MASKED: d = common_dtype(c, 0, 1); break;
    default: d = k == OP_KERNEL_copy && c->n_out > 0 ? c->out->dtype : common_dtype(c, 0, n);
    }
    enum kind kind = kind_of(d);
    if (k == OP_KERNEL_div && rounding_mode(arg_at(c, 2)) == 0 && (kind == K_BOOL || kind == K_I64))
        return DTYPE_DEFAULT;
    if (k == OP_KERNEL_clamp && (kind == K_BOOL || kind == K_I64) && c->n_out > 0 &&
        dtype_is_float(c->out->dtype))
        return c->out->dtype; /* whole numbers between others */
    if (kind == K_BOOL && fn[K_BOOL] == NULL && fn[K_I64] != NULL)
        return c->n_out > 0 && kind_of(c->out->dtype) == K_I64 ? c->out->dtype : d;
    if ((kind == K_BOOL || kind == K_I64) && fn[K_BOOL] == NULL && fn[K_I64] == NULL)
        return c->n_out > 0 && dtype_is_float(c->out->dtype) ? c->out->dtype : DTYPE_DEFAULT;
    return d;
}

/* ---- numbers ---- */

static void take_first(const struct rt_call *c, uint32_t from, struct point_params *p)
{
    for (uint32_t i = 0; i < 4; i++) {
        p->f[i] = arg_float(c, from + i, 0);
        p->i[i] = arg_int(c, from + i, 0);
    }
}

static void take_bounds(const struct rt_call *c, struct point_params *p)
{
    p->f[0] = arg_float(c, 1, -(double)INFINITY);
    p->f[1] = arg_float(c, 2, (double)INFINITY);
    p->i[0] = arg_int(c, 1, INT64_MIN);
    p->i[1] = arg_int(c, 2, INT64_MAX);
}

/* nan_to_num(self, nan, posinf, neginf): by default 0, and the largest numbers of the dtype. */
static void take_finite(const struct rt_call *c, struct point_params *p)
{
    double most = c->out->dtype == DTYPE_F64    ? DBL_MAX
                  : c->out->dtype == DTYPE_F16  ? 65504
                  : c->out->dtype == DTYPE_BF16 ? 0x1.fep127
                                                : (double)FLT_MAX;

    p->f[0] = arg_float(c, 1, 0);
    p->f[1] = arg_float(c, 2, most);
    p->f[2] = arg_float(c, 3, -most);
}

static int64_t count_of(const struct rt_call *c, uint32_t i)
{
    return arg_tensor(c, i) != NULL ? rt_numel(arg_tensor(c, i)) : 1;
}

static struct point_params take_numbers(const struct rt_call *c, enum op_kernel k)
{
    struct point_params p = {0};

    switch ((enum numbers)points[k].numbers) {
    case NOTHING: break;
    case ALPHA:
        p.f[0] = arg_float(c, 2, k == OP_KERNEL_threshold_backward ? 0 : 1);
        p.i[0] = arg_int(c, 2, k == OP_KERNEL_threshold_backward ? 0 : 1);
        break;
    case THREE:
        p.f[0] = arg_float(c, 3, 1);
        p.i[0] = arg_int(c, 3, 1);
        break;
    case FIRST: take_first(c, 1, &p); break;
    case SECOND: take_first(c, 2, &p); break;
    case BOUNDS: take_bounds(c, &p); break;
    case MODE: p.i[1] = rounding_mode(arg_at(c, 2)); break;
    case FINITE: take_finite(c, &p); break;
    case EDGE: p.f[0] = arg_float(c, points[k].n_in, -1); break;
    case LOSS: {
        uint32_t at = points[k].n_in; /* of the reduction; then may follow a number */

        p.f[0] = arg_int(c, at, 1) == 1 ? 1 / (double)count_of(c, 1) : 1;
        p.f[1] = arg_float(c, at + 1, 1);
        break;
    }
    case REDUCTION: p.f[0] = arg_int(c, 3, 1) == 1 ? 2.0 / (double)count_of(c, 1) : 2; break;
    }
    return p;
}

/* The function of a special case, such as a power that is a small number. */
static int special(const struct rt_call *c, enum op_kernel k, enum kind kind)
{
    if (k == OP_KERNEL_gelu || k == OP_KERNEL_gelu_backward) {
        const struct rt_value *how = arg_at(c, k == OP_KERNEL_gelu ? 1 : 2);

        if (how->kind == RT_STR && strcmp(how->str, "tanh") == 0)
            return k == OP_KERNEL_gelu ? (int)OP_KERNEL_gelu_tanh
                                       : (int)OP_KERNEL_gelu_tanh_backward;
    }
    const struct rt_value *e = arg_at(c, 1);
    if (k != OP_KERNEL_pow || kind < K_F32 || e->kind == RT_TENSOR || e->kind == RT_COMPLEX)
        return (int)k;
    double by = arg_float(c, 1, 0);
    return by == 2      ? (int)OP_KERNEL_square
           : by == 3    ? (int)OP_KERNEL_cube
           : by == 0.5  ? (int)OP_KERNEL_sqrt
           : by == -0.5 ? (int)OP_KERNEL_rsqrt
           : by == -1   ? (int)OP_KERNEL_reciprocal
           : by == -2   ? (int)OP_KERNEL_inverse_square
           : by == 1    ? (int)OP_KERNEL_copy
                        : (int)k;
}

/* ---- steps ---- */

static uint16_t number_value(struct prog *p, const struct rt_value *v, enum kind kind, bool row)
{
    _Alignas(16) char x[16] = {0}, y[16];
    enum kind from;

    switch (v->kind) {
    case RT_BOOL: memcpy(x, &v->b, 1), from = K_BOOL; break;
    case RT_INT: memcpy(x, &v->i, 8), from = K_I64; break;
    case RT_FLOAT: memcpy(x, &v->f, 8), from = K_F64; break;
    default: memcpy(x, v->z, 16), from = K_C128; break;
    }
    elem_convert(y, kind, x, from, 1);
    return prog_constant(p, kind, y, row);
}

static uint16_t operand(struct prog *p, const struct rt_call *c, const struct source *from,
                        uint32_t i, enum dtype d, bool wide, bool row)
{
    const struct rt_tensor *t = arg_tensor(c, i);
    enum kind kind = kind_of(d);

    if (t == NULL) {
        uint16_t v = number_value(p, arg_at(c, i), kind, row);

        return wide && kind != K_I64 ? v : prog_round(p, v, d);
    }
    uint16_t v = from[i].is_value ? from[i].value : prog_load(p, &from[i].mem);
    v = prog_convert(p, v, kind);
    if (t->dtype != d && !(wide && t->n == 0 && kind == K_F32) && dtype_at(d)->bytes < 4)
        v = prog_round(p, v, d);
    return row ? v : prog_spread(p, v);
}

/* Operand i, which is None: no bound, or a weight of 1. */
static uint16_t absent(struct prog *p, enum op_kernel k, int i, enum kind kind, bool row)
{
    struct rt_value v = {.kind = RT_INT, .i = 1};

    if (k == OP_KERNEL_clamp_tensor && (kind == K_F32 || kind == K_F64))
        v = (struct rt_value){.kind = RT_FLOAT, .f = i == 1 ? -(double)INFINITY : (double)INFINITY};
    else if (k == OP_KERNEL_clamp_tensor)
        v.i = kind == K_BOOL ? i == 2 : i == 1 ? INT64_MIN : INT64_MAX;
    return number_value(p, &v, kind, row);
}

static enum kind result_kind(enum op_kernel k, enum kind kind)
{
    if (points[k].typing == COMPARE)
        return K_BOOL;
    if (points[k].typing == PAIR)
        return kind == K_F32 ? K_C64 : K_C128;
    if (points[k].typing == REAL)
        return kind == K_C64 ? K_F32 : kind == K_C128 ? K_F64 : kind;
    return kind;
}

uint16_t point_emit(struct prog *p, const struct rt_call *c, const struct source *from, bool row,
                    enum dtype *common)
{
    enum op_kernel k = c->kernel->id;
    enum dtype d = compute_dtype(c, k);
    enum kind kind = kind_of(d);
    struct point_params params = take_numbers(c, k);
    int n_in = points[k].n_in, fn = (int)k;
    uint16_t in[PROG_IN];

    *common = d;
    if (kind == K_END || hot_get()->point[k][kind] == NULL)
        return PROG_NO_VALUE;
    for (int i = 0; i < n_in; i++) {
        bool is_bool = (i == 0 && points[k].typing == CHOICE) ||
                       (i == 1 && points[k].typing == MASKED);

        if (arg_at(c, (uint32_t)i)->kind == RT_NONE)
            in[i] = absent(p, k, i, kind, row);
        else
            in[i] = operand(p, c, from, (uint32_t)i, is_bool ? DTYPE_B8 : d, points[k].wide, row);
    }
    if (k == OP_KERNEL_threshold_backward && kind == K_I64)
        elem_round(params.i, d, 1);
    fn = special(c, k, kind);
    uint16_t v = k == OP_KERNEL_copy ? in[0]
                                     : prog_point(p, hot_get()->point[fn][kind], &params,
                                                  result_kind(k, kind), in, n_in, row);
    return prog_convert(p, v, kind_of(c->out->dtype));
}

void point_steps(const struct rt_tensor *t, const struct rt_tensor *like, struct prog_mem *m)
{
    int64_t bytes = dtype_at(t->dtype)->bytes;

    *m = (struct prog_mem){.base = t->data, .dtype = t->dtype};
    for (int d = 0; d < like->n; d++) {
        int at = t->n - 1 - d;

        m->step[d] = at >= 0 && t->size[at] != 1 ? t->stride[at] * bytes : 0;
    }
}

/* ---- a call alone ---- */

enum { ALONE = 24 };

static bool build(struct rt_call *c, struct prog *p)
{
    const struct rt_tensor *out = c->out;
    struct source from[PROG_IN] = {0};
    struct prog_mem to;
    enum dtype common;

    prog_begin(p);
    p->n = out->n;
    for (int d = 0; d < out->n; d++)
        p->size[d] = out->size[out->n - 1 - d];
    for (int i = 0; i < points[c->kernel->id].n_in; i++)
        if (arg_tensor(c, (uint32_t)i) != NULL)
            point_steps(arg_tensor(c, (uint32_t)i), out, &from[i].mem);
    if (kind_of(out->dtype) == K_END)
        return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                            dtype_at(out->dtype)->name);
    uint16_t v = point_emit(p, c, from, false, &common);
    if (v == PROG_NO_VALUE)
        return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                            dtype_at(common)->name);
    point_steps(out, out, &to);
    prog_store(p, v, &to);
    return prog_finish(p) || kernel_error(c, "%s needs too many registers", c->kernel->name);
}

#define ALONE_PROG(p)                                                                              \
    struct step p##_step[ALONE];                                                                   \
    struct prog_mem p##_mem[ALONE];                                                                \
    struct prog_value p##_value[ALONE];                                                            \
    struct prog p;                                                                                 \
    p.step = p##_step, p.mem = p##_mem, p.value = p##_value;                                       \
    p.max_step = p.max_mem = p.max_value = ALONE

static size_t alone_scratch(const struct rt_call *c)
{
    struct rt_call copy = *c;
    char error[8];

    ALONE_PROG(p);
    copy.error = error;
    copy.error_size = sizeof(error);
    return build(&copy, &p) ? p.scratch : 0;
}

static bool alone_run(struct rt_call *c)
{
    ALONE_PROG(p);
    if (!build(c, &p))
        return false;
    if (rt_numel(c->out) > 0)
        prog_run(&p, c->scratch);
    return true;
}

/* ---- lists: the call for each item ---- */

enum { LIST_ARGS = 6 };

/* Which operands may be None: bounds, and a weight. */
static bool may_be_absent(enum op_kernel k, uint32_t i)
{
    return i > 0 && (k == OP_KERNEL_clamp_tensor || (k == OP_KERNEL_bce_loss_backward && i == 3));
}

static bool check_one(struct rt_call *c)
{
    enum op_kernel k = c->kernel->id;

    for (uint32_t i = 0; i < points[k].n_in; i++) {
        const struct rt_value *v = arg_at(c, i);

        if (v->kind == RT_NONE ? !may_be_absent(k, i)
                               : v->kind != RT_TENSOR && number_dtype(v) == DTYPE_NONE)
            return kernel_error(c, "operand %u is no tensor and no number", i);
        if (v->kind == RT_TENSOR && !kernel_broadcasts(c, v->tensor, c->out))
            return false;
        if (v->kind == RT_TENSOR && kind_of(v->tensor->dtype) == K_END)
            return kernel_error(c, "no kernel computes %s of %s", c->kernel->name,
                                dtype_at(v->tensor->dtype)->name);
    }
    for (uint32_t i = points[k].n_in; i < c->n_arg; i++)
        if (c->arg[i].kind == RT_COMPLEX)
            return kernel_error(c, "no kernel computes %s with a complex factor", c->kernel->name);
    return c->out->dtype != DTYPE_NONE || kernel_error(c, "it has no result");
}

/* The operand that is a list of tensors; UINT32_MAX if none is. Only a power may have a number
 * before it. */
static uint32_t list_at(const struct rt_call *c)
{
    for (uint32_t k = 0; k < c->n_arg && k < 2; k++)
        if (c->arg[k].kind == RT_LIST && (k == 0 || c->kernel->id == OP_KERNEL_pow))
            return k;
    return UINT32_MAX;
}

/* Item i of all operands that are lists; the result, or the operand that is written. false if there
 * is no such item. */
static bool take_item(const struct rt_call *c, uint32_t i, struct rt_call *one,
                      struct rt_value *arg, struct rt_tensor *out)
{
    uint32_t list = list_at(c);

    *one = *c;
    if (i >= c->arg[list].n || c->n_arg > LIST_ARGS)
        return false;
    for (uint32_t k = 0; k < c->n_arg; k++)
        arg[k] = c->arg[k].kind == RT_LIST && i < c->arg[k].n ? c->arg[k].item[i] : c->arg[k];
    *out = out_at(c, i) != NULL ? c->out[i] : *arg[list].tensor;
    one->arg = arg;
    one->out = out;
    one->n_out = 1;
    return true;
}

/* Lists of one length, and each item of the first list a tensor. */
static bool check_lists(struct rt_call *c)
{
    struct rt_value arg[LIST_ARGS];
    struct rt_tensor out;
    struct rt_call one;
    uint32_t first = list_at(c);

    if (c->n_arg > LIST_ARGS)
        return kernel_error(c, "it has more than %d operands", LIST_ARGS);
    for (uint32_t k = 0; k < c->n_arg; k++)
        for (uint32_t i = 0; c->arg[k].kind == RT_LIST && i < c->arg[k].n; i++)
            if (c->arg[k].n != c->arg[first].n ||
                (k == first && c->arg[k].item[i].kind != RT_TENSOR))
                return kernel_error(c, "its lists do not go together");
    for (uint32_t i = 0; take_item(c, i, &one, arg, &out); i++)
        if (!check_one(&one))
            return false;
    return true;
}

bool point_check(struct rt_call *c)
{
    if (list_at(c) != UINT32_MAX)
        return check_lists(c);
    return c->n_out == 0 || check_one(c);
}

size_t point_scratch(const struct rt_call *c)
{
    struct rt_value arg[LIST_ARGS];
    struct rt_tensor out;
    struct rt_call one;
    size_t most = 0;

    if (list_at(c) == UINT32_MAX)
        return c->n_out > 0 ? alone_scratch(c) : 0;
    for (uint32_t i = 0; take_item(c, i, &one, arg, &out); i++) {
        size_t bytes = alone_scratch(&one);

        most = bytes > most ? bytes : most;
    }
    return most;
}

bool point_run(struct rt_call *c)
{
    struct rt_value arg[LIST_ARGS];
    struct rt_tensor out;
    struct rt_call one;

    if (list_at(c) == UINT32_MAX)
        return c->n_out == 0 || alone_run(c);
    for (uint32_t i = 0; take_item(c, i, &one, arg, &out); i++)
        if (!alone_run(&one))
            return false;
    return true;
}
