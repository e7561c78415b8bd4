/* Places that tensors of indices give, and adding to them. */
#ifndef TUCK_RUN_KERNEL_INDEX_PLACE_H
#define TUCK_RUN_KERNEL_INDEX_PLACE_H

#include "run/kernel/kernels.h"

/* An index into a dimension, negative ones counted from the end; -1 if it is out of range. */
int64_t index_position(int64_t i, int64_t size);
bool index_out_of_range(struct rt_call *c, int64_t i, int64_t size);

/* to += from, elements in memory. */
void index_add_element(char *to, const char *from, enum dtype d);
void index_add_run(char *to, const char *from, enum dtype d, int64_t n);

#endif
