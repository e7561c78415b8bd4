/* Graphs from arrays, and edits as arrays, in the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "tuck_experimental.h"

#define V(kind, number) ((int64_t)(number)*32 + (kind))

/* Texts by number. */
enum { NONE, GRAPH, X, TYPE, REDUCE, WAIT, AR, SUM, GROUP, W1, W2, ADD, OUT, ALPHA, SUMS };
static const char texts[] =
    "\0step\0x\0f32[4][1]cuda:0\0torch.ops._c10d_functional.all_reduce.default\0"
    "torch.ops._c10d_functional.wait_tensor.default\0ar\0sum\0"
    "0\0w1\0w2\0torch.ops.aten.add.Tensor\0output\0alpha\0add";
static const double floats[] = {0.5};

/* ar = all_reduce(x, 'sum', '0'); w1 = wait(ar); w2 = wait(ar); add = w1 + alpha * w2 */
static const int64_t words[] = {
    /* clang-format off */
    1,
    0, GRAPH, 6,
    TUCK_PLACEHOLDER, X, X, TYPE, 0, 0, 0,
    TUCK_CALL_FUNCTION, REDUCE, AR, TYPE, 3, 0, 3,
        V(TUCK_V_NODE, 0), V(TUCK_V_STR, SUM), V(TUCK_V_STR, GROUP),
    TUCK_CALL_FUNCTION, WAIT, W1, TYPE, 1, 0, 1, V(TUCK_V_NODE, 1),
    TUCK_CALL_FUNCTION, WAIT, W2, TYPE, 1, 0, 1, V(TUCK_V_NODE, 1),
    TUCK_CALL_FUNCTION, ADD, SUMS, TYPE, 2, 1, 4,
        V(TUCK_V_NODE, 2), V(TUCK_V_NODE, 3), V(TUCK_V_KEY, ALPHA), V(TUCK_V_FLOAT, 0),
    TUCK_OUTPUT, OUT, OUT, NONE, 1, 0, 3, V(TUCK_V_TUPLE, 2), V(TUCK_V_NODE, 4), V(TUCK_V_NODE, 3),
    /* clang-format on */
};
enum { N_WORDS = sizeof(words) / sizeof(*words) };

static tuck_status take(const int64_t *w, size_t n, tuck_arrays **out)
{
    return tuck_arrays_read(w, n, texts, sizeof(texts), floats, 1, NULL, NULL, out);
}

static void expect_edit(tuck_arrays *a, const int64_t *want, size_t n_want)
{
    size_t n;

    assert_int_equal(tuck_arrays_edit(a), TUCK_OK);
    const int64_t *found = tuck_arrays_words(a, &n);
    assert_int_equal(n, n_want);
    assert_memory_equal(found, want, n * sizeof(*found));
}

static void nothing_changed(void **state)
{
    static const int64_t none[] = {0, 0, 0, 0, 0, 0, 0, 0};
    tuck_arrays *a = NULL;
    tuck_node n;

    (void)state;
    assert_int_equal(take(words, N_WORDS, &a), TUCK_OK);
    tuck_graph *g = tuck_arrays_graph(a);
    assert_int_equal(tuck_graph_size(g), 6);
    assert_string_equal(tuck_graph_group_name(g, 0), "0");
    assert_int_equal(tuck_graph_lint(g, NULL), TUCK_OK);
    n = tuck_graph_find(g, "add");
    assert_true(tuck_value_float(tuck_node_kwarg(g, n, 0)) == 0.5);
    assert_string_equal(tuck_node_annotation(g, tuck_graph_first(g)), "f32[4][1]cuda:0");
    expect_edit(a, none, 8);
    tuck_arrays_free(a);
    tuck_arrays_free(NULL);
}

static void repeated_wait(void **state)
{
    static const int64_t want[] = {
        0, 0,                      /* graph 0, no new nodes */
        2, 4, 2, 2, 2, 5, 2, 4, 2, /* add and output use w1 instead of w2 */
        0, 0, 0, 1, 3,             /* w2 is erased */
        0,                         /* no new nested graphs */
    };
    tuck_pipeline *p = NULL;
    tuck_arrays *a = NULL;

    (void)state;
    assert_int_equal(take(words, N_WORDS, &a), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse("deduplicate_wait_tensors", 24, "p", NULL, NULL, &p),
                     TUCK_OK);
    assert_int_equal(tuck_pipeline_run(p, tuck_arrays_graph(a), NULL, NULL, NULL), TUCK_OK);
    expect_edit(a, want, sizeof(want) / sizeof(*want));
    tuck_pipeline_free(p);
    tuck_arrays_free(a);
}

/* New nodes with every kind of value, another order, other arguments. */
static void edits(void **state)
{
    tuck_arrays *a = NULL;
    tuck_node n, x;
    size_t len;

    (void)state;
    assert_int_equal(take(words, N_WORDS, &a), TUCK_OK);
    tuck_graph *g = tuck_arrays_graph(a);
    x = tuck_graph_first(g);
    tuck_args *args = tuck_args_new(g);
    tuck_args_node(args, x);
    tuck_args_open(args, TUCK_V_LIST);
    tuck_args_int(args, INT64_MIN);
    tuck_args_int(args, -3);
    tuck_args_close(args);
    tuck_args_float(args, 1.5);
    tuck_args_key(args, "dtype");
    tuck_args_text(args, "torch.bfloat16");
    assert_int_equal(tuck_graph_add(g, tuck_after(x), TUCK_CALL_FUNCTION, "torch.ops.my.op.default",
                                    args, "mine", NULL, &n),
                     TUCK_OK);
    tuck_args_clear(args);
    tuck_args_node(args, x);
    assert_int_equal(tuck_node_set_args(g, tuck_graph_next(g, n), args), TUCK_OK);
    tuck_args_free(args);
    static const int64_t want[] = {
        /* clang-format off */
        0,
        1, 6, TUCK_CALL_FUNCTION, 0, 1, 2, 3, 1, 8,
            V(TUCK_V_NODE, 0), V(TUCK_V_LIST, 2), 31, INT64_MIN, V(TUCK_V_INT, -3),
            V(TUCK_V_FLOAT, 0), V(TUCK_V_KEY, 3), V(TUCK_V_DTYPE, 4),
        0,
        1, 1, TUCK_CALL_FUNCTION, 5, 6, 2, 1, 0, 1, V(TUCK_V_NODE, 0),
        0,
        1, 6, 0,
        0,
        0,
        /* clang-format on */
    };
    expect_edit(a, want, sizeof(want) / sizeof(*want));
    assert_true(*tuck_arrays_floats(a, &len) == 1.5);
    assert_int_equal(len, 1);
    const char *t = tuck_arrays_texts(a, &len);
    assert_string_equal(t, "torch.ops.my.op.default");
    assert_int_equal(t[len - 1], '\0');
    tuck_arrays_free(a);
}

/* A nested graph is found by the attribute that holds it. */
static void nested(void **state)
{
    int64_t w[2 * N_WORDS + 16];
    size_t n = 0;
    tuck_arrays *a = NULL;

    (void)state;
    memcpy(w, words, sizeof(words));
    w[0] = 2;
    n = N_WORDS;
    memcpy(w + n, words + 1, sizeof(words) - sizeof(*words));
    w[n + 1] = AR;
    n += N_WORDS - 1;
    assert_int_equal(take(w, n, &a), TUCK_OK);
    assert_int_equal(tuck_graph_child_count(tuck_arrays_graph(a)), 1);
    assert_string_equal(tuck_graph_name(tuck_graph_child(tuck_arrays_graph(a), 0)), "ar");
    static const int64_t none[] = {0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0};
    expect_edit(a, none, 15);
    tuck_arrays_free(a);
}

/* Behind a list of nodes with their calls. */
static const int64_t *behind_calls(const int64_t *w)
{
    int64_t n = *w++;

    while (n-- > 0)
        w += 8 + w[7];
    return w;
}

/* A pass that adds nested graphs: they come last, each with its parent and name. */
static void added(void **state)
{
    static const int64_t step[] = {
        /* clang-format off */
        1,
        0, GRAPH, 5,
        TUCK_PLACEHOLDER, X, X, TYPE, 0, 0, 0,
        TUCK_CALL_FUNCTION, REDUCE, AR, TYPE, 3, 0, 3,
            V(TUCK_V_NODE, 0), V(TUCK_V_STR, SUM), V(TUCK_V_STR, GROUP),
        TUCK_CALL_FUNCTION, ADD, SUMS, TYPE, 2, 0, 2, V(TUCK_V_NODE, 0), V(TUCK_V_NODE, 0),
        TUCK_CALL_FUNCTION, WAIT, W1, TYPE, 1, 0, 1, V(TUCK_V_NODE, 1),
        TUCK_OUTPUT, OUT, OUT, NONE, 1, 0, 3, V(TUCK_V_TUPLE, 2), V(TUCK_V_NODE, 2), V(TUCK_V_NODE, 3),
        /* clang-format on */
    };
    tuck_pipeline *p = NULL;
    tuck_arrays *a = NULL;
    size_t n;

    (void)state;
    assert_int_equal(take(step, sizeof(step) / sizeof(*step), &a), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse("insert_control_deps", 19, "p", NULL, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_pipeline_run(p, tuck_arrays_graph(a), NULL, NULL, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_child_count(tuck_arrays_graph(a)), 2);
    assert_int_equal(tuck_arrays_edit(a), TUCK_OK);
    const int64_t *w = tuck_arrays_words(a, &n), *end = w + n;
    assert_int_equal(w[1], 2); /* the nodes that read them */
    w = behind_calls(w + 1);
    assert_int_equal(*w++, 0);
    assert_int_equal(*w, 2); /* add and wait are called through control_deps */
    w = behind_calls(w);
    w += 1 + *w;     /* types */
    w += 1 + 2 * *w; /* moves */
    w += 1 + *w;     /* erased */
    assert_int_equal(*w++, 2);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(*w, 0); /* both belong to the graph itself */
        assert_int_equal(w[2], 3);
        w = behind_calls(w + 2);
    }
    assert_ptr_equal(w, end);
    tuck_pipeline_free(p);
    tuck_arrays_free(a);
}

/* Any words are a graph or an error. */
static void wrong_arrays(void **state)
{
    static const int64_t odd[] = {-1,
                                  0,
                                  1,
                                  2,
                                  5,
                                  14,
                                  99,
                                  31,
                                  INT64_MIN,
                                  INT64_MAX,
                                  V(TUCK_V_NODE, 5),
                                  V(TUCK_V_LIST, 1),
                                  V(TUCK_V_DICT, 1),
                                  V(TUCK_V_SLICE, 1),
                                  V(TUCK_V_CALL, 0),
                                  V(TUCK_V_KEY, 0),
                                  V(TUCK_V_FLOAT, 7)};
    int64_t w[N_WORDS + 1];
    tuck_arrays *a = NULL;

    (void)state;
    memcpy(w, words, sizeof(words));
    w[N_WORDS] = 0;
    assert_int_equal(take(w, N_WORDS + 1, &a), TUCK_EINVAL);
    for (size_t n = 0; n < N_WORDS; n++)
        assert_int_equal(take(w, n, &a), TUCK_EINVAL);
    for (size_t i = 0; i < N_WORDS; i++)
        for (size_t k = 0; k < sizeof(odd) / sizeof(*odd); k++) {
            w[i] = odd[k];
            if (take(w, N_WORDS, &a) == TUCK_OK) {
                assert_int_equal(tuck_arrays_edit(a), TUCK_OK);
                tuck_arrays_free(a);
            }
            w[i] = words[i];
        }
    assert_int_equal(tuck_arrays_read(w, N_WORDS, texts, 5, floats, 1, NULL, NULL, &a),
                     TUCK_EINVAL);
    assert_int_equal(tuck_arrays_read(NULL, 0, texts, 1, NULL, 0, NULL, NULL, &a), TUCK_EINVAL);
    assert_int_equal(tuck_arrays_read(w, N_WORDS, texts, sizeof(texts), NULL, 0, NULL, NULL, &a),
                     TUCK_EINVAL);
    assert_int_equal(tuck_arrays_edit(NULL), TUCK_EINVAL);
}

/* With request 1, 2, … refused: TUCK_ENOMEM exactly then, and nothing leaks. */
static void no_memory(void **state)
{
    tuck_status st = TUCK_ENOMEM;

    (void)state;
    for (size_t i = 1; st == TUCK_ENOMEM; i++) {
        struct faulty f = {.fail_at = i};
        tuck_allocator alloc = faulty_allocator(&f);
        tuck_arrays *a = NULL;

        st = tuck_arrays_read(words, N_WORDS, texts, sizeof(texts), floats, 1, &alloc, NULL, &a);
        if (st == TUCK_OK)
            st = tuck_arrays_edit(a);
        assert_int_equal(st, f.failed ? TUCK_ENOMEM : TUCK_OK);
        tuck_arrays_free(a);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_changed), cmocka_unit_test(repeated_wait),
        cmocka_unit_test(edits),           cmocka_unit_test(nested),
        cmocka_unit_test(added),           cmocka_unit_test(wrong_arrays),
        cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
