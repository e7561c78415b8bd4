/* The order of Inductor's code: it moves kernels and calls after it has printed the graph. */
#ifndef TUCK_JOB_CODE_ORDER_H
#define TUCK_JOB_CODE_ORDER_H

#include "job/tie_trace.h"

/* By node name of p, its op or PROGRAM_NONE; by the index of the name. */
uint32_t *code_ops_by_node(const struct program *p, struct arena *a);

/* Is this the call of such an op, in Inductor's words? Fused kernels name collectives, too. */
bool code_calls(const char *name, enum tie_class c);
/* For the call of a collective Inductor may name the node of its wait. */
uint32_t code_called_op(const struct program *p, uint32_t op);

/* The ops of p in the order in which the code runs them, by the numbers of its kernels and calls;
 * what it does not name comes as soon as it can. False: it does not name all collectives and
 * waits, or the order is p's own. */
bool code_order(const struct program *p, const struct tie_kernel *kernel, uint32_t n_kernel,
                struct arena *a, uint32_t *order);

#endif
