/* Any bytes as a profiler's trace, plain or gzip: nothing crashes; an error has a diagnostic with a
 * message; of a trace that is read, no figure is below nothing, exposed communication is part of the
 * communication, and printing and drawing work, alone and as two ranks; a graph is tied to it, or
 * there is a word why not.
 */
#include <stdlib.h>
#include <string.h>

#include "support/fuzzing.h"
#include "tuck_experimental.h"

static void check_figures(tuck_traces *t)
{
    for (size_t i = 0; i < tuck_traces_count(t); i++) {
        tuck_trace_figures x;
        if (!tuck_traces_figures(t, i, &x))
            fail("a timeline without figures");
        if (x.step_ps < 0 || x.compute_ps < 0 || x.comm_ps < 0)
            fail("a time below nothing");
    }
}

static void check_read(tuck_traces *t)
{
    tuck_print_options how;
    size_t len = 0;

    check_figures(t);
    tuck_print_options_init(&how);
    if (tuck_traces_print(t, &how, drop, &len) != TUCK_OK || len == 0)
        fail("a table is not printed");
    how.form = TUCK_PRINT_JSON;
    if (tuck_traces_print(t, &how, drop, &len) != TUCK_OK)
        fail("JSON is not printed");
    tuck_status st = tuck_traces_html(t, "t", -1, drop, &len);
    if (st != TUCK_OK && st != TUCK_EINVAL)
        fail("a page is not drawn");
    if (tuck_traces_perfetto(t, -1, drop, &len) != st)
        fail("a page is drawn and a trace is not");
}

/* In the seeds are runs of this graph. */
static const char step[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[512, 64][64, 1]cpu\", w: \"f32[64, 512][512, 1]cpu\"):\n"
    "        mm: \"f32[512, 512][512, 1]cpu\" = torch.ops.aten.mm.default(x, w)\n"
    "        a: \"f32[512, 512][512, 1]cpu\" = "
    "torch.ops._c10d_functional.all_reduce_.default(mm, 'sum', '0')\n"
    "        wait: \"f32[512, 512][512, 1]cpu\" = "
    "torch.ops._c10d_functional.wait_tensor.default(a)\n"
    "        b: \"f32[512, 512][512, 1]cpu\" = "
    "torch.ops._c10d_functional.all_reduce_.default(wait, 'sum', '0')\n"
    "        wait_1: \"f32[512, 512][512, 1]cpu\" = "
    "torch.ops._c10d_functional.wait_tensor.default(b)\n"
    "        tanh: \"f32[512, 512][512, 1]cpu\" = torch.ops.aten.tanh.default(wait_1)\n"
    "        return (tanh,)\n";

static void check_tie(tuck_traces *t, tuck_diags *d)
{
    tuck_doc *doc = NULL;
    tuck_tie *tie = NULL;
    tuck_machine machine;
    tuck_tie_options o;
    tuck_print_options how;
    size_t len = 0, before = tuck_diags_errors(d);

    if (tuck_doc_read_text(step, sizeof(step) - 1, "step", NULL, NULL, &doc) != TUCK_OK)
        fail("the graph is not read");
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_machine_init(&machine);
    tuck_tie_options_init(&o);
    o.every = 2;
    if (tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL) != TUCK_OK)
        fail("the graph has no types");
    tuck_status st = tuck_traces_tie(t, g, &machine, &o, d, &tie);
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    if (st == TUCK_OK && (tuck_tie_print(tie, NULL, &how, drop, &len) != TUCK_OK || len == 0))
        fail("a tie is not printed");
    if (st != TUCK_OK && st != TUCK_ENOMEM && tuck_diags_errors(d) == before)
        fail("not tied without a word");
    tuck_tie_free(tie);
    tuck_doc_free(doc);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_traces *t = NULL;

    if (d == NULL || tuck_traces_new(NULL, &t) != TUCK_OK)
        abort();
    tuck_status st = tuck_traces_add_text(t, (const char *)data, size, "t.json", d);
    if (st == TUCK_OK) {
        if (tuck_diags_errors(d) > 0)
            fail("read, though there are errors");
        check_read(t);
        if (tuck_traces_add_text(t, (const char *)data, size, "u.json", d) != TUCK_OK)
            fail("read once, but not twice");
        check_read(t);
        check_tie(t, d);
    } else if (st != TUCK_ENOMEM && tuck_diags_errors(d) == 0) {
        fail("refused without a word");
    }
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (*tuck_diags_at(d, i)->message == '\0')
            fail("an error without a message");
    tuck_traces_free(t);
    tuck_diags_free(d);
    return 0;
}
