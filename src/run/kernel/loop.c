/* Loops: calls of one region. */
#include "run/kernel/loop.h"

#include <string.h>

struct loop {
    struct loop_node *node;
    uint32_t n;
    size_t scratch;
};

struct loop *loop_build(struct arena *a, const struct loop_node *node, uint32_t n)
{
    struct loop *l = arena_zeroed(a, sizeof(*l));

    l->node = arena_array(a, struct loop_node, n);
    memcpy(l->node, node, n * sizeof(*node));
    l->n = n;
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = kernel_scratch(&node[i].call);

        l->scratch = bytes > l->scratch ? bytes : l->scratch;
    }
    return l;
}

size_t loop_scratch(const struct loop *l)
{
    return l->scratch;
}

bool loop_run(struct loop *l, void *scratch, char *error, size_t error_size, uint32_t *node)
{
    for (uint32_t i = 0; i < l->n; i++) {
        struct rt_call *c = &l->node[i].call;

        c->scratch = scratch;
        c->error = error;
        c->error_size = error_size;
        *node = i;
        if (!kernel_run(c))
            return false;
    }
    return true;
}

uint32_t loop_kept_inside(const struct loop *l)
{
    (void)l;
    return 0;
}
