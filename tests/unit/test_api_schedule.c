/* Programs, schedules and several ranks in the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "support/support.h"

/* A gather that could overlap with the first product. */
static const char step[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[2048, 2048][2048, 1]cuda:0\", "
    "a: \"f32[256, 2048][2048, 1]cuda:0\"):\n"
    "        y: \"f32[2048, 2048][2048, 1]cuda:0\" = torch.ops.aten.mm.default(x, x)\n"
    "        g: \"f32[2048, 2048][2048, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '0')\n"
    "        w: \"f32[2048, 2048][2048, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(g)\n"
    "        z: \"f32[2048, 2048][2048, 1]cuda:0\" = torch.ops.aten.mm.default(y, w)\n"
    "        return (z,)\n";

static const char unknown[] = "class step(torch.nn.Module):\n"
                              "    def forward(self, x):\n"
                              "        a = torch.ops.mine.thing.default(x)\n"
                              "        b = torch.ops.mine.thing.default(a)\n"
                              "        return (b,)\n";

static const char early[] =
    "reorder_communication_preserving_peak_memory(reorder_iterative_peak_memory_budget=1)";

static tuck_program *lower(tuck_doc *doc)
{
    tuck_program *p = NULL;

    assert_int_equal(tuck_graph_lower(tuck_doc_graph(doc, 0), NULL, NULL, &p), TUCK_OK);
    return p;
}

static void write_file(char *path, const char *text)
{
    int fd = mkstemp(path);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* ---- programs ---- */

static void program_is_asked(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_program *p = lower(doc);
    tuck_print_options how;
    tuck_memory memory;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_program_op_count(p), 4);
    assert_int_equal(tuck_program_op_kind(p, 0), TUCK_OP_GEMM);
    assert_int_equal(tuck_program_op_kind(p, 1), TUCK_OP_COLLECTIVE);
    assert_int_equal(tuck_program_op_kind(p, 2), TUCK_OP_WAIT);
    assert_int_equal(tuck_program_op_kind(p, 99), TUCK_OP_COMPUTE);
    assert_int_equal(tuck_program_kernel_count(p), 2);
    assert_int_equal(tuck_program_buffer_count(p), 5);
    assert_int_equal(tuck_program_unknown_count(p), 0);
    assert_int_equal(tuck_program_check_times(p, TUCK_REFUSE, NULL), TUCK_OK);
    assert_int_equal(tuck_program_print(p, NULL, text_add, &out), TUCK_EINVAL); /* no plan yet */
    assert_int_equal(tuck_program_plan(p, NULL, &memory), TUCK_OK);
    assert_true(memory.peak > 0 && memory.arena >= 0 && memory.comm_digest == 0);
    assert_int_equal(tuck_program_print(p, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "peak"));
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    assert_int_equal(tuck_program_print(p, &how, text_add, &out), TUCK_EINVAL);
    tuck_program_free(p);
    tuck_program_free(NULL);
    text_done(&out);
    tuck_doc_free(doc);
}

static void programs_that_are_refused(void **state)
{
    static const uint32_t twice[] = {0, 0, 1, 2}, backwards[] = {3, 2, 1, 0}, far[] = {0, 1, 2, 9};
    const uint32_t *wrong[] = {twice, backwards, far};
    tuck_doc *doc = read_or_die(step), *other = read_or_die(step);
    tuck_program *p = lower(doc), *none = NULL;
    tuck_problem *problem = NULL;
    char *before = graph_text(tuck_doc_graph(doc, 0)), *after;

    (void)state;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(tuck_program_plan(p, wrong[i], NULL), TUCK_EINVAL);
        assert_int_equal(tuck_program_apply(p, wrong[i], tuck_doc_graph(doc, 0)), TUCK_EINVAL);
    }
    assert_int_equal(tuck_program_apply(p, NULL, tuck_doc_graph(other, 0)), TUCK_EINVAL);
    assert_int_equal(tuck_program_apply(p, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_apply(NULL, NULL, tuck_doc_graph(doc, 0)), TUCK_EINVAL);
    after = graph_text(tuck_doc_graph(doc, 0));
    assert_string_equal(after, before);
    assert_int_equal(tuck_program_plan(NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_problem(NULL, NULL, &problem), TUCK_EINVAL);
    assert_int_equal(tuck_program_problem(p, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_write(NULL, text_add, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_print(NULL, NULL, text_add, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_check_times(NULL, TUCK_ASSUME, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_program_read_file(NULL, NULL, NULL, &none), TUCK_EINVAL);
    assert_int_equal(tuck_program_read_file("/no/such/file", NULL, NULL, &none), TUCK_EIO);
    assert_null(none);
    free(before);
    free(after);
    tuck_program_free(p);
    tuck_doc_free(doc);
    tuck_doc_free(other);
}

static void program_of_a_file(void **state)
{
    char path[] = "/tmp/tuck_program_XXXXXX";
    tuck_doc *doc = read_or_die(step);
    tuck_program *p = lower(doc), *again = NULL;
    struct text out = {0}, back = {0};

    (void)state;
    assert_int_equal(tuck_program_write(p, text_add, &out), TUCK_OK);
    write_file(path, out.at);
    assert_int_equal(tuck_program_read_file(path, NULL, NULL, &again), TUCK_OK);
    assert_int_equal(tuck_program_op_count(again), tuck_program_op_count(p));
    for (uint32_t i = 0; i < tuck_program_op_count(p); i++)
        assert_string_equal(tuck_program_op_name(again, i), tuck_program_op_name(p, i));
    assert_int_equal(tuck_program_apply(again, NULL, tuck_doc_graph(doc, 0)), TUCK_EINVAL);
    tuck_program_free(p);
    tuck_program_free(again);
    text_done(&out);
    text_done(&back);
    tuck_doc_free(doc);
    unlink(path);
}

/* Unknown times and sizes: -1, counted, and an error if nothing may be assumed. */
static void program_of_unknown_operators(void **state)
{
    tuck_doc *doc = read_or_die(unknown);
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_program *p = lower(doc);
    tuck_torch_peak peak;

    (void)state;
    assert_int_equal(tuck_program_op_ps(p, 0), -1);
    assert_true(tuck_program_unknown_count(p) > 0);
    assert_int_equal(tuck_program_check_times(p, TUCK_REFUSE, diags), TUCK_EINVAL);
    assert_int_equal(tuck_diags_errors(diags), 1);
    assert_int_equal(tuck_graph_torch_peak(tuck_doc_graph(doc, 0), NULL, 0, &peak), TUCK_OK);
    assert_true(peak.unknown > 0);
    assert_int_equal(tuck_graph_torch_peak(NULL, NULL, 0, &peak), TUCK_EINVAL);
    assert_int_equal(tuck_graph_torch_peak(tuck_doc_graph(doc, 0), NULL, 0, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_torch_peak(tuck_doc_graph(doc, 0), NULL, 1, &peak), TUCK_EINVAL);
    tuck_program_free(p);
    tuck_diags_free(diags);
    tuck_doc_free(doc);
}

static void peak_by_pytorch(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_torch_peak peak;
    int64_t square = 2048 * 2048 * 4;

    (void)state;
    assert_int_equal(tuck_graph_torch_peak(g, NULL, 0, &peak), TUCK_OK);
    assert_int_equal(peak.unknown, 0);
    assert_int_equal(peak.initial, square + square / 8);
    assert_int_equal(peak.peak, 3 * square); /* y, and the gathered tensor, twice */
    assert_int_equal(peak.node.id, tuck_graph_find(g, "w").id);
    tuck_doc_free(doc);
}

/* ---- schedules ---- */

static double ten(void *ctx, uint32_t op)
{
    (void)ctx, (void)op;
    return 10;
}

static void schedule_runs_a_pipeline(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_program *program = lower(doc);
    tuck_problem *p = NULL;
    tuck_schedule *s = NULL;
    tuck_pipeline *orders = NULL, *graphs = NULL;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_program_problem(program, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_schedule_new(p, NULL, NULL, &s), TUCK_OK);
    int64_t exposed = tuck_schedule_exposed_ps(s);
    assert_true(exposed > 0 && tuck_schedule_peak(s) > 0);
    assert_int_equal(tuck_pipeline_parse(early, strlen(early), "p", NULL, NULL, &orders), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse("bucket_all_gather", 17, "p", NULL, NULL, &graphs),
                     TUCK_OK);
    assert_int_equal(tuck_schedule_run_pipeline(s, graphs, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_exposed_ps(s), exposed);
    assert_int_equal(tuck_schedule_run_pipeline(s, orders, NULL), TUCK_OK);
    assert_int_equal(tuck_schedule_order(s)[0], 1); /* the gather comes first now */
    assert_true(tuck_schedule_exposed_ps(s) < exposed);
    assert_int_equal(tuck_schedule_run_pipeline(NULL, orders, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_run_pipeline(s, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_print_overlap(s, NULL, text_add, &out), TUCK_OK);
    const char *gather = strstr(out.at, tuck_problem_op_name(p, 1));
    const char *product = strstr(out.at, tuck_problem_op_name(p, 0));
    assert_true(gather != NULL && product != NULL && gather < product);
    assert_int_equal(tuck_schedule_print(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_print_overlap(NULL, NULL, text_add, &out), TUCK_EINVAL);
    text_done(&out);
    tuck_pipeline_free(orders);
    tuck_pipeline_free(graphs);
    tuck_schedule_free(s);
    tuck_schedule_free(NULL);
    tuck_problem_free(p);
    tuck_program_free(program);
    tuck_doc_free(doc);
}

/* A problem that is written can be read again, with its order and runtimes. */
static void problem_of_a_file(void **state)
{
    char path[] = "/tmp/tuck_problem_XXXXXX", graph[] = "/tmp/tuck_graph_XXXXXX";
    tuck_doc *doc = read_or_die(step);
    tuck_program *program = lower(doc);
    tuck_problem *p = NULL, *again = NULL, *none = NULL;
    tuck_schedule_options o;
    tuck_schedule *s = NULL, *t = NULL;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_program_problem(program, NULL, &p), TUCK_OK);
    tuck_schedule_options_init(&o);
    assert_true(o.size == sizeof(o) && o.compat == NULL && o.estimate == NULL);
    o.estimate = ten;
    assert_int_equal(tuck_schedule_new(p, &o, NULL, &s), TUCK_OK);
    assert_int_equal(tuck_schedule_run(s, early, NULL), TUCK_OK);
    assert_int_equal(tuck_schedule_write_problem(s, text_add, &out), TUCK_OK);
    write_file(path, out.at);
    write_file(graph, step);
    assert_true(tuck_problem_is_file(path) && !tuck_problem_is_file(graph));
    assert_true(tuck_problem_is_file("/no/such/file") && !tuck_problem_is_file(NULL));
    assert_int_equal(tuck_problem_read_file(path, NULL, NULL, &again), TUCK_OK);
    assert_string_equal(tuck_problem_op_name(again, 0), tuck_problem_op_name(p, 1));
    assert_string_equal(tuck_problem_op_name(again, 99), "");
    assert_int_equal(tuck_schedule_new(again, NULL, NULL, &t), TUCK_OK);
    assert_int_equal(tuck_schedule_exposed_ps(t), tuck_schedule_exposed_ps(s));
    assert_int_equal(tuck_problem_read_file(NULL, NULL, NULL, &none), TUCK_EINVAL);
    assert_int_equal(tuck_problem_read_file("/no/such/file", NULL, NULL, &none), TUCK_EIO);
    assert_int_equal(tuck_schedule_write_problem(NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_write_problem(s, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_problem_write(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_null(none);
    tuck_schedule_free(t);
    tuck_schedule_free(s);
    tuck_problem_free(again);
    tuck_problem_free(p);
    tuck_problem_free(NULL);
    tuck_program_free(program);
    text_done(&out);
    tuck_doc_free(doc);
    unlink(path);
    unlink(graph);
}

static void slips_of_pytorch(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_program *program = lower(doc);
    tuck_problem *p = NULL;
    tuck_schedule_options o;
    tuck_schedule *s = NULL;
    char compat[200];

    (void)state;
    assert_int_equal(tuck_program_problem(program, NULL, &p), TUCK_OK);
    tuck_schedule_options_init(&o);
    assert_true(tuck_compat_count() > 0);
    for (size_t i = 0; i < tuck_compat_count(); i++) {
        assert_true(tuck_compat_name(i) != NULL && *tuck_compat_help(i));
        snprintf(compat, sizeof(compat), "torch,-%s", tuck_compat_name(i));
        o.compat = compat;
        assert_int_equal(tuck_schedule_new(p, &o, NULL, &s), TUCK_OK);
        tuck_schedule_free(s);
    }
    assert_null(tuck_compat_name(tuck_compat_count()));
    assert_null(tuck_compat_help(tuck_compat_count()));
    s = NULL;
    o.compat = "torch,-none";
    assert_int_equal(tuck_schedule_new(p, &o, NULL, &s), TUCK_EINVAL);
    tuck_schedule_options_init(&o);
    o.n_others = 1;
    assert_int_equal(tuck_schedule_new(p, &o, NULL, &s), TUCK_EINVAL);
    o = (tuck_schedule_options){.size = 0};
    assert_int_equal(tuck_schedule_new(p, &o, NULL, &s), TUCK_EINVAL);
    assert_null(s);
    tuck_problem_free(p);
    tuck_program_free(program);
    tuck_doc_free(doc);
}

/* ---- several ranks ---- */

/* Each has its own rows; the slow one is named. */
static void page_of_ranks(const tuck_rank_simulation *r)
{
    tuck_page *p = NULL;
    struct text out = {0};

    assert_int_equal(tuck_page_new("ranks", NULL, &p), TUCK_OK);
    assert_int_equal(tuck_page_add_ranks(p, "step", NULL), TUCK_EINVAL);
    assert_int_equal(tuck_page_add_ranks(p, NULL, r), TUCK_EINVAL);
    assert_int_equal(tuck_page_add_ranks(NULL, "step", r), TUCK_EINVAL);
    assert_int_equal(tuck_page_add_ranks(p, "step", r), TUCK_OK);
    assert_int_equal(tuck_page_html(p, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "rank 0"));
    assert_non_null(strstr(out.at, "rank 3"));
    assert_non_null(strstr(out.at, "rank 7"));
    tuck_page_free(p);
    text_done(&out);
}

static void ranks(void **state)
{
    tuck_doc *doc = read_or_die(step);
    const tuck_straggler slow = {3, 2.0}, wrong = {3, 0};
    tuck_ranks_options o;
    tuck_rank_simulation *r = NULL, *late = NULL;
    tuck_simulation *s = NULL;
    tuck_rank_times t;
    tuck_times one;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_graph_simulate(tuck_doc_graph(doc, 0), NULL, NULL, &s), TUCK_OK);
    tuck_simulation_times(s, &one);
    const tuck_rank rank = {s, "step.txt", -1}, nobody = {NULL, "", -1};
    assert_int_equal(tuck_ranks_simulate(&rank, 1, NULL, NULL, &r), TUCK_OK);
    assert_int_equal(tuck_rank_simulation_count(r), 8);
    assert_null(tuck_rank_simulation_fault(r));
    assert_int_equal(tuck_rank_simulation_step_ps(r), one.step_ps);
    for (size_t i = 0; i < 8; i++) {
        assert_true(tuck_rank_simulation_at(r, i, &t));
        assert_int_equal(t.rank, i);
        assert_true(t.factor == 1 && t.for_others_ps == 0);
    }
    assert_false(tuck_rank_simulation_at(r, 8, &t) || tuck_rank_simulation_at(r, 0, NULL));
    tuck_ranks_options_init(&o);
    assert_true(o.size == sizeof(o) && o.n_stragglers == 0 && o.n_instances == 0);
    o.stragglers = &slow;
    o.n_stragglers = 1;
    assert_int_equal(tuck_ranks_simulate(&rank, 1, &o, NULL, &late), TUCK_OK);
    assert_true(tuck_rank_simulation_step_ps(late) > one.step_ps);
    assert_true(tuck_rank_simulation_at(late, 3, &t) && t.factor == 2 && t.for_others_ps == 0);
    assert_true(tuck_rank_simulation_at(late, 0, &t) && t.for_others_ps > 0);
    assert_int_equal(tuck_rank_simulation_print(late, NULL, text_add, &out), TUCK_OK);
    assert_true(out.len > 0);
    page_of_ranks(late);
    tuck_rank_simulation_free(r);
    tuck_rank_simulation_free(late);
    tuck_rank_simulation_free(NULL);

    r = NULL;
    o.stragglers = &wrong;
    assert_int_equal(tuck_ranks_simulate(&rank, 1, &o, NULL, &r), TUCK_EINVAL);
    o.stragglers = NULL;
    assert_int_equal(tuck_ranks_simulate(&rank, 1, &o, NULL, &r), TUCK_EINVAL);
    o = (tuck_ranks_options){.size = 0};
    assert_int_equal(tuck_ranks_simulate(&rank, 1, &o, NULL, &r), TUCK_EINVAL);
    assert_int_equal(tuck_ranks_simulate(&nobody, 1, NULL, NULL, &r), TUCK_EINVAL);
    assert_int_equal(tuck_ranks_simulate(NULL, 1, NULL, NULL, &r), TUCK_EINVAL);
    assert_int_equal(tuck_ranks_simulate(&rank, 0, NULL, NULL, &r), TUCK_EINVAL);
    assert_int_equal(tuck_rank_simulation_print(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_null(r);
    text_done(&out);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(program_is_asked),
        cmocka_unit_test(programs_that_are_refused),
        cmocka_unit_test(program_of_a_file),
        cmocka_unit_test(program_of_unknown_operators),
        cmocka_unit_test(peak_by_pytorch),
        cmocka_unit_test(schedule_runs_a_pipeline),
        cmocka_unit_test(problem_of_a_file),
        cmocka_unit_test(slips_of_pytorch),
        cmocka_unit_test(ranks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
