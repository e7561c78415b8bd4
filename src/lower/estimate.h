/* Estimates the times of a program's ops. */
#ifndef TUCK_LOWER_ESTIMATE_H
#define TUCK_LOWER_ESTIMATE_H

#include "cost/machine.h"
#include "lower/program.h"

/* Fills in ps, flops and bytes of every op, and the algorithm of collectives. A loop costs what it
 * reads from outside and writes for others, a copy what it moves, a collective what the model gives
 * for its message on its group. The graph must be the one the program was lowered from. */
TUCK_MUST_CHECK tuck_status lower_estimate(struct program *p, const tuck_graph *g,
                                           const struct machine *m);

#endif
