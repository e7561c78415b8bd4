/* The times of a graph's nodes: flops and bytes by their rows, the roofline, loops, nested graphs,
 * profiles, a caller's estimates.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cost/kernel_cost.h"
#include "support/support.h"

struct fixture {
    tuck_doc *doc;
    tuck_graph *g;
    tuck_cluster *c;
    struct mem mem;
    struct assume assume;
    struct cost_run run;
};

static void open_graph(struct fixture *f, const char *cluster, const struct cost_options *o,
                       const char *body)
{
    struct text t = {.at = NULL};

    text_add(&t, "class GraphModule(torch.nn.Module):\n", 36);
    text_add(&t, body, strlen(body));
    f->doc = read_or_die(t.at);
    text_done(&t);
    f->g = tuck_doc_graph(f->doc, 0);
    assert_int_equal(tuck_graph_infer(f->g, false, NULL), TUCK_OK);
    assert_int_equal(tuck_cluster_preset(cluster, NULL, NULL, &f->c), TUCK_OK);
    mem_init(&f->mem, NULL);
    f->assume = (struct assume){.store = f->g->store};
    cost_run_init(&f->run, &f->mem, f->c, o, &f->assume);
    cost_run_graph(&f->run, f->g);
}

static void close_graph(struct fixture *f)
{
    cost_run_done(&f->run);
    tuck_cluster_free(f->c);
    tuck_doc_free(f->doc);
}

static uint32_t node(struct fixture *f, const char *name)
{
    tuck_node n = tuck_graph_find(f->g, name);

    if (tuck_is_none(n))
        fail_msg("no node %s", name);
    return n.id;
}

static struct cost_part part(struct fixture *f, const char *name)
{
    struct cost_part p;

    cost_node(&f->run, node(f, name), &p);
    return p;
}

static void test_flops(void **state)
{
    static const struct {
        const char *call;
        double flops;
    } calls[] = {
        {"aten.mm.default(a, b)", 2.0 * 64 * 32 * 16},
        {"aten.addmm.default(bias, a, b)", 2.0 * 64 * 32 * 16},
        {"aten.bmm.default(x3, y3)", 2.0 * 4 * 8 * 6 * 10},
        {"aten.baddbmm.default(z3, x3, y3)", 2.0 * 4 * 8 * 6 * 10},
        {"aten.addbmm.default(z2, x3, y3)", 2.0 * 4 * 8 * 6 * 10},
        {"aten.mv.default(a, v)", 2.0 * 64 * 32},
        {"aten.convolution.default(img, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)",
         2.0 * 2 * 5 * 8 * 8 * 3 * 3 * 3},
        {"aten.convolution.default(img, wt, None, [1, 1], [0, 0], [1, 1], True, [0, 0], 1)",
         2.0 * 2 * 8 * 8 * 3 * 5 * 3 * 3},
        {"aten.convolution_backward.default(gimg, img, w, [0], [1, 1], [1, 1], [1, 1], False, "
         "[0, 0], 1, [True, True, False])",
         2 * 2.0 * 2 * 5 * 8 * 8 * 3 * 3 * 3},
        {"aten.convolution_backward.default(gimg, img, w, [0], [1, 1], [1, 1], [1, 1], False, "
         "[0, 0], 1, [False, True, False])",
         2.0 * 2 * 5 * 8 * 8 * 3 * 3 * 3},
        {"aten._scaled_dot_product_flash_attention.default(q, k, k)",
         2.0 * 2 * 4 * 128 * 96 * (16 + 16)},
        {"aten.relu.default(a)", 0},
    };
    static const char head[] =
        "    def forward(self, a: \"bf16[64, 32][32, 1]cuda:0\", b: \"bf16[32, 16][16, 1]cuda:0\", "
        "bias: \"bf16[16][1]cuda:0\", v: \"bf16[32][1]cuda:0\", x3: \"f32[4, 8, 6][48, 6, "
        "1]cuda:0\", "
        "y3: \"f32[4, 6, 10][60, 10, 1]cuda:0\", z3: \"f32[4, 8, 10][80, 10, 1]cuda:0\", z2: "
        "\"f32[8, "
        "10][10, 1]cuda:0\", img: \"f32[2, 3, 8, 8][192, 64, 8, 1]cuda:0\", w: \"f32[5, 3, 3, "
        "3][27, 9, "
        "3, 1]cuda:0\", wt: \"f32[3, 5, 3, 3][45, 9, 3, 1]cuda:0\", gimg: \"f32[2, 5, 8, 8][320, "
        "64, 8, "
        "1]cuda:0\", q: \"bf16[2, 4, 128, 16][8192, 2048, 16, 1]cuda:0\", k: \"bf16[2, 4, 96, "
        "16][6144, "
        "1536, 16, 1]cuda:0\"):\n        y = torch.ops.";

    (void)state;
    for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++) {
        struct fixture f;
        char text[4096];
        snprintf(text, sizeof(text), "%s%s\n        return (y,)\n", head, calls[i].call);
        open_graph(&f, "h100", NULL, text);
        struct cost_part p = part(&f, "y");
        if (p.flops != calls[i].flops)
            fail_msg("%s: %.0f flops, not %.0f", calls[i].call, p.flops, calls[i].flops);
        assert_true(p.ps > 0);
        close_graph(&f);
    }
}

static void test_roofline(void **state)
{
    struct fixture f;

    (void)state;
    open_graph(&f, "h100", NULL,
               "    def forward(self, a: \"bf16[8192, 8192][8192, 1]cuda:0\", s: "
               "\"bf16[8192][1]cuda:0\"):\n"
               "        mm = torch.ops.aten.mm.default(a, a)\n"
               "        add = torch.ops.aten.add.Tensor(a, a)\n"
               "        view = torch.ops.aten.view.default(a, [-1])\n"
               "        expand = torch.ops.aten.expand.default(s, [8192, 8192])\n"
               "        mul = torch.ops.aten.mul.Tensor(a, expand)\n"
               "        neg = torch.ops.aten.neg.default(s)\n"
               "        fill_ = torch.ops.aten.fill_.Scalar(a, 0)\n"
               "        empty = torch.ops.aten.empty_like.default(a)\n"
               "        ones = torch.ops.aten.ones_like.default(a)\n"
               "        reshape = torch.ops.aten.reshape.default(a, [-1])\n"
               "        t = torch.ops.aten.t.default(a)\n"
               "        reshape_1 = torch.ops.aten.reshape.default(t, [-1])\n"
               "        unknown = torch.ops.my.thing.default(a)\n"
               "        return (mm, add, view, mul, neg, fill_, empty, ones, reshape, reshape_1, "
               "unknown)\n");
    const double m = 8192.0 * 8192 * 2, bw = 3350 * 0.8;
    struct cost_part p = part(&f, "mm");
    assert_int_equal(p.bound, BOUND_COMPUTE);
    assert_true(fabs((double)p.ps / 1e3 - 2 * pow(8192, 3) / (989e3 * 0.7)) < 1);
    p = part(&f, "add"); /* one operand, mentioned twice */
    assert_int_equal(p.bound, BOUND_MEMORY);
    assert_true(p.bytes == 2 * (int64_t)m && fabs((double)p.ps / 1e3 - 2 * m / bw) < 1);
    assert_int_equal(part(&f, "view").bound, BOUND_NOTHING);
    assert_true(part(&f, "mul").bytes == 2 * (int64_t)m + 16384); /* a row, not its repetitions */
    p = part(&f, "neg");
    assert_int_equal(p.bound, BOUND_KERNEL);
    assert_true(p.ps == 2000000);
    assert_true(part(&f, "fill_").bytes == (int64_t)m); /* not read */
    assert_true(part(&f, "empty").ps == 0);
    assert_true(part(&f, "ones").bytes == (int64_t)m);
    assert_true(part(&f, "reshape").ps == 0);
    assert_true(part(&f, "reshape_1").bytes == 2 * (int64_t)m);
    assert_int_equal(part(&f, "unknown").bound, BOUND_UNKNOWN);
    assert_true(part(&f, "unknown").ps == -1);
    assert_true(part(&f, "a").ps == 0);
    close_graph(&f);
}

static void test_index(void **state)
{
    struct fixture f;

    (void)state;
    open_graph(&f, "h100", NULL,
               "    def forward(self, w: \"f32[50000, 64][64, 1]cuda:0\", i: "
               "\"i64[128][1]cuda:0\", v: \"f32[128, "
               "64][64, 1]cuda:0\"):\n"
               "        embedding = torch.ops.aten.embedding.default(w, i)\n"
               "        index_put_ = torch.ops.aten.index_put_.default(w, [i], v, True)\n"
               "        return (embedding, index_put_)\n");
    assert_true(part(&f, "embedding").bytes == 128 * 64 * 4 * 2 + 128 * 8);
    assert_true(part(&f, "index_put_").bytes == 128 * 64 * 4 * 2 + 128 * 8);
    close_graph(&f);
}

static void test_collectives(void **state)
{
    struct fixture f;

    (void)state;
    open_graph(
        &f, "h100x8x2", NULL,
        "    def forward(self, a: \"f32[1048576][1]cuda:0\"):\n"
        "        ag = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 8, '0')\n"
        "        w = torch.ops._c10d_functional.wait_tensor.default(ag)\n"
        "        rs = torch.ops._c10d_functional.reduce_scatter_tensor.default(a, 'sum', 8, '0')\n"
        "        w2 = torch.ops._c10d_functional.wait_tensor.default(rs)\n"
        "        ar = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0')\n"
        "        w3 = torch.ops._c10d_functional.wait_tensor.default(ar)\n"
        "        co = torch.ops._c10d_functional.all_reduce_coalesced.default([a, w3], 'sum', "
        "'0')\n"
        "        g0 = co[0]\n"
        "        w4 = torch.ops._c10d_functional.wait_tensor.default(g0)\n"
        "        lost = torch.ops._c10d_functional.all_reduce.default(a, 'sum', 'other')\n"
        "        w5 = torch.ops._c10d_functional.wait_tensor.default(lost)\n"
        "        odd = torch.ops.my.thing.default(a)\n"
        "        vague = torch.ops._c10d_functional.all_reduce.default(odd, 'sum', '0')\n"
        "        w6 = torch.ops._c10d_functional.wait_tensor.default(vague)\n"
        "        return (w, w2, w3, w4, w5, w6)\n");
    assert_int_equal(part(&f, "vague").bound, BOUND_UNKNOWN); /* nor what is computed from it */
    struct cost_part p = part(&f, "ag");
    assert_true(p.coll == TUCK_ALL_GATHER && p.bytes == 8 * 4194304 && p.bound == BOUND_COLLECTIVE);
    assert_true(p.ps == 129400000); /* measured */
    p = part(&f, "rs");
    assert_true(p.coll == TUCK_REDUCE_SCATTER && p.bytes == 4194304);
    assert_true(part(&f, "ar").bytes == 4194304);
    assert_true(part(&f, "co").bytes == 2 * 4194304);
    assert_true(part(&f, "w").ps == 0);
    /* Its size is not given: all of the machine. */
    assert_true(part(&f, "lost").bound == BOUND_COLLECTIVE && part(&f, "lost").ps > 0);
    close_graph(&f);
}

static void test_loop(void **state)
{
    struct fixture f;
    struct cost_part p;

    (void)state;
    open_graph(
        &f, "h100", NULL,
        "    def forward(self, x: \"f32[1024, 1024][1024, 1]cuda:0\", y: \"f32[1024][1]cuda:0\"):\n"
        "        add = torch.ops.aten.add.Tensor(x, y)\n"
        "        view = torch.ops.aten.view.default(add, [1048576])\n"
        "        mul = torch.ops.aten.mul.Tensor(view, view)\n"
        "        t = torch.ops.aten.t.default(x)\n"
        "        sub = torch.ops.aten.sub.Tensor(t, x)\n"
        "        view_1 = torch.ops.aten.view.default(mul, [1024, 1024])\n"
        "        sum_1 = torch.ops.aten.sum.dim_IntList(view_1, [1])\n"
        "        return (view_1, sub, sum_1)\n");
    const int64_t m = 1024 * 1024 * 4, v = 4096;
    uint32_t chain[] = {node(&f, "add"), node(&f, "view"), node(&f, "mul")};
    cost_loop(&f.run, chain, 3, &p);
    assert_true(p.bytes == m + v + m); /* x and y in, mul out; add stays inside */
    uint32_t all[] = {node(&f, "add"), node(&f, "view"),   node(&f, "mul"),  node(&f, "t"),
                      node(&f, "sub"), node(&f, "view_1"), node(&f, "sum_1")};
    cost_loop(&f.run, all, 7, &p);
    assert_true(p.bytes == m + v + m + m + v); /* x once, under any name; mul, sub and sum out */
    assert_int_equal(p.bound, BOUND_MEMORY);
    cost_loop(&f.run, all + 3, 1, &p); /* a view alone */
    assert_true(p.ps == 0 && p.bytes == 0);
    /* A loop never costs more than its nodes one by one. */
    int64_t sum = 0;
    cost_loop(&f.run, all, 7, &p);
    for (int i = 0; i < 7; i++) {
        struct cost_part one;
        cost_node(&f.run, all[i], &one);
        sum += one.ps;
    }
    assert_true(p.ps <= sum);
    close_graph(&f);
}

static void test_nested(void **state)
{
    struct fixture f;

    (void)state;
    open_graph(
        &f, "h100", NULL,
        "    def forward(self, p: \"b8[][]cuda:0\", x: \"f32[4096, 4096][4096, 1]cuda:0\"):\n"
        "        true_graph_0 = self.true_graph_0\n"
        "        false_graph_0 = self.false_graph_0\n"
        "        cond = torch.ops.higher_order.cond(p, true_graph_0, false_graph_0, (x,));  p = "
        "true_graph_0 = false_graph_0 = x = None\n"
        "        getitem: \"f32[4096, 4096][4096, 1]cuda:0\" = cond[0];  cond = None\n"
        "        return (getitem,)\n"
        "\n"
        "    class true_graph_0(torch.nn.Module):\n"
        "        def forward(self, x: \"f32[4096, 4096][4096, 1]cuda:0\"):\n"
        "            neg: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.neg.default(x);  x = "
        "None\n"
        "            return (neg,)\n"
        "\n"
        "    class false_graph_0(torch.nn.Module):\n"
        "        def forward(self, x: \"f32[4096, 4096][4096, 1]cuda:0\"):\n"
        "            exp: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.exp.default(x);  x = "
        "None\n"
        "            neg: \"f32[4096, 4096][4096, 1]cuda:0\" = torch.ops.aten.neg.default(exp);  "
        "exp = None\n"
        "            return (neg,)\n");
    struct cost_part p = part(&f, "cond");
    assert_int_equal(p.bound, BOUND_NESTED);
    assert_true(llabs(p.ps - 2 * llround(2e3 * 4096 * 4096 * 4 / (3350 * 0.8))) < 1);
    close_graph(&f);
}

static int64_t twice(void *ctx, const tuck_graph *g, tuck_node n, int64_t otherwise)
{
    ++*(int *)ctx;
    return strcmp(tuck_node_name(g, n), "add") == 0 ? 2 * otherwise : -1;
}

static void test_told(void **state)
{
    static const char body[] = "    def forward(self, x: \"f32[1024, 1024][1024, 1]cuda:0\"):\n"
                               "        add = torch.ops.aten.add.Tensor(x, 1)\n"
                               "        mul = torch.ops.aten.mul.Tensor(add, 2)\n"
                               "        return (mul,)\n";
    static const char file[] =
        "{\"schema\": 1, \"unit\": \"us\", \"nodes\": {\"add\": 5, \"mul\": 7.5, \"other\": 1}}";
    struct fixture f;
    struct cost_part p;
    tuck_profile *profile;
    int64_t plain, mine, found;
    int calls = 0;

    (void)state;
    assert_int_equal(tuck_profile_read_text(file, strlen(file), "p.json", NULL, NULL, &profile),
                     TUCK_OK);
    assert_int_equal(tuck_profile_count(profile), 3);
    assert_true(tuck_profile_ps(profile, "mul", &found) && found == 7500000);
    assert_false(tuck_profile_ps(profile, "x", &found));
    struct cost_options o = {.profile = profile};
    open_graph(&f, "h100", &o, body);
    assert_true(part(&f, "add").ps == 5000000 && part(&f, "add").bound == BOUND_PROFILE);
    uint32_t loop[] = {node(&f, "add"), node(&f, "mul")};
    cost_loop(&f.run, loop, 2, &p);
    assert_true(p.ps == 12500000 && p.bound == BOUND_PROFILE);

    tuck_cost_options with = {
        .size = sizeof(with), .estimate = twice, .estimate_ctx = &calls, .profile = profile};
    int64_t *by_id = calloc(tuck_graph_id_end(f.g), sizeof(*by_id));
    assert_int_equal(tuck_graph_cost(f.g, f.c, NULL, by_id), TUCK_OK);
    plain = by_id[node(&f, "add")];
    assert_int_equal(tuck_graph_cost(f.g, f.c, &with, by_id), TUCK_OK);
    mine = by_id[node(&f, "add")];
    assert_true(mine == 2 * plain && calls == 4); /* every node was asked for */
    assert_true(by_id[node(&f, "mul")] == 7500000);

    /* A profile that is written and read again is the same. */
    struct text t = {.at = NULL};
    tuck_profile *again;
    assert_int_equal(tuck_profile_write(f.g, by_id, text_add, &t), TUCK_OK);
    assert_int_equal(tuck_profile_read_text(t.at, t.len, "p.json", NULL, NULL, &again), TUCK_OK);
    assert_true(tuck_profile_ps(again, "add", &found) && found == mine);
    text_done(&t);
    free(by_id);
    tuck_profile_free(again);
    tuck_profile_free(profile);
    close_graph(&f);
}

static void test_default_cluster(void **state)
{
    static const struct {
        const char *body, *name;
    } v[] = {
        {"    def forward(self, a: \"f32[8][1]cuda:0\"):\n        return (a,)\n", "h100x8"},
        {"    def forward(self, a: \"f32[8][1]cpu\"):\n        return (a,)\n", "cpu-loopbackx1"},
        {"    def forward(self, a: \"f32[8][1]cuda:0\"):\n"
         "        ag = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 20, '0')\n"
         "        return (ag,)\n",
         "h100x8x3"},
        {"    def forward(self, a: \"f32[8][1]cpu\"):\n"
         "        ag = torch.ops._c10d_functional.all_gather_into_tensor.default(a, 4, '0')\n"
         "        return (ag,)\n",
         "cpu-loopbackx4"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++) {
        struct fixture f;
        tuck_cluster *c;
        open_graph(&f, "h100", NULL, v[i].body);
        assert_int_equal(tuck_cluster_for_graph(f.g, NULL, NULL, &c), TUCK_OK);
        assert_string_equal(tuck_cluster_name(c), v[i].name);
        tuck_cluster_free(c);
        close_graph(&f);
    }
}

/* Each request for memory fails once: an error, and no leak. */
static void test_no_memory(void **state)
{
    static const char cluster[] =
        "{\"schema\": 1, \"device\": \"h100\", \"groups\": {\"0\": {\"size\": 8}}, \"tables\": "
        "[{\"coll\": \"all_gather\", \"p\": 8, \"link\": \"intra\", \"points\": [[1, 2], [3, "
        "1]]}]}";
    static const char profile[] = "{\"schema\": 1, \"nodes\": {\"a\": 1, \"b\": 2}}";

    (void)state;
    for (size_t at = 1; at < 200; at++) {
        struct faulty f = {.fail_at = at};
        tuck_allocator alloc = faulty_allocator(&f);
        tuck_cluster *c;
        tuck_profile *p;
        tuck_status a = tuck_cluster_read_text(cluster, strlen(cluster), "c", &alloc, NULL, &c);
        if (a == TUCK_OK)
            tuck_cluster_free(c);
        else
            assert_int_equal(a, TUCK_ENOMEM);
        tuck_status b = tuck_profile_read_text(profile, strlen(profile), "p", &alloc, NULL, &p);
        if (b == TUCK_OK)
            tuck_profile_free(p);
        else
            assert_int_equal(b, TUCK_ENOMEM);
        assert_int_equal(f.live, 0);
        if (!f.failed)
            break;
        assert_true(a != TUCK_OK || b != TUCK_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flops),     cmocka_unit_test(test_roofline),
        cmocka_unit_test(test_index),     cmocka_unit_test(test_collectives),
        cmocka_unit_test(test_loop),      cmocka_unit_test(test_nested),
        cmocka_unit_test(test_told),      cmocka_unit_test(test_default_cluster),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
