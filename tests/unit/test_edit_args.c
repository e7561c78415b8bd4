/* Argument lists: how they are built, what is refused, and how calls are spelled. */
#include "support/edit_test.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_args),
        cmocka_unit_test(test_args_wrong),
        cmocka_unit_test(test_args_text),
        cmocka_unit_test(test_operators),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
