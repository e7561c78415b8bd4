/* Bags of rows of a table: their sum, their mean, or the largest of each column. */
#include <math.h>

#include "run/kernel/index_place.h"
#include "run/kernel/plain.h"

enum mode { SUM, MEAN, MOST };

struct bags {
    enum mode mode;
    int64_t n_index, n_bag, n_off, rows, width, padding;
    const int64_t *index, *off;
};

/* The indices of bag b; false if the offsets are no offsets. */
static bool bag_at(struct rt_call *c, const struct bags *g, int64_t b, int64_t *begin, int64_t *end)
{
    *begin = g->off[b];
    *end = b + 1 < g->n_off ? g->off[b + 1] : g->n_index;
    return (*begin >= 0 && *begin <= *end && *end <= g->n_index) ||
           kernel_error(c, "bag %lld goes from %lld to %lld of %lld indices", (long long)b,
                        (long long)*begin, (long long)*end, (long long)g->n_index);
}

/* How many rows of the bag count: padding does not. */
static int64_t counted(const struct bags *g, int64_t begin, int64_t end)
{
    int64_t n = 0;

    for (int64_t i = begin; i < end; i++)
        n += g->index[i] != g->padding;
    return n;
}

static bool in_range(struct rt_call *c, const struct bags *g)
{
    for (int64_t i = 0; i < g->n_index; i++)
        if (g->index[i] < 0 || g->index[i] >= g->rows)
            return index_out_of_range(c, g->index[i], g->rows);
    return true;
}

/* at: where the mode is among the operands; small: a row for each bag. */
static bool describe(struct rt_call *c, struct plain *s, struct bags *g, uint32_t at,
                     const struct rt_tensor *table, const struct rt_tensor *small, uint32_t padding)
{
    const struct rt_tensor *index = arg_tensor(c, 1), *off = arg_tensor(c, 2);
    int64_t mode = arg_int(c, at, 0);

    if (table->n != 2 || small->n != 2 || index->n != 1 || off->n != 1 ||
        small->size[1] != table->size[1] || small->size[0] > off->size[0])
        return kernel_apart(c);
    if (mode < 0 || mode > 2)
        return kernel_error(c, "no kernel has bags of mode %lld", (long long)mode);
    *g = (struct bags){.mode = (enum mode)mode,
                       .n_index = index->size[0],
                       .n_bag = small->size[0],
                       .n_off = off->size[0],
                       .rows = table->size[0],
                       .width = table->size[1],
                       .padding = arg_int(c, padding, -1)};
    g->padding = g->padding < 0 && g->padding != -1 ? g->padding + g->rows : g->padding;
    g->index = plain_in(s, index, K_I64);
    g->off = plain_in(s, off, K_I64);
    return in_range(c, g);
}

/* One bag into y; largest: where the largest elements come from, or NULL. */
static void sum_bag(const struct bags *g, const double *table, const double *weight, int64_t begin,
                    int64_t end, double *y, int64_t *largest)
{
    int64_t n = counted(g, begin, end);
    bool first = true;

    memset(y, 0, (size_t)g->width * sizeof(*y));
    for (int64_t d = 0; largest != NULL && d < g->width; d++)
        largest[d] = 0;
    for (int64_t i = begin; i < end; i++) {
        const double *row = table + g->index[i] * g->width;

        if (g->index[i] == g->padding)
            continue;
        for (int64_t d = 0; d < g->width; d++) {
            if (g->mode != MOST) {
                y[d] += row[d] * (weight != NULL ? weight[i] : 1);
            } else if (first || row[d] > y[d]) {
                y[d] = row[d];
                if (largest != NULL)
                    largest[d] = g->index[i];
            }
        }
        first = false;
    }
    for (int64_t d = 0; g->mode == MEAN && n > 0 && d < g->width; d++)
        y[d] /= (double)n;
}

/* What the way back needs: the bag of each index; the size of each bag, unless they are sums. */
static bool describe_bags(struct rt_call *c, struct plain *s, const struct bags *g)
{
    const struct rt_tensor *of = out_at(c, 1), *size = out_at(c, 2);
    int64_t begin, end;

    if (of != NULL && rt_numel(of) > 0) {
        int64_t *bag = plain_out(s, of, K_I64);

        if (!kernel_holds(c, of, g->n_index))
            return false;
        memset(bag, 0, (size_t)g->n_index * sizeof(*bag));
        for (int64_t b = 0; b < g->n_bag; b++) {
            if (!bag_at(c, g, b, &begin, &end))
                return false;
            for (int64_t i = begin; i < end; i++)
                bag[i] = b;
        }
        plain_done(s, of, bag, K_I64);
    }
    if (size == NULL || rt_numel(size) == 0)
        return true;
    int64_t *n = plain_out(s, size, K_I64);
    memset(n, 0, (size_t)rt_numel(size) * sizeof(*n));
    for (int64_t b = 0; g->mode != SUM && b < g->n_bag && b < rt_numel(size); b++) {
        if (!bag_at(c, g, b, &begin, &end))
            return false;
        n[b] = counted(g, begin, end);
    }
    plain_done(s, size, n, K_I64);
    return true;
}

/* (weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights,
 * include_last_offset, padding_idx): the bags, the bag of each index, sizes, largest rows */
bool kernel_embedding_bag(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *weights = arg_tensor(c, 6), *most = out_at(c, 3);
    struct bags g;

    if (!describe(c, &s, &g, 4, arg_tensor(c, 0), c->out, 8) ||
        !kernel_holds(c, weights, g.n_index))
        return false;
    bool keeps = g.mode == MOST && most != NULL && rt_numel(most) == g.n_bag * g.width;
    const double *table = plain_in(&s, arg_tensor(c, 0), K_F64),
                 *weight = plain_in(&s, weights, K_F64);
    double *y = plain_out(&s, c->out, K_F64);
    int64_t *largest = keeps ? plain_out(&s, most, K_I64) : NULL, begin, end;

    for (int64_t b = 0; b < g.n_bag; b++) {
        if (!bag_at(c, &g, b, &begin, &end))
            return false;
        sum_bag(&g, table, weight, begin, end, y + b * g.width,
                keeps ? largest + b * g.width : NULL);
    }
    plain_done(&s, c->out, y, K_F64);
    if (keeps)
        plain_done(&s, most, largest, K_I64);
    struct rt_value zero = {.kind = RT_INT};
    if (!keeps && most != NULL && !fill_tensor(c, most, &zero))
        return false;
    return describe_bags(c, &s, &g);
}

/* (grad, indices, offsets, offset2bag, bag_size, maximum_indices, num_weights,
 * scale_grad_by_freq, mode, sparse, per_sample_weights, padding_idx) */
bool kernel_embedding_bag_backward(struct rt_call *c)
{
    struct plain s = plain_begin(c);
    const struct rt_tensor *grad = arg_tensor(c, 0), *most = arg_tensor(c, 5),
                           *weights = arg_tensor(c, 10);
    struct bags g;

    if (arg_bool(c, 7, false) || arg_bool(c, 9, false))
        return kernel_error(c, "no kernel scales gradients by how often rows occur");
    if (!describe(c, &s, &g, 8, c->out, grad, 11) || !kernel_holds(c, weights, g.n_index) ||
        (g.mode == MOST && !kernel_same(c, most, grad)))
        return false;
    const double *dy = plain_in(&s, grad, K_F64), *weight = plain_in(&s, weights, K_F64);
    const int64_t *largest = g.mode == MOST ? plain_in(&s, most, K_I64) : NULL;
    double *dw = plain_out(&s, c->out, K_F64);

    memset(dw, 0, (size_t)rt_numel(c->out) * sizeof(*dw));
    for (int64_t b = 0; b < g.n_bag; b++) {
        int64_t begin, end;

        if (!bag_at(c, &g, b, &begin, &end))
            return false;
        int64_t n = counted(&g, begin, end);
        for (int64_t d = 0; g.mode == MOST && d < g.width && n > 0; d++) {
            int64_t row = largest[b * g.width + d];

            if (row < 0 || row >= g.rows)
                return index_out_of_range(c, row, g.rows);
            dw[row * g.width + d] += dy[b * g.width + d];
        }
        for (int64_t i = begin; g.mode != MOST && i < end; i++)
            for (int64_t d = 0; d < g.width && g.index[i] != g.padding; d++)
                dw[g.index[i] * g.width + d] += dy[b * g.width + d] *
                                                (weight != NULL ? weight[i] : 1) /
                                                (g.mode == MEAN ? (double)n : 1);
    }
    plain_done(&s, c->out, dw, K_F64);
    return true;
}

size_t scratch_embedding_bag(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}

size_t scratch_embedding_bag_backward(const struct rt_call *c)
{
    return plain_scratch(c, 0);
}
