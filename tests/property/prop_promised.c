/* What a search promises against what is written: the time and the peak of a decision, and of an
 * order that was found on the schedule problem alone, beside a simulation of the text that is
 * written, read again. Decisions that only order must be equal, to the picosecond and the byte; of
 * those with buckets 95 % must be within a thousandth and all within a hundredth. Of orders of the
 * problem 95 % must be equal: which copies collectives need depends on the order, and the problem has
 * those of the graph as it came. The distribution is printed.
 *
 * Random graphs, and graphs of tests/graphs; `make test` takes a sample of those, TUCK_SOAK=1 all
 * and ten times as many random ones. TUCK_SEED=n repeats a run from its first graph. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/random_graph.h"

#ifdef TUCK_STRESS /* it takes ten times as long there */
enum { SAMPLE = 30, GRAPHS = 60 };
#else
enum { SAMPLE = 6, GRAPHS = 300 };
#endif
enum { TAKEN_AS = 512 };

struct step {
    const char *name;
    const char *path;             /* of a file with a side-car; or */
    const struct random_graph *x; /* a random graph */
    tuck_machine machine;
    tuck_graph *g; /* as it came */
};

struct promise {
    int64_t ps, bytes; /* ps: of a step or, of an order, exposed */
};

static struct sums {
    size_t n, exact, near, above; /* near: within a thousandth, above: beyond a hundredth */
    double worst;
} orders, buckets, on_problem;

static size_t kept; /* orders that the text cannot express: the graph stays as it came */

static void tell(const struct step *s, tuck_graph *g)
{
    if (s->x != NULL)
        random_graph_tell(s->x, 0, true, g);
    else
        assert_int_equal(tuck_graph_read_sidecar(g, s->path, -1, NULL), TUCK_OK);
}

/* The text of g, read again. */
static tuck_doc *written(const struct step *s, tuck_graph *g)
{
    assert_int_equal(tuck_graph_remember(g), TUCK_OK);
    char *text = graph_text(g);
    tuck_doc *doc = read_or_die(text);

    tell(s, tuck_doc_graph(doc, 0));
    free(text);
    return doc;
}

static bool simulate(const struct step *s, tuck_graph *g, tuck_times *out)
{
    tuck_doc *doc = written(s, g);
    tuck_simulation *x = NULL;
    bool ok = tuck_graph_simulate(tuck_doc_graph(doc, 0), &s->machine, NULL, &x) == TUCK_OK;

    if (ok)
        tuck_simulation_times(x, out);
    tuck_simulation_free(x);
    tuck_doc_free(doc);
    return ok;
}

static double share(int64_t promised, int64_t found)
{
    return promised == found ? 0 : fabs((double)found / (double)promised - 1);
}

enum must { EQUAL, NEAR, ANY };

static void compare(const struct step *s, const char *what, enum must must, struct sums *sums,
                    struct promise p, struct promise found)
{
    double off = fmax(share(p.ps, found.ps), share(p.bytes, found.bytes));

    sums->n++;
    sums->exact += off == 0;
    sums->near += off <= 0.001;
    sums->above += off > 0.01;
    sums->worst = fmax(sums->worst, off);
    if (must == EQUAL ? off != 0 : must == NEAR && off > 0.01) {
        char *text = graph_text(s->g);
        fprintf(stderr, "%s", s->x != NULL ? text : "");
        free(text);
        fail_msg("%s: %s promises %lld ps and %lld bytes, the text has %lld and %lld", s->name,
                 what, (long long)p.ps, (long long)p.bytes, (long long)found.ps,
                 (long long)found.bytes);
    }
}

/* ---- decisions ---- */

static double number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);

    assert_non_null(at);
    return strtod(at + strlen(key), NULL);
}

static void decide(const struct step *s, tuck_run_options *run)
{
    tuck_decision *d = NULL;
    tuck_graph *g = NULL;
    struct text t = {NULL, 0, 0};
    tuck_times found;

    run->machine = &s->machine;
    run->decision_out = &d;
    assert_int_equal(tuck_graph_copy(s->g, &g), TUCK_OK);
    if (tuck_graph_optimize(g, run, NULL, NULL, NULL) == TUCK_OK && simulate(s, g, &found)) {
        assert_int_equal(tuck_decision_write(d, text_add, &t), TUCK_OK);
        bool merges = strstr(t.at, "\"buckets\": []") == NULL;
        struct promise p = {llround(1000 * number_after(t.at, "\"step_ns\": ")),
                            (int64_t)number_after(t.at, "\"peak_bytes\": ")};
        compare(s, "a decision", merges ? NEAR : EQUAL, merges ? &buckets : &orders, p,
                (struct promise){found.step_ps, found.peak_bytes});
    }
    text_done(&t);
    tuck_decision_free(d);
    tuck_graph_free(g);
}

/* ---- orders of the problem ---- */

static bool promise_of(const struct step *s, const char *passes, struct promise *out)
{
    tuck_lower_options o = {.size = sizeof(o), .machine = &s->machine};
    tuck_program *program = NULL;
    tuck_problem *p = NULL;
    tuck_schedule *x = NULL;

    bool ok = tuck_graph_lower(s->g, &o, NULL, &program) == TUCK_OK &&
              tuck_program_problem(program, NULL, &p) == TUCK_OK &&
              tuck_schedule_new(p, NULL, NULL, &x) == TUCK_OK &&
              tuck_schedule_run(x, passes, NULL) == TUCK_OK;
    if (ok)
        *out = (struct promise){tuck_schedule_exposed_ps(x), tuck_schedule_peak(x)};
    tuck_schedule_free(x);
    tuck_problem_free(p);
    tuck_program_free(program);
    return ok;
}

static void order(const struct step *s, const char *passes)
{
    tuck_run_options run;
    tuck_pipeline *pipeline = NULL;
    tuck_graph *g = NULL;
    struct promise p;
    tuck_times own, found;

    if (!promise_of(s, passes, &p))
        return;
    tuck_run_options_init(&run);
    run.machine = &s->machine;
    assert_int_equal(tuck_graph_copy(s->g, &g), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse(passes, strlen(passes), "order", NULL, NULL, &pipeline),
                     TUCK_OK);
    if (simulate(s, g, &own) && tuck_pipeline_run(pipeline, g, &run, NULL, NULL) == TUCK_OK &&
        simulate(s, g, &found)) {
        if (found.exposed_ps == own.exposed_ps && p.ps != own.exposed_ps)
            kept++;
        else
            compare(s, passes, ANY, &on_problem, p,
                    (struct promise){found.exposed_ps, found.peak_bytes});
    }
    tuck_pipeline_free(pipeline);
    tuck_graph_free(g);
}

static void check(struct step *s, struct rng *rng)
{
    static const char *const passes[] = {"list_overlap", "improve_order", "sink_waits_iterative",
                                         "reorder_compute_for_overlap",
                                         "reorder_communication_preserving_peak_memory"};
    tuck_run_options run;

    tuck_run_options_init(&run);
    run.effort = rng_below(rng, 3);
    run.order = rng_below(rng, 4) == 0 ? TUCK_ORDER_OF_ALL : TUCK_ORDER_FREE;
    decide(s, &run);
    order(s, passes[rng_below(rng, sizeof(passes) / sizeof(*passes))]);
}

/* ---- many ---- */

static void random_graphs(void **unused)
{
    uint64_t seed = seed_of("promised");

    (void)unused;
    for (size_t i = 0, n = rounds(GRAPHS); i < n; i++) {
        struct rng rng = {seed + i};
        struct random_graph x;
        struct step s = {.x = &x};
        tuck_cluster *cluster = NULL;
        char name[40];

        random_graph_make(&rng, &x);
        tuck_doc *doc = read_or_die(x.text[0]);
        snprintf(name, sizeof(name), "TUCK_SEED=%llu", (unsigned long long)(seed + i));
        s.name = name;
        s.g = tuck_doc_graph(doc, 0);
        tell(&s, s.g);
        assert_int_equal(tuck_graph_infer(s.g, false, NULL), TUCK_OK);
        assert_int_equal(tuck_cluster_for_graph(s.g, NULL, NULL, &cluster), TUCK_OK);
        tuck_machine_init(&s.machine);
        s.machine.cluster = cluster;
        s.machine.hints = x.hint;
        s.machine.n_hints = x.n_hint;
        check(&s, &rng);
        tuck_cluster_free(cluster);
        tuck_doc_free(doc);
        random_graph_free(&x);
    }
}

static void corpus(void **unused)
{
    static const char *const folders[] = {"ddp", "exec", "fsdp", "moe", "tp", "big"};
    static const tuck_hint every = {"*", TAKEN_AS};
    bool all = getenv("TUCK_SOAK") != NULL;
    struct rng rng = {1};

    (void)unused;
    for (size_t f = 0, k = 0; f < sizeof(folders) / sizeof(*folders); f++) {
        char dir[40];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/graphs/%s", folders[f]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++) {
            struct step s = {.name = path[i], .path = path[i]};
            tuck_doc *doc = NULL;
            if (!all && (strcmp(folders[f], "big") == 0 || k++ % SAMPLE != 0))
                continue;
            assert_int_equal(tuck_doc_read_file(path[i], NULL, NULL, &doc), TUCK_OK);
            s.g = tuck_doc_graph(doc, 0);
            tell(&s, s.g);
            tuck_machine_init(&s.machine);
            s.machine.hints = &every;
            s.machine.n_hints = 1;
            check(&s, &rng);
            tuck_doc_free(doc);
        }
        free_paths(path, n);
    }
}

static void print(const char *what, const struct sums *s)
{
    print_message("# %s: %zu, equal %zu, within 0.1 %% %zu, beyond 1 %% %zu, at most %.4f %% off\n",
                  what, s->n, s->exact, s->near, s->above, 100 * s->worst);
}

static void distribution(void **unused)
{
    (void)unused;
    print("decisions with orders alone", &orders);
    print("decisions with buckets", &buckets);
    print("orders found on the problem", &on_problem);
    print_message("# orders that the text cannot express, and the graph stays: %zu\n", kept);
    assert_true(orders.n > 0 && buckets.n > 0 && on_problem.n > 0);
    assert_true((double)buckets.near >= 0.95 * (double)buckets.n);
    assert_true((double)on_problem.exact >= 0.95 * (double)on_problem.n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(corpus),
        cmocka_unit_test(distribution),
    };

    return cmocka_run_group_tests_name("promised", tests, NULL, NULL);
}
