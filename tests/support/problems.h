/* Schedule problems for tests: random ones, recorded ones with PyTorch's answers, and checks that
 * share nothing with the library's own. */
#ifndef TUCK_TESTS_PROBLEMS_H
#define TUCK_TESTS_PROBLEMS_H

/* base/json.h has a json_null() of its own. */
#define json_null jansson_null
#include <jansson.h>
#undef json_null

#include "plan/problem.h"
#include "schedule/schedule.h"
#include "support/support.h"

struct random_problem {
    uint32_t n_op;
    uint32_t coll_percent, sync_percent; /* of ops; of collectives */
    uint32_t n_group;                    /* process groups, from 1 on */
    bool fractions;                      /* runtimes whose sums are not exact */
    /* collectives with several waits, waits for several collectives, message sizes, fake deps */
    bool several;
};

struct problem *random_problem(struct rng *rng, const struct random_problem *how);

/* A step of many equal layers, 6 % collectives: a gather, two branches of compute, a reduction that
 * is waited for two layers later; or, with `eager`, no gather, and the wait right after the
 * reduction. */
struct problem *layered_problem(uint32_t n_op, bool eager);

/* A line of tests/schedule/NAME.jsonl. */
struct problem *recorded_problem(const json_t *line);

/* The most bytes live over all prefixes, each counted separately: quadratic. */
int64_t slow_peak(const struct problem *p, const uint32_t *order);

/* Picoseconds of exposed communication, by a separate simulation. */
int64_t slow_exposed(const struct problem *p, const uint32_t *order);

/* NULL, or what is wrong with an order: not all ops, an op before what it needs, collectives of a
 * group that changed places. */
enum order_rule {
    ORDER_OF_OPS,    /* every op comes after what it needs */
    ORDER_IN_GROUPS, /* … and collectives of a group keep their order */
    ORDER_OF_FENCES, /* … or only those that nothing may pass, and synchronous ones of a group */
};
const char *order_fault(const struct problem *p, const uint32_t *order, enum order_rule rule);
/* The rule that our own passes follow by default. */
enum order_rule order_rule_of(const struct pass *pass);

/* The order after running only this pass, in a new array; *s keeps the schedule. */
void run_pass(struct schedule *s, const struct problem *p, const struct schedule_options *o,
              const struct pass *pass);

#endif
