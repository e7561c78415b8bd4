/* Parses signatures of operators in the notation of ops.def. */
#include "op/ops.h"

#include <string.h>

struct scan {
    struct arena *arena;
    const char *at; /* NUL-terminated */
};

static bool eat(struct scan *s, const char *text)
{
    size_t len = strlen(text);

    if (strncmp(s->at, text, len) != 0)
        return false;
    s->at += len;
    return true;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* The identifier here, "" if there is none. */
static const char *word(struct scan *s, size_t *len)
{
    const char *start = s->at;

    while (is_word(*s->at))
        s->at++;
    *len = (size_t)(s->at - start);
    return start;
}

static bool base_type(struct scan *s, struct op_param *p)
{
    static const struct {
        const char *text;
        enum op_type type;
    } bases[] = {
        {"T", OP_T_TENSOR},      {"i", OP_T_INT},         {"f", OP_T_FLOAT},
        {"b", OP_T_BOOL},        {"s", OP_T_STR},         {"S", OP_T_SCALAR},
        {"dtype", OP_T_DTYPE},   {"device", OP_T_DEVICE}, {"layout", OP_T_LAYOUT},
        {"memfmt", OP_T_MEMFMT}, {"gen", OP_T_GENERATOR}, {"storage", OP_T_STORAGE},
        {"stream", OP_T_STREAM}, {"G", OP_T_GRAPH},       {"O", OP_T_OP},
        {"A", OP_T_ANY},
    };
    size_t len;
    const char *text = word(s, &len);

    for (size_t i = 0; i < sizeof(bases) / sizeof(*bases); i++)
        if (strlen(bases[i].text) == len && memcmp(bases[i].text, text, len) == 0) {
            p->type = (uint8_t)bases[i].type;
            return true;
        }
    s->at = text;
    return false;
}

/* (a) or (a!) */
static bool alias_mark(struct scan *s, struct op_param *p)
{
    if (s->at[0] != '(' || s->at[1] < 'a' || s->at[1] > 'z')
        return false;
    p->alias = s->at[1];
    s->at += 2;
    p->mutated = eat(s, "!");
    return eat(s, ")");
}

/* T(a!)?[2]? */
static bool type(struct scan *s, struct op_param *p)
{
    if (!base_type(s, p) || (*s->at == '(' && !alias_mark(s, p)))
        return false;
    bool mark = eat(s, "?");
    for (; eat(s, "["); p->depth++) {
        p->list_size = 0;
        while (*s->at >= '0' && *s->at <= '9')
            p->list_size = (uint8_t)(p->list_size * 10 + (*s->at++ - '0'));
        if (!eat(s, "]"))
            return false;
    }
    p->items_optional = mark && p->depth;
    p->optional = (mark && !p->depth) || (p->depth && eat(s, "?"));
    return true;
}

/* A default ends at the next comma or arrow outside brackets and quotes. */
static const char *default_text(struct scan *s)
{
    const char *start = s->at;
    int depth = 0;
    char quote = 0;

    for (; *s->at; s->at++) {
        char c = *s->at;

        if (quote) {
            quote = c == quote ? 0 : quote;
        } else if (c == '\'') {
            quote = c;
        } else if (c == '[' || c == '(') {
            depth++;
        } else if (c == ']' || c == ')') {
            depth--;
        } else if (depth == 0 && (c == ',' || c == ' ')) {
            break;
        }
    }
    return s->at > start ? arena_str(s->arena, start, (size_t)(s->at - start)) : NULL;
}

static bool param(struct scan *s, struct op_param *p)
{
    size_t len;

    *p = (struct op_param){.name = "", .rest = eat(s, "...")};
    if (p->rest) {
        p->type = OP_T_ANY;
        return true;
    }
    if (!type(s, p) || !eat(s, " "))
        return false;
    const char *name = word(s, &len);
    if (len == 0)
        return false;
    p->name = arena_str(s->arena, name, len);
    if (eat(s, "=")) {
        p->default_text = default_text(s);
        return p->default_text != NULL;
    }
    return true;
}

static bool params(struct scan *s, struct op_sig *sig)
{
    bool kwarg_only = false;

    if (eat(s, "-> "))
        return true;
    do {
        if (!kwarg_only && eat(s, "*")) {
            kwarg_only = true;
            continue;
        }
        struct op_param *p = &sig->params[sig->n_params];
        if (!param(s, p))
            return false;
        p->kwarg_only = kwarg_only;
        sig->n_params++;
    } while (eat(s, ", "));
    return eat(s, " -> ");
}

static bool results(struct scan *s, struct op_sig *sig)
{
    if (eat(s, "()"))
        return *s->at == 0;
    do {
        struct op_param *r = &sig->results[sig->n_results];

        *r = (struct op_param){.name = ""};
        if (!type(s, r))
            return false;
        if (eat(s, " ")) {
            size_t len;
            const char *name = word(s, &len);

            if (len == 0)
                return false;
            r->name = arena_str(s->arena, name, len);
        }
        sig->n_results++;
    } while (eat(s, ", "));
    return *s->at == 0;
}

/* name(a!) or name? */
static bool param_mark(struct scan *s, struct op_sig *sig)
{
    const char *start = s->at;
    size_t len;
    const char *name = word(s, &len);
    int i = op_param_find(sig, name, len);

    if (i < 0) {
        s->at = start;
        return false;
    }
    if (eat(s, "?")) {
        sig->params[i].optional = true;
        return true;
    }
    return alias_mark(s, &sig->params[i]);
}

static bool lies(struct scan *s, struct op_sig *sig)
{
    if (!eat(s, "-> ")) {
        do {
            if (!param_mark(s, sig))
                return false;
        } while (eat(s, ", "));
        if (!eat(s, " -> "))
            return *s->at == 0;
    }
    for (uint32_t i = 0; i < sig->n_results; i++) {
        struct op_param *r = &sig->results[i];

        if (i && !eat(s, ", "))
            return false;
        if (eat(s, "_")) {
            r->alias = 0;
            r->mutated = false;
        } else if (!alias_mark(s, r)) {
            return false;
        }
    }
    return *s->at == 0;
}

/* An upper bound for the number of parameters, from the commas. */
static size_t room(const char *text)
{
    size_t n = 1;

    for (; *text; text++)
        n += *text == ',';
    return n;
}

bool op_sig_parse_schema(struct arena *a, const struct op_row *row, struct op_sig *sig,
                         const char **error_at)
{
    struct scan s = {a, row->signature};
    size_t n = room(row->signature);

    *sig = (struct op_sig){0};
    sig->params = arena_array(a, struct op_param, n);
    sig->results = arena_array(a, struct op_param, n);
    if (params(&s, sig) && results(&s, sig))
        return true;
    if (error_at)
        *error_at = s.at;
    return false;
}

bool op_sig_parse(struct arena *a, const struct op_row *row, struct op_sig *sig,
                  const char **error_at)
{
    struct scan s = {a, row->lies};

    if (!op_sig_parse_schema(a, row, sig, error_at))
        return false;
    if (!row->lies || lies(&s, sig))
        return true;
    if (error_at)
        *error_at = s.at;
    return false;
}

int op_param_find(const struct op_sig *sig, const char *name, size_t len)
{
    for (uint32_t i = 0; i < sig->n_params; i++) {
        const char *own = sig->params[i].name;

        if (len && strlen(own) == len && memcmp(own, name, len) == 0)
            return (int)i;
    }
    return -1;
}

/* The end of the parameter that begins here: a comma or an arrow outside brackets and quotes. */
static const char *param_end(const char *s)
{
    int depth = 0;
    bool quoted = false;

    for (; *s != '\0'; s++) {
        if (*s == '\'')
            quoted = !quoted;
        else if (*s == '(' || *s == '[')
            depth++;
        else if (*s == ')' || *s == ']')
            depth--;
        if (depth == 0 && !quoted && (strncmp(s, ", ", 2) == 0 || strncmp(s, " -> ", 4) == 0))
            break;
    }
    return s;
}

bool op_param_is(const struct op_row *row, uint32_t p, const char *name, size_t len)
{
    const char *s = row->signature != NULL ? row->signature : "";

    for (uint32_t i = 0; *s != '\0' && strncmp(s, "-> ", 3) != 0;) {
        const char *end = param_end(s);

        if (*s != '*' && i++ == p) {
            const char *at = memchr(s, ' ', (size_t)(end - s));
            size_t left = at != NULL ? (size_t)(end - at) - 1 : 0;
            return len > 0 && left >= len && memcmp(at + 1, name, len) == 0 &&
                   (left == len || at[1 + len] == '=');
        }
        if (*end != ',')
            break;
        s = end + 2;
    }
    return false;
}

bool op_result_aliases(const struct op_sig *sig, uint32_t r, uint32_t p)
{
    return r < sig->n_results && p < sig->n_params && sig->results[r].alias &&
           sig->results[r].alias == sig->params[p].alias;
}

bool op_param_mutated(const struct op_sig *sig, uint32_t p)
{
    return p < sig->n_params && sig->params[p].mutated;
}

int op_result_alias_of(const struct op_sig *sig, uint32_t r)
{
    for (uint32_t p = 0; p < sig->n_params; p++)
        if (op_result_aliases(sig, r, p))
            return (int)p;
    return -1;
}
