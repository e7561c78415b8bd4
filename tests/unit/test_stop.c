/* A search that is stopped gives its best so far, and the number of tries repeats it. */
#include "support/graph_test.h"

struct asked {
    uint32_t stop_at; /* 0: never */
    uint32_t calls;
    int64_t best;
    double done;
};

static bool progress(void *ctx, const tuck_progress *p)
{
    struct asked *a = ctx;

    assert_true(p->tries >= a->calls); /* one call for each try */
    assert_true(p->done >= a->done && p->done <= 1);
    assert_true(a->calls == 0 || p->step_ps <= a->best);
    assert_true(p->bound_ps > 0 && p->bound_ps <= p->step_ps);
    a->calls = p->tries;
    a->best = p->step_ps;
    a->done = p->done;
    return a->stop_at == 0 || p->tries < a->stop_at;
}

/* The text of the result, and its time. */
static char *optimize(tuck_run_options *o, bool *stopped, uint32_t *tries, int64_t *ps)
{
    tuck_doc *doc = NULL;
    tuck_report *report = NULL;
    tuck_gain gain;

    assert_int_equal(tuck_doc_read_file("examples/gpt2_ddp_bw.txt", NULL, NULL, &doc), TUCK_OK);
    tuck_graph *g = tuck_doc_graph(doc, 0);
    assert_int_equal(tuck_graph_read_sidecar(g, "examples/gpt2_ddp_bw.txt", -1, NULL), TUCK_OK);
    assert_int_equal(tuck_graph_optimize(g, o, NULL, &gain, &report), TUCK_OK);
    *tries = tuck_report_tries(report, stopped);
    *ps = gain.after.step_ps;
    assert_true(gain.after.step_ps <= gain.before.step_ps);
    char *text = graph_text(g);
    tuck_report_free(report);
    tuck_doc_free(doc);
    return text;
}

static void test_stop(void **unused)
{
    tuck_run_options o;
    struct asked all = {0};
    uint32_t tries, again;
    int64_t whole_ps, ps, ps_again;
    bool stopped;

    (void)unused;
    tuck_run_options_init(&o);
    o.effort = 2;
    o.progress = progress;
    o.progress_ctx = &all;
    char *whole = optimize(&o, &stopped, &tries, &whole_ps);
    assert_false(stopped);
    assert_true(tries > 10);
    for (uint32_t at = 1; at < tries; at = at * 2 + 1) {
        struct asked a = {.stop_at = at};
        o.progress = progress;
        o.progress_ctx = &a;
        o.tries = 0;
        char *first = optimize(&o, &stopped, &again, &ps);
        assert_true(stopped);
        assert_int_equal(again, at);
        assert_true(ps >= whole_ps);
        o.progress = NULL;
        o.tries = at;
        char *second = optimize(&o, &stopped, &again, &ps_again);
        assert_true(stopped);
        assert_int_equal(ps, ps_again);
        assert_string_equal(first, second);
        free(first);
        free(second);
    }
    free(whole);
    assert_int_equal(tuck_report_tries(NULL, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
