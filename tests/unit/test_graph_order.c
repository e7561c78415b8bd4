/* Removing dead code and sorting. */
#include "support/lint_test.h"

/* ---- dead code ---- */

/* A body, and which of its nodes are left. */
static void assert_left(const char *body, const char *want)
{
    char text[4096], left[1024] = "";
    size_t before, removed = 99;

    snprintf(text, sizeof(text), HEAD "%s        return (x,)\n", body);
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    before = tuck_graph_size(g);
    assert_int_equal(tuck_graph_remove_dead(g, &removed), TUCK_OK);
    assert_int_equal(tuck_graph_size(g), before - removed);
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
        if (tuck_node_kind(g, n) != TUCK_PLACEHOLDER && tuck_node_kind(g, n) != TUCK_OUTPUT) {
            strcat(left, tuck_node_name(g, n));
            strcat(left, " ");
        }
    assert_string_equal(left, want);
    assert_null(check_users(g));
    assert_null(check_fixpoint(g));
    tuck_doc_free(doc);
}

static void test_dead(void **state)
{
    (void)state;
    assert_left("", "");
    assert_left("        a = torch.ops.aten.mm.default(x, y)\n"
                "        b = torch.ops.aten.add.Tensor(a, a)\n"
                "        c = torch.ops.aten.cat.default([a, b, a])\n",
                "");
    assert_left("        a = self.w\n        b = x + a\n        c = x[0]\n        d = x.shape\n"
                "        e = x.add(a)\n        f = -x\n        g = max(x, y)\n",
                "");
    /* Writes, communicates, checks, draws random numbers, or is unknown. */
    assert_left("        a = torch.ops.aten.relu_.default(x)\n", "a ");
    assert_left("        a = torch.ops.aten.copy_.default(x, y)\n", "a ");
    assert_left("        x[0] = y;  a = x\n", "a ");
    assert_left("        a = x.add_(y)\n        b = x.unheard_of(y)\n", "a b ");
    assert_left("        a = torch.ops.aten.rand.default([4])\n", "a ");
    assert_left("        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
                "        b = " C10D "wait_tensor.default(a)\n",
                "a b ");
    assert_left("        a = torch.ops.aten._assert_scalar.default(x, 'm')\n", "a ");
    assert_left("        a = torch.ops.my.op.default(x)\n        b = self.net(x)\n", "a b ");
    assert_left("        a, b = (lambda v: (v, v))(x)\n", "a b ");
    /* What they use stays, too. */
    assert_left("        a = torch.ops.aten.neg.default(x)\n"
                "        b = torch.ops.my.op.default(a)\n"
                "        c = torch.ops.aten.neg.default(b)\n",
                "a b ");
    /* Operators as operands: auto_functionalized writes copies. */
    assert_left(
        "        a = torch.ops.higher_order.auto_functionalized(torch.ops.aten.relu_.default, "
        "self_ = x)\n",
        "");
    assert_left("        a = torch.ops.higher_order.auto_functionalized(torch.ops.my.op.default, "
                "t = x)\n",
                "a ");
    assert_left("        a = torch.ops.higher_order.foreach_map(torch.ops.aten.relu_.default, x)\n",
                "a ");
    assert_int_equal(tuck_graph_remove_dead(NULL, NULL), TUCK_EINVAL);
}

/* A call of a nested graph is as pure as that graph. */
static void test_dead_nested(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(
        "class f(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        p = self.p\n"
        "        q = self.q\n"
        "        r = self.r\n"
        "        a = torch.ops.higher_order.invoke_subgraph(p, 'p', x);  p = a = None\n"
        "        b = torch.ops.higher_order.invoke_subgraph(q, 'q', x);  q = b = None\n"
        "        c = torch.ops.higher_order.invoke_subgraph(r, 'r', x);  r = c = None\n"
        "        return (x,)\n"
        "\n"
        "    class p(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            n = torch.ops.aten.neg.default(x);  n = None\n"
        "            return (x,)\n"
        "\n"
        "    class q(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            s = self.s\n"
        "            d = torch.ops.higher_order.invoke_subgraph(s, 's', x);  s = d = None\n"
        "            return (x,)\n"
        "\n"
        "        class s(torch.nn.Module):\n"
        "            def forward(self, x):\n"
        "                n = torch.ops.aten.relu_.default(x);  n = None\n"
        "                return (x,)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    size_t removed;

    assert_int_equal(tuck_graph_remove_dead(g, &removed), TUCK_OK);
    assert_int_equal(removed, 3);
    assert_text(g,
                "class f(torch.nn.Module):\n"
                "    def forward(self, x):\n"
                "        q = self.q\n"
                "        r = self.r\n"
                "        b = torch.ops.higher_order.invoke_subgraph(q, 'q', x);  q = b = None\n"
                "        c = torch.ops.higher_order.invoke_subgraph(r, 'r', x);  r = c = None\n"
                "        return (x,)\n"
                "\n"
                "    class p(torch.nn.Module):\n"
                "        def forward(self, x):\n"
                "            return (x,)\n"
                "\n"
                "    class q(torch.nn.Module):\n"
                "        def forward(self, x):\n"
                "            s = self.s\n"
                "            d = torch.ops.higher_order.invoke_subgraph(s, 's', x);  s = d = None\n"
                "            return (x,)\n"
                "\n"
                "        class s(torch.nn.Module):\n"
                "            def forward(self, x):\n"
                "                n = torch.ops.aten.relu_.default(x);  n = None\n"
                "                return (x,)\n");
    assert_null(check_fixpoint(g));
    tuck_doc_free(doc);
}

/* ---- order ---- */

/* The names of all nodes but inputs and return, in order. */
static void assert_order(const tuck_graph *g, const char *want)
{
    char order[1024] = "";

    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n))
        if (tuck_node_kind(g, n) != TUCK_PLACEHOLDER && tuck_node_kind(g, n) != TUCK_OUTPUT) {
            strcat(order, tuck_node_name(g, n));
            strcat(order, " ");
        }
    assert_string_equal(order, want);
}

static void test_sort(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(HEAD "        a = torch.ops.aten.neg.default(x)\n"
                                     "        b = torch.ops.aten.neg.default(a)\n"
                                     "        c = torch.ops.aten.neg.default(y)\n"
                                     "        d = torch.ops.aten.neg.default(c)\n"
                                     "        e = torch.ops.aten.add.Tensor(b, d)\n"
                                     "        return (e,)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    char *before = graph_text(g);

    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_text(g, before); /* nothing to do, nothing touched */
    free(before);
    assert_int_equal(tuck_node_move(g, find(g, "a"), tuck_at_end()), TUCK_OK);
    assert_int_equal(tuck_node_move(g, find(g, "e"), tuck_before((tuck_node){0})), TUCK_OK);
    assert_order(g, "e b c d a ");
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_order(g, "c d a b e ");
    assert_null(check_users(g));
    assert_null(check_fixpoint(g));
    assert_int_equal(tuck_graph_sort(NULL, NULL), TUCK_EINVAL);

    /* A cycle: named, and nothing moved. */
    tuck_args *args = tuck_args_new(g);
    tuck_args_text(args, "e");
    assert_int_equal(tuck_node_set_args(g, find(g, "c"), args), TUCK_OK);
    tuck_args_free(args);
    tuck_diags *d = tuck_diags_new(NULL);
    assert_int_equal(tuck_graph_sort(g, d), TUCK_ELINT);
    assert_order(g, "c d a b e ");
    char *s = diags_text(d);
    assert_string_equal(s, "t.txt:5:9: error: cycle: 'c' uses 'e' uses 'd' uses 'c' (no order of "
                           "the nodes is valid)\n");
    free(s);
    tuck_diags_free(d);
    tuck_doc_free(doc);
}

/* Effects stay in order as long as uses allow it. */
static void test_sort_effects(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(HEAD "        p = torch.ops.my.op.default(x)\n"
                                     "        q = torch.ops.my.op.default(y)\n"
                                     "        a = torch.ops.aten.neg.default(x)\n"
                                     "        r, s = (lambda v: (v, v))(x)\n"
                                     "        b = torch.ops.aten.neg.default(s)\n"
                                     "        return (p, q, a, r, b)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_args *args = tuck_args_new(g);

    /* p now needs a: q waits for p, although it could go first. */
    tuck_args_text(args, "a");
    assert_int_equal(tuck_node_set_args(g, find(g, "p"), args), TUCK_OK);
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_order(g, "a p q r s b ");
    /* p needs q: then there is no choice. The second name of r moves with it. */
    tuck_args_clear(args);
    tuck_args_text(args, "[q, r]");
    assert_int_equal(tuck_node_set_args(g, find(g, "p"), args), TUCK_OK);
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_order(g, "a q r s p b ");
    assert_null(check_users(g));
    assert_null(check_fixpoint(g));
    tuck_args_free(args);
    tuck_doc_free(doc);
}

/* So do reads and writes of one storage. */
static void test_sort_writes(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(HEAD "        v = torch.ops.aten.view.default(x, [4])\n"
                                     "        r = torch.ops.aten.add.Tensor(v, 1)\n"
                                     "        c = torch.ops.aten.copy_.default(x, y)\n"
                                     "        a = torch.ops.aten.neg.default(y)\n"
                                     "        return (r, a)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_args *args = tuck_args_new(g);

    /* r now needs a, which comes after the write of what r reads through a view. */
    tuck_args_text(args, "v");
    tuck_args_text(args, "a");
    assert_int_equal(tuck_node_set_args(g, find(g, "r"), args), TUCK_OK);
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_order(g, "v a r c ");
    assert_lint(g, "");
    tuck_args_free(args);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dead),        cmocka_unit_test(test_dead_nested),
        cmocka_unit_test(test_sort),        cmocka_unit_test(test_sort_effects),
        cmocka_unit_test(test_sort_writes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
