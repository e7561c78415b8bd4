/* Sums, products and powers.
 *
 * A sum holds at least two terms, none of them a sum: products with at most one number, in front,
 * and at most one number alone. A product holds at least two factors, none of them a product: a
 * number other than 1, then bases and bases to a constant power above 1, each base once. Both are
 * stored in the order in which they are printed.
 */
#include "sym/sym.h"

#include <math.h>

static void push_term(struct symtab *t, sym_id id, struct sym_num coef)
{
    vec_push(t->mem, &t->term, ((struct sym_term){.id = id, .coef = coef}));
}

static bool is_zero(struct sym_num v)
{
    return v.kind == SYM_T_FLOAT ? v.f == 0 : v.i == 0;
}

static bool is_negative(struct sym_num v)
{
    return v.kind == SYM_T_FLOAT ? v.f < 0 : v.i < 0;
}

static bool is_int_one(struct sym_num v)
{
    return v.kind != SYM_T_FLOAT && v.i == 1;
}

static const struct sym_num float_zero = {.kind = SYM_T_FLOAT, .f = 0};

/* Adds up the coefficients of equal neighbors in t->term. */
static bool merge_terms(struct symtab *t, uint32_t first)
{
    uint32_t n = first;

    for (uint32_t i = first; i < t->term.len; i++) {
        struct sym_term *to = &t->term.at[n], *from = &t->term.at[i];

        if (n > first && to[-1].id == from->id) {
            if (!sym_num_add(&to[-1].coef, from->coef))
                return false;
        } else {
            *to = *from;
            n++;
        }
    }
    t->term.len = n;
    return true;
}

/* coef*rest, where rest is neither a number nor a sum and has no number in front. */
static sym_id scaled(struct symtab *t, struct sym_num coef, sym_id rest)
{
    uint32_t base = t->stack.len;

    if (is_int_one(coef))
        return rest;
    sym_push(t, sym_number(t, coef));
    for (uint32_t i = 0, n = sym_n_factors(t, rest); i < n; i++)
        sym_push(t, sym_is(t, rest, SYM_MUL) ? sym_arg(t, rest, i) : rest);
    sym_id id = sym_intern(t, SYM_MUL, 0, base);
    t->node.at[id].rest = id ? rest : 0;
    return id;
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Splits the operands into t->term and *constant. */
static bool gather_terms(struct symtab *t, uint32_t base, struct sym_num *constant)
{
    for (uint32_t i = base; i < t->stack.len; i++) {
        sym_id id = t->stack.at[i];

        if (id == 0)
            return false;
        for (uint32_t k = 0, n = sym_n_terms(t, id); k < n; k++) {
            struct sym_num coef;
            sym_id rest = sym_split(t, sym_term_at(t, id, k), &coef);

            if (rest != 0)
                push_term(t, rest, coef);
            else if (!sym_num_add(constant, coef))
                return false;
        }
    }
    return true;
}

/* Pushes the terms, the constant last; sympy begins 4 - 2*s0 with the number. False: too large. */
static bool push_sum(struct symtab *t, uint32_t first, struct sym_num constant)
{
    uint32_t base = t->stack.len, n = t->term.len;
    bool has_float = false;

    for (uint32_t i = first; i < n; i++) {
        struct sym_term x = t->term.at[i];

        if (is_zero(x.coef)) {
            if (sym_type(t, x.id) == SYM_T_FLOAT || x.coef.kind == SYM_T_FLOAT)
                sym_num_add(&constant, float_zero); /* the sum stays a float */
            continue;
        }
        sym_id id = scaled(t, x.coef, x.id);
        if (id == 0)
            return false;
        has_float |= sym_type(t, id) == SYM_T_FLOAT;
        sym_push(t, id);
    }
    bool bare = t->stack.len == base;
    if (!bare && is_zero(constant) && (constant.kind != SYM_T_FLOAT || has_float))
        return true;
    sym_push(t, sym_number(t, constant));
    if (t->stack.len - base == 2) {
        sym_id *pair = t->stack.at + base, product = pair[0];
        struct sym_num coef;
        const struct sym_node *v = sym_at(t, product);

        if (v->rest != 0 && v->n_arg == 2 && !is_negative(constant) && !is_zero(constant) &&
            sym_as_number(t, sym_arg(t, product, 0), &coef) && is_negative(coef)) {
            pair[0] = pair[1];
            pair[1] = product;
        }
    }
    return true;
}

sym_id sym_take_sum(struct symtab *t, uint32_t base)
{
    uint32_t first = t->term.len;
    struct sym_num constant = sym_num_int(0);
    sym_id id = 0;

    if (t->stack.len == base + 1) {
        id = t->stack.at[base];
        t->stack.len = base;
        return id;
    }
    bool ok = gather_terms(t, base, &constant);
    t->stack.len = base;
    if (ok) {
        sym_sort(t, first, sym_order_terms);
        ok = merge_terms(t, first) && push_sum(t, first, constant);
    }
    if (ok)
        id = t->stack.len == base + 1 ? t->stack.at[base] : sym_intern(t, SYM_ADD, 0, base);
    t->term.len = first;
    t->stack.len = base;
    return id;
}

/* ---- Products -------------------------------------------------------------------------------- */

static bool gather_factors(struct symtab *t, uint32_t base, struct sym_num *coef, bool *has_float)
{
    for (uint32_t i = base; i < t->stack.len; i++) {
        struct sym_num c;

        if (t->stack.at[i] == 0)
            return false;
        *has_float |= sym_type(t, t->stack.at[i]) == SYM_T_FLOAT;
        sym_id rest = sym_split(t, t->stack.at[i], &c);

        if (!sym_num_mul(coef, c))
            return false;
        for (uint32_t k = 0, n = rest ? sym_n_factors(t, rest) : 0; k < n; k++) {
            int64_t exp;
            sym_id factor = sym_factor_at(t, rest, k, &exp);

            push_term(t, factor, sym_num_int(exp));
        }
    }
    return true;
}

/* coef times each term of a sum. */
static sym_id distribute(struct symtab *t, struct sym_num coef, sym_id sum)
{
    uint32_t base = t->stack.len;

    for (uint32_t i = 0, n = sym_n_terms(t, sum); i < n; i++) {
        struct sym_num c;
        sym_id rest = sym_split(t, sym_term_at(t, sum, i), &c);

        if (!sym_num_mul(&c, coef)) {
            t->stack.len = base;
            return 0;
        }
        sym_push(t, rest && !is_zero(c) ? scaled(t, c, rest) : sym_number(t, c));
    }
    return sym_take_sum(t, base);
}

static sym_id raised(struct symtab *t, sym_id id, int64_t exp)
{
    uint32_t base = t->stack.len;

    if (exp == 1)
        return id;
    sym_push(t, id);
    sym_push(t, sym_int(t, exp));
    return sym_intern(t, SYM_POW, 0, base);
}

/* The product of t->term from first on, and coef. */
static sym_id build_product(struct symtab *t, uint32_t first, struct sym_num coef)
{
    uint32_t base = t->stack.len, n = t->term.len;

    if (n == first)
        return sym_number(t, coef);
    for (uint32_t i = first; i < n; i++) {
        sym_id id = raised(t, t->term.at[i].id, t->term.at[i].coef.i);

        if (id == 0)
            return 0; /* the caller pops what was pushed */
        sym_push(t, id);
    }
    sym_id rest = n == first + 1 ? t->stack.at[base] : sym_intern(t, SYM_MUL, 0, base);
    t->stack.len = base;
    if (rest == 0)
        return 0;
    if (sym_is(t, rest, SYM_ADD) && !is_int_one(coef))
        return distribute(t, coef, rest);
    return scaled(t, coef, rest);
}

sym_id sym_take_product(struct symtab *t, uint32_t base)
{
    uint32_t first = t->term.len;
    struct sym_num coef = sym_num_int(1);
    bool has_float = false;
    sym_id id = 0;

    if (t->stack.len == base + 1) {
        id = t->stack.at[base];
        t->stack.len = base;
        return id;
    }
    bool ok = gather_factors(t, base, &coef, &has_float);
    t->stack.len = base;
    if (ok && is_zero(coef)) {
        id = sym_number(t, has_float ? float_zero : sym_num_int(0));
    } else if (ok) {
        sym_sort(t, first, sym_order);
        if (merge_terms(t, first))
            id = build_product(t, first, coef);
    }
    t->term.len = first;
    t->stack.len = base;
    return id;
}

/* ---- Powers ---------------------------------------------------------------------------------- */

static sym_id number_power(struct symtab *t, struct sym_num x, int64_t exp)
{
    struct sym_num r = sym_num_int(1);

    if (x.kind == SYM_T_FLOAT)
        return sym_float(t, pow(x.f, (double)exp));
    for (; exp > 0; exp /= 2) {
        if (exp % 2 == 1 && !sym_num_mul(&r, x))
            return 0;
        if (exp > 1 && !sym_num_mul(&x, x))
            return 0;
    }
    return sym_number(t, r);
}

/* One factor to the power of exp > 1. */
static sym_id factor_power(struct symtab *t, sym_id id, int64_t exp)
{
    struct sym_num c;
    int64_t e;

    if (sym_as_number(t, id, &c))
        return number_power(t, c, exp);
    id = sym_factor_at(t, id, 0, &e);
    if (!size_mul(e, exp, &e))
        return 0;
    return raised(t, id, e);
}

static sym_id constant_power(struct symtab *t, sym_id a, int64_t exp)
{
    uint32_t base = t->stack.len;

    if (exp == 0) /* also of zero, as in Python */
        return sym_type(t, a) == SYM_T_FLOAT ? sym_float(t, 1) : sym_int(t, 1);
    if (exp == 1)
        return a;
    if (!sym_is(t, a, SYM_MUL))
        return factor_power(t, a, exp);
    for (uint32_t i = 0, n = sym_at(t, a)->n_arg; i < n; i++)
        sym_push(t, factor_power(t, sym_arg(t, a, i), exp));
    return sym_take_product(t, base);
}

sym_id sym_pow(struct symtab *t, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len;
    int64_t exp;

    if (a == 0 || b == 0)
        return 0;
    if (sym_as_int(t, b, &exp)) {
        if (exp >= 0)
            return constant_power(t, a, exp);
        return sym_make2(t, SYM_DIV, sym_int(t, 1), constant_power(t, a, -exp));
    }
    sym_push(t, a);
    sym_push(t, b);
    sym_id id = sym_fold(t, SYM_POW, base);
    if (id == 0)
        id = sym_intern(t, SYM_POW, 0, base);
    t->stack.len = base;
    return id;
}

/* ---- By two ---------------------------------------------------------------------------------- */

sym_id sym_add(struct symtab *t, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len;

    sym_push(t, a);
    sym_push(t, b);
    return sym_take_sum(t, base);
}

sym_id sym_mul(struct symtab *t, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len;

    sym_push(t, a);
    sym_push(t, b);
    return sym_take_product(t, base);
}

sym_id sym_neg(struct symtab *t, sym_id a)
{
    return sym_mul(t, sym_int(t, -1), a);
}

sym_id sym_sub(struct symtab *t, sym_id a, sym_id b)
{
    return sym_add(t, a, sym_neg(t, b));
}
