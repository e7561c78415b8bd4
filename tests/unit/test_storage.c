/* Storages: which values share memory, and the order of reads and writes across edits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "infer/infer.h"
#include "plan/storage_peak.h"

static tuck_doc *read(const char *text)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_doc *doc = NULL;

    if (tuck_doc_read_text(text, strlen(text), "t", NULL, d, &doc) != TUCK_OK)
        fail_msg("%s", tuck_diags_at(d, 0)->message);
    tuck_diags_free(d);
    return doc;
}

struct world {
    tuck_doc *doc;
    tuck_graph *g;
    struct arena a;
    struct storages s;
    struct storage_peak peak;
};

static void do_start(void *p)
{
    struct world *w = p;

    infer_graph(w->g, NULL, NULL);
    storages_build(w->g, &w->a, &w->s);
    storage_peak(w->g, &w->s, &w->a, NULL, NULL, &w->peak);
}

static void start(struct world *w, const char *text)
{
    memset(w, 0, sizeof(*w));
    w->doc = read(text);
    w->g = tuck_doc_graph(w->doc, 0);
    arena_init(&w->a, &w->g->store->mem);
    assert_true(mem_guard(&w->g->store->mem, do_start, w));
}

static void stop(struct world *w)
{
    arena_destroy(&w->a);
    tuck_doc_free(w->doc);
}

static uint32_t memory(struct world *w, const char *name)
{
    tuck_node n = tuck_graph_find(w->g, name);

    assert_false(tuck_is_none(n));
    return memory_of(&w->s, n.id, 0);
}

static uint32_t storage(struct world *w, const char *name)
{
    tuck_node n = tuck_graph_find(w->g, name);

    assert_false(tuck_is_none(n));
    return storage_of(&w->s, n.id, 0);
}

static void views_waits_and_out_share(void **state)
{
    struct world w;

    (void)state;
    start(&w, "def forward(self, x: \"f32[4, 4]\", y: \"f32[8, 4]\"):\n"
              "    view = torch.ops.aten.view.default(x, [-1])\n"
              "    permute = torch.ops.aten.permute.default(view, [0])\n"
              "    clone = torch.ops.aten.clone.default(x)\n"
              "    split = torch.ops.aten.split.Tensor(x, 2)\n"
              "    getitem = split[0]\n"
              "    getitem_1 = split[1]\n"
              "    gather = torch.ops._c10d_functional.all_gather_into_tensor_out.default(x, 2, "
              "'0', out = y)\n"
              "    wait = torch.ops._c10d_functional.wait_tensor.default(gather)\n"
              "    add_ = torch.ops.aten.add_.Tensor(clone, 1)\n"
              "    unsafe = torch.ops.aten._unsafe_view.default(clone, [16])\n"
              "    topk = torch.ops.aten.topk.default(x, 2)\n"
              "    values = topk[0]\n"
              "    indices = topk[1]\n"
              "    mine = torch.ops.my.op.default(clone, values)\n"
              "    return (view, permute, getitem, getitem_1, wait, add_, unsafe, values, indices, "
              "mine)\n");
    assert_int_equal(storage(&w, "view"), storage(&w, "x"));
    assert_int_equal(storage(&w, "permute"), storage(&w, "x"));
    assert_int_equal(storage(&w, "getitem"), storage(&w, "x"));
    assert_int_equal(storage(&w, "getitem_1"), storage(&w, "x"));
    assert_int_not_equal(storage(&w, "clone"), storage(&w, "x"));
    assert_int_equal(storage(&w, "gather"), storage(&w, "y"));
    assert_int_equal(storage(&w, "wait"), storage(&w, "y"));
    assert_int_equal(storage(&w, "add_"), storage(&w, "clone"));
    assert_int_equal(storage(&w, "unsafe"), storage(&w, "clone")); /* the schema says new */
    assert_int_not_equal(storage(&w, "values"), storage(&w, "indices"));
    assert_int_equal(storage(&w, "mine"), storage(&w, "clone")); /* unknown: with all */
    assert_int_equal(storage(&w, "mine"), storage(&w, "values"));
    assert_int_not_equal(storage(&w, "mine"), storage(&w, "x"));
    stop(&w);
}

/* Of 64 bytes each: what may share is not counted as one. */
static void what_may_share_is_not_the_same(void **state)
{
    struct world w;

    (void)state;
    start(&w, "class GraphModule(torch.nn.Module):\n"
              "    def forward(self, x: \"f32[16]\", y: \"f32[16]\"):\n"
              "        a = torch.ops.aten.sin.default(x)\n"
              "        b = torch.ops.aten.sin.default(y)\n"
              "        mine = torch.ops.my.op.default(a, b)\n"
              "        one: \"f32[16]\" = mine[0]\n"
              "        two: \"f32[16]\" = mine[1]\n"
              "        view = torch.ops.aten.view.default(two, [4, 4])\n"
              "        graph = self.graph\n"
              "        call = torch.ops.higher_order.invoke_subgraph(graph, 'graph', x, y)\n"
              "        three: \"f32[16]\" = call[0]\n"
              "        four: \"f32[16]\" = call[1]\n"
              "        return (one, view, three, four)\n\n"
              "    class graph(torch.nn.Module):\n"
              "        def forward(self, p: \"f32[16]\", q: \"f32[16]\"):\n"
              "            own: \"f32[16]\" = torch.ops.my.op.default(p)\n"
              "            return (own, q)\n");
    assert_int_equal(storage(&w, "one"), storage(&w, "a"));
    assert_int_equal(storage(&w, "two"), storage(&w, "b"));
    assert_int_equal(memory(&w, "view"), memory(&w, "two"));
    assert_int_not_equal(memory(&w, "one"), memory(&w, "two"));
    assert_int_not_equal(memory(&w, "one"), memory(&w, "a"));
    assert_int_not_equal(memory(&w, "a"), memory(&w, "b"));
    assert_int_equal(storage(&w, "three"), storage(&w, "x"));
    assert_int_not_equal(memory(&w, "three"), memory(&w, "x"));
    assert_int_not_equal(storage(&w, "three"), storage(&w, "y"));
    assert_int_equal(memory(&w, "four"), memory(&w, "y"));
    assert_int_equal(w.peak.peak, 128 + 4 * 64); /* x, y; a, b, one, two */
    assert_int_equal(w.peak.unknown, 0);
    stop(&w);
}

static void nested_graphs_hand_on_what_they_share(void **state)
{
    struct world w;

    (void)state;
    start(&w, "class GraphModule(torch.nn.Module):\n"
              "    def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
              "        a = self.a\n"
              "        b = self.b\n"
              "        wait = torch.ops.higher_order.control_deps((y,), a, x)\n"
              "        sin = torch.ops.higher_order.control_deps((y, wait), b, x)\n"
              "        return (wait, sin)\n\n"
              "    class a(torch.nn.Module):\n"
              "        def forward(self, arg_0: \"f32[4]\"):\n"
              "            w = torch.ops._c10d_functional.wait_tensor.default(arg_0)\n"
              "            return w\n\n"
              "    class b(torch.nn.Module):\n"
              "        def forward(self, arg_0: \"f32[4]\"):\n"
              "            s = torch.ops.aten.sin.default(arg_0)\n"
              "            return s\n");
    assert_int_equal(storage(&w, "wait"), storage(&w, "x"));
    assert_int_not_equal(storage(&w, "sin"), storage(&w, "x"));
    assert_int_not_equal(storage(&w, "sin"), storage(&w, "y"));
    stop(&w);
}

/* x and y come in with 64 bytes each; a has 64, b 64, made while a lives; a is freed after c. */
static void peak_counts_what_lives(void **state)
{
    struct world w;

    (void)state;
    start(&w, "def forward(self, x: \"f32[16][1]cpu\", y: \"f32[16][1]cpu\"):\n"
              "    a = torch.ops.aten.sin.default(x)\n"
              "    b = torch.ops.aten.cos.default(a)\n"
              "    c = torch.ops.aten.view.default(b, [4, 4])\n"
              "    d = torch.ops.aten.neg.default(c)\n"
              "    return (d,)\n");
    assert_int_equal(w.peak.inputs, 128);
    assert_int_equal(w.peak.peak, 256); /* a and b, later b and d */
    assert_int_equal(w.peak.unknown, 0);
    stop(&w);
}

static tuck_node find(tuck_graph *g, const char *name)
{
    tuck_node n = tuck_graph_find(g, name);

    assert_false(tuck_is_none(n));
    return n;
}

static const char mutating[] = "def forward(self, x: \"f32[4]\"):\n"
                               "    before = torch.ops.aten.sin.default(x)\n"
                               "    add_ = torch.ops.aten.add_.Tensor(x, 1)\n"
                               "    after = torch.ops.aten.cos.default(x)\n"
                               "    mul_ = torch.ops.aten.mul_.Tensor(x, 2)\n"
                               "    return (before, after)\n";

static void lint_sees_a_read_moved_over_a_write(void **state)
{
    static const struct {
        const char *what, *to, *message;
        bool after;
    } cases[] = {
        {"after", "add_", "'after' was moved before 'add_', which writes the same storage", false},
        {"before", "add_", "'before' was moved after 'add_', which writes the same storage", true},
        {"after", "mul_", "'after' was moved before 'add_', which writes the same storage", true},
        {"mul_", "add_", "'mul_' was moved before 'add_', which writes the same storage", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tuck_doc *doc = read(mutating);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        tuck_diags *d = tuck_diags_new(NULL);
        bool said = false;

        assert_int_equal(tuck_graph_lint(g, d), TUCK_OK);
        assert_int_equal(tuck_node_move(g, find(g, cases[i].what),
                                        (tuck_where){find(g, cases[i].to), cases[i].after}),
                         TUCK_OK);
        assert_int_equal(tuck_graph_lint(g, d), TUCK_ELINT);
        for (size_t k = 0; k < tuck_diags_count(d); k++)
            said |= strcmp(tuck_diags_at(d, k)->message, cases[i].message) == 0;
        if (!said)
            fail_msg("case %zu says: %s", i, tuck_diags_at(d, 0)->message);
        tuck_diags_free(d);
        tuck_doc_free(doc);
    }
}

/* Through the result of an unknown operator an operand may be written. */
static void lint_sees_a_write_through_a_result(void **state)
{
    static const char text[] = "def forward(self, x: \"f32[4]\", y: \"f32[4]\", z: \"f32[4]\"):\n"
                               "    mine = torch.ops.my.op.default(x, y)\n"
                               "    before = torch.ops.aten.sin.default(y)\n"
                               "    other = torch.ops.aten.sin.default(z)\n"
                               "    mul_ = torch.ops.aten.mul_.Tensor(mine, 2)\n"
                               "    after = torch.ops.aten.cos.default(x)\n"
                               "    return (before, other, after)\n";
    static const struct {
        const char *what;
        bool after;
        tuck_status status;
    } cases[] = {
        {"before", true, TUCK_ELINT}, {"other", true, TUCK_OK}, {"after", false, TUCK_ELINT}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tuck_doc *doc = read(text);
        tuck_graph *g = tuck_doc_graph(doc, 0);

        assert_int_equal(tuck_node_move(g, find(g, cases[i].what),
                                        (tuck_where){find(g, "mul_"), cases[i].after}),
                         TUCK_OK);
        assert_int_equal(tuck_graph_lint(g, NULL), cases[i].status);
        tuck_doc_free(doc);
    }
}

/* An operator inside control_deps may write: the operand that its signature says, and no other. */
static void a_write_that_is_held_back_is_one(void **state)
{
    static const char text[] = "class GraphModule(torch.nn.Module):\n"
                               "    def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
                               "        first = torch.ops.aten.sin.default(x)\n"
                               "        other = torch.ops.aten.sin.default(y)\n"
                               "        copy = self.copy\n"
                               "        held = torch.ops.higher_order.control_deps((first,), copy, "
                               "y, x)\n"
                               "        after = torch.ops.aten.cos.default(x)\n"
                               "        last = torch.ops.aten.cos.default(y)\n"
                               "        return (first, other, held, after, last)\n\n"
                               "    class copy(torch.nn.Module):\n"
                               "        def forward(self, arg_0: \"f32[4]\", arg_1: \"f32[4]\"):\n"
                               "            c = torch.ops.aten.copy_.default(arg_1, arg_0)\n"
                               "            return c\n";
    static const struct {
        const char *what;
        bool behind, fine;
    } cases[] = {{"after", false, false}, {"last", false, true}, {"other", true, true}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        tuck_doc *doc = read(text);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        tuck_where to = {find(g, "held"), cases[i].behind};

        assert_int_equal(tuck_graph_lint(g, NULL), TUCK_OK);
        assert_int_equal(tuck_node_move(g, find(g, cases[i].what), to), TUCK_OK);
        assert_int_equal(tuck_graph_lint(g, NULL), cases[i].fine ? TUCK_OK : TUCK_ELINT);
        tuck_doc_free(doc);
    }
}

static void moves_that_cross_no_write_are_fine(void **state)
{
    tuck_doc *doc = read("def forward(self, x: \"f32[4]\", y: \"f32[4]\"):\n"
                         "    a = torch.ops.aten.sin.default(x)\n"
                         "    add_ = torch.ops.aten.add_.Tensor(y, 1)\n"
                         "    b = torch.ops.aten.cos.default(x)\n"
                         "    c = torch.ops.aten.cos.default(y)\n"
                         "    return (a, b, c)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);

    (void)state;
    assert_int_equal(tuck_node_move(g, find(g, "b"), tuck_before(find(g, "a"))), TUCK_OK);
    assert_int_equal(tuck_node_move(g, find(g, "a"), tuck_after(find(g, "c"))), TUCK_OK);
    assert_int_equal(tuck_graph_lint(g, NULL), TUCK_OK);
    tuck_doc_free(doc);
}

/* A sort that must move something keeps every read between the writes around it. */
static void sorting_keeps_reads_and_writes_in_order(void **state)
{
    tuck_doc *doc = read("def forward(self, x: \"f32[4]\"):\n"
                         "    add_ = torch.ops.aten.add_.Tensor(x, 1)\n"
                         "    r = torch.ops.aten.cos.default(x)\n"
                         "    mul_ = torch.ops.aten.mul_.Tensor(x, 2)\n"
                         "    s = torch.ops.aten.sin.default(x)\n"
                         "    t = torch.ops.aten.add.Tensor(r, s)\n"
                         "    return (t,)\n");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_args *a = tuck_args_new(g);
    tuck_node late;

    (void)state;
    /* r now also needs a node at the end: it must move down, and mul_ with it. */
    tuck_args_float(a, 1.0);
    assert_int_equal(tuck_graph_add(g, tuck_before(find(g, "t")), TUCK_CALL_FUNCTION,
                                    "torch.ops.aten.scalar_tensor.default", a, "late", NULL, &late),
                     TUCK_OK);
    tuck_args_clear(a);
    tuck_args_node(a, find(g, "x"));
    tuck_args_node(a, late);
    assert_int_equal(tuck_node_set_target(g, find(g, "r"), "torch.ops.aten.add.Tensor"), TUCK_OK);
    assert_int_equal(tuck_node_set_args(g, find(g, "r"), a), TUCK_OK);
    assert_int_equal(tuck_graph_sort(g, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_lint(g, NULL), TUCK_OK);
    tuck_args_free(a);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_waits_and_out_share),
        cmocka_unit_test(what_may_share_is_not_the_same),
        cmocka_unit_test(nested_graphs_hand_on_what_they_share),
        cmocka_unit_test(peak_counts_what_lives),
        cmocka_unit_test(lint_sees_a_read_moved_over_a_write),
        cmocka_unit_test(lint_sees_a_write_through_a_result),
        cmocka_unit_test(a_write_that_is_held_back_is_one),
        cmocka_unit_test(moves_that_cross_no_write_are_fine),
        cmocka_unit_test(sorting_keeps_reads_and_writes_in_order),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
