/* Any bytes: whatever can be read as graphs is linted, inferred, lowered, planned, costed and
 * simulated. Each step either fails with a diagnostic or gives a correct result: the program is a
 * fixpoint of printing and reading, and its plan has no overlapping buffers. A text written with
 * all known facts can be read again. */
#include <stdio.h>
#include <stdlib.h>

#include "study/evaluate.h"
#include "support/program_check.h"

enum { NODES = 400 }; /* per graph; checks compare all pairs of buffers */

static void check(char *why)
{
    if (why == NULL)
        return;
    fprintf(stderr, "%s\n", why);
    abort();
}

static bool nothing(void *ctx, const char *s, size_t n)
{
    (void)ctx;
    (void)s;
    (void)n;
    return true;
}

static void simulate(tuck_graph *g, tuck_diags *d)
{
    struct machine machine;
    struct evaluate_options o;
    struct evaluation e;
    tuck_cluster *cluster = NULL;

    if (tuck_cluster_for_graph(g, NULL, d, &cluster) != TUCK_OK)
        return;
    machine_init(&machine, cluster);
    evaluate_defaults(&o, &machine);
    size_t errors = tuck_diags_errors(d);
    tuck_status st = evaluate_graph(g, &o, d, &e);
    if (st == TUCK_OK) {
        if (e.time.makespan < 0 || e.peak < 0)
            check(strdup("a step of less than no time or no memory"));
        if (e.has_bounds && e.order.ps > e.time.makespan)
            check(strdup("the bound is over the step"));
        if (e.program->n_op < 500 && e.program->n_buf < 500) {
            check(check_program_text(e.program));
            check(check_program_plan(e.program, NULL));
        }
    } else if (st != TUCK_ENOMEM && tuck_diags_errors(d) == errors) {
        check(strdup("refused without a word"));
    }
    evaluate_end(&e);
    tuck_cluster_free(cluster);
}

static void write_and_read(tuck_doc *doc)
{
    struct text t = {NULL, 0, 0};
    tuck_doc *again = NULL;

    for (size_t i = 0; i < tuck_doc_count(doc); i++)
        if (tuck_graph_remember(tuck_doc_graph(doc, i)) != TUCK_OK)
            abort();
    if (tuck_doc_print(doc, TUCK_FORM_TEXT, NULL, text_add, &t) != TUCK_OK ||
        tuck_doc_read_text(t.at ? t.at : "", t.len, "again", NULL, NULL, &again) != TUCK_OK)
        check(strdup("what is known cannot be written down"));
    if (tuck_doc_count(again) != tuck_doc_count(doc))
        check(strdup("graphs are lost"));
    tuck_doc_free(again);
    text_done(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_doc *doc;

    if (tuck_doc_read_text((const char *)data, size, "fuzz", NULL, d, &doc) == TUCK_OK) {
        for (size_t i = 0; i < tuck_doc_count(doc); i++) {
            tuck_graph *g = tuck_doc_graph(doc, i);

            if (tuck_graph_size(g) > NODES || tuck_graph_lint(g, d) != TUCK_OK ||
                tuck_graph_infer(g, true, d) != TUCK_OK)
                continue;
            simulate(g, d);
            tuck_graph_dot(g, nothing, NULL);
        }
        write_and_read(doc);
        tuck_doc_free(doc);
    }
    tuck_diags_free(d);
    return 0;
}
