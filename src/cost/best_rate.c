#include "cost/best_rate.h"

#include <math.h>

/* A time never decreases with the size between powers of two (torch's own decreases at these), so
 * from x to y no message costs less per byte than T(x) / y. Where that is no less than a rate
 * already found, the finer steps are skipped. */

void rate_table_begin(struct rate_table *t, const tuck_cluster *c, struct cost_shape s,
                      tuck_coll coll, const struct cost_choice *how)
{
    t->c = c;
    t->shape = s;
    t->coll = coll;
    t->how = (struct cost_choice){.model = how->model,
                                  .symmetric = how->symmetric || how->one_shot_bytes > 0,
                                  .hierarchical = how->hierarchical,
                                  .only = how->only};
    for (int i = 0; i <= RATE_FINE; i++)
        t->part[i] = exp2((double)i / RATE_FINE);
    for (int i = 0; i <= RATE_CELLS * RATE_STEP; i++)
        t->us[i] = -1;
    for (int i = 0; i < RATE_CELLS; i++)
        t->least[i] = -1;
    t->from = t->to = 0;
    t->rate = 0;
}

static double size_at(const struct rate_table *t, int i)
{
    return (double)((int64_t)1 << i / RATE_FINE) * t->part[i % RATE_FINE];
}

static double time_of(const struct rate_table *t, double bytes)
{
    return cost_collective_us(t->c, t->shape, t->coll, (int64_t)floor(bytes), &t->how);
}

static double time_at(struct rate_table *t, int i)
{
    if (t->us[i] < 0)
        t->us[i] = time_of(t, size_at(t, i));
    return t->us[i];
}

/* The least rate of a cell's messages of at most `to` bytes, by each of its sizes. */
static double least_in_cell(struct rate_table *t, int cell, double to)
{
    double least = INFINITY;

    for (int i = cell * RATE_STEP; i < (cell + 1) * RATE_STEP && size_at(t, i) <= to; i++)
        least = fmin(least, time_at(t, i) / fmin(size_at(t, i + 1), to + 1));
    return least;
}

static int cell_of(double bytes)
{
    int cell = (int)floor(log2(bytes) * RATE_COARSE);

    return cell < RATE_CELLS ? cell : RATE_CELLS - 1;
}

static double find_rate(struct rate_table *t, int64_t from, int64_t to)
{
    double most = fmin((double)to, size_at(t, (RATE_CELLS - 1) * RATE_STEP));
    double fewest = fmin((double)from, most);
    int first = cell_of(fewest), last = cell_of(most);

    if (t->shape.p <= 1 || from < 1)
        return 0;
    double found = fmin(time_of(t, fewest) / fewest, time_of(t, most) / most);
    for (int i = first + 1; i <= last; i++)
        found = fmin(found, time_at(t, i * RATE_STEP) / floor(size_at(t, i * RATE_STEP)));
    double best = found;
    for (int i = first; i <= last; i++) {
        double least = time_at(t, i * RATE_STEP) / fmin(size_at(t, (i + 1) * RATE_STEP), most + 1);
        if (least < found * 0.998 && i == last) {
            least = least_in_cell(t, i, most);
        } else if (least < found * 0.998) {
            if (t->least[i] < 0)
                t->least[i] = least_in_cell(t, i, INFINITY);
            least = t->least[i];
        }
        best = fmin(best, least);
    }
    return best;
}

/* Layers are alike: most messages are asked about again and again. */
double cost_best_rate(struct rate_table *t, int64_t from, int64_t to)
{
    if (t->to != to || t->from != from) {
        t->rate = find_rate(t, from, to);
        t->from = from;
        t->to = to;
    }
    return t->rate;
}
