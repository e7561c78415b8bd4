/* Random edits on graphs that PyTorch printed and on new ones. After each edit: users agree with
 * the arguments, lint finds nothing that only a bug of ours could cause, a refused edit left no
 * trace, and the text is a fixpoint of printing and reading.
 *
 * TUCK_SEED=n repeats a run; TUCK_SOAK=1 makes it ten times as long.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

#define COUNT(a) ((uint32_t)(sizeof(a) / sizeof(*(a))))

struct run {
    struct rng rng;
    tuck_graph *root; /* edits apply to it or to a graph nested in it */
    tuck_graph *g;
    char did[256]; /* the last edit, for the message */
    size_t n_done, n_refused;
};

static bool one_in(struct run *x, uint32_t n)
{
    return rng_below(&x->rng, n) == 0;
}

#define PICK(x, a) ((a)[rng_below(&(x)->rng, COUNT(a))])

static void did(struct run *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void did(struct run *x, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(x->did, sizeof(x->did), fmt, ap);
    va_end(ap);
}

/* ---- picking ---- */

static tuck_node nth(const tuck_graph *g, size_t i)
{
    tuck_node n = tuck_graph_first(g);

    while (i-- > 0 && !tuck_is_none(n))
        n = tuck_graph_next(g, n);
    return n;
}

static size_t place_of(const tuck_graph *g, tuck_node n)
{
    size_t i = 0;

    for (tuck_node k = tuck_graph_first(g); !tuck_is_none(k) && k.id != n.id; i++)
        k = tuck_graph_next(g, k);
    return i;
}

static tuck_node any_node(struct run *x)
{
    return nth(x->g, rng_below(&x->rng, (uint32_t)tuck_graph_size(x->g)));
}

/* Something that a node at that position can use; none if nothing comes before it. */
static tuck_node any_before(struct run *x, size_t place)
{
    for (int i = 0; i < 8 && place > 0; i++) {
        tuck_node n = nth(x->g, rng_below(&x->rng, (uint32_t)place));
        if (tuck_node_kind(x->g, n) != TUCK_OUTPUT && *tuck_node_name(x->g, n) != '\0')
            return n;
    }
    return (tuck_node){0};
}

static tuck_graph *any_graph(struct run *x)
{
    tuck_graph *g = x->root;

    while (tuck_graph_child_count(g) > 0 && one_in(x, 3))
        g = tuck_graph_child(g, rng_below(&x->rng, (uint32_t)tuck_graph_child_count(g)));
    return g;
}

/* ---- arguments ---- */

static void add_atom(struct run *x, tuck_args *a, size_t place)
{
    static const int64_t ints[] = {0, 1, -1, 7, 1000000, INT64_MAX, INT64_MIN};
    static const double floats[] = {0.0,    -0.0, 0.5,  -1.5,     1e-5, 1e16,     1.0 / 3,
                                    5e-324, -3e8, 1e22, INFINITY, NAN,  -INFINITY};
    static const char *const strings[] = {
        "",         "sum", "it's",         "\"",   "\\",   "a\nb", "\xc3\xa4", "0", "# x",
        "a; b = 1", "%s",  "\xe2\x80\xa8", "\t\r", "'\"'", "{}",   "None",     "-1"};
    static const char *const texts[] = {"torch.bfloat16",
                                        "torch.strided",
                                        "torch.channels_last",
                                        "device(type='cuda', index=0)",
                                        "device(type='cpu')",
                                        "s0",
                                        "2*s0 + 1",
                                        "(s0//2)",
                                        "Max(1, s0)",
                                        "Ellipsis",
                                        "inf",
                                        "(1+2j)",
                                        "1j",
                                        "b'ab'",
                                        "18446744073709551616",
                                        "torch.ops.aten.mm.default",
                                        "<RedOpType.SUM: 0>",
                                        "C.RED",
                                        "range(0, 3)",
                                        "some.Name(1, k=[2])",
                                        "slice(None, None, None)"};
    tuck_node n = any_before(x, place);
    bool shadowed = tuck_graph_find(x->g, "s0").id || tuck_graph_find(x->g, "C").id ||
                    tuck_graph_find(x->g, "some").id || tuck_graph_find(x->g, "range").id;

    switch (rng_below(&x->rng, tuck_is_none(n) ? 6 : 14)) {
    case 0: tuck_args_none(a); break;
    case 1: tuck_args_bool(a, one_in(x, 2)); break;
    case 2: tuck_args_int(a, PICK(x, ints)); break;
    case 3: tuck_args_float(a, PICK(x, floats)); break;
    case 4: tuck_args_str(a, PICK(x, strings)); break;
    case 5:
        if (!shadowed) /* otherwise the text means a node, which may come later */
            tuck_args_text(a, PICK(x, texts));
        else
            tuck_args_none(a);
        break;
    default: tuck_args_node(a, n); break;
    }
}

static void add_value(struct run *x, tuck_args *a, size_t place, int depth)
{
    static const tuck_value_kind kinds[] = {TUCK_V_LIST, TUCK_V_LIST, TUCK_V_TUPLE, TUCK_V_TUPLE,
                                            TUCK_V_DICT, TUCK_V_SET,  TUCK_V_SLICE, TUCK_V_SIZE};

    if (depth == 0 || !one_in(x, 3)) {
        add_atom(x, a, place);
        return;
    }
    tuck_value_kind kind = PICK(x, kinds);
    uint32_t n = kind == TUCK_V_SLICE ? 3 : rng_below(&x->rng, 4);
    n += kind == TUCK_V_SET;
    tuck_args_open(a, kind);
    for (uint32_t i = 0; i < n; i++) {
        if (kind == TUCK_V_DICT)
            tuck_args_str(a, i % 2 ? "key" : "k");
        add_value(x, a, place, depth - 1);
    }
    tuck_args_close(a);
}

static tuck_args *random_args(struct run *x, size_t place, uint32_t n_args, uint32_t n_kwargs)
{
    static const char *const keys[] = {"dim", "out", "memory_format", "k", "self_"};
    tuck_args *a = tuck_args_new(x->g);

    for (uint32_t i = 0; i < n_args; i++)
        add_value(x, a, place, 3);
    for (uint32_t i = 0; i < n_kwargs; i++) {
        tuck_args_key(a, keys[i % COUNT(keys)]);
        add_value(x, a, place, 2);
    }
    return a;
}

/* ---- edits: each returns the library's status ---- */

static const char *const functions[] = {
    "torch.ops.aten.mm.default",
    "torch.ops.aten.add.Tensor",
    "torch.ops.aten.copy_.default",
    "torch.ops.aten.rand.default",
    "torch.ops._c10d_functional.all_reduce.default",
    "torch.ops._c10d_functional.all_reduce_.default",
    "torch.ops._c10d_functional.wait_tensor.default",
    "torch.ops.my.unknown.default",
    "torch.nn.functional.relu",
    "some_helper",
    "max",
    "getattr",
    "operator.add",
    "operator.neg",
    "operator.getitem",
    "operator.setitem",
    "operator.iadd",
    "operator.eq",
    "operator.pow",
    "_operator_not_",
};

static const char *const wishes[] = {
    NULL,   NULL,   NULL,   "x",   "add",         "add_1",     "max",   "self",      "output",
    "",     "9",    "a b",  "s0",  "some_helper", "C",         "None",  "k",         "torch",
    "x_03", "l_x_", "L_x_", "_rf", "args_list",   "args_iter", "range", "primals_1", "getitem",
};

static const char *const annotations[] = {
    NULL,    NULL,          "f32[4]",       "bf16[8, 4][4, 1]cuda:0",    "f32[][]cpu",
    "f32[]", "Sym(s0 + 1)", "torch.Tensor", "i64[s0, 2*s0][2*s0, 1]cpu",
};

static tuck_where any_where(struct run *x, size_t *place)
{
    if (one_in(x, 4)) {
        *place = tuck_graph_size(x->g) - !tuck_is_none(tuck_graph_output(x->g));
        return tuck_at_end();
    }
    tuck_node n = any_node(x);
    bool after = one_in(x, 2);
    *place = place_of(x->g, n) + after;
    return (tuck_where){n, after};
}

static tuck_status edit_add(struct run *x)
{
    static const char *const methods[] = {"size", "add_", "__add__", "view", "m"};
    static const char *const paths[] = {"w", "layers.0.weight", "a b.c", "0", "W"};
    static const char *const params[] = {"new_input", "L_new_", "*args", "**kwargs", "input", NULL};
    size_t place;
    tuck_where where = any_where(x, &place);
    const char *wish = PICK(x, wishes), *annotation = PICK(x, annotations), *target;
    tuck_kind kind = TUCK_CALL_FUNCTION;
    uint32_t n_args = rng_below(&x->rng, 4), n_kwargs = one_in(x, 3) ? rng_below(&x->rng, 3) : 0;

    switch (rng_below(&x->rng, 10)) {
    case 0:
        kind = TUCK_PLACEHOLDER;
        target = PICK(x, params);
        n_args = n_kwargs = 0;
        break;
    case 1:
        kind = TUCK_GET_ATTR;
        target = PICK(x, paths);
        n_args = n_kwargs = 0;
        break;
    case 2:
        kind = TUCK_CALL_METHOD;
        target = PICK(x, methods);
        break;
    case 3:
        kind = TUCK_CALL_MODULE;
        target = PICK(x, paths);
        break;
    default: target = PICK(x, functions); break;
    }
    did(x, "add %s as %s", target ? target : "(none)", wish ? wish : "(none)");
    tuck_args *a = random_args(x, place, n_args, n_kwargs);
    tuck_node n;
    tuck_status st = tuck_graph_add(x->g, where, kind, target, a, wish, annotation, &n);
    tuck_args_free(a);
    return st;
}

static tuck_status edit_args(struct run *x)
{
    tuck_node n = any_node(x);
    size_t place = place_of(x->g, n);
    uint32_t n_args = tuck_node_kind(x->g, n) == TUCK_OUTPUT ? 1 : rng_below(&x->rng, 4);
    tuck_args *a;

    did(x, "set the arguments of %s", tuck_node_name(x->g, n));
    if (one_in(x, 3)) { /* those of a node before it */
        tuck_node m = nth(x->g, rng_below(&x->rng, (uint32_t)place + 1));
        a = tuck_args_new(x->g);
        for (size_t i = 0; i < tuck_node_arg_count(x->g, m); i++)
            tuck_args_value(a, tuck_node_arg(x->g, m, i));
        for (size_t i = 0; i < tuck_node_kwarg_count(x->g, m); i++) {
            tuck_args_key(a, tuck_node_kwarg_name(x->g, m, i));
            tuck_args_value(a, tuck_node_kwarg(x->g, m, i));
        }
    } else {
        a = random_args(x, place, n_args, n_args > 1 && one_in(x, 3));
    }
    tuck_status st = tuck_node_set_args(x->g, n, a);
    tuck_args_free(a);
    return st;
}

static tuck_status edit_target(struct run *x)
{
    tuck_node n = any_node(x);
    const char *target = one_in(x, 4) ? "target.path" : PICK(x, functions);

    did(x, "set the target of %s to %s", tuck_node_name(x->g, n), target);
    return tuck_node_set_target(x->g, n, target);
}

static tuck_status edit_name(struct run *x)
{
    tuck_node n = any_node(x), m = any_node(x);
    const char *wish = PICK(x, wishes);

    if (wish == NULL || one_in(x, 3))
        wish = tuck_node_name(x->g, m);
    did(x, "rename %s to %s", tuck_node_name(x->g, n), wish);
    return tuck_node_rename(x->g, n, wish);
}

static tuck_status edit_annotation(struct run *x)
{
    tuck_node n = any_node(x);
    const char *annotation = PICK(x, annotations);

    did(x, "annotate %s with %s", tuck_node_name(x->g, n), annotation ? annotation : "(none)");
    return tuck_node_set_annotation(x->g, n, annotation);
}

/* Moves a node anywhere and then sorts: a graph without cycles stays so. */
static tuck_status edit_move(struct run *x)
{
    tuck_node n = any_node(x);
    size_t place;
    tuck_where where = any_where(x, &place);

    did(x, "move %s to place %zu", tuck_node_name(x->g, n), place);
    tuck_status st = tuck_node_move(x->g, n, where);
    if (st == TUCK_OK && tuck_graph_sort(x->g, NULL) != TUCK_OK)
        fail_msg("%s: cannot be sorted", x->did);
    return st;
}

static tuck_status edit_erase(struct run *x)
{
    tuck_node n = any_node(x);

    if (tuck_node_kind(x->g, n) == TUCK_OUTPUT)
        return TUCK_EINVAL; /* without a return there is no text to read */
    did(x, "erase %s", tuck_node_name(x->g, n));
    return tuck_node_erase(x->g, n);
}

static tuck_status edit_replace(struct run *x)
{
    tuck_node old = any_node(x), with = any_before(x, place_of(x->g, old));
    tuck_node except = one_in(x, 2) ? any_node(x) : (tuck_node){0};

    if (tuck_is_none(with))
        return TUCK_EINVAL;
    did(x, "replace %s by %s", tuck_node_name(x->g, old), tuck_node_name(x->g, with));
    return tuck_node_replace_uses(x->g, old, with, except);
}

static tuck_status edit_dead(struct run *x)
{
    size_t removed, before = tuck_graph_size(x->g);

    did(x, "remove dead code");
    tuck_status st = tuck_graph_remove_dead(x->g, &removed);
    if (st == TUCK_OK && tuck_graph_size(x->g) + removed < before)
        fail_msg("%s: more is gone than was counted", x->did);
    size_t again = 99;
    assert_int_equal(tuck_graph_remove_dead(x->g, &again), TUCK_OK);
    assert_int_equal(again, 0);
    return st;
}

static tuck_status edit_sort(struct run *x)
{
    char *before = graph_text(x->g);

    did(x, "sort");
    tuck_status st = tuck_graph_sort(x->g, NULL);
    char *after = graph_text(x->g);
    if (strcmp(before, after) != 0)
        fail_msg("sorting what is sorted changed it\n%s\n---\n%s", before, after);
    free(before);
    free(after);
    return st;
}

static const struct {
    tuck_status (*run)(struct run *x);
    uint32_t weight;
} edits[] = {
    {edit_add, 8},  {edit_args, 4},  {edit_target, 2},  {edit_name, 4}, {edit_annotation, 2},
    {edit_move, 4}, {edit_erase, 5}, {edit_replace, 4}, {edit_dead, 1}, {edit_sort, 1},
};

/* ---- checks ---- */

/* Random edits cause reads without a wait and across a write; everything else is a bug. */
static void check_lint(struct run *x)
{
    tuck_diags *d = tuck_diags_new(NULL);

    assert_int_not_equal(tuck_graph_lint(x->root, d), TUCK_ENOMEM);
    for (size_t i = 0; i < tuck_diags_count(d); i++) {
        const tuck_diag *m = tuck_diags_at(d, i);
        if (m->severity == TUCK_ERROR && strstr(m->message, " reads ") == NULL &&
            strstr(m->message, "writes the same storage") == NULL)
            fail_msg("after %s: %s\n%s", x->did, m->message, graph_text(x->root));
    }
    tuck_diags_free(d);
}

static void step(struct run *x)
{
    uint32_t total = 0, k = 0;
    char *why, *before = graph_text(x->root);

    x->g = any_graph(x);
    for (uint32_t i = 0; i < COUNT(edits); i++)
        total += edits[i].weight;
    uint32_t at = rng_below(&x->rng, total);
    while (at >= edits[k].weight)
        at -= edits[k++].weight;
    did(x, "(nothing)");
    tuck_status st = tuck_graph_size(x->g) > 0 ? edits[k].run(x) : TUCK_EINVAL;
    if (st != TUCK_OK) {
        char *after = graph_text(x->root);
        if (st != TUCK_EINVAL)
            fail_msg("%s: %s", x->did, tuck_status_text(st));
        if (strcmp(before, after) != 0)
            fail_msg("%s: refused, and yet\n%s\n---\n%s", x->did, before, after);
        free(after);
    }
    free(before);
    x->n_done += st == TUCK_OK;
    x->n_refused += st != TUCK_OK;
    why = check_users(x->g);
    if (why != NULL)
        fail_msg("after %s: %s", x->did, why);
    check_lint(x);
    why = check_fixpoint(x->root);
    if (why != NULL)
        fail_msg("after %s: %s", x->did, why);
}

/* The copy has the same text, and replaces its original for further edits. */
static void swap_for_copy(struct run *x, tuck_graph **owned)
{
    tuck_graph *copy;
    char *one = graph_text(x->root), *two;

    assert_int_equal(tuck_graph_copy(x->root, &copy), TUCK_OK);
    two = graph_text(copy);
    assert_string_equal(one, two);
    free(one);
    free(two);
    tuck_graph_free(*owned);
    x->root = *owned = copy;
}

static void edit_for_a_while(struct run *x, tuck_graph *g, size_t n)
{
    tuck_graph *owned = NULL;

    x->root = g;
    for (size_t i = 0; i < n; i++) {
        step(x);
        if (one_in(x, 50))
            swap_for_copy(x, &owned);
    }
    tuck_graph_free(owned);
}

/* Some edits must have succeeded. */
static void summary(const struct run *x)
{
    printf("# %zu edits, %zu refused\n", x->n_done, x->n_refused);
    assert_true(x->n_done > x->n_refused / 2);
}

/* ---- the tests ---- */

enum { PER_GRAPH = 40 };

static void test_corpus(void **state)
{
    (void)state;
    struct run x = {.rng.state = seed_of("prop_edit, graphs of PyTorch")};
    size_t n_paths, n_small = 0, left = rounds(7000);
    char **path = find_paths("tests/graphs", ".txt", &n_paths);

    for (size_t i = 0; i < n_paths; i++) { /* the small ones to the front */
        struct text t = text_of_file(path[i]);
        if (t.len < 16000) {
            char *p = path[i];
            path[i] = path[n_small];
            path[n_small++] = p;
        }
        text_done(&t);
    }
    assert_true(n_small > 20);
    while (left > 0) {
        const char *name = path[rng_below(&x.rng, (uint32_t)n_small)];
        size_t n = left < PER_GRAPH ? left : PER_GRAPH;
        tuck_doc *doc;

        assert_int_equal(tuck_doc_read_file(name, NULL, NULL, &doc), TUCK_OK);
        edit_for_a_while(&x, tuck_doc_graph(doc, rng_below(&x.rng, (uint32_t)tuck_doc_count(doc))),
                         n);
        tuck_doc_free(doc);
        left -= n;
    }
    free_paths(path, n_paths);
    summary(&x);
}

static void test_built(void **state)
{
    (void)state;
    struct run x = {.rng.state = seed_of("prop_edit, graphs from nothing")};

    for (size_t left = rounds(3000); left > 0;) {
        size_t n = left < 2 * PER_GRAPH ? left : 2 * PER_GRAPH;
        tuck_graph *g;
        tuck_node in;

        assert_int_equal(tuck_graph_new(NULL, NULL, &g), TUCK_OK);
        assert_int_equal(
            tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, "x", NULL, NULL, "f32[4]", &in),
            TUCK_OK);
        tuck_args *a = tuck_args_new(g);
        tuck_args_node(a, in);
        assert_int_equal(tuck_graph_add(g, tuck_at_end(), TUCK_OUTPUT, NULL, a, NULL, NULL, NULL),
                         TUCK_OK);
        tuck_args_free(a);
        edit_for_a_while(&x, g, n);
        tuck_graph_free(g);
        left -= n;
    }
    summary(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_built),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
