/* Reading, copying and drawing graphs. */
#include "support/lint_test.h"
#include "graph/graph.h" /* to read and break what the interface hides */

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

static void test_dot_refused(void **state)
{
    (void)state;
    tuck_graph *g;

    assert_int_equal(tuck_graph_new(NULL, NULL, &g), TUCK_OK);
    assert_int_equal(tuck_graph_dot(g, text_refuse, NULL), TUCK_EIO);
    assert_int_equal(tuck_graph_print(g, TUCK_FORM_TEXT, NULL, text_refuse, NULL), TUCK_EIO);
    tuck_graph_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),      cmocka_unit_test(test_look),
        cmocka_unit_test(test_copy_corpus), cmocka_unit_test(test_copy),
        cmocka_unit_test(test_copy_groups), cmocka_unit_test(test_copy_deep),
        cmocka_unit_test(test_dot),         cmocka_unit_test(test_dot_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
