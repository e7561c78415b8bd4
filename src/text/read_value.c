/* Reads operands: literals, containers, reprs, symbolic expressions. Nesting uses no stack. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/num.h"
#include "op/dtype.h"
#include "text/read.h"

static bool digit(char c)
{
    return c >= '0' && c <= '9';
}

/* May c be in a name: a digit, a letter, '_', or not ASCII? Called for most characters of a text,
 * so it is one lookup in a table of bits. */
static bool word(char c)
{
    static const uint64_t bits[4] = {0x03FF000000000000, 0x07FFFFFE87FFFFFE, UINT64_MAX,
                                     UINT64_MAX};
    unsigned char u = (unsigned char)c;

    return bits[u / 64] >> u % 64 & 1;
}

size_t ident_len(const char *s)
{
    size_t n = 0;

    if (digit(*s))
        return 0;
    while (word(s[n]))
        n++;
    return n;
}

size_t path_len(const char *s, size_t n)
{
    while (s[n] == '.') {
        size_t more = ident_len(s + n + 1);
        if (more == 0)
            break;
        n += 1 + more;
    }
    return n;
}

static void push(struct reader *r, tuck_value v)
{
    values_push(r->mem, &r->vals, v);
}

static void push_text(struct reader *r, tuck_value_kind kind, const char *s, size_t len)
{
    push(r, (tuck_value){.kind = (uint8_t)kind, .a = str_intern(&r->store->str, s, len)});
}

/* Removes the last value, an atom. */
static void unpush(struct reader *r)
{
    struct value_list *l = &r->vals;

    l->v.len--;
    if (l->open.len > 0)
        l->v.at[l->open.at[l->open.len - 1]].a--;
}

static uint32_t defined(struct reader *r, const char *s, size_t len)
{
    str_id id = str_find(&r->store->str, s, len);

    return id ? read_lookup(r, id) : 0;
}

/* s12, u3, zuf0, j1: symbols as PyTorch names them. */
static bool is_symbol(const char *s, size_t len)
{
    static const char *const prefix[] = {"s", "u", "zuf", "zf", "j"};

    for (size_t k = 0; k < sizeof(prefix) / sizeof(*prefix); k++) {
        size_t n = strlen(prefix[k]), i = n;

        if (len <= n || memcmp(s, prefix[k], n) != 0)
            continue;
        while (i < len && digit(s[i]))
            i++;
        if (i == len)
            return true;
    }
    return false;
}

/* ---- atoms ---- */

/* After the string literal at s, or NULL if it is not closed. */
static const char *string_end(const char *s)
{
    char q = *s;
    bool three = s[1] == q && s[2] == q;

    for (s += three ? 3 : 1; *s != '\0'; s++) {
        if (*s == '\\' && s[1] != '\0')
            s++;
        else if (*s == '\n' && !three)
            return NULL;
        else if (*s == q && (!three || (s[1] == q && s[2] == q)))
            return s + (three ? 3 : 1);
    }
    return NULL;
}

static bool read_string(struct reader *r)
{
    const char *s = r->p, *e = string_end(s);

    if (e == NULL)
        return false;
    r->tmp.len = 0;
    size_t len = (size_t)(e - s);
    str_id content;
    if (memchr(s, '\\', len) == NULL && !(s[1] == *s && len > 2)) {
        content = str_intern(&r->store->str, s + 1, len - 2);
    } else {
        value_str_decode(&r->tmp, s, len);
        content = str_intern(&r->store->str, r->tmp.at ? r->tmp.at : "", r->tmp.len);
    }
    push(r,
         (tuck_value){.kind = TUCK_V_STR, .a = content, .u.i = str_intern(&r->store->str, s, len)});
    for (; s < e; s++)
        if (*s == '\n') { /* a triple-quoted string */
            r->line++;
            r->bol = s + 1;
        }
    r->p = e;
    return true;
}

static bool read_number(struct reader *r)
{
    const char *s = r->p, *e = s;
    bool whole = true;

    if (*e == '-' || *e == '+')
        e++;
    if (!digit(*e) && !(*e == '.' && digit(e[1])))
        return false;
    const char *first = e;
    while (digit(*e) || *e == '.' || *e == '_' || (*e >= 'a' && *e <= 'z') ||
           (*e >= 'A' && *e <= 'Z')) {
        if (!digit(*e))
            whole = false;
        if ((*e == 'e' || *e == 'E') && (e[1] == '-' || e[1] == '+') && digit(e[2]))
            e++;
        e++;
    }
    r->p = e;
    size_t len = (size_t)(e - s);
    if (whole && *s != '+' && (*first != '0' || e == first + 1) && e - first <= 18 &&
        !(*s == '-' && *first == '0')) {
        int64_t v = 0;
        for (const char *d = first; d < e; d++)
            v = v * 10 + (*d - '0');
        push(r, (tuck_value){.kind = TUCK_V_INT, .u.i = *s == '-' ? -v : v});
        return true;
    }
    if (whole && len <= 20 && *s != '+' && *first != '0') { /* near the limit of 64 bits */
        char *stop, digits[24];
        memcpy(digits, s, len);
        digits[len] = '\0';
        errno = 0;
        long long v = strtoll(digits, &stop, 10);
        if (errno == 0) {
            push(r, (tuck_value){.kind = TUCK_V_INT, .u.i = v});
            return true;
        }
    }
    double f;
    if (!whole && num_float(s, len, &f)) {
        push(r,
             (tuck_value){.kind = TUCK_V_FLOAT, .a = str_intern(&r->store->str, s, len), .u.f = f});
        return true;
    }
    push_text(r, TUCK_V_NUMBER, s, len);
    return true;
}

/* <...>, which may nest, on one line. */
static bool read_angle(struct reader *r)
{
    const char *s = r->p, *e = s;
    int depth = 0;

    for (; *e != '\n' && *e != '\0'; e++) {
        if (*e == '\'' || *e == '"') {
            const char *q = string_end(e);
            if (q == NULL)
                return false;
            e = q - 1;
        } else if (*e == '<') {
            depth++;
        } else if (*e == '>' && --depth == 0) {
            values_open(r->mem, &r->vals, TUCK_V_RAW);
            push_text(r, TUCK_V_TEXT, s, (size_t)(e + 1 - s));
            values_close(&r->vals);
            r->p = e + 1;
            return true;
        }
    }
    return false;
}

static bool among(const char *s, size_t len, const char *const *list)
{
    for (; *list; list++)
        if (strlen(*list) == len && memcmp(*list, s, len) == 0)
            return true;
    return false;
}

/* Functions that PyTorch prints in sizes. */
static bool is_function(const char *s, size_t len)
{
    static const char *const names[] = {"Mod",
                                        "PythonMod",
                                        "FloorDiv",
                                        "CleanDiv",
                                        "CeilDiv",
                                        "Max",
                                        "Min",
                                        "IntTrueDiv",
                                        "CeilToInt",
                                        "FloatTrueDiv",
                                        "PowByNatural",
                                        "FloatPow",
                                        "FloorToInt",
                                        "TruncToInt",
                                        "RoundToInt",
                                        "ToFloat",
                                        "Where",
                                        "Identity",
                                        "Eq",
                                        "Ne",
                                        "Lt",
                                        "Le",
                                        "Gt",
                                        "Ge",
                                        "And",
                                        "Or",
                                        "Not",
                                        "Abs",
                                        "Piecewise",
                                        "TruncToFloat",
                                        "RoundDecimal",
                                        "ModularIndexing",
                                        "BitwiseFn_bitwise_and",
                                        "BitwiseFn_bitwise_or",
                                        "LShift",
                                        "RShift",
                                        NULL};
    static const char opaque[] = "OpaqueUnaryFn_"; /* sqrt, sin … */

    return among(s, len, names) ||
           (len >= sizeof(opaque) && memcmp(s, opaque, sizeof(opaque) - 1) == 0);
}

static tuck_value_kind name_kind(const char *s, size_t len)
{
    static const char *const layouts[] = {"strided",    "sparse_coo", "sparse_csr",
                                          "sparse_csc", "sparse_bsr", "sparse_bsc",
                                          "jagged",     "_mkldnn",    NULL};
    static const char *const formats[] = {"contiguous_format", "preserve_format", "channels_last",
                                          "channels_last_3d", NULL};

    if (len > 10 && memcmp(s, "torch.ops.", 10) == 0)
        return TUCK_V_OP;
    if (len < 7 || memcmp(s, "torch.", 6) != 0)
        return TUCK_V_NAME;
    s += 6;
    len -= 6;
    if (dtype_by_name(s, len) != DTYPE_NONE)
        return TUCK_V_DTYPE;
    return among(s, len, layouts)   ? TUCK_V_LAYOUT
           : among(s, len, formats) ? TUCK_V_FORMAT
                                    : TUCK_V_NAME;
}

/* A global used as a value. What it is does not change, so it is cached with the string. */
static void push_name(struct reader *r, const char *s, size_t len)
{
    str_id id = str_intern(&r->store->str, s, len);
    bool dotted = memchr(s, '.', len) != NULL;
    tuck_value_kind kind = dotted ? (tuck_value_kind)r->store->str.all.at[id].node : TUCK_V_NAME;

    if (dotted && kind == 0) {
        kind = name_kind(s, len);
        r->store->str.all.at[id].node = kind;
    }
    push(r, (tuck_value){.kind = (uint8_t)kind, .a = id});
}

/* Where is a name defined that was used too early? For the note of the error. */
static uint32_t defined_later(const struct reader *r, const char *s, size_t len)
{
    uint32_t line = r->line;

    for (const char *p = r->p; (p = strchr(p, '\n')) != NULL && ++line;) {
        p++;
        const char *q = after_blanks(p);
        if (starts_with(q, "return") || starts_with(q, "class "))
            break;
        if (strncmp(q, s, len) == 0 && (q[len] == ':' || starts_with(q + len, " = ")) &&
            !starts_with(q + len, " = None"))
            return line < r->text->line.len ? r->text->line.at[line] : r->text->line0 + line + 1;
    }
    return 0;
}

static bool undefined(struct reader *r, const char *s, size_t len)
{
    char note[80];

    if (r->nested) {
        read_warn(r, s, len, "kept as it is: a nested graph may refer to the one around it",
                  "undefined name '%.*s'", (int)len, s);
        push_text(r, TUCK_V_NAME, s, len);
        return true;
    }
    uint32_t later = defined_later(r, s, len);
    snprintf(note, sizeof(note), "it is defined further down, in line %u", later);
    return read_error(r, s, len, later ? note : NULL, "undefined name '%.*s'", (int)len, s);
}

/* An identifier that is neither a call nor dotted nor a node. */
static bool read_word(struct reader *r, size_t len)
{
    const char *s = r->p;

    r->p += len;
    if (len == 4 && memcmp(s, "None", 4) == 0)
        push(r, (tuck_value){.kind = TUCK_V_NONE});
    else if (len == 4 && memcmp(s, "True", 4) == 0)
        push(r, (tuck_value){.kind = TUCK_V_BOOL, .u.i = 1});
    else if (len == 5 && memcmp(s, "False", 5) == 0)
        push(r, (tuck_value){.kind = TUCK_V_BOOL, .u.i = 0});
    else if (len == 3 && (memcmp(s, "inf", 3) == 0 || memcmp(s, "nan", 3) == 0))
        push(r, (tuck_value){.kind = TUCK_V_FLOAT,
                             .a = str_intern(&r->store->str, s, len),
                             .u.f = *s == 'i' ? INFINITY : NAN});
    else if (is_symbol(s, len))
        push_text(r, TUCK_V_SYM, s, len);
    else if (r->lenient > 0 || name_is_reserved(s, len))
        push_text(r, TUCK_V_NAME, s, len);
    else
        return undefined(r, s, len);
    return true;
}

/* ---- expressions and other text ---- */

void read_raw(struct reader *r, const char *from, const char *to)
{
    const char *text = from;

    values_open(r->mem, &r->vals, TUCK_V_RAW);
    for (const char *s = from; s < to;) {
        size_t n = 0;

        if (*s == '\'' || *s == '"') {
            const char *e = string_end(s);
            s = e != NULL && e <= to ? e : s + 1;
            continue;
        }
        if (*s == '#') { /* a comment */
            while (s < to && *s != '\n')
                s++;
            continue;
        }
        if (digit(*s))
            while (s < to && word(*s))
                s++;
        else
            n = ident_len(s);
        if (n == 0) {
            s += s < to;
            continue;
        }
        const char *after = after_blanks(s + n);
        uint32_t node = s > from && s[-1] == '.'                       ? 0
                        : *after == '=' && after[1] != '=' && s > from ? 0
                                                                       : defined(r, s, n);
        if (node != 0) {
            if (s > text)
                push_text(r, TUCK_V_TEXT, text, (size_t)(s - text));
            push(r, (tuck_value){.kind = TUCK_V_NODE, .a = node});
            text = s + n;
        }
        s += n;
    }
    if (to > text)
        push_text(r, TUCK_V_TEXT, text, (size_t)(to - text));
    values_close(&r->vals);
}

/* After the expression that continues at s, or NULL: it ends at the next delimiter outside
 * brackets. */
static const char *expression_end(const struct reader *r, const char *s)
{
    int depth = 0;
    bool lines = r->brackets > 0 || r->vals.open.len > 0;

    for (; *s != '\0'; s++) {
        if (*s == '(' || *s == '[' || *s == '{')
            depth++;
        else if (*s == '\'' || *s == '"' || *s == '#' || (*s == '\n' && !lines))
            break;
        else if (depth == 0 && strchr(",)]}:;", *s) != NULL)
            break;
        else if (*s == ')' || *s == ']' || *s == '}')
            depth--;
    }
    if (depth != 0 || *s == '\'' || *s == '"')
        return NULL;
    while (s[-1] == ' ' || s[-1] == '\n')
        s--;
    return s;
}

static bool is_complex(const char *s, const char *e)
{
    bool j = false;

    for (; s < e; s++) {
        if (strchr("0123456789+-.eE()infa", *s) == NULL && *s != 'j')
            return false;
        j |= *s == 'j';
    }
    return j;
}

/* The text from..to as an expression of symbols, a complex number, flags of an enum. */
static bool push_expression(struct reader *r, const char *from, const char *to)
{
    bool node = false, dotted = false;
    const char *unknown = NULL;
    size_t unknown_len = 0;

    if (strchr("+-*/%|&^<>=~", to[-1]) != NULL)
        return false; /* an operator without its right side */
    if (is_complex(from, to)) {
        push_text(r, TUCK_V_NUMBER, from, (size_t)(to - from));
        return true;
    }
    for (const char *s = from; s < to;) {
        size_t n = ident_len(s);

        if (n == 0) {
            if (digit(*s))
                while (s < to && (word(*s) || *s == '.'))
                    s++;
            else
                s++;
            continue;
        }
        if (s[n] == '.')
            dotted = true;
        if (defined(r, s, n))
            node = true;
        else if (!is_symbol(s, n) && s[n] != '(' && !name_is_reserved(s, n) && unknown == NULL)
            unknown = s, unknown_len = n;
        s += n;
        while (s < to && *s == '.') /* the rest of a dotted path means nothing by itself */
            s += 1 + ident_len(s + 1);
    }
    if (unknown != NULL && !dotted && r->lenient == 0)
        return undefined(r, unknown, unknown_len);
    for (const char *s = from; s < to; s++)
        if (*s == '\n') {
            r->line++;
            r->bol = s + 1;
        }
    if (node)
        read_raw(r, from, to);
    else
        push_text(r, dotted ? TUCK_V_NAME : TUCK_V_SYM, from, (size_t)(to - from));
    return true;
}

/* ---- containers ---- */

static void open_container(struct reader *r, tuck_value_kind kind, const char *at)
{
    vec_push(r->mem, &r->open_at_text, at);
    values_open(r->mem, &r->vals, kind);
    if (kind == TUCK_V_CALL)
        r->lenient++;
}

static tuck_value *innermost(struct reader *r)
{
    return &r->vals.v.at[r->vals.open.at[r->vals.open.len - 1]];
}

/* `( expression )` was read as a tuple of one without a comma: returns its text instead. */
static const char *unwrap(struct reader *r)
{
    struct value_list *l = &r->vals;
    const char *at = r->open_at_text.at[--r->open_at_text.len];

    l->v.len = l->open.at[--l->open.len];
    if (l->open.len > 0)
        l->v.at[l->open.at[l->open.len - 1]].a--;
    return at;
}

/* The bracket at the cursor closes the innermost container. Sets *text if that turns out to be an
 * expression in parentheses, which is not pushed yet. */
static bool close_container(struct reader *r, uint32_t base, const char **text)
{
    tuck_value *v = innermost(r);
    char c = *r->p;

    *text = NULL;
    switch (v->kind) {
    case TUCK_V_LIST:
        if (c != ']')
            return false;
        break;
    case TUCK_V_SIZE:
        if (c != ']' || r->p[1] != ')')
            return false;
        r->p++;
        break;
    case TUCK_V_DICT:
        if (c != '}' || (v->a % 2 == 1 && v->a != 1))
            return false;
        if (v->a == 1)
            v->kind = TUCK_V_SET;
        break;
    case TUCK_V_SET:
        if (c != '}')
            return false;
        break;
    case TUCK_V_SLICE:
        if (c != ')' || v->a != 3)
            return false;
        break;
    case TUCK_V_TUPLE:
        if (c != ')')
            return false;
        if (v->a == 1 && !v->flags) {
            *text = unwrap(r);
            r->p++;
            /* ((( x ))) at once: taking the text again at each level would be quadratic */
            while (*r->p == ')' && r->vals.open.len > base && innermost(r)->kind == TUCK_V_TUPLE &&
                   innermost(r)->a == 0) {
                *text = unwrap(r);
                r->p++;
            }
            return true;
        }
        break;
    default:
        if (c != ')')
            return false;
        r->lenient--;
        break;
    }
    v->flags = 0;
    r->p++;
    r->open_at_text.len--;
    values_close(&r->vals);
    return true;
}

static bool is_key(const char *s, size_t n)
{
    s = after_blanks(s + n);
    return s[0] == '=' && s[1] != '=';
}

/* Reads what begins with an identifier. *opened: a container was opened, its items come next. */
static bool read_ident(struct reader *r, size_t n, bool *opened)
{
    const char *s = r->p;
    uint32_t node;

    *opened = false;
    if ((s[n] == '\'' || s[n] == '"') && n == 1) { /* b'..', r'..' */
        const char *e = string_end(s + 1);
        if (e == NULL)
            return false;
        push_text(r, TUCK_V_BYTES, s, (size_t)(e - s));
        r->p = e;
        return true;
    }
    if (s[n] != '.' && s[n] != '(') {
        node = defined(r, s, n);
        if (node == 0)
            return read_word(r, n);
        push(r, (tuck_value){.kind = TUCK_V_NODE, .a = node});
        r->p += n;
        return true;
    }
    if (defined(r, s, n)) /* an attribute of a node: FX prints no such operand */
        return false;
    n = path_len(s, n);
    r->p += n;
    if (*r->p != '(') {
        push_name(r, s, n);
        return true;
    }
    if (n == 6 && memcmp(s, "device", 6) == 0 && r->lenient == 0) {
        size_t m = strcspn(r->p, ")\n");
        if (r->p[m] != ')')
            return false;
        push_text(r, TUCK_V_DEVICE, s, n + m + 1);
        r->p += m + 1;
        return true;
    }
    if (is_function(s, n)) {
        const char *e = expression_end(r, s);
        if (e == NULL || !push_expression(r, s, e))
            return false;
        r->p = e;
        return true;
    }
    *opened = true;
    if (n == 10 && starts_with(s, "torch.Size([")) {
        r->p += 2;
        open_container(r, TUCK_V_SIZE, s);
        return true;
    }
    r->p++;
    if (n == 5 && memcmp(s, "slice", 5) == 0) {
        open_container(r, TUCK_V_SLICE, s);
        return true;
    }
    open_container(r, TUCK_V_CALL, s);
    push_text(r, TUCK_V_NAME, s, n);
    return true;
}

/* One atom, or the opening of a container. */
static bool read_atom(struct reader *r, bool expressions, bool *opened)
{
    const char *s = r->p, *e;
    size_t n = ident_len(s);

    *opened = false;
    if (n > 0)
        return read_ident(r, n, opened);
    switch (*s) {
    case '\'':
    case '"': return read_string(r);
    case '<': return read_angle(r);
    case '[':
    case '(':
    case '{':
        open_container(r, *s == '[' ? TUCK_V_LIST : *s == '(' ? TUCK_V_TUPLE : TUCK_V_DICT, s);
        r->p++;
        *opened = true;
        return true;
    case '-':
        if (starts_with(s, "-inf") && !word(s[4])) {
            push(r, (tuck_value){.kind = TUCK_V_FLOAT,
                                 .a = str_intern(&r->store->str, s, 4),
                                 .u.f = -INFINITY});
            r->p += 4;
            return true;
        }
        break;
    default: break;
    }
    if (read_number(r))
        return true;
    if (!expressions || (*s != '-' && *s != '~'))
        return false;
    e = expression_end(r, s);
    if (e == NULL || e == s)
        return false;
    if (!push_expression(r, s, e))
        return false;
    r->p = e;
    return true;
}

/* `mm,  # PlainAOTOutput(idx=0)` in an expanded return: the comment is about the item before it. */
static void read_descriptor(struct reader *r)
{
    const char *s = after_blanks(r->p);
    uint32_t items = innermost(r)->a;

    if (*s != '#')
        return;
    s += 1 + (s[1] == ' ');
    while (r->g->out_descriptor.len + 1 < items)
        vec_push(r->mem, &r->g->out_descriptor, 0);
    vec_push(r->mem, &r->g->out_descriptor, str_intern(&r->store->str, s, strcspn(s, "\n")));
}

static bool operator_follows(const char *s)
{
    if (*s == ',' || *s == ')' || *s == ']') /* the usual case */
        return false;
    s += strspn(s, " \n");
    return strchr("+-*/%|&^<>", *s) != NULL ? *s != '\0' : (*s == '=' || *s == '!') && s[1] == '=';
}

bool read_operand(struct reader *r, bool expressions)
{
    uint32_t base = r->vals.open.len;

    for (;;) {
        const char *start, *text = NULL;
        bool opened = false;

        if (r->brackets > 0 || r->vals.open.len > base)
            read_space(r);
        else
            read_blanks(r);
        start = r->p;
        if (r->vals.open.len > base && (*start == ')' || *start == ']' || *start == '}')) {
            if (!close_container(r, base, &text))
                return false;
            start = text;
        } else {
            size_t n = r->vals.open.len > base && innermost(r)->kind == TUCK_V_CALL
                           ? ident_len(start)
                           : 0;
            if (n > 0 && is_key(start, n)) {
                push_text(r, TUCK_V_KEY, start, n);
                r->p = strchr(start + n, '=') + 1;
                continue;
            }
            if (!read_atom(r, expressions, &opened))
                return false;
            if (opened)
                continue;
        }
        bool inside = r->vals.open.len > base;
        if (start != NULL &&
            (text != NULL || ((expressions || inside) && operator_follows(r->p)))) {
            const char *e = (expressions || inside) && operator_follows(r->p)
                                ? expression_end(r, r->p)
                                : r->p;
            if (e == NULL)
                return false;
            if (text == NULL)
                unpush(r);
            if (!push_expression(r, start, e))
                return false;
            r->p = e;
        }
        if (!inside)
            return true;
        read_space(r);
        if (*r->p == ',') {
            tuck_value *v = innermost(r);
            v->flags = 1;
            if (v->kind == TUCK_V_DICT && v->a == 1)
                v->kind = TUCK_V_SET;
            r->p++;
        } else if (*r->p == ':' && innermost(r)->kind == TUCK_V_DICT && innermost(r)->a % 2 == 1) {
            r->p++;
        } else if (*r->p != ')' && *r->p != ']' && *r->p != '}') {
            return false;
        }
        if (r->want_descriptors && r->vals.open.len == base + 1)
            read_descriptor(r);
    }
}

bool read_arguments(struct reader *r, uint32_t *n_args, uint32_t *n_kwargs)
{
    *n_args = *n_kwargs = 0;
    r->brackets++;
    for (;;) {
        read_space(r);
        if (*r->p == ')')
            break;
        size_t n = ident_len(r->p);
        if (n > 0 && is_key(r->p, n)) {
            push_text(r, TUCK_V_KEY, r->p, n);
            r->p = strchr(r->p + n, '=') + 1;
            (*n_kwargs)++;
        } else if (*n_kwargs > 0) {
            return false;
        } else {
            (*n_args)++;
        }
        if (!read_operand(r, true))
            return false;
        read_space(r);
        if (*r->p == ',')
            r->p++;
        else if (*r->p != ')')
            return false;
    }
    r->brackets--;
    r->p++;
    return true;
}
