/* Sorting with a pass's own edges: what must keep its order, points of erased nodes, and the
 * result. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"
#include "graph/topo.h"

#define HEAD                                                                                       \
    "class G(torch.nn.Module):\n"                                                                  \
    "    def forward(self, x, y):\n"

struct world {
    struct mem mem;
    struct arena a;
    tuck_doc *doc;
    tuck_graph *g;
    struct topo_edges e;
};

static void start(struct world *w, const char *text)
{
    *w = (struct world){.doc = read_or_die(text)};
    w->g = tuck_doc_graph(w->doc, 0);
    mem_init(&w->mem, NULL);
    arena_init(&w->a, &w->mem);
}

static void stop(struct world *w)
{
    arena_destroy(&w->a);
    tuck_doc_free(w->doc);
}

static uint32_t id(const struct world *w, const char *name)
{
    for_each_node (w->g, n)
        if (strcmp(graph_str(w->g, node_at(w->g, n)->name), name) == 0)
            return n;
    fail_msg("no node %s", name);
    return 0;
}

static void move(struct world *w, const char *name, const char *before)
{
    assert_int_equal(
        tuck_node_move(w->g, (tuck_node){id(w, name)}, tuck_before((tuck_node){id(w, before)})),
        TUCK_OK);
}

static void assert_order(const struct world *w, const char *want)
{
    char order[1024] = "";

    for_each_node (w->g, n)
        if (node_at(w->g, n)->kind == TUCK_CALL_FUNCTION) {
            strcat(order, graph_str(w->g, node_at(w->g, n)->name));
            strcat(order, " ");
        }
    assert_string_equal(order, want);
}

#define NEG(a, b) "        " a " = torch.ops.aten.neg.default(" b ")\n"

static void test_edges(void **state)
{
    (void)state;
    struct world w;

    start(&w, HEAD NEG("a", "x") NEG("b", "a") NEG("c", "y") NEG("d", "c")
                  NEG("f", "x") "        return (b, d, f)\n");
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "a b c d f ");
    topo_edge_add(&w.a, &w.e, id(&w, "d"), id(&w, "b"));
    topo_edge_add(&w.a, &w.e, id(&w, "b"), id(&w, "b")); /* nothing */
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "a c d b f ");
    /* No order can be right: none is made. */
    topo_edge_add(&w.a, &w.e, id(&w, "b"), id(&w, "c"));
    move(&w, "f", "a");
    move(&w, "c", "a");
    assert_order(&w, "f c a d b ");
    assert_false(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "f c a d b ");
    stop(&w);
}

/* An erased node is a point in the order. */
static void test_points(void **state)
{
    (void)state;
    struct world w;

    start(&w, HEAD NEG("a", "x") NEG("p", "x") NEG("q", "x") NEG("b", "y")
                  NEG("c", "y") "        return (a, b, c)\n");
    uint32_t a = id(&w, "a"), b = id(&w, "b"), c = id(&w, "c"), p = id(&w, "p"), q = id(&w, "q");
    assert_int_equal(tuck_node_erase(w.g, (tuck_node){p}), TUCK_OK);
    assert_int_equal(tuck_node_erase(w.g, (tuck_node){q}), TUCK_OK);
    topo_edge_add(&w.a, &w.e, c, p);
    topo_edge_add(&w.a, &w.e, p, q);
    topo_edge_add(&w.a, &w.e, q, a);
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "b c a ");
    /* A point after what comes after it. */
    topo_edge_add(&w.a, &w.e, a, p);
    assert_false(topo_sort_with(w.g, &w.a, &w.e));
    /* A point without predecessors delays nothing. */
    w.e.edge.len = 0;
    topo_edge_add(&w.a, &w.e, p, b);
    topo_edge_add(&w.a, &w.e, p, c);
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    /* The replacement of an erased node has the same constraints. */
    uint32_t stand_in[FX_FIRST_ID + 16] = {0};
    w.e.edge.len = 0;
    topo_edge_add(&w.a, &w.e, b, p);
    stand_in[p] = c;
    move(&w, "c", "b");
    topo_map(&w.e, 0, stand_in, stand_in, FX_FIRST_ID + 16);
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "b c a ");
    stop(&w);
}

static bool has_edge(const struct world *w, const char *from, const char *to)
{
    for (uint32_t i = 0; i < w->e.edge.len; i++)
        if (w->e.edge.at[i].from == id(w, from) && w->e.edge.at[i].to == id(w, to))
            return true;
    return false;
}

static void test_keep(void **state)
{
    (void)state;
    struct world w;

    start(&w, HEAD "        v = torch.ops.aten.view.default(x, [4])\n"
                   "        s = torch.ops._c10d_functional.all_reduce.default(v, 'sum', '0')\n"
                   "        r = torch.ops.aten.neg.default(y)\n"
                   "        t = torch.ops._c10d_functional.wait_tensor.default(s)\n"
                   "        c = torch.ops.aten.copy_.default(x, y)\n"
                   "        d = torch.ops.aten.rand.default([2])\n"
                   "        f = torch.ops.aten.rand.default([2])\n"
                   "        u = torch.ops.my.op.default(y)\n"
                   "        h = torch.ops.aten.rand.default([2])\n"
                   "        return (t, r, c, d, f, u, h)\n");
    topo_keep(w.g, &w.a, &w.e);
    assert_true(has_edge(&w, "s", "c")); /* a read before the write, through a view */
    assert_true(has_edge(&w, "t", "c")); /* the transfer ends at the wait */
    assert_false(has_edge(&w, "v", "c"));
    assert_true(has_edge(&w, "r", "u")); /* it may write its operands */
    assert_true(has_edge(&w, "d", "f"));
    assert_false(has_edge(&w, "d", "h")); /* over u */
    assert_true(has_edge(&w, "d", "u") && has_edge(&w, "f", "u") && has_edge(&w, "u", "h"));
    assert_true(has_edge(&w, "c", "u"));
    /* Whatever the positions: only constrained nodes come back. */
    move(&w, "c", "v");
    move(&w, "h", "v");
    move(&w, "f", "d");
    assert_true(topo_sort_with(w.g, &w.a, &w.e));
    assert_order(&w, "v s r t c d f u h ");
    stop(&w);
}

/* An in-place collective writes until its wait, which may name the result or the buffer. */
static void test_in_flight(void **state)
{
    static const char *const waited[] = {"s", "b"};
    char text[1024];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct world w;

        snprintf(text, sizeof(text),
                 HEAD "        b = torch.ops.aten.neg.default(x)\n"
                      "        s = torch.ops._c10d_functional.all_reduce_.default(b, 'sum', '0')\n"
                      "        t = torch.ops._c10d_functional.wait_tensor.default(%s)\n"
                      "        r = torch.ops.aten.neg.default(b)\n"
                      "        u = torch.ops._c10d_functional.wait_tensor.default(s)\n"
                      "        return (t, r, u)\n",
                 waited[i]);
        start(&w, text);
        topo_keep(w.g, &w.a, &w.e);
        assert_true(has_edge(&w, "s", "t"));
        assert_true(has_edge(&w, "t", "r"));
        assert_false(has_edge(&w, "r", "u")); /* that one ends nothing else */
        stop(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_points),
        cmocka_unit_test(test_keep),
        cmocka_unit_test(test_in_flight),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
