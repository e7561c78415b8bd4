#include "schedule/pipeline.h"

#include <stdio.h>

#include "base/near.h"

struct cursor {
    const char *at;
    char *why;
};

static void skip_blanks(struct cursor *c)
{
    c->at += strspn(c->at, " \t\n");
}

static size_t word(const struct cursor *c)
{
    return strspn(c->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
}

static bool unknown_pass(struct cursor *c, size_t n)
{
    const char *names[32];
    char said[64];

    snprintf(said, sizeof(said), "%.*s", (int)(n < 63 ? n : 63), c->at);
    for (size_t i = 0; i < n_schedule_passes && i < 32; i++)
        names[i] = schedule_passes[i].name;
    const char *near = near_word(said, names, n_schedule_passes < 32 ? n_schedule_passes : 32);
    snprintf(c->why, 256, "there is no pass '%s'%s%s%s", said, near ? "; did you mean '" : "",
             near ? near : "", near ? "'?" : "");
    return false;
}

/* name=value, up to a comma or the parenthesis. */
static bool read_option(struct cursor *c, struct schedule_options *o)
{
    size_t n = word(c);
    const struct schedule_option *x = schedule_find_option(c->at, n);
    char why[160];

    if (x == NULL) {
        snprintf(c->why, 256, "there is no option '%.*s'", (int)(n < 100 ? n : 100), c->at);
        return false;
    }
    c->at += n;
    skip_blanks(c);
    if (*c->at != '=') {
        snprintf(c->why, 256, "a '=' must follow option %s", x->name);
        return false;
    }
    c->at++;
    skip_blanks(c);
    n = strcspn(c->at, ",) \t\n");
    if (!schedule_set(o, x, c->at, n, why)) {
        snprintf(c->why, 256, "%s", why);
        return false;
    }
    c->at += n;
    skip_blanks(c);
    return true;
}

/* One pass with its options; *pass NULL: the end of the text. */
static bool read_pass(struct cursor *c, const struct schedule_pass **pass,
                      struct schedule_options *o)
{
    skip_blanks(c);
    size_t n = word(c);
    *pass = schedule_find_pass(c->at, n);
    if (*pass == NULL)
        return unknown_pass(c, n);
    c->at += n;
    skip_blanks(c);
    if (*c->at == '(') {
        c->at++;
        skip_blanks(c);
        while (*c->at != ')') {
            if (!read_option(c, o))
                return false;
            if (*c->at == ',')
                c->at++;
            else if (*c->at != ')') {
                snprintf(c->why, 256, "the options of %s end without a ')'", (*pass)->name);
                return false;
            }
            skip_blanks(c);
        }
        c->at++;
        skip_blanks(c);
    }
    if (*c->at != ',' && *c->at != '\0') {
        snprintf(c->why, 256, "a ',' must follow %s, found '%.20s'", (*pass)->name, c->at);
        return false;
    }
    return true;
}

tuck_status pipeline_run(struct schedule *s, const char *text, char why[256])
{
    struct schedule_options before = s->opt, o;
    const struct schedule_pass *pass;
    tuck_status st = TUCK_OK;

    /* Once to see whether it can be read, once to run. */
    for (int run = 0; run < 2; run++) {
        struct cursor c = {text, why};
        for (bool more = true; more && st == TUCK_OK; c.at++) {
            o = before;
            if (!read_pass(&c, &pass, &o))
                return TUCK_EINVAL;
            more = *c.at == ',';
            if (run) {
                s->opt = o;
                st = schedule_run(s, pass);
            }
        }
    }
    s->opt = before;
    return st;
}
