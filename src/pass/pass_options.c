/* Reads the options of passes from text into a struct. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/num.h"
#include "pass/pass.h"

const char *pass_option_type(const struct pass_option *o)
{
    static const char *const type[] = {"bool",   "int",     "float", "text",
                                       "choice", "numbers", "names"};

    return o->type == PASS_CHOICE ? o->choices : type[o->type];
}

static bool is(const char *s, size_t len, const char *word)
{
    return strlen(word) == len && memcmp(s, word, len) == 0;
}

static bool is_none(const char *s, size_t len)
{
    return is(s, len, "None") || is(s, len, "null");
}

static bool read_bool(const char *s, size_t len, bool *out)
{
    *out = is(s, len, "true") || is(s, len, "True") || is(s, len, "1");
    return *out || is(s, len, "false") || is(s, len, "False") || is(s, len, "0");
}

static bool read_int(const char *s, size_t len, int64_t *out)
{
    char text[32], *end;

    if (len == 0 || len >= sizeof(text))
        return false;
    memcpy(text, s, len);
    text[len] = '\0';
    errno = 0;
    *out = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static bool read_float(const char *s, size_t len, double *out)
{
    return num_float(s, len, out) && isfinite(*out);
}

static void trim(const char **s, size_t *len)
{
    while (*len > 0 && (**s == ' ' || **s == '\t'))
        (*s)++, (*len)--;
    while (*len > 0 && ((*s)[*len - 1] == ' ' || (*s)[*len - 1] == '\t'))
        (*len)--;
}

static void unquote(const char **s, size_t *len)
{
    if (*len >= 2 && (**s == '\'' || **s == '"') && (*s)[*len - 1] == **s) {
        (*s)++;
        *len -= 2;
    }
}

/* The next item of a list written a:b:c, [a, b, c] or (a, b, c). Advances `s`; false at the end. */
struct items {
    const char *s, *end;
    char separator;
};

static struct items items_of(const char *s, size_t len)
{
    struct items it = {s, s + len, ':'};

    if (len >= 2 && ((s[0] == '[' && s[len - 1] == ']') || (s[0] == '(' && s[len - 1] == ')')))
        it = (struct items){s + 1, s + len - 1, ','};
    return it;
}

static bool next_item(struct items *it, const char **s, size_t *len)
{
    if (it->s >= it->end)
        return false;
    const char *stop = memchr(it->s, it->separator, (size_t)(it->end - it->s));
    if (stop == NULL)
        stop = it->end;
    *s = it->s;
    *len = (size_t)(stop - it->s);
    it->s = stop + 1;
    trim(s, len);
    unquote(s, len);
    return true;
}

static bool read_floats(const char *s, size_t len, struct arena *a, struct pass_floats *out)
{
    struct items it = items_of(s, len);
    double *at = arena_array(a, double, len / 2 + 1);
    const char *one;
    size_t n;

    *out = (struct pass_floats){at, 0};
    while (next_item(&it, &one, &n))
        if (!read_float(one, n, &at[out->n++]))
            return false;
    return out->n > 0;
}

static bool none_negative(const struct pass_floats *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (!(f->at[i] >= 0))
            return false;
    return true;
}

static bool read_texts(const char *s, size_t len, struct arena *a, struct pass_texts *out)
{
    struct items it = items_of(s, len);
    const char **at = arena_array(a, const char *, len / 2 + 1), *one;
    size_t n;

    *out = (struct pass_texts){at, 0};
    while (next_item(&it, &one, &n)) {
        if (n == 0)
            return false;
        at[out->n++] = arena_str(a, one, n);
    }
    return true;
}

static bool read_choice(const char *s, size_t len, const char *choices, int *out)
{
    *out = 0;
    for (const char *c = choices;; c++) {
        size_t n = strcspn(c, "|");
        if (n == len && memcmp(c, s, n) == 0)
            return true;
        ++*out;
        c += n;
        if (*c == '\0')
            return false;
    }
}

bool pass_option_set(const struct pass_option *o, void *options, const char *value, size_t len,
                     struct arena *a, const char **wanted)
{
    void *at = (char *)options + o->at;

    trim(&value, &len);
    if (o->type != PASS_TEXTS && o->type != PASS_FLOATS)
        unquote(&value, &len);
    bool none = is_none(value, len);
    /* caps, budgets and counts may be negative only if the default is */
    bool negative = o->dflt[0] == '-';
    switch ((enum pass_type)o->type) {
    case PASS_BOOL: *wanted = "true or false"; return read_bool(value, len, at);
    case PASS_INT:
        *wanted = negative ? "a whole number or None" : "a whole number from 0 on, or None";
        *(int64_t *)at = PASS_NO_INT;
        return none || (read_int(value, len, at) && (negative || *(int64_t *)at >= 0));
    case PASS_FLOAT:
        *wanted = negative ? "a number or None" : "a number from 0 on, or None";
        *(double *)at = NAN;
        return none || (read_float(value, len, at) && (negative || *(double *)at >= 0));
    case PASS_TEXT:
        *wanted = "a text";
        *(const char **)at = none ? NULL : arena_str(a, value, len);
        return true;
    case PASS_CHOICE: *wanted = o->choices; return read_choice(value, len, o->choices, at);
    case PASS_FLOATS:
        *wanted = "a number from 0 on, or several: 50:500";
        *(struct pass_floats *)at = (struct pass_floats){NULL, 0};
        return none || (read_floats(value, len, a, at) && (negative || none_negative(at)));
    case PASS_TEXTS:
        *wanted = "names: a:b:c";
        *(struct pass_texts *)at = (struct pass_texts){NULL, 0};
        return none || read_texts(value, len, a, at);
    }
    return false;
}

/* First the listed options, then the others; NULL after the last. */
const struct pass_option *pass_option_at(const struct pass *pass, size_t i)
{
    if (i < pass->n_options)
        return &pass->options[i];
    i -= pass->n_options;
    return i < pass->n_also ? &pass->also[i] : NULL;
}

void *pass_defaults(const struct pass *pass, struct arena *a)
{
    void *options = arena_zeroed(a, pass->options_size ? pass->options_size : 1);

    assert(pass->options_size > 0 || pass->n_options == 0);
    const struct pass_option *o;
    const char *wanted;

    for (size_t i = 0; (o = pass_option_at(pass, i)) != NULL; i++) {
        bool ok = pass_option_set(o, options, o->dflt, strlen(o->dflt), a, &wanted);
        assert(ok);
        (void)ok;
    }
    return options;
}

const struct pass_option *pass_option_find(const struct pass *pass, const char *name, size_t len)
{
    const struct pass_option *o;

    for (size_t i = 0; (o = pass_option_at(pass, i)) != NULL; i++)
        if (is(name, len, o->name))
            return o;
    return NULL;
}
