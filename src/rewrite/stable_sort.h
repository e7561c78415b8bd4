/* PyTorch's stable sort: a node that comes too early is put behind the last operand that it lacks,
 * as soon as that one is there. Which one it waits for decides where it goes. Nodes are numbers
 * that the caller chose. */
#ifndef TUCK_REWRITE_STABLE_SORT_H
#define TUCK_REWRITE_STABLE_SORT_H

#include "base/vec.h"

struct stable_sort {
    struct arena *a;
    /* Calls stable_needs() for everything that node i comes after, in order. */
    void (*operands)(struct stable_sort *s, uint32_t i);
    void *ctx;
    VEC(uint32_t) part;              /* by node: the number of the part it is in */
    VEC(uint32_t) ready;             /* by node: the last sort that put it out */
    VEC(uint32_t) seen;              /* by node: the last look at a node's operands that met it */
    VEC(uint32_t) first, last, next; /* by node: those that wait for it */
    VEC(uint32_t) stack, out;
    uint32_t number, looks, missing;
};

/* Sorts n nodes, all below n_all; what is not among them counts as there already. The result is in
 * s->out. False if there is none: s->out then has those that come before every cycle. */
bool stable_sort(struct stable_sort *s, uint32_t n_all, const uint32_t *node, uint32_t n);

/* Each counts where it is first mentioned; the last one that is not there is waited for. */
static inline void stable_needs(struct stable_sort *s, uint32_t i)
{
    if (s->seen.at[i] == s->looks)
        return;
    s->seen.at[i] = s->looks;
    if (s->part.at[i] == s->number && s->ready.at[i] != s->number)
        s->missing = i;
}

#endif
