/* Computes values as Python does. Integers are computed with 128 bits, so that a sum whose terms
 * are larger than the result still has a value; the result must fit 64 bits.
 */
#include "sym/sym.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

__extension__ typedef __int128 wide;
__extension__ typedef unsigned __int128 uwide;

struct value {
    enum sym_type kind; /* INT, FLOAT or BOOL */
    wide i;
    double f;
};

static struct value of_int(wide v)
{
    return (struct value){.kind = SYM_T_INT, .i = v};
}

static struct value of_bool(bool v)
{
    return (struct value){.kind = SYM_T_BOOL, .i = v};
}

static double real(struct value v)
{
    return v.kind == SYM_T_FLOAT ? v.f : (double)v.i;
}

static bool truth(struct value v)
{
    return v.kind == SYM_T_FLOAT ? v.f != 0 : v.i != 0;
}

static bool both_int(struct value a, struct value b)
{
    return a.kind != SYM_T_FLOAT && b.kind != SYM_T_FLOAT;
}

static enum sym_status give_float(double v, struct value *out)
{
    *out = (struct value){.kind = SYM_T_FLOAT, .f = v};
    return isfinite(v) ? SYM_OK : SYM_UNDEFINED;
}

/* A float without a fraction, as an integer. */
static enum sym_status give_int(double v, struct value *out)
{
    if (!(fabs(v) < 0x1p126))
        return SYM_OVERFLOW;
    *out = of_int((wide)v);
    return SYM_OK;
}

static enum sym_status give_bool(bool v, struct value *out)
{
    *out = of_bool(v);
    return SYM_OK;
}

/* ---- Operators of two ------------------------------------------------------------------------ */

static enum sym_status add(struct value a, struct value b, struct value *out)
{
    if (!both_int(a, b))
        return give_float(real(a) + real(b), out);
    *out = of_int(0);
    return __builtin_add_overflow(a.i, b.i, &out->i) ? SYM_OVERFLOW : SYM_OK;
}

static enum sym_status multiply(struct value a, struct value b, struct value *out)
{
    if (!both_int(a, b))
        return give_float(real(a) * real(b), out);
    *out = of_int(0);
    return __builtin_mul_overflow(a.i, b.i, &out->i) ? SYM_OVERFLOW : SYM_OK;
}

/* Python's float // and %: the remainder has the sign of the divisor. */
static double float_mod(double a, double b)
{
    double r = fmod(a, b);

    if (r != 0 && (r < 0) != (b < 0))
        r += b;
    return r;
}

static double float_floordiv(double a, double b)
{
    double q = (a - float_mod(a, b)) / b, whole = floor(q);

    return q - whole > 0.5 ? whole + 1 : whole;
}

static enum sym_status floordiv(struct value a, struct value b, struct value *out)
{
    if (!truth(b))
        return SYM_UNDEFINED;
    if (!both_int(a, b))
        return give_float(float_floordiv(real(a), real(b)), out);
    if (b.i == -1) /* the only quotient that can be too large */
        return multiply(a, b, out);
    *out = of_int(a.i / b.i - (a.i % b.i != 0 && (a.i % b.i < 0) != (b.i < 0)));
    return SYM_OK;
}

static enum sym_status modulo(struct value a, struct value b, struct value *out)
{
    if (!truth(b))
        return SYM_UNDEFINED;
    if (!both_int(a, b))
        return give_float(float_mod(real(a), real(b)), out);
    wide r = b.i == -1 ? 0 : a.i % b.i;
    *out = of_int(r != 0 && (r < 0) != (b.i < 0) ? r + b.i : r);
    return SYM_OK;
}

static int leading_zeros(uint64_t v)
{
    return __builtin_clzll(v);
}

/* The double nearest to a/b, as Python divides integers: not the quotient of two rounded
 * numbers. */
static enum sym_status divide_ints(wide a, wide b, struct value *out)
{
    const wide limit = INT64_MAX;

    if (a > limit || a < -limit || b > limit || b < -limit)
        return SYM_OVERFLOW;
    uint64_t x = (uint64_t)(a < 0 ? -a : a), y = (uint64_t)(b < 0 ? -b : b);
    if (x == 0)
        return give_float(0, out);
    int shift_x = leading_zeros(x), shift_y = leading_zeros(y);
    uwide n = (uwide)(x << shift_x) << 63;
    uint64_t d = y << shift_y;
    /* At least 63 bits of quotient; the lowest also represents all that follow. */
    uint64_t q = (uint64_t)(n / d) | (n % d != 0);
    double v = ldexp((double)q, shift_y - shift_x - 63);

    return give_float((a < 0) != (b < 0) ? -v : v, out);
}

static enum sym_status truediv(struct value a, struct value b, struct value *out)
{
    if (!truth(b))
        return SYM_UNDEFINED;
    if (!both_int(a, b))
        return give_float(real(a) / real(b), out);
    return divide_ints(a.i, b.i, out);
}

static enum sym_status int_power(wide a, wide exp, struct value *out)
{
    wide r = 1;

    for (; exp > 0; exp /= 2) {
        if (exp % 2 == 1 && __builtin_mul_overflow(r, a, &r))
            return SYM_OVERFLOW;
        if (exp > 1 && __builtin_mul_overflow(a, a, &a))
            return SYM_OVERFLOW;
    }
    *out = of_int(r);
    return SYM_OK;
}

static enum sym_status power(struct value a, struct value b, struct value *out)
{
    if (both_int(a, b) && b.i >= 0)
        return int_power(a.i, b.i, out);
    return give_float(pow(real(a), real(b)), out);
}

/* -1, 0, 1; 2 if not comparable. Exact, also for an integer that no float equals. */
static int compare(struct value a, struct value b)
{
    if (both_int(a, b))
        return (a.i > b.i) - (a.i < b.i);
    if (a.kind == SYM_T_FLOAT && b.kind == SYM_T_FLOAT)
        return isnan(a.f) || isnan(b.f) ? 2 : (a.f > b.f) - (a.f < b.f);
    if (a.kind == SYM_T_FLOAT) {
        int c = compare(b, a);

        return c == 2 ? c : -c;
    }
    if (isnan(b.f))
        return 2;
    if (fabs(b.f) >= 0x1p126)
        return b.f > 0 ? -1 : 1;
    wide whole = (wide)b.f;
    double fraction = b.f - (double)whole;

    if (a.i != whole)
        return a.i > whole ? 1 : -1;
    return (fraction < 0) - (fraction > 0);
}

static enum sym_status relation(enum sym_op op, struct value a, struct value b, struct value *out)
{
    int c = compare(a, b);

    switch (op) {
    case SYM_EQ: return give_bool(c == 0, out);
    case SYM_NE: return give_bool(c != 0, out);
    case SYM_LT: return give_bool(c == -1, out);
    case SYM_LE: return give_bool(c == -1 || c == 0, out);
    case SYM_GT: return give_bool(c == 1, out);
    default: return give_bool(c == 1 || c == 0, out);
    }
}

static enum sym_status bitwise(enum sym_op op, struct value a, struct value b, struct value *out)
{
    if (!both_int(a, b))
        return SYM_UNDEFINED;
    wide r = op == SYM_BITAND ? (a.i & b.i) : op == SYM_BITOR ? (a.i | b.i) : (a.i ^ b.i);
    bool bools = a.kind == SYM_T_BOOL && b.kind == SYM_T_BOOL;

    *out = bools ? of_bool(r != 0) : of_int(r);
    return SYM_OK;
}

/* Python rounds the decimal expansion of the float, as printf does. */
static enum sym_status round_decimal(struct value a, struct value digits, struct value *out)
{
    char text[400];

    if (digits.kind == SYM_T_FLOAT || digits.i < 0 || digits.i > 30)
        return SYM_UNDEFINED;
    snprintf(text, sizeof(text), "%.*f", (int)digits.i, real(a));
    return give_float(strtod(text, NULL), out);
}

/* ---- Operators of any number ----------------------------------------------------------------- */

static bool is_flat(enum sym_op op)
{
    return op == SYM_ADD || op == SYM_MUL || op == SYM_MIN || op == SYM_MAX;
}

/* *acc = *acc op v */
static enum sym_status accumulate(enum sym_op op, struct value v, struct value *acc)
{
    int c;

    switch (op) {
    case SYM_ADD: return add(*acc, v, acc);
    case SYM_MUL: return multiply(*acc, v, acc);
    default:
        c = compare(v, *acc);
        if (c == (op == SYM_MAX ? 1 : -1))
            *acc = v;
        return c == 2 ? SYM_UNDEFINED : SYM_OK;
    }
}

/* ---- All with at most three operands --------------------------------------------------------- */

static enum sym_status convert(enum sym_op op, struct value a, struct value *out)
{
    if (a.kind != SYM_T_FLOAT) {
        *out = of_int(a.i);
        return SYM_OK;
    }
    switch (op) {
    case SYM_CEIL:
    case SYM_CEILING: return give_int(ceil(a.f), out);
    case SYM_FLOOR:
    case SYM_FLOORING: return give_int(floor(a.f), out);
    case SYM_ROUND: return give_int(a.f - remainder(a.f, 1.0), out); /* halves to even */
    default: return give_int(trunc(a.f), out);
    }
}

static enum sym_status apply(enum sym_op op, const struct value *a, struct value *out)
{
    struct value q;
    enum sym_status st;

    switch (op) {
    case SYM_FLOORDIV: return floordiv(a[0], a[1], out);
    case SYM_MOD:
    case SYM_PYMOD: return modulo(a[0], a[1], out);
    case SYM_MODINDEX:
        st = floordiv(a[0], a[1], &q);
        return st == SYM_OK ? modulo(q, a[2], out) : st;
    case SYM_POW: return power(a[0], a[1], out);
    case SYM_POWNAT:
        if (!both_int(a[0], a[1]) || a[1].i < 0)
            return SYM_UNDEFINED;
        return int_power(a[0].i, a[1].i, out);
    case SYM_POWFLOAT: return give_float(pow(real(a[0]), real(a[1])), out);
    case SYM_DIV:
    case SYM_INTDIV: return truediv(a[0], a[1], out);
    case SYM_FLOATDIV:
        return truth(a[1]) ? give_float(real(a[0]) / real(a[1]), out) : SYM_UNDEFINED;
    case SYM_TOFLOAT: return give_float(real(a[0]), out);
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_TRUNC:
    case SYM_ROUND:
    case SYM_CEILING:
    case SYM_FLOORING: return convert(op, a[0], out);
    case SYM_TRUNCF: return give_float(trunc(real(a[0])), out);
    case SYM_ROUNDDEC: return round_decimal(a[0], a[1], out);
    case SYM_SQRT: return give_float(sqrt(real(a[0])), out);
    case SYM_EXP: return give_float(exp(real(a[0])), out);
    case SYM_LOG: return give_float(log(real(a[0])), out);
    case SYM_LOG2: return give_float(log2(real(a[0])), out);
    case SYM_SIN: return give_float(sin(real(a[0])), out);
    case SYM_COS: return give_float(cos(real(a[0])), out);
    case SYM_TAN: return give_float(tan(real(a[0])), out);
    case SYM_ASIN: return give_float(asin(real(a[0])), out);
    case SYM_ACOS: return give_float(acos(real(a[0])), out);
    case SYM_ATAN: return give_float(atan(real(a[0])), out);
    case SYM_SINH: return give_float(sinh(real(a[0])), out);
    case SYM_COSH: return give_float(cosh(real(a[0])), out);
    case SYM_TANH: return give_float(tanh(real(a[0])), out);
    case SYM_ABS:
        if (a[0].kind == SYM_T_FLOAT)
            return give_float(fabs(a[0].f), out);
        return multiply(a[0], of_int(a[0].i < 0 ? -1 : 1), out);
    case SYM_WHERE: *out = truth(a[0]) ? a[1] : a[2]; return SYM_OK;
    case SYM_BITAND:
    case SYM_BITOR:
    case SYM_BITXOR: return bitwise(op, a[0], a[1], out);
    case SYM_EQ:
    case SYM_NE:
    case SYM_LT:
    case SYM_LE:
    case SYM_GT:
    case SYM_GE: return relation(op, a[0], a[1], out);
    case SYM_NOT: return give_bool(!truth(a[0]), out);
    default: return SYM_UNDEFINED;
    }
}

/* ---- Trees ----------------------------------------------------------------------------------- */

struct env {
    const struct symtab *t;
    sym_lookup_fn lookup;
    void *ctx;
};

static enum sym_status eval(const struct env *e, sym_id id, struct value *out);

/* One False decides And, whatever the others are, because the operands are sorted and not in the
 * program's order. */
static enum sym_status eval_logic(const struct env *e, sym_id id, struct value *out)
{
    const struct sym_node *v = sym_at(e->t, id);
    enum sym_status worst = SYM_OK;

    for (uint32_t i = 0; i < v->n_arg; i++) {
        enum sym_status st = eval(e, sym_arg(e->t, id, i), out);

        if (st != SYM_OK)
            worst = st;
        else if (truth(*out) == (v->op == SYM_OR))
            return give_bool(v->op == SYM_OR, out);
    }
    *out = of_bool(v->op == SYM_AND);
    return worst;
}

static enum sym_status eval_flat(const struct env *e, sym_id id, struct value *out)
{
    const struct sym_node *v = sym_at(e->t, id);
    struct value acc, x;
    enum sym_status st = eval(e, sym_arg(e->t, id, 0), &acc);

    for (uint32_t i = 1; i < v->n_arg && st == SYM_OK; i++) {
        st = eval(e, sym_arg(e->t, id, i), &x);
        if (st == SYM_OK)
            st = accumulate((enum sym_op)v->op, x, &acc);
    }
    *out = acc;
    return st;
}

static enum sym_status eval_leaf(const struct env *e, sym_id id, struct value *out)
{
    struct sym_num n = {.kind = SYM_T_ANY};

    if (sym_is(e->t, id, SYM_SYMBOL)) {
        const char *name = str_text(&e->t->names, sym_at(e->t, id)->u.name);

        if (e->lookup == NULL || !e->lookup(e->ctx, name, &n))
            return SYM_UNBOUND;
    } else {
        sym_as_number(e->t, id, &n);
    }
    *out = (struct value){.kind = n.kind, .i = n.i, .f = n.f};
    return n.kind == SYM_T_FLOAT && !isfinite(n.f) ? SYM_UNDEFINED : SYM_OK;
}

/* The tree is at most SYM_MAX_DEPTH deep and has at most SYM_MAX_SIZE nodes. */
static enum sym_status eval(const struct env *e, sym_id id, struct value *out)
{
    const struct sym_node *v = sym_at(e->t, id);
    struct value args[3];
    enum sym_status st;

    if (v->n_arg == 0)
        return eval_leaf(e, id, out);
    if (v->op == SYM_AND || v->op == SYM_OR)
        return eval_logic(e, id, out);
    if (is_flat((enum sym_op)v->op))
        return eval_flat(e, id, out);
    if (v->op == SYM_WHERE) { /* the other branch may have no value */
        st = eval(e, sym_arg(e->t, id, 0), &args[0]);
        return st == SYM_OK ? eval(e, sym_arg(e->t, id, truth(args[0]) ? 1 : 2), out) : st;
    }
    if (v->op == SYM_CALL)
        return SYM_UNDEFINED;
    for (uint32_t i = 0; i < v->n_arg; i++) {
        st = eval(e, sym_arg(e->t, id, i), &args[i]);
        if (st != SYM_OK)
            return st;
    }
    return apply((enum sym_op)v->op, args, out);
}

static bool narrow(struct value v, struct sym_num *out)
{
    if (v.kind != SYM_T_FLOAT && (v.i > INT64_MAX || v.i < -(wide)INT64_MAX))
        return false;
    *out = (struct sym_num){.kind = v.kind};
    if (v.kind == SYM_T_FLOAT)
        out->f = v.f;
    else
        out->i = (int64_t)v.i;
    return true;
}

enum sym_status sym_eval(const struct symtab *t, sym_id id, sym_lookup_fn lookup, void *ctx,
                         struct sym_num *out)
{
    struct env e = {.t = t, .lookup = lookup, .ctx = ctx};
    struct value v;

    if (id == 0)
        return SYM_UNDEFINED;
    enum sym_status st = eval(&e, id, &v);
    if (st == SYM_OK && !narrow(v, out))
        return SYM_OVERFLOW;
    return st;
}

sym_id sym_fold(struct symtab *t, enum sym_op op, uint32_t base)
{
    struct value args[3], v;
    struct sym_num n;
    uint32_t n_arg = t->stack.len - base;

    if (n_arg > 3)
        return 0;
    for (uint32_t i = 0; i < n_arg; i++) {
        if (!sym_as_number(t, t->stack.at[base + i], &n))
            return 0;
        args[i] = (struct value){.kind = n.kind, .i = n.i, .f = n.f};
    }
    if (op == SYM_DIV && both_int(args[0], args[1]))
        return 0; /* 1/2 is a fraction */
    return apply(op, args, &v) == SYM_OK && narrow(v, &n) ? sym_number(t, n) : 0;
}
