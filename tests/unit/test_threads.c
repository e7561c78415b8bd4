/* The rule of tuck.h about threads: a document, its graphs and their copies are used by one thread
 * at a time, and may move between threads; different documents may be used at the same time, and so
 * may a cluster or a pipeline that nothing changes. `make test` runs this in the build that finds
 * races (V=tsan). */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/problems.h"
#include "tuck_experimental.h"

enum { THREADS = 4, ROUNDS = 1 };

static const char *const path[] = {
    "tests/graphs/exec/llama_fsdp_bw.txt",      "tests/graphs/exec/gpt2_ddp_bw.txt",
    "tests/graphs/exec/llama_tp_sp_bw.txt",     "tests/graphs/forms/mlp_fsdp_bw.runnable.py",
    "tests/graphs/exec/mlp_ddp_dynamic_bw.txt",
};
enum { PATHS = sizeof(path) / sizeof(*path) };

struct shared { /* used by all threads, and never changed */
    const tuck_cluster *cluster;
    const tuck_pipeline *pipeline;
};

struct job {
    const struct shared *shared;
    struct text out[PATHS]; /* the result of each graph, as text */
    bool wrong;
    tuck_doc *doc; /* handed over from another thread */
};

static bool keep(void *ctx, const char *s, size_t n)
{
    text_add(ctx, s, n);
    return true;
}

static bool fine(struct job *j, tuck_status st)
{
    j->wrong |= st != TUCK_OK;
    return st == TUCK_OK;
}

/* Everything the library does with a graph. */
static void work(struct job *j, tuck_graph *g, const char *file, tuck_diags *d, struct text *out)
{
    static const tuck_hint hint[] = {{"s77", 6}, {"s0", 6}, {"s27", 6}};
    tuck_machine machine = {
        .size = sizeof(machine), .cluster = j->shared->cluster, .hints = hint, .n_hints = 3};
    tuck_run_options run = {.size = sizeof(run), .machine = &machine};
    tuck_lower_options lower = {.size = sizeof(lower), .machine = &machine};
    tuck_program *p = NULL;
    tuck_graph *copy = NULL;

    if (!fine(j, tuck_graph_read_sidecar(g, file, 0, d)) ||
        !fine(j, tuck_graph_infer(g, true, d)) || !fine(j, tuck_graph_lint(g, d)) ||
        !fine(j, tuck_graph_copy(g, &copy)))
        return;
    if (fine(j, tuck_pipeline_run(j->shared->pipeline, copy, &run, d, NULL)) &&
        fine(j, tuck_graph_optimize(g, &run, d, NULL, NULL)) && fine(j, tuck_graph_remember(g)) &&
        fine(j, tuck_graph_lower(g, &lower, d, &p)) && fine(j, tuck_program_plan(p, NULL, NULL)))
        fine(j, tuck_program_write(p, keep, out));
    tuck_program_free(p);
    fine(j, tuck_graph_print(copy, TUCK_FORM_TEXT, d, keep, out));
    fine(j, tuck_graph_print(g, TUCK_FORM_TEXT, d, keep, out));
    tuck_graph_free(copy);
}

static void *read_and_work(void *arg)
{
    struct job *j = arg;

    for (size_t i = 0; i < PATHS; i++) {
        tuck_diags *d = tuck_diags_new(NULL);
        tuck_doc *doc = NULL;

        if (fine(j, tuck_doc_read_file(path[i], NULL, d, &doc)))
            work(j, tuck_doc_graph(doc, 0), path[i], d, &j->out[i]);
        tuck_doc_free(doc);
        tuck_diags_free(d);
    }
    return NULL;
}

/* On a document that another thread read. */
static void *work_on_it(void *arg)
{
    struct job *j = arg;
    tuck_diags *d = tuck_diags_new(NULL);

    work(j, tuck_doc_graph(j->doc, 0), path[0], d, &j->out[0]);
    tuck_doc_free(j->doc);
    tuck_diags_free(d);
    return NULL;
}

static struct shared make_shared(tuck_cluster **cluster, tuck_pipeline **pipeline)
{
    static const char passes[] =
        "deduplicate_wait_tensors, bucket_all_gather, bucket_reduce_scatter, "
        "bucket_all_reduce, sink_waits";

    assert_int_equal(tuck_cluster_preset("h100x8x4", NULL, NULL, cluster), TUCK_OK);
    assert_int_equal(tuck_pipeline_parse(passes, strlen(passes), "passes", NULL, NULL, pipeline),
                     TUCK_OK);
    return (struct shared){*cluster, *pipeline};
}

static void forget(struct job *j)
{
    for (size_t i = 0; i < PATHS; i++)
        text_done(&j->out[i]);
}

static void same(const struct text *a, const struct text *b)
{
    assert_true(a->len > 0);
    assert_int_equal(a->len, b->len);
    assert_memory_equal(a->at, b->at, a->len);
}

static void test_documents_apart(void **unused)
{
    tuck_cluster *cluster;
    tuck_pipeline *pipeline;
    struct shared shared = make_shared(&cluster, &pipeline);
    struct job alone = {.shared = &shared};

    (void)unused;
    read_and_work(&alone);
    assert_false(alone.wrong);
    for (int round = 0; round < ROUNDS; round++) {
        struct job job[THREADS] = {{.shared = NULL}};
        pthread_t t[THREADS];

        for (int i = 0; i < THREADS; i++) {
            job[i].shared = &shared;
            assert_int_equal(pthread_create(&t[i], NULL, read_and_work, &job[i]), 0);
        }
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(pthread_join(t[i], NULL), 0);
        for (int i = 0; i < THREADS; i++) {
            assert_false(job[i].wrong);
            for (size_t k = 0; k < PATHS; k++)
                same(&job[i].out[k], &alone.out[k]);
            forget(&job[i]);
        }
    }
    forget(&alone);
    tuck_pipeline_free(pipeline);
    tuck_cluster_free(cluster);
}

static void test_handed_over(void **unused)
{
    tuck_cluster *cluster;
    tuck_pipeline *pipeline;
    struct shared shared = make_shared(&cluster, &pipeline);
    struct job alone = {.shared = &shared}, job[THREADS] = {{.shared = NULL}};
    pthread_t t[THREADS];

    (void)unused;
    assert_int_equal(tuck_doc_read_file(path[0], NULL, NULL, &alone.doc), TUCK_OK);
    work_on_it(&alone);
    for (int i = 0; i < THREADS; i++) {
        job[i].shared = &shared;
        assert_int_equal(tuck_doc_read_file(path[0], NULL, NULL, &job[i].doc), TUCK_OK);
        assert_int_equal(pthread_create(&t[i], NULL, work_on_it, &job[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(t[i], NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_false(job[i].wrong);
        same(&job[i].out[0], &alone.out[0]);
        forget(&job[i]);
    }
    forget(&alone);
    tuck_pipeline_free(pipeline);
    tuck_cluster_free(cluster);
}

/* improve_order finds the same on one thread and on many. */
static void test_islands(void **unused)
{
    struct problem *p = layered_problem(1500, false);
    struct schedule_options o;
    struct schedule one, many;

    (void)unused;
    schedule_defaults(&o, false);
    o.list_peak_memory_budget = 0.2;
    o.evaluations = 20000;
    o.threads = 1;
    run_pass(&one, p, &o, &pass_improve_order);
    o.threads = THREADS;
    run_pass(&many, p, &o, &pass_improve_order);
    assert_true(one.report.at[0].displaced > 0);
    assert_memory_equal(one.order, many.order, p->n_op * sizeof(*one.order));
    schedule_end(&one);
    schedule_end(&many);
    problem_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_documents_apart),
        cmocka_unit_test(test_handed_over),
        cmocka_unit_test(test_islands),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
