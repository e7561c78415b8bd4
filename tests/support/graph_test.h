/* Checks for unit tests of graphs. */
#ifndef TUCK_TESTS_GRAPH_TEST_H
#define TUCK_TESTS_GRAPH_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

static inline void assert_text(const tuck_graph *g, const char *want)
{
    char *s = graph_text(g);

    assert_string_equal(s, want);
    free(s);
}

static inline tuck_node find(tuck_graph *g, const char *name)
{
    tuck_node n = tuck_graph_find(g, name);

    if (tuck_is_none(n))
        fail_msg("there is no %s", name);
    return n;
}

#endif
