/* Prints expressions like sympy's printer, with the functions of PyTorch. Terms and factors are
 * stored in the order of printing; this adds parentheses and numbers.
 *
 * An operand is put in parentheses if its precedence is not above that of its surroundings. PyTorch
 * gives its functions low precedences, hence 2*((s0//2)) and s0 - (PythonMod(u0, 2)).
 */
#include "sym/sym.h"

#include <stdio.h>
#include <stdlib.h>

enum { PREC_ADD = 40, PREC_MUL = 50, PREC_ATOM = 1000 };

static void print(const struct symtab *t, sym_id id, struct buf *out);

/* A function with a low precedence. */
static bool is_loose(const struct sym_node *v)
{
    return sym_rows[v->op].rank == 41 && sym_rows[v->op].prec < PREC_MUL;
}

static bool is_negative(const struct sym_node *v)
{
    return (v->op == SYM_INT && v->u.i < 0) || (v->op == SYM_FLOAT && v->u.f < 0);
}

static int precedence(const struct symtab *t, sym_id id)
{
    const struct sym_node *v = sym_at(t, id);

    if (v->op == SYM_MUL) {
        for (uint32_t i = 0; i < v->n_arg; i++)
            if (is_loose(sym_at(t, sym_arg(t, id, i))))
                return PREC_MUL;
        return is_negative(sym_at(t, sym_arg(t, id, 0))) ? PREC_ADD : PREC_MUL;
    }
    return is_negative(v) ? PREC_ADD : sym_rows[v->op].prec;
}

static void print_within(const struct symtab *t, sym_id id, int level, struct buf *out)
{
    bool loose = precedence(t, id) <= level;

    if (loose)
        buf_chr(out, '(');
    print(t, id, out);
    if (loose)
        buf_chr(out, ')');
}

/* The fewest digits that read back the same, at least one after the point, formatted as sympy does:
 * 0.0001, 1.0e-5, 100000000000000.0, 1.0e+15. min_digits pads with zeros. */
static void print_float(double v, int min_digits, struct buf *out)
{
    char sci[40], digits[20];
    int n = 0, prec = 0;

    do {
        snprintf(sci, sizeof(sci), "%.*e", prec, v);
    } while (strtod(sci, NULL) != v && ++prec < 17);
    const char *p = sci;
    if (*p == '-') {
        buf_chr(out, '-');
        p++;
    }
    for (; *p != 'e'; p++)
        if (*p >= '0' && *p <= '9')
            digits[n++] = *p;
    int exp10 = atoi(p + 1);
    bool fixed = exp10 > -5 && exp10 < 15;
    int whole = fixed ? exp10 + 1 : 1; /* digits before the point */
    int last = n > min_digits ? n : min_digits;

    if (last < whole + 1)
        last = whole + 1;
    if (min_digits > 0 && last > min_digits && n <= min_digits)
        last = min_digits; /* no zero after the point if the digits end there */
    if (whole <= 0) {
        buf_str(out, "0.");
        buf_fill(out, '0', (size_t)-whole);
        whole = -1;
    }
    for (int i = 0; i < last || i < whole; i++) {
        if (i == whole)
            buf_chr(out, '.');
        buf_chr(out, i < n ? digits[i] : '0');
    }
    if (last == whole)
        buf_chr(out, '.');
    if (!fixed)
        buf_printf(out, "e%+d", exp10);
}

static void print_args(const struct symtab *t, sym_id id, struct buf *out)
{
    buf_chr(out, '(');
    for (uint32_t i = 0, n = sym_at(t, id)->n_arg; i < n; i++) {
        if (i > 0)
            buf_str(out, ", ");
        print(t, sym_arg(t, id, i), out);
    }
    buf_chr(out, ')');
}

/* Operands with a sign between them. */
static void print_infix(const struct symtab *t, sym_id id, const char *between, int level,
                        struct buf *out)
{
    for (uint32_t i = 0, n = sym_at(t, id)->n_arg; i < n; i++) {
        if (i > 0)
            buf_str(out, between);
        print_within(t, sym_arg(t, id, i), level, out);
    }
}

/* A product without its minus. */
static void print_factors(const struct symtab *t, sym_id id, struct buf *out)
{
    const struct sym_node *v = sym_at(t, id);
    int level = precedence(t, id);
    bool first = true;

    for (uint32_t i = 0; i < v->n_arg; i++) {
        sym_id f = sym_arg(t, id, i);
        const struct sym_node *w = sym_at(t, f);

        if (!first)
            buf_chr(out, '*');
        first = false;
        if (i == 0 && w->op == SYM_INT) {
            if (w->u.i == -1)
                first = true;
            else
                buf_int(out, w->u.i < 0 ? -w->u.i : w->u.i);
        } else if (i == 0 && w->op == SYM_FLOAT) {
            print_float(w->u.f < 0 ? -w->u.f : w->u.f, 0, out);
        } else {
            /* A fraction would absorb what precedes it. */
            print_within(t, f, w->op == SYM_DIV ? PREC_MUL : level, out);
        }
    }
}

static void print_product(const struct symtab *t, sym_id id, struct buf *out)
{
    if (is_negative(sym_at(t, sym_arg(t, id, 0))))
        buf_chr(out, '-');
    print_factors(t, id, out);
}

static void print_sum(const struct symtab *t, sym_id id, struct buf *out)
{
    for (uint32_t i = 0, n = sym_at(t, id)->n_arg; i < n; i++) {
        sym_id term = sym_arg(t, id, i);
        const struct sym_node *v = sym_at(t, term);
        bool minus = is_negative(v->rest ? sym_at(t, sym_arg(t, term, 0)) : v);

        if (i > 0)
            buf_str(out, minus ? " - " : " + ");
        else if (minus)
            buf_chr(out, '-');
        if (!minus)
            print_within(t, term, PREC_ADD - 1, out);
        else if (v->op == SYM_INT)
            buf_int(out, -v->u.i);
        else if (v->op == SYM_FLOAT)
            print_float(-v->u.f, 0, out);
        else
            print_factors(t, term, out);
    }
}

static void print_relation(const struct symtab *t, sym_id id, const char *between, struct buf *out)
{
    print_infix(t, id, between, sym_rows[SYM_LT].prec, out);
}

/* Recursion is as deep as the expression, at most SYM_MAX_DEPTH. */
static void print(const struct symtab *t, sym_id id, struct buf *out)
{
    const struct sym_node *v = sym_at(t, id);

    switch (v->op) {
    case SYM_INT: buf_int(out, v->u.i); break;
    case SYM_FLOAT: print_float(v->u.f, 0, out); break;
    case SYM_BOOL: buf_str(out, v->u.i ? "True" : "False"); break;
    case SYM_SYMBOL: buf_str(out, str_text(&t->names, v->u.name)); break;
    case SYM_ADD: print_sum(t, id, out); break;
    case SYM_MUL: print_product(t, id, out); break;
    case SYM_POW: print_infix(t, id, "**", sym_rows[SYM_POW].prec, out); break;
    case SYM_DIV:
        print_within(t, sym_arg(t, id, 0), PREC_MUL - 1, out);
        buf_chr(out, '/');
        print_within(t, sym_arg(t, id, 1), PREC_MUL, out);
        break;
    case SYM_FLOORDIV:
        buf_chr(out, '(');
        print_infix(t, id, "//", PREC_ATOM - 1, out);
        buf_chr(out, ')');
        break;
    case SYM_LT: print_relation(t, id, " < ", out); break;
    case SYM_LE: print_relation(t, id, " <= ", out); break;
    case SYM_GT: print_relation(t, id, " > ", out); break;
    case SYM_GE: print_relation(t, id, " >= ", out); break;
    case SYM_AND: print_infix(t, id, " & ", sym_rows[SYM_BITAND].prec, out); break;
    case SYM_OR: print_infix(t, id, " | ", sym_rows[SYM_BITOR].prec, out); break;
    case SYM_NOT:
        buf_chr(out, '~');
        print_within(t, sym_arg(t, id, 0), sym_rows[SYM_NOT].prec, out);
        break;
    case SYM_CALL:
        buf_str(out, str_text(&t->names, v->u.name));
        print_args(t, id, out);
        break;
    default:
        buf_str(out, sym_rows[v->op].name);
        print_args(t, id, out);
        break;
    }
}

void sym_print(const struct symtab *t, sym_id id, struct buf *out)
{
    if (id == 0)
        return;
    if (sym_is(t, id, SYM_FLOAT) && sym_at(t, id)->u.f != 0)
        print_float(sym_at(t, id)->u.f, 15, out); /* a number alone is shown with all digits */
    else
        print(t, id, out);
}
