/* Communication that keeps its place among all other: one row for each kind. A gather before and
 * one behind it, which could be merged and would be faster side by side, stay on their sides in
 * every pass and in `tuck optimize`. The same graph without the fence shows that it is the fence. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/support.h"
#include "tuck_experimental.h"

struct fence {
    const char *name;
    const char *line;   /* one statement, whose result is `fence` */
    const char *nested; /* a class for it, or NULL */
};

static const struct fence fences[] = {
    {"nothing", "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = torch.ops.aten.relu.default(x)",
     NULL},
    {"a send",
     "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = "
     "torch.ops._c10d_functional.isend.default(x, 1, 0, '0')",
     NULL},
    {"a receive",
     "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = "
     "torch.ops._c10d_functional.irecv.default(y, 1, 0, '0')",
     NULL},
    {"a put", "fence = torch.ops.symm_mem.nvshmem_put.default(y, 1)", NULL},
    {"a get", "fence = torch.ops.symm_mem.nvshmem_get.default(y, 1)", NULL},
    {"NCCL's put", "fence = torch.ops.symm_mem.nccl_put.default(y, 1)", NULL},
    {"a rendezvous", "fence = torch.ops.symm_mem._rendezvous.default(y, '0')", NULL},
    {"an unknown operator",
     "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = torch.ops.mine.talk.default(x)", NULL},
    {"a module", "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = self.block(x)", NULL},
    {"a group of assumed size",
     "fence: \"bf16[2048, 2048][2048, 1]cuda:0\" = "
     "torch.ops._c10d_functional.all_reduce.default(x, 'sum', 'else')",
     NULL},
    {"a graph that communicates",
     "inner = self.inner;  fence = torch.ops.higher_order.invoke_subgraph(inner, 'inner', x);  "
     "inner "
     "= None",
     "\n    class inner(torch.nn.Module):\n"
     "        def forward(self, a: \"bf16[2048, 2048][2048, 1]cuda:0\"):\n"
     "            r: \"bf16[2048, 2048][2048, 1]cuda:0\" = "
     "torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0')\n"
     "            w: \"bf16[2048, 2048][2048, 1]cuda:0\" = "
     "torch.ops._c10d_functional.wait_tensor.default(r)\n"
     "            return (w,)\n"},
};
enum { FENCES = sizeof(fences) / sizeof(*fences) };

static const char *const pipelines[] = {
    NULL, /* tuck optimize */
    "bucket_all_gather",
    "bucket_fsdp_all_gather",
    "merge_bucket(nodes=c0:c1)",
    "list_overlap(list_peak_memory_budget=None)",
    "improve_order(list_peak_memory_budget=None)",
    "raise_comms(list_peak_memory_budget=None)",
    "reorder_compute_for_overlap(list_peak_memory_budget=None)",
    "reorder_communication_preserving_peak_memory(reorder_iterative_peak_memory_budget=None)",
    "schedule_overlap_bucketing",
};
enum { PIPELINES = sizeof(pipelines) / sizeof(*pipelines) };

enum { MUCH = 12 }; /* products between the gathers: a fence of unknown size is a small part */

static void write_text(char *out, size_t room, const struct fence *f)
{
    static const char value[] = "bf16[2048, 2048][2048, 1]cuda:0";
    static const char shard[] = "bf16[256, 2048][2048, 1]cuda:0";
    static const char gather[] = "torch.ops._c10d_functional.all_gather_into_tensor.default";
    static const char wait[] = "torch.ops._c10d_functional.wait_tensor.default";
    FILE *t = fmemopen(out, room, "w");

    fprintf(t,
            "class GraphModule(torch.nn.Module):\n"
            "    def forward(self, x: \"%s\", y: \"%s\", p: \"%s\", q: \"%s\"):\n"
            "        c0: \"%s\" = %s(p, 8, '0')\n"
            "        w0: \"%s\" = %s(c0)\n"
            "        m0: \"%s\" = torch.ops.aten.mm.default(x, w0)\n"
            "        %s\n",
            value, value, shard, shard, value, gather, value, wait, value, f->line);
    for (int i = 1; i <= MUCH; i++)
        fprintf(t, "        m%d: \"%s\" = torch.ops.aten.mm.default(m%d, x)\n", i, value, i - 1);
    fprintf(t,
            "        c1: \"%s\" = %s(q, 8, '0')\n"
            "        w1: \"%s\" = %s(c1)\n"
            "        last: \"%s\" = torch.ops.aten.mm.default(m%d, w1)\n"
            "        return (last, fence)\n%s",
            value, gather, value, wait, value, MUCH, f->nested ? f->nested : "");
    fclose(t);
}

/* How many gathers come before and behind the fence. */
static void count_sides(const tuck_graph *g, int side[2])
{
    int at = 0;

    side[0] = side[1] = 0;
    for (tuck_node n = tuck_graph_first(g); !tuck_is_none(n); n = tuck_graph_next(g, n)) {
        const char *target = tuck_node_target(g, n);
        if (strcmp(tuck_node_name(g, n), "fence") == 0)
            at = 1;
        else if (target != NULL && strstr(target, "all_gather_into_tensor") != NULL)
            side[at]++;
    }
}

/* True if both gathers are still on their sides. */
static bool is_kept(const struct fence *f, const char *pipeline)
{
    tuck_run_options o;
    tuck_pipeline *p = NULL;
    char text[6000];
    int side[2];

    write_text(text, sizeof(text), f);
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_set_group(g, "0", 8, NULL, NULL), TUCK_OK);
    tuck_run_options_init(&o);
    o.memory_share = 1; /* memory is no reason to keep anything */
    tuck_status st;
    if (pipeline == NULL) {
        st = tuck_graph_optimize(g, &o, NULL, NULL, NULL);
    } else {
        st = tuck_pipeline_parse(pipeline, strlen(pipeline), "p", NULL, NULL, &p);
        assert_int_equal(st, TUCK_OK);
        st = tuck_pipeline_run(p, g, &o, NULL, NULL);
        tuck_pipeline_free(p);
    }
    /* merge_bucket refuses, and the time of a put is not known. */
    assert_true(st == TUCK_OK || st == TUCK_EINVAL);
    count_sides(g, side);
    tuck_doc_free(doc);
    return side[0] == 1 && side[1] == 1;
}

/* Passes that a user names merge across groups of assumed size, as PyTorch does; orders do not. */
static bool may_pass(const struct fence *f, const char *pipeline)
{
    return strstr(f->name, "assumed") != NULL && pipeline != NULL &&
           strstr(pipeline, "bucket") != NULL;
}

static void test_fences(void **state)
{
    int n_without = 0;

    (void)state;
    for (size_t k = 0; k < PIPELINES; k++) {
        n_without += !is_kept(&fences[0], pipelines[k]);
        for (size_t i = 1; i < FENCES; i++)
            if (!may_pass(&fences[i], pipelines[k]) && !is_kept(&fences[i], pipelines[k]))
                fail_msg("%s lets a gather pass %s", pipelines[k] ? pipelines[k] : "tuck optimize",
                         fences[i].name);
    }
    assert_true(n_without >= 5); /* else the test shows nothing */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_fences)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
