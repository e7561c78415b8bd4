/* What would help, on graphs with several kinds of collectives on a group: every remedy that is
 * reported gains something. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/explain.h"

static void explain(const char *path, const char *node)
{
    tuck_doc *doc;
    tuck_cluster *cluster;
    struct machine machine;
    struct evaluate_options o;
    struct study study;
    struct explanation x;

    if (tuck_doc_read_file(path, NULL, NULL, &doc) != TUCK_OK)
        fail_msg("%s cannot be read", path);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, path, -1, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_infer(g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_for_graph(g, NULL, NULL, &cluster), TUCK_OK);
    machine_init(&machine, cluster);
    evaluate_defaults(&o, &machine);
    study_begin(&study, &o, &g->store->mem.alloc);
    assert_int_equal(explain_graph(&study, g, &(struct explain_options){.node = node}, NULL, &x),
                     TUCK_OK);
    if (x.n_remedy == 0 && node == NULL)
        fail_msg("%s: nothing helps", path);
    for (uint32_t i = 0; i < x.n_remedy; i++) {
        const struct remedy *r = &x.remedy[i];
        if (r->ps >= x.e->time.makespan && (node == NULL || r->own < 0))
            fail_msg("%s: '%s' gains nothing", path, r->what);
        if ((r->no_command == NULL) != (r->kind != REMEDY_LINKS && r->kind != REMEDY_GROUP))
            fail_msg("%s: '%s' has no command that applies it", path, r->what);
        if (r->ps < x.e->order.each[BOUND_BY_COMPUTE] && r->kind == REMEDY_LINKS)
            fail_msg("%s: '%s' is shorter than all compute", path, r->what);
        if (r->kind == REMEDY_MEMORY && i > 0 && x.remedy[i - 1].kind == REMEDY_MEMORY &&
            (r->ps >= x.remedy[i - 1].ps || r->peak <= x.remedy[i - 1].peak))
            fail_msg("%s: '%s' takes more memory for nothing", path, r->what);
    }
    explain_end(&x);
    study_end(&study);
    tuck_cluster_free(cluster);
    tuck_doc_free(doc);
}

static void test_remedies(void **state)
{
    (void)state;
    explain("tests/graphs/exec/moe_static_bw.txt", NULL);
    explain("tests/graphs/exec/ring_attention_bw.txt", NULL);
    explain("tests/graphs/fsdp/llama_overlap_bw.txt", NULL);
    explain("tests/graphs/fsdp/mlp_f32_bw.txt", NULL);
}

static void test_collectives(void **state)
{
    (void)state;
    explain("tests/graphs/fsdp/llama_regather_bw.txt", "reduce_scatter_tensor");
    explain("tests/graphs/fsdp/llama_regather_bw.txt", "reduce_scatter_tensor_20");
    explain("tests/graphs/fsdp/llama_overlap_bw.txt", "reduce_scatter_tensor_20");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_remedies),
                                       cmocka_unit_test(test_collectives)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
