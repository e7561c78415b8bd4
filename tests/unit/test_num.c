/* Numbers are read and written the same in any locale of the host program; how times are rounded
 * and added up. */
#include <locale.h>
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

#include "base/buf.h"
#include "base/units.h"
#include "base/num.h"
#include "support/support.h"

/* In the C locale strtod() decides. */
static void same_as_strtod(const char *text)
{
    double got = 0, want = strtod(text, NULL);

    if (!num_float(text, strlen(text), &got) || memcmp(&got, &want, sizeof(got)) != 0)
        fail_msg("'%s' is read as %a, not %a", text, got, want);
}

static uint64_t next(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 11;
}

static void test_values(void **state)
{
    static const char *const all[] = {"0",
                                      "-0",
                                      "0.0",
                                      "-0.000e5",
                                      "1",
                                      "+1",
                                      "1.",
                                      ".5",
                                      "0.1",
                                      "12.5e-3",
                                      "1E5",
                                      "1e+05",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "5e-324",
                                      "2.5e-324",
                                      "2.4e-324",
                                      "1.7976931348623157e308",
                                      "1.7976931348623159e308",
                                      "0000000000000000000000000.1",
                                      "9007199254740993",
                                      "9007199254740992.9999999",
                                      "1e99999999999999999999",
                                      "1e-99999999999999999999",
                                      "0e99999999999999999999"};
    uint64_t seed = 1;
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        same_as_strtod(all[i]);
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = next(&seed) << 11 ^ next(&seed);
        double v;

        memcpy(&v, &bits, sizeof(v));
        if (!isfinite(v))
            continue;
        snprintf(text, sizeof(text), i % 2 ? "%.16e" : "%.17g", v);
        same_as_strtod(text);
        snprintf(text, sizeof(text), "%llu.%05llue%d", (unsigned long long)next(&seed) % 1000,
                 (unsigned long long)next(&seed) % 100000, (int)(next(&seed) % 40) - 20);
        same_as_strtod(text);
    }
}

/* Half-way between two doubles, and a 1 a thousand zeros further on. */
static void test_many_digits(void **state)
{
    static char text[4000];
    double v;

    (void)state;
    strcpy(text, "9007199254740993.");
    memset(text + 17, '0', 1500);
    strcpy(text + 17 + 1500, "1");
    assert_true(num_float(text, strlen(text), &v));
    assert_true(v == 9007199254740994.0);
    text[17 + 1500] = '0';
    assert_true(num_float(text, strlen(text), &v));
    assert_true(v == 9007199254740992.0);
    memset(text, '7', 1000);
    strcpy(text + 1000, "e-1000");
    same_as_strtod(text);
}

static void test_refused(void **state)
{
    static const char *const all[] = {"",    ".",   "-",   "e5",  "1e", "1e+", "1.2.3", "1,5",
                                      "0x1", "inf", "nan", "1_0", " 1", "1 ",  "1e5.",  "--1"};
    double v;

    (void)state;
    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++)
        if (num_float(all[i], strlen(all[i]), &v))
            fail_msg("'%s' is no number", all[i]);
}

/* A locale that writes 0,5: an installed one, or one made for the test. NULL if neither. */
static const char *comma_locale(char dir[])
{
    static const char *const known[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR",
                                        "ru_RU.UTF-8"};
    char command[256];

    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (setlocale(LC_NUMERIC, known[i]) != NULL)
            return known[i];
    if (mkdtemp(dir) == NULL)
        return NULL;
    snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >%s/log 2>&1",
             dir, dir);
    if (system(command) == -1)
        return NULL;
    setenv("LOCPATH", dir, 1);
    return setlocale(LC_NUMERIC, "de_DE.UTF-8");
}

static void test_locale(void **state)
{
    char dir[] = "/tmp/tuck-locale-XXXXXX", command[64];
    const char *graph = "def forward(self, x):\n"
                        "    mul = torch.ops.aten.mul.Tensor(x, 0.25);  x = None\n"
                        "    return (mul, 2.5*s0)\n";

    (void)state;
    if (comma_locale(dir) == NULL) {
        setlocale(LC_NUMERIC, "C");
        rmdir(dir);
        skip();
    }
    double v = 0, wrong = strtod("0.25", NULL);
    assert_true(wrong == 0.0); /* the locale is active */
    assert_true(num_float("0.25", 4, &v) && v == 0.25);

    tuck_doc *doc = read_or_die(graph);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    const tuck_value *factor = tuck_node_arg(g, tuck_graph_next(g, tuck_graph_first(g)), 1);
    assert_true(tuck_value_float(factor) == 0.25);
    char *printed = graph_text(g);
    assert_string_equal(printed, graph);
    free(printed);

    struct mem m;
    struct buf b;
    mem_init(&m, NULL);
    buf_init(&b, &m);
    buf_float(&b, 1234.5);
    buf_chr(&b, ' ');
    buf_float(&b, -2.5e-7);
    assert_string_equal(buf_text(&b), "1234.5 -2.5e-07");
    buf_destroy(&b);
    tuck_doc_free(doc);
    setlocale(LC_NUMERIC, "C");
    if (strstr(dir, "XXXXXX") == NULL) {
        snprintf(command, sizeof(command), "rm -r %s", dir);
        assert_int_equal(system(command), 0);
    }
}

static void test_times(void **state)
{
    double ps = 0;
    char text[32];

    (void)state;
    assert_true(ps_round(2.5) == 3 && ps_round(2.4999) == 2 && ps_round(-0.4) == 0);
    assert_true(ps_round(0x1p62) == (int64_t)1 << 62 && ps_round(0x1p63) == INT64_MAX);
    assert_true(ps_round(-0.5) == -1 && ps_round(-7e9) == -1 && ps_round(NAN) == -1);
    assert_true(ps_round_difference(-7.5) == -8 && ps_round_difference(-INFINITY) == INT64_MIN);
    /* Unknown stays unknown, in any position. */
    assert_true(ps_add(5, -1) == -1 && ps_add(-1, 5) == -1 && ps_add(5, 6) == 11);
    assert_true(ps_add(INT64_MAX, 1) == INT64_MAX && ps_add(INT64_MAX, -1) == -1);
    assert_true(ps_times(7, 6) == 42 && ps_times(-1, 0) == -1 && ps_times(0, -1) == -1);
    assert_true(ps_times(INT64_MAX / 2, 3) == INT64_MAX);
    assert_true(unit_by_name("ms", &ps) && ps == 1e9 && !unit_by_name("min", &ps));
    assert_string_equal(text_of_ps(-1, text), "?");
    assert_string_equal(text_of_ps(12345678, text), "12.3 us");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),  cmocka_unit_test(test_many_digits),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_locale),
        cmocka_unit_test(test_times),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
