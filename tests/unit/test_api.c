/* What all public functions share: the version, option structs and their sizes,
 * how results are printed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "api/api.h"
#include "base/json.h"
#include "support/support.h"

static void version(void **state)
{
    char text[32];

    (void)state;
    snprintf(text, sizeof(text), "%d.%d.%d", TUCK_VERSION_MAJOR, TUCK_VERSION_MINOR,
             TUCK_VERSION_PATCH);
    assert_string_equal(text, TUCK_VERSION);
    assert_string_equal(tuck_version(), TUCK_VERSION);
    assert_int_equal(tuck_version_number(), TUCK_VERSION_NUMBER);
    assert_true(TUCK_VERSION_NUMBER ==
                TUCK_VERSION_MAJOR * 10000 + TUCK_VERSION_MINOR * 100 + TUCK_VERSION_PATCH);
}

struct older {
    size_t size;
    int a;
};

struct newer {
    size_t size;
    int a, b;
    int more[4];
};

/* A caller's struct may be shorter than the library's, or longer. */
static void sizes_of_options(void **state)
{
    struct newer own = {.size = sizeof(own), .a = 1, .b = 2, .more = {3, 4, 5, 6}};
    struct older old = {.size = sizeof(old.size) + sizeof(old.a), .a = 10};
    struct newer given = {.size = sizeof(given), .a = 20, .b = 21, .more = {22, 23, 24, 25}};
    struct older small = {.size = sizeof(small), .a = 1};

    (void)state;
    assert_int_equal(options_take(&own, sizeof(own), NULL), TUCK_OK);
    assert_int_equal(own.a, 1);
    assert_int_equal(options_take(&own, sizeof(own), &old), TUCK_OK);
    assert_int_equal(own.size, sizeof(own));
    assert_int_equal(own.a, 10);
    assert_int_equal(own.b, 2);
    assert_int_equal(own.more[3], 6);
    assert_int_equal(options_take(&small, sizeof(small.size) + sizeof(small.a), &given), TUCK_OK);
    assert_int_equal(small.a, 20);
    assert_int_equal(small.size, sizeof(small.size) + sizeof(small.a));

    given.size = 0;
    assert_int_equal(options_take(&own, sizeof(own), &given), TUCK_EINVAL);
    given.size = sizeof(given.size);
    assert_int_equal(options_take(&own, sizeof(own), &given), TUCK_EINVAL);
    assert_int_equal(own.a, 10);
}

/* Every function refuses options without a size, and does nothing. */
static void options_without_size(void **state)
{
    static const char text[] = "def forward(self, x):\n    return (x,)\n";
    tuck_read_options read = {.size = 0};
    tuck_run_options run = {.size = 0};
    tuck_lower_options lower = {.size = 0};
    tuck_cost_options cost = {.size = 0};
    tuck_machine machine = {.size = 0};
    tuck_explain_options explain = {.size = 0};
    tuck_simulation *simulation = NULL;
    tuck_explanation *explanation = NULL;
    tuck_doc *doc = NULL, *none = NULL;
    tuck_program *program = NULL;
    int64_t ps[8] = {0};

    (void)state;
    assert_int_equal(tuck_doc_read_text(text, strlen(text), "", &read, NULL, &none), TUCK_EINVAL);
    assert_int_equal(tuck_doc_read_file("none", &read, NULL, &none), TUCK_EINVAL);
    assert_null(none);
    tuck_read_options_init(&read);
    assert_int_equal(tuck_doc_read_text(text, strlen(text), "", &read, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_optimize(g, &run, NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_graph_lower(g, &lower, NULL, &program), TUCK_EINVAL);
    tuck_lower_options_init(&lower);
    lower.machine = &machine;
    assert_int_equal(tuck_graph_lower(g, &lower, NULL, &program), TUCK_EINVAL);
    assert_null(program);
    assert_int_equal(tuck_graph_simulate(g, &machine, NULL, &simulation), TUCK_EINVAL);
    assert_int_equal(tuck_graph_explain(g, NULL, &explain, NULL, &explanation), TUCK_EINVAL);
    assert_true(simulation == NULL && explanation == NULL);
    tuck_cluster *c = NULL;
    assert_int_equal(tuck_cluster_preset("h100", NULL, NULL, &c), TUCK_OK);
    assert_int_equal(tuck_graph_cost(g, c, &cost, ps), TUCK_EINVAL);
    tuck_cluster_free(c);
    tuck_doc_free(doc);
}

/* ---- printing ---- */

struct sink {
    char text[1024];
    size_t len;
    bool refuse;
};

static bool into(void *ctx, const char *text, size_t len)
{
    struct sink *s = ctx;

    if (s->refuse || len > sizeof(s->text) - 1 - s->len)
        return false;
    memcpy(s->text + s->len, text, len);
    s->len += len;
    s->text[s->len] = '\0';
    return true;
}

static void number(struct buf *b, const tuck_print_options *how, const void *arg)
{
    struct json_out j;

    if (how->form != TUCK_PRINT_JSON) {
        buf_printf(b, "%d %s %u", *(const int *)arg, b->color ? "colored" : "plain", b->width);
        return;
    }
    json_begin(&j, b);
    json_open(&j, NULL, '{');
    json_schema(&j, 1);
    json_int(&j, "number", *(const int *)arg);
    json_close(&j, '}');
    json_end(&j);
}

static void printing(void **state)
{
    tuck_print_options how;
    struct sink s = {.len = 0};
    int seven = 7;

    (void)state;
    assert_int_equal(api_print(NULL, NULL, into, &s, number, &seven), TUCK_OK);
    assert_string_equal(s.text, "7 plain 0");
    tuck_print_options_init(&how);
    how.color = TUCK_COLORED;
    how.width = 80;
    s.len = 0;
    assert_int_equal(api_print(NULL, &how, into, &s, number, &seven), TUCK_OK);
    assert_string_equal(s.text, "7 colored 80");
    s.refuse = true;
    assert_int_equal(api_print(NULL, &how, into, &s, number, &seven), TUCK_EIO);
    assert_int_equal(api_print(NULL, &how, NULL, NULL, number, &seven), TUCK_EINVAL);
    how.form = (tuck_print_form)9;
    assert_int_equal(api_print(NULL, &how, into, &s, number, &seven), TUCK_EINVAL);
    how = (tuck_print_options){.size = 0};
    assert_int_equal(api_print(NULL, &how, into, &s, number, &seven), TUCK_EINVAL);
}

/* Several documents are one text. */
static void items(void **state)
{
    tuck_print_options how;
    tuck_print_item item;
    struct sink s = {.len = 0};

    (void)state;
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    how.item = &item;
    tuck_print_item_init(&item);
    item.file = "a.txt";
    item.key = "graphs";
    for (int i = 0; i < 2; i++) {
        item.index = (size_t)i;
        item.graph = (size_t)i + 4;
        item.line = 1;
        assert_int_equal(api_print(NULL, &how, into, &s, number, &i), TUCK_OK);
    }
    assert_int_equal(tuck_print_items_end(into, &s), TUCK_OK);
    assert_string_equal(s.text, "{\n  \"schema\": 1,\n  \"file\": \"a.txt\",\n  \"graphs\": [\n"
                                "    {\n      \"schema\": 1,\n      \"graph\": 4,\n"
                                "      \"line\": 1,\n      \"number\": 0\n    },\n"
                                "    {\n      \"schema\": 1,\n      \"graph\": 5,\n"
                                "      \"line\": 1,\n      \"number\": 1\n    }\n  ]\n}\n");
    item.key = NULL;
    assert_int_equal(api_print(NULL, &how, into, &s, number, &s), TUCK_EINVAL);
}

/* ---- tables ---- */

static const char *color_name(const void *ctx, size_t i)
{
    return i < 3 ? ((const char *const *)ctx)[i] : NULL;
}

static void tables(void **state)
{
    static const char *const names[] = {"red", "green", "blue"};
    tuck_op op = {.size = sizeof(op)}, wrong = {.size = 0};
    struct sink s = {.len = 0};

    (void)state;
    assert_string_equal(tuck_suggest("gren", color_name, names), "green");
    assert_null(tuck_suggest("completely else", color_name, names));
    assert_null(tuck_suggest("zz", color_name, names));
    assert_true(tuck_op_count() > 100);
    assert_int_equal(tuck_op_find("none.such"), 0);
    assert_true(tuck_op_info(tuck_op_find("torch.ops.aten.mm.default"), &op));
    assert_string_equal(op.name, "aten.mm.default");
    assert_false(tuck_op_info(0, &op));
    assert_false(tuck_op_info(tuck_op_count() + 1, &op));
    assert_false(tuck_op_info(1, &wrong));
    assert_int_equal(tuck_ops_matching(NULL), tuck_op_count());
    assert_int_equal(tuck_ops_matching("aten.mm.default"), 1);
    assert_int_equal(tuck_ops_matching("no such part"), 0);
    assert_int_equal(tuck_ops_print("aten.mm.default", NULL, into, &s), TUCK_OK);
    assert_int_equal(strncmp(s.text, "aten.mm.default\n", 16), 0);
    s.len = 0;
    assert_int_equal(tuck_pass_print(0, NULL, into, &s), TUCK_OK);
    assert_int_equal(strncmp(s.text, tuck_pass_name(0), strlen(tuck_pass_name(0))), 0);
    assert_int_equal(tuck_pass_print(tuck_pass_count(), NULL, into, &s), TUCK_EINVAL);
}

static void lint(void **state)
{
    static const tuck_diag made = {
        .severity = TUCK_ERROR, .file = "a.txt", .line = 3, .message = "wrong", .note = "why"};
    tuck_diags *found = tuck_diags_new(NULL);
    tuck_print_options how;
    tuck_lint_sum sum;
    struct sink s = {.len = 0};

    (void)state;
    tuck_diags_append(found, &made);
    assert_int_equal(tuck_diags_errors(found), 1);
    assert_string_equal(tuck_diags_at(found, 0)->message, "wrong");
    assert_true(tuck_diags_at(found, 0)->message != made.message);
    tuck_lint_sum_init(&sum);
    sum.file = "a.txt";
    sum.graphs = 1;
    sum.nodes = 5;
    sum.errors = 1;
    assert_int_equal(tuck_lint_print(&sum, NULL, NULL, into, &s), TUCK_OK);
    assert_string_equal(s.text, "1 graph, 5 nodes: 1 error, 0 warnings\n");
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    assert_int_equal(tuck_lint_print(&sum, NULL, &how, into, &s), TUCK_EINVAL);
    s.len = 0;
    assert_int_equal(tuck_lint_print(&sum, found, &how, into, &s), TUCK_OK);
    assert_non_null(strstr(s.text, "\"message\": \"wrong\""));
    tuck_diags_free(found);
}

static void tables_of_passes(void **state)
{
    tuck_print_options how;
    struct text out = {0};

    (void)state;
    assert_int_equal(tuck_passes_print(NULL, text_add, &out), TUCK_OK);
    for (size_t i = 0; i < tuck_pass_count(); i++)
        assert_non_null(strstr(out.at, tuck_pass_name(i)));
    tuck_print_options_init(&how);
    how.form = TUCK_PRINT_JSON;
    text_clear(&out);
    assert_int_equal(tuck_passes_print(&how, text_add, &out), TUCK_OK);
    assert_int_equal(strncmp(out.at, "{\n  \"schema\": 1,\n", 17), 0);
    text_clear(&out);
    assert_int_equal(tuck_reasons_print(NULL, text_add, &out), TUCK_OK);
    assert_non_null(strstr(out.at, "filtered"));
    assert_int_equal(tuck_passes_print(NULL, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_reasons_print(NULL, NULL, NULL), TUCK_EINVAL);
    text_done(&out);
}

/* ---- diagnostics ---- */

static void diagnostics(void **state)
{
    static const tuck_diag made = {.severity = TUCK_ERROR,
                                   .file = "a.txt",
                                   .line = 3,
                                   .column = 5,
                                   .message = "wrong",
                                   .note = "why",
                                   .source = "abc def",
                                   .caret = 4,
                                   .length = 3};
    static const char one[] = "a.txt:3:5: error: wrong\n     3 | abc def\n"
                              "       |     ^~~\n  note: why\n";
    tuck_diags *d = tuck_diags_new(NULL);
    struct sink s = {.len = 0};
    char twice[2 * sizeof(one)];

    (void)state;
    assert_int_equal(tuck_diags_print(d, TUCK_PLAIN, into, &s), TUCK_OK);
    assert_int_equal(s.len, 0);
    tuck_diags_append(d, &made);
    tuck_diags_append(d, tuck_diags_at(d, 0));
    assert_int_equal(tuck_diag_print(tuck_diags_at(d, 0), TUCK_PLAIN, into, &s), TUCK_OK);
    assert_string_equal(s.text, one);
    s.len = 0;
    assert_int_equal(tuck_diags_print(d, TUCK_PLAIN, into, &s), TUCK_OK);
    snprintf(twice, sizeof(twice), "%s%s", one, one);
    assert_string_equal(s.text, twice);
    s.len = 0;
    assert_int_equal(tuck_diags_print(d, TUCK_COLORED, into, &s), TUCK_OK);
    assert_non_null(strstr(s.text, "\033["));
    s.refuse = true;
    assert_int_equal(tuck_diags_print(d, TUCK_PLAIN, into, &s), TUCK_EIO);
    assert_int_equal(tuck_diags_print(NULL, TUCK_PLAIN, into, &s), TUCK_EINVAL);
    assert_int_equal(tuck_diags_print(d, TUCK_PLAIN, NULL, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_diag_print(NULL, TUCK_PLAIN, into, &s), TUCK_EINVAL);
    assert_null(tuck_diags_at(d, 2));
    tuck_diags_free(d);
}

/* A log gives the rank and the title of a graph. */
static void where_graphs_come_from(void **state)
{
    tuck_doc *doc = NULL;
    uint32_t line[2];

    (void)state;
    assert_int_equal(
        tuck_doc_read_file("tests/graphs/synthetic/s11_rank_interleaved_log.txt", NULL, NULL, &doc),
        TUCK_OK);
    assert_int_equal(tuck_doc_count(doc), 2);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(tuck_doc_rank(doc, i), i);
        assert_string_equal(tuck_doc_title(doc, i), "AFTER POST GRAD");
        line[i] = tuck_doc_line(doc, i);
    }
    assert_true(line[0] > 0 && line[1] > 0 && line[0] != line[1]);
    assert_string_equal(tuck_doc_title(doc, 2), "");
    assert_int_equal(tuck_doc_line(doc, 2), 0);
    assert_int_equal(tuck_doc_rank(doc, 2), -1);
    assert_null(tuck_doc_graph(doc, 2));
    tuck_doc_free(doc);
}

static void files_to_write_to(void **state)
{
    char text[8] = "";
    FILE *f = tmpfile();

    (void)state;
    assert_non_null(f);
    assert_true(tuck_write_file(f, "abcdef", 3) && tuck_write_file(f, "", 0));
    rewind(f);
    assert_int_equal(fread(text, 1, sizeof(text), f), 3);
    assert_string_equal(text, "abc");
    fclose(f);
    assert_false(tuck_write_file(NULL, "abc", 3));
}

/* ---- descriptions ---- */

static const char two[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[s0, 4][4, 1]cpu\"):\n"
    "        a: \"f32[s0, 4][4, 1]cpu\" = torch.ops.aten.neg.default(x)\n"
    "        r = torch.ops._c10d_functional.all_reduce.default(a, 'sum', '0');  a = None\n"
    "        w = torch.ops._c10d_functional.wait_tensor.default(r);  r = None\n"
    "        sub = self.sub\n"
    "        c = torch.ops.higher_order.invoke_subgraph(sub, 'n', x);  sub = x = None\n"
    "        return (w, c)\n"
    "\n"
    "    class sub(torch.nn.Module):\n"
    "        def forward(self, x):\n"
    "            return (x,)\n"
    "\n"
    "class g(torch.nn.Module):\n"
    "    def forward(self, y: \"f32[4][1]cpu\"):\n"
    "        return (y,)\n";

static void descriptions(void **state)
{
    const tuck_hint hint = {"s0", 8};
    tuck_doc *doc = read_or_die(two);
    tuck_describe_options o;
    tuck_description *d = NULL;
    tuck_graph_facts f = {.size = sizeof(f)}, none = {.size = 0};
    struct sink s = {.len = 0};

    (void)state;
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(tuck_graph_infer(tuck_doc_graph(doc, i), TUCK_TRUST_ANNOTATIONS, NULL),
                         TUCK_OK);
    assert_int_equal(tuck_doc_describe(doc, NULL, &d), TUCK_OK);
    assert_int_equal(tuck_description_count(d), 2);
    assert_true(tuck_description_facts(d, 0, &f));
    assert_int_equal(f.nodes, 9);
    assert_int_equal(f.nested, 1);
    assert_int_equal(f.inputs, 1);
    assert_int_equal(f.outputs, 2);
    assert_int_equal(f.collectives, 1);
    assert_int_equal(f.input_bytes, -1); /* s0 is not known */
    assert_int_equal(f.peak_bytes, -1);
    assert_false(tuck_description_facts(d, 0, &none));
    assert_false(tuck_description_facts(d, 2, &f));
    tuck_description_free(d);
    tuck_describe_options_init(&o);
    o.hints = &hint;
    o.n_hints = 1;
    o.count = 1;
    o.file = "f.txt";
    assert_int_equal(tuck_doc_describe(doc, &o, &d), TUCK_OK);
    assert_int_equal(tuck_description_count(d), 1);
    assert_true(tuck_description_facts(d, 0, &f));
    assert_int_equal(f.input_bytes, 8 * 4 * 4);
    assert_int_equal(tuck_description_print(d, NULL, into, &s), TUCK_OK);
    assert_int_equal(strncmp(s.text, "f.txt:1: f  (graph 0 of 2)\n", 27), 0);
    tuck_description_free(d);
    o.count = 3;
    assert_int_equal(tuck_doc_describe(doc, &o, &d), TUCK_EINVAL);
    o.size = 0;
    assert_int_equal(tuck_doc_describe(doc, &o, &d), TUCK_EINVAL);
    tuck_doc_free(doc);
}

/* Every request for memory fails once, and nothing leaks. */
static void describe_without_memory(void **state)
{
    const tuck_hint hint = {"s0", 8};
    tuck_describe_options o = {.size = sizeof(o), .file = "", .hints = &hint, .n_hints = 1};
    tuck_print_options how = {.size = sizeof(how), .form = TUCK_PRINT_JSON};
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    bool failed = true;
    size_t tried = 0;

    (void)state;
    for (size_t k = 1; failed; k++, tried++) {
        tuck_doc *doc = NULL;
        tuck_description *d = NULL;

        f = (struct faulty){.fail_at = 0};
        assert_int_equal(tuck_doc_read_text(two, strlen(two), "", &read, NULL, &doc), TUCK_OK);
        assert_int_equal(tuck_graph_infer(tuck_doc_graph(doc, 0), TUCK_TRUST_ANNOTATIONS, NULL),
                         TUCK_OK);
        f.fail_at = f.calls + k;
        tuck_status st = tuck_doc_describe(doc, &o, &d);
        if (st == TUCK_OK)
            st = tuck_description_print(d, &how, text_drop, NULL);
        failed = f.failed;
        assert_true(st == TUCK_OK || (failed && st == TUCK_ENOMEM)); /* a cache is optional */
        tuck_description_free(d);
        tuck_doc_free(doc);
        assert_int_equal(f.live, 0);
    }
    assert_true(tried > 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(version),
        cmocka_unit_test(sizes_of_options),
        cmocka_unit_test(options_without_size),
        cmocka_unit_test(printing),
        cmocka_unit_test(items),
        cmocka_unit_test(tables),
        cmocka_unit_test(lint),
        cmocka_unit_test(tables_of_passes),
        cmocka_unit_test(diagnostics),
        cmocka_unit_test(where_graphs_come_from),
        cmocka_unit_test(files_to_write_to),
        cmocka_unit_test(descriptions),
        cmocka_unit_test(describe_without_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
