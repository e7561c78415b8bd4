/* Is a program right, and its plan? Counted anew from the program alone, by none of the code that
 * made it. No cmocka here: fuzz targets link this, too. */
#ifndef TUCK_TESTS_PROGRAM_CHECK_H
#define TUCK_TESTS_PROGRAM_CHECK_H

#include "lower/program.h"
#include "support/support.h"

/* The program of a graph, every symbol standing for 6; NULL: why was printed. */
struct program *lower_with_sizes(tuck_graph *g, bool fuse);

/* Each gives NULL where all is well, else what is wrong, to be freed.
 * order: NULL = as the ops are. */

/* What lower/verify.h finds, races of collectives included where they are asked for. */
char *check_ops(const struct program *p, const uint32_t *order, bool races);
/* The peak that the plan says is what adding up live buffers at every op gives. */
char *check_peak(const struct program *p, const uint32_t *order);
/* No two buffers that are live together lie over each other, and all within
 * the arena or their heap. */
char *check_plan(const struct program *p, const uint32_t *order);
/* Whatever an operand shows of another node's memory, the op works on a buffer that this
 * node's op makes or writes. */
char *check_aliases(const struct program *p, const tuck_graph *g);
/* All of the above but the last, the plan made for this order. */
char *check_program(struct program *p, const uint32_t *order);
/* The plan alone: a program that somebody wrote may race. */
char *check_program_plan(struct program *p);
/* Printed and read again it is the same. */
char *check_program_text(const struct program *p);

/* Give the graph that p was lowered from that order: it lints. */
char *check_apply(tuck_graph *g, const struct program *p, const uint32_t *order);
/* The ops of q are those of p in that order, of the same nodes. But for copies: each stands beside
 * the node that needs it, and goes where the order has made it needless. */
char *check_same_order(const struct program *p, const uint32_t *order, const struct program *q);

/* A random order that keeps every dependence, to be freed. */
uint32_t *random_order(const struct program *p, struct rng *rng);

#endif
