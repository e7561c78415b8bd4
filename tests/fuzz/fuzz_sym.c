/* Any bytes as an expression: reading, printing and reading again gives the same; so does its form
 * for comparing, and neither changes the value.
 */
#include <stdio.h>
#include <stdlib.h>

#include "sym/sym.h"

struct input {
    struct mem mem;
    struct symtab t;
    struct buf text;
    const char *data;
    size_t size;
};

/* Depends only on the name: the same in every expression. */
static bool lookup(void *ctx, const char *name, struct sym_num *out)
{
    (void)ctx;
    *out = (struct sym_num){.kind = SYM_T_INT};
    out->i = (int64_t)(hash_bytes(name, strlen(name)) % 2001) - 1000;
    return true;
}

static void fail(struct input *in, const char *what, sym_id a, sym_id b)
{
    sym_id ids[] = {a, b};

    fprintf(stderr, "%s\n", what);
    for (int i = 0; i < 2; i++) {
        in->text.len = 0;
        sym_print(&in->t, ids[i], &in->text);
        fprintf(stderr, "  %s\n", buf_text(&in->text));
    }
    abort();
}

static void check(void *arg)
{
    struct input *in = arg;
    sym_id id = sym_parse(&in->t, in->data, in->size);
    struct sym_num v = {.kind = SYM_T_ANY}, w = v;

    if (id == 0)
        return;
    sym_print(&in->t, id, &in->text);
    sym_id again = sym_parse(&in->t, in->text.at, in->text.len);
    if (again != id)
        fail(in, "read again, it is another expression", id, again);

    sym_id normal = sym_normal(&in->t, id);
    if (normal == 0 || sym_type(&in->t, id) == SYM_T_FLOAT || sym_type(&in->t, id) == SYM_T_ANY)
        return;
    if (sym_eval(&in->t, id, lookup, NULL, &v) == SYM_OK &&
        sym_eval(&in->t, normal, lookup, NULL, &w) == SYM_OK && v.i != w.i && in->size < 200)
        fail(in, "the form for comparing has another value", id, normal);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {.data = (const char *)data, .size = size};

    mem_init(&in.mem, NULL);
    symtab_init(&in.t, &in.mem);
    buf_init(&in.text, &in.mem);
    if (!mem_guard(&in.mem, check, &in))
        abort();
    buf_destroy(&in.text);
    symtab_destroy(&in.t);
    return 0;
}
