/* What lint finds, and what it leaves alone. */
#include "support/lint_test.h"
#include "graph/graph.h" /* to break a graph in ways the interface does not allow */

/* ---- lint ---- */

static void test_lint_structure(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(HEAD "        a = torch.neg(x)\n"
                                     "        b = torch.neg(a)\n"
                                     "        return (b, y)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node a = find(g, "a"), b = find(g, "b"), n;

    assert_lint(g, "");
    assert_int_equal(tuck_node_move(g, a, tuck_after(b)), TUCK_OK);
    assert_lint(g,
                "t.txt:4:9: error: 'b' uses 'a' before it is defined (it is defined in line 3)\n");
    assert_int_equal(tuck_graph_add(g, tuck_before(b), TUCK_GET_ATTR, "w", NULL, NULL, NULL, &n),
                     TUCK_OK);
    assert_int_equal(tuck_node_replace_uses(g, a, n, (tuck_node){0}), TUCK_OK);
    assert_lint(g, "");
    assert_int_equal(tuck_node_move(g, n, tuck_after(b)), TUCK_OK);
    assert_lint(g, "t.txt:4:9: error: 'b' uses 'w' before it is defined\n");
    assert_int_equal(tuck_node_move(g, n, tuck_before(b)), TUCK_OK);
    assert_int_equal(tuck_node_erase(g, tuck_graph_output(g)), TUCK_OK);
    assert_lint(g, "t.txt:0:0: error: the graph has nodes and returns nothing\n");
    tuck_doc_free(doc);
    assert_int_equal(tuck_graph_lint(NULL, NULL), TUCK_EINVAL);
}

/* What the interface does not allow is detected all the same. */
static void test_lint_broken(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        tuck_doc *doc = read_or_die(HEAD "        a = torch.neg(x)\n"
                                         "        b = a + x\n"
                                         "        return (b, y)\n");
        tuck_graph *g = tuck_doc_graph(doc, 0);
        struct fx_node *a = node_at(g, find(g, "a").id), *b = node_at(g, find(g, "b").id);
        uint32_t a_id = find(g, "a").id, b_id = find(g, "b").id;
        tuck_diags *d = tuck_diags_new(NULL);
        const char *want = NULL;

        switch (k) {
        case 0:
            a->n_uses++;
            want = "t.txt:3:9: error: internal error: 'a' has 1 uses and knows 2\n";
            break;
        case 1:
            b->vals[0].u.i = 0;
            want = "t.txt:4:9: error: internal error: 'b' uses a node that does not know it\n";
            break;
        case 2:
            a->kind = 0;
            want = "t.txt:1:0: error: internal error: the list of nodes is broken\n";
            break;
        case 3:
            g->n_nodes++;
            want = "t.txt:1:0: error: internal error: 6 nodes are counted, 5 are there\n";
            break;
        case 4:
            b->name = a->name;
            want = "t.txt:4:9: error: two nodes are called 'a' (the other one is in line 3)\n";
            break;
        case 5:
            b->name = str_intern(&g->store->str, "a-b", 3);
            want = "t.txt:4:9: error: 'a-b' is not a valid Python name\n";
            break;
        case 6:
            b->name = str_intern(&g->store->str, "max", 3);
            want =
                "t.txt:4:9: error: the name 'max' is reserved (Python or the code around the graph "
                "uses it)\n";
            break;
        case 7:
            b->n_args = 1;
            want = "t.txt:4:9: error: 'b' is spelled '+' and has 1 operands\n";
            break;
        case 8:
            g->param.at[0].node = a_id;
            want = "t.txt:1:0: error: internal error: parameter 'x' is not a placeholder\n";
            break;
        case 9:
            g->use.at[a->use_first].user = a_id;
            want = "t.txt:4:9: error: internal error: 'b' uses a node that does not know it\n"
                   "t.txt:3:9: error: internal error: 'a' has 1 uses and knows 1\n";
            break;
        case 10:
            graph_unlink(g, b_id);
            graph_link_before(g, b_id, 0);
            want =
                "t.txt:5:9: error: 'output' uses 'b' before it is defined (it is defined in line "
                "4)\n"
                "t.txt:4:9: error: 'b' comes after the return\n";
            break;
        case 11:
            b->vals[0].u.i = g->use.len;
            vec_push(&g->store->mem, &g->use, g->use.at[a->use_first]);
            want = "t.txt:1:0: error: internal error: a use belongs to another argument\n";
            break;
        }
        assert_int_equal(tuck_graph_lint(g, d), TUCK_ELINT);
        char *s = diags_text(d);
        assert_string_equal(s, want);
        free(s);
        tuck_diags_free(d);
        tuck_doc_free(doc);
    }
}

static void test_lint_collectives(void **state)
{
    (void)state;
    /* Right. */
    assert_lint_of("        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
                   "        s = torch.ops.aten.sym_size.int(a, 0)\n"
                   "        w = " C10D "wait_tensor.default(a)\n"
                   "        v = " C10D "wait_tensor.default(w)\n"
                   "        return (v, s)\n",
                   "");
    assert_lint_of("        a = " C10D "all_gather_into_tensor_coalesced.default([x, y], 2, '0')\n"
                   "        i = a[0]\n"
                   "        j = a[1]\n"
                   "        v = " C10D "wait_tensor.default(i)\n"
                   "        w = " C10D "wait_tensor.default(j)\n"
                   "        return (v, w)\n",
                   "");
    /* Never waited for, returned so, read too early. */
    assert_lint_of(
        "        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
        "        return (x,)\n",
        "t.txt:3:9: warning: 'a' is never waited for (_c10d_functional.all_reduce.default "
        "starts it, a wait ends it)\n");
    assert_lint_of(
        "        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
        "        return (a,)\n",
        "t.txt:3:9: warning: 'a' is returned without a wait (the caller must wait for it)\n");
    assert_lint_of("        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
                   "        b = torch.ops.aten.neg.default(a)\n"
                   "        w = " C10D "wait_tensor.default(a)\n"
                   "        c = torch.ops.aten.neg.default(a)\n"
                   "        return (b, c, w)\n",
                   "t.txt:4:9: error: 'b' reads 'a' without a wait (the result of "
                   "_c10d_functional.all_reduce.default is valid only after a wait)\n"
                   "t.txt:6:9: error: 'c' reads 'a' without a wait (the result of "
                   "_c10d_functional.all_reduce.default is valid only after a wait)\n");
    assert_lint_of(
        "        a = " C10D "all_gather_into_tensor_coalesced.default([x, y], 2, '0')\n"
        "        i = a[0]\n"
        "        j = a[1]\n"
        "        v = torch.ops.aten.neg.default(i)\n"
        "        return (v,)\n",
        "t.txt:6:9: error: 'v' reads 'i' without a wait (the result of "
        "_c10d_functional.all_gather_into_tensor_coalesced.default is valid only after a wait)\n"
        "t.txt:5:9: warning: 'j' of 'a' is never waited for "
        "(_c10d_functional.all_gather_into_tensor_coalesced.default starts it, a wait ends "
        "it)\n");
    assert_lint_of("        a = " C10D "all_gather_into_tensor_coalesced.default([x, y], 2, '0')\n"
                   "        i = a[0]\n"
                   "        return (i,)\n",
                   "t.txt:4:9: warning: 'i' of 'a' is returned without a wait (the caller must "
                   "wait for it)\n");
    /* Another collective also counts as a reader. */
    assert_lint_of("        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
                   "        b = " C10D "all_reduce.default(a, 'sum', '0')\n"
                   "        w = " C10D "wait_tensor.default(b)\n"
                   "        return (w,)\n",
                   "t.txt:4:9: error: 'b' reads 'a' without a wait (the result of "
                   "_c10d_functional.all_reduce.default is valid only after a wait)\n");
    /* An unknown operator may be a wait. */
    assert_lint_of("        a = " C10D "all_reduce.default(x, 'sum', '0')\n"
                   "        b = torch.ops.my.wait.default(a)\n"
                   "        return (b,)\n",
                   "");
    /* Sent somewhere else: a handle, or nothing to wait for. */
    assert_lint_of("        a = torch.ops.c10d.allreduce_.default([x], y, y, None)\n"
                   "        b = a[0]\n"
                   "        c = torch.ops.aten.neg.default(x)\n"
                   "        return (b, c)\n",
                   "");
}

static void test_lint_in_place(void **state)
{
    (void)state;
    assert_lint_of("        a = " C10D "all_reduce_.default(x, 'sum', '0')\n"
                   "        n = torch.ops.aten.neg.default(x)\n"
                   "        s = torch.ops.aten.sym_size.int(x, 0)\n"
                   "        w = " C10D "wait_tensor.default(a)\n"
                   "        m = torch.ops.aten.neg.default(x)\n"
                   "        k = torch.ops.aten.neg.default(a)\n"
                   "        return (n, w, m, k, s)\n",
                   "t.txt:4:9: error: 'n' reads 'x' while 'a' writes it (wait for 'a' first)\n");
    assert_lint_of("        b = torch.ops.aten.neg.default(y)\n"
                   "        a = " C10D "all_gather_into_tensor_out.default(x, 2, '0', out = y)\n"
                   "        n = torch.ops.aten.neg.default(y)\n"
                   "        m = torch.ops.aten.neg.default(x)\n"
                   "        w = " C10D "wait_tensor.default(a)\n"
                   "        return (n, m, w, b)\n",
                   "t.txt:5:9: error: 'n' reads 'y' while 'a' writes it (wait for 'a' first)\n");
    /* The wait may be for the operand, which is the same storage. */
    assert_lint_of("        a = " C10D "all_reduce_.default(x, 'sum', '0')\n"
                   "        w = " C10D "wait_tensor.default(x)\n"
                   "        n = torch.ops.aten.neg.default(x)\n"
                   "        return (w, n)\n",
                   "");
    assert_lint_of("        b = torch.ops.aten.neg.default(x)\n"
                   "        a = " C10D "all_reduce_.default(b, 'sum', '0')\n"
                   "        w = " C10D "wait_tensor.default(b)\n"
                   "        return (w,)\n",
                   "");
    /* Item by item: the second buffer is still being written. */
    assert_lint_of("        a = " C10D "all_reduce_coalesced_.default([x, y], 'sum', '0')\n"
                   "        i = a[0]\n"
                   "        j = a[1]\n"
                   "        v = " C10D "wait_tensor.default(i)\n"
                   "        n = torch.ops.aten.add.Tensor(x, y)\n"
                   "        w = " C10D "wait_tensor.default(j)\n"
                   "        return (v, w, n)\n",
                   "t.txt:7:9: error: 'n' reads 'y' while 'a' writes it (wait for 'a' first)\n");
    /* Sending only reads. */
    assert_lint_of("        a = " C10D "isend.default(x, 1, 0, '0')\n"
                   "        n = torch.ops.aten.neg.default(x)\n"
                   "        w = " C10D "wait_tensor.default(a)\n"
                   "        return (w, n)\n",
                   "");
    assert_lint_of(
        "        a = " C10D "irecv.default(x, 1, 0, '0')\n"
        "        n = torch.ops.aten.neg.default(x)\n"
        "        return (n,)\n",
        "t.txt:4:9: error: 'n' reads 'x' while 'a' writes it (wait for 'a' first)\n"
        "t.txt:3:9: warning: 'a' is never waited for (_c10d_functional.irecv.default starts "
        "it, a wait ends it)\n");
}

static void test_lint_waits(void **state)
{
    (void)state;
    assert_lint_of("        n = torch.ops.aten.neg.default(x)\n"
                   "        w = " C10D "wait_tensor.default(n)\n"
                   "        return (w,)\n",
                   "t.txt:4:9: warning: 'w' waits for 'n', which is not a collective\n");
    /* An input may be one, and so may an unknown value. */
    assert_lint_of("        n = torch.ops.my.op.default(x)\n"
                   "        i = n[0]\n"
                   "        v = " C10D "wait_tensor.default(x)\n"
                   "        w = " C10D "wait_tensor.default(i)\n"
                   "        u = " C10D "wait_tensor.default(w)\n"
                   "        return (v, u)\n",
                   "");
}

/* Started in a nested graph, waited for outside, and the other way round. */
static void test_lint_nested(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(
        "class f(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        n = torch.ops.aten.neg.default(x)\n"
        "        s = self.s\n"
        "        a = torch.ops.higher_order.control_deps((n,), s, x);  s = x = None\n"
        "        t = self.t\n"
        "        w = torch.ops.higher_order.control_deps((a,), t, a);  t = a = None\n"
        "        b = torch.ops._c10d_functional.all_reduce.default(w, 'sum', '0')\n"
        "        u = self.t\n"
        "        v = torch.ops.higher_order.control_deps((n,), u, b);  n = u = b = None\n"
        "        return (w, v)\n"
        "\n"
        "    class s(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            a = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0');  x = None\n"
        "            return a\n"
        "\n"
        "    class t(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            w = torch.ops._c10d_functional.wait_tensor.default(x);  x = None\n"
        "            return w\n");

    assert_lint(tuck_doc_graph(doc, 0), "");
    tuck_doc_free(doc);
    doc = read_or_die(
        "class f(torch.nn.Module):\n"
        "    def forward(self, x):\n"
        "        return x\n"
        "\n"
        "    class s(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            a = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0')\n"
        "            n = torch.ops.aten.neg.default(a)\n"
        "            return (x, n)\n");
    assert_lint(tuck_doc_graph(doc, 0),
                "t.txt:8:13: error: 'n' reads 'a' without a wait (the result of "
                "_c10d_functional.all_reduce.default is valid only after a wait)\n");
    tuck_doc_free(doc);
}

/* What a nested graph starts and returns must be waited for around it. */
static void test_lint_hidden(void **state)
{
    (void)state;
    static const char children[] =
        "\n"
        "    class s(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            a = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0');  x = None\n"
        "            return a\n"
        "\n"
        "    class t(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            r = self.r\n"
        "            i = torch.ops.higher_order.control_deps((x,), r, x);  r = None\n"
        "            j = torch.ops.aten.neg.default(x);  x = None\n"
        "            return (j, i)\n"
        "\n"
        "        class r(torch.nn.Module):\n"
        "            def forward(self, x):\n"
        "                a = "
        "torch.ops._c10d_functional.all_gather_into_tensor_coalesced.default([x], 2, "
        "'0');  x = None\n"
        "                i = a[0];  a = None\n"
        "                return i\n"
        "\n"
        "    class u(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            a = torch.ops._c10d_functional.all_reduce_.default(x, 'sum', '0')\n"
        "            w = torch.ops._c10d_functional.wait_tensor.default(x);  x = w = None\n"
        "            return a\n"
        "\n"
        "    class v(torch.nn.Module):\n"
        "        def forward(self, x):\n"
        "            a = torch.ops._c10d_functional.all_reduce.default(x, 'sum', '0');  x = None\n"
        "            w = torch.ops._c10d_functional.wait_tensor.default(a);  w = None\n"
        "            return a\n";
    static const struct {
        const char *body, *want;
    } cases[] = {
        {"        s = self.s\n"
         "        a = torch.ops.higher_order.control_deps((x,), s, x)\n"
         "        n = torch.ops.aten.neg.default(a)\n"
         "        return (n,)\n",
         "t.txt:5:9: error: 'n' reads 'a' without a wait (the result of "
         "_c10d_functional.all_reduce.default is valid only after a wait)\n"},
        {"        s = self.s\n"
         "        a = torch.ops.higher_order.control_deps((x,), s, x)\n"
         "        b = torch.ops.higher_order.control_deps((a,), s, y)\n"
         "        w = torch.ops._c10d_functional.wait_tensor.default(b)\n"
         "        return (w,)\n",
         "t.txt:4:9: warning: 'a' is never waited for (_c10d_functional.all_reduce.default starts "
         "it, "
         "a wait ends it)\n"},
        {"        t = self.t\n"
         "        a = torch.ops.higher_order.invoke_subgraph(t, 't', x)\n"
         "        i = a[0]\n"
         "        j = a[1]\n"
         "        n = torch.ops.aten.add.Tensor(i, j)\n"
         "        return (n,)\n",
         "t.txt:7:9: error: 'n' reads 'j' without a wait (the result of "
         "_c10d_functional.all_gather_into_tensor_coalesced.default is valid only after a wait)\n"},
        {"        u = self.u\n"
         "        a = torch.ops.higher_order.control_deps((x,), u, x)\n"
         "        n = torch.ops.aten.neg.default(a)\n"
         "        return (n,)\n",
         ""},
        {"        v = self.v\n"
         "        a = torch.ops.higher_order.control_deps((x,), v, x)\n"
         "        n = torch.ops.aten.neg.default(a)\n"
         "        return (n,)\n",
         ""},
        {"        s = self.missing\n"
         "        a = torch.ops.higher_order.control_deps((x,), s, x)\n"
         "        n = torch.ops.aten.neg.default(a)\n"
         "        return (n,)\n",
         ""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[4096];

        snprintf(text, sizeof(text), HEAD "%s%s", cases[i].body, children);
        tuck_doc *doc = read_or_die(text);
        assert_lint(tuck_doc_graph(doc, 0), cases[i].want);
        tuck_doc_free(doc);
    }
}

/* What PyTorch printed is in order. */
static void test_lint_corpus(void **state)
{
    (void)state;
    size_t n, n_graphs = 0;
    char **path = find_paths("tests/graphs", ".txt", &n);

    for (size_t i = 0; i < n; i++) {
        tuck_diags *d = tuck_diags_new(NULL);
        tuck_doc *doc;
        assert_int_equal(tuck_doc_read_file(path[i], NULL, NULL, &doc), TUCK_OK);
        for (size_t k = 0; k < tuck_doc_count(doc); k++, n_graphs++)
            if (tuck_graph_lint(tuck_doc_graph(doc, k), d) != TUCK_OK)
                fail_msg("%s", diags_text(d));
        tuck_doc_free(doc);
        tuck_diags_free(d);
    }
    assert_true(n_graphs > 200);
    free_paths(path, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lint_structure),   cmocka_unit_test(test_lint_broken),
        cmocka_unit_test(test_lint_collectives), cmocka_unit_test(test_lint_in_place),
        cmocka_unit_test(test_lint_waits),       cmocka_unit_test(test_lint_nested),
        cmocka_unit_test(test_lint_hidden),      cmocka_unit_test(test_lint_corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
