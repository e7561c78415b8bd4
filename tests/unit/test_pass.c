/* Passes through the public interface: the table, pipelines as text, running them, what an observer
 * sees, hints, reports, and what happens when memory runs out on the way. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "study/pass_table.h"
#include "support/random_graph.h"

static const char gathers[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, a: \"f32[s0, 4][4, 1]cuda:0\", b: \"f32[2, 4][4, 1]cuda:0\"):\n"
    "        g: \"f32[2*s0, 4][4, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(a, 2, '0')\n"
    "        h: \"f32[4, 4][4, 1]cuda:0\" = "
    "torch.ops._c10d_functional.all_gather_into_tensor.default(b, 2, '0')\n"
    "        w: \"f32[2*s0, 4][4, 1]cuda:0\" = "
    "torch.ops._c10d_functional.wait_tensor.default(g)\n"
    "        x: \"f32[4, 4][4, 1]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(h)\n"
    "        y: \"f32[4, 4][4, 1]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(h)\n"
    "        return (w, x, y)\n";

static tuck_pipeline *parse(const char *text)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_pipeline *p = NULL;

    if (tuck_pipeline_parse(text, strlen(text), "list", NULL, d, &p) != TUCK_OK) {
        char *s = diags_text(d);
        fail_msg("%s: %s", text, s);
    }
    tuck_diags_free(d);
    return p;
}

static char *report_text(const tuck_report *t, bool json)
{
    struct text s = {NULL, 0, 0};

    text_clear(&s);
    tuck_print_options how = {.size = sizeof(how),
                              .form = json ? TUCK_PRINT_JSON : TUCK_PRINT_TABLE};
    assert_int_equal(tuck_report_print(t, &how, text_add, &s), TUCK_OK);
    return s.at;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL)
        fail_msg("there is no \"%s\" in\n%s", part, text);
}

/* ---- the table ---- */

/* Rows are distinct, and every option accepts its own default. */
static void test_table(void **state)
{
    size_t n = tuck_pass_count();
    tuck_option o;

    (void)state;
    assert_true(n > 0);
    assert_null(tuck_pass_name(n));
    assert_null(tuck_pass_help(n));
    assert_int_equal(tuck_pass_option_count(n), 0);
    assert_false(tuck_pass_option(n, 0, &o));
    for (size_t i = 0; i < n; i++) {
        assert_true(strlen(tuck_pass_help(i)) > 10);
        assert_null(strchr(tuck_pass_help(i), '\n'));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(tuck_pass_name(i), tuck_pass_name(k));
        assert_false(tuck_pass_option(i, tuck_pass_option_count(i), &o));
        assert_false(tuck_pass_option(i, 0, NULL));
        for (size_t k = 0; k < tuck_pass_option_count(i); k++) {
            char text[400];
            assert_true(tuck_pass_option(i, k, &o));
            assert_true(*o.name != '\0' && *o.type != '\0' && *o.help != '\0');
            snprintf(text, sizeof(text), "%s(%s=%s)", tuck_pass_name(i), o.name, o.dflt);
            tuck_pipeline_free(parse(text));
        }
    }
}

/* ---- lists of passes ---- */

static void test_parse(void **state)
{
    static const struct {
        const char *text;
        size_t n;
    } good[] = {
        {"", 0},
        {" \n# nothing\n", 0},
        {"deduplicate_wait_tensors", 1},
        {"deduplicate_wait_tensors()", 1},
        {"deduplicate_wait_tensors,deduplicate_wait_tensors", 2},
        {"deduplicate_wait_tensors # one\n\ndeduplicate_wait_tensors\r\n", 2},
        {"bucket_all_gather(cap_mb=50:500, mode = custom_ops)", 1},
        {"bucket_all_gather(cap_mb=[50, 500])", 1},
        {"bucket_all_gather(\n    cap_mb=1 # small\n)", 1},
        {"fuse_ddp_communication", 2},
        {"fuse_ddp_communication(passes=[schedule_comm_wait])", 1},
        {"_fuse_ddp_bucket_size=3, fuse_ddp_with_concat_op", 1},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
        tuck_pipeline *p = parse(good[i].text);
        if (tuck_pipeline_count(p) != good[i].n)
            fail_msg("'%s': %zu steps", good[i].text, tuck_pipeline_count(p));
        tuck_pipeline_free(p);
    }
    tuck_pipeline_free(NULL);
    assert_int_equal(tuck_pipeline_count(NULL), 0);
}

static void test_parse_errors(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"deduplicate_wait_tensor", "list:1:1: error: unknown pass 'deduplicate_wait_tensor'; did "
                                    "you mean 'deduplicate_wait_tensors'?"},
        {"# one\n bucket_all_gather(cap=1)", "list:2:20: error: unknown option of "
                                             "bucket_all_gather 'cap'; did you mean 'cap_mb'?"},
        {"bucket_all_gather(cap_mb=much)", "list:1:26: error: cap_mb must be a number"},
        {"bucket_all_gather(mode=custm)", "list:1:24: error: mode must be default|custom_ops"},
        {"bucket_all_gather(cap_mb)", "list:1:25: error: '=' and a value are expected"},
        {"bucket_all_gather(cap_mb=1", "list:1:18: error: '(' is never closed"},
        {"bucket_all_gather(mode='x)", "is never closed"},
        {"no_such_key=1", "unknown key 'no_such_key'"},
        {"fuse_ddp_communication(passes=[nothing])", "unknown pass 'nothing'"},
        {")", "list:1:1: error: the name of a pass is expected here"},
        {"\xff", "list:1:1: error: "},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        tuck_diags *d = tuck_diags_new(NULL);
        tuck_pipeline *p = NULL;
        const char *text = bad[i].text;

        tuck_status st = tuck_pipeline_parse(text, strlen(text), "list", NULL, d, &p);
        char *s = diags_text(d);
        if (st != TUCK_EINVAL || p != NULL || strstr(s, bad[i].says) == NULL)
            fail_msg("'%s': %s, %s", text, tuck_status_text(st), s);
        free(s);
        tuck_diags_free(d);
        assert_int_equal(tuck_pipeline_parse(text, strlen(text), NULL, NULL, NULL, &p),
                         TUCK_EINVAL);
        assert_null(p);
    }
}

static void test_bad_calls(void **state)
{
    tuck_doc *doc = read_or_die(gathers);
    tuck_pipeline *p = parse("deduplicate_wait_tensors");
    tuck_machine machine = {.size = sizeof(machine), .n_hints = 1};
    tuck_run_options no_hints = {.size = sizeof(no_hints), .machine = &machine};
    struct text t = {NULL, 0, 0};

    (void)state;
    assert_int_equal(tuck_pipeline_parse(NULL, 0, "list", NULL, NULL, &p), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_parse("", 0, "list", NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_run(NULL, tuck_doc_graph(doc, 0), NULL, NULL, NULL),
                     TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_run(p, NULL, NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), &no_hints, NULL, NULL),
                     TUCK_EINVAL);
    assert_int_equal(tuck_report_print(NULL, NULL, text_add, &t), TUCK_EINVAL);
    tuck_report_free(NULL);
    tuck_pipeline_free(p);
    tuck_doc_free(doc);
}

/* ---- running ---- */

struct watch {
    struct text seen;
    size_t stop_at; /* the call that ends the run; 0 if none */
    size_t calls;
};

static bool watch(void *ctx, const char *pass, size_t step, bool after, const tuck_graph *g)
{
    struct watch *w = ctx;
    char line[160];

    snprintf(line, sizeof(line), "%zu %s %s %zu\n", step, pass, after ? "after" : "before",
             tuck_graph_size(g));
    text_add(&w->seen, line, strlen(line));
    return ++w->calls != w->stop_at;
}

/* Before and after each step; returning false ends the run, keeping what was done until then. */
static void test_observer(void **state)
{
    static const size_t nodes_at_end[] = {7, 8, 7, 7, 7};
    static const char all[] = "0 deduplicate_wait_tensors before 8\n"
                              "0 deduplicate_wait_tensors after 7\n"
                              "1 deduplicate_wait_tensors before 7\n"
                              "1 deduplicate_wait_tensors after 7\n";
    tuck_pipeline *p = parse("deduplicate_wait_tensors, deduplicate_wait_tensors");

    (void)state;
    for (size_t stop = 0; stop <= 4; stop++) {
        struct watch w = {.stop_at = stop};
        tuck_run_options o = {.size = sizeof(o), .observe = watch, .ctx = &w};
        tuck_doc *doc = read_or_die(gathers);
        tuck_graph *g = tuck_doc_graph(doc, 0);

        text_clear(&w.seen);
        assert_int_equal(tuck_pipeline_run(p, g, &o, NULL, NULL), stop ? TUCK_EIO : TUCK_OK);
        assert_int_equal(w.calls, stop ? stop : 4);
        assert_int_equal(strncmp(w.seen.at, all, w.seen.len), 0);
        assert_int_equal(tuck_graph_size(g), nodes_at_end[stop]);
        text_done(&w.seen);
        tuck_doc_free(doc);
    }
    tuck_pipeline_free(p);
}

/* A symbol without a value is a reason to leave a collective alone. */
static void test_hints(void **state)
{
    static const tuck_hint hints[] = {{"other", 1}, {"s0", 8}};
    tuck_pipeline *p = parse("bucket_all_gather(mode=coalesced)");

    (void)state;
    for (size_t n = 0; n <= 2; n++) {
        tuck_machine machine = {.size = sizeof(machine), .hints = hints, .n_hints = n};
        tuck_run_options o = {.size = sizeof(o), .machine = &machine};
        tuck_doc *doc = read_or_die(gathers);
        tuck_report *t = NULL;

        assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), &o, NULL, &t), TUCK_OK);
        char *text = graph_text(tuck_doc_graph(doc, 0)), *report = report_text(t, true);
        if (n < 2) {
            assert_has(report, "\"reason\": \"unhinted\"");
            assert_null(strstr(text, "coalesced"));
        } else {
            assert_null(strstr(report, "unhinted"));
            assert_has(text, "all_gather_into_tensor_coalesced.default([a, b], 2, '0')");
        }
        free(text);
        free(report);
        tuck_report_free(t);
        tuck_doc_free(doc);
    }
    tuck_pipeline_free(p);
}

static void test_report(void **state)
{
    tuck_pipeline *p = parse("deduplicate_wait_tensors, bucket_all_gather(mode=coalesced)");
    tuck_machine machine = {
        .size = sizeof(machine), .hints = (const tuck_hint[]){{"s0", 8}}, .n_hints = 1};
    tuck_run_options o = {.size = sizeof(o), .machine = &machine};
    tuck_doc *doc = read_or_die(gathers);
    tuck_report *t = NULL;

    (void)state;
    assert_int_equal(tuck_pipeline_run(p, tuck_doc_graph(doc, 0), &o, NULL, &t), TUCK_OK);
    tuck_doc_free(doc); /* the report does not need it */
    char *table = report_text(t, false), *json = report_text(t, true);
    assert_has(table, "deduplicate_wait_tensors: 8 \xe2\x86\x92 7 nodes");
    assert_has(table, "bucket_all_gather(mode=coalesced): ");
    assert_has(json, "\"schema\": 1");
    assert_has(json, "\"waits removed\": 1");
    assert_has(json, "\"kind\": \"all_gather\"");
    assert_has(json, "\"closed_by\": \"end\"");
    assert_null(strstr(json, "\"ms\""));
    free(table);
    free(json);
    tuck_report_free(t);
    tuck_pipeline_free(p);
}

/* If a pass fails, the graph is the result of the passes before it, and the report says so. */
static void test_failure(void **state)
{
    tuck_pipeline *p = parse("deduplicate_wait_tensors, "
                             "bucket_reduce_scatter(mode=custom_ops_multidtype), "
                             "deduplicate_wait_tensors");
    tuck_doc *doc = read_or_die(gathers);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_report *t = NULL;

    (void)state;
    assert_int_equal(tuck_pipeline_run(p, g, NULL, d, &t), TUCK_EINVAL);
    assert_int_equal(tuck_diags_errors(d), 1);
    assert_int_equal(tuck_graph_size(g), 7);
    char *table = report_text(t, false), *json = report_text(t, true);
    assert_has(table, "bucket_reduce_scatter(mode=custom_ops_multidtype): failed");
    assert_has(json, "\"failed\": true");
    assert_int_equal(tuck_pipeline_run(p, g, NULL, NULL, NULL), TUCK_EINVAL);
    free(table);
    free(json);
    tuck_report_free(t);
    tuck_diags_free(d);
    tuck_pipeline_free(p);
    tuck_doc_free(doc);
}

/* ---- no memory ---- */

static void test_parse_no_memory(void **state)
{
    static const char text[] = "# all of it\n_fuse_ddp_bucket_size=3\nfuse_ddp_communication\n"
                               "bucket_all_gather(cap_mb=50:500, mode=custom_ops)";

    (void)state;
    for (size_t k = 1;; k++) {
        struct faulty f = {.fail_at = k, .stay = k % 2 == 0};
        tuck_allocator alloc = faulty_allocator(&f);
        tuck_pipeline *p = NULL;
        tuck_status st = tuck_pipeline_parse(text, strlen(text), "list", &alloc, NULL, &p);

        assert_int_equal(st, f.failed ? TUCK_ENOMEM : TUCK_OK);
        tuck_pipeline_free(p);
        assert_int_equal(f.live, 0);
        if (!f.failed)
            break;
        assert_true(k < 10000);
    }
}

/* Runs with request k refused, and all later ones if it stays so. Returns the number of
 * requests. */
static size_t run_refused(const struct random_graph *x, const tuck_pipeline *p, size_t k, bool stay)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    tuck_machine machine = {.size = sizeof(machine), .hints = x->hint, .n_hints = x->n_hint};
    tuck_run_options o = {.size = sizeof(o), .machine = &machine};
    tuck_doc *doc = NULL;
    tuck_report *t = NULL;

    assert_int_equal(tuck_doc_read_text(x->text[0], strlen(x->text[0]), "t.txt", &read, NULL, &doc),
                     TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    char *before = graph_text(g);
    tuck_diags *d = tuck_diags_new(&alloc);
    size_t start = f.calls;
    f.fail_at = start + k;
    f.stay = stay;
    tuck_status st = tuck_pipeline_run(p, g, &o, d, &t);
    if (t != NULL) { /* a report that cannot be printed says so */
        struct text s = {NULL, 0, 0};
        tuck_print_options how = {.size = sizeof(how), .form = (tuck_print_form)(k % 2)};
        tuck_status printed = tuck_report_print(t, &how, text_add, &s);
        if (printed != TUCK_OK && (printed != TUCK_ENOMEM || !f.failed))
            fail_msg("request %zu: a report: %s", k, tuck_status_text(printed));
        text_done(&s);
    }
    bool failed = f.failed;
    size_t calls = f.calls - start;
    f.fail_at = 0;
    if (st == TUCK_ENOMEM ? !failed : st != TUCK_OK && st != TUCK_EINVAL)
        fail_msg("request %zu: %s", k, tuck_status_text(st));
    char *after = graph_text(g), *why = check_users(g);
    bool whole = tuck_pipeline_count(p) == 1; /* with several steps the first may have been done */
    if ((st != TUCK_OK && whole && strcmp(before, after) != 0) || why != NULL)
        fail_msg("request %zu: failed, and yet\n%s%s", k, after, why ? why : "");
    free(before);
    free(after);
    tuck_report_free(t);
    tuck_diags_free(d);
    tuck_doc_free(doc);
    if (f.live != 0)
        fail_msg("request %zu: %zu bytes leaked", k, f.live);
    return calls;
}

/* Every pass on a graph that it changes, if one is found among the first. */
static void test_run_no_memory(void **state)
{
    enum { MOST = 150 }; /* refused requests, evenly spread if there are more */
    size_t refused = 0;

    (void)state;
    for (size_t i = 0; i < tuck_pass_count(); i++) {
        if (pass_is_on_order(all_passes.row[i]))
            continue;
        tuck_pipeline *p = parse(tuck_pass_name(i));
        struct random_graph x = {.n_hint = 0};
        for (uint64_t seed = 1; seed < 100; seed++) {
            struct rng rng = {seed};
            random_graph_free(&x);
            random_graph_make(&rng, &x);
            tuck_doc *doc = read_or_die(x.text[0]);
            tuck_graph *g = tuck_doc_graph(doc, 0);
            tuck_machine machine = {.size = sizeof(machine), .hints = x.hint, .n_hints = x.n_hint};
            tuck_run_options o = {.size = sizeof(o), .machine = &machine};
            char *before = graph_text(g);
            tuck_status st = tuck_pipeline_run(p, g, &o, NULL, NULL);
            char *after = graph_text(g);
            bool changed = st == TUCK_OK && strcmp(before, after) != 0;
            free(before);
            free(after);
            tuck_doc_free(doc);
            if (changed)
                break;
        }
        size_t calls = run_refused(&x, p, SIZE_MAX / 2, false), step = calls / MOST + 1;
        for (size_t k = 1; k <= calls; k += step) {
            run_refused(&x, p, k, false);
            run_refused(&x, p, k, true);
            refused++;
        }
        random_graph_free(&x);
        tuck_pipeline_free(p);
    }
    assert_true(refused > 200); /* there was something to refuse */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),           cmocka_unit_test(test_parse),
        cmocka_unit_test(test_parse_errors),    cmocka_unit_test(test_bad_calls),
        cmocka_unit_test(test_observer),        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_report),          cmocka_unit_test(test_failure),
        cmocka_unit_test(test_parse_no_memory), cmocka_unit_test(test_run_no_memory),
    };

    return cmocka_run_group_tests_name("pass", tests, NULL, NULL);
}
