/* No memory: every operation is run with an allocator that refuses request k, for k = 1, 2, … until
 * it succeeds. Each time it must report that, leave its graph unchanged, and leak nothing.
 *
 * An operation runs twice for each k: with only request k refused, and with all from k on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

struct op {
    const char *name;
    /* The operation; it frees everything it makes. */
    tuck_status (*run)(tuck_graph *g);
};

/* ---- edits ---- */

static tuck_node node(tuck_graph *g, const char *name)
{
    tuck_node n = tuck_graph_find(g, name);

    if (tuck_is_none(n))
        fail_msg("there is no %s", name);
    return n;
}

/* A list from texts; its errors are reported when it is used. */
static tuck_args *list(tuck_graph *g, const char *a, const char *b)
{
    tuck_args *x = tuck_args_new(g);

    if (x == NULL)
        return NULL;
    tuck_args_text(x, a);
    if (b != NULL) {
        tuck_args_open(x, TUCK_V_LIST);
        tuck_args_str(x, "new string of the list");
        tuck_args_close(x);
        tuck_args_key(x, "new_key");
        tuck_args_text(x, b);
    }
    return x;
}

static tuck_status add_call(tuck_graph *g)
{
    tuck_args *a = list(g, "[x, {'k': (a, 2.5)}, new.global_name]", "(x, 3*s0)");
    tuck_node n;

    if (a == NULL)
        return TUCK_ENOMEM;
    tuck_status st = tuck_graph_add(g, tuck_before(node(g, "b")), TUCK_CALL_FUNCTION,
                                    "torch.ops.brand.new_op.default", a, NULL,
                                    "f32[77, 5][5, 1]cuda:0", &n);
    tuck_args_free(a);
    return st;
}

static tuck_status add_input(tuck_graph *g)
{
    return tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, "L_brand_new_", NULL, NULL, "f32[9]",
                          NULL);
}

static tuck_status set_args(tuck_graph *g)
{
    tuck_args *a = list(g, "[x, x, x, x, x, x, x, x]", "a");

    if (a == NULL)
        return TUCK_ENOMEM;
    tuck_status st = tuck_node_set_args(g, node(g, "b"), a);
    tuck_args_free(a);
    return st;
}

static tuck_status set_value(tuck_graph *g)
{
    tuck_args *a = tuck_args_new(g);

    if (a == NULL)
        return TUCK_ENOMEM;
    tuck_args_value(a, tuck_node_arg(g, node(g, "c"), 0));
    tuck_status st = tuck_node_set_args(g, node(g, "b"), a);
    tuck_args_free(a);
    return st;
}

static tuck_status set_target(tuck_graph *g)
{
    return tuck_node_set_target(g, node(g, "b"), "torch.ops.brand.new_target");
}

static tuck_status set_param(tuck_graph *g)
{
    return tuck_node_set_target(g, node(g, "x"), "brand_new_parameter");
}

static tuck_status set_annotation(tuck_graph *g)
{
    return tuck_node_set_annotation(g, node(g, "b"), "f32[123, s9][s9, 1]cuda:0");
}

static tuck_status rename_node(tuck_graph *g)
{
    return tuck_node_rename(g, node(g, "b"), "brand_new_name_77");
}

static tuck_status rename_input(tuck_graph *g)
{
    return tuck_node_rename(g, node(g, "x"), "brand_new_input");
}

static tuck_status move(tuck_graph *g)
{
    return tuck_node_move(g, node(g, "b"), tuck_at_end());
}

static tuck_status erase(tuck_graph *g)
{
    return tuck_node_erase(g, node(g, "dead"));
}

static tuck_status replace_uses(tuck_graph *g)
{
    return tuck_node_replace_uses(g, node(g, "a"), node(g, "x"), node(g, "b"));
}

static tuck_status remove_dead(tuck_graph *g)
{
    size_t removed;

    return tuck_graph_remove_dead(g, &removed);
}

static tuck_status sort(tuck_graph *g)
{
    tuck_status st = tuck_node_move(g, node(g, "a"), tuck_after(node(g, "b")));

    if (st == TUCK_OK)
        st = tuck_graph_sort(g, NULL);
    if (st != TUCK_OK)
        assert_int_equal(tuck_node_move(g, node(g, "a"), tuck_before(node(g, "b"))), TUCK_OK);
    return st;
}

/* ---- what changes nothing ---- */

static tuck_status print_text(tuck_graph *g)
{
    return tuck_graph_print(g, TUCK_FORM_TEXT, NULL, text_drop, NULL);
}

static tuck_status print_code(tuck_graph *g)
{
    return tuck_graph_print(g, TUCK_FORM_CODE, NULL, text_drop, NULL);
}

static tuck_status print_exec(tuck_graph *g)
{
    tuck_status st = tuck_graph_print(g, TUCK_FORM_EXEC, NULL, text_drop, NULL);

    return st == TUCK_EEXEC ? TUCK_OK : st;
}

static tuck_status dot(tuck_graph *g)
{
    return tuck_graph_dot(g, text_drop, NULL);
}

static tuck_status lint(tuck_graph *g)
{
    return tuck_graph_lint(g, NULL);
}

static tuck_status copy(tuck_graph *g)
{
    tuck_graph *c;
    tuck_status st = tuck_graph_copy(g, &c);

    if (st == TUCK_OK)
        tuck_graph_free(c);
    return st;
}

static const struct op edits[] = {
    {"add a call", add_call},
    {"add an input", add_input},
    {"set arguments", set_args},
    {"set arguments to a value", set_value},
    {"set a target", set_target},
    {"set a parameter", set_param},
    {"set an annotation", set_annotation},
    {"rename", rename_node},
    {"rename an input", rename_input},
    {"move", move},
    {"erase", erase},
    {"replace uses", replace_uses},
    {"remove dead code", remove_dead},
    {"sort", sort},
};

static const struct op looks[] = {
    {"print as text", print_text},
    {"print as code", print_code},
    {"print to execute", print_exec},
    {"draw", dot},
    {"lint", lint},
    {"copy", copy},
};

/* ---- the loop ---- */

static const char small[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4][1]cpu\", y: \"f32[4][1]cpu\"):\n"
    "        # File: a.py:1\n"
    "        a: \"f32[4][1]cpu\" = torch.ops.aten.neg.default(x)\n"
    "        b: \"f32[4][1]cpu\" = torch.ops.aten.add.Tensor(a, x, alpha = 2)\n"
    "        dead = torch.ops.aten.mul.Tensor(b, y);  dead = None\n"
    "        wr = torch.ops.aten.copy_.default(y, b);  wr = None\n"
    "        sub = self.sub\n"
    "        c = torch.ops.higher_order.invoke_subgraph([sub, (a, x)], 'n', x);  sub = a = x = "
    "None\n"
    "        return (b, c, y)\n"
    "\n"
    "    class sub(torch.nn.Module):\n"
    "        def forward(self, x):\n"
    "            unused = torch.ops.aten.neg.default(x);  unused = None\n"
    "            return x\n";

/* A document that uses this allocator, and its printed text. */
static tuck_doc *read_with(const char *text, const tuck_allocator *alloc)
{
    tuck_read_options opt = {.size = sizeof(opt), .alloc = alloc};
    tuck_doc *doc = NULL;

    assert_int_equal(tuck_doc_read_text(text, strlen(text), "t.txt", &opt, NULL, &doc), TUCK_OK);
    return doc;
}

/* Runs op with request k refused on a new graph. True: memory was sufficient. */
static bool run_once(const struct op *op, const char *text, size_t graph, size_t k, bool stay,
                     bool edited_first)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_doc *doc = read_with(text, &alloc);
    tuck_graph *g = tuck_doc_graph(doc, graph);

    tuck_node first = tuck_graph_first(g);
    if (edited_first) /* with and without what the first edit creates: names, order of writes */
        (void)!tuck_node_set_annotation(g, first, tuck_node_annotation(g, first));
    char *before = graph_text(g);
    f.fail_at = f.calls + k;
    f.stay = stay;
    tuck_status st = op->run(g);
    f.fail_at = 0;
    bool failed = f.failed;
    if (!failed && st != TUCK_OK)
        fail_msg("%s: %s without need", op->name, tuck_status_text(st));
    /* A refused request may be optional. */
    if (failed && st != TUCK_OK && st != TUCK_ENOMEM)
        fail_msg("%s, request %zu: %s", op->name, k, tuck_status_text(st));
    char *after = graph_text(g), *why = check_users(g);
    if (st != TUCK_OK && strcmp(before, after) != 0)
        fail_msg("%s, request %zu: failed, and yet\n%s", op->name, k, after);
    if (why != NULL)
        fail_msg("%s, request %zu: %s", op->name, k, why);
    assert_int_not_equal(tuck_graph_lint(g, NULL), TUCK_ENOMEM);
    free(after);
    if (st != TUCK_OK) { /* what failed without memory succeeds with it */
        assert_int_equal(op->run(g), TUCK_OK);
        why = check_users(g);
        if (why != NULL)
            fail_msg("%s, again after request %zu: %s", op->name, k, why);
    }
    free(before);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("%s, request %zu: %zu bytes leaked", op->name, k, f.live);
    return !failed;
}

static size_t run_all(const struct op *op, const char *text, size_t graph)
{
    size_t k = 1;

    for (;; k++) {
        bool done = run_once(op, text, graph, k, false, false);
        run_once(op, text, graph, k, true, false);
        run_once(op, text, graph, k, false, true);
        if (done)
            break;
    }
    return k - 1;
}

static void test_edits(void **state)
{
    (void)state;
    size_t refused = 0;

    for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++)
        refused += run_all(&edits[i], small, 0);
    assert_true(refused > 50); /* there was something to refuse */
}

static void test_looks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(looks) / sizeof(*looks); i++)
        assert_true(run_all(&looks[i], small, 0) > 0);
}

/* ---- graphs from nothing ---- */

static void test_build(void **state)
{
    (void)state;
    for (size_t k = 1;; k++) {
        struct faulty f = {.fail_at = k};
        tuck_allocator alloc = faulty_allocator(&f);
        tuck_graph *g = NULL;
        tuck_node x = {0}, n = {0};

        tuck_status st = tuck_graph_new("made", &alloc, &g);
        if (st == TUCK_OK) {
            st = tuck_graph_add(g, tuck_at_end(), TUCK_PLACEHOLDER, "x", NULL, NULL, "f32[4]", &x);
            /* beyond the initial sizes of everything */
            for (int i = 0; i < 40 && st == TUCK_OK; i++) {
                tuck_args *a = list(g, "[x, x]", i % 2 ? "x" : NULL);
                st = a ? tuck_graph_add(g, tuck_at_end(), TUCK_CALL_FUNCTION,
                                        "torch.ops.aten.cat.default", a, NULL, NULL, &n)
                       : TUCK_ENOMEM;
                tuck_args_free(a);
            }
            char *why = check_users(g);
            assert_null(why);
        } else {
            assert_null(g);
        }
        assert_int_equal(st, f.failed ? TUCK_ENOMEM : TUCK_OK);
        f.fail_at = 0;
        tuck_graph_free(g);
        assert_int_equal(f.live, 0);
        if (!f.failed)
            break;
        assert_true(k < 10000);
    }
}

/* ---- texts ---- */

/* Read a text with request k refused, for every k, or for a sample where that would be too many. */
static void read_all(const char *path, const char *text, size_t len)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options opt = {.size = sizeof(opt), .alloc = &alloc};
    tuck_doc *doc;

    if (tuck_doc_read_text(text, len, path, &opt, NULL, &doc) != TUCK_OK)
        fail_msg("%s cannot be read", path);
    tuck_doc_free(doc);
    assert_int_equal(f.live, 0);
    size_t calls = f.calls, most = 300, step = calls / most + 1;
    for (size_t k = 1; k <= calls; k += step) {
        f = (struct faulty){.fail_at = k, .stay = k % 2 == 0};
        tuck_diags *d = tuck_diags_new(&alloc);
        doc = NULL;
        tuck_status st = tuck_doc_read_text(text, len, path, &opt, d, &doc);
        f.fail_at = 0;
        if (st == TUCK_OK)
            tuck_doc_free(doc);
        else if (st != TUCK_ENOMEM || doc != NULL)
            fail_msg("%s, request %zu: %s", path, k, tuck_status_text(st));
        tuck_diags_free(d);
        if (f.live != 0)
            fail_msg("%s, request %zu: %zu bytes leaked", path, k, f.live);
    }
}

/* Every form a text comes in. */
static void test_read(void **state)
{
    (void)state;
    size_t n, n_read = 0;
    char **path = find_paths("tests/graphs/forms213", ".txt", &n);

    read_all("small", small, strlen(small));
    for (size_t i = 0; i < n; i++) {
        struct text t = text_of_file(path[i]);
        if (t.len < 20000 || getenv("TUCK_SOAK") != NULL) {
            read_all(path[i], t.at, t.len);
            n_read++;
        }
        text_done(&t);
    }
    assert_true(n_read > 10);
    free_paths(path, n);
}

/* Every form printed, copied, checked. */
static void test_forms(void **state)
{
    (void)state;
    size_t n;
    char **path = find_paths("tests/graphs/forms213", ".txt", &n);

    for (size_t i = 0; i < n; i++) {
        struct text t = text_of_file(path[i]);
        for (size_t k = 0; k < sizeof(looks) / sizeof(*looks) && t.len < 8000; k++)
            run_all(&looks[k], t.at, 0);
        text_done(&t);
    }
    free_paths(path, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits), cmocka_unit_test(test_looks), cmocka_unit_test(test_build),
        cmocka_unit_test(test_read),  cmocka_unit_test(test_forms),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
