/* Graphs on real ranks: what they return, files of inputs and results, kernels of the caller's,
 * comparison of two graphs, memory, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "run/safetensors.h"
#include "support/support.h"
#include "tuck_run.h"

#define F32 "\"f32[4, 3][3, 1]cpu\""
#define HEAD "class step(torch.nn.Module):\n    def forward(self, "
#define REDUCE(x) "torch.ops._c10d_functional.all_reduce.default(" x ", 'sum', '0')\n"
#define WAIT(x) "torch.ops._c10d_functional.wait_tensor.default(" x ")\n"

/* A sum over ranks, a view of it, a gather of the view, a number and nothing. */
static const char sum_and_gather[] = HEAD
    "x: " F32 "):\n"
    "        c: " F32 " = torch.ops.aten.clone.default(x)\n"
    "        r: " F32 " = " REDUCE("c") "        w: " F32 " = " WAIT(
        "r") "        t: \"f32[3, 4][1, 3]cpu\" = torch.ops.aten.permute.default(w, [1, 0])\n"
             "        g: \"f32[6, 4][4, 1]cpu\" = "
             "torch.ops._c10d_functional.all_gather_into_tensor.default(t, 2, '0')\n"
             "        v: \"f32[6, 4][4, 1]cpu\" = " WAIT(
                 "g") "        s: \"f32[4][1]cpu\" = torch.ops.aten.select.int(v, 0, 4)\n"
                      "        return (w, v, s, 3, None)\n";

static char folder[64];

static int begin(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/tuck-execute-XXXXXX");
    return mkdtemp(folder) == NULL;
}

static int end(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static char *path_of(const char *name)
{
    static char path[4][160];
    static int at;

    at = (at + 1) % 4;
    snprintf(path[at], sizeof(path[at]), "%s/%s", folder, name);
    return path[at];
}

static tuck_exec_options two_ranks(void)
{
    tuck_exec_options o;

    tuck_exec_options_init(&o);
    o.ranks = 2;
    o.steps = 2;
    o.no_pin = true;
    o.timeout_s = 30;
    return o;
}

/* Runs a text; fails the test with the diagnostics if that fails. */
static tuck_execution *run_or_die(tuck_doc *doc, const tuck_exec_options *o)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_execution *x = NULL;
    tuck_graph *g = tuck_doc_graph(doc, 0);

    if (tuck_ranks_execute(&g, 1, o, d, &x) != TUCK_OK)
        fail_msg("%s", tuck_diags_count(d) ? tuck_diags_at(d, 0)->message : "failed silently");
    tuck_diags_free(d);
    return x;
}

static const float *floats_of(const struct st_file *f, const char *name, int64_t n)
{
    const struct st_tensor *t = st_find(f, name);

    assert_non_null(t);
    assert_int_equal(t->dtype, DTYPE_F32);
    assert_int_equal(t->bytes, n * 4);
    return t->data;
}

static void test_sums(void **state)
{
    tuck_doc *doc = read_or_die(sum_and_gather);
    tuck_exec_options o = two_ranks();
    const float all[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    float mine[2][12];
    struct st_file *f;

    (void)state;
    for (int r = 0; r < 2; r++) {
        char name[32];
        snprintf(name, sizeof(name), "in.rank%d.safetensors", r);
        for (int i = 0; i < 12; i++)
            mine[r][i] = all[i] * (r ? 100 : 1);
        struct st_tensor t = {"input.x", DTYPE_F32, 2, (int64_t[]){4, 3}, mine[r], 48};
        assert_int_equal(st_write(path_of(name), &t, 1, NULL, NULL), TUCK_OK);
    }
    o.inputs = path_of("in");
    o.outputs = path_of("out.safetensors");
    o.count_memory = true;
    tuck_execution *x = run_or_die(doc, &o);
    for (int r = 0; r < 2; r++) {
        assert_int_equal(
            st_open(path_of(r ? "out.rank1.safetensors" : "out.rank0.safetensors"), NULL, NULL, &f),
            TUCK_OK);
        assert_int_equal(st_count(f), 4);
        const float *w = floats_of(f, "output.0", 12), *v = floats_of(f, "output.1", 24);
        const float *s = floats_of(f, "output.2", 4);
        for (int i = 0; i < 12; i++)
            assert_float_equal(w[i], all[i] * 101, 0);
        for (int i = 0; i < 24; i++)
            assert_float_equal(v[i], all[i % 4 * 3 + i / 4 % 3] * 101, 0);
        for (int i = 0; i < 4; i++)
            assert_float_equal(s[i], all[i * 3 + 1] * 101, 0);
        assert_int_equal(*(const int64_t *)st_find(f, "output.3")->data, 3);
        st_close(f);
    }
    tuck_exec_memory m;
    tuck_execution_memory(x, &m);
    assert_int_equal(m.touched_bytes, m.planned_bytes);
    assert_true(m.highest_byte <= m.arena_bytes && m.planned_bytes >= m.peak_bytes);
    assert_int_equal(m.allocations, 0);
    tuck_execution_free(x);
    tuck_doc_free(doc);
}

static void test_timeline(void **state)
{
    tuck_doc *doc = read_or_die(sum_and_gather);
    tuck_exec_options o = two_ranks();
    tuck_execution *x = run_or_die(doc, &o);
    tuck_simulation *s = NULL;
    tuck_print_options how;
    struct text t = {NULL, 0, 0};
    tuck_times times;

    (void)state;
    assert_true(tuck_execution_speaks(x));
    assert_int_equal(tuck_execution_ranks(x), 2);
    assert_int_equal(tuck_execution_step_count(x), 2);
    assert_true(tuck_execution_step_ns(x, 1) > 0);
    assert_int_equal(tuck_execution_step_ns(x, 2), -1);
    assert_int_equal(tuck_execution_timeline(x, &s), TUCK_OK);
    tuck_simulation_times(s, &times);
    assert_true(times.step_ps > 0 && times.exposed_ps >= 0 && times.comm_ps > 0);
    tuck_simulation_free(s);
    tuck_print_options_init(&how);
    for (int json = 0; json < 2; json++) {
        how.form = json ? TUCK_PRINT_JSON : TUCK_PRINT_TABLE;
        how.detail = TUCK_DETAIL_TIMELINE;
        text_clear(&t);
        assert_int_equal(tuck_execution_print(x, &how, text_add, &t), TUCK_OK);
        assert_non_null(strstr(t.at, json ? "\"measured\": true" : "measured on 2 ranks over shm"));
    }
    text_done(&t);
    tuck_execution_free(x);
    tuck_doc_free(doc);
}

/* ---- kernels of the caller's ---- */

/* aten.neg as minus twice: operands by position. */
static bool negate_twice(void *ctx, tuck_kernel_call *c)
{
    tuck_tensor in, out;
    double number;

    (void)ctx;
    if (tuck_kernel_operand_count(c) != 1 || !tuck_kernel_tensor(c, 0, -1, &in) ||
        tuck_kernel_tensor(c, 0, 0, &in) || tuck_kernel_number(c, 0, &number) ||
        !tuck_kernel_result(c, 0, &out) || tuck_kernel_result(c, 1, &out)) {
        tuck_kernel_fail(c, "strange operands");
        return false;
    }
    for (int64_t i = 0; i < out.sizes[0]; i++)
        ((float *)out.data)[i] = -2 * ((const float *)in.data)[i];
    return true;
}

static bool refuse(void *ctx, tuck_kernel_call *c)
{
    (void)ctx;
    tuck_kernel_fail(c, "it does not want to");
    return false;
}

static const char negated[] = HEAD "x: \"f32[3][1]cpu\"):\n"
                                   "        y: \"f32[3][1]cpu\" = torch.ops.aten.neg.default(x)\n"
                                   "        return (y,)\n";

static void test_own_kernels(void **state)
{
    tuck_doc *doc = read_or_die(negated);
    tuck_exec_options o = two_ranks();
    tuck_kernel k = {"aten.neg.default", negate_twice, NULL};
    const float three[] = {1, 2, 3};
    struct st_tensor t = {"x", DTYPE_F32, 1, (int64_t[]){3}, three, 12};
    struct st_file *f;

    (void)state;
    assert_int_equal(st_write(path_of("neg.safetensors"), &t, 1, NULL, NULL), TUCK_OK);
    o.inputs = path_of("neg");
    o.outputs = path_of("neg_out");
    o.kernels = &k;
    o.n_kernels = 1;
    tuck_execution_free(run_or_die(doc, &o));
    assert_int_equal(st_open(path_of("neg_out.rank1.safetensors"), NULL, NULL, &f), TUCK_OK);
    assert_float_equal(floats_of(f, "output.0", 3)[2], -6, 0);
    st_close(f);

    k.run = refuse;
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_execution *x = NULL;
    assert_int_equal(tuck_ranks_execute(&g, 1, &o, d, &x), TUCK_EINVAL);
    assert_non_null(strstr(tuck_diags_at(d, 0)->message, "y: it does not want to"));
    tuck_diags_free(d);
    tuck_doc_free(doc);
}

/* ---- two graphs ---- */

static const char twice[] = HEAD
    "x: \"f32[3][1]cpu\"):\n"
    "        y: \"f32[3][1]cpu\" = torch.ops.aten.clone.default(x)\n"
    "        r: \"f32[3][1]cpu\" = " REDUCE("y") "        w: \"f32[3][1]cpu\" = " WAIT(
        "r") "        return (w, x)\n";
static const char never[] = HEAD "x: \"f32[3][1]cpu\"):\n"
                                 "        w: \"f32[3][1]cpu\" = torch.ops.aten.clone.default(x)\n"
                                 "        return (w, x)\n";
static const char other[] = HEAD "z: \"f32[3][1]cpu\"):\n        return (z, z)\n";

/* A verification, and the documents whose graphs it names. */
struct both {
    tuck_doc *a, *b;
    tuck_verification *v;
};

static struct both verify(const char *before, const char *after, tuck_diags *d)
{
    struct both x = {read_or_die(before), read_or_die(after), NULL};
    tuck_graph *g = tuck_doc_graph(x.a, 0), *h = tuck_doc_graph(x.b, 0);
    tuck_exec_options o = two_ranks();

    if (tuck_ranks_verify(&g, &h, 1, &o, d, &x.v) != TUCK_OK)
        x.v = NULL;
    return x;
}

static void done(struct both *x)
{
    tuck_verification_free(x->v);
    tuck_doc_free(x->a);
    tuck_doc_free(x->b);
}

static void test_verify(void **state)
{
    tuck_diags *d = tuck_diags_new(NULL);
    struct both x = verify(twice, twice, d);
    tuck_verification *v = x.v;
    struct text t = {NULL, 0, 0};
    tuck_compared c;

    (void)state;
    assert_non_null(v);
    assert_true(tuck_verification_speaks(v) && tuck_verification_within(v));
    assert_int_equal(tuck_verification_count(v), 2);
    assert_true(tuck_verification_at(v, 0, &c) && c.equal);
    assert_string_equal(c.name, "output 0 (w)");
    assert_false(tuck_verification_at(v, 2, &c));
    done(&x);

    x = verify(never, twice, d);
    v = x.v;
    assert_non_null(v);
    assert_false(tuck_verification_within(v));
    assert_true(tuck_verification_at(v, 0, &c) && !c.equal && c.most_relative > 0.01);
    assert_string_equal(c.cause, "all_reduce 'r' adds up other values than before");
    assert_true(tuck_verification_at(v, 1, &c) && c.equal);
    text_clear(&t);
    assert_int_equal(tuck_verification_print(v, NULL, text_add, &t), TUCK_OK);
    assert_non_null(strstr(t.at, "1 of 2 results are bit-equal on 2 ranks; some are beyond"));
    text_done(&t);
    done(&x);

    x = verify(twice, other, d);
    assert_null(x.v);
    done(&x);
    assert_non_null(strstr(tuck_diags_at(d, 0)->message, "different inputs: 'x' before, 'z'"));
    tuck_diags_free(d);
}

/* ---- without memory ---- */

/* Refuses request k of a run. Returns the number of requests. */
static size_t run_with(size_t k)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    tuck_exec_options o = two_ranks();
    tuck_execution *x = NULL;
    tuck_doc *doc = NULL;

    assert_int_equal(
        tuck_doc_read_text(sum_and_gather, strlen(sum_and_gather), "", &read, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    size_t calls = f.calls;
    f.fail_at = k == 0 ? 0 : calls + k;
    tuck_status st = tuck_ranks_execute(&g, 1, &o, NULL, &x);
    calls = f.calls - calls;
    if (st != (f.failed ? TUCK_ENOMEM : TUCK_OK))
        fail_msg("request %zu of %zu: %s", k, calls, tuck_status_text(st));
    tuck_execution_free(x);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("request %zu: %zu bytes leaked", k, f.live);
    return calls;
}

static void test_memory(void **state)
{
    size_t calls = run_with(0);

    (void)state;
    size_t apart = getenv("TUCK_SOAK") ? 1 : calls / 30 + 1;
    for (size_t k = 1; k <= calls; k += apart)
        run_with(k);
}

/* ---- calibration ---- */

static void test_calibrate(void **state)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_exec_options o = two_ranks();
    tuck_calibration *c = NULL;
    tuck_cluster *cluster = NULL;
    tuck_collective_cost cost;
    struct text t = {NULL, 0, 0};

    (void)state;
    assert_int_equal(tuck_calibrate(&o, d, &c), TUCK_OK);
    assert_true(tuck_calibration_speaks(c));
    text_clear(&t);
    assert_int_equal(tuck_calibration_write(c, text_add, &t), TUCK_OK);
    if (tuck_cluster_read_text(t.at, t.len, "c.json", NULL, d, &cluster) != TUCK_OK)
        fail_msg("%s", diags_text(d));
    tuck_collective q = {.coll = TUCK_ALL_REDUCE, .bytes = 1 << 20, .ranks = 2};
    assert_int_equal(tuck_cost_collective(cluster, &q, &cost), TUCK_OK);
    assert_true(cost.ps > 1000000 && cost.ps < 1000000000000); /* 1 us to 1 s for 1 MiB */
    tuck_cluster_free(cluster);
    text_clear(&t);
    assert_int_equal(tuck_calibration_print(c, NULL, text_add, &t), TUCK_OK);
    assert_non_null(strstr(t.at, "reduce_scatter"));
    text_done(&t);
    tuck_calibration_free(c);
    tuck_diags_free(d);
}

/* ---- files ---- */

static void test_files(void **state)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *says;
    } bad[] = {
        {"", 0, "shorter than 8 bytes"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff", 8, "longer than the file"},
        {"\x02\0\0\0\0\0\0\0[]", 10, "must be an object"},
        {"\x02\0\0\0\0\0\0\0{}x", 11, "bytes after the last tensor"},
        {"\x3a\0\0\0\0\0\0\0{\"a\": {\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}   "
         "xxxx",
         70, "the shape needs 8 bytes"},
        {"\x3a\0\0\0\0\0\0\0{\"a\": {\"dtype\":\"F99\",\"shape\":[1],\"data_offsets\":[0,4]}}   "
         "xxxx",
         70, "unknown dtype 'F99'"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        tuck_diags *d = tuck_diags_new(NULL);
        struct st_file *f = NULL;
        assert_int_equal(st_read(bad[i].bytes, bad[i].n, "x.safetensors", NULL, d, &f),
                         TUCK_ESYNTAX);
        assert_true(tuck_diags_count(d) > 0);
        if (strstr(tuck_diags_at(d, 0)->message, bad[i].says) == NULL)
            fail_msg("%zu: \"%s\", expected \"%s\"", i, tuck_diags_at(d, 0)->message, bad[i].says);
        tuck_diags_free(d);
    }
}

/* Sizes that depend on data: softmax needs scratch, later values take the room after it, and an op of
 * two nodes (the first sort and its sum) runs before the second sort, which stands between them. */
static const char grown[] = HEAD
    "x: \"f32[64, 40][40, 1]cpu\", n: \"i64[][]cpu\"):\n"
    "        item: \"Sym(u0)\" = torch.ops.aten._local_scalar_dense.default(n)\n"
    "        full: \"f32[u0, 40][40, 1]cpu\" = torch.ops.aten.full.default([item, 40], 1.5, dtype "
    "= "
    "torch.float32)\n"
    "        cat: \"f32[u0 + 64, 40][40, 1]cpu\" = torch.ops.aten.cat.default([x, full])\n"
    "        permute: \"f32[40, u0 + 64][1, 40]cpu\" = torch.ops.aten.permute.default(cat, [1, "
    "0])\n"
    "        softmax: \"f32[40, u0 + 64][1, 40]cpu\" = torch.ops.aten._softmax.default(permute, 1, "
    "False)\n"
    "        sort = torch.ops.aten.sort.default(permute, 1)\n"
    "        values: \"f32[40, u0 + 64][1, 40]cpu\" = sort[0]\n"
    "        sort_1 = torch.ops.aten.sort.default(cat, 1)\n"
    "        values_1: \"f32[u0 + 64, 40][40, 1]cpu\" = sort_1[0]\n"
    "        sum_1: \"f32[40][1]cpu\" = torch.ops.aten.sum.dim_IntList(softmax, [1])\n"
    "        sum_2: \"f32[40][1]cpu\" = torch.ops.aten.sum.dim_IntList(values, [1])\n"
    "        return (sum_1, sum_2, values, values_1)\n";

static struct st_file *results_after(uint32_t steps)
{
    tuck_doc *doc = read_or_die(grown);
    tuck_exec_options o = two_ranks();
    tuck_diags *d = tuck_diags_new(NULL);
    struct st_file *f;

    o.ranks = 1;
    o.steps = steps;
    o.warmup = 0;
    o.outputs = path_of("grown.safetensors");
    tuck_execution_free(run_or_die(doc, &o));
    assert_int_equal(st_open(path_of("grown.rank0.safetensors"), NULL, d, &f), TUCK_OK);
    tuck_diags_free(d);
    tuck_doc_free(doc);
    return f;
}

static void test_grown(void **state)
{
    struct st_file *one = results_after(1), *three = results_after(3);

    (void)state;
    assert_int_equal(st_count(one), 4);
    assert_int_equal(st_count(three), 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct st_tensor *a = st_at(one, i), *b = st_find(three, a->name);
        assert_non_null(b);
        assert_int_equal(a->bytes, b->bytes);
        assert_memory_equal(a->data, b->data, (size_t)a->bytes);
    }
    const float *sum = floats_of(one, "output.0", 40);
    for (int i = 0; i < 40; i++)
        assert_true(fabsf(sum[i] - 1) < 1e-5f);
    const struct st_tensor *t = st_find(one, "output.3");
    for (int64_t i = 1; i < t->bytes / 4; i++)
        if (i % 40 != 0)
            assert_true(((const float *)t->data)[i - 1] <= ((const float *)t->data)[i]);
    st_close(one);
    st_close(three);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),      cmocka_unit_test(test_grown),
        cmocka_unit_test(test_timeline),  cmocka_unit_test(test_own_kernels),
        cmocka_unit_test(test_verify),    cmocka_unit_test(test_memory),
        cmocka_unit_test(test_calibrate), cmocka_unit_test(test_files),
    };

    return cmocka_run_group_tests(tests, begin, end);
}
