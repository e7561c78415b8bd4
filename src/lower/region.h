/* Which nodes become one loop. */
#ifndef TUCK_LOWER_REGION_H
#define TUCK_LOWER_REGION_H

#include "lower/program.h"

/* g has the order of some order of p's ops: mark the loops that would join a neighbour,
 * which they did not in p. Clears older marks: the ops of p were made with them. Leaves
 * through the store's guard. */
void region_keep_apart(tuck_graph *g, const struct program *p, struct arena *scratch);

#endif
