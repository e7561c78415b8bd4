/* Traces of a profiler: files that are cut, damaged or packed, exact times, the library's calls. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <cmocka.h>

#include "job/trace_event.h"
#include "job/trace_study.h"
#include "support/support.h"

static const char text[] =
    "{\"distributedInfo\": {\"rank\": 1, \"world_size\": 2, \"pg_config\": [{\"pg_name\": \"0\", "
    "\"pg_size\": 2, \"ranks\": [0, 1]}]},\n"
    "\"traceEvents\": [\n"
    "{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#7\", \"pid\": 1, "
    "\"tid\": 1, \"ts\": 1000000000000.5, \"dur\": 100},\n"
    "{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"launch\", \"pid\": 1, \"tid\": 1, "
    "\"ts\": 1000000000001, \"dur\": 1, \"args\": {\"correlation\": 5}},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": "
    "1000000000010.125, \"dur\": 30.001, \"args\": {\"stream\": 7, \"correlation\": 5}},\n"
    "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"ncclDevKernel_AllReduce_Sum_f32_RING_LL()\", "
    "\"pid\": 0, \"tid\": 8, \"ts\": 1000000000020.125, \"dur\": 40, \"args\": {\"stream\": 8, "
    "\"Collective name\": \"allreduce\", \"In msg nelems\": 1024, \"Out msg nelems\": 1024, "
    "\"dtype\": \"Float\", \"Process Group Name\": \"0\"}}\n"
    "]}\n";

/* gzip, as the tool of that name writes it. */
static size_t pack(const char *from, size_t len, unsigned char *out, size_t cap)
{
    z_stream z = {.next_in = (unsigned char *)(uintptr_t)from,
                  .avail_in = (uInt)len,
                  .next_out = out,
                  .avail_out = (uInt)cap};

    assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

/* What reading says: "" if it works. To be freed. */
static char *said(const void *at, size_t len, struct tuck_trace_figures *figures)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_traces *t = NULL;

    assert_int_equal(tuck_traces_new(NULL, &t), TUCK_OK);
    tuck_status st = tuck_traces_add_text(t, at, len, "t.json", d);
    assert_true(st == TUCK_OK || st == TUCK_ESYNTAX);
    if (st == TUCK_OK && figures != NULL)
        assert_true(tuck_traces_figures(t, 0, figures));
    assert_int_equal(tuck_traces_count(t), st == TUCK_OK ? 1 : 0);
    char *out = diags_text(d);
    assert_true((*out == '\0') == (st == TUCK_OK));
    tuck_traces_free(t);
    tuck_diags_free(d);
    return out;
}

static void expect(const void *at, size_t len, const char *words)
{
    char *out = said(at, len, NULL);

    if (*words ? strstr(out, words) == NULL : *out)
        fail_msg("said \"%s\", not \"%s\"", out, words);
    free(out);
}

static void figures_are_exact(void **state)
{
    tuck_trace_figures x;

    (void)state;
    free(said(text, sizeof(text) - 1, &x));
    assert_int_equal(x.rank, 1);
    assert_int_equal(x.world, 2);
    assert_int_equal(x.steps, 1);
    assert_int_equal(x.step_ps, 100000000);
    assert_int_equal(x.compute_ps, 30001000);
    assert_int_equal(x.comm_ps, 40000000);
    assert_int_equal(x.exposed_ps, 40000000 - (30001000 - 10000000));
    assert_int_equal(x.idle_ps, 0);
    assert_int_equal(x.kernels, 1);
    assert_int_equal(x.collectives, 1);
}

static void cut_files(void **state)
{
    (void)state;
    for (size_t len = 1; len < sizeof(text) - 3; len++)
        expect(text, len, "in the middle of the trace");
    expect(text, 0, "empty");
}

static void packed_files(void **state)
{
    enum { CAP = 8192 };
    unsigned char gz[CAP];
    size_t n = pack(text, sizeof(text) - 1, gz, CAP / 2);

    (void)state;
    expect(gz, n, "");
    for (size_t len = 2; len < n; len++)
        expect(gz, len, "gzip: the gzip data ends early");
    memset(gz + n, 0, 64); /* padding, as tapes have */
    expect(gz, n + 64, "");
    gz[n + 63] = 'x';
    expect(gz, n + 64, "other bytes behind the end");
    memcpy(gz + n, gz, n);
    expect(gz, 2 * n, "are these two files in one?");
    /* any damaged byte of the data or of its checksum is seen */
    for (size_t i = 10; i < n; i++) {
        gz[i] ^= 0x55;
        char *out = said(gz, n, NULL);
        if (*out == '\0')
            fail_msg("byte %zu may be anything", i);
        free(out);
        gz[i] ^= 0x55;
    }
    /* one file in two members is one file */
    size_t a = pack(text, 100, gz, CAP / 2);
    size_t b = pack(text + 100, sizeof(text) - 1 - 100, gz + a, CAP / 2);
    expect(gz, a + b, "");
}

static void times_are_exact(void **state)
{
    static const struct {
        const char *text;
        int64_t us, ps;
        bool good;
    } cases[] = {
        {"0", 0, 0, true},
        {"12", 12, 0, true},
        {"12.5", 12, 500000, true},
        {"4458676522690.655", 4458676522690, 655000, true},
        {"1682725898236567", 1682725898236567, 0, true},
        {"0.0000014", 0, 1, true},
        {"0.9999996", 1, 0, true},
        {"-0.25", -1, 750000, true},
        {"1.5e3", 1500, 0, true},
        {"1e-3", 0, 1000, true},
        {"1e30", 0, 0, false},
        {"x", 0, 0, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct trace_time t;
        trace_time_read(&t, cases[i].text, strlen(cases[i].text));
        if (t.good != cases[i].good || (t.good && (t.us != cases[i].us || t.ps != cases[i].ps)))
            fail_msg("%s: %d, %lld us %lld ps", cases[i].text, t.good, (long long)t.us,
                     (long long)t.ps);
    }
}

static void words_of_collectives(void **state)
{
    (void)state;
    assert_int_equal(trace_kind("_allgather_base"), TUCK_ALL_GATHER);
    assert_int_equal(trace_kind("allgather_into_tensor_coalesced"), TUCK_ALL_GATHER);
    assert_int_equal(trace_kind("_reduce_scatter_base"), TUCK_REDUCE_SCATTER);
    assert_int_equal(trace_kind("c10d::allreduce_"), TUCK_ALL_REDUCE);
    assert_int_equal(trace_kind("all_to_allv"), TUCK_ALL_TO_ALL);
    assert_int_equal(trace_kind("ncclDevKernel_SendRecv(ncclDevComm*)"), TUCK_P2P);
    assert_int_equal(trace_kind("ncclDevKernel_Generic(allreduce)"), 0);
    assert_true(trace_communicates("void c10d::(anonymous namespace)::all_reduce_kernel<4>(x)"));
    assert_false(trace_communicates("triton_poi_fused_all_gather_into_tensor_0"));
    assert_int_equal(trace_numel("[[512,512],[]]"), 512 * 512);
    assert_int_equal(trace_numel("[[[4],[8,2]],[3],[]]"), 20);
    assert_int_equal(trace_shapes("[[[4],[8,2]],[3],[]]", 3).total, 23);
    assert_true(trace_shapes("[[[4],[8,2]],[3],[]]", 3).found);
    assert_false(trace_shapes("[[[4],[8,2]],[3],[]]", 16).found);
    assert_int_equal(trace_numel("[[],[]]"), -1);
    assert_int_equal(trace_numel("[[9999999999,9999999999]]"), -1);
    assert_true(trace_bus_gbps(TUCK_ALL_REDUCE, 1000, 4, 1000000) == 1.5);
    assert_true(trace_bus_gbps(TUCK_ALL_GATHER, 1000, 4, 1000000) == 0.75);
    assert_true(trace_bus_gbps(TUCK_ALL_GATHER, 1000, 0, 1000000) == 0);
}

static void two_ranks_and_pictures(void **state)
{
    char of_rank[sizeof(text)];
    tuck_traces *t = NULL;
    struct text out = {NULL, 0, 0};

    (void)state;
    assert_int_equal(tuck_traces_new(NULL, &t), TUCK_OK);
    assert_int_equal(tuck_traces_add_file(t, "no/such/file", NULL), TUCK_EIO);
    assert_int_equal(tuck_traces_print(t, NULL, text_add, &out), TUCK_EINVAL);
    memcpy(of_rank, text, sizeof(text));
    for (char i = '0'; i < '2'; i++) {
        strstr(of_rank, "\"rank\": ")[8] = i;
        assert_int_equal(tuck_traces_add_text(t, of_rank, sizeof(text) - 1, "t.json", NULL),
                         TUCK_OK);
    }
    assert_int_equal(tuck_traces_count(t), 2);
    assert_int_equal(tuck_traces_print(t, NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "waited"));
    assert_null(strstr(out.at, "no counterpart"));
    assert_int_equal(tuck_traces_html(t, "t", 7, text_drop, NULL), TUCK_OK);
    assert_int_equal(tuck_traces_html(t, "t", 8, text_drop, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_traces_perfetto(t, -1, text_refuse, NULL), TUCK_EIO);
    tuck_traces_free(t);
    text_done(&out);
}

/* Words that are not JSON, wherever a piece of the file ends. */
static void no_numbers(void **state)
{
    enum { PIECE = 128 * 1024, LEN = PIECE + 4096 };
    static const char head[] = "{\"x\": \"NaN \\\" -inf\", \"traceEvents\": [",
                      tail[] = "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"k\", \"ts\": 1, "
                               "\"dur\": 2, \"args\": {\"a\": -Infinity, \"b\": nan, \"c\": null, "
                               "\"d\": -1e-3, \"stream\": 7}}]}";
    char *at = malloc(LEN);
    unsigned char *packed = malloc(LEN);

    (void)state;
    for (size_t from = PIECE - sizeof(tail); from <= PIECE; from++) {
        struct tuck_trace_figures x;
        memset(at, ' ', LEN);
        memcpy(at, head, sizeof(head) - 1);
        memcpy(at + from, tail, sizeof(tail) - 1);
        char *out = said(at, LEN, &x);
        assert_string_equal(out, "");
        assert_int_equal(x.compute_ps, 2000000);
        free(out);
        if (from % 16 == 0)
            expect(packed, pack(at, LEN, packed, LEN), "");
    }
    expect("[{\"ph\": nano}]", 15, "not JSON");
    expect("[-", 2, "in the middle");
    free(packed);
    free(at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(figures_are_exact),    cmocka_unit_test(cut_files),
        cmocka_unit_test(packed_files),         cmocka_unit_test(times_are_exact),
        cmocka_unit_test(words_of_collectives), cmocka_unit_test(two_ranks_and_pictures),
        cmocka_unit_test(no_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
