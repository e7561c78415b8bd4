/* The checker of programs: each of its rules is broken once, and it reports that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lower/verify.h"
#include "support/program_check.h"

static const char text[] =
    "class step(torch.nn.Module):\n"
    "    def forward(self, x: \"f32[8][1]cuda:0\", y: \"f32[8][1]cuda:0\"):\n"
    "        a: \"f32[8][1]cuda:0\" = torch.ops.aten.neg.default(x)\n"
    "        r: \"f32[8][1]cuda:0\" = torch.ops._c10d_functional.all_reduce_.default(a, 'sum', "
    "'0')\n"
    "        b: \"f32[8][1]cuda:0\" = torch.ops.aten.cos.default(y)\n"
    "        w: \"f32[8][1]cuda:0\" = torch.ops._c10d_functional.wait_tensor.default(r)\n"
    "        c: \"f32[8][1]cuda:0\" = torch.ops.aten.sin.default(w)\n"
    "        return (b, c)\n";

enum { A, R, B, W, C, N };

static struct program *lower(tuck_doc **doc)
{
    struct program *p;

    assert_int_equal(tuck_doc_read_text(text, strlen(text), "text", NULL, NULL, doc), TUCK_OK);
    p = lower_with_sizes(tuck_doc_graph(*doc, 0), false);
    assert_non_null(p);
    assert_int_equal(p->n_op, N);
    return p;
}

static void assert_wrong(const struct program *p, const uint32_t *order, const char *want)
{
    char *why = check_ops(p, order, true);

    if (want == NULL && why != NULL)
        fail_msg("%s", why);
    if (want != NULL) {
        assert_non_null(why);
        assert_string_equal(why, want);
    }
    free(why);
}

static void test_orders(void **state)
{
    tuck_doc *doc;
    struct program *p = lower(&doc);

    (void)state;
    assert_wrong(p, NULL, NULL);
    assert_wrong(p, (uint32_t[]){B, A, R, W, C}, NULL);
    assert_wrong(p, (uint32_t[]){R, A, B, W, C}, "r comes before a, which it depends on");
    assert_wrong(p, (uint32_t[]){A, R, B, C, W}, "c comes before w, which it depends on");
    assert_wrong(p, (uint32_t[]){A, R, B, B, C},
                 "place 3 of the order is not an op, or one that came before");
    assert_wrong(p, (uint32_t[]){A, R, B, W, N},
                 "place 4 of the order is not an op, or one that came before");
    program_free(p);
    tuck_doc_free(doc);
}

/* Lists and buffers with wrong contents. */
static void test_lists(void **state)
{
    tuck_doc *doc;
    struct program *p = lower(&doc);
    uint32_t first = p->use_at[B];

    (void)state;
    uint32_t buf = p->use[first].buf;
    p->use[first].buf = p->n_buf;
    assert_wrong(p, NULL, "b uses a buffer that is not there");
    p->use[first].buf = buf;

    p->dep[p->dep_at[C]].op = N;
    assert_wrong(p, NULL, "c depends on an op that is not there");
    p->dep[p->dep_at[C]].op = W;

    p->wait[p->wait_at[W]] = B;
    assert_wrong(p, NULL, "w waits for something that is not a collective");
    p->wait[p->wait_at[W]] = R;

    p->op[R].group = p->n_group;
    assert_wrong(p, NULL, "r is of a group that is not there");
    p->op[R].group = 0;

    p->buf[0].flags = 0;
    assert_wrong(p, NULL, "x is an input, or is not, in one place only");
    p->buf[0].flags = PROGRAM_INPUT;

    uint32_t made = p->buf[2].producer;
    p->buf[2].producer = C;
    assert_wrong(p, NULL, "a makes a, which something else makes");
    p->buf[2].producer = made;
    assert_wrong(p, NULL, NULL);
    program_free(p);
    tuck_doc_free(doc);
}

/* b uses what the collective writes. */
static void test_races(void **state)
{
    tuck_doc *doc;
    struct program *p = lower(&doc);

    (void)state;
    for (uint32_t i = p->use_at[B]; i < p->use_at[B + 1]; i++)
        if (p->use[i].how == PROGRAM_READS)
            p->use[i].buf = p->use[p->use_at[R]].buf;
    assert_wrong(p, NULL, "b touches a while r writes it");
    assert_null(check_ops(p, NULL, false));
    program_free(p);
    tuck_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_races),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
