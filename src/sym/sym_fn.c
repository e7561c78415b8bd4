/* Everything except sums, products and divisions: extremes, comparisons, logic, conversions; and
 * the two constructors that take any operator, by number or by name.
 */
#include "sym/sym.h"

/* ---- Min, Max, And, Or: flat, sorted, each operand once -------------------------------------- */

/* Moves the operands on the stack to t->term, with those of nested `op` in their place. */
static bool gather(struct symtab *t, enum sym_op op, uint32_t base)
{
    bool ok = true;

    for (uint32_t i = base; i < t->stack.len; i++) {
        sym_id id = t->stack.at[i];
        bool nested = id != 0 && sym_is(t, id, op);

        ok &= id != 0;
        for (uint32_t k = 0, n = nested ? sym_at(t, id)->n_arg : 1; k < n; k++) {
            sym_id operand = nested ? sym_arg(t, id, k) : id;

            vec_push(t->mem, &t->term, ((struct sym_term){.id = operand}));
        }
    }
    t->stack.len = base;
    return ok;
}

/* Pushes the terms from first on to the stack, sorted and without repetition. */
static void push_different(struct symtab *t, uint32_t first)
{
    for (uint32_t i = first; i < t->term.len; i++)
        if (i == first || t->term.at[i].id != t->term.at[i - 1].id)
            sym_push(t, t->term.at[i].id);
    t->term.len = first;
}

static sym_id take_lattice(struct symtab *t, enum sym_op op, uint32_t base)
{
    if (t->stack.len == base + 1) {
        t->stack.len = base;
        return t->stack.at[base];
    }
    return sym_intern(t, op, 0, base);
}

/* Leaves one integer and one float. */
static void fold_extreme(struct symtab *t, enum sym_op op, uint32_t first)
{
    uint32_t n = first;
    int64_t extreme = 0;
    double extreme_f = 0;
    bool has = false, has_f = false;

    for (uint32_t i = first; i < t->term.len; i++) {
        const struct sym_node *v = sym_at(t, t->term.at[i].id);

        if (v->op == SYM_INT || v->op == SYM_BOOL) {
            if (!has || (op == SYM_MAX ? v->u.i > extreme : v->u.i < extreme))
                extreme = v->u.i;
            has = true;
        } else if (v->op == SYM_FLOAT) {
            if (!has_f || (op == SYM_MAX ? v->u.f > extreme_f : v->u.f < extreme_f))
                extreme_f = v->u.f;
            has_f = true;
        } else {
            t->term.at[n++] = t->term.at[i];
        }
    }
    t->term.len = n;
    /* Only PyTorch's rule, so that the result looks as PyTorch prints it. */
    if (has && extreme == 0 && n == first + 1 && sym_nonneg(t, t->term.at[first].id)) {
        if (op == SYM_MAX)
            has = false; /* Max(0, s0) */
        else
            t->term.len = first; /* Min(0, s0) */
    }
    if (has)
        vec_push(t->mem, &t->term, ((struct sym_term){.id = sym_int(t, extreme)}));
    if (has_f)
        vec_push(t->mem, &t->term, ((struct sym_term){.id = sym_float(t, extreme_f)}));
}

sym_id sym_take_extreme(struct symtab *t, enum sym_op op, uint32_t base)
{
    uint32_t first = t->term.len;

    if (!gather(t, op, base)) {
        t->term.len = first;
        return 0;
    }
    fold_extreme(t, op, first);
    sym_sort(t, first, sym_order);
    push_different(t, first);
    return take_lattice(t, op, base);
}

static sym_id opposite(struct symtab *t, sym_id a);

sym_id sym_take_logic(struct symtab *t, enum sym_op op, uint32_t base)
{
    uint32_t first = t->term.len, n = first;
    bool ok = gather(t, op, base), decided = false;

    for (uint32_t i = first; ok && i < t->term.len; i++) {
        sym_id id = t->term.at[i].id;

        ok = sym_type(t, id) == SYM_T_BOOL;
        if (!sym_is(t, id, SYM_BOOL))
            t->term.at[n++] = t->term.at[i];
        else if (sym_at(t, id)->u.i == (op == SYM_OR))
            decided = true;
    }
    t->term.len = n;
    if (!ok || decided) {
        t->term.len = first;
        return ok ? sym_bool(t, op == SYM_OR) : 0;
    }
    sym_sort(t, first, sym_order_logic);
    push_different(t, first);
    if (t->stack.len == base)
        return sym_bool(t, op == SYM_AND);
    /* x & ~x; an operand is the opposite of at most one other. */
    t->mark++;
    for (uint32_t i = base; i < t->stack.len; i++)
        t->node.at[t->stack.at[i]].mark = t->mark;
    for (uint32_t i = base, end = t->stack.len; i < end; i++) {
        sym_id id = opposite(t, t->stack.at[i]);

        if (id != 0 && sym_at(t, id)->mark == t->mark) {
            t->stack.len = base;
            return sym_bool(t, op == SYM_OR);
        }
    }
    return take_lattice(t, op, base);
}

/* ---- Comparisons and Not --------------------------------------------------------------------- */

static enum sym_op inverse(enum sym_op op)
{
    switch (op) {
    case SYM_EQ: return SYM_NE;
    case SYM_NE: return SYM_EQ;
    case SYM_LT: return SYM_GE;
    case SYM_LE: return SYM_GT;
    case SYM_GT: return SYM_LE;
    case SYM_GE: return SYM_LT;
    default: return SYM_NONE;
    }
}

/* The opposite of a comparison of integers (a float may be NaN, which compares with nothing), or of
 * a Not; 0 if it has no shorter form. Nothing is decided here: the sides are those of an undecided
 * comparison. */
static sym_id opposite(struct symtab *t, sym_id a)
{
    uint32_t base = t->stack.len;
    enum sym_op op = inverse((enum sym_op)sym_at(t, a)->op);

    if (sym_is(t, a, SYM_NOT))
        return sym_arg(t, a, 0);
    if (op == SYM_NONE || sym_type(t, sym_arg(t, a, 0)) != SYM_T_INT ||
        sym_type(t, sym_arg(t, a, 1)) != SYM_T_INT)
        return 0;
    sym_push(t, sym_arg(t, a, 0));
    sym_push(t, sym_arg(t, a, 1));
    return sym_intern(t, op, 0, base);
}

sym_id sym_not(struct symtab *t, sym_id a)
{
    uint32_t base = t->stack.len;
    sym_id id;

    if (sym_type(t, a) != SYM_T_BOOL)
        return 0;
    if (sym_is(t, a, SYM_BOOL))
        return sym_bool(t, !sym_at(t, a)->u.i);
    id = opposite(t, a);
    if (id != 0)
        return id;
    sym_push(t, a);
    return sym_intern(t, SYM_NOT, 0, base);
}

enum { UNDECIDED = -1 };

/* The result of a op b for every integer, from d = a - b. */
static int decide(struct symtab *t, enum sym_op op, sym_id d)
{
    int64_t v;
    sym_id less = sym_neg(t, d);
    bool above, below, at_least, at_most; /* d > 0, d < 0, d >= 0, d <= 0 */

    if (sym_as_int(t, d, &v)) {
        above = v > 0;
        below = v < 0;
        at_least = !below;
        at_most = !above;
    } else {
        at_least = sym_nonneg(t, d);
        at_most = sym_nonneg(t, less);
        above = sym_nonneg(t, sym_sub(t, d, sym_int(t, 1)));
        below = sym_nonneg(t, sym_sub(t, less, sym_int(t, 1)));
    }
    switch (op) {
    case SYM_EQ: return at_least && at_most ? 1 : above || below ? 0 : UNDECIDED;
    case SYM_NE: return above || below ? 1 : at_least && at_most ? 0 : UNDECIDED;
    case SYM_LT: return below ? 1 : at_least ? 0 : UNDECIDED;
    case SYM_LE: return at_most ? 1 : above ? 0 : UNDECIDED;
    case SYM_GT: return above ? 1 : at_most ? 0 : UNDECIDED;
    case SYM_GE: return at_least ? 1 : below ? 0 : UNDECIDED;
    default: return UNDECIDED;
    }
}

sym_id sym_compare(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    uint32_t base = t->stack.len;
    sym_id d, id;

    if (a == 0 || b == 0)
        return 0;
    if (sym_type(t, a) == SYM_T_INT && sym_type(t, b) == SYM_T_INT && (d = sym_sub(t, a, b)) != 0) {
        int known = decide(t, op, d);

        if (known != UNDECIDED)
            return sym_bool(t, known);
    }
    sym_push(t, a);
    sym_push(t, b);
    id = sym_fold(t, op, base);
    if (id == 0)
        id = sym_intern(t, op, 0, base);
    t->stack.len = base;
    return id;
}

/* ---- The rest -------------------------------------------------------------------------------- */

sym_id sym_truediv(struct symtab *t, sym_id a, sym_id b)
{
    bool ints = sym_type(t, a) == SYM_T_INT && sym_type(t, b) == SYM_T_INT;

    return sym_make2(t, ints ? SYM_INTDIV : SYM_FLOATDIV, a, b);
}

/* A Where, an Abs or a conversion whose value is one of its operands; 0 otherwise. */
static sym_id shortcut(const struct symtab *t, enum sym_op op, const sym_id *args)
{
    enum sym_type type = sym_type(t, args[0]);

    switch (op) {
    case SYM_WHERE:
        return !sym_is(t, args[0], SYM_BOOL) ? 0 : args[sym_at(t, args[0])->u.i ? 1 : 2];
    case SYM_ABS: return sym_nonneg(t, args[0]) ? args[0] : 0;
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_TRUNC:
    case SYM_ROUND:
    case SYM_CEILING:
    case SYM_FLOORING: return type == SYM_T_INT ? args[0] : 0;
    case SYM_TOFLOAT: return type == SYM_T_FLOAT ? args[0] : 0;
    default: return 0;
    }
}

/* Abs(-2*u0) is 2*Abs(u0). */
static sym_id abs_of_multiple(struct symtab *t, sym_id a)
{
    struct sym_num c;
    sym_id rest = sym_split(t, a, &c);

    if (rest == 0 || rest == a || c.kind == SYM_T_FLOAT)
        return 0;
    return sym_mul(t, sym_int(t, c.i < 0 ? -c.i : c.i), sym_make1(t, SYM_ABS, rest));
}

static sym_id take_function(struct symtab *t, enum sym_op op, uint32_t base)
{
    sym_id *args = t->stack.at + base;
    int64_t exp;
    sym_id id = shortcut(t, op, args);

    if (op == SYM_POWNAT && sym_as_int(t, args[1], &exp) && exp >= 0)
        id = sym_pow(t, args[0], args[1]);
    else if (op == SYM_MODINDEX && sym_is_int(t, args[2], 1))
        id = sym_int(t, 0);
    else if (op == SYM_ABS && id == 0)
        id = abs_of_multiple(t, args[0]);
    if (id == 0)
        id = sym_fold(t, op, base);
    if (id == 0)
        id = sym_intern(t, op, 0, base);
    t->stack.len = base;
    return id;
}

sym_id sym_take(struct symtab *t, enum sym_op op, uint32_t base)
{
    const struct sym_row *row = &sym_rows[op];
    uint32_t n = t->stack.len - base;
    bool ok = n >= row->min && (row->max == 0 || n <= row->max);

    for (uint32_t i = base; i < t->stack.len; i++)
        ok &= t->stack.at[i] != 0;
    if (!ok) {
        t->stack.len = base;
        return 0;
    }
    sym_id a = t->stack.at[base], b = n > 1 ? t->stack.at[base + 1] : 0;

    switch (op) {
    case SYM_ADD: return sym_take_sum(t, base);
    case SYM_MUL: return sym_take_product(t, base);
    case SYM_MIN:
    case SYM_MAX: return sym_take_extreme(t, op, base);
    case SYM_AND:
    case SYM_OR: return sym_take_logic(t, op, base);
    case SYM_POW:
    case SYM_FLOORDIV:
    case SYM_MOD:
    case SYM_PYMOD:
    case SYM_EQ:
    case SYM_NE:
    case SYM_LT:
    case SYM_LE:
    case SYM_GT:
    case SYM_GE:
    case SYM_NOT: t->stack.len = base; break;
    case SYM_NONE:
    case SYM_INT:
    case SYM_FLOAT:
    case SYM_BOOL:
    case SYM_SYMBOL:
    case SYM_CALL:
    case SYM_N_OPS: t->stack.len = base; return 0;
    default: return take_function(t, op, base);
    }
    switch (op) {
    case SYM_POW: return sym_pow(t, a, b);
    case SYM_FLOORDIV: return sym_floordiv(t, a, b);
    case SYM_MOD:
    case SYM_PYMOD: return sym_remainder(t, op, a, b);
    case SYM_NOT: return sym_not(t, a);
    default: return sym_compare(t, op, a, b);
    }
}

sym_id sym_make(struct symtab *t, enum sym_op op, const sym_id *args, uint32_t n)
{
    uint32_t base = t->stack.len;

    if (op <= SYM_NONE || op >= SYM_N_OPS)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        sym_push(t, args[i]);
    return sym_take(t, op, base);
}

/* Names that are only alternative spellings. */
static sym_id take_alias(struct symtab *t, const char *name, uint32_t base, bool *found)
{
    uint32_t n = t->stack.len - base;
    sym_id a = t->stack.at[base], b = n > 1 ? t->stack.at[base + 1] : 0;

    *found = true;
    t->stack.len = base;
    if (n == 1 && strcmp(name, "Identity") == 0)
        return a;
    if (n == 2 && strcmp(name, "CleanDiv") == 0)
        return sym_floordiv(t, a, b);
    if (n == 2 && strcmp(name, "CeilDiv") == 0)
        return sym_ceildiv(t, a, b);
    if (n == 2 && strcmp(name, "LShift") == 0)
        return sym_mul(t, a, sym_make2(t, SYM_POWNAT, sym_int(t, 2), b));
    if (n == 2 && strcmp(name, "RShift") == 0)
        return sym_floordiv(t, a, sym_make2(t, SYM_POWNAT, sym_int(t, 2), b));
    t->stack.len = base + n;
    *found = false;
    return 0;
}

/* The operator with that name, or CALL; cached in the string. */
static enum sym_op op_called(struct symtab *t, str_id name)
{
    struct str *s = &t->names.all.at[name];

    if (s->tag == 0) {
        s->tag = SYM_CALL;
        for (uint32_t op = 1; op < SYM_N_OPS; op++)
            if (sym_rows[op].name != NULL && strcmp(sym_rows[op].name, s->at) == 0)
                s->tag = op;
    }
    return (enum sym_op)s->tag;
}

sym_id sym_take_call(struct symtab *t, str_id name, uint32_t base)
{
    const char *text = str_text(&t->names, name);
    bool found = false;

    if (t->stack.len == base)
        return 0;
    for (uint32_t i = base; i < t->stack.len; i++) {
        if (t->stack.at[i] == 0) {
            t->stack.len = base;
            return 0;
        }
    }
    enum sym_op op = op_called(t, name);
    if (op != SYM_CALL)
        return sym_take(t, op, base);
    sym_id id = take_alias(t, text, base, &found);
    return found ? id : sym_intern(t, SYM_CALL, name, base);
}

sym_id sym_call(struct symtab *t, const char *name, size_t len, const sym_id *args, uint32_t n)
{
    uint32_t base = t->stack.len;

    if (!sym_is_name(name, len))
        return 0;
    for (uint32_t i = 0; i < n; i++)
        sym_push(t, args[i]);
    return sym_take_call(t, str_intern(&t->names, name, len), base);
}
