/* No memory in the functions above graphs: studies, costs, programs, schedules, pipelines. Each job
 * is a chain of public calls on its own graph; it is run with request 1, 2, … refused, must return
 * TUCK_ENOMEM exactly then, and leak nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

static const char step[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[s0, 512][512, 1]cuda:0\", "
    "a: \"f32[64, 512][512, 1]cuda:0\", b: \"f32[64, 512][512, 1]cuda:0\"):\n"
    "        ga: \"f32[512, 512][512, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '0')\n"
    "        wa: \"f32[512, 512][512, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(ga)\n"
    "        y: \"f32[s0, 512][512, 1]cuda:0\" = torch.ops.aten.mm.default(x, wa)\n"
    "        gb: \"f32[512, 512][512, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(b, 8, '0')\n"
    "        wb: \"f32[512, 512][512, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(gb)\n"
    "        z = torch.ops.aten.mm.default(y, wb)\n"
    "        r = torch.ops._c10d_functional.all_reduce.default(z, 'sum', '7')\n"
    "        w = torch.ops._c10d_functional.wait_tensor.default(r)\n"
    "        v = torch.ops.aten.relu.default(w)\n"
    "        return (v,)\n";

static const tuck_hint hint = {"s0", 256};

struct world {
    tuck_graph *g;
    const tuck_allocator *alloc;
    tuck_machine m;
};

static const tuck_print_options json = {.size = sizeof(json), .form = TUCK_PRINT_JSON};

/* The next call of a chain, if everything succeeded so far. */
#define THEN(st, call) ((st) = (st) == TUCK_OK ? (call) : (st))

/* ---- traces ---- */

static tuck_status traces(struct world *w)
{
    static const char text[] =
        "[{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#7\", \"ts\": "
        "1.5, \"dur\": 100},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllGather(int)\", "
        "\"ts\": 2, \"dur\": 50, \"args\": {\"stream\": 7, \"Input Dims\": [[3, 4]]}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"ts\": 2, \"dur\": 30}]";
    tuck_traces *t = NULL;
    tuck_status st = tuck_traces_new(w->alloc, &t);

    THEN(st, tuck_traces_add_text(t, text, sizeof(text) - 1, "t.json", NULL));
    THEN(st, tuck_traces_add_text(t, text, sizeof(text) - 1, "u.json", NULL));
    THEN(st, tuck_traces_print(t, &json, text_drop, NULL));
    THEN(st, tuck_traces_print(t, NULL, text_drop, NULL));
    THEN(st, tuck_traces_html(t, "t", -1, text_drop, NULL));
    THEN(st, tuck_traces_perfetto(t, 7, text_drop, NULL));
    THEN(st, tuck_traces_calibrate(t, "h100", 0, NULL, text_drop, NULL, text_drop, NULL));
    tuck_traces_free(t);
    return st;
}

/* ---- jobs ---- */

static tuck_status read_job(struct world *w)
{
    static const char *const path[] = {"tests/jobs/break.tar.gz", "tests/jobs/sharded.zip"};
    tuck_job *j = NULL;
    int64_t peak;
    tuck_status st = tuck_job_read(path, 2, w->alloc, NULL, &j);

    THEN(st, tuck_job_pytorch_peak(j, 0, &peak));
    THEN(st, tuck_job_remember(j));
    THEN(st, tuck_job_join(j, NULL));
    if (st == TUCK_OK) {
        size_t n;
        assert_int_equal(tuck_job_first_part(j, 1, &n), 4);
        assert_int_equal(n, 4);
        assert_int_equal(tuck_doc_count(tuck_job_parts(j)), 8);
        assert_int_equal(tuck_doc_count(tuck_job_steps(j)), 2);
        assert_true(tuck_path_is_job(path[0]));
        assert_true(tuck_path_is_job_log(path[0]));
    }
    THEN(st, tuck_job_print(j, "job", &json, text_drop, NULL));
    THEN(st, tuck_job_print(j, "job", NULL, text_drop, NULL));
    THEN(st, tuck_job_say(j, 0, "job", NULL, text_drop, NULL));
    tuck_job_free(j);
    return st;
}

/* A trace of the step: its three collectives, by kind alone. */
static tuck_status tie(struct world *w)
{
    static const char text[] =
        "[{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllGather(int)\", "
        "\"ts\": 2, \"dur\": 50, \"args\": {\"stream\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllGather(int)\", \"ts\": "
        "102, \"dur\": 50, \"args\": {\"stream\": 7}},\n"
        "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce(int)\", \"ts\": "
        "202, \"dur\": 50, \"args\": {\"stream\": 7}}]";
    tuck_tie_options o;
    tuck_traces *t = NULL;
    tuck_tie *x = NULL;
    tuck_status st = tuck_traces_new(w->alloc, &t);

    tuck_tie_options_init(&o);
    THEN(st, tuck_traces_add_text(t, text, sizeof(text) - 1, "t.json", NULL));
    THEN(st, tuck_traces_tie(t, w->g, &w->m, &o, NULL, &x));
    THEN(st, tuck_tie_print(x, NULL, NULL, text_drop, NULL));
    if (st == TUCK_OK) {
        assert_int_equal(tuck_profile_count(tuck_tie_profile(x)), 3);
        assert_null(tuck_tie_cluster(x)); /* the trace does not say what it ran on */
    }
    tuck_tie_free(x);
    tuck_traces_free(t);
    return st;
}

/* ---- what is known of a graph ---- */

static tuck_status know(struct world *w)
{
    static const int64_t members[] = {0, 2, 4, 6};
    tuck_symbols *symbols = NULL;
    tuck_status st = tuck_graph_infer(w->g, TUCK_CHECK_ANNOTATIONS, NULL);

    THEN(st, tuck_node_type(w->g, tuck_graph_last(w->g), text_drop, NULL));
    THEN(st, tuck_graph_set_group(w->g, "7", 4, members, NULL));
    THEN(st, tuck_graph_set_rank(w->g, 2, NULL));
    THEN(st, tuck_graph_set_symbol(w->g, "s0", 8));
    THEN(st, tuck_graph_symbols(w->g, &symbols));
    THEN(st, tuck_graph_remember(w->g));
    THEN(st, tuck_graph_print(w->g, TUCK_FORM_EXEC, NULL, text_drop, NULL));
    tuck_symbols_free(symbols);
    return st;
}

static tuck_status inherit(struct world *w)
{
    tuck_graph *to = NULL;
    tuck_status st = tuck_graph_set_group(w->g, "7", 4, NULL, NULL);

    THEN(st, tuck_graph_copy(w->g, &to));
    THEN(st, tuck_graph_set_group(w->g, "0", 8, NULL, NULL));
    THEN(st, tuck_graph_inherit_groups(w->g, to));
    tuck_graph_free(to);
    return st;
}

static tuck_status blocks(struct world *w)
{
    tuck_comm_blocks *b = NULL;
    tuck_status st = tuck_graph_comm_blocks(w->g, &b);

    tuck_comm_blocks_free(b);
    return st;
}

/* ---- clusters, profiles, costs ---- */

static tuck_status clusters(struct world *w)
{
    static const char text[] = "{\"schema\": 1, \"device\": \"a100\", \"per_node\": 4}";
    tuck_cluster *a = NULL, *b = NULL, *c = NULL;
    tuck_status st = tuck_cluster_preset("h100x8x4", w->alloc, NULL, &a);

    THEN(st, tuck_cluster_read_text(text, strlen(text), "c", w->alloc, NULL, &b));
    THEN(st, tuck_graph_infer(w->g, TUCK_TRUST_ANNOTATIONS, NULL));
    THEN(st, tuck_cluster_for_graph(w->g, w->alloc, NULL, &c));
    tuck_cluster_free(a);
    tuck_cluster_free(b);
    tuck_cluster_free(c);
    return st;
}

static tuck_status profiles(struct world *w)
{
    static const char text[] =
        "{\"schema\": 1, \"unit\": \"ns\", \"nodes\": {\"y\": 5.0, \"z\": 6.0}}";
    tuck_profile *p = NULL;
    tuck_simulation *s = NULL;
    tuck_status st = tuck_profile_read_text(text, strlen(text), "p", w->alloc, NULL, &p);

    w->m.profile = p;
    THEN(st, tuck_graph_simulate(w->g, &w->m, NULL, &s));
    tuck_simulation_free(s);
    tuck_profile_free(p);
    return st;
}

static tuck_status costs(struct world *w)
{
    tuck_costs *c = NULL;
    tuck_status st = tuck_graph_costs(w->g, &w->m, NULL, &c);

    THEN(st, tuck_costs_print(c, NULL, text_drop, NULL));
    THEN(st, tuck_costs_print(c, &json, text_drop, NULL));
    THEN(st, tuck_costs_write_profile(c, NULL, text_drop, NULL));
    tuck_costs_free(c);
    return st;
}

static tuck_status cost_by_node(struct world *w)
{
    tuck_cluster *c = NULL;
    int64_t *ps = calloc(tuck_graph_id_end(w->g), sizeof(*ps));
    tuck_status st = tuck_graph_infer(w->g, TUCK_TRUST_ANNOTATIONS, NULL);

    THEN(st, tuck_cluster_preset("h100x8", NULL, NULL, &c));
    THEN(st, tuck_graph_cost(w->g, c, NULL, ps));
    THEN(st, tuck_profile_write(w->g, ps, text_drop, NULL));
    tuck_cluster_free(c);
    free(ps);
    return st;
}

/* ---- studies ---- */

static tuck_status simulate(struct world *w)
{
    tuck_simulation *s = NULL;
    tuck_status st = tuck_graph_simulate(w->g, &w->m, NULL, &s);

    THEN(st, tuck_simulation_print(s, NULL, text_drop, NULL));
    THEN(st, tuck_simulation_print(s, &json, text_drop, NULL));
    THEN(st, tuck_assumptions_print(tuck_simulation_assumptions(s), NULL, text_drop, NULL));
    tuck_simulation_free(s);
    return st;
}

static tuck_status compare(struct world *w)
{
    tuck_simulation *s = NULL, *t = NULL;
    tuck_diff *d = NULL;
    tuck_status st = tuck_graph_simulate(w->g, &w->m, NULL, &s);

    w->m.contention = TUCK_LINKS_SHARED;
    THEN(st, tuck_graph_simulate(w->g, &w->m, NULL, &t));
    THEN(st, tuck_simulation_diff(s, t, &d));
    THEN(st, tuck_diff_print(d, NULL, text_drop, NULL));
    THEN(st, tuck_diff_print(d, &json, text_drop, NULL));
    THEN(st, tuck_simulation_html(s, t, "t", text_drop, NULL));
    tuck_diff_free(d);
    tuck_simulation_free(s);
    tuck_simulation_free(t);
    return st;
}

static tuck_status draw(struct world *w)
{
    const char *label[] = {"now"};
    tuck_simulation *s = NULL;
    tuck_page *p = NULL;
    tuck_status st = tuck_graph_simulate(w->g, &w->m, NULL, &s);

    THEN(st, tuck_page_new("a title", w->alloc, &p));
    THEN(st, tuck_page_add(p, "graph", &s, label, 1));
    THEN(st, tuck_page_html(p, text_drop, NULL));
    THEN(st, tuck_page_trace(p, text_drop, NULL));
    tuck_page_free(p);
    tuck_simulation_free(s);
    return st;
}

static tuck_status explain(struct world *w)
{
    tuck_explain_options o = {.size = sizeof(o), .node = "gb", .subject = "step.txt"};
    tuck_explanation *x = NULL, *y = NULL;
    tuck_status st = tuck_graph_explain(w->g, &w->m, NULL, NULL, &x);

    THEN(st, tuck_explanation_print(x, NULL, text_drop, NULL));
    THEN(st, tuck_graph_explain(w->g, &w->m, &o, NULL, &y));
    THEN(st, tuck_explanation_print(y, NULL, text_drop, NULL));
    THEN(st, tuck_explanation_print(y, &json, text_drop, NULL));
    tuck_explanation_free(x);
    tuck_explanation_free(y);
    return st;
}

static tuck_status ranks(struct world *w)
{
    tuck_simulation *s = NULL;
    tuck_rank_simulation *r = NULL;
    tuck_status st = tuck_graph_set_group(w->g, "7", 8, NULL, NULL);

    THEN(st, tuck_graph_simulate(w->g, &w->m, NULL, &s));
    const tuck_rank rank = {s, "step.txt", -1};
    THEN(st, tuck_ranks_simulate(&rank, 1, NULL, NULL, &r));
    THEN(st, tuck_rank_simulation_print(r, NULL, text_drop, NULL));
    THEN(st, tuck_rank_simulation_print(r, &json, text_drop, NULL));
    tuck_rank_simulation_free(r);
    tuck_simulation_free(s);
    return st;
}

/* ---- passes ---- */

static tuck_status nothing(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    (void)ctx, (void)g, (void)diags;
    return TUCK_OK;
}

static tuck_status same_order(void *ctx, const tuck_problem *p, uint32_t *order, tuck_diags *diags)
{
    (void)ctx, (void)p, (void)order, (void)diags;
    return TUCK_OK;
}

static tuck_status run_passes(struct world *w)
{
    tuck_simulation *before = NULL, *after = NULL;
    tuck_run_options o = {.size = sizeof(o),
                          .machine = &w->m,
                          .judge = TUCK_JUDGE_RESULT,
                          .before_out = &before,
                          .after_out = &after};
    tuck_bucket_options rules = {.size = sizeof(rules)};
    tuck_pipeline *p = NULL;
    tuck_report *t = NULL;
    tuck_status st = tuck_pipeline_new(w->alloc, &p);

    THEN(st, tuck_pipeline_add(p, "deduplicate_wait_tensors", NULL, NULL));
    THEN(st, tuck_pipeline_add_bucket(p, "bucket_all_gather", "cap_mb=50:500", &rules, NULL));
    THEN(st, tuck_pipeline_add_text(p, "sink_waits", 10, "p", NULL));
    THEN(st, tuck_pipeline_append(p, "mine", nothing, NULL));
    THEN(st, tuck_pipeline_append_order(p, "mine_too", same_order, NULL));
    THEN(st, tuck_pipeline_run(p, w->g, &o, NULL, &t));
    bool ran = st == TUCK_OK; /* only then does the caller own the simulations */
    THEN(st, tuck_report_print(t, NULL, text_drop, NULL));
    THEN(st, tuck_report_print(t, &json, text_drop, NULL));
    tuck_report_free(t);
    if (ran) {
        tuck_simulation_free(before);
        tuck_simulation_free(after);
    }
    tuck_pipeline_free(p);
    return st;
}

static tuck_status optimize(struct world *w)
{
    tuck_simulation *before = NULL, *after = NULL;
    tuck_run_options o = {
        .size = sizeof(o), .machine = &w->m, .before_out = &before, .after_out = &after};
    tuck_gain gain;
    tuck_status st = tuck_graph_optimize(w->g, &o, NULL, &gain, NULL);

    if (st == TUCK_OK) {
        tuck_simulation_free(before);
        tuck_simulation_free(after);
    }
    return st;
}

/* A decision is made, written, read and applied to a copy. */
static tuck_status decide(struct world *w)
{
    static const char passes[] = "deduplicate_wait_tensors, bucket_all_reduce, list_overlap";
    tuck_decision *d = NULL, *again = NULL;
    tuck_run_options o = {.size = sizeof(o), .machine = &w->m, .judge = TUCK_JUDGE_RESULT};
    tuck_pipeline *p = NULL;
    tuck_graph *copy = NULL;
    struct text text = {0};
    char digest[TUCK_DIGEST_TEXT];
    tuck_status st = tuck_graph_copy(w->g, &copy);

    THEN(st, tuck_pipeline_parse(passes, strlen(passes), "p", w->alloc, NULL, &p));
    o.decision_out = &d;
    THEN(st, tuck_pipeline_run(p, w->g, &o, NULL, NULL));
    o.decision_out = NULL;
    THEN(st, tuck_decision_write(d, text_add, &text));
    THEN(st, tuck_decision_read_text(text.at, text.len, "d", w->alloc, NULL, &again));
    THEN(st, tuck_decision_apply(again, copy, &o, NULL, NULL));
    THEN(st, tuck_graph_sequence_digest(copy, &w->m, digest));
    THEN(st, tuck_graph_program_digest(copy, digest));
    tuck_decision_free(d);
    tuck_decision_free(again);
    tuck_pipeline_free(p);
    tuck_graph_free(copy);
    text_done(&text);
    return st;
}

/* ---- programs and schedules ---- */

static tuck_status programs(struct world *w)
{
    tuck_lower_options o = {.size = sizeof(o), .machine = &w->m};
    tuck_program *p = NULL, *again = NULL;
    tuck_torch_peak peak;
    struct text text = {0};
    tuck_status st = tuck_graph_lower(w->g, &o, NULL, &p);

    THEN(st, tuck_program_plan(p, NULL, NULL));
    THEN(st, tuck_program_print(p, NULL, text_drop, NULL));
    THEN(st, tuck_program_write(p, text_add, &text));
    THEN(st, tuck_program_read_text(text.at, text.len, "p", w->alloc, NULL, &again));
    THEN(st, tuck_program_apply(p, NULL, w->g));
    THEN(st, tuck_graph_torch_peak(w->g, &hint, 1, &peak));
    tuck_program_free(p);
    tuck_program_free(again);
    text_done(&text);
    return st;
}

static void keep_order(void *ctx, uint32_t *order, uint32_t n)
{
    (void)ctx, (void)order, (void)n;
}

static tuck_status schedules(struct world *w)
{
    tuck_lower_options o = {.size = sizeof(o), .machine = &w->m};
    tuck_program *p = NULL;
    tuck_problem *problem = NULL, *again = NULL;
    tuck_schedule *s = NULL;
    struct text text = {0};
    tuck_status st = tuck_graph_lower(w->g, &o, NULL, &p);

    THEN(st, tuck_program_problem(p, NULL, &problem));
    THEN(st, tuck_problem_write(problem, NULL, text_add, &text));
    THEN(st, tuck_problem_read_text(text.at, text.len, "p", w->alloc, NULL, &again));
    const tuck_problem *others[] = {again};
    tuck_schedule_options options = {.size = sizeof(options), .others = others, .n_others = 1};
    THEN(st, tuck_schedule_new(problem, &options, NULL, &s));
    THEN(st, tuck_schedule_run(s, "raise_comms,sink_waits", NULL));
    THEN(st, tuck_schedule_call(s, keep_order, NULL));
    THEN(st, tuck_schedule_print(s, NULL, text_drop, NULL));
    THEN(st, tuck_schedule_print(s, &json, text_drop, NULL));
    THEN(st, tuck_schedule_print_overlap(s, NULL, text_drop, NULL));
    THEN(st, tuck_schedule_write_problem(s, text_drop, NULL));
    tuck_schedule_free(s);
    tuck_problem_free(again);
    tuck_problem_free(problem);
    tuck_program_free(p);
    text_done(&text);
    return st;
}

/* ---- each of them ---- */

enum { MOST = 150 }; /* refused requests, spread over all of them */

/* Refuses request k, with `stay` also all later ones. Returns the number of requests. */
static size_t run_job(tuck_status (*run)(struct world *w), size_t k, bool stay)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    struct world w = {.alloc = &alloc};
    tuck_doc *doc = NULL;

    assert_int_equal(tuck_doc_read_text(step, strlen(step), "", &read, NULL, &doc), TUCK_OK);
    w.g = tuck_doc_graph(doc, 0);
    tuck_machine_init(&w.m);
    w.m.hints = &hint;
    w.m.n_hints = 1;
    tuck_graph_find(w.g, "x"); /* the table of names: nodes are found even without memory for it */
    size_t calls = f.calls;
    f.fail_at = k == 0 ? 0 : calls + k;
    f.stay = stay;
    tuck_status st = run(&w);
    calls = f.calls - calls;
    if (st != (f.failed ? TUCK_ENOMEM : TUCK_OK))
        fail_msg("request %zu of %zu: %s", k, calls, tuck_status_text(st));
    f.fail_at = 0;
    assert_int_equal(tuck_graph_lint(w.g, NULL), TUCK_OK);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("request %zu: %zu bytes leaked", k, f.live);
    return calls;
}

static void refuse_each(tuck_status (*run)(struct world *w))
{
    size_t calls = run_job(run, 0, false);
    size_t apart = getenv("TUCK_SOAK") ? 1 : calls / MOST + 1;

    assert_true(calls > 0);
    for (size_t k = 1; k <= calls; k += apart)
        run_job(run, k, k % 2 == 0);
}

#define JOBS(JOB)                                                                                  \
    JOB(tie)                                                                                       \
    JOB(traces)                                                                                    \
    JOB(know)                                                                                      \
    JOB(read_job)                                                                                  \
    JOB(inherit)                                                                                   \
    JOB(blocks)                                                                                    \
    JOB(clusters)                                                                                  \
    JOB(profiles)                                                                                  \
    JOB(costs)                                                                                     \
    JOB(cost_by_node)                                                                              \
    JOB(simulate)                                                                                  \
    JOB(compare)                                                                                   \
    JOB(draw)                                                                                      \
    JOB(explain)                                                                                   \
    JOB(ranks)                                                                                     \
    JOB(run_passes)                                                                                \
    JOB(optimize)                                                                                  \
    JOB(decide)                                                                                    \
    JOB(programs)                                                                                  \
    JOB(schedules)

#define AS_TEST(job)                                                                               \
    static void test_##job(void **state)                                                           \
    {                                                                                              \
        (void)state;                                                                               \
        refuse_each(job);                                                                          \
    }
#define AS_ROW(job) cmocka_unit_test(test_##job),

JOBS(AS_TEST)

int main(void)
{
    const struct CMUnitTest tests[] = {JOBS(AS_ROW)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
