/* Any bytes as a decision file: what can be read is written and read again, and is the same; applied
 * to a graph it is refused with a word, or leaves a valid graph. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static const char graph[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, a: \"f32[64, 64]cuda:0\", b: \"f32[64, 64]cuda:0\"):\n"
    "        r: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(a, 'sum', "
    "'0')\n"
    "        w: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(r)\n"
    "        mm: \"f32[64, 64]cuda:0\" = torch.ops.aten.mm.default(a, b)\n"
    "        return (w, mm)\n";

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static void round_trip(const tuck_decision *d)
{
    struct text a = {NULL, 0, 0}, b = {NULL, 0, 0};
    tuck_decision *again = NULL;

    if (tuck_decision_write(d, text_add, &a) != TUCK_OK ||
        tuck_decision_read_text(a.at, a.len, "again", NULL, NULL, &again) != TUCK_OK)
        fail("what was written cannot be read");
    if (tuck_decision_write(again, text_add, &b) != TUCK_OK || strcmp(a.at, b.at) != 0)
        fail("what was written and read is another");
    text_done(&a);
    text_done(&b);
    tuck_decision_free(again);
}

static void apply(const tuck_decision *d, tuck_diags *diags)
{
    tuck_doc *doc = read_or_die(graph);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    char *before = graph_text(g);
    tuck_status st = tuck_decision_apply(d, g, NULL, diags, NULL);
    char *after = graph_text(g);

    if (st != TUCK_OK && tuck_diags_errors(diags) == 0)
        fail("refused without a word");
    if (st != TUCK_OK && strcmp(before, after) != 0)
        fail("a refused decision changed the graph");
    if (tuck_graph_lint(g, NULL) != TUCK_OK)
        fail("an invalid graph");
    free(before);
    free(after);
    tuck_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *diags = tuck_diags_new(NULL);
    tuck_decision *d = NULL;

    if (tuck_decision_read_text((const char *)data, size, "f", NULL, diags, &d) == TUCK_OK) {
        round_trip(d);
        tuck_diags_clear(diags);
        apply(d, diags);
        tuck_decision_free(d);
    } else if (tuck_diags_errors(diags) == 0) {
        fail("refused without a word");
    }
    tuck_diags_free(diags);
    return 0;
}
