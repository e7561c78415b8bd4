/* What heads and tails (sides.c) and pairs (sides_pairs.c) have in common: sets of 64 pieces, each
 * a bit, that are followed along the edges. */
#ifndef TUCK_SIM_SIDES_CORE_H
#define TUCK_SIM_SIDES_CORE_H

#include "sim/sides.h"

enum { COLUMNS = 64 };

struct piece {
    int64_t from, length;
    uint32_t item;
};

/* Bits of the pieces that are done before an item starts (0), and when it ends (1). */
typedef uint64_t pair[2];

/* The edges that lead to each item are edge[edge_at[v]] … */
static inline void gather(const uint32_t *edge_at, const uint32_t *edge, pair *bits,
                          const uint64_t *own, uint32_t v)
{
    const uint64_t *all = &bits[0][0];
    uint64_t start = 0, end = own[v];

    for (uint32_t i = edge_at[v]; i < edge_at[v + 1]; i++) {
        uint32_t e = edge[i];
        start |= all[e];
        end |= e & 1 ? 0 : all[e | 1];
    }
    bits[v][0] = start;
    bits[v][1] = start | end;
}

/* A piece is done at the end of its item. Only forward, `waits` is given: a transfer is done where
 * it is waited for, if anywhere. */
struct waits {
    const uint32_t *at, *by; /* by asynchronous item: the items that wait for it */
};

static inline void set_own(const struct sides *s, uint64_t *own, const struct waits *waits,
                           const struct piece *piece, uint32_t n, bool set)
{
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = piece[i].item;
        uint64_t bit = (uint64_t)1 << i;
        if (waits == NULL || !s->is_async[v]) {
            own[v] = set ? own[v] | bit : 0;
            continue;
        }
        for (uint32_t k = waits->at[v]; k < waits->at[v + 1]; k++)
            own[waits->by[k]] = set ? own[waits->by[k]] | bit : 0;
    }
}

static inline struct waits find_waits(const struct sides *s, struct arena *a)
{
    uint32_t *at = csr_begin(a, s->n);

    for (uint32_t i = 0; i < s->wait_at[s->n]; i++)
        csr_count(at, s->wait[i]);
    uint32_t *by = arena_array(a, uint32_t, csr_sum(at, s->n));
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t i = s->wait_at[v]; i < s->wait_at[v + 1]; i++)
            by[csr_place(at, s->wait[i])] = v;
    return (struct waits){at, by};
}

#endif
