#include "cost/cost_table.h"

#include <math.h>

enum { FIT_FROM = 65536, FIT_MIN = 4 };

double law_time(const struct cost_law *l, double bytes)
{
    return l->a + l->c * sqrt(bytes) + bytes / l->b;
}

/* ---- fitting ---- */

/* Solves the normal equations of the coefficients in `mask`. False: singular. The rest of x is
 * 0. */
static bool solve(double m[3][3], const double r[3], unsigned mask, double x[3])
{
    double a[3][4];
    int var[3], n = 0;

    for (int i = 0; i < 3; i++) {
        x[i] = 0;
        if (mask >> i & 1)
            var[n++] = i;
    }
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            a[i][j] = m[var[i]][var[j]];
        a[i][n] = r[var[i]];
    }
    for (int i = 0; i < n; i++) {
        int pivot = i;
        for (int k = i + 1; k < n; k++)
            if (fabs(a[k][i]) > fabs(a[pivot][i]))
                pivot = k;
        if (!(fabs(a[pivot][i]) > 1e-30))
            return false;
        for (int j = 0; j <= n; j++) {
            double t = a[i][j];
            a[i][j] = a[pivot][j];
            a[pivot][j] = t;
        }
        for (int k = 0; k < n; k++) {
            if (k == i)
                continue;
            double f = a[k][i] / a[i][i];
            for (int j = i; j <= n; j++)
                a[k][j] -= f * a[i][j];
        }
    }
    for (int i = 0; i < n; i++)
        x[var[i]] = a[i][n] / a[i][i];
    return true;
}

struct cost_law law_fit(const struct cost_point *at, uint32_t n)
{
    uint32_t from = 0;
    double scale, m[3][3] = {{0}}, r[3] = {0}, best = INFINITY;
    struct cost_law law = {0, 0, INFINITY};

    while (from < n && at[from].bytes < FIT_FROM)
        from++;
    if (n - from < FIT_MIN)
        from = 0;
    scale =
        at[n - 1].bytes; /* sizes relative to the largest, to keep the equations well conditioned */
    for (uint32_t i = from; i < n; i++) {
        double s = at[i].bytes / scale, w = 1 / at[i].us;
        double f[3] = {w, w * sqrt(s), w * s};
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 3; k++)
                m[j][k] += f[j] * f[k];
            r[j] += f[j];
        }
    }
    /* Three coefficients: the best of all feasible subsets is the constrained optimum. If several
     * fit equally well (two points), the most plausible one for a link comes first. */
    static const unsigned subset[] = {5, 7, 4, 6, 3, 1, 2};
    for (size_t k = 0; k < sizeof(subset) / sizeof(*subset); k++) {
        double x[3], error = 0;
        if (!solve(m, r, subset[k], x) || x[0] < 0 || x[1] < 0 || x[2] < 0)
            continue;
        for (uint32_t i = from; i < n; i++) {
            double s = at[i].bytes / scale;
            double e = (x[0] + x[1] * sqrt(s) + x[2] * s) / at[i].us - 1;
            error += e * e;
        }
        if (error < best - 1e-12 * n) {
            best = error;
            law = (struct cost_law){x[0], x[1] / sqrt(scale), x[2] > 0 ? scale / x[2] : INFINITY};
        }
    }
    return law;
}

struct cost_law law_between(const struct cost_law *l1, int64_t p1, const struct cost_law *l2,
                            int64_t p2, int64_t p)
{
    /* Latency grows with the number of steps, p - 1; the bytes that a rank moves grow with (p -
     * 1)/p. */
    double t = (double)(p - p1) / (double)(p2 - p1);
    double u = (1.0 / (double)p1 - 1.0 / (double)p) / (1.0 / (double)p1 - 1.0 / (double)p2);

    return (struct cost_law){l1->a + t * (l2->a - l1->a), l1->c + t * (l2->c - l1->c),
                             1 / (1 / l1->b + u * (1 / l2->b - 1 / l1->b))};
}

/* ---- tables ---- */

/* Pool adjacent violators, on logarithms: a pool has the geometric mean of its points. Pool k is
 * kept in out[k] and count[k] while points are added; there are never more pools than points. */
static void isotonic(struct cost_table *t, uint32_t *count)
{
    double *out = t->smooth;
    uint32_t pools = 0;

    for (uint32_t i = 0; i < t->n; i++) {
        double value = log(t->raw[i].us);
        uint32_t n = 1;
        for (; pools > 0 && out[pools - 1] > value; pools--) {
            uint32_t k = count[pools - 1];
            value = (value * n + out[pools - 1] * k) / (n + k);
            n += k;
        }
        out[pools] = value;
        count[pools++] = n;
    }
    /* Expands from the back: a pool is stored at or before its first point. */
    for (uint32_t end = t->n; pools > 0; pools--) {
        double value = exp(out[pools - 1]);
        for (uint32_t k = count[pools - 1]; k > 0; k--)
            out[--end] = value;
    }
}

void table_prepare(struct cost_table *t, uint32_t *scratch)
{
    isotonic(t, scratch);
    t->n_changed = 0;
    t->largest_change = 0;
    for (uint32_t i = 0; i < t->n; i++) {
        double change = fabs(t->smooth[i] / t->raw[i].us - 1);
        if (change < 1e-9) {
            t->smooth[i] = t->raw[i].us; /* exact, without going through a logarithm */
            continue;
        }
        t->n_changed++;
        if (change > t->largest_change)
            t->largest_change = change;
    }
    t->law = law_fit(t->raw, t->n);
}

double table_time(const struct cost_table *t, double bytes)
{
    uint32_t low = 0, high = t->n - 1;

    if (bytes <= t->raw[0].bytes)
        return t->smooth[0] * law_time(&t->law, bytes) / law_time(&t->law, t->raw[0].bytes);
    if (bytes >= t->raw[high].bytes)
        return t->smooth[high] * law_time(&t->law, bytes) / law_time(&t->law, t->raw[high].bytes);
    while (high - low > 1) {
        uint32_t mid = low + (high - low) / 2;
        if (t->raw[mid].bytes <= bytes)
            low = mid;
        else
            high = mid;
    }
    double x = log(bytes / t->raw[low].bytes) / log(t->raw[high].bytes / t->raw[low].bytes);
    return t->smooth[low] * pow(t->smooth[high] / t->smooth[low], x);
}
