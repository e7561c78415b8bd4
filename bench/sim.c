/* usage: sim [PROBLEM.json [SECONDS MAKESPAN_PS BARE_SECONDS]]
 *
 * Measures S0, without a timeline, on a layered step of 5,000 ops: orders per second. PROBLEM.json:
 * writes the problem there for sim_reference.py; with the figures that it printed, prints the ratio
 * and whether both agree. A full evaluation also computes the peak memory of the order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "plan/liveness.h"
#include "sim/sim.h"
#include "support/problems.h"

enum { OPS = 5000 };

struct work {
    struct problem *p;
    struct arena arena;
    double per_order, per_evaluation;
    struct sim_result r;
    int64_t peak;
    const char *path;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void do_measure(void *arg)
{
    struct work *w = arg;
    struct sim sim;
    uint32_t *order = arena_array(&w->arena, uint32_t, w->p->n_op);
    enum { ROUNDS = 2000 };

    for (uint32_t i = 0; i < w->p->n_op; i++)
        order[i] = i;
    sim_init(&sim, w->p, NULL, &w->arena);
    w->per_order = w->per_evaluation = 1e9;
    for (int best = 0; best < 5; best++) {
        double start = now();
        for (int i = 0; i < ROUNDS; i++)
            sim_run(&sim, order, &w->r, NULL);
        double took = (now() - start) / ROUNDS;
        w->per_order = took < w->per_order ? took : w->per_order;
        start = now();
        for (int i = 0; i < ROUNDS; i++) {
            struct arena_mark mark = arena_mark(&w->arena);
            sim_run(&sim, order, &w->r, NULL);
            w->peak = live_peak(w->p, order, &w->arena);
            arena_release(&w->arena, mark);
        }
        took = (now() - start) / ROUNDS;
        w->per_evaluation = took < w->per_evaluation ? took : w->per_evaluation;
    }
    if (w->path != NULL) {
        FILE *f = fopen(w->path, "w");
        struct buf b;
        buf_init(&b, &w->p->mem);
        problem_write(w->p, NULL, &b);
        if (f == NULL || fwrite(b.at, 1, b.len, f) != b.len || fclose(f) != 0) {
            perror(w->path);
            exit(1);
        }
        buf_destroy(&b);
    }
}

int main(int argc, char **argv)
{
    struct work w = {.p = layered_problem(OPS, false), .path = argc == 2 ? argv[1] : NULL};

    arena_init(&w.arena, &w.p->mem);
    if (!mem_guard(&w.p->mem, do_measure, &w))
        return 1;
    if (argc == 2) /* for the reference to read */
        return 0;
    printf("S0 on a step of %u ops, CPU time\n", w.p->n_op);
    printf("  %-46s %12.0f orders/s, %.0f million ops/s\n", "without a timeline", 1 / w.per_order,
           (double)w.p->n_op / w.per_order / 1e6);
    printf("  %-46s %12.0f evaluations/s  need 3000%s\n", "with the peak memory",
           1 / w.per_evaluation, 1 / w.per_evaluation >= 3000 ? "" : "  MISSED");
    bool fine = 1 / w.per_evaluation >= 3000;
    if (argc > 4) { /* what the reference printed */
        double ratio = atof(argv[2]) / w.per_order;
        bool same = strtoll(argv[3], NULL, 10) == w.r.makespan;
        printf("  %-46s %12.0f times as fast  need 200%s%s\n", "beside the reference in Python",
               ratio, ratio >= 200 ? "" : "  MISSED", same ? "" : "  ANOTHER RESULT");
        printf("  %-46s %12.0f times as fast\n", "  … its bare loop, all looked up before",
               atof(argv[4]) / w.per_order);
        fine &= ratio >= 200 && same;
    }
    arena_destroy(&w.arena);
    problem_free(w.p);
    return fine ? 0 : 1;
}
