/* tuck_graph_optimize() beside the graph as it came and beside a list of PyTorch's own passes, on the
 * graphs of tests/graphs and tests/large, on each graph's machine and with links of a quarter of the
 * speed: never slower than any of them at no more memory than that one has. All are judged by the
 * text that is written, read again.
 *
 * `make test` takes a sample; TUCK_SOAK=1 takes all. TUCK_GRAPH=word: only paths with that word. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

static const char *const pipelines[] = {
    "schedule_overlap_bucketing(compat=torch)",
    "raise_comms",
    "sink_waits",
    "reorder_compute_for_overlap",
    "reorder_compute_for_overlap,sink_waits,raise_comms",
    "reorder_communication_preserving_peak_memory",
    "sink_waits_iterative",
    "reorder_communication_preserving_peak_memory,sink_waits_iterative",
    "simple_overlap",
    "reorder_for_peak_memory",
    "fuse_ddp_communication",
    "bucket_all_gather",
    "bucket_reduce_scatter",
    "bucket_all_reduce",
    "bucket_all_gather,bucket_reduce_scatter,reorder_communication_preserving_peak_memory,"
    "sink_waits_iterative",
    "enforce_comm_ordering_for_fsdp",
};

#ifdef TUCK_STRESS /* it takes ten times as long there */
enum { SAMPLE = 44 };
#else
enum { SAMPLE = 11 };
#endif
enum { N_PIPELINES = sizeof(pipelines) / sizeof(*pipelines) };

/* Sizes that a graph does not give. */
enum { N_SYMBOLS = 120, TAKEN_AS = 512 };
static char symbol_name[2 * N_SYMBOLS][16];
static tuck_hint symbol[2 * N_SYMBOLS];

struct step {
    const char *path;
    double bandwidth;
    tuck_graph *g; /* as it came */
    tuck_machine machine;
    tuck_times own; /* of the graph */
};

static size_t compared, searched, lost;

static bool simulate(const struct step *s, tuck_graph *g, tuck_times *out)
{
    tuck_simulation *x = NULL;
    bool ok = tuck_graph_simulate(g, &s->machine, NULL, &x) == TUCK_OK;

    if (ok)
        tuck_simulation_times(x, out);
    tuck_simulation_free(x);
    return ok;
}

/* The times of the text that is written. */
static bool judge(const struct step *s, tuck_graph *g, tuck_times *out)
{
    assert_int_equal(tuck_graph_remember(g), TUCK_OK);
    char *text = graph_text(g);
    tuck_doc *doc = read_or_die(text);
    tuck_graph *again = tuck_doc_graph(doc, 0);

    assert_int_equal(tuck_graph_read_sidecar(again, s->path, -1, NULL), TUCK_OK);
    bool ok = simulate(s, again, out);
    tuck_doc_free(doc);
    free(text);
    return ok;
}

/* Ours within so much memory; false if there is none. */
static bool optimize(const struct step *s, int64_t memory, tuck_times *out)
{
    tuck_run_options run;
    tuck_graph *g = NULL;
    tuck_gain gain;

    tuck_run_options_init(&run);
    run.machine = &s->machine;
    run.memory = memory;
    assert_int_equal(tuck_graph_copy(s->g, &g), TUCK_OK);
    tuck_status st = tuck_graph_optimize(g, &run, NULL, &gain, NULL);
    bool ok = st == TUCK_OK && !gain.over_limit && judge(s, g, out);
    if (ok && (out->step_ps != gain.after.step_ps || out->peak_bytes != gain.after.peak_bytes))
        fail_msg("%s: the text takes %lld ps and %lld bytes, promised were %lld and %lld", s->path,
                 (long long)out->step_ps, (long long)out->peak_bytes, (long long)gain.after.step_ps,
                 (long long)gain.after.peak_bytes);
    tuck_graph_free(g);
    searched++;
    return ok;
}

static bool run_rival(const struct step *s, const char *pipeline, tuck_times *out)
{
    tuck_pipeline *p = NULL;
    tuck_graph *g = NULL;
    tuck_run_options run;

    assert_int_equal(tuck_pipeline_parse(pipeline, strlen(pipeline), "rival", NULL, NULL, &p),
                     TUCK_OK);
    assert_int_equal(tuck_graph_copy(s->g, &g), TUCK_OK);
    tuck_run_options_init(&run);
    run.machine = &s->machine;
    bool ok = tuck_pipeline_run(p, g, &run, NULL, NULL) == TUCK_OK && judge(s, g, out);
    tuck_graph_free(g);
    tuck_pipeline_free(p);
    return ok;
}

static bool is_worse(const tuck_times *a, const tuck_times *b)
{
    return a->step_ps > b->step_ps || a->peak_bytes > b->peak_bytes;
}

static void compare(const struct step *s, const tuck_times *ours)
{
    for (size_t i = 0; i < N_PIPELINES; i++) {
        tuck_times theirs, same = *ours;

        if (!run_rival(s, pipelines[i], &theirs))
            continue;
        compared++;
        bool found = !is_worse(&same, &theirs) || !is_worse(&s->own, &theirs);
        if (!found)
            found = optimize(s, theirs.peak_bytes, &same) && !is_worse(&same, &theirs);
        if (found)
            continue;
        lost++;
        fprintf(stderr, "%s, links %gx: %s takes %.3f us and %lld bytes, ours %.3f and %lld\n",
                s->path, s->bandwidth, pipelines[i], (double)theirs.step_ps / 1e6,
                (long long)theirs.peak_bytes, (double)same.step_ps / 1e6,
                (long long)same.peak_bytes);
    }
}

static void check(const char *path, double bandwidth)
{
    tuck_doc *doc = NULL;
    tuck_times ours;
    struct step s = {.path = path, .bandwidth = bandwidth};

    assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
    s.g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(s.g, path, -1, NULL), TUCK_OK);
    tuck_machine_init(&s.machine);
    s.machine.bandwidth = bandwidth;
    s.machine.hints = symbol;
    s.machine.n_hints = sizeof(symbol) / sizeof(*symbol);
    if (simulate(&s, s.g, &s.own) && optimize(&s, 0, &ours)) {
        if (is_worse(&ours, &s.own))
            fail_msg("%s: worse than the graph itself", path);
        compare(&s, &ours);
    }
    tuck_doc_free(doc);
}

static void never_slower(void **unused)
{
    static const char *const folders[] = {"graphs/ddp", "graphs/exec", "graphs/fsdp", "graphs/moe",
                                          "graphs/tp",  "graphs/big",  "large"};
    bool all = getenv("TUCK_SOAK") != NULL;
    const char *word = getenv("TUCK_GRAPH");
    size_t graphs = 0, k = 0;

    (void)unused;
    for (int i = 0; i < 2 * N_SYMBOLS; i++) {
        snprintf(symbol_name[i], sizeof(*symbol_name), "%c%d", i % 2 ? 'u' : 's', i / 2);
        symbol[i] = (tuck_hint){symbol_name[i], TAKEN_AS};
    }
    for (size_t f = 0; f < sizeof(folders) / sizeof(*folders); f++) {
        char dir[64];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/%s", folders[f]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++) {
            bool large = f >= 5;
            if (word != NULL ? strstr(path[i], word) == NULL : !all && (large || k++ % SAMPLE != 0))
                continue;
            check(path[i], 1);
            check(path[i], 0.25);
            graphs++;
        }
        free_paths(path, n);
    }
    print_message("# %zu graphs, %zu comparisons, %zu searches, %zu lost\n", graphs, compared,
                  searched, lost);
    assert_int_equal(lost, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_slower),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
