/* Assigns addresses to buffers: one arena for everything that is ours or given to us, and one heap
 * per group for symmetric memory. An executor allocates exactly that.
 *
 * peak_bytes is what the order needs at least: the maximum over ops of live bytes after the op's
 * results are allocated, with exact sizes, including comm buffers. arena_bytes is the size of the
 * plan, 64-byte aligned, without comm buffers.
 */
#ifndef TUCK_PLAN_ARENA_PLAN_H
#define TUCK_PLAN_ARENA_PLAN_H

#include "lower/program.h"
#include "plan/liveness.h"

enum { MEMORY_ALIGN = 64 };

/* By buffer: results live from the op that makes them to the last op that uses them; inputs from
 * the start; returned buffers, and those used by a collective without a wait, to the end. Inputs
 * that stay with the caller count as resident, not towards the peak. order: NULL means the order of
 * the ops. */
void memory_lives(const struct program *p, const uint32_t *order, struct life *life);

struct memory_peak {
    int64_t peak, resident;
    int64_t *live; /* [op] bytes live while it runs, in the scratch arena */
};
void memory_peak(const struct program *p, const uint32_t *order, const struct life *life,
                 struct arena *scratch, struct memory_peak *out);

/* Assigns an address to every buffer for this order; fills in offset, heap, comm_digest, peak,
 * arena_bytes and resident of p. The heap of a group depends only on its comm buffers and the order
 * of its collectives, so it is the same on all ranks; if two ranks' digests differ, so do these. */
TUCK_MUST_CHECK tuck_status memory_plan(struct program *p, const uint32_t *order);

#endif
