/* Reads an operand in Python's notation, for the lists that callers build. */
#include "base/utf8.h"
#include "graph/args.h"
#include "text/read.h"

struct text_args {
    struct reader r;
    bool ok;
};

static void do_text(void *p)
{
    struct text_args *x = p;

    x->ok = read_operand(&x->r, true);
    read_blanks(&x->r);
    x->ok &= *x->r.p == '\0';
}

void tuck_args_text(tuck_args *a, const char *text)
{
    if (a->error != TUCK_OK)
        return;
    size_t len = text ? strlen(text) : 0;
    if (len == 0 || utf8_check(text, len) < len || strpbrk(text, "\n\r") != NULL) {
        args_fail(a, TUCK_EINVAL);
        return;
    }
    struct mem *m = &a->store->mem;
    struct fx_text whole = {.at = text, .len = len};
    struct text_args x = {.r = {.store = a->store,
                                .mem = m,
                                .g = a->g,
                                .file = "",
                                .text = &whole,
                                .source = {.file = "", .text = text, .len = len},
                                .p = text,
                                .end = text + len,
                                .bol = text,
                                .by_name = true}};

    buf_init(&x.r.tmp, m);
    bool enough = mem_guard(m, do_text, &x);
    if (!enough)
        args_fail(a, TUCK_ENOMEM);
    else if (!x.ok)
        args_fail(a, TUCK_EINVAL);
    else
        args_append(a, x.r.vals.v.at);
    values_free(m, &x.r.vals);
    vec_free(m, &x.r.open_at_text);
    buf_destroy(&x.r.tmp);
}
