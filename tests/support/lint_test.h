/* Checks of what lint reports, for unit tests. */
#ifndef TUCK_TESTS_LINT_TEST_H
#define TUCK_TESTS_LINT_TEST_H

#include "support/graph_test.h"

static inline void assert_lint(const tuck_graph *g, const char *want)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_status st = tuck_graph_lint(g, d);
    char *s = diags_text(d);

    assert_string_equal(s, want);
    assert_int_equal(st, tuck_diags_errors(d) > 0 ? TUCK_ELINT : TUCK_OK);
    free(s);
    tuck_diags_free(d);
}

#define HEAD "class f(torch.nn.Module):\n    def forward(self, x, y):\n"
#define C10D "torch.ops._c10d_functional."

/* The lint of a graph with this body. */
static inline void assert_lint_of(const char *body, const char *want)
{
    char text[4096];

    snprintf(text, sizeof(text), HEAD "%s", body);
    tuck_doc *doc = read_or_die(text);
    assert_lint(tuck_doc_graph(doc, 0), want);
    tuck_doc_free(doc);
}

#endif
