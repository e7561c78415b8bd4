/* align_runtime_estimations_across_all_distributed_ranks: every rank must decide alike, so that all of them use
 * the same runtimes: per op the median of what the ranks estimate. */
#ifndef TUCK_SCHEDULE_ALIGN_H
#define TUCK_SCHEDULE_ALIGN_H

#include "schedule/schedule.h"

struct estimates {
    const double *at;
    uint32_t n;
};

/* How ranks talk to each other. */
struct schedule_transport {
    void *ctx;
    uint32_t rank, n_rank;
    /* Hands in this rank's numbers and waits for those of all, by rank; they live until the next call. NULL: it
     * failed. */
    const struct estimates *(*gather)(void *ctx, uint32_t rank, const double *mine, uint32_t n);
};

/* The lower median of all ranks for each op. Where ranks have different numbers of ops, a warning, and the
 * runtimes stay as they are. TUCK_EIO: the transport failed. */
TUCK_MUST_CHECK tuck_status schedule_align(struct schedule *s, const struct schedule_transport *t,
                                           tuck_diags *diags);

/* Ranks that are threads of one process. Made once, given to each of them; gather waits for all n_rank. */
struct local_ranks;
struct local_ranks *local_ranks_new(uint32_t n_rank,
                                    const tuck_allocator *alloc); /* NULL: no memory */
void local_ranks_free(struct local_ranks *l);
struct schedule_transport local_ranks_transport(struct local_ranks *l, uint32_t rank);

#endif
