/* align_runtime_estimations_across_all_distributed_ranks: every rank must make the same decisions,
 * so all use the same runtimes: for each op the median of the ranks' estimates. */
#ifndef TUCK_SCHEDULE_ALIGN_H
#define TUCK_SCHEDULE_ALIGN_H

#include "schedule/schedule.h"

/* Uses the lower median of all ranks for each op. If ranks have different numbers of ops, adds a
 * warning and keeps the runtimes. TUCK_EIO: the transport failed. */
TUCK_MUST_CHECK tuck_status schedule_align(struct schedule *s, const tuck_transport *t,
                                           tuck_diags *diags);

/* Ranks that are threads of one process. Made once and given to each of them; gather waits for all
 * n_rank. */
struct local_ranks;
struct local_ranks *local_ranks_new(uint32_t n_rank,
                                    const tuck_allocator *alloc); /* NULL: out of memory */
void local_ranks_free(struct local_ranks *l);
tuck_transport local_ranks_transport(struct local_ranks *l, uint32_t rank);

#endif
