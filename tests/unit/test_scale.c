/* Lookups by name are fast for any number of nested graphs, attributes and storages of a script. A
 * linear search for each would take minutes here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "support/support.h"

#ifdef TUCK_STRESS
#define MANY 300 /* vectors move at every push there */
#else
#define MANY 50000
#endif

/* A class with n nested ones, sub_0, sub_1, … */
static tuck_doc *with_children(uint32_t n, const char *more)
{
    struct text t = {NULL, 0, 0};
    char line[128];

    static const char head[] = "class top(torch.nn.Module):\n"
                               "    def forward(self, x):\n"
                               "        return x\n";
    text_add(&t, head, sizeof(head) - 1);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(line, sizeof(line),
                 "\n    class sub_%u(torch.nn.Module):\n"
                 "        def forward(self, x):\n"
                 "            return x\n",
                 i);
        text_add(&t, line, strlen(line));
    }
    text_add(&t, more, strlen(more) + 1);
    tuck_doc *doc = read_or_die(t.at);
    text_done(&t);
    return doc;
}

static tuck_graph *child(const tuck_graph *g, const char *name)
{
    str_id id = str_find(&g->store->str, name, strlen(name));

    return id ? graph_child_named(g, id) : NULL;
}

static void check_children(const tuck_graph *g, uint32_t n)
{
    char name[32];

    assert_int_equal(tuck_graph_child_count(g), n);
    for (uint32_t i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "sub_%u", i);
        assert_ptr_equal(child(g, name), tuck_graph_child(g, i));
    }
    assert_null(child(g, "top"));
    assert_null(child(g, "x"));
    assert_null(child(g, "sub_x"));
}

static void test_by_name(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 40; n++) {
        tuck_doc *doc = with_children(n, "");
        tuck_graph *copy;

        check_children(tuck_doc_graph(doc, 0), n);
        assert_int_equal(tuck_graph_copy(tuck_doc_graph(doc, 0), &copy), TUCK_OK);
        tuck_doc_free(doc);
        check_children(copy, n);
        tuck_graph_free(copy);
    }
}

/* Of two with the same name it is the first. */
static void test_same_name(void **state)
{
    (void)state;
    tuck_doc *doc = with_children(3, "\n    class sub_1(torch.nn.Module):\n"
                                     "        def forward(self, y):\n"
                                     "            return y\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);

    assert_int_equal(tuck_graph_child_count(g), 4);
    assert_ptr_equal(child(g, "sub_1"), tuck_graph_child(g, 1));
    tuck_doc_free(doc);
}

/* Looks up each one, and as many names that do not exist. */
static void test_many(void **state)
{
    (void)state;
    tuck_doc *doc = with_children(MANY, "");
    tuck_graph *g = tuck_doc_graph(doc, 0);

    check_children(g, MANY);
    for (str_id id = 1; id < g->store->str.all.len; id++) {
        tuck_graph *c = graph_child_named(g, id);
        assert_true(c == NULL || c->name == id);
    }
    tuck_doc_free(doc);
}

static void add_line(struct text *t, const char *format, uint32_t i)
{
    char line[160];

    snprintf(line, sizeof(line), format, i);
    text_add(t, line, strlen(line));
}

/* A script whose class has attributes of two kinds, and as many storages. */
static void test_script(void **state)
{
    const uint32_t N = MANY;
    struct text t = {NULL, 0, 0};

    (void)state;
    text_add(&t, "class Repro(torch.nn.Module):\n", 30);
    for (uint32_t i = 0; i < N; i++)
        add_line(&t, "        self.register_buffer('c%u', tensor([1., 2.]))\n", i);
    for (uint32_t i = 0; i < N; i++)
        add_line(&t, "        self.other%u = None\n", i);
    add_line(&t, "    def forward(self, x):\n", 0);
    for (uint32_t i = 0; i < N; i++)
        add_line(&t, "        c%1$u = self.c%1$u\n", i);
    add_line(&t, "        return x\n", 0);
    for (uint32_t i = 0; i < N; i++)
        add_line(&t, "    buf%u = reader.storage(None, 8, device=device(type='cuda', index=1))\n",
                 i);
    add_line(&t, "    reader.tensor(buf%u, (2,), is_leaf=True)  # x\n", N - 1);
    text_add(&t, "", 1);
    tuck_doc *doc = read_or_die(t.at);
    tuck_graph *g = tuck_doc_graph(doc, 0);

    assert_string_equal(
        str_text(&g->store->str, ann_at(g->store, node_at(g, tuck_graph_first(g).id)->ann)->inner),
        "f32[2][1]cuda:1");
    for_each_node (g, n)
        if (node_at(g, n)->kind == TUCK_GET_ATTR)
            assert_string_equal(
                str_text(&g->store->str, ann_at(g->store, node_at(g, n)->ann)->inner),
                "f32[2][1]cpu");
    tuck_doc_free(doc);
    text_done(&t);
}

/* The name of a storage does not affect a function with the same name. */
static void test_storage_name(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("a = reader.storage(None, 8)\n"
                                "b = reader.storage(None, 8)\n"
                                "def forward(self, x):\n"
                                "    call = b(x)\n"
                                "    return call\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node call = tuck_graph_next(g, tuck_graph_first(g));

    assert_int_equal(node_at(g, call.id)->kind, TUCK_CALL_FUNCTION);
    assert_int_equal(node_at(g, call.id)->op, 0);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_name),      cmocka_unit_test(test_same_name),
        cmocka_unit_test(test_many),         cmocka_unit_test(test_script),
        cmocka_unit_test(test_storage_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
