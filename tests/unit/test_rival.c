/* PyTorch's own scheduler as the row to beat. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"

struct both {
    tuck_gain gain;
    tuck_rival rival;
    char refused[300];
};

static struct both run(tuck_graph *g, const tuck_run_options *o)
{
    struct both x = {.rival = {.size = sizeof(x.rival)}};
    tuck_report *t = NULL;

    assert_int_equal(tuck_graph_optimize(g, o, NULL, &x.gain, &t), TUCK_OK);
    assert_true(tuck_report_rival(t, &x.rival));
    if (x.rival.refused != NULL)
        strncpy(x.refused, x.rival.refused, sizeof(x.refused) - 1);
    tuck_report_free(t);
    return x;
}

static int64_t alone(tuck_graph *g)
{
    static const char own[] = "schedule_overlap_bucketing(compat=torch)";
    tuck_pipeline *p = NULL;
    tuck_simulation *s = NULL;
    tuck_times times;

    assert_int_equal(tuck_pipeline_parse(own, strlen(own), "own", NULL, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_pipeline_run(p, g, NULL, NULL, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_simulate(g, NULL, NULL, &s), TUCK_OK);
    tuck_simulation_times(s, &times);
    tuck_simulation_free(s);
    tuck_pipeline_free(p);
    return times.step_ps;
}

/* The figures are those of the passes by themselves; with their memory Tuck is not slower. */
static void test_corpus(void **state)
{
    static const char *const path[] = {
        "tests/graphs/ddp/gpt2_real_bw.txt", "tests/graphs/fsdp/llama_fw.txt",
        "tests/graphs/fsdp/llama_bw.txt", "tests/graphs/tp/llama_fsdp_tp_bw.txt",
        "tests/graphs/moe/llama_fsdp_ep_bw.txt"};

    (void)state;
    for (size_t i = 0; i < sizeof(path) / sizeof(*path); i++) {
        tuck_doc *doc[3];
        for (int k = 0; k < 3; k++)
            assert_int_equal(tuck_doc_read_file(path[i], NULL, NULL, &doc[k]), TUCK_OK);
        struct both x = run(tuck_doc_graph(doc[0], 0), NULL);
        tuck_run_options o;
        tuck_run_options_init(&o);
        assert_null(x.rival.refused);
        assert_int_equal(x.rival.times.step_ps, alone(tuck_doc_graph(doc[1], 0)));
        assert_int_equal(x.rival.fits, x.rival.times.peak_bytes <= x.gain.memory_limit);
        if (x.rival.fits)
            assert_true(x.gain.after.step_ps <= x.rival.times.step_ps);
        o.memory = x.rival.times.peak_bytes > x.gain.before.peak_bytes ? x.rival.times.peak_bytes
                                                                       : x.gain.before.peak_bytes;
        struct both y = run(tuck_doc_graph(doc[2], 0), &o);
        assert_true(y.rival.fits);
        assert_true(y.gain.after.step_ps <= y.rival.times.step_ps);
        for (int k = 0; k < 3; k++)
            tuck_doc_free(doc[k]);
    }
}

/* PyTorch would merge the two, but a view of where the first one lies is returned. */
static const char watched[] =
    "class GraphModule(torch.nn.Module):\n"
    "    def forward(self, a: \"f32[64, 64]cuda:0\", b: \"f32[64, 64]cuda:0\"):\n"
    "        r: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(a, 'sum', "
    "'0')\n"
    "        w: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(r)\n"
    "        r_1: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.all_reduce.default(b, 'sum', "
    "'0')\n"
    "        w_1: \"f32[64, 64]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(r_1)\n"
    "        s: \"f32[64, 64]cuda:0\" = torch.ops.aten.as_strided.default(w, [64, 64], [1, 64], "
    "0)\n"
    "        return (s, w_1)\n";

static void test_refused(void **state)
{
    tuck_doc *doc = read_or_die(watched);
    struct both x = run(tuck_doc_graph(doc, 0), NULL);

    (void)state;
    assert_non_null(x.rival.refused);
    assert_non_null(strstr(x.refused, "PyTorch merges 'r'"));
    assert_false(x.rival.fits);
    assert_false(tuck_report_rival(NULL, &x.rival));
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_corpus),
        cmocka_unit_test(test_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
