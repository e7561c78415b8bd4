/* Edges that are no uses: what a node has to come after besides its operands. Two tables, for both
 * directions, each with an ordered set for a node. They are kept apart, because PyTorch's are, and
 * come to differ when nodes are merged. */
#ifndef TUCK_OVERLAP_EXTRA_EDGES_H
#define TUCK_OVERLAP_EXTRA_EDGES_H

#include "overlap/overlap.h"

struct edge_set_item {
    uint32_t to, prev, next; /* items; 0: none */
};

struct edge_sets {
    struct arena *a;
    VEC(struct edge_set_item) item; /* [0] unused */
    VEC(uint32_t) first, last;      /* by place */
    uint64_t *key;                  /* open addressing: place and to, and 1 */
    uint32_t *value;                /* the item; 0: removed */
    uint32_t n_slot, n_key;
};

struct extra_edges {
    struct edge_sets deps, uses; /* deps: what a node comes after */
    VEC(uint32_t) keys;          /* nodes that ever had deps, in that order */
    VEC(bool) known;             /* by place: it is among them */
};

void edges_begin(struct extra_edges *e, struct arena *a, uint32_t n);
bool edge_has(const struct edge_sets *s, uint32_t from, uint32_t to);
void edge_put(struct edge_sets *s, uint32_t from, uint32_t to);
void edge_drop(struct edge_sets *s, uint32_t from, uint32_t to);
void edge_clear(struct edge_sets *s, uint32_t from);

/* n comes after dep. */
void extra_add(struct extra_edges *e, uint32_t n, uint32_t dep);
void extra_remove(struct extra_edges *e, uint32_t n, uint32_t dep);
void extra_touch(struct extra_edges *e, uint32_t n); /* it may get deps: remember when */

static inline uint32_t edge_first(const struct edge_sets *s, uint32_t i)
{
    return i < s->first.len ? s->first.at[i] : 0;
}

#define for_edges(s, i, k) for (uint32_t k = edge_first((s), (i)); k != 0; k = (s)->item.at[k].next)

#endif
