/* PyTorch's stable sort: a node that comes too early is put behind the last operand that it lacks,
 * as soon as that one is there. Which one it waits for decides where it goes. */
#ifndef TUCK_OVERLAP_STABLE_SORT_H
#define TUCK_OVERLAP_STABLE_SORT_H

#include "overlap/extra_edges.h"

struct stable_sort {
    struct facts *f;
    const struct extra_edges *extra; /* NULL: uses alone */
    VEC(uint32_t) part;              /* by place: the number of the part it is in */
    VEC(uint32_t) ready;             /* by place: the last sort that put it out */
    VEC(uint32_t) seen;              /* by place: the last look at a node's operands that met it */
    VEC(uint32_t) first, last, next; /* by place: those that wait for it */
    VEC(uint32_t) stack, out;
    uint32_t number, looks;
};

/* Sorts n nodes, given by place; what is not among them counts as there already. The result is in
 * s->out. False if there is none: s->out then has those that come before every cycle. */
bool stable_sort(struct stable_sort *s, const uint32_t *node, uint32_t n);

#endif
