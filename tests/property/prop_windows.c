/* The exact search in a window: as fast as the best of all arrangements of its ops, within the
 * limit, on random windows of random problems. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "search/exact.h"
#include "search/priced.h"
#include "support/problems.h"

enum { MOST = 7 };

static size_t n_failed, n_windows, n_faster, n_open, n_steps, n_changed;

struct world {
    const struct problem *p;
    struct mem mem;
    struct arena a;
    struct priced s;
    struct improve_edges e;
    uint32_t *need_at, *need;
};

static void wrong(const char *what, int64_t is, int64_t should)
{
    if (n_failed++ < 10)
        printf("%s: %lld, should be %lld\n", what, (long long)is, (long long)should);
}

static void find_needs(struct world *w)
{
    const struct problem *p = w->p;
    uint32_t n = 0;

    w->need_at = calloc((size_t)p->n_op + 1, sizeof(*w->need_at));
    w->need = calloc((size_t)p->dep_at[p->n_op] + 1, sizeof(*w->need));
    for (uint32_t x = 0; x < p->n_op; x++) {
        w->need_at[x] = n;
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            uint32_t y = problem_dep_op(p, d);
            if (y != PROBLEM_NONE && !(p->dep_flags[d] & PROBLEM_FAKE))
                w->need[n++] = y;
        }
    }
    w->need_at[p->n_op] = n;
    w->e = (struct improve_edges){.need_at = w->need_at, .need = w->need};
}

/* Does x need something of ops[k…]? */
static bool must_follow(const struct world *w, uint32_t x, const uint32_t *ops, uint32_t n)
{
    for (uint32_t i = w->need_at[x]; i < w->need_at[x + 1]; i++)
        for (uint32_t k = 0; k < n; k++)
            if (ops[k] == w->need[i])
                return true;
    return false;
}

/* The shortest step of all arrangements of ops[k] … ops[n - 1]. */
static int64_t best_of_all(struct world *w, uint32_t from, uint32_t *ops, uint32_t k, uint32_t n,
                           int64_t limit)
{
    int64_t best = INT64_MAX;

    if (k == n)
        return priced_peak(&w->s, from, from + n, ops) <= limit
                   ? priced_step(&w->s, from, from + n, ops)
                   : INT64_MAX;
    for (uint32_t i = k; i < n; i++) {
        uint32_t x = ops[i];
        if (must_follow(w, x, ops + k, n - k))
            continue;
        ops[i] = ops[k];
        ops[k] = x;
        int64_t step = best_of_all(w, from, ops, k + 1, n, limit);
        best = step < best ? step : best;
        ops[k] = ops[i];
        ops[i] = x;
    }
    return best;
}

static void check(struct world *w, uint32_t from, uint32_t n, int64_t limit)
{
    uint32_t ops[EXACT_MOST_OPS], found[EXACT_MOST_OPS];
    struct exact_budget budget = {.labels = 100000, .comparisons = 1000000};
    struct priced *s = &w->s;

    memcpy(ops, s->order + from, n * sizeof(*ops));
    int64_t best = best_of_all(w, from, ops, 0, n, limit);
    enum exact_outcome outcome = exact_window(s, &w->e, limit, from, from + n, s->step, &budget,
                                              found, &w->a);
    n_windows++;
    n_open += outcome == EXACT_OPEN;
    if (outcome == EXACT_BEST && best < s->step)
        wrong("no arrangement was found", s->step, best);
    if (outcome != EXACT_FASTER)
        return;
    n_faster++;
    int64_t step = priced_step(s, from, from + n, found);
    if (step != best)
        wrong("the step of the window", step, best);
    if (priced_peak(s, from, from + n, found) > limit)
        wrong("the peak", priced_peak(s, from, from + n, found), limit);
    priced_take(s, from, from + n, found);
}

/* All windows around what the step waits for: never slower, never beyond the limit. */
static void check_all(struct world *w, int64_t limit)
{
    struct exact_budget budget = {.labels = 20000};
    int64_t before = w->s.step;
    uint32_t changed = exact_windows(&w->s, &w->e, limit, &budget, &w->a);

    n_steps++;
    n_changed += changed > 0;
    if (w->s.step > before || (changed > 0 && w->s.step == before))
        wrong("the step of all windows", w->s.step, before);
    if (w->s.peak > limit)
        wrong("the peak of all windows", w->s.peak, limit);
}

static void windows(struct rng *g, const struct problem *p)
{
    struct world w = {.p = p};
    uint32_t n = p->n_op, *order = calloc(n, sizeof(*order));
    int64_t launch = rng_below(g, 2) ? rng_below(g, 3000) : 0;
    jmp_buf here;

    mem_init(&w.mem, NULL);
    arena_init(&w.a, &w.mem);
    w.mem.trap = &here;
    if (setjmp(here) != 0)
        exit(2);
    for (uint32_t i = 0; i < n; i++)
        order[i] = i;
    find_needs(&w);
    priced_begin(&w.s, p, NULL, launch, &w.a);
    priced_set(&w.s, order);
    int64_t limit = rng_below(g, 2) ? w.s.peak : w.s.peak + w.s.peak / 4;
    for (uint32_t i = 0; i < 10; i++) {
        uint32_t from = rng_below(g, n), most = n - from < MOST ? n - from : MOST;
        check(&w, from, 1 + rng_below(g, most), limit);
    }
    check_all(&w, limit);
    free(w.need);
    free(w.need_at);
    free(order);
    arena_destroy(&w.a);
}

int main(void)
{
    struct rng g = {seed_of("prop_windows")};
#ifdef __SANITIZE_ADDRESS__ /* several times slower */
    size_t n = rounds(100);
#else
    size_t n = rounds(1500);
#endif

    for (size_t i = 0; i < n; i++) {
        struct random_problem how = {.n_op = 2 + rng_below(&g, 60),
                                     .coll_percent = 5 + rng_below(&g, 40),
                                     .sync_percent = rng_below(&g, 3) * 15,
                                     .n_group = 1 + rng_below(&g, 3),
                                     .fractions = rng_below(&g, 2),
                                     .several = rng_below(&g, 2)};
        struct problem *p = random_problem(&g, &how);

        windows(&g, p);
        problem_free(p);
    }
    printf("%zu windows, %zu of them got faster, %zu not decided; %zu of %zu steps got faster\n",
           n_windows, n_faster, n_open, n_changed, n_steps);
    printf("%zu passed, %zu failed\n", n_windows + n_steps - n_failed, n_failed);
    return n_failed > 0;
}
