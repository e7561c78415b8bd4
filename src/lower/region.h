/* Decides which nodes are fused into one loop. */
#ifndef TUCK_LOWER_REGION_H
#define TUCK_LOWER_REGION_H

#include "lower/program.h"

/* g is ordered like some order of p's ops: marks the loops that would now be fused with a neighbor
 * they were separate from in p. Clears older marks, because p's ops already respect them. When
 * memory runs out, jumps to the store's guard. */
void region_keep_apart(tuck_graph *g, const struct program *p, struct arena *scratch);

#endif
