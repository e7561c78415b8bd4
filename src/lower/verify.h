/* Is a program right? Looked at from the program alone, by none of the
 * code that made it. Linear. */
#ifndef TUCK_LOWER_VERIFY_H
#define TUCK_LOWER_VERIFY_H

#include "lower/program.h"

/* Lists are in range; every op comes after what it depends on; a buffer is made once, before it
 * is used, by the op it names as its producer; waits end collectives that have begun. order:
 * NULL = as the ops are. NULL: all of that holds. Else what does not, in the arena. Leaves
 * through the arena's guard. */
const char *program_wrong(const struct program *p, const uint32_t *order, struct arena *a);
/* The same, and: from the start of a collective to its first wait nothing writes what it reads or
 * touches what it writes. A user's graph may do that, and lint says so. */
const char *program_races(const struct program *p, const uint32_t *order, struct arena *a);

/* Is every node of the graph linked once, and after its operands? NULL, or what
 * is wrong, in the arena. */
const char *graph_order_wrong(const tuck_graph *g, struct arena *a);

#ifdef TUCK_CHECK
/* Abort where it is wrong: for builds that check themselves. */
void program_verify(const struct program *p);
/* An order is right, and races only where the program's own does. */
void program_order_verify(const struct program *p, const uint32_t *order);
void graph_order_verify(const tuck_graph *g);
#else
#define program_verify(p) ((void)0)
#define program_order_verify(p, order) ((void)0)
#define graph_order_verify(g) ((void)0)
#endif

#endif
