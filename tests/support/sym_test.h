/* A table of expressions for a test, inside a guard. */
#ifndef TUCK_TESTS_SYM_TEST_H
#define TUCK_TESTS_SYM_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <math.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"
#include "sym/sym.h"

#define LENGTH(a) (sizeof(a) / sizeof(*(a)))

struct fixture {
    struct mem mem;
    struct symtab t;
    struct buf out;
    void (*body)(struct fixture *f);
};

static inline void call_body(void *arg)
{
    struct fixture *f = arg;

    f->body(f);
}

static inline bool with_table(const tuck_allocator *alloc, unsigned assume,
                              void (*body)(struct fixture *f))
{
    struct fixture f = {.body = body};

    mem_init(&f.mem, alloc);
    symtab_init(&f.t, &f.mem);
    symtab_assume(&f.t, assume);
    buf_init(&f.out, &f.mem);
    bool done = mem_guard(&f.mem, call_body, &f);
    buf_destroy(&f.out);
    symtab_destroy(&f.t);
    return done;
}

static inline sym_id parse(struct fixture *f, const char *text)
{
    return sym_parse(&f->t, text, strlen(text));
}

static const char *print(struct fixture *f, sym_id id)
{
    f->out.len = 0;
    sym_print(&f->t, id, &f->out);
    return buf_text(&f->out);
}

/* "s0=4,zuf0=2.5" */
static inline bool lookup_in_text(void *ctx, const char *name, struct sym_num *out)
{
    size_t n = strlen(name);

    for (const char *p = ctx; *p != '\0'; p += strcspn(p, ","), p += *p == ',') {
        if (strncmp(p, name, n) != 0 || p[n] != '=')
            continue;
        size_t len = strcspn(p + n, ",");
        bool is_float = strcspn(p + n, ".en") < len;

        *out = (struct sym_num){.kind = is_float ? SYM_T_FLOAT : SYM_T_INT};
        if (is_float)
            out->f = strtod(p + n + 1, NULL);
        else
            out->i = strtoll(p + n + 1, NULL, 10);
        return true;
    }
    return false;
}

static inline void value_text(struct fixture *f, sym_id id, char *values, char *text, size_t size)
{
    struct sym_num v;

    switch (sym_eval(&f->t, id, lookup_in_text, values, &v)) {
    case SYM_UNBOUND: snprintf(text, size, "unbound"); return;
    case SYM_OVERFLOW: snprintf(text, size, "overflow"); return;
    case SYM_UNDEFINED: snprintf(text, size, "undefined"); return;
    case SYM_OK: break;
    }
    if (v.kind == SYM_T_FLOAT)
        snprintf(text, size, "%.17g%s", v.f, v.f == floor(v.f) && fabs(v.f) < 1e15 ? ".0" : "");
    else if (v.kind == SYM_T_BOOL)
        snprintf(text, size, "%s", v.i ? "True" : "False");
    else
        snprintf(text, size, "%lld", (long long)v.i);
}

static inline sym_id replace_s0(void *ctx, sym_id symbol, const char *name)
{
    return strcmp(name, "s0") == 0 ? *(sym_id *)ctx : symbol;
}

#endif
