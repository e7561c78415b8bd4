/* Training steps that others measured, and what the simulation makes of the same configurations:
 * docs/accuracy.md. The table is tests/results/accuracy.txt, which `make bless` (TUCK_BLESS=1)
 * rewrites. Which rows the model may be mended by, and which only judge it, was written down here
 * before any error was known; what was corrected in their configurations since then is on that page. */
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

static const char table[] = "tests/results/accuracy.txt";

/* Machines, without the number of nodes. The H100 of torchtitan's team is limited to 500 W and has
 * slower memory; they put its peak between those of H100 SXM (989 TFLOPS, 700 W) and of H100 NVL
 * (835 TFLOPS, 400 W): here in proportion to the power. */
#define H100_500W                                                                                  \
    "{\"schema\": 1, \"device\": \"h100\", \"compute\": {\"tflops\": {\"f16\": 886}, "             \
    "\"dram_gbps\": 2400}, "
#define A100 "{\"schema\": 1, \"device\": \"a100\", "

enum mode { COMPILED, EAGER }; /* eager unless the source says that it was compiled */
/* As traced; as FSDP does it, next to the compute of other blocks; by PyTorch's pass, which also
 * merges. */
enum order { AS_TRACED, OVERLAPPED, BUCKETED };

struct row {
    bool judges; /* else the model may be mended by it */
    const char *job, *graph, *machine;
    int nodes, layers;
    enum mode mode;
    enum order order;
    double shards, params; /* ranks that share the parameters; billions of parameters */
    double tokens;         /* of a step, for each GPU */
    double measured;       /* tokens a second and GPU */
};

/* clang-format off */
static const struct row rows[] = {
    {false, "8B, FSDP 8, batch 2, eager",          "llama8_fsdp8_b2",     H100_500W, 1, 32, EAGER, OVERLAPPED, 8, 8.03, 16384, 5762},
    {false, "8B, SimpleFSDP 8, aot_eager",         "llama8_fsdp8_b1",     H100_500W, 1, 32, EAGER, OVERLAPPED, 8, 8.03, 8192, 7227},
    {false, "8B, FSDP 64, A100",                   "llama8_fsdp64",       A100, 8, 32, EAGER, OVERLAPPED, 64, 8.03, 8192, 2973},
    {true, "8B, FSDP 8, batch 2, compiled",        "llama8_fsdp8_b2",     H100_500W, 1, 32, COMPILED, OVERLAPPED, 8, 8.03, 16384, 6667},
    {true, "8B, FSDP 128, batch 2, eager",         "llama8_fsdp128_b2",   H100_500W, 16, 32, EAGER, OVERLAPPED, 128, 8.03, 16384, 5605},
    {true, "8B, FSDP 128, batch 2, compiled",      "llama8_fsdp128_b2",   H100_500W, 16, 32, COMPILED, OVERLAPPED, 128, 8.03, 16384, 6514},
    {true, "8B, FSDP 4, TP 2, traced",             "llama8_fsdp4_tp2",    H100_500W, 1, 32, EAGER, AS_TRACED, 8, 8.03, 4096, 6938},
    {true, "8B, FSDP 4, TP 2, overlap scheduling", "llama8_fsdp4_tp2",    H100_500W, 1, 32, EAGER, BUCKETED, 8, 8.03, 4096, 7214},
    {true, "8B, FSDP 8, TP 8, batch 12, compiled", "llama8_fsdp8_tp8",    H100_500W, 8, 32, COMPILED, OVERLAPPED, 64, 8.03, 12288, 4378},
    {true, "70B, FSDP 32, TP 8, batch 16, compiled", "llama70_fsdp32_tp8", H100_500W, 32, 80, COMPILED, OVERLAPPED, 256, 70.6, 16384, 597.3},
    {true, "70B, FSDP 64, A100",                   "llama70_fsdp64",      A100, 8, 80, EAGER, OVERLAPPED, 64, 70.6, 8192, 331},
    {true, "405B, FSDP 16, TP 8, batch 2",         "llama405_fsdp16_tp8", H100_500W, 16, 126, EAGER, OVERLAPPED, 128, 405.9, 2048, 109},
};
/* clang-format on */

/* Builds that check every access need only see one. */
#if defined(TUCK_STRESS) || defined(__SANITIZE_ADDRESS__)
enum { N_ROWS = 1 };
#else
enum { N_ROWS = sizeof(rows) / sizeof(*rows) };
#endif

static tuck_cluster *machine_of(const struct row *r)
{
    tuck_cluster *c = NULL;
    char text[400];

    int n = snprintf(text, sizeof(text), "%s\"nodes\": %d, \"fuse\": %s}", r->machine, r->nodes,
                     r->mode == EAGER ? "false" : "true");
    assert_int_equal(tuck_cluster_read_text(text, (size_t)n, "machine", NULL, NULL, &c), TUCK_OK);
    return c;
}

static void overlap(tuck_graph *g, const tuck_machine *m, enum order order)
{
    /* The published job calls it with the defaults of the function, not of the configuration. */
    const char *options = order == BUCKETED ? "compat=torch,enable_fusion_regions=false"
                                            : "collective_bucketing=false";
    tuck_pipeline *p = NULL;
    tuck_run_options run;

    tuck_run_options_init(&run);
    run.machine = m;
    assert_int_equal(tuck_pipeline_new(NULL, &p), TUCK_OK);
    assert_int_equal(tuck_pipeline_add(p, "overlap_scheduling", options, NULL), TUCK_OK);
    assert_int_equal(tuck_pipeline_run(p, g, &run, NULL, NULL), TUCK_OK);
    tuck_pipeline_free(p);
}

/* ms of forward and backward with this many layers. */
static double simulated(const struct row *r, const tuck_cluster *c, int layers)
{
    tuck_simulation *s = NULL;
    tuck_machine machine;
    tuck_doc *doc = NULL;
    tuck_times times;
    char path[100];

    snprintf(path, sizeof(path), "tests/published/%s_%d.txt", r->graph, layers);
    assert_int_equal(tuck_doc_read_file(path, NULL, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
    tuck_machine_init(&machine);
    machine.cluster = c;
    machine.unknown = TUCK_REFUSE;
    machine.contention = TUCK_LINKS_SHARED;
    if (r->order != AS_TRACED)
        overlap(g, &machine, r->order);
    assert_int_equal(tuck_graph_simulate(g, &machine, NULL, &s), TUCK_OK);
    tuck_simulation_times(s, &times);
    tuck_simulation_free(s);
    tuck_doc_free(doc);
    return (double)times.step_ps / 1e9;
}

/* ms of clipping and a fused AdamW: four f32 are read and three written for each parameter of the
 * shard; before, the gradient is read once for the norm, and read and written to be scaled. */
static double optimizer(const struct row *r)
{
    double gbps = strcmp(r->machine, A100) == 0 ? 2039 : 2400;

    return r->params * 1e9 / r->shards * 40 / (gbps * 0.8 * 1e6);
}

static double step_of(const struct row *r)
{
    tuck_cluster *c = machine_of(r);
    double two = simulated(r, c, 2), three = simulated(r, c, 3);

    tuck_cluster_free(c);
    return two + (r->layers - 2) * (three - two) + optimizer(r);
}

/* clang-format off */
static const char head[] =
    "Steps that others measured, and simulated: ms of a step with the optimizer, and the error of the simulation in %.\n"
    "`mend`: the model may be mended by this row; `judge`: it may not. Written down before any error was known.\n"
    "docs/accuracy.md has the sources. `make test` compares, `make bless` writes it.\n\n"
    "for    job                                         measured  simulated   error\n";
/* clang-format on */

static double measured_ms(const struct row *r)
{
    return 1000 * r->tokens / r->measured;
}

static double error_of(const struct row *r, double ms)
{
    return 100 * (ms / measured_ms(r) - 1);
}

static double add_row(const struct row *r, struct text *out)
{
    double ms = step_of(r);
    char line[200];

    snprintf(line, sizeof(line), "%-6s %-42s %9.1f  %9.1f  %+6.1f\n", r->judges ? "judge" : "mend",
             r->job, measured_ms(r), ms, error_of(r, ms));
    text_add(out, line, strlen(line));
    return ms;
}

/* What the rows say together: how many that judge are close, and what overlap scheduling gains. */
static void add_sum(const double *ms, struct text *out)
{
    int judges = 0, close = 0;
    double gain = 0, measured = 0;
    char line[200];

    for (size_t i = 0; i < N_ROWS; i++) {
        double error = error_of(&rows[i], ms[i]);
        judges += rows[i].judges;
        close += rows[i].judges && error > -15 && error < 15;
        if (i > 0 && rows[i].order == BUCKETED) {
            gain = 100 * (ms[i - 1] / ms[i] - 1);
            measured = 100 * (measured_ms(&rows[i - 1]) / measured_ms(&rows[i]) - 1);
        }
    }
    snprintf(line, sizeof(line),
             "\n%d of %d rows that judge are within 15 %%. Overlap scheduling gains %.1f %%, "
             "simulated %.1f %%.\n",
             close, judges, measured, gain);
    text_add(out, line, strlen(line));
    assert_int_equal(close, judges);
    assert_true(gain > measured / 2 && gain < measured * 2);
}

static void expect(const struct text *was, const struct text *line)
{
    if (was->at != NULL && strstr(was->at, line->at) == NULL)
        fail_msg("%s does not say (`make bless` writes it anew):\n%s", table, line->at);
}

static void published_steps(void **unused)
{
    bool bless = getenv("TUCK_BLESS") != NULL && (int)N_ROWS > 1;
    struct text now = {NULL, 0, 0};
    double ms[N_ROWS];

    (void)unused;
    text_add(&now, head, strlen(head));
    struct text was = bless ? (struct text){NULL, 0, 0} : text_of_file(table);
    for (size_t i = 0; i <= N_ROWS; i++) {
        struct text line = {NULL, 0, 0};
        if (i < N_ROWS)
            ms[i] = add_row(&rows[i], &line);
        else if ((int)N_ROWS > 1)
            add_sum(ms, &line);
        else
            continue;
        expect(&was, &line);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(published_steps)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
