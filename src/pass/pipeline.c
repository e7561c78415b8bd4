/* Pipelines: reads a list of passes with their options. */
#include <stdio.h>

#include "base/suggest.h"
#include "pass/pass.h"

void pipeline_init(struct pipeline *p, const struct pass_table *table, const tuck_allocator *alloc)
{
    *p = (struct pipeline){.table = table};
    mem_init(&p->mem, alloc);
    arena_init(&p->arena, &p->mem);
    buf_init(&p->text, &p->mem);
}

void pipeline_destroy(struct pipeline *p)
{
    buf_destroy(&p->text);
    arena_destroy(&p->arena);
}

/* ---- names ---- */

const struct pass *pass_find(const struct pass_table *t, const char *name, size_t len)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (strlen(t->row[i]->name) == len && memcmp(t->row[i]->name, name, len) == 0)
            return t->row[i];
    return NULL;
}

static const struct pass_key *key_find(const struct pass_table *t, const char *name, size_t len)
{
    for (uint32_t i = 0; i < t->n_key; i++)
        if (strlen(t->key[i].name) == len && memcmp(t->key[i].name, name, len) == 0)
            return &t->key[i];
    return NULL;
}

static const char *pass_name(const void *ctx, size_t i)
{
    const struct pass_table *t = ctx;

    return i < t->n ? t->row[i]->name : i < t->n + t->n_key ? t->key[i - t->n].name : NULL;
}

static const char *option_name(const void *ctx, size_t i)
{
    const struct pass_option *o = pass_option_at(ctx, i);

    return o ? o->name : NULL;
}

static tuck_status unknown(const char *what, const char *name, size_t len, const char *near,
                           struct diag_pos pos, tuck_diags *diags)
{
    pos.length = (uint32_t)len;
    if (near != NULL)
        diag_add(diags, TUCK_ERROR, pos, NULL, "unknown %s '%.*s'; did you mean '%s'?", what,
                 (int)len, name, near);
    else
        diag_add(diags, TUCK_ERROR, pos, "`tuck passes` lists them", "unknown %s '%.*s'", what,
                 (int)len, name);
    return TUCK_EINVAL;
}

/* Does "a|b|c" contain the word? */
static bool among(const char *list, const char *word)
{
    size_t len = strlen(word);

    for (const char *c = list;; c++) {
        size_t n = strcspn(c, "|");
        if (n == len && memcmp(c, word, n) == 0)
            return true;
        c += n;
        if (*c == '\0')
            return false;
    }
}

/* ---- text ---- */

struct cursor {
    struct pipeline *p;
    struct diag_source source;
    const char *at, *end, *line_start;
    uint32_t line;
    tuck_diags *diags;
};

static struct diag_pos here(const struct cursor *c)
{
    return (struct diag_pos){.source = &c->source,
                             .at = c->at,
                             .line = c->line,
                             .column = (uint32_t)(c->at - c->line_start) + 1,
                             .length = 1};
}

static void skip(struct cursor *c, bool commas)
{
    for (; c->at < c->end; c->at++) {
        if (*c->at == '\n') {
            c->line++;
            c->line_start = c->at + 1;
        } else if (*c->at == '#') {
            const char *stop = memchr(c->at, '\n', (size_t)(c->end - c->at));
            c->at = (stop ? stop : c->end) - 1;
        } else if (*c->at != ' ' && *c->at != '\t' && *c->at != '\r' &&
                   !(commas && (*c->at == ',' || *c->at == ';'))) {
            break;
        }
    }
}

static size_t word(const struct cursor *c)
{
    const char *s = c->at;

    while (s < c->end && (*s == '_' || *s == '.' || (*s >= '0' && *s <= '9') ||
                          (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z')))
        s++;
    return (size_t)(s - c->at);
}

/* The length of a value: up to a comma, a closing bracket, a blank or the end; strings and brackets
 * are skipped as a whole. -1 if one of those is never closed. */
static long value_len(const struct cursor *c)
{
    const char *s = c->at;
    int depth = 0;

    for (; s < c->end; s++) {
        if (*s == '\'' || *s == '"') {
            const char *q = memchr(s + 1, *s, (size_t)(c->end - s - 1));
            if (q == NULL)
                return -1;
            s = q;
        } else if (*s == '[' || *s == '(') {
            depth++;
        } else if (depth > 0 && (*s == ']' || *s == ')')) {
            depth--;
        } else if (depth == 0 && strchr(",); \t\r\n#", *s) != NULL) {
            break;
        }
    }
    return depth == 0 ? (long)(s - c->at) : -1;
}

static tuck_status complain(const struct cursor *c, const char *what)
{
    diag_add(c->diags, TUCK_ERROR, here(c), NULL, "%s", what);
    return TUCK_EINVAL;
}

/* name=value at the cursor, which moves past it. */
struct assignment {
    const char *name, *value;
    size_t name_len, value_len;
    struct diag_pos name_pos, value_pos;
};

static tuck_status read_assignment(struct cursor *c, struct assignment *a)
{
    a->name = c->at;
    a->name_len = word(c);
    a->name_pos = here(c);
    if (a->name_len == 0)
        return complain(c, "the name of an option is expected here");
    c->at += a->name_len;
    skip(c, false);
    if (c->at >= c->end || *c->at != '=')
        return complain(c, "'=' and a value are expected here");
    c->at++;
    skip(c, false);
    a->value = c->at;
    a->value_pos = here(c);
    long n = value_len(c);
    if (n < 0)
        return complain(c, "a string or bracket that is never closed");
    if (n == 0)
        return complain(c, "a value is expected here");
    a->value_len = (size_t)n;
    c->at += n;
    return TUCK_OK;
}

/* ---- options ---- */

static tuck_status set_option(struct pipeline *p, const struct pass *pass, void *options,
                              const char *name, size_t len, const char *value, size_t value_len,
                              struct diag_pos name_pos, struct diag_pos value_pos,
                              tuck_diags *diags)
{
    const struct pass_option *o = pass_option_find(pass, name, len);
    const char *wanted;

    if (o == NULL) {
        char what[96];
        snprintf(what, sizeof(what), "option of %s", pass->name);
        return unknown(what, name, len, near_name(name, len, option_name, pass), name_pos, diags);
    }
    if (pass_option_set(o, options, value, value_len, &p->arena, &wanted))
        return TUCK_OK;
    value_pos.length = (uint32_t)value_len;
    diag_add(diags, TUCK_ERROR, value_pos, NULL, "%s must be %s, found '%.*s'", o->name, wanted,
             (int)value_len, value);
    return TUCK_EINVAL;
}

/* Applies configuration keys to this pass; their values were checked when they were read. */
static void apply_settings(struct pipeline *p, const struct pass *pass, void *options)
{
    const char *wanted;

    for (uint32_t i = 0; i < p->setting.len; i++) {
        const struct pipeline_setting *s = &p->setting.at[i];
        const struct pass_option *o = s->key->passes == NULL || among(s->key->passes, pass->name)
                                          ? pass_option_find(pass, s->key->option,
                                                             strlen(s->key->option))
                                          : NULL;

        if (o != NULL)
            pass_option_set(o, options, s->value, strlen(s->value), &p->arena, &wanted);
    }
}

/* Options at the cursor, up to ')' or the end. `text` gets them in one spelling. */
static tuck_status read_options(struct cursor *c, const struct pass *pass, void *options,
                                struct buf *text)
{
    struct assignment a;

    for (skip(c, true); c->at < c->end && *c->at != ')'; skip(c, true)) {
        tuck_status st = read_assignment(c, &a);
        if (st == TUCK_OK)
            st = set_option(c->p, pass, options, a.name, a.name_len, a.value, a.value_len,
                            a.name_pos, a.value_pos, c->diags);
        if (st != TUCK_OK)
            return st;
        buf_printf(text, "%s%.*s=%.*s", text->len ? "," : "", (int)a.name_len, a.name,
                   (int)a.value_len, a.value);
    }
    return TUCK_OK;
}

static tuck_status add_step(struct cursor *c, const struct pass *pass, bool bracket,
                            struct diag_pos pos)
{
    struct pipeline *p = c->p;
    void *options = pass_defaults(pass, &p->arena);

    assert((pass->on_graph != NULL) + (pass->on_order != NULL) + (pass->expand != NULL) == 1);
    assert(!pass->takes_rules ||
           pass->rules_at + sizeof(struct bucket_rules) <= pass->options_size);
    apply_settings(p, pass, options);
    p->text.len = 0;
    tuck_status st = read_options(c, pass, options, &p->text);
    const char *kept = arena_str(&p->arena, p->text.at, p->text.len);
    if (st != TUCK_OK)
        return st;
    if (bracket && c->at >= c->end)
        return complain(c, "')' is missing");
    if (!bracket && c->at < c->end)
        return complain(c, "there is no '(' that this would close");
    if (pass->expand != NULL)
        return pass->expand(p, options, pos, c->diags);
    vec_push_in(&p->arena, &p->step, ((struct pipeline_step){pass, options, kept}));
    return TUCK_OK;
}

tuck_status pipeline_add(struct pipeline *p, const char *name, const char *options,
                         struct diag_pos pos, tuck_diags *diags)
{
    const struct pass *pass = pass_find(p->table, name, strlen(name));
    struct cursor c = {.p = p,
                       .source = {.file = name, .text = options, .len = strlen(options)},
                       .at = options,
                       .end = options + strlen(options),
                       .line_start = options,
                       .line = 1,
                       .diags = diags};

    if (pass == NULL)
        return unknown("pass", name, strlen(name),
                       near_name(name, strlen(name), pass_name, p->table), pos, diags);
    return add_step(&c, pass, false, pos);
}

void pipeline_push(struct pipeline *p, const struct pass *pass, const char *option, double value)
{
    void *options = pass_defaults(pass, &p->arena);
    const char *wanted;

    p->text.len = 0;
    if (option != NULL) {
        const struct pass_option *o = pass_option_find(pass, option, strlen(option));
        char number[32];
        /* This is what the report shows; a share of the memory must be exact. */
        int n = snprintf(number, sizeof(number), value < 1 ? "%.15g" : "%.4g", value);
        bool fine = o != NULL && pass_option_set(o, options, number, (size_t)n, &p->arena, &wanted);
        assert(fine);
        (void)fine;
        buf_printf(&p->text, "%s=%s", option, number);
    }
    const char *text = arena_str(&p->arena, p->text.at, p->text.len);
    vec_push_in(&p->arena, &p->step, ((struct pipeline_step){pass, options, text}));
}

/* ---- keys ---- */

/* The passes that this value of the key turns on; NULL if there is no such value. */
static const char *turned_on(const struct pass_key *k, const char *value, size_t len, size_t *n)
{
    for (const char *c = k->turns_on;; c++) {
        size_t item = strcspn(c, "|"), name = strcspn(c, "=");
        if (name == len && memcmp(c, value, len) == 0) {
            *n = item - name - 1;
            return c + name + 1;
        }
        c += item;
        if (*c == '\0')
            return NULL;
    }
}

/* A pass that has the key's option. */
static const struct pass *pass_of_key(const struct pass_table *t, const struct pass_key *k)
{
    if (k->passes != NULL)
        return pass_find(t, k->passes, strcspn(k->passes, "|"));
    for (uint32_t i = 0; i < t->n; i++)
        if (pass_option_find(t->row[i], k->option, strlen(k->option)) != NULL)
            return t->row[i];
    return NULL;
}

static tuck_status add_setting(struct cursor *c, const struct pass_key *k,
                               const struct assignment *a, const char *value, size_t len)
{
    struct pipeline *p = c->p;
    const struct pass *pass = pass_of_key(p->table, k);
    struct pipeline_setting s = {k, arena_str(&p->arena, value, len)};
    tuck_status st = set_option(p, pass, pass_defaults(pass, &p->arena), k->option,
                                strlen(k->option), value, len, a->name_pos, a->value_pos, c->diags);

    if (st == TUCK_OK)
        vec_push_in(&p->arena, &p->setting, s);
    return st;
}

static tuck_status apply_key(struct cursor *c, const struct pass_key *k, const struct assignment *a,
                             bool settings)
{
    const char *value = a->value;
    size_t len = a->value_len, n;

    if (len >= 2 && (*value == '\'' || *value == '"')) {
        value++;
        len -= 2;
    }
    if (k->turns_on == NULL)
        return settings ? add_setting(c, k, a, value, len) : TUCK_OK;
    const char *passes = turned_on(k, value, len, &n);
    if (passes == NULL) {
        struct diag_pos pos = a->value_pos;
        pos.length = (uint32_t)len;
        diag_add(c->diags, TUCK_ERROR, pos, NULL, "%s: no value '%.*s'; %s", k->name, (int)len,
                 value, k->help);
        return TUCK_EINVAL;
    }
    if (settings || n == 0)
        return TUCK_OK;
    return pipeline_add(c->p, arena_str(&c->p->arena, passes, n), "", a->name_pos, c->diags);
}

/* ---- the list ---- */

static tuck_status read_item(struct cursor *c, bool settings)
{
    struct cursor start = *c;
    size_t len = word(c);
    const char *name = c->at;
    struct diag_pos pos = here(c);

    if (len == 0)
        return complain(c, "the name of a pass is expected here");
    c->at += len;
    skip(c, false);
    bool bracket = c->at < c->end && *c->at == '(';
    bool assigned = c->at < c->end && *c->at == '=';
    const struct pass_key *key = key_find(c->p->table, name, len);
    const struct pass *pass = pass_find(c->p->table, name, len);
    if (assigned || (key != NULL && pass == NULL)) { /* some keys have the name of their pass */
        struct assignment a;
        if (key == NULL)
            return unknown("key", name, len, near_name(name, len, pass_name, c->p->table), pos,
                           c->diags);
        *c = start;
        tuck_status st = read_assignment(c, &a);
        return st == TUCK_OK ? apply_key(c, key, &a, settings) : st;
    }
    if (pass == NULL)
        return unknown("pass", name, len, near_name(name, len, pass_name, c->p->table), pos,
                       c->diags);
    if (!bracket && settings)
        return TUCK_OK;
    if (!bracket) {
        struct cursor none = *c;
        none.end = none.at;
        return add_step(&none, pass, false, pos);
    }
    if (settings) { /* options are read in the second round */
        long n = value_len(c);
        if (n < 0)
            return complain(c, "'(' is never closed");
        c->at += n;
        return TUCK_OK;
    }
    c->at++;
    tuck_status st = add_step(c, pass, true, pos);
    c->at += st == TUCK_OK;
    return st;
}

struct parse_args {
    struct cursor c;
    tuck_status status;
};

/* Two rounds: keys apply to every pass, wherever they are in the text. */
static void do_parse(void *p)
{
    struct parse_args *x = p;
    struct cursor start = x->c;

    for (int round = 0; round < 2 && x->status == TUCK_OK; round++) {
        struct cursor c = start;
        for (skip(&c, true); c.at < c.end && x->status == TUCK_OK; skip(&c, true))
            x->status = read_item(&c, round == 0);
    }
}

tuck_status pipeline_parse(struct pipeline *p, const char *text, size_t len, const char *name,
                           tuck_diags *diags)
{
    struct parse_args x = {.c = {.p = p,
                                 .source = {.file = name, .text = text, .len = len},
                                 .at = text,
                                 .end = text + len,
                                 .line_start = text,
                                 .line = 1,
                                 .diags = diags}};

    return mem_guard(&p->mem, do_parse, &x) ? x.status : TUCK_ENOMEM;
}
