/* Loops: calls that were fused into one region, run without writing what only they read.
 *
 * The caller resolves every call of the region as if it were to run alone: operands and results
 * have addresses, also results that nobody outside of the region reads (`inside`), for which the
 * caller gives room. Which call reads which result follows from the addresses. loop_build() finds
 * chains that run block by block, with what is inside in registers; the rest runs call by call, in
 * the order given. So the room is needed, but mostly not touched.
 *
 * Results overlap neither operands nor each other, and no call of a region mutates an operand.
 */
#ifndef TUCK_RUN_KERNEL_LOOP_H
#define TUCK_RUN_KERNEL_LOOP_H

#include "base/arena.h"
#include "run/kernel/kernel.h"

struct loop_node {
    struct rt_call call; /* its scratch and error are set by loop_run() */
    uint64_t inside; /* bit i: result i is read by nodes of this loop only; 64 or more: not so */
};

struct loop;

/* Copies the nodes, not what they point to: values and tensors stay where they are while the loop
 * is used. */
struct loop *loop_build(struct arena *a, const struct loop_node *node, uint32_t n);

size_t loop_scratch(const struct loop *l);

/* false: error says why; *node is the number of the node that failed. */
bool loop_run(struct loop *l, void *scratch, char *error, size_t error_size, uint32_t *node);

/* Bytes of results inside that are written nevertheless: other parts of the loop read them. */
size_t loop_room(const struct loop *l);

/* How many of the nodes' results are never written, for reports and tests. */
uint32_t loop_kept_inside(const struct loop *l);

#endif
