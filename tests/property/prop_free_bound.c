/* No result of any pipeline is faster than bound_ns of the graph it came from: random graphs and
 * those of the corpus, through random pipelines of all passes of the table and through some that go
 * far, on several machines.
 *
 * TUCK_SEED=n repeats a run. TUCK_SOAK=1 makes ten times as many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "study/evaluate.h"
#include "api/machine_api.h"
#include "study/pass_table.h"
#include "support/random_graph.h"

/* The stress build checks more, so it need not run as many. */
#ifdef TUCK_STRESS
enum { FEWER = 10 };
#else
enum { FEWER = 1 };
#endif

struct sums {
    size_t graphs, runs, changed, not_evaluated, refused;
    double least; /* result over bound, 1: they are equal */
};

/* ---- pipelines ---- */

/* Options of passes that are worth trying; the others keep their defaults. */
static const char *const tried[][2] = {
    {"bucket_all_gather", "cap_mb=25,mode=default"},
    {"bucket_all_gather", "cap_mb=0.0005"},
    {"bucket_all_gather", "member_mb=0.001"},
    {"bucket_all_gather", "mode=custom_ops"},
    {"bucket_all_gather", "mode=custom_ops_multidtype"},
    {"bucket_reduce_scatter", "cap_mb=25,mode=default"},
    {"bucket_reduce_scatter", "mode=custom_ops"},
    {"bucket_all_reduce", "cap_mb=0.0005"},
    {"bucket_all_reduce", "cap_mb=400"},
    {"one_shot_all_reduce", "max_kb=1e9"},
    {"one_shot_all_reduce", "max_kb=1"},
};

static bool needs_options(size_t pass)
{
    return strcmp(tuck_pass_name(pass), "merge_bucket") == 0;
}

/* Buckets of everything, loops joined, any order. */
static const char *const far[] = {
    "list_overlap(),join_loops()",
    "gather_loops(),join_loops()",
    "repeat_constants(),gather_loops(),join_loops()",
    "repeat_constants(),bucket_fsdp_reduce_scatter(),list_overlap(),join_loops()",
    "list_overlap(),gather_loops(),join_loops()",
    "bucket_all_gather(),bucket_reduce_scatter(),bucket_all_reduce(),list_overlap(),gather_loops(),"
    "join_loops()",
    "bucket_all_gather(cap_mb=2000),bucket_reduce_scatter(cap_mb=2000),bucket_all_reduce(cap_mb="
    "2000),list_overlap(),join_loops()",
    "bucket_all_gather(mode=custom_ops_multidtype),bucket_reduce_scatter(mode=custom_ops),"
    "list_overlap(),join_loops()",
    "bucket_all_gather(mode=coalesced),bucket_all_reduce(mode=coalesced),reorder_compute_for_"
    "overlap"
    "(),join_loops()",
    "fuse_ddp_with_concat_op(bucket_size_mb=2000),list_overlap(),join_loops()",
    "dedup_fsdp_reduce_scatter(),bucket_reduce_scatter(),list_overlap(),join_loops()",
    "deduplicate_wait_tensors(),schedule_overlap_bucketing(),join_loops()",
    "pre_bucket_fsdp_collectives(),overlap_scheduling(),join_loops()",
    "remove_fsdp2_unsharded_param_graph_input_usage(),reinplace_fsdp_all_gather(),bucket_all_gather"
    "(),list_overlap(),join_loops()",
    "reorder_for_peak_memory(),join_loops()",
    "raise_comms(),sink_waits(),join_loops()",
    "one_shot_all_reduce(max_kb=1e9),list_overlap(),join_loops()",
    "bucket_all_reduce(),one_shot_all_reduce(max_kb=1e9),list_overlap(),join_loops()",
};

static void random_pipeline(struct rng *rng, char *to, size_t size)
{
    uint32_t n = 1 + rng_below(rng, 4);

    if (rng_below(rng, 3) == 0) {
        snprintf(to, size, "%s", far[rng_below(rng, sizeof(far) / sizeof(*far))]);
        return;
    }
    bool schedules = false;
    size_t len = 0;

    *to = '\0';
    for (uint32_t i = 0; i < n; i++) {
        size_t pass = rng_below(rng, (uint32_t)tuck_pass_count());
        bool on_schedule = pass_is_on_order(all_passes.row[pass]);

        if (needs_options(pass) || (schedules && !on_schedule))
            continue;
        schedules |= on_schedule;
        const char *options = "";
        uint32_t from = rng_below(rng, sizeof(tried) / sizeof(*tried));
        for (uint32_t k = 0; k < sizeof(tried) / sizeof(*tried); k++) {
            const char *const *t = tried[(from + k) % (sizeof(tried) / sizeof(*tried))];
            if (strcmp(t[0], tuck_pass_name(pass)) == 0)
                options = t[1];
        }
        len += (size_t)snprintf(to + len, size - len, "%s%s(%s)", len ? "," : "",
                                tuck_pass_name(pass), options);
        assert_true(len < size);
    }
    if (schedules && rng_below(rng, 2) == 0)
        snprintf(to + len, size - len, ",join_loops()");
}

/* ---- a graph ---- */

struct setting {
    tuck_cluster *cluster;
    const tuck_hint *hint;
    size_t n_hint;
    double bandwidth;
    bool symmetric; /* groups have symmetric memory */
};

/* The machine that fits the graph, or another; links that are slow or quick. */
static void random_machine(struct rng *rng, const tuck_graph *g, struct setting *m)
{
    static const char *const names[] = {"h100x1x8", "b200x8x4", "a100x8", "h100x8x32"};
    static const double speeds[] = {1, 0.25, 0.25, 8};
    uint32_t k = rng_below(rng, 2 * sizeof(names) / sizeof(*names));

    static const char launching[] = "{\"schema\": 1, \"device\": \"h100\", \"per_node\": 8, "
                                    "\"launch_us\": 1}";

    tuck_cluster_free(m->cluster);
    m->cluster = NULL;
    m->symmetric = rng_below(rng, 2) != 0;
    m->bandwidth = speeds[rng_below(rng, sizeof(speeds) / sizeof(*speeds))];
    if (k < sizeof(names) / sizeof(*names))
        assert_int_equal(tuck_cluster_preset(names[k], NULL, NULL, &m->cluster), TUCK_OK);
    else if (k == sizeof(names) / sizeof(*names))
        assert_int_equal(tuck_cluster_read_text(launching, sizeof(launching) - 1, "launching", NULL,
                                                NULL, &m->cluster),
                         TUCK_OK);
    else
        assert_int_equal(tuck_cluster_for_graph(g, NULL, NULL, &m->cluster), TUCK_OK);
}

static tuck_machine machine_of(const struct setting *m)
{
    static const char *const everywhere[] = {"*"};

    return (tuck_machine){.size = sizeof(tuck_machine),
                          .symm_groups = everywhere,
                          .n_symm_groups = m->symmetric,
                          .cluster = m->cluster,
                          .hints = m->hint,
                          .bandwidth = m->bandwidth,
                          .n_hints = m->n_hint};
}

/* False: sizes are unknown. */
static bool take_time(tuck_graph *g, const struct setting *m, struct evaluation *e)
{
    tuck_machine machine = machine_of(m);
    struct given_machine *given;
    struct evaluate_options o;

    assert_int_equal(machine_take(&machine, g, MACHINE_TIMES, NULL, &given), TUCK_OK);
    evaluate_defaults(&o, &given->machine);
    tuck_status st = evaluate_graph(g, &o, NULL, e);
    machine_drop(given);
    if (st != TUCK_OK)
        evaluate_end(e);
    return st == TUCK_OK;
}

static void check_result(const tuck_graph *g, const struct setting *m, const struct bound *bound,
                         const char *name, const char *steps, struct sums *s)
{
    struct evaluation after;
    tuck_graph *copy;

    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    if (!take_time(copy, m, &after)) {
        s->not_evaluated++;
    } else {
        if (after.time.makespan < bound->ps) {
            char *text = graph_text(g);
            printf("%s", text);
            free(text);
            fail_msg("%s: %s: %lld ps, under the bound of %lld (%s)", name, steps,
                     (long long)after.time.makespan, (long long)bound->ps, bound_name(bound->kind));
        }
        double over = bound->ps > 0 ? (double)after.time.makespan / (double)bound->ps : 1e9;
        s->least = over < s->least ? over : s->least;
        evaluate_end(&after);
    }
    tuck_graph_free(copy);
}

static void run_pipelines(struct rng *rng, const tuck_graph *g, const struct setting *m, uint32_t n,
                          const char *name, struct sums *s)
{
    struct evaluation before;
    tuck_graph *copy;
    tuck_machine machine = machine_of(m);
    tuck_run_options run = {.size = sizeof(run), .machine = &machine};

    s->graphs++;
    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    bool known = take_time(copy, m, &before);
    tuck_graph_free(copy);
    if (!known) {
        s->not_evaluated++;
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        char steps[2048];
        tuck_pipeline *pipe;
        tuck_report *report = NULL;

        random_pipeline(rng, steps, sizeof(steps));
        assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
        assert_int_equal(tuck_pipeline_parse(steps, strlen(steps), "steps", NULL, NULL, &pipe),
                         TUCK_OK);
        tuck_status st = tuck_pipeline_run(pipe, copy, &run, NULL, &report);
        s->refused += st != TUCK_OK;
        s->runs++;
        if (st == TUCK_OK) {
            char *text = graph_text(copy), *was = graph_text(g);
            s->changed += strcmp(text, was) != 0;
            free(text);
            free(was);
            check_result(copy, m, &before.any, name, steps, s);
        }
        tuck_report_free(report);
        tuck_pipeline_free(pipe);
        tuck_graph_free(copy);
    }
    evaluate_end(&before);
}

static void put_sums(const struct sums *s)
{
    print_message("# %zu graphs, %zu runs, %zu changed something, %zu refused, %zu without sizes; "
                  "the least result is %.3f times its bound\n",
                  s->graphs, s->runs, s->changed, s->refused, s->not_evaluated, s->least);
}

/* ---- the tests ---- */

static void random_graphs(void **unused)
{
    struct rng rng = {seed_of("prop_free_bound")};
    struct sums s = {.least = 1e9};
    size_t n = rounds(1500) / FEWER;

    (void)unused;
    for (size_t i = 0; i < n; i++) {
        struct random_graph x;
        struct setting m = {.cluster = NULL};
        char name[64];

        snprintf(name, sizeof(name), "TUCK_SEED=%llu", (unsigned long long)rng.state);
        random_graph_make(&rng, &x);
        tuck_doc *doc = read_or_die(x.text[0]);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        m.hint = x.hint;
        m.n_hint = x.n_hint;
        for (size_t k = 0; k < x.world.n_group; k++)
            for (size_t q = 0; q < tuck_graph_group_count(g); q++)
                if (strcmp(tuck_graph_group_name(g, q), x.group[k].name) == 0)
                    assert_int_equal(
                        tuck_graph_set_group(g, x.group[k].name, x.group[k].size, NULL, NULL),
                        TUCK_OK);
        assert_int_equal(tuck_graph_infer(g, false, NULL), TUCK_OK);
        random_machine(&rng, g, &m);
        run_pipelines(&rng, g, &m, 7, name, &s);
        tuck_cluster_free(m.cluster);
        tuck_doc_free(doc);
        random_graph_free(&x);
    }
    put_sums(&s);
}

static void corpus(void **unused)
{
    static const char *const folders[] = {"ddp", "fsdp", "tp", "moe", "exec"};
    struct rng rng = {seed_of("prop_free_bound")};
    struct sums s = {.least = 1e9};
    uint32_t per_graph = getenv("TUCK_SOAK") ? 40 : FEWER > 1 ? 1 : 2;

    (void)unused;
    for (size_t f = 0; f < sizeof(folders) / sizeof(*folders); f++) {
        char dir[64];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/graphs/%s", folders[f]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++) {
            struct setting m = {.cluster = NULL};
            tuck_doc *doc = NULL;

            if (tuck_doc_read_file(path[i], NULL, NULL, &doc) != TUCK_OK)
                fail_msg("%s cannot be read", path[i]);
            tuck_graph *g = tuck_doc_graph(doc, 0);
            assert_int_equal(tuck_graph_read_sidecar(g, path[i], -1, NULL), TUCK_OK);
            assert_int_equal(tuck_graph_infer(g, false, NULL), TUCK_OK);
            for (int k = 0; k < 2; k++) {
                random_machine(&rng, g, &m);
                run_pipelines(&rng, g, &m, per_graph, path[i], &s);
            }
            tuck_cluster_free(m.cluster);
            tuck_doc_free(doc);
        }
        free_paths(path, n);
    }
    put_sums(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
        cmocka_unit_test(corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
