/* Color: escapes around cells, and who gets them. */
#include <pty.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/color.h"
#include "pass/pass_report.h"

struct cells {
    struct buf plain, color;
};

static void write_cells(struct buf *b)
{
    ink_printf(b, INK_HEAD, "  %-8s %5s", "op", "us");
    buf_chr(b, '\n');
    ink_line(b, INK_BAD, "  %-8s %5.1f", "mm", 1.5);
    ink_printf(b, INK_DIM, "%s", "");
    ink_str(b, INK_PLAIN, "as it is\n");
}

static void do_cells(void *arg)
{
    struct cells *x = arg;

    write_cells(&x->plain);
    write_cells(&x->color);
}

static void test_cells(void **state)
{
    struct mem m;
    struct cells x;

    (void)state;
    mem_init(&m, NULL);
    buf_init(&x.plain, &m);
    buf_init(&x.color, &m);
    x.color.color = true;
    assert_true(mem_guard(&m, do_cells, &x));
    assert_string_equal(buf_text(&x.plain), "  op          us\n  mm         1.5\nas it is\n");
    assert_string_equal(buf_text(&x.color), "\033[1m  op          us\033[0m\n"
                                            "\033[31m  mm         1.5\033[0m\nas it is\n");
    buf_destroy(&x.plain);
    buf_destroy(&x.color);
}

static void do_gain(void *arg)
{
    struct cells *x = arg;
    tuck_report *t = report_new(NULL);

    assert_non_null(t);
    t->judged = true;
    t->gain = (tuck_gain){
        .before = {2000000000, 1000000000, 1000000000, 1000000000, .peak_bytes = 1048576},
        .after = {1000000000, 1000000000, 1000000000, 0, .peak_bytes = 2097152},
        .bound_ps = 1000000000,
        .bound_meaning = "words",
        .changed = true};
    report_table(t, &(struct report_form){.times = false}, &x->color);
    tuck_report_free(t);
}

/* Faster is green, more memory red. */
static void test_gain(void **state)
{
    struct mem m;
    struct cells x;

    (void)state;
    mem_init(&m, NULL);
    buf_init(&x.color, &m);
    x.color.color = true;
    assert_true(mem_guard(&m, do_gain, &x));
    const char *text = buf_text(&x.color);
    assert_non_null(
        strstr(text, "\033[1m                             before         Tuck\033[0m\n"));
    assert_non_null(strstr(text, "2.000 \033[32m       1.000\033[0m\033[32m  -50.0 %\033[0m\n"));
    assert_non_null(strstr(text, "compute ms                    1.000        1.000\n"));
    assert_non_null(strstr(text, "1.00 \033[31m        2.00\033[0m\n"));
    buf_destroy(&x.color);
}

/* Does the tool beside this program write escapes on a terminal? */
static bool colorful(const char *term, const char *no_color, const char *when)
{
    char self[4096], tool[4200], text[65536];
    ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
    size_t n = 0;
    int fd, status;

    assert_true(len > 0);
    self[len] = '\0';
    for (int i = 0; i < 3; i++) /* build/release/tests/unit/test_color */
        *strrchr(self, '/') = '\0';
    snprintf(tool, sizeof(tool), "%s/tuck", self);
    pid_t child = forkpty(&fd, NULL, NULL, NULL);
    assert_true(child >= 0);
    if (child == 0) {
        unsetenv("NO_COLOR");
        unsetenv("TERM");
        if (term != NULL)
            setenv("TERM", term, 1);
        if (no_color != NULL)
            setenv("NO_COLOR", no_color, 1);
        execl(tool, "tuck", "passes", "sink_waits", "--color", when, (char *)NULL);
        _exit(127);
    }
    for (ssize_t got; n < sizeof(text) - 1 && (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0;)
        n += (size_t)got;
    text[n] = '\0';
    close(fd);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_non_null(strstr(text, "sink_waits"));
    return strchr(text, '\033') != NULL;
}

static void test_terminals(void **state)
{
    (void)state;
    assert_true(colorful("xterm", NULL, "auto"));
    assert_true(colorful("xterm", "", "auto"));
    assert_false(colorful("xterm", "1", "auto"));
    assert_false(colorful("dumb", NULL, "auto"));
    assert_false(colorful(NULL, NULL, "auto"));
    assert_false(colorful("xterm", NULL, "never"));
    assert_true(colorful("dumb", "1", "always"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cells), cmocka_unit_test(test_gain),
                                       cmocka_unit_test(test_terminals)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
