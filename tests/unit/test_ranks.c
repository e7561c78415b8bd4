/* tuck_ranks_optimize(): one decision for the graphs of several ranks. */
#include "support/graph_test.h"

#define T "\"f32[1024, 1024][1024, 1]cuda:0\""
#define STEP(mm)                                                                                   \
    "class GraphModule(torch.nn.Module):\n"                                                        \
    "    def forward(self, a: " T ", b: " T "):\n"                                                 \
    "        r: " T " = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0')\n"            \
    "        w: " T " = torch.ops._c10d_functional.wait_tensor.default(r)\n"                       \
    "        r_1: " T " = torch.ops._c10d_functional.all_reduce.default(b, 'sum', '0')\n"          \
    "        w_1: " T " = torch.ops._c10d_functional.wait_tensor.default(r_1)\n"                   \
    "        m: " T " = torch.ops.aten." mm "(a, b)\n"                                             \
    "        return (w, w_1, m)\n"

struct pair {
    tuck_doc *doc[2];
    tuck_rank_graph rank[2];
};

static void pair_begin(struct pair *p, const char *second)
{
    const char *text[] = {STEP("mm.default"), second};

    for (int i = 0; i < 2; i++) {
        p->doc[i] = read_or_die(text[i]);
        p->rank[i] = (tuck_rank_graph){tuck_doc_graph(p->doc[i], 0), i ? "one" : "zero", i};
        assert_int_equal(tuck_graph_set_group(p->rank[i].graph, "0", 2, NULL, NULL), TUCK_OK);
    }
}

static void pair_end(struct pair *p)
{
    tuck_doc_free(p->doc[0]);
    tuck_doc_free(p->doc[1]);
}

static void test_one_program(void **unused)
{
    struct pair p;
    tuck_ranks_report *x = NULL;
    struct text out = {NULL, 0, 0};
    tuck_decision *decision = NULL;
    tuck_run_options o;

    (void)unused;
    pair_begin(&p, STEP("mm.default"));
    tuck_run_options_init(&o);
    o.decision_out = &decision;
    assert_int_equal(tuck_ranks_optimize(p.rank, 2, &o, NULL, &x), TUCK_OK);
    assert_non_null(decision);
    assert_int_equal(tuck_ranks_report_programs(x), 1);
    assert_int_equal(tuck_ranks_report_program(x, 0), 0);
    assert_int_equal(tuck_ranks_report_program(x, 1), 0);
    assert_true(tuck_ranks_report_program(x, 2) == SIZE_MAX);
    assert_true(tuck_ranks_report_changed(x));
    assert_false(tuck_ranks_report_keeps_order(x, 0));
    assert_non_null(tuck_ranks_report_at(x, 0));
    assert_null(tuck_ranks_report_at(x, 1));
    assert_int_equal(tuck_ranks_report_print(x, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "2 ranks run one program"));
    assert_null(strstr(out.at, "this assumes"));
    char *a = graph_text(p.rank[0].graph), *b = graph_text(p.rank[1].graph);
    assert_string_equal(a, b);
    free(a);
    free(b);
    text_done(&out);
    tuck_decision_free(decision);
    tuck_ranks_report_free(x);
    pair_end(&p);
}

static void test_two_programs(void **unused)
{
    struct pair p;
    tuck_ranks_report *x = NULL;
    tuck_decision *decision = NULL;
    tuck_run_options o;

    (void)unused;
    pair_begin(&p, STEP("add.Tensor"));
    tuck_run_options_init(&o);
    o.decision_out = &decision;
    char *before = graph_text(p.rank[1].graph);
    assert_int_equal(tuck_ranks_optimize(p.rank, 2, &o, NULL, &x), TUCK_EINVAL);
    assert_null(x);
    assert_null(decision);
    assert_text(p.rank[1].graph, before);
    free(before);
    assert_int_equal(tuck_ranks_optimize(p.rank, 2, NULL, NULL, &x), TUCK_OK);
    assert_int_equal(tuck_ranks_report_programs(x), 2);
    assert_true(tuck_ranks_report_keeps_order(x, 0));
    assert_true(tuck_ranks_report_keeps_order(x, 1));
    tuck_ranks_report_free(x);
    assert_int_equal(tuck_ranks_optimize(NULL, 2, NULL, NULL, &x), TUCK_EINVAL);
    assert_int_equal(tuck_ranks_optimize(p.rank, 0, NULL, NULL, &x), TUCK_EINVAL);
    p.rank[1].number = 0; /* of one rank */
    assert_int_equal(tuck_ranks_optimize(p.rank, 2, NULL, NULL, NULL), TUCK_EINVAL);
    pair_end(&p);
}

/* The graphs stay as they are, and nothing leaks. */
static bool runs_out(size_t at)
{
    static const char text[] = STEP("mm.default");
    struct faulty f = {.fail_at = at, .stay = true};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options how = {.size = sizeof(how), .alloc = &alloc};
    struct pair p = {{NULL, NULL}, {{0}}};
    tuck_ranks_report *x = NULL;
    tuck_doc *fresh = read_or_die(text);
    char *before = graph_text(tuck_doc_graph(fresh, 0));
    tuck_status st = TUCK_OK;

    for (int i = 0; i < 2 && st == TUCK_OK; i++) {
        st = tuck_doc_read_text(text, sizeof(text) - 1, "t", &how, NULL, &p.doc[i]);
        p.rank[i] = (tuck_rank_graph){st == TUCK_OK ? tuck_doc_graph(p.doc[i], 0) : NULL, "t", i};
        if (st == TUCK_OK)
            st = tuck_graph_set_group(p.rank[i].graph, "0", 2, NULL, NULL);
    }
    bool read = st == TUCK_OK;
    if (read)
        st = tuck_ranks_optimize(p.rank, 2, NULL, NULL, &x);
    f = (struct faulty){.live = f.live};
    for (int i = 0; i < 2 && read && st != TUCK_OK; i++)
        assert_text(p.rank[i].graph, before);
    assert_true(st == TUCK_OK || st == TUCK_ENOMEM);
    tuck_ranks_report_free(x);
    pair_end(&p);
    assert_int_equal(f.live, 0);
    tuck_doc_free(fresh);
    free(before);
    return st == TUCK_ENOMEM;
}

static void test_memory(void **unused)
{
    size_t at = 1;

    (void)unused;
    while (runs_out(at))
        at = at * 17 / 16 + 1;
    assert_true(at > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_program),
        cmocka_unit_test(test_two_programs),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
