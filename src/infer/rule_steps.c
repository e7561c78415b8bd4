/* Element-wise operators that PyTorch composes from others: every step has a layout, which affects
 * the next. A rule here lists the steps; the result has the layout of the last.
 *
 * A recipe is read from left to right, with a stack:
 *
 *   0 … 9   the operand at that position of the signature, a tensor or a number
 *   i f     an integer; a float
 *   z p     a tensor without dimensions; a contiguous one with the broadcast size of all operands
 *   + /     two operands, promoted; the same, and integers become floats
 *   <       two operands compared
 *   ?       where(condition, a, b)
 *   u e t   one operand; integers become floats; the result is bool
 *   r b v   like empty_like(); the same as bool; the real part of a complex tensor, a view
 *   c       clamp() by one number
 *   =A, A   pops the top and stores it under a letter; pushes it again
 */
#include "infer/rule.h"

/* What happens to the operands before the first step. */
enum before {
    AS_THEY_ARE,
    /* converted to the dtype of the computation; the result is converted to the promoted dtype */
    CAST,
    CAST_FLOAT, /* the same, and integers become floats */
    SPREAD,     /* like CAST, then all are broadcast */
    SPREAD_FLOAT,
    CAST_LONG, /* like CAST, and bool becomes int64 */
    BOOLEAN    /* like CAST, the result is bool */
};

struct item {
    const struct type *t; /* NULL for a number */
    enum dtype_category kind;
};

enum { REDUCTION_NONE, REDUCTION_MEAN };

enum { DEPTH = 16, PLACES = 10, LETTERS = 26 };

struct machine {
    struct infer *x;
    struct item operand[PLACES], stack[DEPTH], kept[LETTERS];
    uint32_t n;
    const struct type *all[PLACES]; /* the tensors among the operands */
    uint32_t n_all;
    struct promotion promotion; /* of these and the numbers */
};

static enum dtype to_float(enum dtype d)
{
    unsigned c = dtype_at(d)->category;

    return c == DTYPE_IS_BOOL || c == DTYPE_IS_INT || c == DTYPE_IS_UINT ? DTYPE_DEFAULT : d;
}

static enum dtype computed_in(enum dtype d)
{
    return d == DTYPE_F16 || d == DTYPE_BF16 ? DTYPE_F32 : d == DTYPE_C32 ? DTYPE_C64 : d;
}

static const struct type *made(struct infer *x, enum dtype dtype, uint32_t n, const sym_id *size,
                               const sym_id *stride)
{
    struct type *t = arena_new(x->arena, struct type);

    *t = (struct type){.kind = TYPE_TENSOR,
                       .dtype = (uint8_t)dtype,
                       .strided = stride != NULL || n == 0,
                       .n = n,
                       .size = size,
                       .stride = stride};
    return t;
}

/* t.to(dtype) */
static const struct type *converted(struct infer *x, const struct type *t, enum dtype dtype)
{
    if ((enum dtype)t->dtype == dtype)
        return t;
    return made(x, dtype, t->n, t->size, t->strided ? like_strides(x, t, FORMAT_PRESERVE) : NULL);
}

static void push(struct machine *m, const struct type *t)
{
    m->stack[m->n++] = (struct item){t, DTYPE_IS_BOOL};
}

static void promote_item(struct promotion *p, const struct item *v)
{
    if (v->t != NULL)
        promote_tensor(p, v->t);
    else
        promote_number(p, v->kind);
}

/* ---- steps ---- */

/* A loop over `n` operands that returns `dtype`; numbers do not affect the layout. */
static const struct type *looped(struct infer *x, const struct item *v, uint32_t n, enum dtype in,
                                 enum dtype dtype)
{
    const struct type *t[2];
    const sym_id *size;
    uint32_t k = 0, n_dim;

    for (uint32_t i = 0; i < n; i++)
        if (v[i].t != NULL)
            t[k++] = converted(x, v[i].t, in);
    if (!broadcast_sizes(x, t, k, &n_dim, &size))
        return NULL;
    return made(x, dtype, n_dim, size, reference_strides(x, t, k, n_dim, size));
}

static bool step(struct machine *m, char op)
{
    struct promotion p = {0};
    uint32_t n = strchr("+/<", op) != NULL ? 2 : 1;

    if (m->n < n)
        return false;
    struct item *v = &m->stack[m->n -= n];
    for (uint32_t i = 0; i < n; i++)
        promote_item(&p, &v[i]);
    enum dtype d = promoted(&p);
    if (d == DTYPE_NONE)
        return false;
    if (op == '/' || op == 'e')
        d = to_float(d);
    if (v[0].t == NULL && v[n - 1].t == NULL)
        return false;
    const struct type *t = looped(m->x, v, n, computed_in(d), strchr("<t", op) ? DTYPE_B8 : d);
    push(m, t);
    return t != NULL;
}

static bool choose(struct machine *m)
{
    static const struct type number = {.kind = TYPE_TENSOR, .dtype = DTYPE_F32, .strided = true};
    struct promotion p = {0};
    const struct type *t[3];
    const sym_id *size;
    uint32_t n;

    if (m->n < 3 || m->stack[m->n - 3].t == NULL)
        return false;
    struct item *v = &m->stack[m->n -= 3];
    promote_item(&p, &v[1]);
    promote_item(&p, &v[2]);
    enum dtype d = promoted(&p);
    t[0] = v[0].t;
    for (int i = 1; i < 3; i++)
        t[i] = v[i].t == NULL ? &number : v[i].t->n == 0 ? v[i].t : converted(m->x, v[i].t, d);
    if (d == DTYPE_NONE || !broadcast_sizes(m->x, t, 3, &n, &size))
        return false;
    push(m, made(m->x, d, n, size, reference_strides(m->x, t, 3, n, size)));
    return true;
}

static bool read_steps(struct machine *m, const char *recipe);

static bool clamped(struct machine *m)
{
    struct item saved = m->kept['Z' - 'A'];
    bool ok = read_steps(m, "=Z Zt Zf<+ Zf?");

    m->kept['Z' - 'A'] = saved;
    return ok;
}

static const struct type *real_part(struct infer *x, const struct type *t)
{
    if (dtype_at((enum dtype)t->dtype)->category != DTYPE_IS_COMPLEX)
        return t;
    sym_id *stride = new_syms(x, t->n);
    for (uint32_t i = 0; t->strided && i < t->n; i++)
        stride[i] = sym_mul(x->sym, t->stride[i], num(x, 2));
    return made(x, dtype_real_of((enum dtype)t->dtype), t->n, t->size, t->strided ? stride : NULL);
}

static bool read_one(struct machine *m, char c, char next)
{
    struct infer *x = m->x;
    struct item *top = m->n > 0 ? &m->stack[m->n - 1] : NULL;
    const sym_id *size;
    uint32_t n;

    if (c >= '0' && c <= '9')
        m->stack[m->n++] = m->operand[c - '0'];
    else if (c >= 'A' && c <= 'Z')
        m->stack[m->n++] = m->kept[c - 'A'];
    else if (c == 'i' || c == 'f')
        m->stack[m->n++] = (struct item){NULL, c == 'i' ? DTYPE_IS_INT : DTYPE_IS_FLOAT};
    else if (c == 'z')
        push(m, made(x, computed_in(promoted(&m->promotion)), 0, NULL, NULL));
    else if (c == 'p' && broadcast_sizes(x, m->all, m->n_all, &n, &size))
        push(m, made(x, computed_in(promoted(&m->promotion)), n, size,
                     contiguous_strides(x, n, size)));
    else if (c == '=' && top != NULL)
        m->kept[next - 'A'] = m->stack[--m->n];
    else if (c == 'c')
        return clamped(m);
    else if (c == '?')
        return choose(m);
    else if (c == 'r' && top != NULL && top->t != NULL)
        top->t = made(x, (enum dtype)top->t->dtype, top->t->n, top->t->size,
                      top->t->strided ? like_strides(x, top->t, FORMAT_PRESERVE) : NULL);
    else if (c == 'b' && top != NULL && top->t != NULL)
        top->t = made(x, DTYPE_B8, top->t->n, top->t->size,
                      reference_strides(x, &top->t, 1, top->t->n, top->t->size));
    else if (c == 'v' && top != NULL && top->t != NULL)
        top->t = real_part(x, top->t);
    else
        return step(m, c);
    return true;
}

static bool read_steps(struct machine *m, const char *recipe)
{
    for (const char *p = recipe; *p != '\0'; p++) {
        if (*p == ' ')
            continue;
        if (m->n + 1 >= DEPTH || !read_one(m, *p, p[1]))
            return false;
        p += *p == '=';
    }
    return true;
}

/* ---- a whole recipe ---- */

/* The operands that it names. A number in place of a tensor stays a number. */
static bool load(struct machine *m, const char *recipe)
{
    bool loaded[PLACES] = {false};

    for (const char *c = recipe; *c != '\0'; c++) {
        if (*c < '0' || *c > '9' || loaded[*c - '0'])
            continue;
        struct item *v = &m->operand[*c - '0'];
        loaded[*c - '0'] = true;
        v->t = in_tensor(m->x, *c - '0');
        if (v->t == NULL && !in_number(m->x, *c - '0', &v->kind))
            return false;
        if (v->t != NULL)
            m->all[m->n_all++] = v->t;
        promote_item(&m->promotion, v);
    }
    return m->n_all > 0 && promoted(&m->promotion) != DTYPE_NONE;
}

static enum dtype before_dtype(enum before before, enum dtype d)
{
    if (before == CAST_FLOAT || before == SPREAD_FLOAT)
        return to_float(d);
    return before == CAST_LONG && d == DTYPE_B8 ? DTYPE_I64 : d;
}

static bool prepare(struct machine *m, enum before before)
{
    enum dtype d = promoted(&m->promotion);
    const sym_id *size;
    uint32_t n;

    if (before == AS_THEY_ARE)
        return true;
    d = before_dtype(before, d);
    if (!broadcast_sizes(m->x, m->all, m->n_all, &n, &size))
        return false;
    for (int i = 0; i < PLACES; i++) {
        struct item *v = &m->operand[i];
        if (v->t != NULL)
            v->t = converted(m->x, v->t, computed_in(d));
        if (v->t != NULL && (before == SPREAD || before == SPREAD_FLOAT) && v->t->strided)
            v->t = broadcast_to(m->x, v->t, n, size);
    }
    return true;
}

static type_id result_of(struct machine *m, enum before before, const char *recipe)
{
    if (!prepare(m, before) || !read_steps(m, recipe) || m->n != 1 || m->stack[0].t == NULL)
        return 0;
    const struct type *t = m->stack[0].t;
    enum dtype d = before_dtype(before, promoted(&m->promotion));
    if (before != AS_THEY_ARE)
        t = converted(m->x, t, before == BOOLEAN ? DTYPE_B8 : d);
    return type_tensor(m->x->type, (enum dtype)t->dtype, t->n, t->size,
                       t->strided ? t->stride : NULL, common_device(m->x, m->all, m->n_all));
}

static bool out_steps(struct infer *x, enum before before, const char *recipe)
{
    struct machine m = {.x = x};

    return load(&m, recipe) && out_type(x, result_of(&m, before, recipe));
}

/* ---- activations and functions of one operand ---- */

#define STEPS(rule, before, recipe)                                                                \
    bool shape_##rule(struct infer *x)                                                             \
    {                                                                                              \
        return out_steps(x, before, recipe);                                                       \
    }

STEPS(hardshrink, AS_THEY_ARE, "0uf< i 0 ?")
STEPS(softshrink, AS_THEY_ARE, "0uf< 0 0uf+ + 0i+ ?")
STEPS(hardtanh, CAST, "0cc")
STEPS(hardsigmoid, CAST, "0i+ cc i/")
STEPS(hardswish, CAST, "0 0i+ cc + i/")
STEPS(celu, CAST, "0i< 0 0f/ e f+ ?")
STEPS(elu, CAST, "0i< 0f+ 0f+ e f+ ?")
STEPS(softplus, CAST, "0f+=S Sf< 0 See f/ ?")
STEPS(mish, CAST, "0i+=S 0 Si< 0 See i/ ? e +")
STEPS(log_sigmoid, CAST, "z0+ 0uue e +")
STEPS(logit, CAST_FLOAT, "0f< f 0f< f 0 ? ? =A A iA+ / e")
STEPS(sinc, CAST_FLOAT, "0f+=A Ai< i Ae A/ ?")
STEPS(ndtr, CAST_FLOAT, "0f+ e i+ f+")
STEPS(log_ndtr, CAST_FLOAT, "0f+=T 0f< Tue i/ e TT+ + Te u i/ e ?")
STEPS(square, CAST_LONG, "00+")
STEPS(cauchy, CAST, "0r f+ f+ e f+ f+")
STEPS(exponential, CAST, "0r=U Uf< f Ue ? f+")
STEPS(geometric, CAST, "0r u e f/ u i+")
STEPS(log_normal, CAST, "0r f+ f+ e")
STEPS(normal, CAST, "1p+ 0+")

static bool is_tanh(struct infer *x)
{
    const char *how;

    return in_str(x, in_param(x, "approximate"), &how) && strcmp(how, "tanh") == 0;
}

bool shape_gelu(struct infer *x)
{
    return out_steps(x, CAST, is_tanh(x) ? "0f+ 0 00+0+ f+ + f+ e i+ +" : "0f+ 0f+ e i+ +");
}

/* Of the first operand. */
static unsigned category(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return dtype_at(t != NULL ? (enum dtype)t->dtype : DTYPE_NONE)->category;
}

bool shape_isfinite(struct infer *x)
{
    switch (category(x)) {
    case DTYPE_IS_FLOAT: return out_steps(x, BOOLEAN, "00< 0uf< +");
    case DTYPE_IS_COMPLEX: return out_steps(x, BOOLEAN, "0v=R RR< Ruf< +");
    default: return out_steps(x, AS_THEY_ARE, "0b");
    }
}

bool shape_isinf(struct infer *x)
{
    switch (category(x)) {
    case DTYPE_IS_FLOAT: return out_steps(x, BOOLEAN, "0uf<");
    case DTYPE_IS_COMPLEX: return out_steps(x, BOOLEAN, "0vuf< 0vuf< +");
    default: return out_steps(x, AS_THEY_ARE, "0b");
    }
}

bool shape_isreal(struct infer *x)
{
    return category(x) == DTYPE_IS_COMPLEX ? out_steps(x, BOOLEAN, "0vi<")
                                           : out_steps(x, AS_THEY_ARE, "0b");
}

STEPS(isin, AS_THEY_ARE, "0b")

/* ---- two operands ---- */

STEPS(prelu, AS_THEY_ARE, "0i< 0 10+ ?")
STEPS(heaviside, SPREAD, "0i<=E 0i< 0t + i i ? =Z E1Z ?")
STEPS(lcm, SPREAD, "01+=G Gi< i G ? =G 0G+ 1+ u")

/* Is the second operand a number? It becomes a tensor without dimensions. */
static bool second_is_number(struct infer *x, int p)
{
    return in_tensor(x, p) == NULL;
}

bool shape_copysign(struct infer *x)
{
    return out_steps(x, SPREAD_FLOAT, second_is_number(x, 1) ? "zt 0uu 0u ?" : "1t 0uu 0u ?");
}

bool shape_xlogy(struct infer *x)
{
    if (second_is_number(x, 1))
        return out_steps(x, CAST_FLOAT, "0i< i 0 ze + ? =R zt f R ?");
    return out_steps(x, CAST_FLOAT,
                     second_is_number(x, 0) ? "zi< i z 1e + ? =R 1t f R ?"
                                            : "0i< i 0 1e + ? =R 1t f R ?");
}

/* Subtracts alpha * a from b. */
bool shape_rsub(struct infer *x)
{
    sym_id alpha;

    if (!in_sym(x, in_param(x, "alpha"), &alpha))
        return false;
    return out_steps(x, SPREAD, is_unit(x, alpha) ? "10+" : "1 0i+ +");
}

bool shape_logaddexp(struct infer *x)
{
    struct machine m = {.x = x};
    static const char real[] = "01<=M M01?=X M10?=Y 00< 0uf< + u 01< + 0 X YX+ ee + ?";
    static const char complex[] = "0v=A 1v=B AB<=M M01?=X M10?=Y AA< Auf< + u AB< + =I"
                                  "Yvi< Y Ye Xe + e ? =V I V X YX+ ee + ? =W Yt f W ?";

    if (!load(&m, real))
        return false;
    bool is_real = dtype_at(promoted(&m.promotion))->category != DTYPE_IS_COMPLEX;
    return out_type(x, result_of(&m, SPREAD, is_real ? real : complex));
}

bool shape_logaddexp2(struct infer *x)
{
    struct machine m = {.x = x};
    static const char floats[] = "01<=M M01?=X M10?=Y 0uf< 01< + 0 X YX+ ee f+ + ?";
    static const char others[] = "01<=M M01?=X M10?=Y 0t 01< + 0 X YX+ ee f+ + ?";

    if (!load(&m, floats))
        return false;
    bool is_float = dtype_at(promoted(&m.promotion))->category == DTYPE_IS_FLOAT;
    return out_type(x, result_of(&m, SPREAD, is_float ? floats : others));
}

/* A number raised to a power. */
bool shape_pow_of_number(struct infer *x)
{
    sym_id base;

    if (in_sym(x, 0, &base) && is_unit(x, base))
        return out_steps(x, CAST_LONG, "01+r");
    return out_steps(x, CAST_LONG, "01+");
}

static const char *floored(unsigned category, bool number)
{
    if (category == DTYPE_IS_FLOAT)
        return number ? "z=B 0B+=M 0M+ B/ =D Mi< 0i< Bi< + + Di+ D ? =D Du=F DF+ f< Fi+ F ? =F"
                        "0B/=Q Di< F zQ+ ? =F Bi< F Q ?"
                      : "01+=M 0M+ 1/ =D Mi< 0i< 1i< + + Di+ D ? =D Du=F DF+ f< Fi+ F ? =F"
                        "01/=Q Di< F zQ+ ? =F 1i< F Q ?";
    return number ? "z=B 0B+ 0t Bt < 0B+ i< + +" : "01+ 0t 1t < 01+ i< + +";
}

/* Division, rounded or not. */
bool shape_div_mode(struct infer *x)
{
    struct machine m = {.x = x};
    int p = in_param(x, "rounding_mode");
    const char *mode = "floor";

    if (p != NO_PARAM && in_given(x, p) && !in_str(x, p, &mode))
        return false;
    if (p != NO_PARAM && !in_given(x, p))
        return out_steps(x, SPREAD_FLOAT, "01/");
    if (!load(&m, "01"))
        return false;
    enum dtype d = promoted(&m.promotion);
    unsigned c = dtype_at(d)->category;
    bool is_whole = c == DTYPE_IS_INT || c == DTYPE_IS_UINT;
    if (strcmp(mode, "trunc") == 0)
        return out_type(x, result_of(&m, SPREAD, is_whole ? "01+" : "01+u"));
    if (d == DTYPE_U8 || c == DTYPE_IS_UINT)
        return out_type(x, result_of(&m, SPREAD, "01+"));
    return out_type(x, result_of(&m, SPREAD, floored(c, m.operand[1].t == NULL)));
}

/* The lower bound first, then the upper; each may be absent. */
static bool out_clamp(struct infer *x, int min, int max)
{
    struct machine m = {.x = x};
    bool below = min != NO_PARAM && in_given(x, min), above = max != NO_PARAM && in_given(x, max);
    char names[4] = "0", *end = names + 1;

    if (below)
        *end++ = (char)('0' + min);
    if (above)
        *end++ = (char)('0' + max);
    if (!load(&m, names))
        return false;
    struct item low = below ? m.operand[min] : (struct item){0};
    struct item high = above ? m.operand[max] : (struct item){0};
    if (min != 1 && below)
        m.operand[min] = (struct item){0};
    if (above)
        m.operand[max] = (struct item){0};
    m.operand[1] = low;
    m.operand[2] = high;
    if (!below && !above)
        return false;
    return out_type(x, result_of(&m, CAST,
                                 !above   ? "01< 0t + 0 1 ?"
                                 : !below ? "02< 0t + 0 2 ?"
                                          : "01< 0t + 0 1 ? =A A2< At + A 2 ?"));
}

bool shape_clamp(struct infer *x)
{
    return out_clamp(x, in_param(x, "min"), in_param(x, "max"));
}

type_id bounded(struct infer *x, const struct promotion *p, const struct type *t,
                const struct type *bound)
{
    struct machine m = {.x = x, .promotion = *p, .all = {t, bound}, .n_all = bound ? 2 : 1};

    m.operand[0].t = t;
    m.operand[1].t = bound;
    return result_of(&m, CAST, "01< 0t + 0 1 ?");
}

/* a * sigmoid(b), a and b the halves of the operand. */
bool shape_glu(struct infer *x)
{
    struct machine m = {.x = x};
    const struct type *t = in_tensor(x, 0);
    int64_t dim;
    uint32_t d;

    if (t == NULL || t->n == 0 || !in_int(x, in_param(x, "dim"), &dim) || !wrap_dim(dim, t->n, &d))
        return false;
    sym_id *size = new_syms(x, t->n);
    memcpy(size, t->size, t->n * sizeof(*size));
    size[d] = sym_floordiv(x->sym, size[d], num(x, 2));
    struct type half = *converted(x, t, computed_in((enum dtype)t->dtype));
    half.size = size;
    half.device = t->device;
    promote_tensor(&m.promotion, t);
    m.operand[0].t = m.operand[1].t = m.all[0] = &half;
    m.n_all = 1;
    return out_type(x, result_of(&m, CAST, "01e+"));
}

/* One loop of TensorIterator. */
bool shape_iterator(struct infer *x)
{
    struct machine m = {.x = x};
    const sym_id *size;
    uint32_t n;

    if (!load(&m, "01") || !broadcast_sizes(x, m.all, m.n_all, &n, &size))
        return false;
    return out_layout(x, promoted(&m.promotion), n, size,
                      elementwise_strides(x, m.all, m.n_all, n, size),
                      common_device(x, m.all, m.n_all));
}

/* A function of the difference, reduced or not. */
bool shape_loss(struct infer *x)
{
    struct machine m = {.x = x};
    int64_t reduction;

    if (!load(&m, "01") || !in_int(x, in_param(x, "reduction"), &reduction))
        return false;
    if (reduction != REDUCTION_NONE)
        return out_tensor(x, promoted(&m.promotion), 0, NULL, NULL,
                          common_device(x, m.all, m.n_all));
    return out_type(x, result_of(&m, CAST, "01+u"));
}

/* ---- backward: the gradient is operand 0 ---- */

STEPS(sigmoid_backward, CAST, "0 1 i1+ + u +")
STEPS(tanh_backward, CAST, "0 11+ i+ u +")
STEPS(hardsigmoid_backward, CAST, "1f< 1f< + 0f+ f ?")
STEPS(hardswish_backward, CAST, "1i< f 1i< 0 1i/ f+ + 0 ? ?")
STEPS(hardtanh_backward, CAST, "1f< 1f< + f 0 ?")
STEPS(leaky_relu_backward, CAST, "1i< 0 0f+ ?")
STEPS(softplus_backward, CAST, "1f+e=Z 1f+ f< 0 0Z+ Zf+ / ?")
STEPS(mse_loss_backward, CAST, "12+ f+ 0+")
STEPS(huber_loss_backward, CAST, "12+=X Xf< 0f+f+ Xf< 0f+f+ Xf+ 0+ ? ?")
STEPS(smooth_l1_backward, CAST, "12+=X Xu=U 0f+=N Uf< NX+ f/ NXu+ ?")

/* On devices other than cpu nothing is converted. */
static enum before host_cast(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && on_cpu(x, t) ? CAST : AS_THEY_ARE;
}

bool shape_silu_backward(struct infer *x)
{
    enum before before = host_cast(x);

    return out_steps(x, before,
                     before == CAST ? "1e=S 0S+ 1 Si+ + i+ +" : "1e=S 0 S 1 Si+ + i+ + +");
}

bool shape_mish_backward(struct infer *x)
{
    return out_steps(x, host_cast(x), "1i+=S Si< 1 See i/ ? e =T 0 T 1 1e + TT+ i+ + + +");
}

bool shape_gelu_backward(struct infer *x)
{
    return out_steps(x, CAST,
                     is_tanh(x)
                         ? "11+=Q 1Q1+f++f+ e=T 1f+=L Ti+f+=D TT+i+=E Qf+i+f+=I 0 D LE+I+ + +"
                         : "0 1f+ e i+ f+ 1 11+f+e f+ + + +");
}

bool shape_elu_backward(struct infer *x)
{
    bool is_result;

    if (!in_bool(x, in_param(x, "is_result"), &is_result))
        return false;
    return out_steps(x, CAST, is_result ? "5i< 0f+ 5f+ + 0f+ ?" : "5i< 0f+ f+ 5f+ e + 0f+ ?");
}

bool shape_logit_backward(struct infer *x)
{
    return out_steps(x, CAST,
                     in_given(x, in_param(x, "eps")) ? "1f< 1f< + 0 1 f1+ + / f ?"
                                                     : "1f< 1f< + 0 1 f1+ + / z ?");
}

bool shape_log_sigmoid_backward(struct infer *x)
{
    const struct type *buffer = in_tensor(x, 2);

    if (buffer == NULL)
        return false;
    struct machine m = {.x = x};
    if (!load(&m, "012"))
        return false;
    for (uint32_t i = 0; i < buffer->n; i++)
        if (is_zero(x, buffer->size[i])) {
            m.n_all = 2; /* it does not affect the sizes */
            return out_type(x,
                            result_of(&m, CAST, "1i<=N Nii?=M Nii?=S 1uue=Z 0 M S Z Zi+ / + + +"));
        }
    return out_type(x, result_of(&m, CAST, "1i<=N Nii?=M Nii?=S 2=Z 0 M S Z Zi+ / + + +"));
}

/* The mean divides by the number of elements. */
static bool is_mean(struct infer *x)
{
    int64_t reduction;

    return in_int(x, in_param(x, "reduction"), &reduction) && reduction == REDUCTION_MEAN;
}

bool shape_soft_margin_backward(struct infer *x)
{
    return out_steps(x, CAST, is_mean(x) ? "20+ 21+e i+ + i/" : "20+ 21+e i+ +");
}

bool shape_bce_backward(struct infer *x)
{
    if (in_given(x, in_param(x, "weight")))
        return out_steps(x, CAST,
                         is_mean(x) ? "0 12+ + 1 i1+ + c / 3+ i/" : "0 12+ + 1 i1+ + c / 3+");
    return out_steps(x, CAST, is_mean(x) ? "0 12+ + 1 i1+ + c / i/" : "0 12+ + 1 i1+ + c /");
}
