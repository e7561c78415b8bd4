/* What a pass of one's own makes of a step, and where the step still loses time.
 *
 *   cc study_log.c -ltuck && ./a.out step.log study.html >better.txt
 */
#include <tuck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call) check(call, #call, diags)

static bool to_file(void *file, const char *text, size_t len)
{
    return fwrite(text, 1, len, (FILE *)file) == len;
}

static void check(tuck_status status, const char *call, const tuck_diags *diags)
{
    for (size_t i = 0; status != TUCK_OK && i < tuck_diags_count(diags); i++)
        tuck_diag_print(tuck_diags_at(diags, i), TUCK_PLAIN, to_file, stderr);
    if (status != TUCK_OK)
        exit(fprintf(stderr, "%s: %s\n", call, tuck_status_text(status)) > 0);
}

/* The pass: a wait whose result is used once moves to right before that use. */
static tuck_status late_waits(void *ctx, tuck_graph *g, tuck_diags *diags)
{
    tuck_status status = TUCK_OK;
    (void)ctx, (void)diags;
    for (tuck_node n = tuck_graph_last(g), prev; status == TUCK_OK && !tuck_is_none(n); n = prev) {
        prev = tuck_graph_prev(g, n);
        if (strstr(tuck_node_target(g, n), "wait_tensor") && tuck_node_use_count(g, n) == 1)
            status = tuck_node_move(g, n, tuck_before(tuck_use_user(g, tuck_node_uses(g, n))));
    }
    return status;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "step.log", *label[] = {"before", "after"};
    FILE *html = fopen(argc > 2 ? argv[2] : "study.html", "w");
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_doc *doc;
    tuck_pipeline *passes;
    tuck_simulation *step[2];
    tuck_explanation *why;
    tuck_page *page;
    tuck_exposed x;

    TRY(tuck_doc_read_file(name, NULL, diags, &doc));
    tuck_graph *g = tuck_doc_graph(doc, 0);
    TRY(tuck_graph_simulate(g, NULL, diags, &step[0]));
    TRY(tuck_pipeline_new(NULL, &passes));
    TRY(tuck_pipeline_add(passes, "bucket_all_gather", "cap_mb=50:500", diags));
    TRY(tuck_pipeline_append(passes, "late_waits", late_waits, NULL));
    TRY(tuck_pipeline_run(passes, g, NULL, diags, NULL));
    TRY(tuck_graph_simulate(g, NULL, diags, &step[1]));
    TRY(tuck_graph_explain(g, NULL, NULL, diags, &why));
    for (size_t i = 0; i < 3 && tuck_explanation_at(why, i, &x); i++)
        fprintf(stderr, "%s: %.1f us exposed, %s\n", x.name, (double)x.exposed_ps / 1e6, x.limit);
    TRY(tuck_page_new(name, NULL, &page));
    TRY(tuck_page_add(page, "", step, label, 2));
    TRY(html != NULL ? tuck_page_html(page, to_file, html) : TUCK_EIO);
    TRY(tuck_graph_print(g, TUCK_FORM_TEXT, diags, to_file, stdout));
    tuck_page_free(page);
    tuck_explanation_free(why);
    tuck_simulation_free(step[0]);
    tuck_simulation_free(step[1]);
    tuck_pipeline_free(passes);
    tuck_doc_free(doc);
    tuck_diags_free(diags);
    return fclose(html);
}
