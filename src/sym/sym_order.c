/* The order in which sympy prints: factors in a product, terms in a sum, operands of Max or And.
 *
 * Everything is compared by, in this order: the class of the expression without its leading number
 * and its exponent, its operands (fewer first), the exponent, the number. Symbols compare by name,
 * byte by byte. The order depends only on the expressions, never on ids, so it is the same in every
 * table; and because equal expressions have one id, a comparison follows one path of both trees.
 */
#include "sym/sym.h"

struct key {
    enum sym_op op;
    const char *class_name; /* with the rank: the class */
    uint8_t rank;
    const sym_id *args;
    uint32_t n_arg;
    sym_id atom;         /* for a symbol or a number: itself */
    sym_id exp;          /* 0 means one */
    struct sym_num coef; /* the leading number, or the number itself */
};

static struct key key_of(const struct symtab *t, sym_id id)
{
    struct key k = {.coef = sym_num_int(1)};
    const struct sym_node *v = sym_at(t, id);
    uint32_t skip = 0;

    if (v->rest != 0) {
        sym_as_number(t, sym_arg(t, id, 0), &k.coef);
        if (v->n_arg > 2)
            skip = 1; /* a separate product */
        else
            v = sym_at(t, v->rest);
    }
    if (v->op == SYM_POW) {
        k.exp = t->arg.at[v->first_arg + 1];
        v = sym_at(t, t->arg.at[v->first_arg]);
    }
    k.op = (enum sym_op)v->op;
    k.rank = sym_rows[v->op].rank;
    k.class_name = sym_rows[v->op].class_name;
    if (v->op == SYM_CALL)
        k.class_name = str_text(&t->names, v->u.name);
    if (v->n_arg > 0) {
        k.args = t->arg.at + v->first_arg + skip;
        k.n_arg = v->n_arg - skip;
    } else {
        k.atom = (sym_id)(v - t->node.at);
    }
    return k;
}

static int sign(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

static int order_numbers(struct sym_num a, struct sym_num b)
{
    if (a.kind != SYM_T_FLOAT && b.kind != SYM_T_FLOAT)
        return sign(a.i, b.i);
    double x = a.kind == SYM_T_FLOAT ? a.f : (double)a.i;
    double y = b.kind == SYM_T_FLOAT ? b.f : (double)b.i;

    if (x != y)
        return x < y ? -1 : 1;
    if (a.kind != b.kind)
        return a.kind == SYM_T_FLOAT ? 1 : -1; /* 1 before 1.0; sympy treats them as equal */
    return 0;
}

static int order_atoms(const struct symtab *t, sym_id a, sym_id b)
{
    const struct sym_node *x = sym_at(t, a), *y = sym_at(t, b);

    if (x->op == SYM_SYMBOL)
        return strcmp(str_text(&t->names, x->u.name), str_text(&t->names, y->u.name));
    struct sym_num v, w;

    sym_as_number(t, a, &v);
    sym_as_number(t, b, &w);
    return order_numbers(v, w);
}

static int order_exps(const struct symtab *t, sym_id a, sym_id b)
{
    struct sym_num one = sym_num_int(1), v;

    if (a == b)
        return 0;
    if (a != 0 && b != 0)
        return sym_order(t, a, b);
    if (a == 0) /* one, and numbers come before everything else */
        return sym_as_number(t, b, &v) ? order_numbers(one, v) : -1;
    return sym_as_number(t, a, &v) ? order_numbers(v, one) : 1;
}

int sym_order(const struct symtab *t, sym_id a, sym_id b)
{
    if (a == b)
        return 0;
    struct key x = key_of(t, a), y = key_of(t, b);
    int c;

    if (x.rank != y.rank)
        return x.rank < y.rank ? -1 : 1;
    c = strcmp(x.class_name, y.class_name);
    if (c != 0)
        return c;
    if (x.n_arg != y.n_arg)
        return x.n_arg < y.n_arg ? -1 : 1;
    if (x.atom != y.atom) {
        c = order_atoms(t, x.atom, y.atom);
        if (c != 0)
            return c;
    }
    for (uint32_t i = 0; i < x.n_arg; i++) {
        c = sym_order(t, x.args[i], y.args[i]);
        if (c != 0)
            return c;
    }
    c = order_exps(t, x.exp, y.exp);
    return c != 0 ? c : order_numbers(x.coef, y.coef);
}

/* Sums are printed by decreasing exponents of the first base that differs. a and b have no
 * numbers. */
int sym_order_terms(const struct symtab *t, sym_id a, sym_id b)
{
    if (a == b)
        return 0;
    uint32_t n_a = sym_n_factors(t, a), n_b = sym_n_factors(t, b);

    for (uint32_t i = 0; i < n_a && i < n_b; i++) {
        int64_t e, f;
        sym_id x = sym_factor_at(t, a, i, &e), y = sym_factor_at(t, b, i, &f);

        if (x != y)
            return sym_order(t, x, y);
        if (e != f)
            return e > f ? -1 : 1;
    }
    return n_a > n_b ? -1 : 1;
}

int sym_order_logic(const struct symtab *t, sym_id a, sym_id b)
{
    uint32_t x = sym_at(t, a)->size, y = sym_at(t, b)->size;

    if (x != y)
        return x < y ? -1 : 1;
    return sym_order(t, a, b);
}

/* ---- Sorting ------------------------------------------------------------------------------------
 *
 * Usually few or nearly sorted; the heap is for the rest. qsort() would need a context, and may
 * allocate memory.
 */

static void sift(const struct symtab *t, struct sym_term *a, uint32_t at, uint32_t n,
                 int (*order)(const struct symtab *, sym_id, sym_id))
{
    for (uint32_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && order(t, a[child].id, a[child + 1].id) < 0)
            child++;
        if (order(t, a[at].id, a[child].id) >= 0)
            return;
        struct sym_term swap = a[at];

        a[at] = a[child];
        a[child] = swap;
    }
}

void sym_sort(struct symtab *t, uint32_t first,
              int (*order)(const struct symtab *t, sym_id a, sym_id b))
{
    uint32_t n = t->term.len - first;
    uint64_t moves = 0;

    if (n < 2)
        return;
    struct sym_term *a = t->term.at + first;

    for (uint32_t i = 1; i < n && moves <= 8 * (uint64_t)n; i++) {
        struct sym_term x = a[i];
        uint32_t k = i;

        for (; k > 0 && order(t, a[k - 1].id, x.id) > 0; k--, moves++)
            a[k] = a[k - 1];
        a[k] = x;
    }
    if (moves <= 8 * (uint64_t)n)
        return;
    for (uint32_t i = n / 2; i-- > 0;)
        sift(t, a, i, n, order);
    for (uint32_t i = n; i-- > 1;) {
        struct sym_term swap = a[0];

        a[0] = a[i];
        a[i] = swap;
        sift(t, a, 0, i, order);
    }
}
