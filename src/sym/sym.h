/* Sizes as expressions: 12*s27**2, ((s0 + 7)//8), Max(1, u0 + u1), u0 >= 0.
 *
 * Expressions live in a table and are named by ids. Each is brought to a canonical form when it is
 * made and stored once, so that two ids of one table are equal if and only if their canonical forms
 * are. The form is the one PyTorch's printer shows:
 *
 *   - sums and products are flat and sorted as they are printed; like terms and equal factors are
 *     collected; a number is multiplied into a sum (2*(s0 + 1) is 2*s0 + 2), other products of sums
 *     stay as they are, since PyTorch leaves them so: sym_same() compares what they expand to;
 *   - FloorDiv takes out what divides, cancels common factors, merges nested divisions by what is
 *     positive; CleanDiv is FloorDiv, CeilDiv(a, b) is FloorDiv(a + b - 1, b), Identity(a) is a;
 *   - Min, Max, And, Or are flat, sorted, without repetition; what is constant is computed;
 *   - a comparison whose outcome is the same for all values is True or False; otherwise its sides
 *     stay as they are, as PyTorch leaves them.
 *
 * Guarantees: rewrites of integers keep the value for all integers, negative ones included, with
 * Python's // and %, as long as the original has a value; a division by something that may be zero
 * can disappear. Mod, which PyTorch defines for non-negative operands only, is Python's % like
 * PythonMod. Only symtab_assume() makes symbols non-negative. Expressions with floats are
 * rearranged as real numbers, as sympy does, and so can differ in the last digit.
 *
 * Id 0 is "no expression". A constructor returns it for an operand that is 0, for an integer
 * outside of -(2**63 - 1) .. 2**63 - 1, for a float that is not finite, for an expression deeper
 * than SYM_MAX_DEPTH or with more than SYM_MAX_SIZE parts (which also bounds every recursion
 * below). So a chain of constructors needs one check, at its end, and is never wrong.
 */
#ifndef TUCK_SYM_SYM_H
#define TUCK_SYM_SYM_H

#include "base/buf.h"
#include "base/str.h"

#define SYM_MAX_DEPTH 256
#define SYM_MAX_SIZE (1u << 20)

typedef uint32_t sym_id;

enum sym_type {
    SYM_T_ANY, /* result of an unknown function */
    SYM_T_INT,
    SYM_T_FLOAT,
    SYM_T_BOOL,
    SYM_T_JOIN, /* in the table below: the same as the operands */
};

/* One row per operator: enumerator, name in the text (NULL if it has its own syntax), sympy's class
 * and its rank (its printer sorts by them), number of operands, type, printing precedence (an
 * operand that binds no tighter than its surroundings gets parentheses).
 */
/* clang-format off */
#define SYM_OPS(X) \
    X(NONE,     NULL,                "",                  0,  0, 0, ANY,  1000) \
    X(INT,      NULL,                "Number",           10,  0, 0, INT,  1000) \
    X(FLOAT,    NULL,                "Number",           10,  0, 0, FLOAT, 1000) \
    X(BOOL,     NULL,                "BooleanAtom",      50,  0, 0, BOOL, 1000) \
    X(SYMBOL,   NULL,                "Symbol",           20,  0, 0, INT,  1000) \
    X(ADD,      NULL,                "Add",              31,  1, 0, JOIN, 40) \
    X(MUL,      NULL,                "Mul",              30,  1, 0, JOIN, 50) \
    X(POW,      "Pow",               "Pow",              32,  2, 2, ANY,  60) \
    X(DIV,      NULL,                "Div",              33,  2, 2, FLOAT, 50) \
    X(FLOORDIV, "FloorDiv",          "FloorDiv",         41,  2, 2, JOIN, 35) \
    X(MOD,      "Mod",               "Mod",              41,  2, 2, JOIN, 35) \
    X(PYMOD,    "PythonMod",         "PythonMod",        41,  2, 2, JOIN, 35) \
    X(MODINDEX, "ModularIndexing",   "ModularIndexing",  41,  3, 3, INT,  35) \
    X(MIN,      "Min",               "Min",              50,  1, 0, JOIN, 1000) \
    X(MAX,      "Max",               "Max",              50,  1, 0, JOIN, 1000) \
    X(ABS,      "Abs",               "Abs",              41,  1, 1, JOIN, 70) \
    X(WHERE,    "Where",             "Where",            41,  3, 3, JOIN, 35) \
    X(INTDIV,   "IntTrueDiv",        "IntTrueDiv",       41,  2, 2, FLOAT, 35) \
    X(FLOATDIV, "FloatTrueDiv",      "FloatTrueDiv",     41,  2, 2, FLOAT, 35) \
    X(TOFLOAT,  "ToFloat",           "ToFloat",          41,  1, 1, FLOAT, 70) \
    X(CEIL,     "CeilToInt",         "CeilToInt",        41,  1, 1, INT,  70) \
    X(FLOOR,    "FloorToInt",        "FloorToInt",       41,  1, 1, INT,  70) \
    X(TRUNC,    "TruncToInt",        "TruncToInt",       41,  1, 1, INT,  70) \
    X(ROUND,    "RoundToInt",        "RoundToInt",       41,  1, 1, INT,  70) \
    X(CEILING,  "ceiling",           "ceiling",          41,  1, 1, INT,  70) \
    X(FLOORING, "floor",             "floor",            41,  1, 1, INT,  70) \
    X(TRUNCF,   "TruncToFloat",      "TruncToFloat",     41,  1, 1, FLOAT, 70) \
    X(ROUNDDEC, "RoundDecimal",      "RoundDecimal",     41,  2, 2, FLOAT, 70) \
    X(POWNAT,   "PowByNatural",      "PowByNatural",     41,  2, 2, INT,  50) \
    X(POWFLOAT, "FloatPow",          "FloatPow",         41,  2, 2, FLOAT, 60) \
    X(SQRT,     "OpaqueUnaryFn_sqrt", "OpaqueUnaryFn_sqrt", 41, 1, 1, FLOAT, 70) \
    X(EXP,      "OpaqueUnaryFn_exp", "OpaqueUnaryFn_exp", 41, 1, 1, FLOAT, 70) \
    X(LOG,      "OpaqueUnaryFn_log", "OpaqueUnaryFn_log", 41, 1, 1, FLOAT, 70) \
    X(LOG2,     "OpaqueUnaryFn_log2", "OpaqueUnaryFn_log2", 41, 1, 1, FLOAT, 70) \
    X(SIN,      "OpaqueUnaryFn_sin", "OpaqueUnaryFn_sin", 41, 1, 1, FLOAT, 70) \
    X(COS,      "OpaqueUnaryFn_cos", "OpaqueUnaryFn_cos", 41, 1, 1, FLOAT, 70) \
    X(TAN,      "OpaqueUnaryFn_tan", "OpaqueUnaryFn_tan", 41, 1, 1, FLOAT, 70) \
    X(ASIN,     "OpaqueUnaryFn_asin", "OpaqueUnaryFn_asin", 41, 1, 1, FLOAT, 70) \
    X(ACOS,     "OpaqueUnaryFn_acos", "OpaqueUnaryFn_acos", 41, 1, 1, FLOAT, 70) \
    X(ATAN,     "OpaqueUnaryFn_atan", "OpaqueUnaryFn_atan", 41, 1, 1, FLOAT, 70) \
    X(SINH,     "OpaqueUnaryFn_sinh", "OpaqueUnaryFn_sinh", 41, 1, 1, FLOAT, 70) \
    X(COSH,     "OpaqueUnaryFn_cosh", "OpaqueUnaryFn_cosh", 41, 1, 1, FLOAT, 70) \
    X(TANH,     "OpaqueUnaryFn_tanh", "OpaqueUnaryFn_tanh", 41, 1, 1, FLOAT, 70) \
    X(BITAND,   "BitwiseFn_bitwise_and", "BitwiseFn_bitwise_and", 41, 2, 2, JOIN, 38) \
    X(BITXOR,   "BitwiseFn_bitwise_xor", "BitwiseFn_bitwise_xor", 41, 2, 2, JOIN, 37) \
    X(BITOR,    "BitwiseFn_bitwise_or", "BitwiseFn_bitwise_or", 41, 2, 2, JOIN, 36) \
    X(EQ,       "Eq",                "Equality",         50,  2, 2, BOOL, 50) \
    X(NE,       "Ne",                "Unequality",       50,  2, 2, BOOL, 50) \
    X(LT,       "Lt",                "StrictLessThan",   50,  2, 2, BOOL, 35) \
    X(LE,       "Le",                "LessThan",         50,  2, 2, BOOL, 35) \
    X(GT,       "Gt",                "StrictGreaterThan", 50, 2, 2, BOOL, 35) \
    X(GE,       "Ge",                "GreaterThan",      50,  2, 2, BOOL, 35) \
    X(AND,      "And",               "And",              50,  1, 0, BOOL, 30) \
    X(OR,       "Or",                "Or",               50,  1, 0, BOOL, 20) \
    X(NOT,      "Not",               "Not",              50,  1, 1, BOOL, 100) \
    X(CALL,     NULL,                NULL,               41,  1, 0, ANY,  70)
/* clang-format on */

enum sym_op {
#define SYM_ENUM(op, name, class_name, rank, min, max, type, prec) SYM_##op,
    SYM_OPS(SYM_ENUM)
#undef SYM_ENUM
        SYM_N_OPS
};

/* A number: kind is SYM_T_INT or SYM_T_BOOL (value in i) or SYM_T_FLOAT (value in f). */
struct sym_num {
    enum sym_type kind;
    int64_t i;
    double f;
};

struct sym_node {
    uint8_t op, type;
    bool nonneg; /* known to be >= 0 whenever it has a value */
    uint16_t depth;
    uint32_t size; /* of the tree, including itself; as sympy counts */
    uint32_t n_arg, first_arg;
    uint32_t hash;
    sym_id rest; /* for a product that begins with a number: the product without it */
    uint32_t mark;
    sym_id memo; /* result for this node in walk number `mark` */
    union {
        int64_t i;
        double f;
        str_id name; /* SYMBOL, CALL */
    } u;
};

/* A term of a sum with its coefficient, or a factor of a product with its exponent. */
struct sym_term {
    sym_id id;
    struct sym_num coef;
};

struct sym_frame { /* of the parser */
    uint8_t kind, pending;
    uint32_t base;
    str_id name;
};

enum {
    SYM_NONNEG_S = 1, /* s0, s1, …: sizes of inputs */
    SYM_NONNEG_U = 2, /* u0, u1, …: data-dependent sizes */
};

struct symtab {
    struct mem *mem;
    struct strtab names;
    VEC(struct sym_node) node; /* [0] is the absent expression */
    VEC(sym_id) arg;
    uint32_t *slot; /* open addressing; ids, 0 = free */
    uint32_t n_slot;
    uint32_t mark;
    unsigned assume;
    /* Scratch used as stacks. It is here and not on the C stack, so that nothing leaks when memory
     * runs out. */
    VEC(sym_id) stack;
    VEC(struct sym_term) term;
    VEC(struct sym_frame) frame;
};

void symtab_init(struct symtab *t, struct mem *m); /* allocates nothing yet */
void symtab_destroy(struct symtab *t);

/* SYM_NONNEG_… bits, set before the first expression: canonical forms depend on them. */
void symtab_assume(struct symtab *t, unsigned assume);

/* ---- Making expressions -------------------------------------------------------------------------
 *
 * A symbol is an integer, but zf<digits> and zuf<digits> are floats. */

sym_id sym_int(struct symtab *t, int64_t v);
sym_id sym_float(struct symtab *t, double v);
sym_id sym_bool(struct symtab *t, bool v);
sym_id sym_symbol(struct symtab *t, const char *name, size_t len); /* 0: not an identifier */

sym_id sym_add(struct symtab *t, sym_id a, sym_id b);
sym_id sym_sub(struct symtab *t, sym_id a, sym_id b);
sym_id sym_neg(struct symtab *t, sym_id a);
sym_id sym_mul(struct symtab *t, sym_id a, sym_id b);
sym_id sym_pow(struct symtab *t, sym_id a, sym_id b);
sym_id sym_floordiv(struct symtab *t, sym_id a, sym_id b);
sym_id sym_ceildiv(struct symtab *t, sym_id a, sym_id b);
/* Python's a % b: Mod if both are known to be non-negative, else PythonMod, as in PyTorch. */
sym_id sym_mod(struct symtab *t, sym_id a, sym_id b);
/* Python's a / b: IntTrueDiv for integers, else FloatTrueDiv. */
sym_id sym_truediv(struct symtab *t, sym_id a, sym_id b);

/* Any operator of the table except INT, FLOAT, BOOL, SYMBOL and CALL; ADD, MUL, MIN, MAX, AND, OR
 * take any number of operands. */
sym_id sym_make(struct symtab *t, enum sym_op op, const sym_id *args, uint32_t n);

/* A function by its name in the text; an unknown one stays a function of its operands. */
sym_id sym_call(struct symtab *t, const char *name, size_t len, const sym_id *args, uint32_t n);

static inline sym_id sym_make1(struct symtab *t, enum sym_op op, sym_id a)
{
    return sym_make(t, op, &a, 1);
}

static inline sym_id sym_make2(struct symtab *t, enum sym_op op, sym_id a, sym_id b)
{
    return sym_make(t, op, (sym_id[]){a, b}, 2);
}

static inline sym_id sym_min(struct symtab *t, sym_id a, sym_id b)
{
    return sym_make2(t, SYM_MIN, a, b);
}

static inline sym_id sym_max(struct symtab *t, sym_id a, sym_id b)
{
    return sym_make2(t, SYM_MAX, a, b);
}

static inline sym_id sym_to_float(struct symtab *t, sym_id a)
{
    return sym_make1(t, SYM_TOFLOAT, a);
}

/* Accepts what either of PyTorch's printers writes, and Python's operators. 0: not an expression,
 * or one that has no id (see above). */
sym_id sym_parse(struct symtab *t, const char *s, size_t len);

/* Prints it as PyTorch prints a size. Parsing the text gives the same id again. */
void sym_print(const struct symtab *t, sym_id id, struct buf *out);

/* ---- Asking ---------------------------------------------------------------------------------- */

static inline enum sym_type sym_type(const struct symtab *t, sym_id id)
{
    return id ? (enum sym_type)t->node.at[id].type : SYM_T_ANY;
}

/* True if id is an integer constant. */
bool sym_as_int(const struct symtab *t, sym_id id, int64_t *out);

/* True if id is a number, True or False. */
bool sym_as_number(const struct symtab *t, sym_id id, struct sym_num *out);

/* Known to be >= 0 whenever it has a value. False means unknown. */
static inline bool sym_nonneg(const struct symtab *t, sym_id id)
{
    return id != 0 && t->node.at[id].nonneg;
}

/* Calls fn once for each symbol; fn must not use the functions that walk the table: this,
 * sym_subst, sym_normal. */
void sym_symbols(struct symtab *t, sym_id id,
                 void (*fn)(void *ctx, sym_id symbol, const char *name), void *ctx);

/* Replaces symbols: fn returns the replacement of a symbol, or the symbol itself. fn may make
 * expressions, but must not use the functions that walk the table. */
sym_id sym_subst(struct symtab *t, sym_id id,
                 sym_id (*fn)(void *ctx, sym_id symbol, const char *name), void *ctx);

/* A form for comparing, not for printing: products are multiplied out (within bounds), remainders
 * written with //, comparisons as Eq(d, 0) or d >= 0. */
sym_id sym_normal(struct symtab *t, sym_id id);

/* True: equal whenever both have a value. False: not known to be. */
bool sym_same(struct symtab *t, sym_id a, sym_id b);

enum sym_status {
    SYM_OK,
    SYM_UNBOUND,   /* lookup did not know a symbol */
    SYM_OVERFLOW,  /* the value or an intermediate one is too large */
    SYM_UNDEFINED, /* division by zero, an unknown function, a float that is not finite */
};

/* The value of a symbol: an integer or a float. False if unknown. */
typedef bool (*sym_lookup_fn)(void *ctx, const char *name, struct sym_num *out);

enum sym_status sym_eval(const struct symtab *t, sym_id id, sym_lookup_fn lookup, void *ctx,
                         struct sym_num *out);

/* ---- Between sym*.c -----------------------------------------------------------------------------
 *
 * The functions that "take" consume the operands on t->stack from `base` on. */

struct sym_row {
    const char *name, *class_name;
    uint8_t rank, min, max, type; /* max 0 means any number */
    uint16_t prec;
};
extern const struct sym_row sym_rows[SYM_N_OPS];

static inline const struct sym_node *sym_at(const struct symtab *t, sym_id id)
{
    assert_hot(id < t->node.len);
    return &t->node.at[id];
}

static inline sym_id sym_arg(const struct symtab *t, sym_id id, uint32_t i)
{
    assert_hot(id < t->node.len && i < t->node.at[id].n_arg);
    return t->arg.at[t->node.at[id].first_arg + i];
}

static inline bool sym_is(const struct symtab *t, sym_id id, enum sym_op op)
{
    return t->node.at[id].op == op;
}

static inline bool sym_is_int(const struct symtab *t, sym_id id, int64_t v)
{
    return t->node.at[id].op == SYM_INT && t->node.at[id].u.i == v;
}

static inline void sym_push(struct symtab *t, sym_id id)
{
    vec_push(t->mem, &t->stack, id);
}

sym_id sym_intern(struct symtab *t, enum sym_op op, str_id name, uint32_t base);
sym_id sym_take(struct symtab *t, enum sym_op op, uint32_t base);
sym_id sym_take_call(struct symtab *t, str_id name, uint32_t base);
sym_id sym_take_sum(struct symtab *t, uint32_t base);
sym_id sym_take_product(struct symtab *t, uint32_t base);
sym_id sym_take_extreme(struct symtab *t, enum sym_op op, uint32_t base);
sym_id sym_take_logic(struct symtab *t, enum sym_op op, uint32_t base);
sym_id sym_not(struct symtab *t, sym_id a);
sym_id sym_compare(struct symtab *t, enum sym_op op, sym_id a, sym_id b);
sym_id sym_floordiv_deep(struct symtab *t, sym_id a, sym_id b); /* cancels more than PyTorch */
sym_id sym_remainder(struct symtab *t, enum sym_op op, sym_id a, sym_id b);
sym_id sym_number(struct symtab *t, struct sym_num v);
bool sym_is_name(const char *name, size_t len); /* an identifier */

/* A sum's terms; a term's coefficient and the rest (0 for a constant term); a product's factors
 * without the number; a factor's base and exponent. */
uint32_t sym_n_terms(const struct symtab *t, sym_id id);
sym_id sym_term_at(const struct symtab *t, sym_id id, uint32_t i);
sym_id sym_split(const struct symtab *t, sym_id term, struct sym_num *coef);
uint32_t sym_n_factors(const struct symtab *t, sym_id rest);
sym_id sym_factor_at(const struct symtab *t, sym_id rest, uint32_t i, int64_t *exp);

bool sym_num_add(struct sym_num *a, struct sym_num b); /* false if it does not fit */
bool sym_num_mul(struct sym_num *a, struct sym_num b);
struct sym_num sym_num_int(int64_t v);

/* sympy's order: for anything, for the terms of a sum, for the operands of And and Or. 0 only if a
 * == b. */
int sym_order(const struct symtab *t, sym_id a, sym_id b);
int sym_order_terms(const struct symtab *t, sym_id a, sym_id b);
int sym_order_logic(const struct symtab *t, sym_id a, sym_id b);
void sym_sort(struct symtab *t, uint32_t first,
              int (*order)(const struct symtab *t, sym_id a, sym_id b));

/* The value of op for constant operands; 0 if it has none, or if they are not all constant. */
sym_id sym_fold(struct symtab *t, enum sym_op op, uint32_t base);

#endif
