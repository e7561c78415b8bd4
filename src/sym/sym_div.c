/* Division with Python's rounding: a//b is floor(a/b), a % b is a - b*(a//b).
 *
 * This takes out and cancels what PyTorch's FloorDiv and Mod do, if it is valid for all integers:
 * PyTorch also merges (a//b)//c for a c that may be negative.
 */
#include "sym/sym.h"

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t r = a % b;

        a = b;
        b = r;
    }
    return a;
}

/* The greatest common divisor of the coefficients, including the constant term. */
static uint64_t content(const struct symtab *t, sym_id id)
{
    uint64_t g = 0;

    for (uint32_t i = 0, n = sym_n_terms(t, id); i < n && g != 1; i++) {
        struct sym_num c;

        sym_split(t, sym_term_at(t, id, i), &c);
        g = gcd(g, magnitude(c.i));
    }
    return g;
}

/* An integer term divided by a number that divides it. */
static sym_id term_over(struct symtab *t, sym_id term, int64_t by)
{
    struct sym_num c;
    sym_id rest = sym_split(t, term, &c);
    sym_id quotient = sym_int(t, c.i / by);

    return rest ? sym_mul(t, quotient, rest) : quotient;
}

static sym_id sum_over(struct symtab *t, sym_id a, int64_t by)
{
    uint32_t base = t->stack.len;

    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n; i++)
        sym_push(t, term_over(t, sym_term_at(t, a, i), by));
    return sym_take_sum(t, base);
}

static bool divides(const struct symtab *t, int64_t by, sym_id term)
{
    struct sym_num c;

    sym_split(t, term, &c);
    return c.i % by == 0;
}

/* The largest e such that f**e divides the term as it is written. */
static int64_t power_in(const struct symtab *t, sym_id term, sym_id f)
{
    struct sym_num c;
    sym_id rest = sym_split(t, term, &c);

    for (uint32_t i = 0, n = rest ? sym_n_factors(t, rest) : 0; i < n; i++) {
        int64_t e;

        if (sym_factor_at(t, rest, i, &e) == f)
            return e;
    }
    return 0;
}

static int64_t power_in_all(const struct symtab *t, sym_id a, sym_id f)
{
    int64_t least = INT64_MAX;

    if (a == f)
        return 1;
    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n && least > 0; i++) {
        int64_t e = power_in(t, sym_term_at(t, a, i), f);

        if (e < least)
            least = e;
    }
    return least;
}

/* A term divided by f**exp, which divides it. */
static sym_id term_without(struct symtab *t, sym_id term, sym_id f, int64_t exp)
{
    uint32_t base = t->stack.len;
    struct sym_num c;
    sym_id rest = sym_split(t, term, &c);

    sym_push(t, sym_number(t, c));
    for (uint32_t i = 0, n = sym_n_factors(t, rest); i < n; i++) {
        int64_t e;
        sym_id g = sym_factor_at(t, rest, i, &e);

        sym_push(t, sym_pow(t, g, sym_int(t, g == f ? e - exp : e)));
    }
    return sym_take_product(t, base);
}

static sym_id sum_without(struct symtab *t, sym_id a, sym_id f, int64_t exp)
{
    uint32_t base = t->stack.len;

    if (a == f)
        return sym_int(t, 1);
    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n; i++)
        sym_push(t, term_without(t, sym_term_at(t, a, i), f, exp));
    return sym_take_sum(t, base);
}

static bool power_is_in_all(const struct symtab *t, sym_id a, sym_id f, int64_t exp)
{
    if (a == f)
        return exp == 1;
    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n; i++)
        if (power_in(t, sym_term_at(t, a, i), f) != exp)
            return false;
    return true;
}

/* A factor of the product b that is in all terms of a; 0 if there is none. If it is zero, so is the
 * divisor, and nothing has a value. PyTorch cancels only whole powers: s0**2//s0 stays; with `deep`
 * it does not. */
static sym_id common_factor(const struct symtab *t, sym_id a, sym_id b, bool deep, int64_t *exp)
{
    struct sym_num c;
    sym_id rest = sym_split(t, b, &c);

    for (uint32_t i = 0, n = rest ? sym_n_factors(t, rest) : 0; i < n; i++) {
        int64_t e;
        sym_id f = sym_factor_at(t, rest, i, &e);
        int64_t least = deep ? power_in_all(t, a, f) : 0;

        if (!deep && power_is_in_all(t, a, f, e))
            least = e;
        if (least > 0) {
            *exp = least < e ? least : e;
            return f;
        }
    }
    return 0;
}

static sym_id opaque(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len;

    if (a == 0 || b == 0)
        return 0;
    sym_push(t, a);
    sym_push(t, b);
    sym_id id = sym_fold(t, op, base);
    if (id == 0)
        id = sym_intern(t, op, 0, base);
    t->stack.len = base;
    return id;
}

/* Removes the terms that `by` divides from *a; returns the sum of their quotients, 0 if there are
 * none. */
static sym_id take_quotients(struct symtab *t, sym_id *a, int64_t by)
{
    uint32_t base = t->stack.len, n = sym_n_terms(t, *a), n_out = 0;

    for (uint32_t i = 0; i < n; i++)
        n_out += divides(t, by, sym_term_at(t, *a, i));
    if (n_out == 0)
        return 0;
    sym_push(t, sym_int(t, 0));
    for (uint32_t i = 0; i < n; i++)
        if (divides(t, by, sym_term_at(t, *a, i)))
            sym_push(t, term_over(t, sym_term_at(t, *a, i), by));
    sym_id out = sym_take_sum(t, base);

    sym_push(t, sym_int(t, 0));
    for (uint32_t i = 0; i < n; i++)
        if (!divides(t, by, sym_term_at(t, *a, i)))
            sym_push(t, sym_term_at(t, *a, i));
    *a = sym_take_sum(t, base);
    return out;
}

static bool are_integers(const struct symtab *t, sym_id a, sym_id b)
{
    return sym_type(t, a) == SYM_T_INT && sym_type(t, b) == SYM_T_INT;
}

static sym_id floordiv(struct symtab *t, sym_id a, sym_id b, bool deep)
{
    sym_id out = a && b ? sym_int(t, 0) : 0, f;
    int64_t c = 0, exp;
    uint64_t g;

    if (out == 0)
        return 0;
    /* Each round makes the operands smaller. */
    while (a && b && are_integers(t, a, b) && !sym_is_int(t, b, 0) &&
           !(sym_is(t, a, SYM_INT) && sym_is(t, b, SYM_INT))) {
        sym_id moved, product;

        if (sym_is_int(t, a, 0))
            return out;
        if (a == b)
            return sym_add(t, out, sym_int(t, 1));
        if (sym_is_int(t, b, 1) || sym_is_int(t, b, -1))
            return sym_add(t, out, sym_mul(t, a, b));
        if (sym_is(t, a, SYM_FLOORDIV) && sym_nonneg(t, b) &&
            (product = sym_mul(t, sym_arg(t, a, 1), b)) != 0) {
            a = sym_arg(t, a, 0);
            b = product;
        } else if (sym_as_int(t, b, &c) && (moved = take_quotients(t, &a, c)) != 0) {
            out = sym_add(t, out, moved);
        } else if ((g = gcd(content(t, a), content(t, b))) > 1) {
            a = sum_over(t, a, (int64_t)g);
            b = sum_over(t, b, (int64_t)g);
        } else if ((f = common_factor(t, a, b, deep, &exp)) != 0) {
            a = sum_without(t, a, f, exp);
            b = sum_without(t, b, f, exp);
        } else {
            break;
        }
    }
    return sym_add(t, out, opaque(t, SYM_FLOORDIV, a, b));
}

sym_id sym_floordiv(struct symtab *t, sym_id a, sym_id b)
{
    return floordiv(t, a, b, false);
}

sym_id sym_floordiv_deep(struct symtab *t, sym_id a, sym_id b)
{
    return floordiv(t, a, b, true);
}

sym_id sym_ceildiv(struct symtab *t, sym_id a, sym_id b)
{
    return sym_floordiv(t, sym_add(t, a, sym_sub(t, b, sym_int(t, 1))), b);
}

/* Is the quotient of a and b a polynomial with integer coefficients? */
static bool divides_all(const struct symtab *t, sym_id a, sym_id b)
{
    struct sym_num by, c;
    sym_id rest = sym_split(t, b, &by);

    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n; i++) {
        sym_split(t, sym_term_at(t, a, i), &c);
        if (c.i % by.i != 0)
            return false;
    }
    for (uint32_t i = 0, n = rest ? sym_n_factors(t, rest) : 0; i < n; i++) {
        int64_t e;
        sym_id f = sym_factor_at(t, rest, i, &e);

        if (power_in_all(t, a, f) < e)
            return false;
    }
    return true;
}

/* 2*s0 + 1 */
static bool is_odd(const struct symtab *t, sym_id a)
{
    bool odd = false;

    for (uint32_t i = 0, n = sym_n_terms(t, a); i < n; i++) {
        struct sym_num c;
        sym_id rest = sym_split(t, sym_term_at(t, a, i), &c);

        if (c.i % 2 != 0 && rest != 0)
            return false;
        odd |= c.i % 2 != 0;
    }
    return odd;
}

sym_id sym_remainder(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    if (a == 0 || b == 0)
        return 0;
    if (are_integers(t, a, b) && !sym_is_int(t, b, 0)) {
        if (sym_is_int(t, a, 0) || a == b || a == sym_neg(t, b))
            return sym_int(t, 0);
        if (!sym_is(t, b, SYM_ADD) ? divides_all(t, a, b) : power_in_all(t, a, b) > 0)
            return sym_int(t, 0);
        if (sym_is_int(t, b, 2) && is_odd(t, a))
            return sym_int(t, 1);
    }
    return opaque(t, op, a, b);
}

sym_id sym_mod(struct symtab *t, sym_id a, sym_id b)
{
    bool plain = sym_nonneg(t, a) && sym_nonneg(t, b);

    return sym_remainder(t, plain ? SYM_MOD : SYM_PYMOD, a, b);
}
