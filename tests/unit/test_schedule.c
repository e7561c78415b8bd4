/* Schedulers against PyTorch's recorded answers: 21 problems from compiled steps with 18 runs each,
 * and 500 random ones with six passes each (tests/schedule/README.md). Order, peak and statistics
 * must be the same, to the last bit. Each problem goes through its file form first. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/pass_table.h"
#include "plan/liveness.h"
#include "schedule/align.h"
#include "schedule/peak_orders.h"
#include "support/problems.h"

/* ---- files ---- */

static void do_write(void *ctx)
{
    void **x = ctx;

    problem_write(x[0], NULL, x[1]);
}

static char *problem_text(struct problem *p)
{
    struct buf b;
    void *x[] = {p, &b};

    buf_init(&b, &p->mem);
    assert_true(mem_guard(&p->mem, do_write, x));
    char *text = strndup(b.at, b.len);
    buf_destroy(&b);
    return text;
}

static struct problem *again(struct problem *p)
{
    char *text = problem_text(p), *second;
    tuck_diags *d = tuck_diags_new(NULL);
    struct problem *q = NULL;

    if (problem_read_text(text, strlen(text), "t.json", NULL, d, &q) != TUCK_OK)
        fail_msg("%s", tuck_diags_at(d, 0)->message);
    second = problem_text(q);
    assert_string_equal(text, second);
    assert_int_equal(p->n_op, q->n_op);
    assert_int_equal(p->n_buf, q->n_buf);
    assert_memory_equal(p->runtime, q->runtime, p->n_op * sizeof(double));
    assert_memory_equal(p->dep_at, q->dep_at, ((size_t)p->n_op + 1) * sizeof(uint32_t));
    assert_memory_equal(p->dep, q->dep, p->dep_at[p->n_op] * sizeof(uint32_t));
    assert_memory_equal(p->succ, q->succ, p->succ_at[p->n_buf] * sizeof(uint32_t));
    assert_memory_equal(p->order, q->order, p->order_at[p->n_buf] * sizeof(uint32_t));
    assert_memory_equal(p->size_free, q->size_free, p->n_buf * sizeof(int64_t));
    tuck_diags_free(d);
    free(text);
    free(second);
    problem_free(p);
    return q;
}

/* ---- recorded runs ---- */

static void set_all(struct schedule_options *o, const json_t *set)
{
    const char *key;
    json_t *v;
    char text[256], why[160];

    json_object_foreach((json_t *)(uintptr_t)set, key, v)
    {
        char *value = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        snprintf(text, sizeof(text), "%s=%s", key, value);
        free(value);
        if (!schedule_set(o, text, why))
            fail_msg("%s", why);
    }
}

static void check_stats(const char *name, const struct schedule *s, const json_t *run)
{
    const struct schedule_report *r = &s->report.at[s->report.len - 1];
    const json_t *want = json_object_get(run, "s");
    const char *passes = json_string_value(json_object_get(run, "p"));

    if (json_is_null(want)) /* PyTorch keeps none */
        return;
    if (json_array_size(want) != r->n_stat)
        fail_msg("%s, %s: %u statistics", name, passes, r->n_stat);
    for (uint32_t i = 0; i < r->n_stat; i++) {
        const json_t *row = json_array_get(want, i);
        const struct schedule_stat *x = &r->stat[i];
        double number[] = {x->op,        x->moves,           x->grouped,      x->comm_time,
                           x->comp_time, x->initial_exposed, x->final_exposed};
        for (size_t k = 0; k < 7; k++)
            if (number[k] != json_number_value(json_array_get(row, k)))
                fail_msg("%s, %s, op%u: number %zu is %.17g", name, passes, x->op, k, number[k]);
        if (strcmp(schedule_limit_name(x->limit), json_string_value(json_array_get(row, 7))) != 0)
            fail_msg("%s, %s, op%u: stopped by %s", name, passes, x->op,
                     schedule_limit_name(x->limit));
    }
}

static void check_run(const char *name, const struct problem *p, const json_t *line,
                      const json_t *run)
{
    const char *passes = json_string_value(json_object_get(run, "p"));
    const json_t *order = json_object_get(run, "o"), *deps = json_object_get(run, "d");
    struct schedule_options o;
    struct pipeline steps;
    struct schedule s;

    schedule_defaults(&o, true);
    set_all(&o, json_object_get(line, "set"));
    set_all(&o, json_object_get(run, "set"));
    assert_true(schedule_begin(&s, p, &o));
    pipeline_init(&steps, &all_passes, NULL);
    assert_int_equal(pipeline_parse(&steps, passes, strlen(passes), "t", NULL), TUCK_OK);
    assert_int_equal(schedule_steps(&s, &steps, NULL), TUCK_OK);
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t want = json_array_size(order)
                            ? (uint32_t)json_integer_value(json_array_get(order, i))
                            : i;
        if (s.order[i] != want)
            fail_msg("%s, %s: op%u at place %u, not op%u", name, passes, s.order[i], i, want);
    }
    if (slow_peak(p, s.order) != json_integer_value(json_object_get(run, "k")))
        fail_msg("%s, %s: peak", name, passes);
    assert_int_equal(s.report.at[s.report.len - 1].peak_after,
                     json_integer_value(json_object_get(run, "k")));
    check_stats(name, &s, run);
    if (deps != NULL) {
        assert_int_equal(s.dep.len, json_array_size(deps));
        for (uint32_t i = 0; i < s.dep.len; i++) {
            const json_t *row = json_array_get(deps, i);
            assert_int_equal(s.dep.at[i].op, json_integer_value(json_array_get(row, 0)));
            assert_int_equal(s.dep.at[i].buf, json_integer_value(json_array_get(row, 1)));
        }
    }
    pipeline_destroy(&steps);
    schedule_end(&s);
}

static void each_case(const char *path, void (*fn)(const char *, struct problem *, const json_t *))
{
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;

    assert_non_null(f);
    while (getline(&line, &cap, f) > 0) {
        json_t *c = json_loads(line, 0, NULL);
        assert_non_null(c);
        struct problem *p = again(recorded_problem(c));
        fn(json_string_value(json_object_get(c, "name")), p, c);
        problem_free(p);
        json_decref(c);
    }
    free(line);
    fclose(f);
}

static size_t n_runs;

static void check_case(const char *name, struct problem *p, const json_t *line)
{
    size_t i;
    json_t *run;

    json_array_foreach(json_object_get(line, "runs"), i, run)
    {
        check_run(name, p, line, run);
        n_runs++;
    }
}

static void captured(void **state)
{
    (void)state;
    n_runs = 0;
    each_case("tests/schedule/captured.jsonl", check_case);
    assert_int_equal(n_runs, 378);
}

static void random_runs(void **state)
{
    (void)state;
    n_runs = 0;
    each_case("tests/schedule/random.jsonl", check_case);
    assert_int_equal(n_runs, 3000);
}

static void simple_overlap(void **state)
{
    (void)state;
    n_runs = 0;
    each_case("tests/schedule/simple.jsonl", check_case);
    assert_int_equal(n_runs, 300);
}

/* ---- our own passes on the same problems ---- */

/* What our own passes guarantee and this order breaks, or NULL. */
static const char *broken_promise(const struct schedule *s, const struct pass *pass)
{
    const struct problem *p = s->p;
    const struct schedule_report *r = &s->report.at[s->report.len - 1];
    uint32_t *as_is = calloc((size_t)p->n_op + 1, sizeof(*as_is));
    const char *why = order_fault(p, s->order, order_rule_of(pass));
    int64_t peak = slow_peak(p, s->order), exposed = slow_exposed(p, s->order);

    for (uint32_t i = 0; i < p->n_op; i++)
        as_is[i] = i;
    if (why == NULL && (peak != r->peak_after || exposed != r->exposed_after))
        why = "the report says something else";
    if (why == NULL && peak > slow_peak(p, as_is))
        why = "the peak is higher";
    if (why == NULL && exposed > slow_exposed(p, as_is))
        why = "more is exposed";
    free(as_is);
    return why;
}

static const struct pass *const moving[] = {
    &pass_raise_comms,
    &pass_sink_waits,
    &pass_reorder_compute_for_overlap,
    &pass_list_overlap,
    &pass_improve_order,
    &pass_issue_late,
    &pass_reorder_communication_preserving_peak_memory,
    &pass_sink_waits_iterative,
    &pass_simple_overlap,
    &pass_enforce_comm_ordering_for_fsdp,
    &pass_reorder_for_peak_memory,
};

static void check_own(const char *name, struct problem *p, const json_t *line)
{
    struct schedule_options o;
    struct schedule s;

    (void)line;
    schedule_defaults(&o, false);
    for (size_t i = 0; i < sizeof(moving) / sizeof(*moving); i++) {
        run_pass(&s, p, &o, moving[i]);
        const char *why = broken_promise(&s, moving[i]);
        if (why != NULL)
            fail_msg("%s, %s: %s", name, moving[i]->name, why);
        n_runs += s.report.at[0].displaced > 0;
        schedule_end(&s);
    }
}

static void own_ways(void **state)
{
    (void)state;
    n_runs = 0;
    each_case("tests/schedule/captured.jsonl", check_own);
    each_case("tests/schedule/random.jsonl", check_own);
    assert_true(n_runs > 500); /* something must have moved */
}

/* ---- options ---- */

static void slips_can_be_left_out(void **state)
{
    struct schedule_options o;
    char why[160];

    (void)state;
    for (size_t i = 0; i < n_schedule_slips; i++) {
        char text[64];
        snprintf(text, sizeof(text), "torch,-%s", schedule_slip_table[i].name);
        assert_true(schedule_compat(&o, text, why));
        assert_int_equal(o.slips, SLIP_ALL & ~(unsigned)schedule_slip_table[i].slip);
    }
    assert_true(schedule_compat(&o, "torch", why));
    assert_int_equal(o.slips, SLIP_ALL);
    assert_false(schedule_compat(&o, "torch,-stale-peak", why));
    assert_false(schedule_compat(&o, "tensorflow", why));
    assert_false(schedule_set(&o, "reorder_iterative_peak_memory_budget=much", why));
    assert_string_equal(
        why,
        "reorder_iterative_peak_memory_budget must be a number from 0 on, or None, found 'much'");
}

/* ---- runtimes of all ranks ---- */

struct rank {
    pthread_t thread;
    tuck_transport transport;
    const struct problem *p;
    double times; /* this rank's runtimes are this many times the problem's */
    double got;
    size_t warnings;
};

static double scaled(void *ctx, const struct problem *p, uint32_t op)
{
    return p->runtime[op] * *(double *)ctx;
}

static void *one_rank(void *ctx)
{
    struct rank *r = ctx;
    struct schedule_options o;
    struct schedule s;
    tuck_diags *d = tuck_diags_new(NULL);

    schedule_defaults(&o, false);
    if (!schedule_begin(&s, r->p, &o))
        return NULL;
    schedule_estimate_runtimes(&s, scaled, &r->times);
    for (int round = 0; round < 3; round++)
        if (schedule_align(&s, &r->transport, d) != TUCK_OK)
            return NULL;
    r->got = s.runtime[0] / r->p->runtime[0];
    r->warnings = tuck_diags_count(d);
    tuck_diags_free(d);
    schedule_end(&s);
    return r;
}

static void align_ranks(const struct problem *const *p, uint32_t n, double want, size_t warnings)
{
    struct local_ranks *l = local_ranks_new(n, NULL);
    struct rank rank[8];
    void *done;

    for (uint32_t i = 0; i < n; i++) {
        rank[i] = (struct rank){
            .transport = local_ranks_transport(l, i), .p = p[i], .times = 1 + (i * 3) % n};
        assert_int_equal(pthread_create(&rank[i].thread, NULL, one_rank, &rank[i]), 0);
    }
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(pthread_join(rank[i].thread, &done), 0);
        assert_non_null(done);
        assert_true(rank[i].got == (want > 0 ? want : rank[i].times));
        assert_int_equal(rank[i].warnings, warnings);
    }
    local_ranks_free(l);
}

static void medians_of_ranks(void **state)
{
    struct problem *a = layered_problem(60, false), *b = layered_problem(100, false);
    const struct problem *same[] = {a, a, a, a}, *other[] = {a, b};

    (void)state;
    align_ranks(same, 4, 2, 0); /* 1, 2, 3, 4 times: the lower of the two in the middle */
    align_ranks(same, 1, 1, 0);
    align_ranks(other, 2, 0, 3); /* different programs: each keeps its own */
    problem_free(a);
    problem_free(b);
}

/* ---- no memory ---- */

static tuck_status read_and_run(const char *text, const tuck_allocator *alloc, const char *passes)
{
    struct problem *p = NULL;
    struct schedule_options o;
    struct schedule s;
    struct pipeline steps;
    tuck_status st = problem_read_text(text, strlen(text), "t", alloc, NULL, &p);

    if (st != TUCK_OK)
        return st;
    schedule_defaults(&o, false);
    st = TUCK_ENOMEM;
    if (schedule_begin(&s, p, &o)) {
        pipeline_init(&steps, &all_passes, NULL);
        st = pipeline_parse(&steps, passes, strlen(passes), "t", NULL);
        if (st == TUCK_OK)
            st = schedule_steps(&s, &steps, NULL);
        assert_null(order_fault(p, s.order, ORDER_IN_GROUPS)); /* an order in any case */
        pipeline_destroy(&steps);
        schedule_end(&s);
    }
    problem_free(p);
    return st;
}

static void every_allocation_fails_once(void **state)
{
    static const char passes[] =
        "decide_global_ordering_of_comms,raise_comms,reorder_communication_preserving_peak_memory,"
        "sink_waits_iterative,simple_overlap,enforce_comm_ordering_for_fsdp,reorder_for_peak_"
        "memory";
    struct problem *p = layered_problem(60, false);
    char *text = problem_text(p);

    (void)state;
    for (size_t i = 1;; i++) {
        struct faulty f = {.fail_at = i};
        tuck_allocator alloc = faulty_allocator(&f);
        tuck_status st = read_and_run(text, &alloc, passes);

        assert_int_equal(f.live, 0);
        if (!f.failed) {
            assert_int_equal(st, TUCK_OK);
            break;
        }
        assert_int_equal(st, TUCK_ENOMEM);
    }
    free(text);
    problem_free(p);
}

/* ---- the public interface ---- */

static double same_for_all(void *ctx, uint32_t op)
{
    (void)op;
    return *(double *)ctx;
}

static void backwards(void *ctx, uint32_t *order, uint32_t n)
{
    (void)ctx;
    for (uint32_t i = 0; i < n / 2; i++) {
        uint32_t x = order[i];
        order[i] = order[n - 1 - i];
        order[n - 1 - i] = x;
    }
}

static void as_it_was(void *ctx, uint32_t *order, uint32_t n)
{
    memcpy(order, ctx, n * sizeof(*order));
}

static void public_interface(void **state)
{
    struct problem *made = layered_problem(60, false);
    char *text = problem_text(made);
    const char *set[] = {"reorder_iterative_peak_memory_budget=1"};
    double one = 1000;
    tuck_schedule_options o = {
        .size = sizeof(o), .set = set, .n_set = 1, .estimate = same_for_all, .ctx = &one};
    tuck_schedule_options bad = {.size = sizeof(bad), .compat = "torch,-nothing"};
    tuck_diags *d = tuck_diags_new(NULL);
    struct text out = {0};
    tuck_problem *p;
    tuck_schedule *s;

    (void)state;
    assert_int_equal(tuck_problem_read_text(text, strlen(text), "t", NULL, d, &p), TUCK_OK);
    assert_int_equal(tuck_problem_op_count(p), made->n_op);
    assert_string_equal(tuck_problem_op_name(p, 0), "cast0");
    assert_int_equal(tuck_schedule_new(p, &bad, d, &s), TUCK_EINVAL);
    assert_int_equal(tuck_diags_errors(d), 1);
    assert_int_equal(tuck_schedule_new(p, &o, d, &s), TUCK_OK);
    int64_t before = tuck_schedule_exposed_ps(s);
    uint32_t *first = malloc(made->n_op * sizeof(*first));
    memcpy(first, tuck_schedule_order(s), made->n_op * sizeof(*first));
    assert_int_equal(
        tuck_schedule_run(s, "reorder_communication_preserving_peak_memory,sink_waits", d),
        TUCK_OK);
    assert_true(tuck_schedule_exposed_ps(s) < before);
    assert_int_equal(tuck_schedule_run(s, "sink_wait", d), TUCK_EINVAL);
    int64_t now = tuck_schedule_exposed_ps(s);
    assert_int_equal(tuck_schedule_call(s, backwards, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_schedule_exposed_ps(s), now);
    tuck_print_options how;
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    assert_int_equal(tuck_schedule_print(s, &how, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "sink_waits"));
    assert_int_equal(tuck_schedule_call(s, as_it_was, first), TUCK_OK);
    assert_int_equal(tuck_schedule_exposed_ps(s), before);
    text_clear(&out);
    assert_int_equal(tuck_problem_write(p, NULL, text_add, &out), TUCK_OK);
    assert_string_equal(out.at, text);
    text_done(&out);
    free(first);
    tuck_schedule_free(s);
    tuck_problem_free(p);
    tuck_diags_free(d);
    free(text);
    problem_free(made);
}

/* Rank 0 of three; both others take twice as long. */
static const tuck_estimates *twice_as_long(void *ctx, uint32_t rank, const double *mine, uint32_t n)
{
    static tuck_estimates row[3];
    double *theirs = ctx;

    for (uint32_t i = 0; i < n; i++)
        theirs[i] = 2 * mine[i];
    row[rank] = (tuck_estimates){mine, n};
    row[1] = row[2] = (tuck_estimates){theirs, n};
    return row;
}

static const tuck_estimates *unreachable(void *ctx, uint32_t rank, const double *mine, uint32_t n)
{
    (void)ctx, (void)rank, (void)mine, (void)n;
    return NULL;
}

static void ranks_of_a_caller(void **state)
{
    const char pass[] = "align_runtime_estimations_across_all_distributed_ranks";
    struct problem *made = layered_problem(60, false);
    char *text = problem_text(made);
    double *theirs = calloc(made->n_op, sizeof(*theirs));
    tuck_transport t = {.ctx = theirs, .n_rank = 3, .gather = twice_as_long};
    tuck_schedule_options o = {.size = sizeof(o), .transport = &t};
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_problem *p;
    tuck_schedule *s;

    (void)state;
    assert_int_equal(tuck_problem_read_text(text, strlen(text), "t", NULL, d, &p), TUCK_OK);
    assert_int_equal(tuck_schedule_new(p, &o, d, &s), TUCK_OK);
    int64_t before = tuck_schedule_exposed_ps(s);
    assert_int_equal(tuck_schedule_run(s, pass, d), TUCK_OK);
    assert_int_equal(tuck_schedule_exposed_ps(s), 2 * before);
    assert_int_equal(tuck_schedule_run(s, pass, d), TUCK_OK); /* asked once */
    assert_int_equal(tuck_schedule_exposed_ps(s), 2 * before);
    tuck_schedule_free(s);
    t.gather = unreachable;
    assert_int_equal(tuck_schedule_new(p, &o, d, &s), TUCK_OK);
    assert_int_equal(tuck_schedule_run(s, pass, d), TUCK_EIO);
    tuck_schedule_free(s);
    tuck_problem_free(p);
    tuck_diags_free(d);
    free(theirs);
    free(text);
    problem_free(made);
}

/* ---- answers for tests/torch/test_schedule.py: a case a line in, an answer a line out ---- */

static json_t *stat_rows(const struct schedule *s)
{
    json_t *all = json_object();
    const struct schedule_report *r = s->report.len ? &s->report.at[s->report.len - 1] : NULL;

    for (uint32_t i = 0; r != NULL && i < r->n_stat; i++) {
        const struct schedule_stat *x = &r->stat[i];
        json_object_set_new(all, problem_name(s->p, x->op),
                            json_pack("[iiffffs]", (int)x->moves, (int)x->grouped, x->comm_time,
                                      x->comp_time, x->initial_exposed, x->final_exposed,
                                      schedule_limit_name(x->limit)));
    }
    return all;
}

static json_t *dep_rows(const struct schedule *s)
{
    const struct problem *p = s->p;
    json_t *all = json_object();

    for (uint32_t x = 0; x < p->n_op; x++) {
        json_t *list = json_array();
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++)
            json_array_append_new(list, json_pack("[sb]", problem_buf_name(p, p->dep[d]),
                                                  p->dep_flags[d] & PROBLEM_FAKE));
        for (uint32_t i = 0; i < s->dep.len; i++)
            if (s->dep.at[i].op == x)
                json_array_append_new(list,
                                      json_pack("[sb]", problem_buf_name(p, s->dep.at[i].buf), 1));
        json_object_set_new(all, problem_name(p, x), list);
    }
    return all;
}

static void do_peak_order(void *ctx)
{
    void **x = ctx;
    struct schedule *s = x[0];

    *(bool *)x[2] = peak_order(s, *(enum peak_method *)x[1], s->order);
}

static bool answer_peak(struct schedule *s, const char *name)
{
    static const char *const names[] = {"lpmf", "bfs", "dfs"};
    bool fine = false;

    for (int m = 0; m < 3; m++)
        if (strcmp(name, names[m]) == 0) {
            enum peak_method method = (enum peak_method)m;
            void *x[] = {s, &method, &fine};
            return mem_guard(&s->mem, do_peak_order, x) && fine;
        }
    return false;
}

static bool answer_passes(struct schedule *s, const json_t *passes)
{
    struct pipeline steps;
    char text[1024] = "";
    size_t i;
    json_t *v;

    json_array_foreach(passes, i, v)
    {
        if (strlen(json_string_value(v)) <= 4)
            return answer_peak(s, json_string_value(v));
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s", i ? "," : "",
                 json_string_value(v));
    }
    pipeline_init(&steps, &all_passes, NULL);
    bool fine = pipeline_parse(&steps, text, strlen(text), "t", NULL) == TUCK_OK &&
                schedule_steps(s, &steps, NULL) == TUCK_OK;
    pipeline_destroy(&steps);
    return fine;
}

static bool answer(const json_t *c)
{
    char *text = json_dumps(json_object_get(c, "problem"), JSON_REAL_PRECISION(17)), why[160];
    struct schedule_options o;
    struct schedule s;
    struct problem *p;
    tuck_diags *d = tuck_diags_new(NULL);
    const char *key, *broken;
    json_t *v;
    bool own = json_is_true(json_object_get(c, "own"));

    if (problem_read_text(text, strlen(text), "case", NULL, d, &p) != TUCK_OK) {
        fprintf(stderr, "%s\n", tuck_diags_at(d, 0)->message);
        return false;
    }
    schedule_defaults(&o, !own);
    json_object_foreach(json_object_get(c, "set"), key, v)
    {
        char *value = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)), option[256];
        snprintf(option, sizeof(option), "%s=%s", key, value);
        free(value);
        if (!schedule_set(&o, option, why))
            return false;
    }
    if (!schedule_begin(&s, p, &o) || !answer_passes(&s, json_object_get(c, "passes")))
        return false;
    json_t *out = json_object(), *order = json_array();
    for (uint32_t i = 0; i < p->n_op; i++)
        json_array_append_new(order, json_string(problem_name(p, s.order[i])));
    json_object_set_new(out, "order", order);
    json_object_set_new(out, "peak", json_integer(slow_peak(p, s.order)));
    json_object_set_new(out, "stats", stat_rows(&s));
    if (own && (broken = broken_promise(&s, NULL)) != NULL)
        json_object_set_new(out, "broken", json_string(broken));
    if (json_is_true(json_object_get(c, "deps")))
        json_object_set_new(out, "deps", dep_rows(&s));
    char *line = json_dumps(out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    puts(line);
    free(line);
    json_decref(out);
    schedule_end(&s);
    problem_free(p);
    tuck_diags_free(d);
    free(text);
    return true;
}

static int answer_all(void)
{
    char *line = NULL;
    size_t cap = 0;
    bool fine = true;

    while (fine && getline(&line, &cap, stdin) > 0) {
        json_t *c = json_loads(line, 0, NULL);
        fine = c != NULL && answer(c);
        json_decref(c);
    }
    free(line);
    return !fine;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--answer") == 0)
        return answer_all();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(captured),
        cmocka_unit_test(random_runs),
        cmocka_unit_test(simple_overlap),
        cmocka_unit_test(own_ways),
        cmocka_unit_test(slips_can_be_left_out),
        cmocka_unit_test(medians_of_ranks),
        cmocka_unit_test(every_allocation_fails_once),
        cmocka_unit_test(public_interface),
        cmocka_unit_test(ranks_of_a_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
