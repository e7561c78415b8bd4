/* tuck_graph_optimize() on every graph of the corpus: never slower, never larger than before, and
 * the numbers are those of tests/results/optimize.txt. `make bless` (TUCK_BLESS=1) rewrites that
 * file; graphs of thousands of nodes are compared in a soak only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

/* The stress build checks more, so it need not run as many. */
#ifdef TUCK_STRESS
enum { FEWER = 4 };
#else
enum { FEWER = 1 };
#endif

static const char table[] = "tests/results/optimize.txt";

/* Sizes that a graph does not give. */
enum { N_SYMBOLS = 120, TAKEN_AS = 512 };

static char symbol_name[2 * N_SYMBOLS][16];
static tuck_hint symbol[2 * N_SYMBOLS];

static void name_symbols(void)
{
    for (int i = 0; i < 2 * N_SYMBOLS; i++) {
        snprintf(symbol_name[i], sizeof(*symbol_name), "%c%d", i % 2 ? 'u' : 's', i / 2);
        symbol[i] = (tuck_hint){symbol_name[i], TAKEN_AS};
    }
}

static double gap(double ns, double bound)
{
    return bound > 0 ? 100 * (ns / bound - 1) : 0;
}

static double ns(int64_t ps)
{
    return (double)ps / 1e3;
}

/* A line of the table. */
static void optimize(const char *path, struct text *out)
{
    tuck_doc *doc = NULL;
    tuck_gain x;
    char line[400];
    tuck_machine machine = {.size = sizeof(machine), .hints = symbol, .n_hints = 2 * N_SYMBOLS};
    tuck_run_options run;

    tuck_run_options_init(&run);
    run.machine = &machine;

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        fail_msg("%s cannot be read", path);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
    size_t nodes = tuck_graph_size(g);
    tuck_status st = tuck_graph_optimize(g, &run, NULL, &x, NULL);
    const char *name = path + strlen("tests/graphs/");
    if (st != TUCK_OK) {
        snprintf(line, sizeof(line), "%-44s %6zu  refused: status %d\n", name, nodes, (int)st);
    } else {
        if (x.after.step_ps > x.before.step_ps || x.after.peak_bytes > x.before.peak_bytes)
            fail_msg("%s: %.3f ns, %lld bytes became %.3f ns, %lld bytes", path,
                     ns(x.before.step_ps), (long long)x.before.peak_bytes, ns(x.after.step_ps),
                     (long long)x.after.peak_bytes);
        if (x.after.step_ps < x.bound_ps)
            fail_msg("%s: %.3f ns is under the bound of %.3f", path, ns(x.after.step_ps),
                     ns(x.bound_ps));
        snprintf(line, sizeof(line),
                 "%-44s %6zu %11.3f %11.3f %11.3f %11.3f %9.1f %9.1f %11.3f %7.1f %7.1f\n", name,
                 nodes, ns(x.before.step_ps) / 1e6, ns(x.after.step_ps) / 1e6,
                 ns(x.before.exposed_ps) / 1e6, ns(x.after.exposed_ps) / 1e6,
                 (double)x.before.peak_bytes / 1048576, (double)x.after.peak_bytes / 1048576,
                 ns(x.bound_ps) / 1e6, gap(ns(x.before.step_ps), ns(x.bound_ps)),
                 gap(ns(x.after.step_ps), ns(x.bound_ps)));
    }
    text_add(out, line, strlen(line));
    tuck_doc_free(doc);
}

/* clang-format off */
static const char head[] =
    "What `tuck optimize` makes of the graphs in tests/graphs, on the machine it assumes for each: times in ms, peak\n"
    "memory in MiB, gap to the bound in %. Symbolic sizes are taken as 512. `make test` compares, `make bless` writes it.\n\n"
    "graph                                         nodes        step       after     exposed       after      peak     after       bound     gap   after\n";
/* clang-format on */

static void whole_corpus(void **unused)
{
    static const char *const folders[] = {"big", "ddp", "exec", "fsdp", "moe", "tp"};
    bool all = getenv("TUCK_SOAK") != NULL || getenv("TUCK_BLESS") != NULL;
    struct text now = {NULL, 0, 0};
    size_t graphs = 0;

    (void)unused;
    name_symbols();
    text_add(&now, head, strlen(head));
    struct text was = getenv("TUCK_BLESS") ? (struct text){NULL, 0, 0} : text_of_file(table);
    if (was.at != NULL && strncmp(was.at, head, strlen(head)) != 0)
        fail_msg("%s has another head", table);
    for (size_t f = 0; f < sizeof(folders) / sizeof(*folders); f++) {
        char dir[64];
        size_t n;
        snprintf(dir, sizeof(dir), "tests/graphs/%s", folders[f]);
        char **path = find_paths(dir, ".txt", &n);
        for (size_t i = 0; i < n; i++) {
            struct text line = {NULL, 0, 0};
            if (!all && (strcmp(folders[f], "big") == 0 || i % FEWER != 0))
                continue;
            optimize(path[i], &line);
            if (was.at != NULL && strstr(was.at, line.at) == NULL)
                fail_msg("%s does not say (`make bless` writes it anew):\n%s", table, line.at);
            text_add(&now, line.at, line.len);
            text_done(&line);
            graphs++;
        }
        free_paths(path, n);
    }
    if (all && was.at != NULL && strcmp(was.at, now.at) != 0)
        fail_msg("%s has lines of graphs that are not there", table);
    if (getenv("TUCK_BLESS"))
        text_to_file(table, &now);
    print_message("# %zu graphs, none slower or larger\n", graphs);
    text_done(&was);
    text_done(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_corpus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
