/* Loops: tensors in the space of a part. */
#include "run/kernel/loop_core.h"
#include "run/kernel/point.h"

bool map_tensor(const struct rt_tensor *t, const int64_t *size, int n, int64_t *step)
{
    int64_t bytes = dtype_at(t->dtype)->bytes, count = 1, stride = 0;
    int d = 0; /* of the space, from the innermost on */

    for (int i = t->n - 1; i >= 0; i--) {
        if (t->size[i] == 1)
            continue;
        if (count != 1) { /* some of a dimension of the space is not covered yet */
            if (t->stride[i] * bytes != stride * count)
                return false;
            count *= t->size[i];
        } else {
            count = t->size[i];
            stride = t->stride[i] * bytes;
        }
        while (d < n && count >= size[d] && count % size[d] == 0) {
            step[d] = stride;
            stride *= size[d];
            count /= size[d++];
            if (count == 1)
                break;
        }
        if (count != 1 && (d == n || size[d] % count != 0))
            return false;
    }
    return d == n && count == 1;
}

struct rt_tensor map_broadcast(const struct rt_tensor *t, const struct rt_tensor *like)
{
    struct rt_tensor b = *like;

    b.data = t->data;
    b.dtype = t->dtype;
    for (int d = 0; d < like->n; d++) {
        int at = t->n - like->n + d;

        b.stride[d] = at >= 0 && t->size[at] != 1 ? t->stride[at] : 0;
    }
    return b;
}

static bool map_level(const struct part *p, enum level level, const struct rt_tensor *t,
                      struct prog_mem *m)
{
    int outer = p->dims - p->inner;

    *m = (struct prog_mem){.base = t->data, .dtype = t->dtype};
    switch (level) {
    case LEVEL_FULL: return map_tensor(t, p->size, p->dims, m->step);
    case LEVEL_ROW:
        m->row = true;
        return map_tensor(t, p->size + p->inner, outer, m->step + p->inner);
    case LEVEL_COLUMN: m->column = true; return map_tensor(t, p->size, p->inner, m->step);
    }
    return false;
}

bool map_result(const struct loop *l, const struct part *p, uint32_t node, uint32_t out,
                struct prog_mem *m)
{
    return map_level(p, l->level[node], &l->node[node].call.out[out], m);
}

/* Elements that are the same for all inner dimensions are loaded once a row. */
static bool is_row(const struct part *p, const struct prog_mem *m)
{
    for (int d = 0; d < p->inner; d++)
        if (m->step[d] != 0)
            return false;
    return p->inner > 0;
}

bool map_operand(const struct loop *l, const struct part *p, uint32_t node, uint32_t i,
                 struct prog_mem *m)
{
    const struct rt_call *c = &l->node[node].call;
    const struct rt_tensor *t = c->arg[i].tensor;
    bool point = point_operands(c->kernel->id) > 0;
    struct rt_tensor b = point ? map_broadcast(t, c->out) : *t;

    if (!map_level(p, point ? l->level[node] : LEVEL_FULL, &b, m))
        return false;
    m->row = is_row(p, m);
    return true;
}

bool map_same(const struct part *p, const struct prog_mem *a, const struct prog_mem *b)
{
    return a->base == b->base && a->dtype == b->dtype &&
           memcmp(a->step, b->step, (size_t)p->dims * sizeof(*a->step)) == 0;
}

const struct made *map_made(const struct loop *l, const struct rt_tensor *t)
{
    const char *at = t->data;
    uint32_t low = 0, high = l->n_made;

    while (low < high) { /* the first that ends after it */
        uint32_t middle = low + (high - low) / 2;

        if (l->made[middle].end <= at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < l->n_made && l->made[low].begin <= at ? &l->made[low] : NULL;
}
