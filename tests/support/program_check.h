/* Checks a program and its plan from the program alone, without the code that made it. No cmocka
 * here: fuzz targets link this, too. */
#ifndef TUCK_TESTS_PROGRAM_CHECK_H
#define TUCK_TESTS_PROGRAM_CHECK_H

#include "lower/program.h"
#include "support/support.h"

/* The program of a graph, with 6 for every symbol; NULL: the reason was printed. */
struct program *lower_with_sizes(tuck_graph *g, bool fuse);

/* Each returns NULL if all is well, else what is wrong, to be freed. order: NULL means the order of
 * the ops. */

/* What lower/verify.h finds, including races of collectives if requested. */
char *check_ops(const struct program *p, const uint32_t *order, bool races);
/* Is the plan's peak the maximum of live buffers over all ops? */
char *check_peak(const struct program *p, const uint32_t *order);
/* Do buffers that are live together not overlap, and are all within the arena or their heap? */
char *check_plan(const struct program *p, const uint32_t *order);
/* If an operand shows another node's memory, does the op use a buffer that this node's op makes or
 * writes? */
char *check_aliases(const struct program *p, const tuck_graph *g);
/* All of the above except the last, with a plan made for this order. */
char *check_program(struct program *p, const uint32_t *order);
/* The same without races: a handwritten program may have some, and an unknown operator, which
 * counts as writing its operands, may come while a collective reads them. */
char *check_program_plan(struct program *p, const uint32_t *order);
/* Is it the same after printing and reading? */
char *check_program_text(const struct program *p);

/* Applies that order to the graph that p was lowered from, and lints it. */
char *check_apply(tuck_graph *g, const struct program *p, const uint32_t *order);
/* Are the ops of q those of p in that order, from the same nodes? Except for copies: each is next
 * to the node that needs it, and disappears if the order makes it unnecessary. */
char *check_same_order(const struct program *p, const uint32_t *order, const struct program *q);

/* A random order that keeps every dependence, to be freed. */
uint32_t *random_order(const struct program *p, struct rng *rng);

#endif
