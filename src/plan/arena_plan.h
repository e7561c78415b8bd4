/* Where each buffer lies: one arena for everything that is ours or handed over, one heap a group
 * for symmetric memory. An executor allocates exactly that.
 *
 * peak_bytes is what the order needs at least: the maximum over ops of live bytes once the op's
 * results are there, sizes as they are, comm buffers included. arena_bytes is the size of the plan,
 * 64-byte aligned, without them.
 */
#ifndef TUCK_PLAN_ARENA_PLAN_H
#define TUCK_PLAN_ARENA_PLAN_H

#include "lower/program.h"

enum { MEMORY_ALIGN = 64 };

/* A buffer is live from step `from` to step `to`, both included. */
struct memory_life {
    uint32_t from, to; /* places in the order; from > to: never */
};

/* By buffer: results from the op that makes them to the last op that touches them; freeable
 * inputs from step 0; what the caller gets, and what a collective without a wait works on, to the
 * end. Inputs that stay with the caller are live all the time, and count as resident instead.
 * order: NULL = as the ops are. */
void memory_lives(const struct program *p, const uint32_t *order, struct memory_life *life);

struct memory_peak {
    int64_t peak, resident;
    uint32_t op; /* where the peak is; PROGRAM_NONE in an empty program */
};
void memory_peak(const struct program *p, const uint32_t *order, const struct memory_life *life,
                 struct arena *scratch, struct memory_peak *out);

/* Give every buffer its place for this order; fills offset, heap, comm_digest, peak,
 * arena_bytes and resident of p. The heap of a group follows from its comm buffers and the
 * order of its collectives alone, so that it is the same on all ranks; where the digests of two
 * ranks differ, something else does. */
TUCK_MUST_CHECK tuck_status memory_plan(struct program *p, const uint32_t *order);

#endif
