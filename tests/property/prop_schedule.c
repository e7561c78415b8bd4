/* Random problems: whatever a pass does, the result is an order, its peak equals a full recount,
 * and our own passes keep their guarantees. In the stress build the library checks every move of
 * the iterative passes against a full recount. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "schedule/peak_orders.h"
#include "support/problems.h"

static const struct pass *const moving[] = {
    &pass_raise_comms,
    &pass_sink_waits,
    &pass_reorder_compute_for_overlap,
    &pass_list_overlap,
    &pass_improve_order,
    &pass_issue_late,
    &pass_reorder_communication_preserving_peak_memory,
    &pass_sink_waits_iterative,
    &pass_simple_overlap,
    &pass_enforce_comm_ordering_for_fsdp,
    &pass_reorder_for_peak_memory,
};
enum { N_MOVING = sizeof(moving) / sizeof(*moving) };

static size_t n_failed, n_moved, n_kept, n_part, n_hidden, n_all, n_late;

static void wrong(size_t round, const char *pass, const char *what)
{
    if (n_failed++ < 10)
        printf("round %zu, %s: %s\n", round, pass, what);
}

static void check(size_t round, const struct problem *p, const struct schedule_options *o,
                  const struct pass *pass, double budget, bool promises)
{
    struct schedule s;
    uint32_t *as_is = calloc(p->n_op, sizeof(*as_is));

    for (uint32_t i = 0; i < p->n_op; i++)
        as_is[i] = i;
    run_pass(&s, p, o, pass);
    const struct schedule_report *r = &s.report.at[0];
    const char *why = order_fault(p, s.order, promises ? order_rule_of(pass) : ORDER_OF_OPS);
    int64_t before = slow_peak(p, as_is), after = slow_peak(p, s.order);
    int64_t exposed = slow_exposed(p, as_is), now = slow_exposed(p, s.order);

    if (why != NULL)
        wrong(round, pass->name, why);
    if (before != r->peak_before || after != r->peak_after)
        wrong(round, pass->name, "the peak is another");
    if (exposed != r->exposed_before || now != r->exposed_after)
        wrong(round, pass->name, "the exposed time is another");
    if (!isnan(budget) && (double)(after - before) > budget * (double)before)
        wrong(round, pass->name, "over the budget");
    /* The runner would refuse such an order; this tests that it never has to. */
    if (r->note != NULL && strstr(r->note, "the peak would grow") != NULL)
        wrong(round, pass->name, "memory was counted wrongly");
    if (promises && now > exposed)
        wrong(round, pass->name, "more is exposed than before");
    n_all++;
    n_moved += r->displaced > 0;
    n_kept += r->note != NULL && strncmp(r->note, "kept", 4) == 0;
    n_part += r->note != NULL && strncmp(r->note, "taken in part", 13) == 0;
    n_hidden += now < exposed;
    schedule_end(&s);
    free(as_is);
}

/* PyTorch's rules with some of its slips: at least an order, and within the budget if memory is
 * counted correctly. */
static void check_torch(size_t round, struct rng *g, const struct problem *p)
{
    struct schedule_options o;
    const unsigned memory = SLIP_STALE_GROUP_PEAK | SLIP_FIRST_OP_OWNS_INPUTS |
                            SLIP_SINK_LAST_USE_STALE;

    schedule_defaults(&o, true);
    o.slips = (unsigned)rng_next(g) & SLIP_ALL;
    o.reorder_iterative_use_runtime_estimations = rng_below(g, 2);
    o.sink_iterative_use_runtime_estimations = rng_below(g, 2);
    o.reorder_iterative_group_with_collectives = rng_below(g, 2);
    o.sink_waits_iterative_swap_with_collectives = rng_below(g, 2);
    o.reorder_iterative_unsafe_collectives_reorder = rng_below(g, 2);
    o.sink_waits_iterative_unsafe_collectives_reorder = rng_below(g, 2);
    o.reorder_iterative_peak_memory_budget = rng_below(g, 4) * 0.1;
    o.sink_iterative_peak_memory_budget = rng_below(g, 4) * 0.1;
    bool fine = (o.slips & memory) == 0;
    check(round, p, &o, &pass_reorder_communication_preserving_peak_memory,
          fine ? o.reorder_iterative_peak_memory_budget : NAN, false);
    check(round, p, &o, &pass_sink_waits_iterative,
          fine ? o.sink_iterative_peak_memory_budget : NAN, false);
}

/* The three orders for memory are orders. */
static void check_peak_orders(size_t round, const struct problem *p)
{
    struct schedule_options o;
    struct schedule s;
    uint32_t *order = calloc(p->n_op, sizeof(*order));

    schedule_defaults(&o, false);
    for (int m = PEAK_LEAST_FIRST; m <= PEAK_DEPTH_FIRST; m++) {
        if (!schedule_begin(&s, p, &o))
            exit(2);
        jmp_buf here;
        s.mem.trap = &here;
        if (setjmp(here) != 0)
            exit(2);
        if (!peak_order(&s, (enum peak_method)m, order) ||
            order_fault(p, order, ORDER_IN_GROUPS) != NULL)
            wrong(round, "an order for memory", "is none");
        schedule_end(&s);
    }
    free(order);
}

/* ---- simple_overlap from its description: swap, recount everything, swap back ---- */

/* Those of one group must; one of an unknown group may belong to any. */
static bool keep_order(const struct problem *p, uint32_t x, uint32_t y)
{
    return p->group[x] == p->group[y] || p->group[x] == PROBLEM_NONE || p->group[y] == PROBLEM_NONE;
}

static bool needs(const struct problem *p, uint32_t x, uint32_t y)
{
    for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++)
        if (!(p->dep_flags[d] & PROBLEM_FAKE) && problem_dep_op(p, d) == y)
            return true;
    return problem_is_coll(p, x) && problem_is_coll(p, y) && keep_order(p, x, y);
}

static void swap_while_allowed(const struct problem *p, uint32_t *order, uint32_t x, int64_t peak)
{
    bool back = problem_is_wait(p, x);
    uint32_t at = 0;

    while (order[at] != x)
        at++;
    for (uint32_t to; back ? at + 1 < p->n_op : at > 0; at = to) {
        to = back ? at + 1 : at - 1;
        uint32_t y = order[to];
        if (back ? problem_is_wait(p, y) || needs(p, y, x)
                 : (problem_is_async(p, y) && keep_order(p, x, y)) || needs(p, x, y))
            return;
        order[to] = x;
        order[at] = y;
        if (slow_peak(p, order) > peak) {
            order[to] = y;
            order[at] = x;
            return;
        }
    }
}

static void check_simple(size_t round, const struct problem *p)
{
    uint32_t n = p->n_op, *order = calloc(n, sizeof(*order)), *waits = calloc(n, sizeof(*waits));
    struct schedule_options o;
    struct schedule s;

    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    int64_t peak = slow_peak(p, order);
    for (uint32_t x = 0; x < n; x++)
        if (problem_is_async(p, x))
            swap_while_allowed(p, order, x, peak);
    memcpy(waits, order, n * sizeof(*order));
    for (uint32_t i = n; i > 0; i--)
        if (problem_is_wait(p, waits[i - 1]))
            swap_while_allowed(p, order, waits[i - 1], peak);
    schedule_defaults(&o, false);
    o.allow_more_exposed = true;
    run_pass(&s, p, &o, &pass_simple_overlap);
    if (memcmp(order, s.order, n * sizeof(*order)) != 0)
        wrong(round, "simple_overlap", "another order than by plain swaps");
    n_all++;
    schedule_end(&s);
    free(waits);
    free(order);
}

/* Gathers as early as they can be, then as late as they must: all communication keeps its order,
 * the step its time, and no gather begins earlier. */
static void check_late(size_t round, const struct problem *p)
{
    uint32_t n = p->n_op, *pos = calloc(n, sizeof(*pos)), *was = calloc(n, sizeof(*was));
    struct schedule_options o;
    struct schedule s;

    schedule_defaults(&o, false);
    run_pass(&s, p, &o, &pass_simple_overlap);
    memcpy(was, s.order, n * sizeof(*was));
    for (uint32_t i = 0; i < n; i++)
        pos[was[i]] = i;
    int64_t exposed = slow_exposed(p, s.order);
    if (pass_issue_late.on_order(&s, &o, NULL) != TUCK_OK)
        exit(2);
    const struct schedule_report *r = &s.report.at[1];
    if (r->note != NULL || slow_exposed(p, s.order) != exposed)
        wrong(round, "issue_late", "the step is another, or the order was refused");
    uint32_t at = 0; /* in the old order */
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = s.order[i];
        if (!problem_is_coll(p, x))
            continue;
        while (!problem_is_coll(p, was[at]))
            at++;
        if (was[at++] != x)
            wrong(round, "issue_late", "communication changed places");
        n_late += p->coll[x] == TUCK_ALL_GATHER && i > pos[x];
    }
    n_all++;
    schedule_end(&s);
    free(was);
    free(pos);
}

int main(void)
{
    struct rng g = {seed_of("prop_schedule")};
    struct schedule_options o;
#ifdef __SANITIZE_ADDRESS__ /* several times slower */
    size_t n = rounds(2000);
#else
    size_t n = rounds(10000);
#endif

    for (size_t i = 0; i < n; i++) {
        struct random_problem how = {.n_op = 2 + rng_below(&g, i % 50 == 0 ? 300 : 40),
                                     .coll_percent = 2 + rng_below(&g, 20),
                                     .sync_percent = rng_below(&g, 3) * 15,
                                     .n_group = 1 + rng_below(&g, 3),
                                     .fractions = rng_below(&g, 2)};
        struct problem *p = random_problem(&g, &how);

        schedule_defaults(&o, false);
        o.evaluations = 200;
        for (size_t k = 0; k < N_MOVING; k++)
            check(i, p, &o, moving[k], 0, true);
        o.list_peak_memory_budget = o.reorder_iterative_peak_memory_budget =
            o.sink_iterative_peak_memory_budget = 0.15;
        for (size_t k = 0; k < 7; k++)
            check(i, p, &o, moving[k], 0.15, true);
        check_torch(i, &g, p);
        check_peak_orders(i, p);
        check_late(i, p);
        if (i % 2 == 0 && p->n_op < 50)
            check_simple(i, p);
        problem_free(p);
    }
    printf("%zu problems: %zu runs, %zu moved something, %zu hid more, %zu were refused, %zu taken "
           "in part, %zu gathers begin later\n",
           n, n_all, n_moved, n_hidden, n_kept, n_part, n_late);
    if (n_late == 0)
        wrong(n, "issue_late", "moved nothing");
    printf("%zu passed, %zu failed\n", n_all - n_failed, n_failed);
    return n_failed > 0;
}
