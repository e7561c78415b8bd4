/* Shape rules of numbers and items: sizes, strides, arithmetic on symbolic numbers, a[b]. */
#include <stdio.h>

#include "graph/call.h"
#include "infer/infer_run.h"

/* ---- sizes ---- */

static bool numbers(struct infer *x, const sym_id *v, uint32_t n)
{
    type_id *item = arena_array(x->arena, type_id, n);

    for (uint32_t i = 0; i < n; i++)
        item[i] = type_sym(x->type, v[i]);
    return out_list(x, item, n);
}

static bool one_or_all(struct infer *x, const sym_id *v, uint32_t n)
{
    int64_t dim;
    uint32_t d;

    if (!in_given(x, 1))
        return numbers(x, v, n);
    return n > 0 && in_int(x, 1, &dim) && wrap_dim(dim, n, &d) && out_sym(x, v[d]);
}

bool shape_sym_size(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && one_or_all(x, t->size, t->n);
}

bool shape_sym_stride(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && t->strided && one_or_all(x, t->stride, t->n);
}

bool shape_sym_numel(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_sym(x, numel(x, t));
}

bool shape_sym_dim(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_sym(x, num(x, t->n));
}

bool shape_is_complex(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_sym(x, sym_bool(x->sym, dtype_at((enum dtype)t->dtype)->category ==
                                                        DTYPE_IS_COMPLEX));
}

bool shape_is_floating(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && out_sym(x, sym_bool(x->sym, dtype_is_float((enum dtype)t->dtype)));
}

bool shape_is_contiguous(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);
    enum mem_format format = in_format(x, 1);

    if (t == NULL || !t->strided || format == FORMAT_PRESERVE)
        return false;
    bool is = format == FORMAT_NONE ? is_contiguous(x, t) : is_contiguous_as(x, t, format);
    return out_sym(x, sym_bool(x->sym, is));
}

bool shape_is_dense(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    return t != NULL && t->strided && out_sym(x, sym_bool(x->sym, is_dense(x, t)));
}

/* A new symbol: an integer, or a float (zuf<number>), or for a bool a comparison with 1. */
bool shape_local_scalar(struct infer *x)
{
    const struct type *t = in_tensor(x, 0);

    if (t == NULL)
        return false;
    switch (dtype_at((enum dtype)t->dtype)->category) {
    case DTYPE_IS_INT:
    case DTYPE_IS_UINT: return out_sym(x, fresh_symbol(x));
    case DTYPE_IS_BOOL: return out_sym(x, sym_make2(x->sym, SYM_EQ, fresh_symbol(x), num(x, 1)));
    case DTYPE_IS_FLOAT: {
        char name[16];
        int n = snprintf(name, sizeof(name), "zuf%u", x->run->next_fresh++);
        return out_sym(x, sym_symbol(x->sym, name, (size_t)n));
    }
    default: return false;
    }
}

/* ---- arithmetic ---- */

/* Functions by the last word of the operator's name, without the underscores and the sym_ that
 * Python and torch add: operator.and_, operator.iadd, torch.sym_max, torch._sym_sqrt, math.sqrt.
 * The row's shape column only says that it is arithmetic; the name says which. */
enum fn_kind {
    FN_SYM,  /* one of sym.h's operators, with its number of operands */
    FN_SUM,  /* of numbers, including bools */
    FN_BITS, /* of integers or bools */
    FN_EXTREME,
    FN_WHOLE, /* to an integer; an integer stays unchanged */
    FN_FLOAT, /* of one operand, converted to float first */
    FN_NEG,
    FN_POS,
    FN_SUB,
    FN_TRUEDIV,
    FN_FLOORDIV,
    FN_MOD,
    FN_TRUTH,
    FN_INT,
    FN_TO_FLOAT,
    FN_SHIFT_LEFT,
    FN_SHIFT_RIGHT,
    FN_POW,
};

static const struct fn {
    const char *name;
    uint8_t kind, op, n; /* n = 0: any number of operands, or one list of them */
} fns[] = {
    {"add", FN_SUM, SYM_ADD, 2},
    {"sub", FN_SUB, 0, 2},
    {"mul", FN_SUM, SYM_MUL, 2},
    {"truediv", FN_TRUEDIV, 0, 2},
    {"floordiv", FN_FLOORDIV, 0, 2},
    {"mod", FN_MOD, 0, 2},
    {"pow", FN_POW, 0, 2},
    {"neg", FN_NEG, 0, 1},
    {"pos", FN_POS, 0, 1},
    {"abs", FN_SUM, SYM_ABS, 1},
    {"eq", FN_SYM, SYM_EQ, 2},
    {"ne", FN_SYM, SYM_NE, 2},
    {"lt", FN_SYM, SYM_LT, 2},
    {"le", FN_SYM, SYM_LE, 2},
    {"gt", FN_SYM, SYM_GT, 2},
    {"ge", FN_SYM, SYM_GE, 2},
    {"and", FN_BITS, SYM_BITAND, 2},
    {"or", FN_BITS, SYM_BITOR, 2},
    {"xor", FN_BITS, SYM_BITXOR, 2},
    {"lshift", FN_SHIFT_LEFT, 0, 2},
    {"rshift", FN_SHIFT_RIGHT, 0, 2},
    {"not", FN_SYM, SYM_NOT, 1},
    {"truth", FN_TRUTH, 0, 1},
    {"bool", FN_TRUTH, 0, 1},
    {"index", FN_POS, 0, 1},
    {"int", FN_INT, 0, 1},
    {"float", FN_TO_FLOAT, 0, 1},
    {"max", FN_EXTREME, SYM_MAX, 0},
    {"min", FN_EXTREME, SYM_MIN, 0},
    {"sum", FN_SUM, SYM_ADD, 0},
    {"ite", FN_SYM, SYM_WHERE, 3},
    {"ceil", FN_WHOLE, SYM_CEIL, 1},
    {"floor", FN_WHOLE, SYM_FLOOR, 1},
    {"trunc", FN_WHOLE, SYM_TRUNC, 1},
    {"round", FN_WHOLE, SYM_ROUND, 1},
    {"sqrt", FN_FLOAT, SYM_SQRT, 1},
    {"exp", FN_FLOAT, SYM_EXP, 1},
    {"log", FN_FLOAT, SYM_LOG, 1},
    {"log2", FN_FLOAT, SYM_LOG2, 1},
    {"sin", FN_FLOAT, SYM_SIN, 1},
    {"cos", FN_FLOAT, SYM_COS, 1},
    {"tan", FN_FLOAT, SYM_TAN, 1},
    {"sinh", FN_FLOAT, SYM_SINH, 1},
    {"cosh", FN_FLOAT, SYM_COSH, 1},
    {"tanh", FN_FLOAT, SYM_TANH, 1},
    {"asin", FN_FLOAT, SYM_ASIN, 1},
    {"acos", FN_FLOAT, SYM_ACOS, 1},
    {"atan", FN_FLOAT, SYM_ATAN, 1},
};

static const struct fn *fn_of(const struct op_row *row)
{
    const char *name = strrchr(row->name, '.');
    bool in_place = row->form == OP_FORM_AUGMENTED;

    name = name ? name + 1 : row->name;
    if (strncmp(name, "_sym_", 5) == 0)
        name += 5;
    else if (strncmp(name, "sym_", 4) == 0)
        name += 4;
    name += in_place;
    size_t len = strlen(name);
    len -= len > 0 && name[len - 1] == '_';
    for (size_t i = 0; i < sizeof(fns) / sizeof(*fns); i++)
        if (strlen(fns[i].name) == len && memcmp(fns[i].name, name, len) == 0)
            return &fns[i];
    return NULL;
}

/* The operands of a call, including those of a list. False: one is not a number. */
static bool operands(struct infer *x, const sym_id **out, uint32_t *n)
{
    const struct fx_node *node = node_at(x->g, x->node);
    sym_id *list = new_syms(x, node->n_vals);

    *n = 0;
    *out = list;
    if (node->n_kwargs > 0) {
        for (uint32_t i = 0; i < x->sig->n_params; i++)
            if (x->arg[i] != NULL && !in_sym(x, (int)i, &list[(*n)++]))
                return false;
        return true;
    }
    for (uint32_t i = 0; i < node->n_vals; i++) {
        const tuck_value *v = &node->vals[i];
        if (v->kind == TUCK_V_LIST || v->kind == TUCK_V_TUPLE)
            continue;
        const struct str *s;
        sym_id one = 0;
        switch (v->kind) {
        case TUCK_V_INT: one = num(x, v->u.i); break;
        case TUCK_V_BOOL: one = sym_bool(x->sym, v->u.i); break;
        case TUCK_V_FLOAT: one = sym_float(x->sym, v->u.f); break;
        case TUCK_V_SYM:
            s = str_at(&x->store->str, v->a);
            one = sym_parse(x->sym, s->at, s->len);
            break;
        case TUCK_V_NODE: {
            const struct type *t = type_at(x->type, x->types[v->a]);
            one = t->kind == TYPE_SYM ? t->sym : 0;
            break;
        }
        default: return false;
        }
        if (one == 0)
            return false;
        list[(*n)++] = one;
    }
    return true;
}

static bool is_float(const struct infer *x, sym_id v)
{
    return sym_type(x->sym, v) == SYM_T_FLOAT;
}

static sym_id as_float(struct infer *x, sym_id v)
{
    return is_float(x, v) ? v : sym_to_float(x->sym, v);
}

/* In Python, bools count as 0 and 1. */
static sym_id as_number(struct infer *x, sym_id v)
{
    struct sym_num n;

    if (sym_type(x->sym, v) != SYM_T_BOOL)
        return v;
    if (sym_as_number(x->sym, v, &n))
        return num(x, n.i);
    return sym_make(x->sym, SYM_WHERE, (sym_id[]){v, num(x, 1), num(x, 0)}, 3);
}

/* Bits of integers, logic of bools; for a mix of both, Python and torch disagree. */
static sym_id bits(struct infer *x, enum sym_op op, const sym_id *v)
{
    bool a = sym_type(x->sym, v[0]) == SYM_T_BOOL, b = sym_type(x->sym, v[1]) == SYM_T_BOOL;

    if (a != b)
        return 0;
    if (a && op == SYM_BITAND)
        return sym_make(x->sym, SYM_AND, v, 2);
    if (a && op == SYM_BITOR)
        return sym_make(x->sym, SYM_OR, v, 2);
    return sym_make(x->sym, op, v, 2);
}

/* The largest or smallest. If integers and floats are mixed, torch's functions convert integers to
 * floats first; Python's return the operand unchanged. */
static sym_id extreme(struct infer *x, enum sym_op op, const sym_id *v, uint32_t n)
{
    uint32_t n_float = 0;
    sym_id *same = new_syms(x, n);

    for (uint32_t i = 0; i < n; i++)
        n_float += is_float(x, v[i]);
    if (n_float == 0 || n_float == n)
        return sym_make(x->sym, op, v, n);
    if (x->sig->results[0].type == OP_T_ANY)
        return 0;
    for (uint32_t i = 0; i < n; i++)
        same[i] = as_float(x, v[i]);
    return sym_make(x->sym, op, same, n);
}

static sym_id total(struct infer *x, enum sym_op op, const sym_id *v, uint32_t n)
{
    sym_id *numbers = new_syms(x, n);

    for (uint32_t i = 0; i < n; i++)
        numbers[i] = as_number(x, v[i]);
    return sym_make(x->sym, op, numbers, n);
}

static sym_id power(struct infer *x, sym_id a, sym_id b)
{
    if (x->sig->results[0].type == OP_T_FLOAT || is_float(x, a) || is_float(x, b))
        return sym_make2(x->sym, SYM_POWFLOAT, as_float(x, a), as_float(x, b));
    return sym_pow(x->sym, as_number(x, a), as_number(x, b));
}

static sym_id divide(struct infer *x, enum fn_kind kind, sym_id a, sym_id b)
{
    struct symtab *s = x->sym;
    bool floats = is_float(x, a) || is_float(x, b);

    if (!floats) {
        a = as_number(x, a);
        b = as_number(x, b);
        return kind == FN_MOD ? sym_mod(s, a, b) : sym_floordiv(s, a, b);
    }
    a = as_float(x, a);
    b = as_float(x, b);
    return kind == FN_MOD
               ? sym_mod(s, a, b)
               : sym_to_float(s, sym_make1(s, SYM_FLOOR, sym_make2(s, SYM_FLOATDIV, a, b)));
}

static sym_id apply(struct infer *x, const struct fn *f, const sym_id *v, uint32_t n)
{
    struct symtab *s = x->sym;
    enum sym_type t = sym_type(s, v[0]);

    switch ((enum fn_kind)f->kind) {
    case FN_SYM:
        if (f->op == SYM_NOT && t != SYM_T_BOOL)
            return sym_make2(s, SYM_EQ, v[0], num(x, 0));
        return sym_make(s, (enum sym_op)f->op, v, n);
    case FN_BITS: return bits(x, (enum sym_op)f->op, v);
    case FN_EXTREME: return extreme(x, (enum sym_op)f->op, v, n);
    case FN_WHOLE:
        return t != SYM_T_FLOAT ? as_number(x, v[0]) : sym_make1(s, (enum sym_op)f->op, v[0]);
    case FN_FLOAT: return sym_make1(s, (enum sym_op)f->op, as_float(x, v[0]));
    case FN_SUM: return total(x, (enum sym_op)f->op, v, n);
    case FN_NEG: return sym_neg(s, as_number(x, v[0]));
    case FN_POS: return as_number(x, v[0]);
    case FN_SUB: return sym_sub(s, as_number(x, v[0]), as_number(x, v[1]));
    case FN_TRUEDIV: return sym_truediv(s, v[0], v[1]);
    case FN_FLOORDIV:
    case FN_MOD: return divide(x, (enum fn_kind)f->kind, v[0], v[1]);
    case FN_TRUTH: return t == SYM_T_BOOL ? v[0] : sym_make2(s, SYM_NE, v[0], num(x, 0));
    case FN_INT: return t == SYM_T_FLOAT ? sym_make1(s, SYM_TRUNC, v[0]) : as_number(x, v[0]);
    case FN_TO_FLOAT: return as_float(x, v[0]);
    case FN_POW: return power(x, v[0], v[1]);
    case FN_SHIFT_LEFT: return sym_mul(s, v[0], sym_pow(s, num(x, 2), v[1]));
    case FN_SHIFT_RIGHT: return sym_floordiv(s, v[0], sym_pow(s, num(x, 2), v[1]));
    }
    return 0;
}

bool shape_sym(struct infer *x)
{
    const struct fn *f = fn_of(x->row);
    const sym_id *v;
    uint32_t n;

    if (f == NULL || !operands(x, &v, &n) || n == 0 || (f->n != 0 && f->n != n))
        return false;
    return out_sym(x, apply(x, f, v, n));
}

/* ---- a[b] ---- */

/* An item, or for a slice a list of items. */
static bool list_item(struct infer *x, struct type t, const tuck_value *at)
{
    int64_t n = t.n;

    if (at->kind == TUCK_V_INT) {
        int64_t i = at->u.i < 0 ? at->u.i + n : at->u.i;
        return i >= 0 && i < n && out_type(x, t.item[i]);
    }
    if (at->kind != TUCK_V_SLICE)
        return false;
    int64_t bound[3] = {0, n, 1};
    const tuck_value *v = at + 1;
    for (uint32_t i = 0; i < at->a && i < 3; i++, v = value_next(v)) {
        if (v->kind == TUCK_V_NONE)
            continue;
        if (v->kind != TUCK_V_INT)
            return false;
        bound[i] = v->u.i;
    }
    for (int i = 0; i < 2; i++) {
        bound[i] = bound[i] < 0 ? bound[i] + n : bound[i];
        bound[i] = bound[i] < 0 ? 0 : bound[i] > n ? n : bound[i];
    }
    if (bound[2] < 1)
        return false;
    type_id *item = arena_array(x->arena, type_id, t.n);
    uint32_t k = 0;
    for (int64_t i = bound[0]; i<bound[1]; i += bound[2]> n ? n : bound[2])
        item[k++] = t.item[i];
    return out_list(x, item, k);
}

static bool bound_of(struct infer *x, const tuck_value *v, sym_id *out)
{
    if (v->kind == TUCK_V_INT)
        *out = num(x, v->u.i);
    else if (v->kind == TUCK_V_NODE && type_at(x->type, x->types[v->a])->kind == TYPE_SYM)
        *out = type_at(x->type, x->types[v->a])->sym;
    else
        return false;
    return true;
}

/* Python's indexing of a tensor by numbers, slices, None and one Ellipsis. */
static bool tensor_item(struct infer *x, const struct type *t, const tuck_value *at)
{
    bool tuple = at->kind == TUCK_V_TUPLE || at->kind == TUCK_V_LIST;
    uint32_t n_at = tuple ? at->a : 1, taken = 0, d = 0, n = 0;
    const tuck_value *first = tuple ? at + 1 : at, *v = first;
    struct symtab *s = x->sym;

    if (!t->strided || at->kind == TUCK_V_LIST)
        return false;
    for (uint32_t i = 0; i < n_at; i++, v = value_next(v))
        taken += v->kind == TUCK_V_INT || v->kind == TUCK_V_SLICE || v->kind == TUCK_V_NODE;
    if (taken > t->n)
        return false;
    sym_id *size = new_syms(x, t->n + n_at), *stride = new_syms(x, t->n + n_at);
    v = first;
    for (uint32_t i = 0; i < n_at; i++, v = value_next(v)) {
        if (v->kind == TUCK_V_INT ||
            (v->kind == TUCK_V_NODE && type_at(x->type, x->types[v->a])->kind == TYPE_SYM)) {
            d++;
        } else if (v->kind == TUCK_V_NONE) {
            size[n] = num(x, 1);
            stride[n++] = d < t->n ? sym_mul(s, t->size[d], t->stride[d]) : num(x, 1);
        } else if (v->kind == TUCK_V_NAME || v->kind == TUCK_V_TEXT) {
            if (strcmp(str_text(&x->store->str, v->a), "Ellipsis") != 0)
                return false;
            for (uint32_t k = t->n - taken; k > 0; k--, d++) {
                size[n] = t->size[d];
                stride[n++] = t->stride[d];
            }
        } else if (v->kind == TUCK_V_SLICE) {
            sym_id bound[3] = {num(x, 0), t->size[d], num(x, 1)};
            const tuck_value *b = v + 1;
            for (uint32_t k = 0; k < v->a && k < 3; k++, b = value_next(b))
                if (b->kind != TUCK_V_NONE && !bound_of(x, b, &bound[k]))
                    return false;
            size[n] = sliced_size(x, t->size[d], bound[0], bound[1], bound[2]);
            stride[n++] = sym_mul(s, t->stride[d], bound[2]);
            d++;
        } else {
            return false;
        }
    }
    for (; d < t->n; d++) {
        size[n] = t->size[d];
        stride[n++] = t->stride[d];
    }
    return out_tensor(x, (enum dtype)t->dtype, n, size, stride, t->device);
}

bool shape_getitem(struct infer *x)
{
    struct type t = *type_at(x->type, in_type(x, 0));

    uint32_t k;

    if (x->arg[1] == NULL)
        return false;
    if (t.kind == TYPE_LIST && x->arg[1]->kind == TUCK_V_STR)
        return call_item(x->g, node_at(x->g, x->node), &k) && k < t.n && out_type(x, t.item[k]);
    if (t.kind == TYPE_LIST)
        return list_item(x, t, x->arg[1]);
    return t.kind == TYPE_TENSOR && tensor_item(x, &t, x->arg[1]);
}
