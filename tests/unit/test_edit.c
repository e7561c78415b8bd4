/* Building and editing graphs through the public interface: what comes out as text, what is
 * refused, and that a refusal leaves no trace. */
#include "support/edit_test.h"

/* ---- building ---- */

static void test_empty(void **state)
{
    (void)state;
    tuck_graph *g = fresh();

    assert_text(g, "class GraphModule(torch.nn.Module):\n"
                   "    def forward(self):\n"
                   "        pass\n");
    assert_int_equal(tuck_graph_size(g), 0);
    assert_true(tuck_is_none(tuck_graph_first(g)));
    assert_true(tuck_is_none(tuck_graph_output(g)));
    assert_sound(g);
    tuck_graph_free(g);
    tuck_graph_free(NULL);

    static const char *const bad[] = {"", "a b", "a(b", "a\n", "\xff", "a#"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(tuck_graph_new(bad[i], NULL, &g), TUCK_EINVAL);
    assert_int_equal(tuck_graph_new("a", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_new("<lambda>", NULL, &g), TUCK_OK);
    assert_string_equal(tuck_graph_name(g), "<lambda>");
    assert_sound(g);
    tuck_graph_free(g);
}

static void test_build(void **state)
{
    (void)state;
    tuck_graph *g = fresh();
    tuck_node n;

    input(g, "x", "bf16[8, 4][4, 1]cuda:0");
    input(g, "w", "bf16[2, 4][4, 1]cuda:0");
    call(g, "torch.ops._c10d_functional.all_gather_into_tensor.default", "w", "4", "'0'", NULL);
    call(g, "torch.ops._c10d_functional.wait_tensor.default", "all_gather_into_tensor_default",
         NULL);
    call(g, "torch.ops.aten.mm.default", "x", "wait_tensor_default", NULL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_GET_ATTR, "layers.0.bias", &n, NULL), TUCK_OK);
    assert_int_equal(tuck_node_set_annotation(g, n, "bf16[8][1]cuda:0"), TUCK_OK);
    call(g, "torch.ops.aten._to_copy.default", "mm_default", "dtype=", "torch.float32",
         "layout=", "torch.strided", "device=", "device(type='cuda', index=0)", NULL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_METHOD, "size", &n, "x", "0", NULL),
                     TUCK_OK);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_MODULE, "net.1", &n, "x", NULL), TUCK_OK);
    output(g, "(_to_copy_default, layers_0_bias, size, net_1)");
    assert_text(
        g, "class GraphModule(torch.nn.Module):\n"
           "    def forward(self, x: \"bf16[8, 4][4, 1]cuda:0\", w: \"bf16[2, 4][4, 1]cuda:0\"):\n"
           "        all_gather_into_tensor_default = "
           "torch.ops._c10d_functional.all_gather_into_tensor.default(w, 4, '0');  w = None\n"
           "        wait_tensor_default = torch.ops._c10d_functional.wait_tensor.default("
           "all_gather_into_tensor_default);  all_gather_into_tensor_default = None\n"
           "        mm_default = torch.ops.aten.mm.default(x, wait_tensor_default);  "
           "wait_tensor_default = None\n"
           "        layers_0_bias: \"bf16[8][1]cuda:0\" = getattr(self.layers, \"0\").bias\n"
           "        _to_copy_default = torch.ops.aten._to_copy.default(mm_default, dtype = "
           "torch.float32, layout = torch.strided, device = device(type='cuda', index=0));  "
           "mm_default = None\n"
           "        size = x.size(0)\n"
           "        net_1 = getattr(self.net, \"1\")(x);  x = None\n"
           "        return (_to_copy_default, layers_0_bias, size, net_1)\n");
    assert_sound(g);
    tuck_graph_free(g);
}

/* What torch 2.13 answers to the same calls, except that here a name is the one in the text:
 * None_1. */
static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *target, *wish, *name;
    } calls[] = {
        {"torch.ops.aten.add.Tensor", NULL, "add_tensor"},
        {"torch.ops.aten.add.Tensor", NULL, "add_tensor_1"},
        {"torch.ops.aten.copy_.default", NULL, "copy__default"},
        {"torch.ops.aten.sum.default", NULL, "sum_default"},
        {"torch.ops.aten.sum.dim_IntList", NULL, "sum_dim_int_list"},
        {"torch.ops._c10d_functional.wait_tensor.default", NULL, "wait_tensor_default"},
        {"torch.ops.aten.cat", NULL, "cat"},
        {"_operator.add", NULL, "add"},
        {"operator.getitem", NULL, "getitem"},
        {"getattr", NULL, "getattr_1"},
        {"max", NULL, "max_1"},
        {"math_sqrt", NULL, "sqrt"},
        {"torch.nn.functional.relu", NULL, "relu"},
        {"torch.ops.higher_order.cond", NULL, "cond"},
        {"torch.relu", NULL, "relu_1"},
        {"_operator_not_", NULL, "not_"},
        {"torch.sym_sum", NULL, "sym_sum"},
        {"torch.neg", "x_3", "x_3"},
        {"torch.neg", "x_3", "x_4"},
        {"torch.neg", "x", "x"},
        {"torch.neg", "x", "x_5"},
        {"torch.neg", "x_1", "x_1"},
        {"torch.neg", "a-b", "a_b"},
        {"torch.neg", "9a", "_9a"},
        {"torch.neg", "", "_unnamed"},
        {"torch.neg", "None", "None_1"},
        {"torch.neg", "add_1_2", "add_1_2"},
        {"torch.neg", "add_1_2", "add_1_3"},
        {"torch.neg", "add_1", "add_1"},
        {"torch.neg", "x_03", "x_03"},
        {"torch.neg", "x_03", "x_6"},
        {"torch.neg", "device", "device_1"},
        {"torch.neg", "sumIt", "sumIt"},
        {"torch.neg", "_3", "_3"},
        {"torch.neg", "_3", "_3_1"},
        {"torch.neg", "self", "self_1"},
    };
    tuck_graph *g = fresh();
    tuck_node n;

    assert_string_equal(tuck_node_name(g, input(g, "L_x_", NULL)), "l_x_");
    assert_string_equal(tuck_node_name(g, input(g, "input", NULL)), "input_1");
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        tuck_args *a = tuck_args_new(g);
        tuck_args_text(a, "l_x_");
        assert_int_equal(tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, calls[i].target, a,
                                        calls[i].wish, NULL, &n),
                         TUCK_OK);
        tuck_args_free(a);
        assert_string_equal(tuck_node_name(g, n), calls[i].name);
        assert_int_equal(tuck_graph_find(g, calls[i].name).id, n.id);
    }
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_METHOD, "__add__", &n, "l_x_", NULL),
                     TUCK_OK);
    assert_string_equal(tuck_node_name(g, n), "add_2");
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_GET_ATTR, "layers.0.myWeight", &n, NULL),
                     TUCK_OK);
    assert_string_equal(tuck_node_name(g, n), "layers_0_my_weight");
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_MODULE, "net.Linear_1", &n, NULL), TUCK_OK);
    assert_string_equal(tuck_node_name(g, n), "net_linear_1");
    assert_string_equal(tuck_node_name(g, input(g, "*args", NULL)), "_args");
    n = call(g, "torch.neg", "l_x_", NULL); /* a name is never reused */
    assert_int_equal(tuck_node_rename(g, n, "zap"), TUCK_OK);
    assert_int_equal(tuck_node_erase(g, n), TUCK_OK);
    assert_true(tuck_is_none(tuck_graph_find(g, "zap")));
    n = call(g, "torch.neg", "l_x_", NULL);
    assert_int_equal(tuck_node_rename(g, n, "zap"), TUCK_OK);
    assert_string_equal(tuck_node_name(g, n), "zap_1");
    n = output(g, "l_x_");
    assert_string_equal(tuck_node_name(g, n), "output");
    n = call(g, "torch.neg", "l_x_", NULL);
    assert_int_equal(tuck_node_rename(g, n, "output"), TUCK_OK);
    assert_string_equal(tuck_node_name(g, n), "output_1");
    assert_true(tuck_is_none(tuck_graph_find(g, "nobody")));
    assert_true(tuck_is_none(tuck_graph_find(g, NULL)));
    assert_sound(g);
    tuck_graph_free(g);
}

/* Words of the text are not names, and names are not words. */
static void test_words(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die("class f(torch.nn.Module):\n"
                                "    def forward(self, L_x_):\n"
                                "        l_x_ = L_x_\n"
                                "        a = helper(l_x_, s0, C.RED)\n"
                                "        output = helper(a);  a = None\n"
                                "        return (output, l_x_)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node n;

    static const char *const wishes[][2] = {{"helper", "helper_1"}, {"s0", "s0_1"},
                                            {"C", "C_1"},           {"L_x_", "L_x__1"},
                                            {"RED", "RED"},         {"output", "output_1"}};
    for (size_t i = 0; i < sizeof(wishes) / sizeof(*wishes); i++) {
        n = call(g, "torch.neg", "l_x_", NULL);
        assert_int_equal(tuck_node_rename(g, n, wishes[i][0]), TUCK_OK);
        assert_string_equal(tuck_node_name(g, n), wishes[i][1]);
    }
    assert_int_not_equal(find(g, "output").id, tuck_graph_output(g).id);
    char *before = graph_text(g);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, "a", &n, "l_x_", NULL),
                     TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, "a.b", &n, "l_x_", NULL),
                     TUCK_EINVAL);
    assert_int_equal(tuck_node_set_target(g, find(g, "output"), "a.b"), TUCK_EINVAL);
    assert_text(g, before);
    free(before);
    /* The placeholder may get back the name of its parameter, and needs no alias then. */
    assert_int_equal(tuck_node_rename(g, find(g, "l_x_"), "L_x_"), TUCK_OK);
    assert_string_equal(tuck_node_name(g, tuck_graph_first(g)), "L_x_");
    assert_sound(g);
    tuck_doc_free(doc);
}

/* ---- inputs ---- */

static void test_inputs(void **state)
{
    (void)state;
    tuck_graph *g = small();
    tuck_node x = find(g, "x"), y = find(g, "y"), add = find(g, "add_tensor"), a, b;

    assert_int_equal(
        tuck_graph_add(g, tuck_before(x), TUCK_PLACEHOLDER, "L_a_", NULL, NULL, "f32[2][1]cpu", &a),
        TUCK_OK);
    assert_int_equal(tuck_graph_add(g, tuck_after(x), TUCK_PLACEHOLDER, NULL, NULL, "b", NULL, &b),
                     TUCK_OK);
    assert_int_equal(
        tuck_graph_add(g, tuck_before(none), TUCK_PLACEHOLDER, "first", NULL, NULL, NULL, NULL),
        TUCK_OK);
    assert_text(g,
                "class GraphModule(torch.nn.Module):\n"
                "    def forward(self, first, L_a_: \"f32[2][1]cpu\", x: \"f32[4][1]cpu\", b, y: "
                "\"f32[4][1]cpu\"):\n"
                "        l_a_ = L_a_\n"
                "        add_tensor = torch.ops.aten.add.Tensor(x, y);  x = y = None\n"
                "        return (add_tensor,)\n");
    assert_sound(g);
    char *before = graph_text(g);
    /* Nothing comes before the inputs, and no input after anything else. */
    assert_int_equal(try_at(g, tuck_before(x), TUCK_CALL_FUNCTION, "torch.neg", NULL, "x", NULL),
                     TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_after(x), TUCK_CALL_FUNCTION, "torch.neg", NULL, "x", NULL),
                     TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_after(add), TUCK_PLACEHOLDER, "z", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, add, tuck_before(x)), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, x, tuck_after(add)), TUCK_EINVAL);
    /* A parameter hides a global, so neither may be added if the other exists. */
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_CALL_FUNCTION, "L_a_", NULL, "x", NULL),
                     TUCK_EINVAL);
    tuck_node h = call(g, "helper", "x", NULL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "helper", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_target(g, x, "helper"), TUCK_EINVAL);
    assert_int_equal(tuck_node_erase(g, h), TUCK_OK);
    /* Names of parameters are unique, and not names of nodes. */
    static const char *const bad[] = {"x",   "L_a_", "l_a_", "add_tensor", "self",
                                      "a b", "",     "***k", "1x",         "*"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, bad[i], NULL, NULL),
                         TUCK_EINVAL);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, NULL, NULL, NULL, NULL, NULL),
        TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "z", NULL, "x", NULL), TUCK_EINVAL);
    assert_text(g, before);
    free(before);

    assert_int_equal(tuck_node_move(g, y, tuck_before(a)), TUCK_OK);
    assert_int_equal(tuck_node_move(g, b, tuck_at_end()), TUCK_OK);
    assert_int_equal(tuck_node_set_target(g, x, "L_x_"), TUCK_OK);
    assert_int_equal(tuck_node_rename(g, a, "aa"), TUCK_OK);
    assert_int_equal(tuck_node_erase(g, find(g, "first")), TUCK_OK);
    assert_int_equal(tuck_node_set_annotation(g, y, NULL), TUCK_OK);
    assert_text(g, "class GraphModule(torch.nn.Module):\n"
                   "    def forward(self, y, L_a_: \"f32[2][1]cpu\", L_x_: \"f32[4][1]cpu\", b):\n"
                   "        aa = L_a_\n"
                   "        x = L_x_\n"
                   "        add_tensor = torch.ops.aten.add.Tensor(x, y);  x = y = None\n"
                   "        return (add_tensor,)\n");
    assert_string_equal(tuck_node_target(g, x), "L_x_");
    assert_sound(g);
    /* Stars come last. */
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "*args", NULL, NULL), TUCK_OK);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "z", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "*more", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "**kw", NULL, NULL), TUCK_OK);
    assert_int_equal(try_at(g, tuck_before(find(g, "_args")), TUCK_PLACEHOLDER, "z", NULL, NULL),
                     TUCK_OK);
    assert_int_equal(tuck_node_move(g, y, tuck_at_end()), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_target(g, y, "*y"), TUCK_EINVAL);
    assert_sound(g);
    tuck_graph_free(g);

    /* Inputs alone, without a body. */
    g = fresh();
    input(g, "x", NULL);
    assert_sound(g);
    assert_int_equal(tuck_node_erase(g, find(g, "x")), TUCK_OK);
    assert_text(g, "class GraphModule(torch.nn.Module):\n"
                   "    def forward(self):\n"
                   "        pass\n");
    tuck_graph_free(g);
}

/* After a flattening the inputs cannot be changed. */
static void test_flattened(void **state)
{
    (void)state;
    tuck_doc *doc = read_or_die(
        "class f(torch.nn.Module):\n"
        "    def forward(self, a, b):\n"
        "        p: \"f32[3]\"; q: \"f32[3]\"; \n"
        "\n"
        "        p, q, = fx_pytree.tree_flatten_spec([a, b], self._in_spec)\n"
        "        add: \"f32[3]\" = torch.ops.aten.add.Tensor(p, p);  p = None\n"
        "        return pytree.tree_unflatten([add], self._out_spec)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node q = find(g, "q"), n;

    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "z", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, NULL, NULL, "z", NULL, NULL),
        TUCK_EINVAL);
    assert_int_equal(tuck_node_erase(g, q), TUCK_EINVAL);
    assert_int_equal(tuck_node_move(g, q, tuck_before(none)), TUCK_EINVAL);
    assert_int_equal(tuck_node_set_target(g, q, "z"), TUCK_EINVAL);
    assert_int_equal(tuck_node_rename(g, q, "z"), TUCK_OK);
    assert_int_equal(tuck_node_set_annotation(g, q, "f32[3][1]cuda:0"), TUCK_OK);
    n = call(g, "torch.neg", "z", NULL);
    assert_int_equal(set_args(g, tuck_graph_output(g), "[add, neg]", NULL), TUCK_OK);
    (void)n;
    assert_text(g, "class f(torch.nn.Module):\n"
                   "    def forward(self, a, b):\n"
                   "        p: \"f32[3]\"; z: \"f32[3]\"; \n"
                   "\n"
                   "        p, z, = fx_pytree.tree_flatten_spec([a, b], self._in_spec)\n"
                   "        add: \"f32[3]\" = torch.ops.aten.add.Tensor(p, p);  p = None\n"
                   "        neg = torch.neg(z);  z = None\n"
                   "        return pytree.tree_unflatten([add, neg], self._out_spec)\n");
    assert_sound(g);
    tuck_doc_free(doc);

    doc = read_or_die("class f(torch.nn.Module):\n"
                      "    def forward(self, args_list):\n"
                      "        args_iter = iter(args_list)\n"
                      "        p = next(args_iter)\n"
                      "        q = next(args_iter)\n"
                      "        args_list.clear()\n"
                      "        add = torch.ops.aten.add.Tensor(p, q);  p = q = None\n"
                      "        return (add,)\n");
    g = tuck_doc_graph(doc, 0);
    assert_int_equal(
        tuck_graph_add(g, tuck_before(none), TUCK_PLACEHOLDER, "args_iter", NULL, NULL, NULL, &n),
        TUCK_OK);
    assert_int_equal(tuck_node_move(g, find(g, "q"), tuck_before(n)), TUCK_OK);
    assert_int_equal(try_at(g, tuck_at_end(), TUCK_PLACEHOLDER, "r", NULL, NULL), TUCK_OK);
    assert_int_equal(tuck_node_rename(g, find(g, "r"), "s"), TUCK_OK);
    assert_text(g, "class f(torch.nn.Module):\n"
                   "    def forward(self, args_list):\n"
                   "        args_iter = iter(args_list)\n"
                   "        q = next(args_iter)\n"
                   "        args_iter_1 = next(args_iter)\n"
                   "        p = next(args_iter)\n"
                   "        s = next(args_iter)\n"
                   "        args_list.clear()\n"
                   "        add = torch.ops.aten.add.Tensor(p, q);  p = q = None\n"
                   "        return (add,)\n");
    assert_sound(g);
    assert_int_equal(tuck_node_erase(g, n), TUCK_OK);
    assert_sound(g);
    tuck_doc_free(doc);
}

/* ---- annotations ---- */

static void test_annotations(void **state)
{
    (void)state;
    static const struct {
        const char *style, *given, *want;
    } cases[] = {
        {": \"f32[4]\"", "f32[8, 4][4, 1]cuda:0", ": \"f32[8, 4]\""},
        {": \"f32[4][1]\"", "f32[8, 4][4, 1]cuda:0", ": \"f32[8, 4][4, 1]\""},
        {": \"f32[4]cpu\"", "f32[8, 4][4, 1]cuda:0", ": \"f32[8, 4]cuda:0\""},
        {": \"f32[4][1]cpu\"", "f32[8, 4][4, 1]cuda:0", ": \"f32[8, 4][4, 1]cuda:0\""},
        {": \"f32[4][1]cpu\"", "f32[8, 4]", ": \"f32[8, 4]\""},
        {": \"f32[4]\"", "f32[][]cuda:0", ": \"f32[]\""},
        {": \"f32[4]\"", "f32[s0 + 1, Max(1, s0)][Max(1, s0), 1]cpu",
         ": \"f32[s0 + 1, Max(1, s0)]\""},
        {": \"f32[4]\"", "DTensor(f32[8, 4][4, 1]cuda:0, S(0)R)",
         ": \"DTensor(f32[8, 4], S(0)R)\""},
        {": \"f32[4]\"", "Sym(s0 + 1)", ": \"Sym(s0 + 1)\""},
        {": f32[4]", "f32[8, 4][4, 1]cuda:0", ": f32[8, 4]"},
        {" : torch.Tensor", "torch.nn.Parameter", " : torch.nn.Parameter"},
        {" : torch.Tensor", "typing.Tuple[int,int]", " : typing.Tuple[int,int]"},
        {"", "f32[8, 4][4, 1]cuda:0", ": \"f32[8, 4][4, 1]cuda:0\""},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char text[512], *s;
        tuck_node n;

        snprintf(text, sizeof(text),
                 "class f(torch.nn.Module):\n"
                 "    def forward(self, x%s):\n"
                 "        neg%s = torch.ops.aten.neg.default(x)\n"
                 "        return (neg, x)\n",
                 cases[i].style, cases[i].style);
        tuck_doc *doc = read_or_die(text);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        assert_int_equal(
            tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, "y", NULL, NULL, cases[i].given, &n),
            TUCK_OK);
        tuck_args *a = tuck_args_new(g);
        tuck_args_node(a, n);
        assert_int_equal(tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", a, "z",
                                        cases[i].given, &n),
                         TUCK_OK);
        tuck_args_free(a);
        s = graph_text(g);
        snprintf(text, sizeof(text), "        z%s = torch.neg(y);", cases[i].want);
        if (strstr(s, text) == NULL)
            fail_msg("%s is not in\n%s", text, s);
        free(s);
        assert_sound(g);
        /* Setting the same again changes nothing. */
        s = graph_text(g);
        assert_int_equal(tuck_node_set_annotation(g, n, tuck_node_annotation(g, n)), TUCK_OK);
        assert_text(g, s);
        static const char *const bad[] = {"f32[4",      "a\"b", "a\nb", "a = b", "a]",
                                          "f32[4]\xff", "a; b", "a, b", "#"};
        for (size_t k = 0; k < sizeof(bad) / sizeof(*bad); k++)
            assert_int_equal(tuck_node_set_annotation(g, n, bad[k]), TUCK_EINVAL);
        assert_text(g, s);
        free(s);
        assert_int_equal(tuck_node_set_annotation(g, n, NULL), TUCK_OK);
        assert_string_equal(tuck_node_annotation(g, n), "");
        assert_int_equal(tuck_node_set_annotation(g, tuck_graph_output(g), "f32[4]"), TUCK_EINVAL);
        tuck_doc_free(doc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),       cmocka_unit_test(test_build),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_words),
        cmocka_unit_test(test_inputs),      cmocka_unit_test(test_flattened),
        cmocka_unit_test(test_annotations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
