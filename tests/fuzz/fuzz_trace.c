/* Any bytes as a profiler's trace, plain or gzip: nothing crashes; an error has a diagnostic with a
 * message; of a trace that is read, no figure is below nothing, exposed communication is part of the
 * communication, and printing and drawing work, alone and as two ranks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuck_experimental.h"

static void fail(const char *what)
{
    fprintf(stderr, "%s\n", what);
    abort();
}

static bool drop(void *ctx, const char *text, size_t len)
{
    (void)text;
    *(size_t *)ctx += len;
    return true;
}

static void check_figures(tuck_traces *t)
{
    for (size_t i = 0; i < tuck_traces_count(t); i++) {
        tuck_trace_figures x;
        if (!tuck_traces_figures(t, i, &x))
            fail("a timeline without figures");
        if (x.step_ps < 0 || x.compute_ps < 0 || x.comm_ps < 0)
            fail("a time below nothing");
    }
}

static void check_read(tuck_traces *t)
{
    tuck_print_options how;
    size_t len = 0;

    check_figures(t);
    tuck_print_options_init(&how);
    if (tuck_traces_print(t, &how, drop, &len) != TUCK_OK || len == 0)
        fail("a table is not printed");
    how.form = TUCK_PRINT_JSON;
    if (tuck_traces_print(t, &how, drop, &len) != TUCK_OK)
        fail("JSON is not printed");
    tuck_status st = tuck_traces_html(t, "t", -1, drop, &len);
    if (st != TUCK_OK && st != TUCK_EINVAL)
        fail("a page is not drawn");
    if (tuck_traces_perfetto(t, -1, drop, &len) != st)
        fail("a page is drawn and a trace is not");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tuck_diags *d = tuck_diags_new(NULL);
    tuck_traces *t = NULL;

    if (d == NULL || tuck_traces_new(NULL, &t) != TUCK_OK)
        abort();
    tuck_status st = tuck_traces_add_text(t, (const char *)data, size, "t.json", d);
    if (st == TUCK_OK) {
        if (tuck_diags_errors(d) > 0)
            fail("read, though there are errors");
        check_read(t);
        if (tuck_traces_add_text(t, (const char *)data, size, "u.json", d) != TUCK_OK)
            fail("read once, but not twice");
        check_read(t);
    } else if (st != TUCK_ENOMEM && tuck_diags_errors(d) == 0) {
        fail("refused without a word");
    }
    for (size_t i = 0; i < tuck_diags_count(d); i++)
        if (*tuck_diags_at(d, i)->message == '\0')
            fail("an error without a message");
    tuck_traces_free(t);
    tuck_diags_free(d);
    return 0;
}
