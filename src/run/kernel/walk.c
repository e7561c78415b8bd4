/* Walking over the elements of several tensors. */
#include "run/kernel/walk.h"

#include <string.h>

static void swap_dims(struct walk *w, int a, int b)
{
    int64_t size = w->size[a];

    w->size[a] = w->size[b];
    w->size[b] = size;
    for (int k = 0; k < w->n_ops; k++) {
        int64_t step = w->step[k][a];

        w->step[k][a] = w->step[k][b];
        w->step[k][b] = step;
    }
}

/* Should dimension a be outside of b? By the first tensor that tells them apart. */
static bool is_outer(const struct walk *w, int a, int b)
{
    for (int k = 0; k < w->n_ops; k++) {
        int64_t x = w->step[k][a], y = w->step[k][b];

        if (x != 0 && y != 0 && x != y)
            return (x < 0 ? -x : x) > (y < 0 ? -y : y);
    }
    return false;
}

static bool joins(const struct walk *w, int inner, int outer)
{
    for (int k = 0; k < w->n_ops; k++)
        if (w->step[k][outer] != w->step[k][inner] * w->size[inner])
            return false;
    return true;
}

static void coalesce(struct walk *w)
{
    int last = 0;

    for (int d = 1; d < w->n; d++) {
        if (joins(w, last, d)) {
            w->size[last] *= w->size[d];
            continue;
        }
        last++;
        w->size[last] = w->size[d];
        for (int k = 0; k < w->n_ops; k++)
            w->step[k][last] = w->step[k][d];
    }
    w->n = last + 1;
}

bool walk_begin(struct walk *w, const struct rt_tensor *const *t, int n_ops, int like)
{
    const struct rt_tensor *o = t[like];

    memset(w, 0, sizeof(*w));
    w->n_ops = n_ops;
    for (int k = 0; k < n_ops; k++)
        w->p[k] = t[k]->data;
    for (int d = o->n - 1; d >= 0; d--) {
        if (o->size[d] == 0)
            return false;
        if (o->size[d] == 1)
            continue;
        w->size[w->n] = o->size[d];
        for (int k = 0; k < n_ops; k++) {
            int at = d - o->n + t[k]->n;

            if (at >= 0 && t[k]->size[at] != 1)
                w->step[k][w->n] = t[k]->stride[at] * dtype_at(t[k]->dtype)->bytes;
        }
        w->n++;
    }
    if (w->n == 0)
        w->size[w->n++] = 1;
    for (int i = 1; i < w->n; i++) /* few dimensions, mostly in order */
        for (int j = i; j > 0 && is_outer(w, j - 1, j); j--)
            swap_dims(w, j - 1, j);
    coalesce(w);
    return true;
}

bool walk_next(struct walk *w, int dim)
{
    for (int d = dim; d < w->n; d++) {
        if (++w->at[d] < w->size[d]) {
            for (int k = 0; k < w->n_ops; k++)
                w->p[k] += w->step[k][d];
            return true;
        }
        for (int k = 0; k < w->n_ops; k++)
            w->p[k] -= w->step[k][d] * (w->size[d] - 1);
        w->at[d] = 0;
    }
    return false;
}
