/* Building and editing graphs through the public interface: what comes out as text, what is
 * refused, and that a refusal leaves no trace. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

/* ---- helpers ---- */

static const tuck_node none = {0};

static void assert_text(const tuck_graph *g, const char *want)
{
    char *s = graph_text(g);

    assert_string_equal(s, want);
    free(s);
}

/* Users are correct, lint finds no errors, and the text can be read again. Whether a move changes
 * which write is read is not checked here, but in tests of storages. */
static void assert_sound(const tuck_graph *g)
{
    char *why = check_users(g);

    if (why != NULL)
        fail_msg("%s", why);
    tuck_diags *d = tuck_diags_new(NULL);
    assert_int_not_equal(tuck_graph_lint(g, d), TUCK_ENOMEM);
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (tuck_diags_at(d, i)->severity == TUCK_ERROR &&
            strstr(tuck_diags_at(d, i)->message, "writes the same storage") == NULL)
            fail_msg("%s", diags_text(d));
    tuck_diags_free(d);
    why = check_fixpoint(g);
    if (why != NULL)
        fail_msg("%s", why);
}

static tuck_graph *fresh(void)
{
    tuck_graph *g = NULL;

    assert_int_equal(tuck_graph_new(NULL, NULL, &g), TUCK_OK);
    return g;
}

/* Arguments from texts, "key=" before the value of a keyword; the last is NULL. */
static tuck_args *args_of(tuck_graph *g, const char *first, va_list ap)
{
    tuck_args *a = tuck_args_new(g);

    assert_non_null(a);
    for (const char *s = first; s != NULL; s = va_arg(ap, const char *)) {
        size_t n = strlen(s);
        if (n > 1 && s[n - 1] == '=') {
            char key[32] = {0};
            memcpy(key, s, n - 1);
            tuck_args_key(a, key);
        } else {
            tuck_args_text(a, s);
        }
    }
    return a;
}

static tuck_status try_at(tuck_graph *g, tuck_where where, tuck_kind kind, const char *target,
                          tuck_node *out, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    tuck_status st = tuck_graph_add(g, where, kind, target, a, NULL, NULL, out);
    tuck_args_free(a);
    return st;
}

static tuck_node call(tuck_graph *g, const char *target, const char *first, ...)
{
    va_list ap;
    tuck_node n;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, target, a, NULL, NULL, &n), TUCK_OK);
    tuck_args_free(a);
    return n;
}

static tuck_node input(tuck_graph *g, const char *target, const char *annotation)
{
    tuck_node n;

    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, target, NULL, NULL, annotation, &n),
        TUCK_OK);
    return n;
}

static tuck_node output(tuck_graph *g, const char *value)
{
    tuck_node n;

    assert_int_equal(try_at(g, tuck_at_end(), TUCK_OUTPUT, NULL, &n, value, NULL), TUCK_OK);
    return n;
}

static tuck_status set_args(tuck_graph *g, tuck_node n, const char *first, ...)
{
    va_list ap;

    va_start(ap, first);
    tuck_args *a = args_of(g, first, ap);
    va_end(ap);
    tuck_status st = tuck_node_set_args(g, n, a);
    tuck_args_free(a);
    return st;
}

static tuck_node find(tuck_graph *g, const char *name)
{
    tuck_node n = tuck_graph_find(g, name);

    if (tuck_is_none(n))
        fail_msg("there is no %s", name);
    return n;
}

/* x, y -> add -> (add,) */
static tuck_graph *small(void)
{
    tuck_graph *g = fresh();

    input(g, "x", "f32[4][1]cpu");
    input(g, "y", "f32[4][1]cpu");
    call(g, "torch.ops.aten.add.Tensor", "x", "y", NULL);
    output(g, "(add_tensor,)");
    return g;
}

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

/* ---- arguments ---- */

static void test_args(void **state)
{
    (void)state;
    tuck_graph *g = small();
    tuck_args *a = tuck_args_new(g);
    tuck_node x = find(g, "x"), n;

    tuck_args_node(a, x);
    tuck_args_int(a, INT64_MIN);
    tuck_args_float(a, 1e-5);
    tuck_args_float(a, -0.0);
    tuck_args_bool(a, true);
    tuck_args_none(a);
    tuck_args_str(a, "it's \"x\"\n");
    tuck_args_open(a, TUCK_V_LIST);
    tuck_args_open(a, TUCK_V_TUPLE);
    tuck_args_node(a, x);
    tuck_args_close(a);
    tuck_args_open(a, TUCK_V_DICT);
    tuck_args_str(a, "k");
    tuck_args_node(a, x);
    tuck_args_close(a);
    tuck_args_open(a, TUCK_V_SLICE);
    tuck_args_none(a);
    tuck_args_int(a, 2);
    tuck_args_none(a);
    tuck_args_close(a);
    tuck_args_open(a, TUCK_V_SET);
    tuck_args_int(a, 1);
    tuck_args_close(a);
    tuck_args_close(a);
    tuck_args_open(a, TUCK_V_SIZE);
    tuck_args_int(a, 3);
    tuck_args_close(a);
    tuck_args_key(a, "p");
    tuck_args_text(a, "[x, 2*s0, torch.float32]");
    tuck_args_key(a, "q");
    tuck_args_open(a, TUCK_V_TUPLE);
    tuck_args_close(a);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.ops.my.op", a, NULL, NULL, &n),
        TUCK_OK);
    char *s = graph_text(g);
    assert_non_null(strstr(
        s,
        "op = torch.ops.my.op(x, -9223372036854775808, 1e-05, -0.0, True, None, 'it\\'s \"x\"\\n', "
        "[(x,), {'k': x}, slice(None, 2, None), {1}], torch.Size([3]), p = [x, 2*s0, "
        "torch.float32], q = ());  x = op = None\n"));
    free(s);
    assert_int_equal(tuck_node_arg_count(g, n), 9);
    assert_int_equal(tuck_node_kwarg_count(g, n), 2);
    assert_string_equal(tuck_node_kwarg_name(g, n, 0), "p");
    assert_string_equal(tuck_node_kwarg_name(g, n, 1), "q");
    assert_string_equal(tuck_node_kwarg_name(g, n, 2), "");
    assert_null(tuck_node_kwarg(g, n, 2));
    assert_null(tuck_node_arg(g, n, 9));
    assert_int_equal(tuck_node_use_count(g, x), 5);

    /* A copy of another node's values. */
    tuck_args_clear(a);
    for (size_t i = 0; i < tuck_node_arg_count(g, n); i++)
        tuck_args_value(a, tuck_node_arg(g, n, i));
    tuck_args_key(a, "p");
    tuck_args_value(a, tuck_node_kwarg(g, n, 0));
    tuck_node m;
    assert_int_equal(
        tuck_graph_add(g, tuck_after(n), TUCK_CALL_FUNCTION, "torch.ops.my.op", a, NULL, NULL, &m),
        TUCK_OK);
    assert_int_equal(tuck_node_use_count(g, x), 9);
    assert_int_equal(tuck_value_kind_of(tuck_node_kwarg(g, m, 0)), TUCK_V_LIST);
    assert_int_equal(tuck_value_len(tuck_node_kwarg(g, m, 0)), 3);
    tuck_args_free(a);
    tuck_args_free(NULL);
    assert_sound(g);
    tuck_graph_free(g);
}

/* Each of these makes a list that cannot be used. */
static void test_args_wrong(void **state)
{
    (void)state;
    tuck_graph *g = small(), *other = small();
    tuck_node x = find(g, "x");
    char *before = graph_text(g);

    for (int k = 0; k < 26; k++) {
        tuck_args *a = tuck_args_new(g);
        tuck_graph *in = g;
        switch (k) {
        case 0: tuck_args_node(a, none); break;
        case 1: tuck_args_node(a, (tuck_node){tuck_graph_id_end(g)}); break;
        case 2: tuck_args_node(a, tuck_graph_output(g)); break;
        case 3: tuck_args_close(a); break;
        case 4: tuck_args_open(a, TUCK_V_LIST); break;
        case 5: tuck_args_open(a, TUCK_V_INT); break;
        case 6: tuck_args_open(a, TUCK_V_CALL); break;
        case 7: tuck_args_open(a, TUCK_V_RAW); break;
        case 8: tuck_args_key(a, "k"); break;
        case 9:
            tuck_args_key(a, "k");
            tuck_args_key(a, "l");
            tuck_args_none(a);
            break;
        case 10:
            tuck_args_key(a, "k");
            tuck_args_none(a);
            tuck_args_none(a);
            break;
        case 11:
            tuck_args_key(a, "k");
            tuck_args_none(a);
            tuck_args_key(a, "k");
            tuck_args_none(a);
            break;
        case 12: tuck_args_key(a, "no key"); break;
        case 13: tuck_args_key(a, NULL); break;
        case 14:
            tuck_args_open(a, TUCK_V_LIST);
            tuck_args_key(a, "k");
            tuck_args_none(a);
            tuck_args_close(a);
            break;
        case 15:
            tuck_args_open(a, TUCK_V_SLICE);
            tuck_args_none(a);
            tuck_args_close(a);
            break;
        case 16:
            tuck_args_open(a, TUCK_V_DICT);
            tuck_args_none(a);
            tuck_args_close(a);
            break;
        case 17:
            tuck_args_open(a, TUCK_V_SET);
            tuck_args_close(a);
            break;
        case 18: tuck_args_str(a, NULL); break;
        case 19: tuck_args_value(a, NULL); break;
        case 20: tuck_args_text(a, "nobody"); break;
        case 21: tuck_args_text(a, "1, 2"); break;
        case 22: tuck_args_text(a, "[1"); break;
        case 23: tuck_args_text(a, ""); break;
        case 24: tuck_args_text(a, "'\xff'"); break;
        case 25: /* of another graph */
            tuck_args_node(a, x);
            in = other;
            break;
        }
        assert_int_equal(
            tuck_graph_add(in, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", a, NULL, NULL, NULL),
            TUCK_EINVAL);
        assert_int_equal(tuck_node_set_args(in, find(in, "add_tensor"), a), TUCK_EINVAL);
        /* After clearing, it can be used again. */
        tuck_args_clear(a);
        tuck_args_node(a, x);
        if (in == g)
            assert_int_equal(tuck_node_set_target(g, x, "x"), TUCK_OK);
        tuck_args_free(a);
    }
    tuck_args *a = tuck_args_new(g);
    tuck_args_text(a, "nobody");
    tuck_args_clear(a);
    tuck_args_text(a, "x");
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", a, NULL, NULL, &x),
        TUCK_OK);
    /* Erased between building the list and using it. */
    tuck_args_clear(a);
    tuck_args_node(a, x);
    assert_int_equal(tuck_node_erase(g, x), TUCK_OK);
    assert_int_equal(
        tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION, "torch.neg", a, NULL, NULL, NULL),
        TUCK_EINVAL);
    assert_text(g, before);
    free(before);
    assert_null(tuck_args_new(NULL));
    tuck_graph_free(g);
    tuck_args_free(a); /* may be freed after its graph */
    tuck_graph_free(other);
}

/* Operands as text come out as they went in. */
static void test_args_text(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "None",
        "True",
        "-1",
        "9223372036854775807",
        "18446744073709551616",
        "0.1",
        "1e-05",
        "inf",
        "-inf",
        "nan",
        "'s'",
        "\"it's\"",
        "b'ab'",
        "(1+2j)",
        "torch.bfloat16",
        "torch.strided",
        "torch.channels_last",
        "device(type='cuda', index=0)",
        "Ellipsis",
        "C.RED",
        "torch.ops.aten.mm.default",
        "2*s0 + 1",
        "s0",
        "x",
        "[x, [y, (x,)], {}]",
        "()",
        "{'a': x, 'b': [1]}",
        "{1, 2}",
        "slice(None, x, 2)",
        "torch.Size([2, s0])",
        "torch.distributed.tensor.placement_types.Shard(dim=0)",
        "<RedOpType.SUM: 0>",
        "x + 1",
        "[[[[[[[[[[[[x]]]]]]]]]]]]",
    };
    tuck_graph *g = small();

    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        tuck_node n = call(g, "torch.ops.my.op", texts[i], NULL);
        char want[256], *s = graph_text(g);

        snprintf(want, sizeof(want), " = torch.ops.my.op(%s);  ", texts[i]);
        if (strstr(s, want) == NULL)
            fail_msg("%s is not in\n%s", want, s);
        free(s);
        assert_sound(g);
        assert_int_equal(tuck_node_erase(g, n), TUCK_OK);
    }
    tuck_graph_free(g);
}

/* ---- spelling ---- */

static void test_operators(void **state)
{
    (void)state;
    static const struct {
        const char *target, *a, *b, *c, *want;
    } calls[] = {
        {"operator.add", "x", "y", NULL, "add = x + y"},
        {"_operator.add", "1", "y", NULL, "add = 1 + y"},
        {"operator.add", "x", NULL, NULL, "add = operator.add(x)"},
        {"operator.add", "x", "2*s0", NULL, "add = operator.add(x, 2*s0)"},
        {"operator.add", "x", "s0", NULL, "add = x + s0"},
        {"operator.add", "x", "y * 2", NULL, "add = operator.add(x, y * 2)"},
        {"operator.eq", "device(type='cpu')", "x", NULL, "eq = operator.eq(device(type='cpu'), x)"},
        {"operator.eq", "x", "device(type='cpu')", NULL, "eq = x == device(type='cpu')"},
        {"operator.mul", "x", "-1", NULL, "mul = x * -1"},
        {"operator.neg", "x", NULL, NULL, "neg = -x"},
        {"operator.neg", "1", NULL, NULL, "neg = operator.neg(1)"},
        {"operator.invert", "x", NULL, NULL, "invert = ~x"},
        {"operator.getitem", "x", "0", NULL, "getitem = x[0]"},
        {"operator.getitem", "x", "(slice(None, None, None), y)", NULL,
         "getitem = x[(slice(None, None, None), y)]"},
        {"operator.getitem", "[x, y]", "0", NULL, "getitem = operator.getitem([x, y], 0)"},
        {"operator.setitem", "x", "0", "y", "x[0] = y;  setitem = x"},
        {"operator.iadd", "x", "y", NULL, "x += y;  iadd = x"},
        {"operator.iadd", "1", "y", NULL, "iadd = operator.iadd(1, y)"},
        {"getattr", "x", "'shape'", NULL, "getattr_1 = x.shape"},
        {"getattr", "x", "'a b'", NULL, "getattr_1 = getattr(x, 'a b')"},
        {"getattr", "x", "'shape'", "None", "getattr_1 = getattr(x, 'shape', None)"},
        {"_operator_not_", "x", NULL, NULL, "not_ = _operator_not_(x)"},
        {"torch.ops.aten.add.Tensor", "x", "y", NULL,
         "add_tensor_1 = torch.ops.aten.add.Tensor(x, y)"},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        tuck_graph *g = small();
        tuck_node n = call(g, calls[i].target, calls[i].a, calls[i].b, calls[i].c, NULL);
        char want[256], *s = graph_text(g);

        snprintf(want, sizeof(want), "\n        %s;  ", calls[i].want);
        if (strstr(s, want) == NULL)
            fail_msg("%s is not in\n%s", want, s);
        free(s);
        assert_sound(g);
        /* The spelling follows the arguments and the target. */
        assert_int_equal(set_args(g, n, "x", "k=", "y", NULL), TUCK_OK);
        assert_sound(g);
        assert_int_equal(set_args(g, n, "x", "y", NULL), TUCK_OK);
        assert_int_equal(tuck_node_set_target(g, n, "operator.sub"), TUCK_OK);
        s = graph_text(g);
        assert_non_null(strstr(s, " = x - y;  "));
        free(s);
        assert_sound(g);
        tuck_graph_free(g);
    }
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
        cmocka_unit_test(test_empty),          cmocka_unit_test(test_build),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_words),
        cmocka_unit_test(test_args),           cmocka_unit_test(test_args_wrong),
        cmocka_unit_test(test_args_text),      cmocka_unit_test(test_operators),
        cmocka_unit_test(test_inputs),         cmocka_unit_test(test_flattened),
        cmocka_unit_test(test_annotations),    cmocka_unit_test(test_change),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_opaque),
        cmocka_unit_test(test_nested_names),   cmocka_unit_test(test_output),
        cmocka_unit_test(test_output_missing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
