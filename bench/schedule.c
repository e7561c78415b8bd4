/* Schedulers: how their time grows, the time per move, and how much faster they are than PyTorch's
 * Python.
 *
 *   schedule                        exponents from 1 k to 1 M ops with our defaults, ns per move
 *                                   with PyTorch's
 *   schedule -p PASS -s SECONDS F   the pass on problem F with --compat torch, compared with
 *                                   PyTorch's SECONDS; -x N: at least N times as fast
 *
 * Times are CPU seconds of the pass alone, the best of three. The exit status is 1 if a requirement
 * is missed.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/problems.h"

static double cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct result {
    double seconds;
    uint64_t moves;
};

static struct result measure(const struct problem *p, const struct schedule_options *o,
                             const struct pass *pass, int runs)
{
    struct result best = {.seconds = INFINITY};

    for (int i = 0; i < runs; i++) {
        struct schedule s;
        uint64_t moves = 0;

        if (!schedule_begin(&s, p, o))
            exit(2);
        double start = cpu();
        if (pass->on_order(&s, o, NULL) != TUCK_OK)
            exit(2);
        double took = cpu() - start;
        for (uint32_t k = 0; k < s.report.at[0].n_stat; k++)
            moves += s.report.at[0].stat[k].moves;
        if (took < best.seconds)
            best = (struct result){took, moves};
        schedule_end(&s);
    }
    return best;
}

static const struct pass *const passes[] = {
    &pass_decide_global_ordering_of_comms,
    &pass_raise_comms,
    &pass_sink_waits,
    &pass_reorder_compute_for_overlap,
    &pass_list_overlap,
    &pass_reorder_communication_preserving_peak_memory,
    &pass_sink_waits_iterative,
    &pass_simple_overlap,
    &pass_enforce_comm_ordering_for_fsdp,
    &pass_reorder_for_peak_memory,
};
enum { N_PASSES = sizeof(passes) / sizeof(*passes), N_SIZES = 4 };

static const uint32_t sizes[N_SIZES] = {1000, 10000, 100000, 1000000};

static const char *verdict(bool fine, bool *all)
{
    *all &= fine;
    return fine ? "" : "  MISSED";
}

/* Slope of log time over log size. */
static double slope(const double *seconds, int n)
{
    double x = 0, y = 0, xx = 0, xy = 0;

    for (int i = 0; i < n; i++) {
        double u = log((double)sizes[i]), v = log(seconds[i]);
        x += u;
        y += v;
        xx += u * u;
        xy += u * v;
    }
    return (n * xy - x * y) / (n * xx - x * x);
}

static bool exponents(void)
{
    struct problem *p[N_SIZES];
    struct schedule_options o;
    bool fine = true;

    for (int i = 0; i < N_SIZES; i++)
        p[i] = layered_problem(sizes[i], false);
    schedule_defaults(&o, false);
    printf("schedulers on layered steps, our defaults, CPU seconds\n%-46s", "");
    for (int i = 0; i < N_SIZES; i++)
        printf(" %9u", p[i]->n_op);
    printf("  exponent (<= 1.2)\n");
    for (int k = 0; k < N_PASSES; k++) {
        double seconds[N_SIZES];
        printf("%-46s", passes[k]->name);
        for (int i = 0; i < N_SIZES; i++) {
            seconds[i] = measure(p[i], &o, passes[k], i < 3 ? 3 : 1).seconds;
            printf(" %9.5f", seconds[i]);
            fflush(stdout);
        }
        double e = slope(seconds, N_SIZES);
        printf("  %.2f%s\n", e, verdict(e <= 1.2, &fine));
    }
    for (int i = 0; i < N_SIZES; i++)
        problem_free(p[i]);
    return fine;
}

/* With PyTorch's options everything passes everything, and moves take most of the time: that of a
 * run that moves nothing is subtracted. */
static bool moves(void)
{
    bool fine = true;

    printf("\n--compat torch: ns a move (<= 100)\n");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < 3; i++) {
            const struct pass *pass = k ? &pass_sink_waits_iterative
                                        : &pass_reorder_communication_preserving_peak_memory;
            struct problem *p = layered_problem(sizes[i], k == 1);
            struct schedule_options o, still;

            schedule_defaults(&o, true);
            still = o;
            still.reorder_iterative_debug_limit_to_reorder = 0;
            still.sink_waits_iterative_debug_limit_to_sink = 0;
            struct result r = measure(p, &o, pass, 3);
            double rest = measure(p, &still, pass, 3).seconds;
            double ns = r.moves ? (r.seconds - rest) * 1e9 / (double)r.moves : 0;
            printf("%-46s %7u ops %11llu moves %8.4f s + %.4f s  %.1f ns%s\n", pass->name, p->n_op,
                   (unsigned long long)r.moves, r.seconds - rest, rest, ns,
                   r.moves < 10000 ? " (too few to tell)" : verdict(ns <= 100, &fine));
            fflush(stdout);
            problem_free(p);
        }
    return fine;
}

static int beside(const char *path, const char *name, double seconds, double need)
{
    struct schedule_options o;
    struct problem *p;
    bool fine = true;

    if (problem_read_file(path, NULL, NULL, &p) != TUCK_OK)
        return 2;
    schedule_defaults(&o, true);
    for (int k = 0; k < N_PASSES; k++)
        if (strcmp(passes[k]->name, name) == 0) {
            struct result r = measure(p, &o, passes[k], 3);
            printf("%-46s %6u ops  PyTorch %8.3f s, Tuck %.6f s: %.0f times (>= %.0f)%s\n", name,
                   p->n_op, seconds, r.seconds, seconds / r.seconds, need,
                   verdict(seconds / r.seconds >= need, &fine));
        }
    problem_free(p);
    return !fine;
}

int main(int argc, char **argv)
{
    const char *pass = NULL;
    double seconds = 0, need = 0;
    int c;

    while ((c = getopt(argc, argv, "p:s:x:")) != -1)
        switch (c) {
        case 'p': pass = optarg; break;
        case 's': seconds = atof(optarg); break;
        case 'x': need = atof(optarg); break;
        default: return 2;
        }
    if (pass != NULL && optind < argc)
        return beside(argv[optind], pass, seconds, need);
    bool fine = exponents();
    return !(moves() && fine);
}
