/* The price of a change to an order: how many a second, each with its exact step and peak, and how
 * much faster that is than simulating the whole order and counting its memory. Then how fast the
 * search itself is, which counts memory only where the time is worth it.
 *
 * CPU seconds, the best of three. The exit status is 1 if a requirement is missed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "plan/liveness.h"
#include "search/priced.h"
#include "support/problems.h"

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct setup {
    const struct problem *p;
    struct mem mem;
    struct arena a;
    struct priced s;
    struct sim sim;
    uint32_t *first, *last; /* [op] positions between which it may move */
    uint32_t *window, *whole;
};

static void *zeroes(size_t n, size_t size)
{
    void *x = calloc(n, size);

    if (x == NULL)
        exit(2);
    return x;
}

static void begin(struct setup *b, const struct problem *p)
{
    uint32_t n = p->n_op;

    *b = (struct setup){.p = p};
    mem_init(&b->mem, NULL);
    arena_init(&b->a, &b->mem);
    b->first = zeroes(n, sizeof(*b->first));
    b->last = zeroes(n, sizeof(*b->last));
    b->window = zeroes(n, sizeof(*b->window));
    b->whole = zeroes(n, sizeof(*b->whole));
    for (uint32_t x = 0; x < n; x++) {
        b->whole[x] = x;
        b->last[x] = n - 1;
    }
    for (uint32_t x = 0; x < n; x++)
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            uint32_t y = problem_dep_op(p, d);
            if (y == PROBLEM_NONE)
                continue;
            b->first[x] = y + 1 > b->first[x] ? y + 1 : b->first[x];
            b->last[y] = x - 1 < b->last[y] ? x - 1 : b->last[y];
        }
    sim_init(&b->sim, p, NULL, &b->a);
    priced_begin(&b->s, p, NULL, 0, &b->a);
    priced_set(&b->s, b->whole);
}

static void end(struct setup *b)
{
    free(b->first);
    free(b->last);
    free(b->window);
    free(b->whole);
    arena_destroy(&b->a);
}

/* One op goes elsewhere, at most 256 positions away. False: it cannot move. */
static bool arrange(struct setup *b, struct rng *g, uint32_t *from, uint32_t *to)
{
    enum { FAR = 256 };
    uint32_t x = rng_below(g, b->p->n_op);
    uint32_t low = x > b->first[x] + FAR ? x - FAR : b->first[x];
    uint32_t high = b->last[x] > x + FAR ? x + FAR : b->last[x];
    uint32_t at = low + rng_below(g, high - low + 1), n = 0;

    if (at == x)
        return false;
    *from = at < x ? at : x;
    *to = (at < x ? x : at) + 1;
    if (at < x)
        b->window[n++] = x;
    for (uint32_t i = *from; i < *to; i++)
        if (i != x)
            b->window[n++] = i;
    if (at > x)
        b->window[n++] = x;
    return true;
}

/* Changes a second; all: the whole order is simulated for each. *sum says that both agree. */
static double changes(struct setup *b, uint32_t n, bool all, double *size, int64_t *sum)
{
    struct rng g = {1};
    uint32_t done = 0, from, to;
    double start = cpu(), ops = 0;

    *sum = 0;
    while (done < n) {
        if (!arrange(b, &g, &from, &to))
            continue;
        done++;
        ops += to - from;
        if (!all) {
            *sum += priced_step(&b->s, from, to, b->window) +
                    priced_peak(&b->s, from, to, b->window);
            continue;
        }
        struct sim_result r;
        memcpy(b->whole + from, b->window, (to - from) * sizeof(*b->whole));
        sim_run(&b->sim, b->whole, &r, NULL);
        *sum += r.makespan + live_peak(b->p, b->whole, &b->a);
        for (uint32_t i = from; i < to; i++)
            b->whole[i] = i;
    }
    *size = ops / n;
    return n / (cpu() - start);
}

static bool prices(const struct problem *p)
{
    enum { FEW = 2000, MANY = 500000, LEAST = 300000 };
    struct setup b;
    double size, rate = 0, whole = 0;
    int64_t few, same;

    begin(&b, p);
    for (int i = 0; i < 3; i++) {
        int64_t sum;
        whole = fmax(whole, changes(&b, FEW, true, &size, &same));
        changes(&b, FEW, false, &size, &few);
        rate = fmax(rate, changes(&b, MANY, false, &size, &sum));
    }
    end(&b);
    bool fine = rate >= LEAST && few == same;
    printf(
        "%6u ops, windows of %.0f: %.0f changes a second (>= %d), %.0f times as many as by whole "
        "simulation%s%s\n",
        p->n_op, size, rate, LEAST, rate / whole, few == same ? "" : ", WRONG",
        fine ? "" : "  MISSED");
    return fine;
}

static void search(const struct problem *p)
{
    enum { EVALUATIONS = 300000 };
    struct schedule_options o;
    struct schedule s;

    schedule_defaults(&o, false);
    o.evaluations = EVALUATIONS;
    if (!schedule_begin(&s, p, &o))
        exit(2);
    double start = cpu();
    if (pass_improve_order.on_order(&s, &o, NULL) != TUCK_OK)
        exit(2);
    double took = cpu() - start;
    printf("%6u ops, improve_order with %d changes: %.3f s, exposed %.3f -> %.3f ms\n", p->n_op,
           EVALUATIONS, took, (double)s.report.at[0].exposed_before / 1e9,
           (double)s.report.at[0].exposed_after / 1e9);
    schedule_end(&s);
}

int main(void)
{
    struct rng g = {7};
    struct problem *layered = layered_problem(5000, false);
    struct problem *random = random_problem(
        &g, &(struct random_problem){.n_op = 5000, .coll_percent = 8, .n_group = 3});

    printf("prices of changes to an order, with step and peak\n");
    bool fine = prices(layered);
    fine &= prices(random);
    search(layered);
    search(random);
    problem_free(layered);
    problem_free(random);
    return !fine;
}
