/* Runs a pass of your own on a step, and shows where the step still loses time.
 *   cc study_log.c -ltuck && ./a.out step.log study.html >better.txt */
#include <tuck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The pass: moves a wait whose result is used once right before that use. */
static tuck_status late_waits(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    (void)ctx, (void)diags;
    for (tuck_node n = tuck_graph_last(g), prev; !tuck_is_none(n); n = prev) {
        prev = tuck_graph_prev(g, n);
        if (strstr(tuck_node_target(g, n), "wait_tensor") && tuck_node_use_count(g, n) == 1 &&
            tuck_node_move(g, n, tuck_before(tuck_use_user(g, tuck_node_uses(g, n)))) != TUCK_OK)
            return TUCK_EINVAL;
    }
    return TUCK_OK;
}

/* Prints diagnostics; stops if something failed. */
static void check(tuck_status status, tuck_diags *diags)
{
    tuck_diags_print(diags, TUCK_PLAIN, tuck_write_file, stderr);
    tuck_diags_clear(diags);
    if (status != TUCK_OK)
        exit(fprintf(stderr, "study_log: %s\n", tuck_status_text(status)) > 0);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "step.log";
    FILE *html = fopen(argc > 2 ? argv[2] : "study.html", "w");
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc;
    tuck_pipeline *passes;
    tuck_simulation *before;
    tuck_explanation *why;

    check(tuck_doc_read_file(name, NULL, diags, &doc), diags);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    check(tuck_graph_simulate(g, NULL, diags, &before), diags);
    check(tuck_pipeline_new(NULL, &passes), diags);
    check(tuck_pipeline_add(passes, "bucket_all_gather", "cap_mb=50:500", diags), diags);
    check(tuck_pipeline_append(passes, "late_waits", late_waits, NULL), diags);
    check(tuck_pipeline_run(passes, g, NULL, diags, NULL), diags);
    check(tuck_graph_explain(g, NULL, NULL, diags, &why), diags);
    tuck_exposed x;
    for (size_t i = 0; i < 3 && tuck_explanation_at(why, i, &x); i++)
        fprintf(stderr, "%s: %.1f us exposed, %s\n", x.name, (double)x.exposed_ps / 1e6, x.limit);
    const tuck_simulation *after = tuck_explanation_simulation(why);
    check(tuck_simulation_html(before, after, name, tuck_write_file, html), diags);
    check(tuck_graph_print(g, TUCK_FORM_TEXT, diags, tuck_write_file, stdout), diags);
    tuck_explanation_free(why);
    tuck_simulation_free(before);
    tuck_pipeline_free(passes);
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    return fclose(html);
}
