/* What explain says of other places is what a simulation of the order with the op moved gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "study/issue_place.h"
#include "support/problems.h"

/* The order of the problem with `op` before another one. */
static uint32_t *moved(const struct problem *p, uint32_t op, uint32_t before)
{
    uint32_t *order = calloc(p->n_op, sizeof(*order)), n = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        if (i == before)
            order[n++] = op;
        if (i != op)
            order[n++] = i;
    }
    if (before == p->n_op)
        order[n++] = op;
    assert_int_equal(n, p->n_op);
    return order;
}

static void check(const struct problem *p, uint32_t op, const struct place *x, int64_t compute)
{
    uint32_t *order = moved(p, op, x->before);

    assert_null(order_fault(p, order, ORDER_OF_FENCES));
    assert_int_equal(compute + slow_exposed(p, order), x->step_ps);
    assert_int_equal(slow_peak(p, order), x->peak);
    free(order);
}

static void test_random(void **state)
{
    struct rng g = {seed_of("test_issue_place")};
    size_t n_places = 0, n_other = 0;

    (void)state;
    for (size_t i = 0; i < 300; i++) {
        struct random_problem how = {.n_op = 2 + rng_below(&g, 40),
                                     .coll_percent = 5 + rng_below(&g, 20),
                                     .n_group = 1 + rng_below(&g, 3)};
        struct problem *p = random_problem(&g, &how);
        uint32_t *as_is = calloc(p->n_op, sizeof(*as_is));
        int64_t compute = 0;

        for (uint32_t x = 0; x < p->n_op; x++) {
            as_is[x] = x;
            compute += problem_is_coll(p, x) || problem_is_wait(p, x) ? 0 : p->ps[x];
        }
        struct evaluation e = {.problem = p, .time.makespan = compute + slow_exposed(p, as_is)};
        for (uint32_t x = 0; x < p->n_op; x++) {
            struct places o;
            if (!problem_is_async(p, x))
                continue;
            assert_int_equal(places_of(&e, x, false, &o), TUCK_OK);
            assert_true(o.known);
            check(p, x, &o.early, compute);
            check(p, x, &o.late, compute);
            if (o.others)
                check(p, x, &o.next, compute);
            n_places++;
            n_other += o.others;
        }
        free(as_is);
        problem_free(p);
    }
    assert_true(n_places > 100 && n_other > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
