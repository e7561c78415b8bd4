/* align_runtime_estimations_across_all_distributed_ranks: every rank must decide in the same way,
 * so all use the same runtimes: per op the median of what the ranks estimate. */
#ifndef TUCK_SCHEDULE_ALIGN_H
#define TUCK_SCHEDULE_ALIGN_H

#include "schedule/schedule.h"

/* The lower median of all ranks for each op. Where ranks have different numbers of ops, a warning,
 * and the runtimes stay as they are. TUCK_EIO: the transport failed. */
TUCK_MUST_CHECK tuck_status schedule_align(struct schedule *s, const tuck_transport *t,
                                           tuck_diags *diags);

/* Ranks that are threads of one process. Made once, given to each of them;
 * gather waits for all n_rank. */
struct local_ranks;
struct local_ranks *local_ranks_new(uint32_t n_rank,
                                    const tuck_allocator *alloc); /* NULL: no memory */
void local_ranks_free(struct local_ranks *l);
tuck_transport local_ranks_transport(struct local_ranks *l, uint32_t rank);

#endif
