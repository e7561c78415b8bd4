/* Clones of graphs and revisions: the same text and node ids, and a number that distinguishes
 * states. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "graph/graph.h"
#include "infer/infer.h"
#include "support/support.h"

static const char text[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"):\n"
    "        inner = self.inner\n"
    "        neg: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(x)\n"
    "        gone: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(y)\n"
    "        call = torch.ops.higher_order.invoke_subgraph(inner, 'inner', neg);  inner = neg = "
    "None\n"
    "        item: \"f32[4][1]cpu\" = call[0];  call = None\n"
    "        return (item, y)\n"
    "\n"
    "    class inner(torch.nn.Module):\n"
    "        def forward(self, a: \"f32[4][1]cpu\"):\n"
    "            cos: \"f32[4][1]cpu\" = torch.ops.aten.cos.default(a);  a = None\n"
    "            return (cos,)\n";

static tuck_doc *read_doc(void)
{
    tuck_doc *doc = NULL;

    assert_int_equal(tuck_doc_read_text(text, strlen(text), "text", NULL, NULL, &doc), TUCK_OK);
    return doc;
}

static void assert_same_nodes(const tuck_graph *a, const tuck_graph *b)
{
    char *s = graph_text(a), *t = graph_text(b);

    assert_string_equal(s, t);
    free(s);
    free(t);
    assert_int_equal(a->node.len, b->node.len);
    for_each_node (a, n) {
        assert_int_equal(node_at(a, n)->name, node_at(b, n)->name);
        assert_int_equal(node_type(a, n), node_type(b, n));
    }
    char *why = check_users(b);
    if (why != NULL)
        fail_msg("%s", why);
}

/* With an erased node among them: a clone keeps its slot, a copy does not. */
static void test_ids(void **state)
{
    tuck_doc *doc = read_doc();
    tuck_graph *g = tuck_doc_graph(doc, 0), *copy = NULL;

    (void)state;
    assert_int_equal(tuck_node_erase(g, tuck_graph_find(g, "gone")), TUCK_OK);
    infer_graph(g, NULL, NULL);
    tuck_graph *clone = graph_clone(g);
    assert_non_null(clone);
    assert_same_nodes(g, clone);
    assert_same_nodes(g->child.at[0], clone->child.at[0]);
    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    assert_true(copy->node.len < clone->node.len);
    assert_true(copy->revision != g->revision);

    /* An edit of the clone leaves the original alone. */
    char *before = graph_text(g);
    assert_int_equal(tuck_node_rename(clone, tuck_graph_find(clone, "neg"), "other"), TUCK_OK);
    char *after = graph_text(g);
    assert_string_equal(before, after);
    free(before);
    free(after);
    tuck_graph_free(copy);
    tuck_graph_free(clone);
    tuck_doc_free(doc);
}

static void test_revisions(void **state)
{
    tuck_doc *doc = read_doc();
    tuck_graph *g = tuck_doc_graph(doc, 0);

    (void)state;
    infer_graph(g, NULL, NULL);
    assert_true(g->typed_at == g->revision);
    tuck_graph *clone = graph_clone(g);
    assert_true(clone->revision == g->revision && clone->typed_at == g->typed_at);

    /* Moving a node changes the number but keeps types valid; an edit does not. */
    uint64_t before = clone->revision;
    graph_reordered(clone);
    assert_true(clone->revision > before && clone->typed_at == clone->revision);
    graph_edited(clone, false);
    assert_true(clone->typed_at != clone->revision);
    infer_need(clone);
    assert_true(clone->typed_at == clone->revision);

    /* An edit of a nested graph changes it, too, also after the two were exchanged. */
    before = clone->revision;
    graph_edited(clone->child.at[0], false);
    assert_true(clone->revision > before);
    graph_swap(g, clone);
    before = g->revision;
    graph_edited(g->child.at[0], false);
    assert_true(g->revision > before);
    assert_true(clone->revision < before);
    tuck_graph_free(clone);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_revisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
