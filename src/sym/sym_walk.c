/* Rebuilds expressions from the leaves up: with symbols replaced, or in a form for comparing. */
#include "sym/sym.h"

/* With more terms, or a higher power of a sum, a product stays as it is. */
#define MAX_EXPANDED 256
#define MAX_POWER 16

struct walk {
    struct symtab *t;
    uint32_t mark; /* this walk's: operators made on the way have their own */
    /* NULL means the form for comparing */
    sym_id (*fn)(void *ctx, sym_id symbol, const char *name);
    void *ctx;
};

/* ---- The form for comparing ------------------------------------------------------------------ */

/* a*b for a sum a and any b, every term by every term; 0 if there are too many. */
static sym_id multiply_out(struct symtab *t, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len, n_a = sym_n_terms(t, a), n_b = sym_n_terms(t, b);

    if ((uint64_t)n_a * n_b > MAX_EXPANDED)
        return 0;
    for (uint32_t i = 0; i < n_a; i++)
        for (uint32_t k = 0; k < n_b; k++)
            sym_push(t, sym_mul(t, sym_term_at(t, a, i), sym_term_at(t, b, k)));
    return sym_take_sum(t, base);
}

/* A product with its sums multiplied out, as far as the bound allows. */
static sym_id expand(struct symtab *t, sym_id id)
{
    struct sym_num coef;
    sym_id rest, acc;

    if (!sym_is(t, id, SYM_MUL) && !sym_is(t, id, SYM_POW))
        return id;
    rest = sym_split(t, id, &coef);
    acc = sym_number(t, coef);
    for (uint32_t i = 0, n = sym_n_factors(t, rest); i < n && acc != 0; i++) {
        int64_t exp;
        sym_id f = sym_factor_at(t, rest, i, &exp);

        if (!sym_is(t, f, SYM_ADD)) {
            acc = multiply_out(t, acc, sym_pow(t, f, sym_int(t, exp)));
            continue;
        }
        if (exp > MAX_POWER)
            return id;
        for (int64_t e = 0; e < exp && acc != 0; e++)
            acc = multiply_out(t, acc, f);
    }
    return acc != 0 ? acc : id;
}

/* a//by with every coefficient of the rest in 0 .. by - 1. */
static sym_id reduced_floordiv(struct symtab *t, sym_id a, int64_t by)
{
    uint32_t base = t->stack.len, n = sym_n_terms(t, a);
    sym_id quotients[2];

    for (int rest = 0; rest < 2; rest++) {
        sym_push(t, sym_int(t, 0));
        for (uint32_t i = 0; i < n; i++) {
            struct sym_num c;
            sym_id x = sym_split(t, sym_term_at(t, a, i), &c);
            int64_t r = c.i % by < 0 ? c.i % by + by : c.i % by;
            sym_id coef = sym_int(t, rest ? r : (c.i - r) / by);

            sym_push(t, x ? sym_mul(t, coef, x) : coef);
        }
        quotients[rest] = sym_take_sum(t, base);
    }
    return sym_add(t, quotients[0], sym_floordiv_deep(t, quotients[1], sym_int(t, by)));
}

static sym_id normal_floordiv(struct symtab *t, sym_id a, sym_id b)
{
    int64_t by;

    if (a == 0 || b == 0)
        return 0;
    if (sym_type(t, a) == SYM_T_INT && sym_as_int(t, b, &by) && by != 0) {
        if (by < 0)
            return reduced_floordiv(t, sym_neg(t, a), -by);
        return reduced_floordiv(t, a, by);
    }
    return sym_floordiv_deep(t, a, b);
}

/* a % b as a - b*(a//b) */
static sym_id normal_mod(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    sym_id q;

    if (sym_type(t, a) != SYM_T_INT || sym_type(t, b) != SYM_T_INT || sym_is_int(t, b, 0))
        return sym_remainder(t, op, a, b);
    q = normal_floordiv(t, a, b);
    return sym_sub(t, a, q ? expand(t, sym_mul(t, b, q)) : 0);
}

/* For integers: Eq(d, 0), Ne(d, 0) with a positive first coefficient, or d >= 0. */
static sym_id normal_compare(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    sym_id d, one = sym_int(t, 1);
    struct sym_num c;

    if (sym_type(t, a) != SYM_T_INT || sym_type(t, b) != SYM_T_INT || (d = sym_sub(t, a, b)) == 0)
        return sym_compare(t, op, a, b);
    switch (op) {
    case SYM_GE: break;
    case SYM_GT: d = sym_sub(t, d, one); break;
    case SYM_LE: d = sym_neg(t, d); break;
    case SYM_LT: d = sym_sub(t, sym_neg(t, d), one); break;
    default:
        sym_split(t, sym_term_at(t, d, 0), &c);
        if (c.i < 0)
            d = sym_neg(t, d);
        return sym_compare(t, op, d, sym_int(t, 0));
    }
    return d ? sym_compare(t, SYM_GE, d, sym_int(t, 0)) : sym_compare(t, op, a, b);
}

/* op of the operands on the stack, which already have this form. */
static sym_id take_normal(struct symtab *t, enum sym_op op, uint32_t base)
{
    uint32_t n = t->stack.len - base;
    sym_id a = t->stack.at[base], b = n > 1 ? t->stack.at[base + 1] : 0;
    sym_id c = n > 2 ? t->stack.at[base + 2] : 0;
    sym_id id;

    switch (op) {
    case SYM_MUL:
    case SYM_POW: id = sym_take(t, op, base); return id ? expand(t, id) : 0;
    case SYM_FLOORDIV: t->stack.len = base; return normal_floordiv(t, a, b);
    case SYM_MOD:
    case SYM_PYMOD: t->stack.len = base; return normal_mod(t, op, a, b);
    case SYM_MODINDEX:
        t->stack.len = base;
        return normal_mod(t, SYM_PYMOD, normal_floordiv(t, a, b), c);
    case SYM_EQ:
    case SYM_NE:
    case SYM_LT:
    case SYM_LE:
    case SYM_GT:
    case SYM_GE: t->stack.len = base; return normal_compare(t, op, a, b);
    default: return sym_take(t, op, base);
    }
}

/* ---- The walk -------------------------------------------------------------------------------- */

/* Recursion is as deep as the expression; each node is visited once. */
static sym_id rebuild(struct walk *w, sym_id id)
{
    struct symtab *t = w->t;
    uint32_t base = t->stack.len;
    enum sym_op op = (enum sym_op)sym_at(t, id)->op;
    sym_id to = id;

    if (sym_at(t, id)->mark == w->mark)
        return sym_at(t, id)->memo;
    for (uint32_t i = 0, n = sym_at(t, id)->n_arg; i < n; i++) {
        sym_id arg = rebuild(w, sym_arg(t, id, i));

        if (arg == 0) {
            t->stack.len = base;
            return 0;
        }
        sym_push(t, arg);
    }
    if (op == SYM_CALL)
        to = sym_intern(t, op, sym_at(t, id)->u.name, base);
    else if (t->stack.len > base)
        to = w->fn ? sym_take(t, op, base) : take_normal(t, op, base);
    else if (op == SYM_SYMBOL && w->fn)
        to = w->fn(w->ctx, id, str_text(&t->names, sym_at(t, id)->u.name));
    t->node.at[id].mark = w->mark;
    t->node.at[id].memo = to;
    return to;
}

sym_id sym_subst(struct symtab *t, sym_id id,
                 sym_id (*fn)(void *ctx, sym_id symbol, const char *name), void *ctx)
{
    struct walk w = {.t = t, .mark = ++t->mark, .fn = fn, .ctx = ctx};

    return id ? rebuild(&w, id) : 0;
}

sym_id sym_normal(struct symtab *t, sym_id id)
{
    struct walk w = {.t = t, .mark = ++t->mark};

    return id ? rebuild(&w, id) : 0;
}

bool sym_same(struct symtab *t, sym_id a, sym_id b)
{
    if (a == b)
        return a != 0;
    if (a == 0 || b == 0)
        return false;
    sym_id x = sym_normal(t, a), y = sym_normal(t, b);

    return x != 0 && x == y;
}
