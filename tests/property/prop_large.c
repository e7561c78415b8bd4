/* Large steps, each on two machines: as they came, by PyTorch's own overlap scheduler, and by
 * tuck_graph_optimize() at the graph's own peak and at PyTorch's. Ours is never slower than the
 * graph or than PyTorch's own at no more memory than each of them has; the numbers are those of
 * tests/results/large.txt, which `make bless` (TUCK_BLESS=1) rewrites. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"
#include "tuck_experimental.h"

static const char table[] = "tests/results/large.txt";

struct row {
    const char *graph, *cluster;
};

static const struct row rows[] = {
    {"large/moe16_ep_fsdp_fw", "h100x8x8"},     {"large/moe16_ep_fsdp_fw", "b200x8x8"},
    {"large/moe16_ep_fsdp_bw", "h100x8x8"},     {"large/moe16_ep_fsdp_bw", "b200x8x8"},
    {"large/llama32_2d_fw", "h100x8x32"},       {"large/llama32_2d_fw", "b200x8x32"},
    {"large/llama32_2d_bw", "h100x8x32"},       {"large/llama32_2d_bw", "b200x8x32"},
    {"large/llama32_hsdp_bw", "h100x8x8"},      {"large/llama32_hsdp_bw", "b200x8x8"},
    {"large/llama32_1d256_bw", "h100x8x32"},    {"large/llama32_1d256_bw", "b200x8x32"},
    {"graphs/big/llama32_fsdp_fw", "h100x8x8"}, {"graphs/big/llama32_fsdp_fw", "b200x8x8"},
    {"graphs/big/llama32_fsdp_bw", "h100x8x8"}, {"graphs/big/llama32_fsdp_bw", "b200x8x8"},
    {"graphs/big/gpt2_xl_ddp_bw", "h100x8x2"},  {"graphs/big/gpt2_xl_ddp_bw", "b200x8x2"},
};

/* Builds that check every access need only see one. */
#if defined(TUCK_STRESS) || defined(__SANITIZE_ADDRESS__)
enum { N_ROWS = 1 };
#else
enum { N_ROWS = sizeof(rows) / sizeof(*rows) };
#endif

static double ms(int64_t ps)
{
    return (double)ps / 1e9;
}

static double mib(int64_t bytes)
{
    return (double)bytes / 1048576;
}

/* memory: the limit, 0 for the graph's own peak. */
static void optimize(const struct row *r, int64_t memory, tuck_gain *gain, tuck_rival *rival)
{
    tuck_cluster *cluster = NULL;
    tuck_report *report = NULL;
    tuck_machine machine;
    tuck_run_options run;
    tuck_doc *doc = NULL;
    char path[100];

    snprintf(path, sizeof(path), "tests/%s.txt", r->graph);
    assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_preset(r->cluster, NULL, NULL, &cluster), TUCK_OK);
    tuck_machine_init(&machine);
    machine.cluster = cluster;
    tuck_run_options_init(&run);
    run.machine = &machine;
    run.memory = memory;
    assert_int_equal(tuck_graph_optimize(g, &run, NULL, gain, &report), TUCK_OK);
    *rival = (tuck_rival){.size = sizeof(*rival)};
    assert_true(tuck_report_rival(report, rival));
    assert_null(rival->refused);
    tuck_report_free(report);
    tuck_cluster_free(cluster);
    tuck_doc_free(doc);
}

static void fails_if_worse(const struct row *r, const char *than, const tuck_times *ours,
                           const tuck_times *theirs)
{
    if (ours->step_ps > theirs->step_ps || ours->peak_bytes > theirs->peak_bytes)
        fail_msg("%s on %s: %.3f ms and %.1f MiB are worse than %s, %.3f ms and %.1f MiB", r->graph,
                 r->cluster, ms(ours->step_ps), mib(ours->peak_bytes), than, ms(theirs->step_ps),
                 mib(theirs->peak_bytes));
}

static void add_row(const struct row *r, struct text *out)
{
    tuck_gain own, more;
    tuck_rival rival, same;
    char line[400];

    optimize(r, 0, &own, &rival);
    fails_if_worse(r, "the graph", &own.after, &own.before);
    more = own;
    if (rival.fits)
        fails_if_worse(
            r, "PyTorch's own", &own.after,
            &(tuck_times){.step_ps = rival.times.step_ps, .peak_bytes = own.before.peak_bytes});
    else
        optimize(r, rival.times.peak_bytes, &more, &same);
    int64_t limit = rival.times.peak_bytes > own.before.peak_bytes ? rival.times.peak_bytes
                                                                   : own.before.peak_bytes;
    fails_if_worse(r, "PyTorch's own", &more.after,
                   &(tuck_times){.step_ps = rival.times.step_ps, .peak_bytes = limit});
    if (own.after.step_ps < own.bound_ps || more.after.step_ps < more.bound_ps)
        fail_msg("%s on %s is under the bound", r->graph, r->cluster);
    snprintf(line, sizeof(line),
             "%-17s %-10s %8.3f %9.3f %9.3f %9.3f %9.3f %6.1f %6.1f %9.1f %9.1f %9.1f %9.1f\n",
             strrchr(r->graph, '/') + 1, r->cluster, ms(own.before.step_ps),
             ms(rival.times.step_ps), ms(own.after.step_ps), ms(more.after.step_ps),
             ms(more.bound_ps), 100 * (ms(rival.times.step_ps) / ms(more.bound_ps) - 1),
             100 * (ms(more.after.step_ps) / ms(more.bound_ps) - 1), mib(own.before.peak_bytes),
             mib(rival.times.peak_bytes), mib(own.after.peak_bytes), mib(more.after.peak_bytes));
    text_add(out, line, strlen(line));
}

/* clang-format off */
static const char head[] =
    "Large steps: ms as they came (before), by PyTorch's own overlap scheduler, by `tuck optimize` at the graph's own peak,\n"
    "and at PyTorch's peak where that is larger (more); the bound there and the gaps to it in %; peaks in MiB. `make test`\n"
    "compares, `make bless` writes it.\n\n"
    "graph             cluster      before   PyTorch      Tuck      more     bound gap  P      T     before   PyTorch      Tuck      more\n";
/* clang-format on */

static void large_steps(void **unused)
{
    bool bless = getenv("TUCK_BLESS") != NULL && (int)N_ROWS > 1;
    struct text now = {NULL, 0, 0};

    (void)unused;
    text_add(&now, head, strlen(head));
    struct text was = bless ? (struct text){NULL, 0, 0} : text_of_file(table);
    for (size_t i = 0; i < N_ROWS; i++) {
        struct text line = {NULL, 0, 0};
        add_row(&rows[i], &line);
        if (was.at != NULL && strstr(was.at, line.at) == NULL)
            fail_msg("%s does not say (`make bless` writes it anew):\n%s", table, line.at);
        text_add(&now, line.at, line.len);
        text_done(&line);
    }
    if (bless)
        text_to_file(table, &now);
    text_done(&was);
    text_done(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(large_steps)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
