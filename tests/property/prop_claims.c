/* What a report claims about a graph is what a simulation of the written text gives: random graphs
 * go through random pipelines of passes on graphs and on schedules and through
 * tuck_graph_optimize(). Every text is read back and simulated, and step time, exposed time and
 * peak must equal the report's. A pass on schedules must not make the step slower, either, unless
 * that was allowed. For a graph that is only scheduled, the problem is written and read back.
 *
 * TUCK_SEED=n repeats a run: the graph that failed is the first one of the run whose seed is
 * printed. TUCK_GRAPHS=n sets the number of graphs; TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "pass/pass_report.h"
#include "study/evaluate.h"
#include "support/random_graph.h"
#include "support/random_plan.h"

struct sums {
    size_t graphs, refused, claims, moved, faster;
};

struct case_of { /* what is tried on one graph */
    const struct random_graph *x;
    struct plan plan;
    enum mode { PIPELINE, OPTIMIZE, SCHEDULE } mode;
    tuck_cluster *cluster;
    bool symmetric; /* groups have symmetric memory */
};

/* ---- simulating a text ---- */

struct times {
    bool known;
    int64_t step, exposed, peak;
};

static void tell_groups(const struct case_of *c, tuck_graph *g)
{
    for (size_t i = 0; i < c->x->world.n_group; i++) {
        const struct sym_group *q = &c->x->group[i];
        int64_t ranks[RANDOM_RANKS];
        for (int k = 0; k < q->size; k++)
            ranks[k] = q->ranks[k];
        for (size_t k = 0; k < tuck_graph_group_count(g); k++)
            if (strcmp(tuck_graph_group_name(g, k), q->name) == 0)
                assert_int_equal(tuck_graph_set_group(g, q->name, q->size, ranks, NULL), TUCK_OK);
    }
    if (c->plan.knows_rank)
        assert_int_equal(tuck_graph_set_rank(g, 0, NULL), TUCK_OK);
}

static tuck_machine machine_of(const struct case_of *c)
{
    static const char *const everywhere[] = {"*"};

    return (tuck_machine){.size = sizeof(tuck_machine),
                          .symm_groups = everywhere,
                          .n_symm_groups = c->symmetric,
                          .hints = c->x->hint,
                          .n_hints = c->x->n_hint,
                          .cluster = c->cluster};
}

static struct times simulate(const struct case_of *c, const char *text)
{
    tuck_machine machine = machine_of(c);
    tuck_simulation *s = NULL;
    tuck_times t = {.step_ps = 0};
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);

    tell_groups(c, g);
    tuck_status st = tuck_graph_simulate(g, &machine, NULL, &s);
    if (st == TUCK_OK)
        tuck_simulation_times(s, &t);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
    return (struct times){st == TUCK_OK, t.step_ps, t.exposed_ps, t.peak_bytes};
}

/* ---- a pipeline ---- */

struct texts { /* before and after each step */
    char *at[2 * PLAN_STEPS + 32];
    size_t n;
};

static bool observe(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    struct texts *t = ctx;

    (void)pass;
    (void)step;
    (void)after;
    if (t->n == sizeof(t->at) / sizeof(*t->at))
        abort();
    t->at[t->n++] = graph_text(g);
    return true;
}

static bool differs(const char *pass, const char *what, int64_t claimed, int64_t found,
                    struct text *why)
{
    if (claimed == found)
        return false;
    char *s = NULL;
    if (asprintf(&s, "%s: %s: %lld is claimed, the text has %lld\n", what, pass, (long long)claimed,
                 (long long)found) < 0)
        abort();
    text_add(why, s, strlen(s));
    free(s);
    return true;
}

static bool is_free_to_slow(const struct pass_report *p)
{
    return strstr(p->options, "allow_more_exposed=true") != NULL ||
           strcmp(p->name, "gather_loops") == 0; /* it saves compute once loops are joined */
}

static bool check_pass(const struct case_of *c, const struct pass_report *p, const char *before,
                       const char *after, struct sums *sums, struct text *why)
{
    if (!p->scheduled)
        return true;
    struct times x = simulate(c, before), y = p->changed ? simulate(c, after) : x;
    if (!x.known || !y.known) {
        text_add(why, "unknown: a claim about what cannot be simulated\n", 48);
        return false;
    }
    sums->claims += 4;
    sums->moved += p->changed;
    sums->faster += y.step < x.step;
    if (y.step > x.step && !is_free_to_slow(p))
        return !differs(p->name, "slower", x.step, y.step, why);
    return !differs(p->name, "exposed before", p->exposed_before, x.exposed, why) &&
           !differs(p->name, "exposed after", p->exposed_after, y.exposed, why) &&
           !differs(p->name, "peak before", p->peak_before, x.peak, why) &&
           !differs(p->name, "peak after", p->peak_after, y.peak, why);
}

static bool check_pipeline(const struct case_of *c, tuck_graph *g, struct sums *sums,
                           struct text *why)
{
    struct texts t = {.n = 0};
    tuck_machine machine = machine_of(c);
    tuck_run_options o = {.size = sizeof(o),
                          .machine = &machine,
                          .order = c->plan.keep_order ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE,
                          .observe = observe,
                          .ctx = &t};
    char *steps = plan_text(&c->plan);
    tuck_pipeline *pipe = NULL;
    tuck_report *report = NULL;
    bool ok = true;

    assert_int_equal(tuck_pipeline_parse(steps, strlen(steps), "plan", NULL, NULL, &pipe), TUCK_OK);
    sums->refused += tuck_pipeline_run(pipe, g, &o, NULL, &report) != TUCK_OK;
    for (uint32_t i = 0; ok && i < report->pass.len && !report->pass.at[i].failed; i++)
        ok = check_pass(c, &report->pass.at[i], t.at[2 * i], t.at[2 * i + 1], sums, why);
    if (!ok)
        for (size_t i = 1; i < t.n; i += 2) {
            text_add(why, "--- after\n", 10);
            text_add(why, t.at[i], strlen(t.at[i]));
        }
    for (size_t i = 0; i < t.n; i++)
        free(t.at[i]);
    tuck_report_free(report);
    tuck_pipeline_free(pipe);
    free(steps);
    return ok;
}

/* ---- the default ---- */

static bool check_times(const tuck_times *t, struct times x, const char *when, struct text *why)
{
    return !differs("optimize", when, t->step_ps, x.step, why) &&
           !differs("optimize, exposed", when, t->exposed_ps, x.exposed, why) &&
           !differs("optimize, peak", when, t->peak_bytes, x.peak, why);
}

static bool check_optimize(const struct case_of *c, tuck_graph *g, const char *before,
                           struct sums *sums, struct text *why)
{
    tuck_machine machine = machine_of(c);
    tuck_run_options o = {.size = sizeof(o), .machine = &machine};
    tuck_report *report = NULL;
    tuck_gain gain;

    if (tuck_graph_optimize(g, &o, NULL, &gain, &report) != TUCK_OK) {
        sums->refused++;
        return true;
    }
    char *after = graph_text(g);
    struct times x = simulate(c, before), y = simulate(c, after);
    bool ok = check_times(&gain.before, x, "before", why) &&
              check_times(&gain.after, y, "after", why);
    if (ok && report->pass.len > 0) {
        const struct pass_report *last = &report->pass.at[report->pass.len - 1];
        ok = !differs(last->name, "last step", last->step_ps, y.step, why) &&
             !differs(last->name, "last peak", last->step_peak, y.peak, why);
    }
    if (!ok) {
        text_add(why, "--- after\n", 10);
        text_add(why, after, strlen(after));
    }
    sums->claims += 8;
    sums->faster += y.step < x.step;
    free(after);
    tuck_report_free(report);
    return ok;
}

/* ---- a schedule of a graph ---- */

/* The time and memory of a problem as written. */
static struct times read_problem(const char *text, size_t len)
{
    tuck_problem *p = NULL;
    tuck_schedule *s = NULL;

    assert_int_equal(tuck_problem_read_text(text, len, "problem", NULL, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_schedule_new(p, NULL, NULL, &s), TUCK_OK);
    struct times t = {true, 0, tuck_schedule_exposed_ps(s), tuck_schedule_peak(s)};
    tuck_schedule_free(s);
    tuck_problem_free(p);
    return t;
}

/* Copies made for a collective's node are next to it in every order that is found. */
static bool is_apart(const tuck_problem *p, const uint32_t *order)
{
    for (uint32_t i = 0, n = tuck_problem_op_count(p); i + 1 < n; i++) {
        const char *x = tuck_problem_op_name(p, order[i]), *clone = strstr(x, ".clone");
        const char *y = tuck_problem_op_name(p, order[i + 1]);
        size_t len = clone ? (size_t)(clone - x) : 0;
        if (clone != NULL && (strncmp(x, y, len) != 0 || (y[len] != '\0' && y[len] != '.')))
            return true;
    }
    return false;
}

static bool check_schedule(const struct case_of *c, tuck_graph *g, struct sums *sums,
                           struct text *why)
{
    tuck_machine machine = machine_of(c);
    tuck_lower_options o = {.size = sizeof(o), .machine = &machine};
    tuck_program *program = NULL;
    tuck_problem *p = NULL;
    tuck_schedule *s = NULL;
    struct text written = {NULL, 0, 0};

    if (tuck_graph_lower(g, &o, NULL, &program) != TUCK_OK) {
        sums->refused++;
        return true;
    }
    char *steps = plan_text(&c->plan);
    assert_int_equal(tuck_program_problem(program, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_schedule_new(p, NULL, NULL, &s), TUCK_OK);
    bool ok = true, ran = tuck_schedule_run(s, steps, NULL) == TUCK_OK;
    if (ran) {
        tuck_problem_write(p, tuck_schedule_order(s), text_add, &written);
        struct times t = read_problem(written.at, written.len);
        sums->claims += 2;
        ok = !differs("schedule", "exposed", tuck_schedule_exposed_ps(s), t.exposed, why) &&
             !differs("schedule", "peak", tuck_schedule_peak(s), t.peak, why) &&
             !differs("schedule", "copies apart", 0, is_apart(p, tuck_schedule_order(s)), why);
    }
    sums->refused += !ran;
    text_done(&written);
    free(steps);
    tuck_schedule_free(s);
    tuck_problem_free(p);
    tuck_program_free(program);
    return ok;
}

/* True: no error. */
static bool check_text(struct case_of *c, const char *text, struct sums *sums, struct text *why)
{
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);

    tell_groups(c, g);
    assert_int_equal(tuck_graph_infer(g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_for_graph(g, NULL, NULL, &c->cluster), TUCK_OK);
    bool ok = c->mode == OPTIMIZE   ? check_optimize(c, g, text, sums, why)
              : c->mode == SCHEDULE ? check_schedule(c, g, sums, why)
                                    : check_pipeline(c, g, sums, why);
    tuck_cluster_free(c->cluster);
    tuck_doc_free(doc);
    return ok;
}

/* ---- shrinking a failure ---- */

static bool still_fails(struct case_of *c, char **text, char *other)
{
    struct sums sums = {0};
    struct text why = {NULL, 0, 0};
    bool fails = !check_text(c, other, &sums, &why);

    text_done(&why);
    free(fails ? *text : other);
    *text = fails ? other : *text;
    return fails;
}

/* Without the nth node from the end, or without the nth result. */
static char *less(const char *text, size_t nth, bool result)
{
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_node n = tuck_graph_last(g), out = tuck_graph_output(g);
    bool done = false;

    if (result) {
        const tuck_value *v = tuck_node_arg(g, out, 0);
        tuck_args *a = tuck_args_new(g);
        tuck_args_open(a, TUCK_V_TUPLE);
        for (size_t i = 0; i < tuck_value_len(v); i++)
            if (i != nth)
                tuck_args_value(a, tuck_value_item(v, i));
        tuck_args_close(a);
        done = nth < tuck_value_len(v) && tuck_node_set_args(g, out, a) == TUCK_OK;
        tuck_args_free(a);
    } else {
        while (nth-- > 0 && !tuck_is_none(n))
            n = tuck_graph_prev(g, n);
        done = !tuck_is_none(n) && tuck_node_kind(g, n) != TUCK_OUTPUT &&
               tuck_node_use_count(g, n) == 0 && tuck_node_erase(g, n) == TUCK_OK;
    }
    char *out_text = done ? graph_text(g) : NULL;
    tuck_doc_free(doc);
    return out_text;
}

static void shrink(struct case_of *c, char **text)
{
    bool smaller = true;

    while (smaller) {
        smaller = false;
        for (int i = c->plan.n - 1; i >= 0 && c->plan.n > 1; i--) {
            struct case_of d = *c;
            memmove(d.plan.step[i], d.plan.step[i + 1],
                    sizeof(d.plan.step[0]) * (size_t)(d.plan.n - i - 1));
            d.plan.n--;
            if (still_fails(&d, text, strdup(*text))) {
                *c = d;
                smaller = true;
            }
        }
        for (int result = 1; result >= 0; result--)
            for (size_t i = 0; i < 60; i++) {
                char *other = less(*text, i, result == 1);
                if (other != NULL && still_fails(c, text, other))
                    smaller = true;
            }
    }
}

static void check_or_fail(struct case_of *c, uint64_t seed, struct sums *sums)
{
    struct text why = {NULL, 0, 0};

    text_clear(&why);
    if (check_text(c, c->x->text[0], sums, &why)) {
        text_done(&why);
        return;
    }
    char *text = strdup(c->x->text[0]);
    shrink(c, &text);
    text_clear(&why);
    check_text(c, text, sums, &why);
    char *steps = plan_text(&c->plan);
    fprintf(stderr, "TUCK_SEED=%llu: %s\n--- before\n%s--- %s\n", (unsigned long long)seed,
            c->mode == OPTIMIZE ? "optimize" : steps, text, why.at);
    free(steps);
    free(text);
    text_done(&why);
    fail_msg("a report claims what is not so: TUCK_SEED=%llu", (unsigned long long)seed);
}

/* ---- many ---- */

static void claims_are_true(void **state)
{
    uint64_t seed = seed_of("claims");
    struct sums sums = {0};
    size_t n = getenv("TUCK_GRAPHS") ? strtoull(getenv("TUCK_GRAPHS"), NULL, 0) : rounds(2000);

    (void)state;
    for (; sums.graphs < n; sums.graphs++) {
        struct rng rng = {seed + sums.graphs};
        struct random_graph x;
        struct case_of c = {.x = &x};

        random_graph_make(&rng, &x);
        bool schedules = rng_below(&rng, 4) > 0;
        random_plan(&rng, x.text[0], schedules, &c.plan);
        uint32_t mode = rng_below(&rng, 10);
        c.symmetric = rng_below(&rng, 2) != 0;
        c.mode = mode == 0 ? OPTIMIZE : mode == 1 ? SCHEDULE : PIPELINE;
        check_or_fail(&c, seed + sums.graphs, &sums);
        random_graph_free(&x);
    }
    printf("# %zu graphs, %zu claims, %zu orders changed, %zu steps faster, %zu runs refused\n",
           sums.graphs, sums.claims, sums.moved, sums.faster, sums.refused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(claims_are_true)};

    return cmocka_run_group_tests_name("claims", tests, NULL, NULL);
}
