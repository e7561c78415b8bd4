/* The price of a change in a window: equal to a full simulation and a full count of memory of the
 * order with the change, on random changes of random problems; also after many were taken. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/liveness.h"
#include "search/priced.h"
#include "sim/sim.h"
#include "support/problems.h"

static size_t n_failed, n_priced, n_faster, n_taken;

struct world {
    const struct problem *p;
    struct rng *g;
    struct mem mem;
    struct arena a;
    struct priced s;
    struct sim sim;
    bool *done;
    uint32_t *window, *whole;
};

static void wrong(const char *what, int64_t is, int64_t should)
{
    if (n_failed++ < 10)
        printf("%s: %lld, should be %lld\n", what, (long long)is, (long long)should);
}

/* An op may come once all it needs from the window has come. */
static bool is_ready(const struct world *w, uint32_t x, uint32_t from)
{
    const struct problem *p = w->p;

    for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
        uint32_t y = problem_dep_op(p, d);
        bool fake = (p->dep_flags[d] & PROBLEM_FAKE) != 0;
        if (y != PROBLEM_NONE && !fake && w->s.pos[y] >= from && !w->done[y])
            return false;
    }
    return true;
}

/* A random valid arrangement: one op or a few come earlier, or everything is drawn. */
static void arrange(struct world *w, uint32_t from, uint32_t to)
{
    uint32_t n = to - from, out = 0, chaos = rng_below(w->g, 3);

    for (uint32_t i = from; i < to; i++)
        w->done[w->s.order[i]] = false;
    while (out < n) {
        uint32_t skip = chaos == 2 || rng_below(w->g, n) == 0 ? rng_below(w->g, n) : 0, pick = 0;
        for (uint32_t i = from; i < to; i++) {
            uint32_t x = w->s.order[i];
            if (w->done[x] || !is_ready(w, x, from))
                continue;
            pick = x;
            if (skip-- == 0)
                break;
        }
        w->done[pick] = true;
        w->window[out++] = pick;
    }
}

static void check(struct world *w, uint32_t from, uint32_t to)
{
    const struct problem *p = w->p;
    struct sim_result r;

    memcpy(w->whole, w->s.order, p->n_op * sizeof(*w->whole));
    memcpy(w->whole + from, w->window, (to - from) * sizeof(*w->whole));
    sim_run(&w->sim, w->whole, &r, NULL);
    int64_t peak = live_peak(p, w->whole, &w->a);
    int64_t step = priced_step(&w->s, from, to, w->window);
    int64_t most = priced_peak(&w->s, from, to, w->window);
    if (step != r.makespan)
        wrong("the step", step, r.makespan);
    if (most != peak)
        wrong("the peak", most, peak);
    n_priced++;
    n_faster += step < w->s.step;
    if (rng_below(w->g, 3) > 0)
        return;
    int64_t flight = priced_flight(&w->s, from, to, w->window);
    priced_take(&w->s, from, to, w->window);
    n_taken++;
    if (w->s.step != r.makespan)
        wrong("the step taken", w->s.step, r.makespan);
    if (w->s.peak != peak)
        wrong("the peak taken", w->s.peak, peak);
    if (rng_below(w->g, 20) > 0)
        return;
    priced_set(&w->s, w->whole);
    if (w->s.step != r.makespan)
        wrong("the step of the order", w->s.step, r.makespan);
    if (w->s.peak != peak)
        wrong("the peak of the order", w->s.peak, peak);
    if (w->s.flight != flight)
        wrong("what is in flight", w->s.flight, flight);
}

static void changes(struct rng *g, const struct problem *p, uint32_t n_change)
{
    struct world w = {.p = p, .g = g};
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
    w.done = calloc(n, sizeof(*w.done));
    w.window = calloc(n, sizeof(*w.window));
    w.whole = calloc(n, sizeof(*w.whole));
    sim_init(&w.sim, p, &(struct sim_options){.launch_ps = launch}, &w.a);
    priced_begin(&w.s, p, NULL, launch, &w.a);
    priced_set(&w.s, order);
    for (uint32_t i = 0; i < n_change; i++) {
        uint32_t from = rng_below(g, n), most = n - from;
        uint32_t to = from + 1 + rng_below(g, rng_below(g, 3) && most > 12 ? 12 : most);
        arrange(&w, from, to);
        check(&w, from, to);
    }
    free(w.whole);
    free(w.window);
    free(w.done);
    free(order);
    arena_destroy(&w.a);
}

int main(void)
{
    struct rng g = {seed_of("prop_priced")};
#ifdef __SANITIZE_ADDRESS__ /* several times slower */
    size_t n = rounds(500);
#else
    size_t n = rounds(2500);
#endif

    for (size_t i = 0; i < n; i++) {
        struct random_problem how = {.n_op = 1 + rng_below(&g, i % 20 == 0 ? 300 : 50),
                                     .coll_percent = 2 + rng_below(&g, 40),
                                     .sync_percent = rng_below(&g, 3) * 15,
                                     .n_group = 1 + rng_below(&g, 3),
                                     .fractions = rng_below(&g, 2),
                                     .several = rng_below(&g, 2)};
        struct problem *p = random_problem(&g, &how);

        changes(&g, p, 40);
        problem_free(p);
    }
    printf("%zu changes priced, %zu of them faster; %zu taken\n", n_priced, n_faster, n_taken);
    printf("%zu passed, %zu failed\n", n_priced - n_failed, n_failed);
    return n_failed > 0;
}
