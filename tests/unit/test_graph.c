/* Looking at graphs, copying, cleaning, sorting and checking them, and drawing them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"
#include "graph/graph.h" /* to break a graph in ways the interface does not allow */

/* ---- helpers ---- */

static void assert_text(const tuck_graph *g, const char *want)
{
    char *s = graph_text(g);

    assert_string_equal(s, want);
    free(s);
}

static tuck_node find(tuck_graph *g, const char *name)
{
    tuck_node n = tuck_graph_find(g, name);

    if (tuck_is_none(n))
        fail_msg("there is no %s", name);
    return n;
}

static void assert_lint(const tuck_graph *g, const char *want)
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
static void assert_lint_of(const char *body, const char *want)
{
    char text[4096];

    snprintf(text, sizeof(text), HEAD "%s", body);
    tuck_doc *doc = read_or_die(text);
    assert_lint(tuck_doc_graph(doc, 0), want);
    tuck_doc_free(doc);
}

/* ---- accessors ---- */

static void test_status(void **state)
{
    (void)state;
    assert_string_equal(tuck_version(), TUCK_VERSION);
    assert_string_equal(tuck_status_text(TUCK_OK), "no error");
    assert_string_equal(tuck_status_text(TUCK_ENOMEM), "out of memory");
    assert_string_equal(tuck_status_text(TUCK_EINVAL), "bad argument");
    assert_string_equal(tuck_status_text((tuck_status)-99), "unknown status");
}

static void test_look(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("class <lambda>(torch.nn.Module):\n"
                                "    def forward(self, L_x_: \"f32[8, 4][4, 1]cuda:0\"):\n"
                                "        l_x_ = L_x_\n"
                                "        w: \"f32[4]\" = self.net.w\n"
                                "        op = torch.ops.my.op(l_x_, [1, (l_x_, w), -2.5], 'a\\tb', "
                                "torch.float32, k = {'a': "
                                "w})\n"
                                "        size = l_x_.size(0);  l_x_ = None\n"
                                "        add = op + size;  op = size = None\n"
                                "        return (add, w, True)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node x = tuck_graph_first(g), w = find(g, "w"), op = find(g, "op");

    assert_string_equal(tuck_graph_name(g), "<lambda>");
    assert_int_equal(tuck_graph_size(g), 6);
    assert_true(tuck_graph_id_end(g) > 6);
    assert_int_equal(tuck_graph_last(g).id, tuck_graph_output(g).id);
    assert_int_equal(tuck_graph_next(g, x).id, w.id);
    assert_int_equal(tuck_graph_prev(g, w).id, x.id);
    assert_int_equal(tuck_node_kind(g, x), TUCK_PLACEHOLDER);
    assert_string_equal(tuck_node_name(g, x), "l_x_");
    assert_string_equal(tuck_node_target(g, x), "L_x_");
    assert_string_equal(tuck_node_annotation(g, x), "f32[8, 4][4, 1]cuda:0");
    assert_int_equal(tuck_node_kind(g, w), TUCK_GET_ATTR);
    assert_string_equal(tuck_node_target(g, w), "net.w");
    assert_int_equal(tuck_node_line(g, w), 4);
    assert_int_equal(tuck_node_kind(g, op), TUCK_CALL_FUNCTION);
    assert_string_equal(tuck_node_target(g, op), "torch.ops.my.op");
    assert_string_equal(tuck_node_annotation(g, op), "");
    assert_int_equal(tuck_node_kind(g, find(g, "size")), TUCK_CALL_METHOD);
    assert_string_equal(tuck_node_target(g, find(g, "add")), "operator.add");

    assert_int_equal(tuck_node_arg_count(g, op), 4);
    const tuck_value *list = tuck_node_arg(g, op, 1);
    assert_true(tuck_value_is_container(list));
    assert_int_equal(tuck_value_kind_of(list), TUCK_V_LIST);
    assert_int_equal(tuck_value_len(list), 3);
    assert_int_equal(tuck_value_int(tuck_value_item(list, 0)), 1);
    assert_true(tuck_value_float(tuck_value_item(list, 0)) == 1);
    assert_int_equal(tuck_value_node(tuck_value_item(tuck_value_item(list, 1), 1)).id, w.id);
    assert_true(tuck_value_float(tuck_value_item(list, 2)) == -2.5);
    assert_string_equal(tuck_value_text(g, tuck_value_item(list, 2)), "-2.5");
    assert_null(tuck_value_item(list, 3));
    assert_ptr_equal(tuck_value_next(list), tuck_node_arg(g, op, 2));
    assert_string_equal(tuck_value_text(g, tuck_node_arg(g, op, 2)), "a\tb");
    assert_string_equal(tuck_value_text(g, tuck_node_arg(g, op, 3)), "torch.float32");
    assert_string_equal(tuck_value_text(g, list), "");
    assert_int_equal(tuck_value_int(list), 0);
    assert_true(tuck_is_none(tuck_value_node(list)));
    assert_int_equal(tuck_value_len(tuck_node_arg(g, op, 0)), 0);
    assert_null(tuck_value_item(tuck_node_arg(g, op, 0), 0));
    assert_string_equal(tuck_node_kwarg_name(g, op, 0), "k");
    assert_int_equal(tuck_value_kind_of(tuck_node_kwarg(g, op, 0)), TUCK_V_DICT);
    assert_int_equal(tuck_value_len(tuck_node_kwarg(g, op, 0)), 2);
    assert_true(tuck_value_int(tuck_value_item(tuck_node_arg(g, tuck_graph_output(g), 0), 2)) == 1);

    uint32_t users[3], n = 0;
    assert_int_equal(tuck_node_use_count(g, w), 3);
    for (tuck_use u = tuck_node_uses(g, w); u.id; u = tuck_use_next(g, u))
        users[n++] = tuck_use_user(g, u).id;
    assert_int_equal(n, 3);
    assert_int_equal(users[0], op.id);
    assert_int_equal(users[1], op.id);
    assert_int_equal(users[2], tuck_graph_output(g).id);
    assert_null(check_users(g));
    tuck_doc_free(doc);
}

/* ---- copies ---- */

/* Every graph of a corpus file: the copy prints the same, before and after the original is
 * freed. */
static void test_copy_corpus(void **state)
{
    (void)state;
    size_t n, n_graphs = 0;
    char **path = find_paths("tests/graphs", ".txt", &n);

    assert_true(n > 100);
    for (size_t i = 0; i < n; i++) {
        tuck_doc *doc;
        assert_int_equal(tuck_doc_read_file(path[i], NULL, NULL, &doc), TUCK_OK);
        size_t k = n_graphs++ % tuck_doc_count(doc);
        tuck_graph *g = tuck_doc_graph(doc, k), *copy = NULL;
        char *before = graph_text(g);
        assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
        assert_int_equal(tuck_graph_size(copy), tuck_graph_size(g));
        assert_null(check_users(copy));
        tuck_doc_free(doc);
        char *after = graph_text(copy);
        if (strcmp(before, after) != 0)
            fail_msg("%s: the copy differs", path[i]);
        free(before);
        free(after);
        tuck_graph_free(copy);
    }
    free_paths(path, n);
}

static void test_copy(void **state)
{
    (void)state;
    static const char text[] =
        "class f(torch.nn.Module):\n"
        "    def forward(self, x, y):\n"
        "        # why\n"
        "        a = torch.neg(x)  # behind it\n"
        "        b = torch.add(a, y);  x = None\n" /* not what the rule says */
        "        return (b, a)\n";
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0), *copy, *second;
    tuck_args *args = tuck_args_new(g);
    tuck_node n;

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    assert_text(copy, text);
    /* Editing one does not change the other; ids are dense again in the next copy. */
    tuck_args_text(args, "[a, b]");
    assert_int_equal(tuck_graph_add(g, tuck_before(find(g, "b")), TUCK_CALL_FUNCTION, "torch.neg",
                                    NULL, NULL, NULL, &n),
                     TUCK_OK);
    assert_int_equal(tuck_node_erase(g, n), TUCK_OK);
    assert_int_equal(tuck_graph_add(g, tuck_before(find(g, "b")), TUCK_CALL_FUNCTION, "torch.cat",
                                    args, NULL, NULL, &n),
                     TUCK_OK); /* uses b before it is defined */
    tuck_args_free(args);
    assert_text(copy, text);
    assert_int_equal(tuck_graph_copy(g, &second), TUCK_OK);
    char *s = graph_text(g);
    assert_text(second, s);
    assert_null(strstr(s, "behind it")); /* after an edit no rule says where it belongs */
    free(s);
    assert_null(check_users(second));
    assert_int_equal(tuck_graph_id_end(second),
                     tuck_graph_first(second).id + tuck_graph_size(second));
    for (tuck_node k = tuck_graph_first(second); !tuck_is_none(tuck_graph_next(second, k));
         k = tuck_graph_next(second, k))
        assert_int_equal(tuck_graph_next(second, k).id, k.id + 1);
    tuck_doc_free(doc);
    /* The copy is a graph of its own. */
    assert_int_equal(tuck_node_rename(copy, find(copy, "a"), "c"), TUCK_OK);
    assert_null(check_fixpoint(copy));
    tuck_graph_free(copy);
    tuck_graph_free(second);
    assert_int_equal(tuck_graph_copy(NULL, &copy), TUCK_EINVAL);
}

/* Known facts about groups are copied, into the copy's own memory. */
static void test_copy_groups(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(
        HEAD
        "        a = torch.ops.c10d_functional.all_reduce.default(x, 'sum', '', [0, 2, 5], 3)\n"
        "        b = torch.ops.c10d_functional.wait_tensor.default(a)\n"
        "        return (b,)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0), *copy;

    assert_int_equal(g->group.len, 1);
    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    tuck_doc_free(doc);
    assert_int_equal(copy->group.len, 1);
    assert_int_equal(copy->group.at[0].size, 3);
    assert_int_equal(copy->group.at[0].ranks[2], 5);
    tuck_graph_free(copy);
}

/* As deep as the text allows: copying must not use the stack. */
static void test_copy_deep(void **state)
{
    (void)state;
    enum { DEPTH = 600 };
    struct text t = {NULL, 0, 0};
    char line[16384];

    for (int d = 0; d < DEPTH; d++) {
        int in = 4 * d;
        snprintf(line, sizeof(line),
                 "%s%*sclass c%d(torch.nn.Module):\n%*sdef forward(self, x):\n%*sreturn x\n",
                 d ? "\n" : "", in, "", d, in + 4, "", in + 8, "");
        text_add(&t, line, strlen(line));
    }
    tuck_doc *doc = read_or_die(t.at);
    tuck_graph *copy;
    size_t depth = 1, removed;

    assert_int_equal(tuck_graph_copy(tuck_doc_graph(doc, 0), &copy), TUCK_OK);
    tuck_doc_free(doc);
    assert_text(copy, t.at);
    for (tuck_graph *g = copy; tuck_graph_child_count(g) > 0; g = tuck_graph_child(g, 0))
        depth++;
    assert_int_equal(depth, DEPTH);
    assert_lint(copy, "");
    assert_int_equal(tuck_graph_remove_dead(copy, &removed), TUCK_OK);
    assert_int_equal(removed, 0);
    tuck_graph_free(copy);
    text_done(&t);
}

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
    for (int k = 0; k < 11; k++) {
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

/* ---- pictures ---- */

static void test_dot(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("class <lambda>(torch.nn.Module):\n"
                                "    def forward(self, x: \"f32[4]\"):\n"
                                "        w = getattr(self, \"a\\\\b\")\n"
                                "        a = " C10D "all_reduce.default(x, 'sum', '0');  x = None\n"
                                "        b: \"f32[4]\" = " C10D
                                "wait_tensor.default(a);  a = None\n"
                                "        s = b.size(w, w);  b = None\n"
                                "        return (s,)\n"
                                "\n"
                                "    class g(torch.nn.Module):\n"
                                "        def forward(self, x):\n"
                                "            return x\n");
    tuck_graph *g = tuck_doc_graph(doc, 0), *copy;
    struct text t = {NULL, 0, 0};

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    assert_int_equal(tuck_graph_dot(copy, text_add, &t), TUCK_OK);
    char want[4096];
    uint32_t n = tuck_graph_first(copy).id; /* not 1 where the build is for stress */
    snprintf(want, sizeof(want),
             "digraph \"<lambda>\" {\n"
             "    node [shape=box, style=filled, fillcolor=white, fontname=monospace];\n"
             "    g0_%u [label=\"x\\ninput\\nf32[4]\", fillcolor=lightblue];\n"
             "    g0_%u [label=\"w\\nself.a\\\\\\\\b\", fillcolor=lightcyan];\n"
             "    g0_%u [label=\"a\\n_c10d_functional.all_reduce.default\", fillcolor=orange];\n"
             "    g0_%u [label=\"b\\n_c10d_functional.wait_tensor.default\\nf32[4]\", "
             "fillcolor=gold];\n"
             "    g0_%u [label=\"s\\n.size\", fillcolor=white];\n"
             "    g0_%u [label=\"output\", fillcolor=palegreen];\n"
             "    g0_%u -> g0_%u;\n"
             "    g0_%u -> g0_%u;\n"
             "    g0_%u -> g0_%u;\n"
             "    g0_%u -> g0_%u;\n"
             "    g0_%u -> g0_%u;\n"
             "    g0_%u -> g0_%u;\n"
             "    subgraph cluster_1 {\n"
             "        label=\"g\";\n"
             "        g1_%u [label=\"x\\ninput\", fillcolor=lightblue];\n"
             "        g1_%u [label=\"output\", fillcolor=palegreen];\n"
             "        g1_%u -> g1_%u;\n"
             "    }\n"
             "}\n",
             n, n + 1, n + 2, n + 3, n + 4, n + 5, n, n + 2, n + 2, n + 3, n + 3, n + 4, n + 1,
             n + 4, n + 1, n + 4, n + 4, n + 5, n, n + 1, n, n + 1);
    assert_string_equal(t.at, want);
    text_done(&t);
    assert_int_equal(tuck_graph_dot(NULL, text_add, &t), TUCK_EINVAL);
    tuck_graph_free(copy);
    tuck_doc_free(doc);
}

static bool refuse(void *ctx, const char *s, size_t n)
{
    (void)ctx;
    (void)s;
    (void)n;
    return false;
}

static void test_dot_refused(void **state)
{
    (void)state;
    tuck_graph *g;

    assert_int_equal(tuck_graph_new(NULL, NULL, &g), TUCK_OK);
    assert_int_equal(tuck_graph_dot(g, refuse, NULL), TUCK_EIO);
    assert_int_equal(tuck_graph_print(g, TUCK_FORM_TEXT, NULL, refuse, NULL), TUCK_EIO);
    tuck_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),        cmocka_unit_test(test_look),
        cmocka_unit_test(test_copy),          cmocka_unit_test(test_copy_corpus),
        cmocka_unit_test(test_copy_deep),     cmocka_unit_test(test_copy_groups),
        cmocka_unit_test(test_dead),          cmocka_unit_test(test_dead_nested),
        cmocka_unit_test(test_sort),          cmocka_unit_test(test_sort_effects),
        cmocka_unit_test(test_sort_writes),   cmocka_unit_test(test_lint_structure),
        cmocka_unit_test(test_lint_broken),   cmocka_unit_test(test_lint_collectives),
        cmocka_unit_test(test_lint_in_place), cmocka_unit_test(test_lint_waits),
        cmocka_unit_test(test_lint_nested),   cmocka_unit_test(test_lint_hidden),
        cmocka_unit_test(test_lint_corpus),   cmocka_unit_test(test_dot),
        cmocka_unit_test(test_dot_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
