/* Checks a program on its own, without using the code that made it. Linear. */
#ifndef TUCK_LOWER_VERIFY_H
#define TUCK_LOWER_VERIFY_H

#include "lower/program.h"

/* Checks that lists are in range; that every op comes after what it depends on; that a buffer is
 * made once, before it is used, by its producer; and that waits end collectives that have begun.
 * order: NULL means the order of the ops. Returns NULL if all holds, else what does not, in the
 * arena. When memory runs out, jumps to the arena's guard. */
const char *program_wrong(const struct program *p, const uint32_t *order, struct arena *a);
/* The same, and: between the start of a collective and its first wait, nothing writes what it reads
 * or uses what it writes. A user's graph may do that; lint reports it. */
const char *program_races(const struct program *p, const uint32_t *order, struct arena *a);

/* Is every node of the graph linked once, and after its operands? Returns NULL, or what is wrong,
 * in the arena. */
const char *graph_order_wrong(const tuck_graph *g, struct arena *a);

#ifdef TUCK_CHECK
/* Aborts if it is wrong: for builds that check themselves. */
void program_verify(const struct program *p);
/* Aborts unless the order is valid and has no races that the program's own order does not have. */
void program_order_verify(const struct program *p, const uint32_t *order);
void graph_order_verify(const tuck_graph *g);
#else
#define program_verify(p) ((void)0)
#define program_order_verify(p, order) ((void)0)
#define graph_order_verify(g) ((void)0)
#endif

#endif
