/* The table of expressions: rows, interning, leaves, and queries about a node. */
#include "sym/sym.h"

#include <assert.h>
#include <math.h>

const struct sym_row sym_rows[SYM_N_OPS] = {
#define SYM_ROW(op, name, class_name, rank, min, max, type, prec)                                  \
    {name, class_name, rank, min, max, SYM_T_##type, prec},
    SYM_OPS(SYM_ROW)
#undef SYM_ROW
};

void symtab_init(struct symtab *t, struct mem *m)
{
    *t = (struct symtab){.mem = m};
    strtab_init(&t->names, m);
}

void symtab_destroy(struct symtab *t)
{
    strtab_destroy(&t->names);
    vec_free(t->mem, &t->node);
    vec_free(t->mem, &t->arg);
    mem_free(t->mem, t->slot, t->n_slot * sizeof(*t->slot));
    t->slot = NULL;
    t->n_slot = 0;
    vec_free(t->mem, &t->stack);
    vec_free(t->mem, &t->term);
    vec_free(t->mem, &t->frame);
}

void symtab_assume(struct symtab *t, unsigned assume)
{
    assert(t->node.len == 0);
    t->assume = assume;
}

/* ---- Interning ------------------------------------------------------------------------------- */

/* "s12" with prefix "s": the prefix, then digits only. */
static bool is_numbered(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);

    return strncmp(name, prefix, n) == 0 && name[n] != '\0' &&
           strspn(name + n, "0123456789") == strlen(name + n);
}

static enum sym_type join_types(const struct symtab *t, const sym_id *args, uint32_t n)
{
    enum sym_type type = SYM_T_INT;

    for (uint32_t i = 0; i < n; i++) {
        enum sym_type a = sym_type(t, args[i]);

        if (a == SYM_T_FLOAT)
            return a;
        if (a == SYM_T_ANY)
            type = a;
    }
    return type;
}

static enum sym_type type_of(const struct symtab *t, const struct sym_node *v, const sym_id *args)
{
    switch (v->op) {
    case SYM_SYMBOL: {
        const char *name = str_text(&t->names, v->u.name);

        return is_numbered(name, "zf") || is_numbered(name, "zuf") ? SYM_T_FLOAT : SYM_T_INT;
    }
    case SYM_POW:
        /* 2**u0 is a fraction when u0 is negative. */
        if (sym_is(t, args[1], SYM_INT) && sym_at(t, args[1])->u.i >= 0)
            return join_types(t, args, 1);
        return join_types(t, args, 2) == SYM_T_FLOAT ? SYM_T_FLOAT : SYM_T_ANY;
    case SYM_WHERE: return join_types(t, args + 1, 2);
    default:
        if (sym_rows[v->op].type != SYM_T_JOIN)
            return (enum sym_type)sym_rows[v->op].type;
        return join_types(t, args, v->n_arg);
    }
}

static bool is_nonneg(const struct symtab *t, const struct sym_node *v, const sym_id *args)
{
    uint32_t n_nonneg = 0;

    for (uint32_t i = 0; i < v->n_arg; i++)
        n_nonneg += sym_at(t, args[i])->nonneg;
    switch (v->op) {
    case SYM_INT: return v->u.i >= 0;
    case SYM_FLOAT: return v->u.f >= 0;
    case SYM_SYMBOL: {
        const char *name = str_text(&t->names, v->u.name);

        return ((t->assume & SYM_NONNEG_S) && is_numbered(name, "s")) ||
               ((t->assume & SYM_NONNEG_U) && is_numbered(name, "u"));
    }
    case SYM_POW:
        if (!sym_is(t, args[1], SYM_INT))
            return false;
        return sym_at(t, args[0])->nonneg || sym_at(t, args[1])->u.i % 2 == 0;
    /* Python's remainder has the sign of the divisor. */
    case SYM_MOD:
    case SYM_PYMOD: return sym_at(t, args[1])->nonneg;
    case SYM_POWNAT: return sym_at(t, args[0])->nonneg;
    case SYM_WHERE: return sym_at(t, args[1])->nonneg && sym_at(t, args[2])->nonneg;
    case SYM_MAX: return n_nonneg > 0;
    case SYM_ABS: return true;
    case SYM_ADD:
    case SYM_MUL:
    case SYM_MIN:
    case SYM_FLOORDIV:
    case SYM_MODINDEX:
    case SYM_INTDIV:
    case SYM_FLOATDIV:
    case SYM_TOFLOAT:
    case SYM_CEIL:
    case SYM_FLOOR:
    case SYM_TRUNC:
    case SYM_ROUND: return n_nonneg == v->n_arg;
    default: return v->type == SYM_T_BOOL;
    }
}

static void grow(struct symtab *t)
{
    uint32_t n = t->n_slot ? t->n_slot * 2 : 64;

    if (t->n_slot > UINT32_MAX / 4)
        mem_exhausted(t->mem);
    uint32_t *slot = mem_resize(t->mem, NULL, 0, n * sizeof(*slot));
    memset(slot, 0, n * sizeof(*slot));
    for (sym_id id = 1; id < t->node.len; id++) {
        uint32_t i = t->node.at[id].hash & (n - 1);

        while (slot[i] != 0)
            i = (i + 1) & (n - 1);
        slot[i] = id;
    }
    mem_free(t->mem, t->slot, t->n_slot * sizeof(*t->slot));
    t->slot = slot;
    t->n_slot = n;
}

static uint32_t hash_node(const struct sym_node *v, const sym_id *args)
{
    uint32_t h = hash_u64(((uint64_t)v->op << 56) ^ (uint64_t)v->u.i);

    for (uint32_t i = 0; i < v->n_arg; i++)
        h = hash_u64(((uint64_t)h << 32 | args[i]) + 1);
    return h;
}

static bool equals(const struct symtab *t, const struct sym_node *a, const struct sym_node *b,
                   const sym_id *args)
{
    return a->hash == b->hash && a->op == b->op && a->u.i == b->u.i && a->n_arg == b->n_arg &&
           (a->n_arg == 0 || memcmp(t->arg.at + a->first_arg, args, a->n_arg * sizeof(*args)) == 0);
}

/* The node with these contents and the operands on the stack; 0 if it would be too large. */
static sym_id intern(struct symtab *t, struct sym_node v, uint32_t base)
{
    if (t->node.len == 0)
        vec_push(t->mem, &t->node, (struct sym_node){.op = SYM_NONE});
    if (t->node.len >= t->n_slot / 2)
        grow(t);
    v.n_arg = t->stack.len - base;
    vec_reserve(t->mem, &t->node, 1);
    vec_reserve(t->mem, &t->arg, v.n_arg);

    const sym_id *args = t->stack.at ? t->stack.at + base : NULL;
    uint64_t size = 1;
    uint32_t depth = 0;

    t->stack.len = base;
    v.hash = hash_node(&v, args);
    uint32_t i = v.hash & (t->n_slot - 1);
    for (; t->slot[i] != 0; i = (i + 1) & (t->n_slot - 1))
        if (equals(t, &t->node.at[t->slot[i]], &v, args))
            return t->slot[i];

    for (uint32_t k = 0; k < v.n_arg; k++) {
        const struct sym_node *a = sym_at(t, args[k]);

        size += a->size;
        if (a->depth > depth)
            depth = a->depth;
    }
    if (size > SYM_MAX_SIZE || depth >= SYM_MAX_DEPTH)
        return 0;
    v.size = (uint32_t)size;
    v.depth = (uint16_t)(depth + 1);
    v.type = (uint8_t)type_of(t, &v, args);
    v.nonneg = is_nonneg(t, &v, args);
    v.first_arg = t->arg.len;
    if (v.n_arg > 0)
        memcpy(t->arg.at + t->arg.len, args, v.n_arg * sizeof(*args));
    t->arg.len += v.n_arg;
    t->slot[i] = t->node.len;
    t->node.at[t->node.len] = v;
    return t->node.len++;
}

sym_id sym_intern(struct symtab *t, enum sym_op op, str_id name, uint32_t base)
{
    struct sym_node v = {.op = (uint8_t)op, .u.i = 0};

    v.u.name = name;
    return intern(t, v, base);
}

/* ---- Leaves ---------------------------------------------------------------------------------- */

sym_id sym_int(struct symtab *t, int64_t v)
{
    if (v == INT64_MIN) /* so that every integer can be negated */
        return 0;
    return intern(t, (struct sym_node){.op = SYM_INT, .u.i = v}, t->stack.len);
}

sym_id sym_float(struct symtab *t, double v)
{
    struct sym_node node = {.op = SYM_FLOAT};

    if (!isfinite(v))
        return 0;
    node.u.f = v == 0 ? 0.0 : v; /* one zero */
    return intern(t, node, t->stack.len);
}

sym_id sym_bool(struct symtab *t, bool v)
{
    return intern(t, (struct sym_node){.op = SYM_BOOL, .u.i = v}, t->stack.len);
}

sym_id sym_number(struct symtab *t, struct sym_num v)
{
    switch (v.kind) {
    case SYM_T_FLOAT: return sym_float(t, v.f);
    case SYM_T_BOOL: return sym_bool(t, v.i != 0);
    default: return sym_int(t, v.i);
    }
}

bool sym_is_name(const char *name, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = name[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && !(i > 0 && c >= '0' && c <= '9'))
            return false;
    }
    return len > 0;
}

sym_id sym_symbol(struct symtab *t, const char *name, size_t len)
{
    if (!sym_is_name(name, len))
        return 0;
    return sym_intern(t, SYM_SYMBOL, str_intern(&t->names, name, len), t->stack.len);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

struct sym_num sym_num_int(int64_t v)
{
    return (struct sym_num){.kind = SYM_T_INT, .i = v};
}

static double as_double(struct sym_num v)
{
    return v.kind == SYM_T_FLOAT ? v.f : (double)v.i;
}

bool sym_num_add(struct sym_num *a, struct sym_num b)
{
    if (a->kind == SYM_T_FLOAT || b.kind == SYM_T_FLOAT) {
        *a = (struct sym_num){.kind = SYM_T_FLOAT, .f = as_double(*a) + as_double(b)};
        return isfinite(a->f);
    }
    a->kind = SYM_T_INT;
    return !__builtin_add_overflow(a->i, b.i, &a->i) && a->i != INT64_MIN;
}

bool sym_num_mul(struct sym_num *a, struct sym_num b)
{
    if (a->kind == SYM_T_FLOAT || b.kind == SYM_T_FLOAT) {
        *a = (struct sym_num){.kind = SYM_T_FLOAT, .f = as_double(*a) * as_double(b)};
        return isfinite(a->f);
    }
    a->kind = SYM_T_INT;
    return !__builtin_mul_overflow(a->i, b.i, &a->i) && a->i != INT64_MIN;
}

/* ---- Asking ---------------------------------------------------------------------------------- */

bool sym_as_number(const struct symtab *t, sym_id id, struct sym_num *out)
{
    if (id == 0)
        return false;
    const struct sym_node *v = sym_at(t, id);

    switch (v->op) {
    case SYM_INT:
    case SYM_BOOL:
        *out = (struct sym_num){.kind = (enum sym_type)v->type, .i = v->u.i};
        return true;
    case SYM_FLOAT: *out = (struct sym_num){.kind = SYM_T_FLOAT, .f = v->u.f}; return true;
    default: return false;
    }
}

bool sym_as_int(const struct symtab *t, sym_id id, int64_t *out)
{
    if (id == 0 || !sym_is(t, id, SYM_INT))
        return false;
    *out = sym_at(t, id)->u.i;
    return true;
}

uint32_t sym_n_terms(const struct symtab *t, sym_id id)
{
    return sym_is(t, id, SYM_ADD) ? sym_at(t, id)->n_arg : 1;
}

sym_id sym_term_at(const struct symtab *t, sym_id id, uint32_t i)
{
    return sym_is(t, id, SYM_ADD) ? sym_arg(t, id, i) : id;
}

sym_id sym_split(const struct symtab *t, sym_id term, struct sym_num *coef)
{
    const struct sym_node *v = sym_at(t, term);

    if (sym_as_number(t, term, coef)) {
        if (coef->kind == SYM_T_BOOL)
            coef->kind = SYM_T_INT;
        return 0;
    }
    if (v->rest != 0) {
        sym_as_number(t, sym_arg(t, term, 0), coef);
        return v->rest;
    }
    *coef = sym_num_int(1);
    return term;
}

uint32_t sym_n_factors(const struct symtab *t, sym_id rest)
{
    return sym_is(t, rest, SYM_MUL) ? sym_at(t, rest)->n_arg : 1;
}

sym_id sym_factor_at(const struct symtab *t, sym_id rest, uint32_t i, int64_t *exp)
{
    sym_id f = sym_is(t, rest, SYM_MUL) ? sym_arg(t, rest, i) : rest;

    *exp = 1;
    if (sym_is(t, f, SYM_POW) && sym_as_int(t, sym_arg(t, f, 1), exp))
        return sym_arg(t, f, 0);
    return f;
}

/* Depth is bounded by SYM_MAX_DEPTH, work by the number of distinct nodes. */
static void visit(struct symtab *t, sym_id id, void (*fn)(void *, sym_id, const char *), void *ctx)
{
    struct sym_node *v = &t->node.at[id];

    if (v->mark == t->mark)
        return;
    v->mark = t->mark;
    if (v->op == SYM_SYMBOL)
        fn(ctx, id, str_text(&t->names, v->u.name));
    for (uint32_t i = 0, n = v->n_arg; i < n; i++)
        visit(t, sym_arg(t, id, i), fn, ctx);
}

void sym_symbols(struct symtab *t, sym_id id,
                 void (*fn)(void *ctx, sym_id symbol, const char *name), void *ctx)
{
    if (id == 0)
        return;
    t->mark++;
    visit(t, id, fn, ctx);
}
