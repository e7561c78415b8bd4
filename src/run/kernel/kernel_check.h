/* What is looked at before a kernel runs. */
#ifndef TUCK_RUN_KERNEL_KERNEL_CHECK_H
#define TUCK_RUN_KERNEL_KERNEL_CHECK_H

#include "run/kernel/kernel.h"

/* Has the call operands and results of the kinds that its kernel reads and writes? For what a loop
 * may run, also: do their sizes go together? Else c->error says what is wrong. */
bool kernel_check(struct rt_call *c);

/* Has it such operands? */
bool kernel_check_args(struct rt_call *c);

#endif
