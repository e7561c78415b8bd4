/* Parses text into an expression, by operator precedence and with its own stack: the depth of
 * parentheses is limited by memory only, and a sum of a thousand terms is built once.
 *
 * The precedences are Python's, lowest first: comparison, |, &, + -, * / // %, unary - ~, **.
 */
#include "base/num.h"
#include "sym/sym.h"

enum kind {
    GROUP,
    CALL,
    COMPARE,
    OR,
    AND,
    SUM,
    PRODUCT,
    UNARY,
    POWER
}; /* by precedence from CALL on */

/* What a frame waits for: an operator of its kind, whose right operand comes next. */
enum pending { NOTHING, PLUS, MINUS, TIMES, OVER, FLOOR_OVER, REMAINDER, INVERT };

struct text {
    struct symtab *t;
    const char *at, *end;
    uint32_t first_frame;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || is_digit(c);
}

static void skip_blanks(struct text *s)
{
    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n'))
        s->at++;
}

static bool accept(struct text *s, const char *token)
{
    size_t n = strlen(token);

    if ((size_t)(s->end - s->at) < n || memcmp(s->at, token, n) != 0)
        return false;
    s->at += n;
    return true;
}

static struct sym_frame *top(struct text *s)
{
    struct symtab *t = s->t;

    return t->frame.len > s->first_frame ? &t->frame.at[t->frame.len - 1] : NULL;
}

static void open_frame(struct text *s, enum kind kind, uint8_t pending, uint32_t base, str_id name)
{
    struct sym_frame f = {(uint8_t)kind, pending, base, name};

    vec_push(s->t->mem, &s->t->frame, f);
}

static sym_id pop(struct symtab *t)
{
    return t->stack.at[--t->stack.len];
}

/* ---- Operands -------------------------------------------------------------------------------- */

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

/* 12, 2.5, 1.00000000000000, 1.0e-5; 0: too large, or 2s0 */
static sym_id parse_number(struct text *s)
{
    const char *p = skip_digits(s->at, s->end);
    bool is_float = false;

    if (p < s->end && *p == '.') {
        is_float = true;
        p = skip_digits(p + 1, s->end);
    }
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        const char *q = p + 1;

        is_float = true;
        if (q < s->end && (*q == '+' || *q == '-'))
            q++;
        p = skip_digits(q, s->end);
        if (p == q)
            return 0;
    }
    size_t n = (size_t)(p - s->at);
    const char *digits = s->at;
    if (p < s->end && (is_name_char(*p) || *p == '.'))
        return 0;
    double f;
    if (is_float && !num_float(digits, n, &f))
        return 0;
    s->at = p;
    if (is_float)
        return sym_float(s->t, f);
    int64_t v = 0;
    for (size_t i = 0; i < n; i++)
        if (!size_mul(v, 10, &v) || !size_add(v, digits[i] - '0', &v))
            return 0;
    return sym_int(s->t, v);
}

static bool is_word(const char *name, size_t len, const char *word)
{
    return len == strlen(word) && memcmp(name, word, len) == 0;
}

/* A symbol, True, False, or the beginning of a call: then opens a frame and sets *called. */
static sym_id parse_name(struct text *s, bool *called)
{
    static const char *const not_sizes[] = {"oo", "int_oo", "zoo", "nan", "inf", "None"};
    const char *name = s->at;

    while (s->at < s->end && is_name_char(*s->at))
        s->at++;
    size_t len = (size_t)(s->at - name);

    skip_blanks(s);
    if (s->at < s->end && *s->at == '(') {
        s->at++;
        *called = true;
        open_frame(s, CALL, NOTHING, s->t->stack.len, str_intern(&s->t->names, name, len));
        return 0;
    }
    if (is_word(name, len, "True") || is_word(name, len, "False"))
        return sym_bool(s->t, len == 4);
    for (size_t i = 0; i < sizeof(not_sizes) / sizeof(*not_sizes); i++)
        if (is_word(name, len, not_sizes[i]))
            return 0;
    return sym_symbol(s->t, name, len);
}

/* -a*b is printed for the product of -1, a and b: a minus in front of a term is such a factor. The
 * same holds for -a//b, which is (-a)//b. */
static void begin_minus(struct text *s, uint32_t base)
{
    struct sym_frame *f = top(s);

    if (f != NULL && f->kind >= PRODUCT) {
        open_frame(s, UNARY, MINUS, base, 0);
    } else {
        open_frame(s, PRODUCT, TIMES, base, 0);
        sym_push(s->t, sym_int(s->t, -1));
    }
}

/* Reads up to and including the next operand. *done: it is on the stack. */
static bool parse_operand(struct text *s, bool *done)
{
    uint32_t base = s->t->stack.len;
    bool called = false;
    sym_id id;

    *done = false;
    if (s->at == s->end)
        return false;
    if (accept(s, "("))
        open_frame(s, GROUP, NOTHING, base, 0);
    else if (accept(s, "-"))
        begin_minus(s, base);
    else if (accept(s, "~"))
        open_frame(s, UNARY, INVERT, base, 0);
    else if (!accept(s, "+")) {
        id = is_digit(*s->at) || *s->at == '.' ? parse_number(s) : parse_name(s, &called);
        if (called)
            return true;
        if (id == 0)
            return false;
        sym_push(s->t, id);
        *done = true;
    }
    return true;
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* The right operand of the frame's operator is complete: joins it with what comes before. */
static bool settle(struct symtab *t, struct sym_frame f)
{
    sym_id a, b;

    switch (f.pending) {
    case MINUS: sym_push(t, sym_neg(t, pop(t))); break;
    case INVERT: sym_push(t, sym_not(t, pop(t))); break;
    case OVER:
    case FLOOR_OVER:
    case REMAINDER:
        b = pop(t);
        a = sym_take_product(t, f.base);
        if (f.pending == OVER)
            sym_push(t, sym_make2(t, SYM_DIV, a, b));
        else
            sym_push(t, f.pending == REMAINDER ? sym_mod(t, a, b) : sym_floordiv(t, a, b));
        break;
    default: break;
    }
    return t->stack.at[t->stack.len - 1] != 0;
}

static bool reduce(struct text *s)
{
    struct symtab *t = s->t;
    struct sym_frame f = *top(s);
    sym_id id;

    t->frame.len--;
    if (f.kind == COMPARE) {
        id = sym_take(t, (enum sym_op)f.pending, f.base);
    } else {
        if (!settle(t, f))
            return false;
        switch (f.kind) {
        case OR: id = sym_take(t, SYM_OR, f.base); break;
        case AND: id = sym_take(t, SYM_AND, f.base); break;
        case SUM: id = sym_take_sum(t, f.base); break;
        case PRODUCT: id = sym_take_product(t, f.base); break;
        case POWER: id = sym_take(t, SYM_POW, f.base); break;
        default: return true; /* UNARY: settled in its place */
        }
    }
    sym_push(t, id);
    return id != 0;
}

/* Closes all operators that bind tighter than `kind`. */
static bool reduce_above(struct text *s, enum kind kind)
{
    for (struct sym_frame *f; (f = top(s)) != NULL && f->kind > kind;)
        if (!reduce(s))
            return false;
    return true;
}

static bool parse_operator(struct text *s, enum kind *kind, uint8_t *pending)
{
    static const struct {
        const char *token; /* longer ones first */
        enum kind kind;
        int pending;
    } operators[] = {
        {"**", POWER, NOTHING},  {"//", PRODUCT, FLOOR_OVER}, {"*", PRODUCT, TIMES},
        {"/", PRODUCT, OVER},    {"%", PRODUCT, REMAINDER},   {"+", SUM, PLUS},
        {"-", SUM, MINUS},       {"&", AND, NOTHING},         {"|", OR, NOTHING},
        {"==", COMPARE, SYM_EQ}, {"!=", COMPARE, SYM_NE},     {"<=", COMPARE, SYM_LE},
        {">=", COMPARE, SYM_GE}, {"<", COMPARE, SYM_LT},      {">", COMPARE, SYM_GT},
    };

    for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
        if (accept(s, operators[i].token)) {
            *kind = operators[i].kind;
            *pending = (uint8_t)operators[i].pending;
            return true;
        }
    }
    return false;
}

static bool begin_operator(struct text *s, enum kind kind, uint8_t pending)
{
    struct symtab *t = s->t;
    struct sym_frame *f;

    if (!reduce_above(s, kind))
        return false;
    f = top(s);
    if (f == NULL || f->kind != kind || kind == POWER) { /* ** groups to the right */
        open_frame(s, kind, pending, t->stack.len - 1, 0);
        return true;
    }
    if (kind == COMPARE) /* a < b < c */
        return false;
    if (!settle(t, *f))
        return false;
    f->pending = pending;
    return true;
}

/* ) or , */
static bool end_operand(struct text *s, bool comma)
{
    struct symtab *t = s->t;
    struct sym_frame *f;

    if (!reduce_above(s, CALL))
        return false;
    f = top(s);
    if (f == NULL || (comma && f->kind != CALL))
        return false;
    if (comma)
        return true;
    t->frame.len--;
    if (f->kind == CALL) {
        sym_id id = sym_take_call(t, f->name, f->base);

        sym_push(t, id);
        return id != 0;
    }
    return true;
}

static bool parse(struct text *s)
{
    bool have = false; /* have an operand; an operator or the end is next */

    for (;;) {
        enum kind kind;
        uint8_t pending;

        skip_blanks(s);
        if (!have) {
            if (!parse_operand(s, &have))
                return false;
        } else if (s->at == s->end) {
            return reduce_above(s, CALL) && top(s) == NULL;
        } else if (accept(s, ")")) {
            if (!end_operand(s, false))
                return false;
        } else if (accept(s, ",")) {
            if (!end_operand(s, true))
                return false;
            have = false;
        } else if (parse_operator(s, &kind, &pending)) {
            if (!begin_operator(s, kind, pending))
                return false;
            have = false;
        } else {
            return false;
        }
    }
}

sym_id sym_parse(struct symtab *t, const char *text, size_t len)
{
    uint32_t base = t->stack.len;
    struct text s = {.t = t, .at = text, .end = text + len, .first_frame = t->frame.len};
    sym_id id = parse(&s) ? t->stack.at[t->stack.len - 1] : 0;

    t->stack.len = base;
    t->frame.len = s.first_frame;
    return id;
}
