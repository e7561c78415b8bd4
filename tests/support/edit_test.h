/* Helpers for unit tests of edits: making graphs, and checks after each edit. */
#ifndef TUCK_TESTS_EDIT_TEST_H
#define TUCK_TESTS_EDIT_TEST_H

#include "support/graph_test.h"

static const tuck_node none = {0};

/* Users are correct, lint finds no errors, and the text can be read again. Whether a move changes
 * which write is read is not checked here, but in tests of storages. */
static inline void assert_sound(const tuck_graph *g)
{
    char *why = check_users(g);

    if (why != NULL)
        fail_msg("%s", why);
    tuck_diags *d = tuck_diags_new(NULL);
    assert_int_not_equal(tuck_graph_lint(g, d), TUCK_ENOMEM);
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (tuck_diags_at(d, i)->severity == TUCK_ERROR &&
            strstr(tuck_diags_at(d, i)->message, "writes the same storage") == NULL)
            fail_msg("%s", diags_text(d));
    tuck_diags_free(d);
    why = check_fixpoint(g);
    if (why != NULL)
        fail_msg("%s", why);
}

static inline tuck_graph *fresh(void)
{
    tuck_graph *g = NULL;

    assert_int_equal(tuck_graph_new(NULL, NULL, &g), TUCK_OK);
    return g;
}

/* Arguments from texts, "key=" before the value of a keyword; the last is NULL. */
static inline tuck_args *args_of(tuck_graph *g, const char *first, va_list ap)
{
    tuck_args *a = tuck_args_new(g);

    assert_non_null(a);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        size_t n = strlen(s);
        if (n > 1 && s[n - 1] == '=') {
            char key[32] = {0};
            memcpy(key, s, n - 1);
            tuck_args_key(a, key);
        } else {
            tuck_args_text(a, s);
        }
    }
    return a;
}

static inline tuck_status try_at(tuck_graph *g, tuck_where where, tuck_kind kind,
                                 const char *target, tuck_node *out, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    tuck_status st = tuck_graph_add(g, where, kind, target, a, NULL, NULL, out);
    tuck_args_free(a);
    return st;
}

static inline tuck_node call(tuck_graph *g, const char *target, const char *first, ...)
{
    va_list ap;
    tuck_node n;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, target, a, NULL, NULL, &n), TUCK_OK);
    tuck_args_free(a);
    return n;
}

static inline tuck_node input(tuck_graph *g, const char *target, const char *annotation)
{
    tuck_node n;

    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, target, NULL, NULL, annotation, &n),
        TUCK_OK);
    return n;
}

static inline tuck_node output(tuck_graph *g, const char *value)
{
    tuck_node n;

    assert_int_equal(try_at(g, tuck_at_end(), TUCK_OUTPUT, NULL, &n, value, NULL), TUCK_OK);
    return n;
}

static inline tuck_status set_args(tuck_graph *g, tuck_node n, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    tuck_status st = tuck_node_set_args(g, n, a);
    tuck_args_free(a);
    return st;
}

/* x, y -> add -> (add,) */
static inline tuck_graph *small(void)
{
    tuck_graph *g = fresh();

    input(g, "x", "f32[4][1]cpu");
    input(g, "y", "f32[4][1]cpu");
    call(g, "torch.ops.aten.add.Tensor", "x", "y", NULL);
    output(g, "(add_tensor,)");
    return g;
}

#endif
