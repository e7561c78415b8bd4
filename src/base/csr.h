/* Lists by key in one array: row i of key k is rows[start[k] + i], and start[k + 1] is where those
 * of k end.
 *
 *   uint32_t *start = csr_begin(a, n);                    keys 0 … n - 1
 *   for each row: csr_count(start, key);
 *   T *rows = arena_array(a, T, csr_sum(start, n));
 *   for each row: rows[csr_place(start, key)] = row;      rows of a key stay in their order
 *
 * While filling, start[k + 1] is where the next row of k goes: it moves from the beginning of k's
 * rows to their end, which is where those of k + 1 begin.
 */
#ifndef TUCK_BASE_CSR_H
#define TUCK_BASE_CSR_H

#include "base/arena.h"
#include "base/check.h"

static inline uint32_t *csr_begin(struct arena *a, size_t n_key)
{
    return arena_zeroed(a, mem_times(a->mem, n_key + 2, sizeof(uint32_t)));
}

static inline void csr_count(uint32_t *start, uint32_t key)
{
    start[key + 2]++;
}

/* The number of rows. */
static inline uint32_t csr_sum(uint32_t *start, size_t n_key)
{
    for (size_t k = 2; k < n_key + 2; k++)
        start[k] += start[k - 1];
    return start[n_key + 1];
}

static inline uint32_t csr_place(uint32_t *start, uint32_t key)
{
    assert_hot(start[key + 1] < start[key + 2]); /* no more rows than were counted */
    return start[key + 1]++;
}

#endif
