#include "base/json_in.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/file_open.h"
#include "base/suggest.h"

/* ---- reading ---- */

/* Free it with mem_free(m, text, cap). */
static tuck_status file_load(struct mem *m, const char *path, tuck_diags *diags, char **text_out,
                             size_t *len_out, size_t *cap_out)
{
    bool std = strcmp(path, "-") == 0;
    struct diag_source src = {.file = std ? "<stdin>" : path};
    FILE *f = std ? stdin : file_open(path);
    char *text = NULL;
    size_t len = 0, cap = 0, got = 1;
    tuck_status st = TUCK_OK;

    if (f == NULL) {
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot open: %s",
                 strerror(errno));
        return TUCK_EIO;
    }
    while (got > 0 && st == TUCK_OK) {
        if (cap - len < 2) {
            size_t want = cap ? 2 * cap : 1 << 16;
            char *more = m->alloc.resize(m->alloc.ctx, text, cap, want);
            if (more == NULL) {
                st = TUCK_ENOMEM;
                break;
            }
            text = more;
            cap = want;
        }
        got = fread(text + len, 1, cap - len - 1, f);
        len += got;
    }
    if (st == TUCK_OK && ferror(f)) {
        diag_add(diags, TUCK_ERROR, (struct diag_pos){.source = &src}, NULL, "cannot read: %s",
                 strerror(errno));
        st = TUCK_EIO;
    }
    if (!std)
        fclose(f);
    if (st != TUCK_OK) {
        mem_free(m, text, cap);
        return st;
    }
    text[len] = '\0';
    *text_out = text;
    *len_out = len;
    *cap_out = cap;
    return TUCK_OK;
}

tuck_status file_read(const char *path, const tuck_allocator *alloc, tuck_diags *diags,
                      file_text_fn read, void *out)
{
    struct mem m;
    char *text;
    size_t len, cap;

    if (path == NULL || out == NULL)
        return TUCK_EINVAL;
    mem_init(&m, alloc);
    tuck_status st = file_load(&m, path, diags, &text, &len, &cap);
    if (st != TUCK_OK)
        return st;
    st = read(text, len, strcmp(path, "-") == 0 ? "<stdin>" : path, alloc, diags, out);
    mem_free(&m, text, cap);
    return st;
}

static struct diag_pos pos_of(const struct jin *in, const char *at)
{
    struct diag_pos pos = {.source = &in->source, .at = at, .line = 1, .column = 1};

    for (const char *p = in->source.text; p < at; p++) {
        pos.column++;
        if (*p == '\n') {
            pos.line++;
            pos.column = 1;
        }
    }
    return pos;
}

tuck_status jin_text(struct jin *in, const char *text, size_t len, const char *name,
                     tuck_diags *diags)
{
    json_error_t error;

    *in = (struct jin){.source = {name, text, len}, .diags = diags};
    in->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &error);
    if (in->root != NULL)
        return TUCK_OK;
    if (json_error_code(&error) == json_error_out_of_memory)
        return TUCK_ENOMEM;
    size_t at = error.position > 0 && (size_t)error.position <= len ? (size_t)error.position : 0;
    in->bad = true;
    diag_add(diags, TUCK_ERROR, pos_of(in, text + (at > 0 ? at - 1 : 0)), NULL, "not JSON: %s",
             error.text);
    return TUCK_ESYNTAX;
}

void jin_done(struct jin *in)
{
    json_decref(in->root);
    in->root = NULL;
}

/* ---- positions ---- */

struct jin_at jin_root(const struct jin *in)
{
    return (struct jin_at){.v = in->root};
}

struct jin_at jin_member(const struct jin_at *at, const char *key)
{
    return (struct jin_at){.up = at, .key = key, .v = json_object_get(at->v, key)};
}

struct jin_at jin_item(const struct jin_at *at, size_t index)
{
    return (struct jin_at){.up = at, .index = index, .v = json_array_get(at->v, index)};
}

bool jin_there(const struct jin_at *at)
{
    return at->v != NULL && !json_is_null(at->v);
}

size_t jin_len(const struct jin_at *at)
{
    return json_is_array(at->v) ? json_array_size(at->v) : json_object_size(at->v);
}

/* jansson's iterators do not accept const objects, though they change nothing. */
static json_t *loose(const json_t *v)
{
    return (json_t *)(uintptr_t)v;
}

void *jin_first(const struct jin_at *at)
{
    return json_object_iter(loose(at->v));
}

void *jin_next(const struct jin_at *at, void *i)
{
    return json_object_iter_next(loose(at->v), i);
}

struct jin_at jin_at_iter(const struct jin_at *at, void *i)
{
    return (struct jin_at){
        .up = at, .key = json_object_iter_key(i), .v = json_object_iter_value(i)};
}

/* jansson accepted the text as JSON, so a scan needs few checks; but it always advances. */
static const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\n' || *p == '\r'))
        p++;
    return p;
}

static const char *skip_string(const char *p, const char *end)
{
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\')
            p++;
    return p < end ? p + 1 : end;
}

static const char *skip_value(const char *p, const char *end)
{
    size_t depth = 0;

    do {
        p = skip_space(p, end);
        if (p >= end)
            return end;
        if (*p == '"') {
            p = skip_string(p, end);
        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;
        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;
        } else if (*p == ',' || *p == ':') {
            p++;
        } else {
            for (p++; p < end && memchr(" \t\r\n,:{}[]\"", *p, 10) == NULL;)
                p++;
        }
    } while (depth > 0);
    return p;
}

/* The length of a key as the text spells it, if it is `key`; keys with escapes never match. */
static bool same_key(const char *p, const char *after, const char *key)
{
    size_t n = strlen(key);

    return (size_t)(after - p) == n + 2 && memcmp(p + 1, key, n) == 0;
}

/* From the value at p to its member or item; NULL if not found. */
static const char *step_into(const char *p, const char *end, const struct jin_at *at)
{
    size_t i = 0;

    p = skip_space(p, end);
    if (p >= end || *p != (at->key ? '{' : '['))
        return NULL;
    for (p++;; p++, i++) {
        p = skip_space(p, end);
        if (p >= end || *p == '}' || *p == ']')
            return NULL;
        if (at->key != NULL) {
            const char *after = skip_string(p, end);
            bool same = same_key(p, after, at->key);
            p = skip_space(after, end);
            if (p < end)
                p++; /* the colon */
            if (same)
                return skip_space(p, end);
        } else if (i == at->index) {
            return p;
        }
        p = skip_space(skip_value(p, end), end);
        if (p >= end || *p != ',')
            return NULL;
    }
}

static const char *find(const struct jin *in, const struct jin_at *at)
{
    const char *end = in->source.text + in->source.len;
    size_t depth = 0, i;

    for (const struct jin_at *a = at; a->up != NULL; a = a->up)
        depth++;
    const char *p = skip_space(in->source.text, end);
    for (; depth > 0; depth--) {
        const struct jin_at *a = at;
        for (i = 1; i < depth; i++)
            a = a->up;
        const char *next = step_into(p, end, a);
        if (next == NULL)
            break;
        p = next;
    }
    return p < end ? p : in->source.text;
}

static void put_path(struct buf *b, const struct jin_at *at)
{
    size_t depth = 0;

    for (const struct jin_at *a = at; a->up != NULL; a = a->up)
        depth++;
    for (size_t d = depth; d > 0; d--) {
        const struct jin_at *a = at;
        for (size_t i = 1; i < d; i++)
            a = a->up;
        if (a->key == NULL)
            buf_printf(b, "[%zu]", a->index);
        else
            buf_printf(b, "%s%.60s", d < depth ? "." : "", a->key);
    }
}

struct complaint {
    struct jin *in;
    const struct jin_at *at;
    tuck_severity severity;
    struct buf text;
    const char *fmt;
    va_list ap;
};

static void do_complain(void *p)
{
    struct complaint *c = p;

    put_path(&c->text, c->at);
    if (c->text.len > 0)
        buf_str(&c->text, ": ");
    buf_vprintf(&c->text, c->fmt, c->ap);
    diag_add(c->in->diags, c->severity, pos_of(c->in, find(c->in, c->at)), NULL, "%s",
             buf_text(&c->text));
}

static void complain(struct jin *in, const struct jin_at *at, tuck_severity severity,
                     const char *fmt, va_list ap)
{
    struct mem m;
    struct complaint c = {.in = in, .at = at, .severity = severity, .fmt = fmt};

    if (++in->n_said > JIN_MOST) {
        if (in->n_said == JIN_MOST + 1)
            diag_add(in->diags, severity, (struct diag_pos){.source = &in->source}, NULL,
                     "there is more like this");
        return;
    }

    mem_init(&m, in->diags ? &in->diags->mem.alloc : NULL);
    buf_init(&c.text, &m);
    va_copy(c.ap, ap);
    if (!mem_guard(&m, do_complain, &c))
        diag_add(in->diags, severity, NOWHERE, NULL, "a member is wrong");
    va_end(c.ap);
    buf_destroy(&c.text);
}

void jin_error(struct jin *in, const struct jin_at *at, const char *fmt, ...)
{
    va_list ap;

    in->bad = true;
    va_start(ap, fmt);
    complain(in, at, TUCK_ERROR, fmt, ap);
    va_end(ap);
}

void jin_warning(struct jin *in, const struct jin_at *at, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    complain(in, at, TUCK_WARNING, fmt, ap);
    va_end(ap);
}

/* ---- values ---- */

static void describe(const json_t *v, char *out, size_t size)
{
    switch (v ? (int)json_typeof(v) : -1) {
    case JSON_OBJECT: snprintf(out, size, "an object"); break;
    case JSON_ARRAY: snprintf(out, size, "a list"); break;
    case JSON_STRING: snprintf(out, size, "\"%.40s\"", json_string_value(v)); break;
    case JSON_INTEGER: snprintf(out, size, "%lld", (long long)json_integer_value(v)); break;
    case JSON_REAL: snprintf(out, size, "%g", json_real_value(v)); break;
    case JSON_TRUE: snprintf(out, size, "true"); break;
    case JSON_FALSE: snprintf(out, size, "false"); break;
    case JSON_NULL: snprintf(out, size, "null"); break;
    default: snprintf(out, size, "nothing"); break;
    }
}

void jin_expected(struct jin *in, const struct jin_at *at, const char *what)
{
    char found[64];

    if (at->v == NULL) {
        jin_error(in, at, "is missing; it must be %s", what);
        return;
    }
    describe(at->v, found, sizeof(found));
    jin_error(in, at, "must be %s, found %s", what, found);
}

bool jin_want_object(struct jin *in, const struct jin_at *at)
{
    if (json_is_object(at->v))
        return true;
    jin_expected(in, at, "an object");
    return false;
}

bool jin_want_list(struct jin *in, const struct jin_at *at)
{
    if (json_is_array(at->v))
        return true;
    jin_expected(in, at, "a list");
    return false;
}

bool jin_want_str(struct jin *in, const struct jin_at *at, const char **out)
{
    if (!json_is_string(at->v)) {
        jin_expected(in, at, "a string");
        return false;
    }
    *out = json_string_value(at->v);
    return true;
}

bool jin_want_bool(struct jin *in, const struct jin_at *at, bool *out)
{
    *out = json_is_true(at->v);
    if (json_is_boolean(at->v))
        return true;
    jin_expected(in, at, "true or false");
    return false;
}

bool jin_want_int(struct jin *in, const struct jin_at *at, int64_t low, int64_t high, int64_t *out)
{
    int64_t v = json_integer_value(at->v);
    char what[96];

    if (json_is_integer(at->v) && v >= low && v <= high) {
        *out = v;
        return true;
    }
    if (high == low)
        snprintf(what, sizeof(what), "%lld", (long long)low);
    else if (high == INT64_MAX)
        snprintf(what, sizeof(what), "an integer from %lld on", (long long)low);
    else
        snprintf(what, sizeof(what), "an integer from %lld to %lld", (long long)low,
                 (long long)high);
    jin_expected(in, at, what);
    return false;
}

bool jin_want_number(struct jin *in, const struct jin_at *at, double low, bool closed, double high,
                     double *out)
{
    double v = json_number_value(at->v);
    char what[96];

    if (json_is_number(at->v) && (closed ? v >= low : v > low) && v <= high) {
        *out = v;
        return true;
    }
    if (isinf(high))
        snprintf(what, sizeof(what), closed ? "a number from %.15g on" : "a number above %.15g",
                 low);
    else
        snprintf(what, sizeof(what),
                 closed ? "a number from %.15g to %.15g" : "a number above %.15g and up to %.15g",
                 low, high);
    jin_expected(in, at, what);
    return false;
}

void jin_known(struct jin *in, const struct jin_at *at, const char *const *names, size_t n)
{
    for (void *it = jin_first(at); it != NULL; it = jin_next(at, it)) {
        struct jin_at member = jin_at_iter(at, it);
        size_t i = 0;

        while (i < n && strcmp(member.key, names[i]) != 0)
            i++;
        if (i < n || member.key[0] == '_')
            continue;
        const char *near = near_word(member.key, names, n);
        if (near != NULL)
            jin_error(in, &member, "no such member; did you mean '%s'?", near);
        else
            jin_error(in, &member, "no such member");
    }
}
