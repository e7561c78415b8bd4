/* Known facts about a graph are kept in the written text: every graph of the corpus with its
 * side-car, written with tuck_graph_remember() and read again without the side-car, has the same
 * groups and the same simulated step. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "graph/graph.h"
#include "study/evaluate.h"
#include "support/support.h"

enum { SIMULATED = 2000 }; /* nodes; for larger graphs times are not compared */

static const char *const folder[] = {"big", "ddp", "exec", "forms", "fsdp", "moe", "tp"};
static const int64_t VALUE = 6; /* of every symbol without a given value */

struct known {
    size_t graphs, simulated, lines;
};

static void same_groups(const char *path, const tuck_graph *a, const tuck_graph *b)
{
    if (tuck_graph_group_count(a) != tuck_graph_group_count(b))
        fail_msg("%s: %zu groups become %zu", path, tuck_graph_group_count(a),
                 tuck_graph_group_count(b));
    for (size_t i = 0; i < tuck_graph_group_count(a); i++) {
        const int64_t *x = tuck_graph_group_ranks(a, i), *y = tuck_graph_group_ranks(b, i);
        int64_t size = tuck_graph_group_size(a, i);

        assert_string_equal(tuck_graph_group_name(a, i), tuck_graph_group_name(b, i));
        if (size != tuck_graph_group_size(b, i) || (x == NULL) != (y == NULL) ||
            tuck_graph_group_rank(a, i) != tuck_graph_group_rank(b, i) ||
            (x != NULL && memcmp(x, y, (size_t)size * sizeof(*x)) != 0))
            fail_msg("%s: group '%s' is not what it was", path, tuck_graph_group_name(a, i));
    }
    assert_int_equal(tuck_graph_child_count(a), tuck_graph_child_count(b));
    for (size_t i = 0; i < tuck_graph_child_count(a); i++)
        same_groups(path, tuck_graph_child(a, i), tuck_graph_child(b, i));
}

static void same_hints(const char *path, const tuck_graph *a, const tuck_graph *b)
{
    for (uint32_t i = 0; i < a->hint.len; i++) {
        bool found = false;
        for (uint32_t k = 0; k < b->hint.len; k++)
            found |= strcmp(graph_str(a, a->hint.at[i].symbol),
                            graph_str(b, b->hint.at[k].symbol)) == 0 &&
                     a->hint.at[i].value == b->hint.at[k].value;
        if (!found)
            fail_msg("%s: the value of '%s' is lost", path, graph_str(a, a->hint.at[i].symbol));
    }
}

/* The step time of the graph as it is, or -1 if there is none. */
static int64_t step_of(tuck_graph *g, int64_t *peak)
{
    struct fx_hint hint[300];
    struct machine machine;
    struct evaluate_options o;
    struct evaluation e;
    tuck_cluster *cluster;
    size_t n = 0;

    *peak = -1;
    for (int i = 0; i < 99; i++) { /* s0, s1, …, as far as the graph has them */
        char name[16];
        snprintf(name, sizeof(name), "s%d", i);
        str_id id = str_find(&g->store->str, name, strlen(name));
        if (id != 0)
            hint[n++] = (struct fx_hint){id, VALUE};
    }
    for (uint32_t i = 0; i < g->hint.len; i++)
        hint[n++] = g->hint.at[i];
    assert_int_equal(tuck_graph_infer(g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_for_graph(g, NULL, NULL, &cluster), TUCK_OK);
    machine_init(&machine, cluster);
    machine.hint = hint;
    machine.n_hint = n;
    evaluate_defaults(&o, &machine);
    o.no_bounds = true;
    bool ok = evaluate_graph(g, &o, NULL, &e) == TUCK_OK;
    int64_t ps = ok ? e.time.makespan : -1;
    if (ok)
        *peak = e.peak;
    evaluate_end(&e);
    tuck_cluster_free(cluster);
    return ps;
}

static void same_step(const char *path, tuck_graph *a, tuck_graph *b)
{
    int64_t peak[2], step[2] = {step_of(a, &peak[0]), step_of(b, &peak[1])};

    if (step[0] != step[1] || peak[0] != peak[1])
        fail_msg("%s: a step of %" PRId64 " ps and %" PRId64 " bytes is one of %" PRId64
                 " ps and %" PRId64 " bytes once it was written",
                 path, step[0], peak[0], step[1], peak[1]);
}

static void check_file(const char *path, struct known *sum)
{
    tuck_doc *doc, *again;
    struct text t = {NULL, 0, 0};

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        fail_msg("%s cannot be read", path);
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *g = tuck_doc_graph(doc, i);
        assert_int_equal(tuck_graph_read_sidecar(g, path, tuck_doc_rank(doc, i), NULL), TUCK_OK);
        assert_int_equal(tuck_graph_remember(g), TUCK_OK);
        sum->lines += g->known != 0;
    }
    assert_int_equal(tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, text_add, &t), TUCK_OK);
    if (tuck_doc_read_text(t.at, t.len, path, NULL, NULL, &again) != TUCK_OK)
        fail_msg("%s cannot be read once it was written", path);
    assert_int_equal(tuck_doc_count(doc), tuck_doc_count(again));
    for (size_t i = 0; i < tuck_doc_count(doc); i++) {
        tuck_graph *a = tuck_doc_graph(doc, i), *b = tuck_doc_graph(again, i);

        sum->graphs++;
        same_groups(path, a, b);
        same_hints(path, a, b);
        if (tuck_graph_size(a) <= SIMULATED) {
            same_step(path, a, b);
            sum->simulated++;
        }
    }
    text_done(&t);
    tuck_doc_free(again);
    tuck_doc_free(doc);
}

static void corpus(void **unused)
{
    static const char *const end[] = {".txt", ".py", ".log"};
    struct known sum = {0, 0, 0};

    (void)unused;
    for (size_t f = 0; f < sizeof(folder) / sizeof(*folder); f++)
        for (size_t e = 0; e < 3; e++) {
            char dir[64];
            size_t n;
            snprintf(dir, sizeof(dir), "tests/graphs/%s", folder[f]);
            char **path = find_paths(dir, end[e], &n);
            for (size_t i = 0; i < n; i++)
                check_file(path[i], &sum);
            free_paths(path, n);
        }
    print_message("# %zu graphs, %zu simulated, %zu with a line of what is known\n", sum.graphs,
                  sum.simulated, sum.lines);
    assert_true(sum.graphs > 150 && sum.simulated > 100 && sum.lines > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
