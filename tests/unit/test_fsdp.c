/* The FSDP passes with an allocator that refuses request k, for k = 1, 2, … until they succeed:
 * each time they report it, leave the graph unchanged, and leak nothing. Random graphs do not have
 * the patterns they look for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "support/support.h"

#define HEAD "class step(torch.nn.Module):\n    def forward(self, "
#define COMM "torch.ops._c10d_functional."

static const struct subject {
    const char *pass, *text;
} subjects[] = {
    {"reinplace_fsdp_all_gather",
     HEAD "a: \"f32[16]\", b: \"f32[32]\"):\n"
          "        buffer: \"f32[96]\" = torch.ops.aten.empty.memory_format([96])\n"
          "        c = torch.ops.fsdp.all_gather_copy_in.default([a, b], buffer, [16, 32], 48, 0)\n"
          "        part: \"f32[48]\" = c[0]\n"
          "        whole: \"f32[96]\" = c[1]\n"
          "        gather: \"f32[96]\" = " COMM "all_gather_into_tensor.default(part, 2, '0')\n"
          "        wait: \"f32[96]\" = " COMM "wait_tensor.default(gather)\n"
          "        return wait\n"},
    {"remove_fsdp2_unsharded_param_graph_input_usage",
     HEAD "p: \"f32[8, 8]\", q: \"f32[8, 8]\", x: \"f32[8, 8]\"):\n"
          "        full = torch.ops.inductor.resize_storage_bytes_.default(p, 256)\n"
          "        copy = torch.ops.fsdp.copy_.default(p, x)\n"
          "        use: \"f32[8, 8]\" = torch.ops.aten.mm.default(p, p)\n"
          "        zero = torch.ops.inductor.resize_storage_bytes_.default(p, 0)\n"
          "        copy_1 = torch.ops.fsdp.copy_.default(q, use)\n"
          "        use_1: \"f32[8, 8]\" = torch.ops.aten.mm.default(q, use)\n"
          "        return use_1\n"},
    {"dedup_fsdp_reduce_scatter",
     HEAD "a: \"f32[8, 4]\", b: \"f32[8, 4]\", c: \"f32[8, 4]\"):\n"
          "        r: \"f32[4, 4]\" = " COMM "reduce_scatter_tensor.default(a, 'sum', 2, '0')\n"
          "        r_1: \"f32[4, 4]\" = " COMM "reduce_scatter_tensor.default(b, 'sum', 2, '0')\n"
          "        r_2: \"f32[4, 4]\" = " COMM "reduce_scatter_tensor.default(c, 'sum', 2, '0')\n"
          "        w: \"f32[4, 4]\" = " COMM "wait_tensor.default(r)\n"
          "        w_1: \"f32[4, 4]\" = " COMM "wait_tensor.default(r_1)\n"
          "        w_2: \"f32[4, 4]\" = " COMM "wait_tensor.default(r_2)\n"
          "        s: \"f32[4, 4]\" = torch.ops.aten.add.Tensor(w, w_1)\n"
          "        s_1: \"f32[4, 4]\" = torch.ops.aten.add.Tensor(s, w_2)\n"
          "        return s_1\n"},
    {"pre_bucket_fsdp_collectives",
     HEAD "a: \"f32[4]\", b: \"f32[4]\"):\n"
          "        g: \"f32[8]\" = " COMM "all_gather_into_tensor.default(a, 2, '0')\n"
          "        g_1: \"f32[8]\" = " COMM "all_gather_into_tensor.default(b, 2, '0')\n"
          "        w: \"f32[8]\" = " COMM "wait_tensor.default(g)\n"
          "        w_1: \"f32[8]\" = " COMM "wait_tensor.default(g_1)\n"
          "        return (w, w_1)\n"},
};

static tuck_pipeline *parse(const char *text)
{
    tuck_pipeline *p = NULL;

    assert_int_equal(tuck_pipeline_parse(text, strlen(text), "list", NULL, NULL, &p), TUCK_OK);
    return p;
}

/* Runs with request k refused, and all later ones if `stay`. True: memory was sufficient. */
static bool run_refused(const struct subject *s, const tuck_pipeline *p, size_t k, bool stay)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    tuck_run_options o = {.size = sizeof(o)};
    tuck_report *t = NULL;
    tuck_doc *doc;

    assert_int_equal(tuck_doc_read_text(s->text, strlen(s->text), "t.txt", &read, NULL, &doc),
                     TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    char *before = graph_text(g);
    f.fail_at = f.calls + k;
    f.stay = stay;
    tuck_status st = tuck_pipeline_run(p, g, &o, NULL, &t);
    bool failed = f.failed;
    f.fail_at = 0;
    char *after = graph_text(g), *why = check_users(g);
    if (st != TUCK_OK && (st != TUCK_ENOMEM || !failed))
        fail_msg("%s, request %zu: %s", s->pass, k, tuck_status_text(st));
    if ((strcmp(before, after) == 0) != (st != TUCK_OK) || why != NULL)
        fail_msg("%s, request %zu: %s, and yet\n%s", s->pass, k, tuck_status_text(st), after);
    free(before);
    free(after);
    tuck_report_free(t);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("%s, request %zu: %zu bytes leaked", s->pass, k, f.live);
    return !failed;
}

static void test_no_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(subjects) / sizeof(*subjects); i++) {
        tuck_pipeline *p = parse(subjects[i].pass);
        size_t k = 1;

        for (; !run_refused(&subjects[i], p, k, false); k++)
            run_refused(&subjects[i], p, k, true);
        assert_true(k > 20); /* there was something to refuse */
        tuck_pipeline_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_no_memory)};

    return cmocka_run_group_tests_name("fsdp", tests, NULL, NULL);
}
