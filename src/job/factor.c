#include "job/factor.h"

#include <math.h>
#include <stdlib.h>

#include "base/vec.h"

enum { BINS = 16 };

static int bin_of(double share)
{
    int k = (int)(share * BINS);

    return k < 0 ? 0 : k < BINS ? k : BINS - 1;
}

static int by_work(const struct factor_sample *x, const struct factor_sample *y)
{
    for (int i = 0; i < 2; i++)
        if (x->what[i] != y->what[i])
            return x->what[i] < y->what[i] ? -1 : 1;
    return 0;
}

static int by_sample(const void *a, const void *b)
{
    const struct factor_sample *x = a, *y = b;
    int c = by_work(x, y), i = bin_of(x->share), j = bin_of(y->share);

    if (c == 0)
        c = i != j ? (i > j) - (i < j) : (x->time > y->time) - (x->time < y->time);
    return c;
}

/* Samples of the same work with about the same share: their median. */
struct point {
    double share, log_time, weight;
};

struct work { /* points that are the same work */
    uint32_t first, n;
};

struct fitting {
    VEC(struct point) point;
    VEC(struct work) work;
    uint32_t n;         /* samples */
    double told, total; /* time of the works that say something, and of all */
};

static int by_double(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The median. A sample weighs as much as the work, however long it took: else one kernel of a few
 * microseconds that lost its core for milliseconds would count more than all others. */
static double usual_time(const struct factor_sample *s, uint32_t n, struct arena *a)
{
    double *time = arena_array(a, double, n + 1);

    for (uint32_t i = 0; i < n; i++)
        time[i] = s[i].time;
    qsort(time, n, sizeof(*time), by_double);
    return time[n / 2];
}

/* One work says something if it ran with shares that differ. */
static void add_work(struct fitting *f, const struct factor_sample *s, uint32_t n, struct arena *a)
{
    const double APART = 0.1;
    uint32_t first = f->point.len;
    double least = 1, most = 0, usual = usual_time(s, n, a);

    f->total += usual * n;
    for (uint32_t i = 0, k; i < n; i = k) {
        double share = 0;
        for (k = i; k < n && bin_of(s[k].share) == bin_of(s[i].share); k++)
            share += s[k].share;
        share /= k - i;
        double time = (s[i + (k - i - 1) / 2].time + s[i + (k - i) / 2].time) / 2;
        vec_push_in(a, &f->point, ((struct point){share, log(time), usual * (k - i)}));
        least = share < least ? share : least;
        most = share > most ? share : most;
    }
    if (most - least < APART) {
        f->point.len = first;
        return;
    }
    vec_push_in(a, &f->work, ((struct work){first, f->point.len - first}));
    f->n += n;
    f->told += usual * n;
}

/* How far times alone of the same work are apart, if the other takes the share `lost` of the speed:
 * the weighted variance of their logarithms. */
static double spread(const struct fitting *f, double lost)
{
    double sum = 0;

    for (uint32_t w = 0; w < f->work.len; w++) {
        const struct point *p = &f->point.at[f->work.at[w].first];
        double weight = 0, mean = 0, square = 0;

        for (uint32_t i = 0; i < f->work.at[w].n; i++) {
            double v = p[i].log_time + log(1 - lost * p[i].share);
            weight += p[i].weight;
            mean += p[i].weight * v;
            square += p[i].weight * v * v;
        }
        sum += square - mean * mean / weight;
    }
    return sum;
}

double factor_fit(struct factor_sample *s, uint32_t n, struct arena *a, uint32_t *used)
{
    enum { TRIES = 500 };
    const double ENOUGH = 0.05; /* less of the time does not speak for all of it */
    struct fitting f = {.n = 0};
    double best = 0, least = INFINITY;

    qsort(s, n, sizeof(*s), by_sample);
    for (uint32_t i = 0, k; i < n; i = k) {
        for (k = i; k < n && by_work(&s[i], &s[k]) == 0;)
            k++;
        add_work(&f, &s[i], k - i, a);
    }
    *used = f.told >= ENOUGH * f.total ? f.n : 0;
    if (*used == 0)
        return 0;
    for (int i = 0; i < TRIES; i++) {
        double lost = 0.98 * i / TRIES, x = spread(&f, lost);
        if (x < least) {
            least = x;
            best = lost;
        }
    }
    return 1 / (1 - best);
}
