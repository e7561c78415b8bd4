/* Machines, simulations, explanations, comparisons, pages and runs of the public interface: what
 * they answer, what they refuse, and what happens if a callback or an allocation fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

/* Two layers of a sharded model, gathered right before they are used. */
static const char step[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[4096, 4096][4096, 1]cuda:0\", "
    "a: \"f32[512, 4096][4096, 1]cuda:0\", b: \"f32[512, 4096][4096, 1]cuda:0\"):\n"
    "        ga: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '0')\n"
    "        wa: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(ga)\n"
    "        y: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.mm.default(x, wa)\n"
    "        gb: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(b, 8, '0')\n"
    "        wb: \"f32[4096, 4096][4096, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(gb)\n"
    "        z: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.mm.default(y, wb)\n"
    "        return (z,)\n";

/* The size of the group is unknown. */
static const char reduce[] = "class step(torch.nn.Module):\n"
                             "    def forward(self, x: \"f32[s0, 64][64, 1]cuda:0\"):\n"
                             "        r: \"f32[s0, 64][64, 1]cuda:0\" = "
                             "torch.ops._c10d_functional.all_reduce.default(x, 'sum', '7')\n"
                             "        w: \"f32[s0, 64][64, 1]cuda:0\" = "
                             "torch.ops._c10d_functional.wait_tensor.default(r)\n"
                             "        return (w,)\n";

static tuck_simulation *simulate(tuck_graph *g, const tuck_machine *m)
{
    tuck_simulation *s = NULL;

    assert_int_equal(tuck_graph_simulate(g, m, NULL, &s), TUCK_OK);
    return s;
}

/* ---- simulating ---- */

static void simulation_is_asked(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_simulation *s = simulate(tuck_doc_graph(doc, 0), NULL);
    int64_t exposed = 0, compute = 0;
    tuck_times t;
    tuck_bound bound;
    tuck_sim_op op;
    size_t gathers = 0;

    (void)state;
    tuck_simulation_times(s, &t);
    tuck_simulation_bound(s, &bound);
    assert_true(bound.any_ps > 0 && bound.any_ps <= bound.order_ps);
    assert_true(bound.order_ps <= t.step_ps && t.step_ps <= t.compute_ps + t.comm_ps);
    assert_true(*bound.any_kind && *bound.any_meaning && *bound.order_kind);
    for (uint32_t i = 0; tuck_simulation_op(s, i, &op); i++) {
        assert_true(op.start_ps >= 0 && op.start_ps <= op.end_ps && op.end_ps <= t.step_ps);
        if (strcmp(op.coll, "all_gather") == 0) {
            assert_string_equal(op.kind, "collective");
            assert_string_equal(op.group, "0");
            assert_int_equal(op.bytes, 4096 * 4096 * 4);
            exposed += op.exposed_ps;
            gathers++;
        } else {
            assert_string_equal(op.group, "");
            compute += strcmp(op.kind, "wait") == 0 ? 0 : op.end_ps - op.start_ps;
        }
    }
    assert_int_equal(gathers, 2);
    assert_int_equal(exposed, t.exposed_ps);
    assert_int_equal(compute, t.compute_ps);
    assert_false(tuck_simulation_op(s, tuck_simulation_op_count(s), &op));
    assert_false(tuck_simulation_op(s, 0, NULL));
    assert_int_equal(tuck_simulation_unknown(s), 0);
    assert_string_equal(tuck_cluster_name(tuck_simulation_cluster(s)), "h100x8");
    assert_true(tuck_cluster_is_assumed(tuck_simulation_cluster(s)));
    assert_int_equal(tuck_assumptions_count(tuck_simulation_assumptions(s)), 0);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
}

static void simulation_is_printed(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_simulation *s = simulate(tuck_doc_graph(doc, 0), NULL);
    tuck_print_options how;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_simulation_print(s, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "ga"));
    tuck_print_options_init(&how);
    how.top = TUCK_NO_ROWS;
    text_clear(&out);
    assert_int_equal(tuck_simulation_print(s, &how, text_add, &out), TUCK_OK);
    assert_null(strstr(out.at, "ga "));
    how.form = TUCK_PRINT_JSON;
    text_clear(&out);
    assert_int_equal(tuck_simulation_print(s, &how, text_add, &out), TUCK_OK);
    assert_int_equal(strncmp(out.at, "{\n  \"schema\": 1,\n", 17), 0);
    assert_int_equal(tuck_simulation_print(NULL, &how, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_print(s, &how, NULL, NULL), TUCK_EINVAL);
    text_done(&out);
    tuck_simulation_free(s);
    tuck_simulation_free(NULL);
    tuck_doc_free(doc);
}

/* A struct of an older header is shorter; missing members have their defaults. */
static void machine_of_an_older_header(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_machine m;
    tuck_times t, half;
    tuck_simulation *s = simulate(g, NULL), *slow, *old;

    (void)state;
    tuck_machine_init(&m);
    assert_true(m.size == sizeof(m) && m.cluster == NULL && m.bandwidth == 1);
    assert_true(m.contention == TUCK_LINKS_FREE && m.unknown == TUCK_ASSUME);
    m.bandwidth = 0.5;
    slow = simulate(g, &m);
    m.size = offsetof(tuck_machine, bandwidth);
    old = simulate(g, &m);
    tuck_simulation_times(s, &t);
    tuck_simulation_times(slow, &half);
    assert_true(half.comm_ps > t.comm_ps && half.compute_ps == t.compute_ps);
    tuck_simulation_times(old, &half);
    assert_int_equal(half.comm_ps, t.comm_ps);
    tuck_simulation_free(old);
    tuck_simulation_free(slow);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
}

static void machines_that_make_no_sense(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_machine wrong[7];
    tuck_simulation *s = NULL;

    (void)state;
    for (size_t i = 0; i < 7; i++)
        tuck_machine_init(&wrong[i]);
    wrong[0].size = 0;
    wrong[1].size = sizeof(size_t);
    wrong[2].n_hints = 1;
    wrong[3].bandwidth = -1;
    wrong[4].model = (tuck_cost_model)99;
    wrong[5].contention = (tuck_contention)2;
    wrong[6].unknown = (tuck_unknown)2;
    for (size_t i = 0; i < 7; i++)
        if (tuck_graph_simulate(tuck_doc_graph(doc, 0), &wrong[i], NULL, &s) != TUCK_EINVAL)
            fail_msg("machine %zu was taken", i);
    assert_int_equal(tuck_graph_simulate(NULL, NULL, NULL, &s), TUCK_EINVAL);
    assert_int_equal(tuck_graph_simulate(tuck_doc_graph(doc, 0), NULL, NULL, NULL), TUCK_EINVAL);
    assert_null(s);
    tuck_doc_free(doc);
}

/* ---- what is not known ---- */

static void assumptions(void **state)
{
    tuck_doc *doc = read_or_die(reduce);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    const tuck_hint hint = {"s0", 8};
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_simulation *s = NULL;
    tuck_assumptions *a = NULL;
    tuck_print_options how;
    tuck_machine m;
    struct text out = {0};

    (void)state;
    tuck_machine_init(&m);
    m.hints = &hint;
    m.n_hints = 1;
    s = simulate(g, &m);
    const tuck_assumptions *of = tuck_simulation_assumptions(s);
    assert_int_equal(tuck_assumptions_count(of), 1);
    assert_int_equal(tuck_assumptions_at(of, 0)->what, TUCK_ASSUMED_RANKS);
    assert_string_equal(tuck_assumptions_at(of, 0)->name, "7");
    assert_int_equal(tuck_assumptions_at(of, 0)->value, 8);
    assert_null(tuck_assumptions_at(of, 1));
    assert_int_equal(tuck_graph_assumptions(g, tuck_simulation_cluster(s), &a), TUCK_OK);
    assert_int_equal(tuck_assumptions_count(a), 1);
    assert_int_equal(tuck_assumptions_print(a, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "7"));
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    text_clear(&out);
    assert_int_equal(tuck_assumptions_print(a, &how, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "\"ranks\": 8"));
    tuck_assumptions_free(a);
    tuck_assumptions_free(NULL);
    tuck_simulation_free(s);
    assert_int_equal(tuck_graph_assumptions(g, NULL, &a), TUCK_EINVAL);
    assert_int_equal(tuck_assumptions_print(NULL, NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_assumptions_count(NULL), 0);

    m.unknown = TUCK_REFUSE;
    assert_int_equal(tuck_graph_simulate(g, &m, diags, &s), TUCK_EINVAL);
    assert_int_equal(tuck_diags_errors(diags), 1);
    assert_non_null(strstr(tuck_diags_at(diags, 0)->message, "group '7'"));
    assert_int_equal(tuck_graph_set_group(g, "7", 4, NULL, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_simulate(g, &m, NULL, &s), TUCK_OK);
    tuck_simulation_free(s);
    text_done(&out);
    tuck_diags_free(diags);
    tuck_doc_free(doc);
}

/* ---- explaining ---- */

static bool stop_at(void *ctx, const char *what, size_t at, bool after, const tuck_graph *g)
{
    (void)what, (void)at, (void)after, (void)g;
    return (*(int *)ctx)-- > 0;
}

static void explanation(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_explain_options o;
    tuck_explanation *x = NULL;
    tuck_exposed row;
    tuck_remedy remedy;
    tuck_times t;
    struct text out = {0};
    int64_t last = INT64_MAX, sum = 0;
    size_t n = 0;

    (void)state;
    assert_int_equal(tuck_graph_explain(g, NULL, NULL, NULL, &x), TUCK_OK);
    tuck_simulation_times(tuck_explanation_simulation(x), &t);
    assert_int_equal(tuck_explanation_count(x), 2);
    for (; tuck_explanation_at(x, n, &row); n++) {
        assert_true(row.exposed_ps <= last && row.exposed_ps + row.hidden_ps <= row.ps);
        assert_true(*row.name == 'g' && *row.wait == 'w' && *row.limit);
        last = row.exposed_ps;
        sum += row.exposed_ps;
    }
    assert_int_equal(n, 2);
    assert_int_equal(sum, t.exposed_ps);
    assert_true(tuck_explanation_remedy_count(x) > 0);
    for (n = 0; tuck_explanation_remedy(x, n, &remedy); n++)
        assert_true(remedy.step_ps > 0 && remedy.step_ps < t.step_ps && *remedy.what);
    assert_int_equal(n, tuck_explanation_remedy_count(x));
    assert_false(tuck_explanation_at(x, 0, NULL) || tuck_explanation_remedy(x, 0, NULL));
    assert_true(tuck_explanation_has(x, "ga") && tuck_explanation_has(x, "y"));
    assert_false(tuck_explanation_has(x, "none") || tuck_explanation_has(x, NULL));
    tuck_explanation_free(x);

    tuck_explain_options_init(&o);
    assert_true(o.size == sizeof(o) && o.node == NULL && o.order == TUCK_ORDER_FREE);
    o.node = "gb";
    o.subject = "my_step.txt";
    assert_int_equal(tuck_graph_explain(g, NULL, &o, NULL, &x), TUCK_OK);
    assert_int_equal(tuck_explanation_print(x, NULL, text_add, &out), TUCK_OK);
    assert_int_equal(strncmp(out.at, "gb", 2), 0);
    assert_non_null(strstr(out.at, "my_step.txt"));
    tuck_explanation_free(x);
    tuck_explanation_free(NULL);
    text_done(&out);
    tuck_doc_free(doc);
}

/* An observer that returns false ends the work, and there is no explanation. */
static void explanation_that_is_stopped(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_explain_options o;
    tuck_explanation *x = NULL;
    int left = 1;

    (void)state;
    tuck_explain_options_init(&o);
    o.observe = stop_at;
    o.ctx = &left;
    assert_int_equal(tuck_graph_explain(tuck_doc_graph(doc, 0), NULL, &o, NULL, &x), TUCK_EIO);
    o.order = (tuck_order_rule)3;
    assert_int_equal(tuck_graph_explain(tuck_doc_graph(doc, 0), NULL, &o, NULL, &x), TUCK_EINVAL);
    assert_int_equal(tuck_graph_explain(NULL, NULL, NULL, NULL, &x), TUCK_EINVAL);
    assert_int_equal(tuck_graph_explain(tuck_doc_graph(doc, 0), NULL, NULL, NULL, NULL),
                     TUCK_EINVAL);
    assert_null(x);
    assert_int_equal(tuck_explanation_print(NULL, NULL, text_add, NULL), TUCK_EINVAL);
    tuck_doc_free(doc);
}

/* ---- comparing and drawing ---- */

static void comparison(void **state)
{
    tuck_doc *doc = read_or_die(step), *copy = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(copy, 0);
    tuck_simulation *before = simulate(tuck_doc_graph(doc, 0), NULL), *after;
    tuck_diff *d = NULL;
    tuck_print_options how;
    struct text out = {0};

    (void)state;
    assert_int_equal(
        tuck_node_move(g, tuck_graph_find(g, "gb"), tuck_before(tuck_graph_find(g, "ga"))),
        TUCK_OK);
    after = simulate(g, NULL);
    assert_int_equal(tuck_simulation_diff(before, before, &d), TUCK_OK);
    assert_int_equal(tuck_diff_count(d, TUCK_MOVED), 0);
    tuck_diff_free(d);
    assert_int_equal(tuck_simulation_diff(before, after, &d), TUCK_OK);
    assert_int_equal(tuck_diff_count(d, TUCK_MOVED), 1);
    assert_int_equal(tuck_diff_print(d, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "1 of them "));
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    text_clear(&out);
    assert_int_equal(tuck_diff_print(d, &how, text_add, &out), TUCK_OK);
    assert_int_equal(strncmp(out.at, "{\n  \"schema\": 1,\n", 17), 0);
    tuck_diff_free(d);
    tuck_diff_free(NULL);
    assert_int_equal(tuck_simulation_diff(NULL, after, &d), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_diff(before, NULL, &d), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_diff(before, after, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_diff_print(NULL, NULL, text_add, &out), TUCK_EINVAL);
    text_done(&out);
    tuck_simulation_free(before);
    tuck_simulation_free(after);
    tuck_doc_free(doc);
    tuck_doc_free(copy);
}

static void pages(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_simulation *s = simulate(tuck_doc_graph(doc, 0), NULL);
    tuck_simulation *two[] = {s, s}, *broken[] = {s, NULL};
    const char *label[] = {"then", "now"}, *one_label[] = {"then", NULL};
    tuck_page *p = NULL;
    struct text out = {0}, own = {0};

    (void)state;
    assert_int_equal(tuck_page_new("my <title>", NULL, &p), TUCK_OK);
    assert_int_equal(tuck_page_add(p, "", two, label, 0), TUCK_EINVAL);
    assert_int_equal(tuck_page_add(p, "", broken, label, 2), TUCK_EINVAL);
    assert_int_equal(tuck_page_add(p, "", two, one_label, 2), TUCK_EINVAL);
    assert_int_equal(tuck_page_add(p, NULL, two, label, 2), TUCK_EINVAL);
    assert_int_equal(tuck_page_add(NULL, "", two, label, 2), TUCK_EINVAL);
    assert_int_equal(tuck_page_add(p, "", two, label, 2), TUCK_OK);
    assert_int_equal(tuck_page_html(p, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "\"title\": \"my \\u003ctitle>\""));
    assert_non_null(strstr(out.at, "\"then\""));
    text_clear(&out);
    assert_int_equal(tuck_page_trace(p, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "\"now\""));
    assert_int_equal(tuck_page_html(p, text_refuse, NULL), TUCK_EIO);
    assert_int_equal(tuck_page_html(NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_page_trace(NULL, text_add, &out), TUCK_EINVAL);
    assert_int_equal(tuck_page_new(NULL, NULL, &p), TUCK_EINVAL);
    assert_int_equal(tuck_page_new("", NULL, NULL), TUCK_EINVAL);
    tuck_page_free(p);
    tuck_page_free(NULL);

    text_clear(&out);
    assert_int_equal(tuck_simulation_html(s, s, "t", text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "\"before\""));
    assert_int_equal(tuck_simulation_html(s, NULL, "t", text_add, &own), TUCK_OK);
    assert_null(strstr(own.at, "\"before\""));
    assert_int_equal(tuck_simulation_html(NULL, s, "t", text_add, &own), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_html(s, NULL, NULL, text_add, &own), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_html(s, NULL, "t", NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_simulation_html(s, NULL, "t", tuck_write_file, NULL), TUCK_EIO);
    text_done(&out);
    text_done(&own);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
}

/* ---- running ---- */

static void run_gives_its_steps(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_simulation *before = NULL, *after = NULL;
    tuck_run_options o;
    tuck_report *report = NULL;
    tuck_gain gain, again;
    tuck_times t;

    (void)state;
    tuck_run_options_init(&o);
    assert_true(o.size == sizeof(o) && o.judge == TUCK_JUDGE_NOTHING && o.memory == 0);
    o.before_out = &before;
    o.after_out = &after;
    o.memory_share = 1;
    assert_int_equal(tuck_graph_optimize(g, &o, NULL, &gain, &report), TUCK_OK);
    assert_true(gain.changed && gain.after.step_ps < gain.before.step_ps);
    assert_true(gain.bound_ps <= gain.after.step_ps);
    tuck_simulation_times(before, &t);
    assert_int_equal(t.step_ps, gain.before.step_ps);
    tuck_simulation_times(after, &t);
    assert_int_equal(t.step_ps, gain.after.step_ps);
    assert_true(tuck_report_gain(report, &again));
    assert_int_equal(again.after.step_ps, gain.after.step_ps);
    tuck_report_free(report);
    tuck_simulation_free(before);
    tuck_simulation_free(after);
    tuck_doc_free(doc);
}

static void run_that_is_not_judged(void **state)
{
    tuck_doc *doc = read_or_die(step);
    tuck_pipeline *p = NULL;
    tuck_report *report = NULL;
    tuck_run_options o;
    tuck_gain gain;

    (void)state;
    assert_int_equal(tuck_pipeline_new(NULL, &p), TUCK_OK);
    assert_int_equal(tuck_pipeline_add_text(p, "sink_waits, raise_comms", 10, "p", NULL), TUCK_OK);
    assert_int_equal(tuck_pipeline_count(p), 1);
    assert_int_equal(tuck_pipeline_add_text(p, NULL, 0, "p", NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_add_text(NULL, "", 0, "p", NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), NULL, NULL, &report), TUCK_OK);
    assert_false(tuck_report_gain(report, &gain));
    tuck_report_free(report);
    tuck_run_options_init(&o);
    o.judge = TUCK_JUDGE_RESULT;
    assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), &o, NULL, &report), TUCK_OK);
    assert_true(tuck_report_gain(report, &gain));
    assert_true(gain.before.step_ps > 0);
    tuck_report_free(report);
    tuck_pipeline_free(p);
    tuck_doc_free(doc);
}

static void pipeline_that_uses_times(void **state)
{
    tuck_pipeline *p = NULL;

    (void)state;
    assert_int_equal(tuck_pipeline_new(NULL, &p), TUCK_OK);
    assert_false(tuck_pipeline_is_timed(p));
    assert_int_equal(tuck_pipeline_add(p, "deduplicate_wait_tensors", NULL, NULL), TUCK_OK);
    assert_false(tuck_pipeline_is_timed(p));
    assert_int_equal(tuck_pipeline_add(p, "sink_waits_iterative", NULL, NULL), TUCK_OK);
    assert_true(tuck_pipeline_is_timed(p));
    tuck_pipeline_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulation_is_asked),
        cmocka_unit_test(simulation_is_printed),
        cmocka_unit_test(machine_of_an_older_header),
        cmocka_unit_test(machines_that_make_no_sense),
        cmocka_unit_test(assumptions),
        cmocka_unit_test(explanation),
        cmocka_unit_test(explanation_that_is_stopped),
        cmocka_unit_test(comparison),
        cmocka_unit_test(pages),
        cmocka_unit_test(run_gives_its_steps),
        cmocka_unit_test(run_that_is_not_judged),
        cmocka_unit_test(pipeline_that_uses_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
