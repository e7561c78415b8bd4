/* Loops: calls of one region, in parts that run together. */
#include "run/kernel/loop.h"

#include <stdlib.h>

#include "run/kernel/loop_core.h"

static int by_address(const void *x, const void *y)
{
    const struct made *a = x, *b = y;

    return (a->begin > b->begin) - (a->begin < b->begin);
}

static void find_made(struct loop *l, struct arena *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n; i++)
        n += l->node[i].call.n_out;
    l->made = arena_array(a, struct made, (size_t)n + 1);
    for (uint32_t i = 0; i < l->n; i++)
        for (uint32_t k = 0; k < l->node[i].call.n_out; k++) {
            const struct rt_tensor *t = &l->node[i].call.out[k];
            int64_t span = t->dtype != DTYPE_NONE ? dtype_at(t->dtype)->bytes : 0;

            if (span == 0 || rt_numel(t) == 0)
                continue;
            for (int d = 0, bytes = (int)span; d < t->n; d++)
                span += (t->size[d] - 1) * t->stride[d] * bytes;
            l->made[l->n_made++] = (struct made){t->data, (char *)t->data + span, i, k};
        }
    qsort(l->made, l->n_made, sizeof(*l->made), by_address);
}

static size_t bytes_of(const struct rt_tensor *t)
{
    return (size_t)rt_numel(t) * dtype_at(t->dtype)->bytes;
}

/* Results inside: those that stay in registers, and those that need room. */
static void count_inside(struct loop *l, const struct part *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        const struct loop_node *x = &l->node[p->at[i]];

        for (uint32_t k = 0; k < x->call.n_out && k < 64; k++) {
            if (!(x->inside >> k & 1))
                continue;
            if (p->prog != NULL && !(l->needed[p->at[i]] >> k & 1))
                l->kept++;
            else
                l->room += (bytes_of(&x->call.out[k]) + RT_ALIGN - 1) / RT_ALIGN * RT_ALIGN;
        }
    }
}

struct loop *loop_build(struct arena *a, const struct loop_node *node, uint32_t n)
{
    struct loop *l = arena_zeroed(a, sizeof(*l));

    l->node = arena_array(a, struct loop_node, n);
    memcpy(l->node, node, n * sizeof(*node));
    l->n = n;
    find_made(l, a);
    part_all(l, a);
    for (uint32_t i = 0; i < l->n_part; i++) {
        struct part *p = &l->part[i];

        p->prog = emit_part(l, p, a);
        count_inside(l, p);
        if (p->prog != NULL && p->prog->scratch > l->scratch)
            l->scratch = p->prog->scratch;
        for (uint32_t k = 0; p->prog == NULL && k < p->n; k++) {
            size_t bytes = kernel_scratch(&l->node[p->at[k]].call);

            l->scratch = bytes > l->scratch ? bytes : l->scratch;
        }
    }
    return l;
}

size_t loop_scratch(const struct loop *l)
{
    return l->scratch;
}

static bool run_part(struct loop *l, const struct part *p, void *scratch, char *error,
                     size_t error_size, uint32_t *node)
{
    if (p->prog != NULL) {
        prog_run(p->prog, scratch);
        return true;
    }
    for (uint32_t k = 0; k < p->n; k++) {
        struct rt_call *c = &l->node[p->at[k]].call;

        c->scratch = scratch;
        c->error = error;
        c->error_size = error_size;
        *node = p->at[k];
        if (!kernel_run(c))
            return false;
    }
    return true;
}

bool loop_run(struct loop *l, void *scratch, char *error, size_t error_size, uint32_t *node)
{
    for (uint32_t i = 0; i < l->n_part; i++)
        if (!run_part(l, &l->part[i], scratch, error, error_size, node))
            return false;
    return true;
}

size_t loop_room(const struct loop *l)
{
    return l->room;
}

uint32_t loop_kept_inside(const struct loop *l)
{
    return l->kept;
}
