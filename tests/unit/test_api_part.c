/* Passes on a part of a graph, in the public interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "support/support.h"
#include "tuck_experimental.h"

static const char reduce[] = "torch.ops._c10d_functional.all_reduce.default";
static const char wait[] = "torch.ops._c10d_functional.wait_tensor.default";

static tuck_pipeline *pipeline(const char *text)
{
    tuck_pipeline *p = NULL;

    assert_int_equal(tuck_pipeline_parse(text, strlen(text), "", NULL, NULL, &p), TUCK_OK);
    return p;
}

static tuck_part part(const char *passes, const char *op)
{
    tuck_pipeline *p = pipeline(passes);
    tuck_part found = tuck_pipeline_part(p, tuck_op_find(op));

    tuck_pipeline_free(p);
    return found;
}

static void meanings(void **state)
{
    (void)state;
    assert_int_equal(part("schedule_comm_wait", reduce), TUCK_PART_START);
    assert_int_equal(part("schedule_comm_wait", wait), TUCK_PART_FOLLOW);
    assert_int_equal(part("schedule_comm_wait", "aten.view.default"), TUCK_PART_FOLLOW);
    assert_int_equal(part("schedule_comm_wait", "operator.getitem"), TUCK_PART_FOLLOW);
    assert_int_equal(part("schedule_comm_wait", "aten.mm.default"), TUCK_PART_NOTHING);
    /* whatever writes, holds another operator, or is unknown */
    assert_int_equal(part("schedule_comm_wait", "aten.copy_.default"), TUCK_PART_WHOLE);
    assert_int_equal(part("schedule_comm_wait", "_c10d_functional.all_reduce_.default"),
                     TUCK_PART_WHOLE);
    assert_int_equal(part("schedule_comm_wait", "torch.ops.higher_order.with_effects"),
                     TUCK_PART_WHOLE);
    assert_int_equal(part("schedule_comm_wait", "my.own"), TUCK_PART_WHOLE);
    /* other passes, several, or by names */
    assert_int_equal(part("schedule_comm_wait(compat=torch)", wait), TUCK_PART_WHOLE);
    assert_int_equal(part("schedule_comm_wait, schedule_comm_wait", wait), TUCK_PART_WHOLE);
    assert_int_equal(part("bucket_all_reduce", wait), TUCK_PART_WHOLE);
    assert_int_equal(tuck_pipeline_part(NULL, 1), TUCK_PART_WHOLE);
}

/* a, b = all_reduce(..), all_reduce(..); wait(a), wait(b), something else, sin of both */
enum { N_WORDS = 4 + 3 + 5 + 6 + 3 + 3 + 6, GAP = 4 + 3 + 5 + 5 };

static void fill(int64_t *w)
{
    int64_t ar = tuck_op_find(reduce), wt = tuck_op_find(wait), sin = tuck_op_find("aten.sin");
    const int64_t words[N_WORDS] = {
        2,
        3,
        2,
        4, /* head */
        2,
        TUCK_RUN_SAME,
        ar, /* starts */
        3,
        TUCK_RUN_LISTED,
        wt,
        wt,
        sin, /* nodes */
        2,
        TUCK_RUN_SAME,
        0,
        1,
        TUCK_RUN_LISTED,
        1, /* gaps */
        2,
        TUCK_RUN_COUNTED,
        0, /* followed */
        4,
        TUCK_RUN_SAME,
        1, /* users */
        2,
        TUCK_RUN_COUNTED,
        0,
        2,
        TUCK_RUN_SAME,
        2, /* uses */
    };

    memcpy(w, words, sizeof(words));
}

static tuck_status run(const char *passes, const int64_t *words, size_t n, int64_t *moves,
                       size_t *n_moves, bool *whole, const tuck_allocator *alloc)
{
    tuck_pipeline *p = pipeline(passes);
    tuck_report *report = NULL;
    tuck_status st = tuck_pipeline_run_part(p, words, n, 9, alloc, moves, n_moves, &report);

    *whole = report == NULL;
    tuck_report_free(report);
    tuck_pipeline_free(p);
    return st;
}

static void moves_waits(void **state)
{
    static const int64_t want[] = {0, 2, 1, 2};
    int64_t words[N_WORDS], moves[6];
    size_t n;
    bool whole;

    (void)state;
    fill(words);
    assert_int_equal(run("schedule_comm_wait", words, N_WORDS, moves, &n, &whole, NULL), TUCK_OK);
    assert_false(whole);
    assert_int_equal(n, 2);
    assert_memory_equal(moves, want, sizeof(want));
    words[GAP] = 0; /* nothing in between */
    assert_int_equal(run("schedule_comm_wait", words, N_WORDS, moves, &n, &whole, NULL), TUCK_OK);
    assert_int_equal(n, 0);
    assert_int_equal(run("bucket_all_reduce", words, N_WORDS, moves, &n, &whole, NULL), TUCK_OK);
    assert_true(whole);
}

/* A result that nothing waits for is reported by its name. */
static void needs_names(void **state)
{
    int64_t ar = tuck_op_find(reduce), moves[2];
    const int64_t words[] = {1,  1, 0,
                             1,  1, TUCK_RUN_SAME,
                             ar, 1, TUCK_RUN_SAME,
                             0,  1, TUCK_RUN_SAME,
                             0,  1, TUCK_RUN_SAME,
                             1,  1, TUCK_RUN_SAME,
                             0};
    size_t n;
    bool whole;

    (void)state;
    assert_int_equal(
        run("schedule_comm_wait", words, sizeof(words) / sizeof(words[0]), moves, &n, &whole, NULL),
        TUCK_OK);
    assert_true(whole);
}

static void wrong_words(void **state)
{
    int64_t words[N_WORDS], moves[6];
    size_t n;
    bool whole;

    (void)state;
    for (size_t i = 0; i < N_WORDS; i++) {
        for (int by = -1; by <= 1; by++) { /* too small, nothing, too large */
            fill(words);
            words[i] = by == 0 ? words[i] : by * ((int64_t)1 << 40);
            tuck_status st = run("schedule_comm_wait", words, N_WORDS, moves, &n, &whole, NULL);
            assert_int_equal(st, by == 0 ? TUCK_OK : TUCK_EINVAL);
        }
        fill(words);
        assert_int_equal(run("schedule_comm_wait", words, i, moves, &n, &whole, NULL), TUCK_EINVAL);
    }
    fill(words);
    words[N_WORDS - 1] = 1; /* uses itself */
    assert_int_equal(run("schedule_comm_wait", words, N_WORDS, moves, &n, &whole, NULL),
                     TUCK_EINVAL);
}

static void no_memory(void **state)
{
    tuck_status st = TUCK_ENOMEM;
    int64_t words[N_WORDS], moves[6];
    size_t n;
    bool whole;

    (void)state;
    fill(words);
    for (size_t i = 1; st == TUCK_ENOMEM; i++) {
        struct faulty f = {.fail_at = i};
        tuck_allocator alloc = faulty_allocator(&f);

        st = run("schedule_comm_wait", words, N_WORDS, moves, &n, &whole, &alloc);
        assert_int_equal(st, f.failed ? TUCK_ENOMEM : TUCK_OK);
        assert_int_equal(f.live, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(meanings),    cmocka_unit_test(moves_waits), cmocka_unit_test(needs_names),
        cmocka_unit_test(wrong_words), cmocka_unit_test(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
