/* DDP fusion: merges the all-reduces of gradients into a few large ones and moves waits later.
 * docs/passes.md shows what each pass does. */
#ifndef TUCK_REWRITE_DDP_DDP_PASSES_H
#define TUCK_REWRITE_DDP_DDP_PASSES_H

#include "pass/pass.h"

extern const struct pass pass_fuse_ddp_with_concat_op;
extern const struct pass pass_fuse_ddp_with_coalesced_op;
extern const struct pass pass_schedule_comm_wait;
extern const struct pass pass_fuse_ddp_communication;

#endif
