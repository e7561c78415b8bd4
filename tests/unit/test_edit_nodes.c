/* Changing nodes of an existing graph: the resulting text, and what is refused. */
#include "support/edit_test.h"

/* ---- changing nodes ---- */

static const char text_chain[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
    "        # File: a.py:1 in f, code: a\n"
    "        a: \"f32[4]\" = torch.ops.aten.neg.default(x)\n"
    "\n"
    "        # File: a.py:2 in f, code: b\n"
    "        b: \"f32[4]\" = torch.ops.aten.add.Tensor(a, x);  x = None\n"
    "        c: \"f32[4]\" = torch.ops.aten.mul.Tensor(a, y);  a = None\n"
    "        d: \"f32[4]\" = torch.ops.aten.mul.Tensor(b, c);  b = c = None\n"
    "        return (d, y)\n";

static void test_change(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(text_chain);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node a = find(g, "a"), b = find(g, "b"), c = find(g, "c"), d = find(g, "d");

    assert_int_equal(tuck_node_move(g, c, tuck_before(b)), TUCK_OK);
    assert_int_equal(tuck_node_rename(g, d, "prod"), TUCK_OK);
    assert_int_equal(tuck_node_rename(g, d, "prod"), TUCK_OK);
    assert_int_equal(set_args(g, b, "a", "2", "alpha=", "y", NULL), TUCK_OK);
    assert_int_equal(tuck_node_set_target(g, c, "torch.ops.aten.div.Tensor"), TUCK_OK);
    assert_text(g, "class f(torch.nn.Module):\n"
                   "    def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
                   "        # File: a.py:1 in f, code: a\n"
                   "        a: \"f32[4]\" = torch.ops.aten.neg.default(x);  x = None\n"
                   "\n"
                   "        # File: a.py:2 in f, code: b\n"
                   "        c: \"f32[4]\" = torch.ops.aten.div.Tensor(a, y)\n"
                   "        b: \"f32[4]\" = torch.ops.aten.add.Tensor(a, 2, alpha = y);  a = None\n"
                   "        prod: \"f32[4]\" = torch.ops.aten.mul.Tensor(b, c);  b = c = None\n"
                   "        return (prod, y)\n");
    assert_sound(g);
    assert_int_equal(tuck_node_replace_uses(g, b, find(g, "y"), none), TUCK_OK);
    assert_int_equal(tuck_node_use_count(g, b), 0);
    assert_int_equal(tuck_node_erase(g, b), TUCK_OK);
    assert_int_equal(tuck_node_kind(g, b), 0);
    assert_string_equal(tuck_node_name(g, b), "");
    /* An insertion between a node and its users. */
    tuck_node n = none;
    tuck_args *args = tuck_args_new(g);
    tuck_args_node(args, a);
    assert_int_equal(tuck_graph_add(g, tuck_after(a), TUCK_CALL_FUNCTION,
                                    "torch.ops.aten.clone.default", args, NULL, "f32[4][1]cpu", &n),
                     TUCK_OK);
    tuck_args_free(args);
    assert_int_equal(tuck_node_replace_uses(g, a, n, n), TUCK_OK);
    assert_int_equal(tuck_node_use_count(g, a), 1);
    assert_text(g,
                "class f(torch.nn.Module):\n"
                "    def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
                "        # File: a.py:1 in f, code: a\n"
                "        a: \"f32[4]\" = torch.ops.aten.neg.default(x);  x = None\n"
                "        clone_default: \"f32[4]\" = torch.ops.aten.clone.default(a);  a = None\n"
                "\n"
                "        # File: a.py:2 in f, code: b\n"
                "        c: \"f32[4]\" = torch.ops.aten.div.Tensor(clone_default, y);  "
                "clone_default = None\n"
                "        prod: \"f32[4]\" = torch.ops.aten.mul.Tensor(y, c);  c = None\n"
                "        return (prod, y)\n");
    assert_sound(g);
    tuck_doc_free(doc);
}

static void test_refused(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(text_chain);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node a = find(g, "a"), d = find(g, "d"), x = find(g, "x"), out = tuck_graph_output(g);
    tuck_node dead, never = {tuck_graph_id_end(g) + 5};

    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", &dead, "x", NULL),
                     TUCK_OK);
    assert_int_equal(tuck_node_erase(g, dead), TUCK_OK);
    char *before = graph_text(g);
    tuck_node nobody[] = {dead, never, none};
    for (size_t i = 0; i < 3; i++) {
        tuck_node n = nobody[i];
        assert_int_equal(tuck_node_erase(g, n), TUCK_EINVAL);
        assert_int_equal(tuck_node_rename(g, n, "z"), TUCK_EINVAL);
        assert_int_equal(tuck_node_set_target(g, n, "z"), TUCK_EINVAL);
        assert_int_equal(tuck_node_set_annotation(g, n, "f32[]"), TUCK_EINVAL);
        assert_int_equal(tuck_node_set_args(g, n, NULL), TUCK_EINVAL);
        assert_int_equal(tuck_node_move(g, n, tuck_at_end()), TUCK_EINVAL);
        assert_int_equal(tuck_node_replace_uses(g, n, a, none), TUCK_EINVAL);
        assert_int_equal(tuck_node_replace_uses(g, a, n, none), TUCK_EINVAL);
        if (!tuck_is_none(n)) {
            assert_int_equal(tuck_node_move(g, a, tuck_before(n)), TUCK_EINVAL);
            assert_int_equal(tuck_node_replace_uses(g, a, d, n), TUCK_EINVAL);
            assert_int_equal(try_at(g, tuck_after(n), TUCK_CALL_FUNCTION, "torch.neg", NULL, NULL),
                             TUCK_EINVAL);
        }
        assert_int_equal(tuck_node_kind(g, n), 0);
        assert_string_equal(tuck_node_name(g, n), "");
        assert_string_equal(tuck_node_target(g, n), "");
        assert_string_equal(tuck_node_annotation(g, n), "");
        assert_int_equal(tuck_node_line(g, n), 0);
        assert_int_equal(tuck_node_arg_count(g, n), 0);
        assert_null(tuck_node_arg(g, n, 0));
        assert_int_equal(tuck_node_use_count(g, n), 0);
        assert_true(tuck_is_none(tuck_graph_next(g, n)));
        assert_true(tuck_is_none(tuck_graph_prev(g, n)));
        assert_int_equal(tuck_node_uses(g, n).id, 0);
    }
    assert_int_equal(tuck_use_next(g, (tuck_use){0}).id, 0);
    assert_int_equal(tuck_use_next(g, (tuck_use){99999}).id, 0);
    assert_true(tuck_is_none(tuck_use_user(g, (tuck_use){99999})));

    assert_int_equal(tuck_node_erase(g, a), TUCK_EINVAL);                   /* it is used */
    assert_int_equal(tuck_node_replace_uses(g, a, out, none), TUCK_EINVAL); /* has no result */
    /* would use itself */
    assert_int_equal(tuck_node_replace_uses(g, a, find(g, "b"), none), TUCK_EINVAL);
    assert_int_equal(set_args(g, a, "a", NULL), TUCK_EINVAL);
    assert_int_equal(set_args(g, a, "[x, (a,)]", NULL), TUCK_EINVAL);
    assert_int_equal(set_args(g, x, "a", NULL), TUCK_EINVAL);
    assert_int_equal(set_args(g, out, NULL), TUCK_EINVAL);
    assert_int_equal(set_args(g, out, "a", "d", NULL), TUCK_EINVAL);
    assert_int_equal(set_args(g, out, "k=", "d", NULL), TUCK_EINVAL);
    assert_int_equal(tuck_node_rename(g, out, "z"), TUCK_EINVAL);
    assert_int_equal(tuck_node_rename(g, a, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, a, tuck_after(out)), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, out, tuck_before(a)), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, out, tuck_at_end()), TUCK_OK); /* where it is */
    assert_int_equal(tuck_node_move(g, a, tuck_before(a)), TUCK_OK);
    assert_int_equal(tuck_node_move(g, a, tuck_after(a)), TUCK_OK);
    assert_int_equal(tuck_node_move(g, a, tuck_before(none)), TUCK_OK);
    assert_int_equal(tuck_node_replace_uses(g, a, a, none), TUCK_OK);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_OUTPUT, NULL, NULL, "a", NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_after(out), TUCK_GET_ATTR, "w", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_OPAQUE, "w", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_RESULT, "w", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), (tuck_kind)0, "w", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), (tuck_kind)77, "w", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_GET_ATTR, "w", NULL, "a", NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_METHOD, "m", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_METHOD, "m", NULL, "1", NULL), TUCK_EINVAL);
    static const char *const functions[] = {"",    ".",  "a.",  ".a",  "a..b", "self.a",
                                            "a b", "1a", "a.1", "a(b", "a\n",  "\xff"};
    for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
        assert_int_equal(
            try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, functions[i], NULL, "a", NULL),
            TUCK_EINVAL);
        assert_int_equal(tuck_node_set_target(g, a, functions[i]), TUCK_EINVAL);
    }
    static const char *const paths[] = {"", ".", "a.", ".a", "a..b", "a\"b", "a\nb"};
    for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++)
        assert_int_equal(try_at(g, tuck_at_end(), TUCK_GET_ATTR, paths[i], NULL, NULL),
                         TUCK_EINVAL);
    assert_int_equal(tuck_graph_add(g, tuck_at_end(), TUCK_GET_ATTR, NULL, NULL, NULL, NULL, NULL),
                     TUCK_EINVAL);
    assert_int_equal(
        tuck_graph_add(NULL, tuck_at_end(), TUCK_GET_ATTR, "w", NULL, NULL, NULL, NULL),
        TUCK_EINVAL);
    assert_text(g, before);
    free(before);
    assert_sound(g);
    tuck_doc_free(doc);
}

/* A statement that is kept verbatim moves with the names it assigns. */
static void test_opaque(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("class f(torch.nn.Module):\n"
                                "    def forward(self, x):\n"
                                "        a = torch.neg(x)\n"
                                "        p, q = (lambda v: (v, v))(x)\n"
                                "        b = torch.add(p, q);  p = q = None\n"
                                "        del_me, = weird[x:]\n"
                                "        return (a, b, x)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node p = find(g, "p"), q = find(g, "q"), a = find(g, "a"), gone = find(g, "del_me"), n;

    assert_int_equal(tuck_node_kind(g, p), TUCK_OPAQUE);
    assert_int_equal(tuck_node_kind(g, q), TUCK_RESULT);
    assert_int_equal(tuck_node_rename(g, p, "z"), TUCK_EINVAL);
    assert_int_equal(tuck_node_rename(g, q, "z"), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_args(g, p, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_target(g, p, "z"), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_annotation(g, p, "f32[]"), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, q, tuck_before(a)), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, a, tuck_before(q)), TUCK_EINVAL);
    assert_int_equal(tuck_node_erase(g, p), TUCK_EINVAL);
    assert_int_equal(tuck_node_erase(g, q), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, p, tuck_before(p)), TUCK_OK);
    assert_int_equal(tuck_node_move(g, p, tuck_after(q)), TUCK_OK);
    assert_int_equal(tuck_node_move(g, p, tuck_before(a)), TUCK_OK);
    assert_int_equal(tuck_graph_next(g, p).id, q.id);
    assert_int_equal(tuck_graph_next(g, q).id, a.id);
    assert_int_equal(try_at(g, tuck_after(p), TUCK_CALL_FUNCTION, "torch.neg", &n, "p", NULL),
                     TUCK_OK);
    assert_int_equal(tuck_graph_next(g, q).id, n.id);
    /* The name of the further result is not a use that could be replaced. */
    assert_int_equal(tuck_node_replace_uses(g, p, a, none), TUCK_OK);
    assert_int_equal(tuck_node_use_count(g, p), 1);
    assert_int_equal(tuck_use_user(g, tuck_node_uses(g, p)).id, q.id);
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_sound(g);
    assert_int_equal(tuck_node_erase(g, gone), TUCK_OK);
    assert_int_equal(tuck_node_replace_uses(g, q, a, none), TUCK_OK);
    assert_int_equal(tuck_node_erase(g, p), TUCK_OK);
    assert_int_equal(tuck_node_kind(g, q), 0);
    assert_text(g, "class f(torch.nn.Module):\n"
                   "    def forward(self, x):\n"
                   "        a = torch.neg(x)\n"
                   "        neg = torch.neg(a)\n"
                   "        b = torch.add(a, a)\n"
                   "        return (a, b, x)\n");
    assert_sound(g);
    tuck_doc_free(doc);
}

/* What a nested graph mentions from the graph around it is kept. */
static void test_nested_names(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("class f(torch.nn.Module):\n"
                                "    def forward(self, x):\n"
                                "        a = torch.neg(x)\n"
                                "        sub = self.sub\n"
                                "        h = torch.ops.higher_order.wrap(sub, x);  sub = x = None\n"
                                "        return h\n"
                                "\n"
                                "    class sub(torch.nn.Module):\n"
                                "        def forward(self, y):\n"
                                "            z = torch.add(y, a);  y = None\n"
                                "            return z\n");
    tuck_graph *g = tuck_doc_graph(doc, 0), *sub = tuck_graph_child(g, 0);
    tuck_node a = find(g, "a");
    size_t removed;

    assert_string_equal(tuck_graph_name(sub), "sub");
    assert_int_equal(tuck_graph_child_count(g), 1);
    assert_null(tuck_graph_child(g, 1));
    assert_int_equal(tuck_node_rename(g, a, "b"), TUCK_EINVAL);
    assert_int_equal(tuck_node_erase(g, a), TUCK_EINVAL);
    assert_int_equal(tuck_graph_remove_dead(g, &removed), TUCK_OK);
    assert_int_equal(removed, 0);
    assert_int_equal(tuck_node_rename(g, find(g, "h"), "hh"), TUCK_OK);
    assert_int_equal(tuck_node_rename(sub, find(sub, "z"), "a"), TUCK_OK); /* no capture */
    assert_string_equal(tuck_node_name(sub, tuck_graph_prev(sub, tuck_graph_last(sub))), "a_1");
    assert_sound(g);
    tuck_doc_free(doc);
}

/* ---- returns ---- */

static void test_output(void **state)
{
    (void)state;
    static const char text[] = "class f(torch.nn.Module):\n"
                               "    def forward(\n"
                               "        self,\n"
                               "        x: \"f32[4]\",  # PlainAOTInput(idx=0)\n"
                               "        y: \"f32[4]\",\n"
                               "    ):\n"
                               "        a: \"f32[4]\" = torch.ops.aten.neg.default(x)\n"
                               "        return (\n"
                               "            a,  # PlainAOTOutput(idx=0)\n"
                               "            x,  # PlainAOTOutput(idx=1)\n"
                               "        )\n";
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node out = tuck_graph_output(g), n;

    /* As many values: the comments stay with their positions. */
    assert_int_equal(set_args(g, out, "(a, y)", NULL), TUCK_OK);
    input(g, "z", "f32[2][1]cpu");
    assert_text(g, "class f(torch.nn.Module):\n"
                   "    def forward(\n"
                   "        self,\n"
                   "        x: \"f32[4]\",  # PlainAOTInput(idx=0)\n"
                   "        y: \"f32[4]\",\n"
                   "        z: \"f32[2]\",\n"
                   "    ):\n"
                   "        a: \"f32[4]\" = torch.ops.aten.neg.default(x);  x = None\n"
                   "        return (\n"
                   "            a,  # PlainAOTOutput(idx=0)\n"
                   "            y,  # PlainAOTOutput(idx=1)\n"
                   "        )\n");
    assert_sound(g);
    assert_int_equal(set_args(g, out, "(a,)", NULL), TUCK_OK);
    char *s = graph_text(g);
    assert_non_null(strstr(s, "\n        return (a,)\n"));
    free(s);
    assert_sound(g);
    assert_int_equal(tuck_node_erase(g, out), TUCK_OK);
    assert_true(tuck_is_none(tuck_graph_output(g)));
    assert_int_equal(try_at(g, tuck_before(find(g, "a")), TUCK_OUTPUT, NULL, NULL, "x", NULL),
                     TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", &n, "a", NULL),
                     TUCK_OK);
    output(g, "neg");
    assert_sound(g);
    tuck_doc_free(doc);
}

/* A graph that PyTorch prints without return gets one. */
static void test_output_missing(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(
        "class f(torch.nn.Module):\n    def forward(self):\n        pass\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);

    input(g, "x", NULL);
    assert_sound(g);
    output(g, "x");
    assert_text(g, "class f(torch.nn.Module):\n    def forward(self, x):\n        return x\n");
    assert_sound(g);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_change), cmocka_unit_test(test_refused),
        cmocka_unit_test(test_opaque), cmocka_unit_test(test_nested_names),
        cmocka_unit_test(test_output), cmocka_unit_test(test_output_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
