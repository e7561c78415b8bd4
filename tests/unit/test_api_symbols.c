/* Symbols, names of profiles, and sizes as text in the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"

static const char text[] =
    "class f(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[s0, 4][4, 1]cuda:0\", y: \"f32[u0, s1][s1, 1]cuda:0\"):\n"
    "        neg: \"f32[s0, 4][4, 1]cuda:0\" = torch.ops.aten.neg.default(x);  x = None\n"
    "        sum_1: \"f32[2*s1][1]cuda:0\" = torch.ops.my.op.default(y);  y = None\n"
    "        return (neg, sum_1)\n";

static const tuck_symbol *find(const tuck_symbols *s, const char *name)
{
    for (size_t i = 0; i < tuck_symbols_count(s); i++)
        if (strcmp(tuck_symbols_at(s, i)->name, name) == 0)
            return tuck_symbols_at(s, i);
    fail_msg("there is no symbol %s", name);
    return NULL;
}

static void expect(const tuck_graph *g, const char *name, tuck_symbol_state state, int64_t value,
                   bool in_sizes)
{
    tuck_symbols *s = NULL;

    assert_int_equal(tuck_graph_symbols(g, &s), TUCK_OK);
    assert_int_equal(find(s, name)->state, state);
    if (state != TUCK_SYMBOL_MISSING)
        assert_int_equal(find(s, name)->value, value);
    assert_int_equal(find(s, name)->in_sizes, in_sizes);
    tuck_symbols_free(s);
}

static size_t count(const tuck_graph *g)
{
    tuck_symbols *s = NULL;

    assert_int_equal(tuck_graph_symbols(g, &s), TUCK_OK);
    size_t n = tuck_symbols_count(s);
    assert_null(tuck_symbols_at(s, n));
    tuck_symbols_free(s);
    return n;
}

static void symbols(void **state)
{
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    tuck_hint h;

    (void)state;
    assert_int_equal(count(g), 0); /* types are not inferred, and nothing is known */
    assert_int_equal(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL), TUCK_OK);
    assert_int_equal(count(g), 3);
    expect(g, "s0", TUCK_SYMBOL_MISSING, 0, true);
    expect(g, "s1", TUCK_SYMBOL_MISSING, 0, true);
    expect(g, "u0", TUCK_SYMBOL_ASSUMED, 8192, true);

    assert_int_equal(tuck_graph_set_symbol(g, "s0", 16), TUCK_OK);
    assert_int_equal(tuck_graph_set_symbol(g, "s9", 1), TUCK_OK); /* in no size */
    assert_int_equal(tuck_graph_set_symbol(g, "u0", 7), TUCK_OK);
    assert_int_equal(tuck_graph_set_symbol(g, "s0", 16), TUCK_OK); /* nothing new */
    assert_int_equal(tuck_graph_hint_count(g), 3);
    assert_int_equal(tuck_graph_set_symbol(g, "s0", 32), TUCK_OK);
    assert_int_equal(tuck_graph_hint_count(g), 4);
    assert_true(tuck_graph_hint(g, 3, &h));
    assert_string_equal(h.symbol, "s0");
    assert_int_equal(h.value, 32);
    assert_false(tuck_graph_hint(g, 4, &h));
    expect(g, "s0", TUCK_SYMBOL_KNOWN, 32, true);
    expect(g, "s9", TUCK_SYMBOL_KNOWN, 1, false);
    expect(g, "u0", TUCK_SYMBOL_KNOWN, 7, true);
    expect(g, "s1", TUCK_SYMBOL_MISSING, 0, true);
    assert_int_equal(count(g), 4);

    /* Everything without a value of its own. */
    assert_int_equal(tuck_graph_set_symbol(g, "*", 5), TUCK_OK);
    expect(g, "s1", TUCK_SYMBOL_KNOWN, 5, true);
    expect(g, "s0", TUCK_SYMBOL_KNOWN, 32, true);

    assert_int_equal(tuck_graph_set_symbol(g, "s0", -1), TUCK_EINVAL);
    assert_int_equal(tuck_graph_set_symbol(g, "", 1), TUCK_EINVAL);
    assert_int_equal(tuck_graph_set_symbol(g, NULL, 1), TUCK_EINVAL);
    assert_int_equal(tuck_graph_set_symbol(NULL, "s0", 1), TUCK_EINVAL);
    assert_int_equal(tuck_graph_symbols(g, NULL), TUCK_EINVAL);
    assert_int_equal(tuck_symbols_count(NULL), 0);
    tuck_doc_free(doc);
}

/* The list may outlive the graph, and copies of a graph know the same. */
static void lifetimes(void **state)
{
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0), *copy = NULL;
    tuck_symbols *s = NULL;

    (void)state;
    assert_int_equal(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_set_symbol(g, "s0", 16), TUCK_OK);
    assert_int_equal(tuck_graph_symbols(g, &s), TUCK_OK);
    assert_int_equal(tuck_graph_copy(g, &copy), TUCK_OK);
    tuck_doc_free(doc);
    assert_int_equal(find(s, "s0")->value, 16);
    expect(copy, "s0", TUCK_SYMBOL_KNOWN, 16, false); /* its types are not inferred */
    tuck_symbols_free(s);
    tuck_graph_free(copy);
}

static const char script[] =
    "# tuck: {\"symbols\": {\"s0\": 1024, \"s1\": 4}}\n"
    "class f(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[s0, s1][s1, 1]cuda:0\"):\n"
    "        neg: \"f32[s0, s1][s1, 1]cuda:0\" = torch.ops.aten.neg.default(x);  x = None\n"
    "        return (neg,)\n";

static int64_t peak_with(tuck_graph *g, const tuck_hint *hints, size_t n)
{
    tuck_machine m;
    tuck_simulation *s = NULL;
    tuck_times t;

    tuck_machine_init(&m);
    m.hints = hints;
    m.n_hints = n;
    if (tuck_graph_simulate(g, &m, NULL, &s) != TUCK_OK)
        return -1;
    tuck_simulation_times(s, &t);
    tuck_simulation_free(s);
    return t.peak_bytes;
}

/* Values in the text need no hints; hints override them. */
static void values_of_the_graph(void **state)
{
    tuck_doc *doc = read_or_die(script), *without = read_or_die(strchr(script, '\n') + 1);
    tuck_graph *g = tuck_doc_graph(doc, 0), *bare = tuck_doc_graph(without, 0);
    const tuck_hint half = {"s0", 512};
    tuck_torch_peak peak = {0};
    tuck_description *d = NULL;
    tuck_graph_facts facts = {.size = sizeof(facts)};

    (void)state;
    assert_int_equal(peak_with(g, NULL, 0), 2 * 1024 * 4 * 4);
    assert_int_equal(peak_with(g, &half, 1), 2 * 512 * 4 * 4);
    assert_int_equal(peak_with(bare, NULL, 0), -1);
    assert_int_equal(peak_with(bare, &half, 1), -1);
    assert_int_equal(tuck_graph_set_symbol(bare, "s1", 4), TUCK_OK);
    assert_int_equal(peak_with(bare, &half, 1), 2 * 512 * 4 * 4);

    assert_int_equal(tuck_graph_torch_peak(g, NULL, 0, &peak), TUCK_OK);
    assert_int_equal(peak.peak, 2 * 1024 * 4 * 4);
    assert_int_equal(tuck_doc_describe(doc, NULL, &d), TUCK_OK);
    assert_true(tuck_description_facts(d, 0, &facts));
    assert_int_equal(facts.input_bytes, 1024 * 4 * 4);
    tuck_description_free(d);
    tuck_doc_free(doc);
    tuck_doc_free(without);
}

/* A value that was set is in the written text, and is read again from it. */
static void remembered(void **state)
{
    tuck_doc *doc = read_or_die(text), *again;
    tuck_graph *g = tuck_doc_graph(doc, 0);

    (void)state;
    assert_int_equal(tuck_graph_set_symbol(g, "s1", 12), TUCK_OK);
    assert_int_equal(tuck_graph_remember(g), TUCK_OK);
    char *printed = graph_text(g);
    again = read_or_die(printed);
    expect(tuck_doc_graph(again, 0), "s1", TUCK_SYMBOL_KNOWN, 12, false);
    free(printed);
    tuck_doc_free(again);
    tuck_doc_free(doc);
}

static void without_memory(void **state)
{
    struct faulty f = {.fail_at = 0};
    tuck_allocator alloc = faulty_allocator(&f);
    tuck_read_options read = {.size = sizeof(read), .alloc = &alloc};
    bool failed = true;
    size_t tried = 0;

    (void)state;
    for (size_t k = 1; failed; k++, tried++) {
        tuck_doc *doc = NULL;
        tuck_symbols *s = NULL;

        f = (struct faulty){.fail_at = 0};
        assert_int_equal(tuck_doc_read_text(text, strlen(text), "", &read, NULL, &doc), TUCK_OK);
        tuck_graph *g = tuck_doc_graph(doc, 0);
        assert_int_equal(tuck_graph_infer(g, TUCK_TRUST_ANNOTATIONS, NULL), TUCK_OK);
        f.fail_at = f.calls + k;
        tuck_status st = tuck_graph_set_symbol(g, "s777", 3);
        assert_int_equal(tuck_graph_hint_count(g), st == TUCK_OK);
        if (st == TUCK_OK)
            st = tuck_graph_symbols(g, &s);
        failed = f.failed;
        assert_int_equal(st, failed ? TUCK_ENOMEM : TUCK_OK);
        tuck_symbols_free(s);
        tuck_doc_free(doc);
        assert_int_equal(f.live, 0);
    }
    assert_true(tried > 3);
}

static void profile_names(void **state)
{
    static const char json[] = "{\"schema\": 1, \"unit\": \"us\", \"nodes\": {\"neg\": 2, "
                               "\"x\": 0, \"nobody\": 1.5}}";
    tuck_profile *p = NULL;
    tuck_doc *doc = read_or_die(text);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    bool seen = false;

    (void)state;
    assert_int_equal(tuck_profile_read_text(json, strlen(json), "p", NULL, NULL, &p), TUCK_OK);
    assert_int_equal(tuck_profile_count(p), 3);
    for (size_t i = 0; i < 3; i++)
        seen |= strcmp(tuck_profile_name(p, i), "nobody") == 0;
    assert_true(seen);
    assert_null(tuck_profile_name(p, 3));
    assert_null(tuck_profile_name(NULL, 0));
    assert_int_equal(tuck_profile_count(NULL), 0);
    tuck_profile_free(p);

    assert_true(tuck_node_takes_time(g, tuck_graph_find(g, "neg")));
    assert_true(tuck_node_takes_time(g, tuck_graph_find(g, "sum_1"))); /* unknown: perhaps */
    assert_false(tuck_node_takes_time(g, tuck_graph_find(g, "x")));
    assert_false(tuck_node_takes_time(g, tuck_graph_output(g)));
    assert_false(tuck_node_takes_time(g, tuck_graph_find(g, "nobody")));
    tuck_doc_free(doc);
}

static void bytes(void **state)
{
    char out[TUCK_BYTES_TEXT];

    (void)state;
    assert_int_equal(tuck_parse_bytes("4096"), 4096);
    assert_int_equal(tuck_parse_bytes("64KB"), 64 << 10);
    assert_int_equal(tuck_parse_bytes("64K"), 64 << 10);
    assert_int_equal(tuck_parse_bytes("1.5MiB"), 3 << 19);
    assert_int_equal(tuck_parse_bytes("2T"), (int64_t)2 << 40);
    assert_int_equal(tuck_parse_bytes("12B"), 12);
    const char *const wrong[] = {"", "x", "-1", "1X", "1KBB", "1iB", "nan", "inf", "1e30", " 1"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        assert_int_equal(tuck_parse_bytes(wrong[i]), -1);
    assert_int_equal(tuck_parse_bytes(NULL), -1);
    assert_string_equal(tuck_format_bytes(0, out), "0 B");
    assert_string_equal(tuck_format_bytes(1536, out), "1.50 KiB");
    assert_string_equal(tuck_format_bytes((int64_t)700 << 20, out), "700 MiB");
    assert_string_equal(tuck_format_bytes(INT64_MAX, out), "8388608 TiB");
    assert_string_equal(tuck_format_bytes(-1, out), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(symbols),
        cmocka_unit_test(lifetimes),
        cmocka_unit_test(values_of_the_graph),
        cmocka_unit_test(remembered),
        cmocka_unit_test(without_memory),
        cmocka_unit_test(profile_names),
        cmocka_unit_test(bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
