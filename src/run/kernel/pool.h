/* What kernels of pooling share. */
#ifndef TUCK_RUN_KERNEL_POOL_H
#define TUCK_RUN_KERNEL_POOL_H

#include "run/kernel/plain.h"

/* The result, an image over the last two dimensions: each element of grad added at its place in
 * its plane, of which grad has as many as the result. */
bool pool_give_back(struct rt_call *c, const struct rt_tensor *grad,
                    const struct rt_tensor *places);

/* max_pool_offsets and pool_indices in three dimensions. */
bool pool3_max_offsets(struct rt_call *c);
bool pool3_indices(struct rt_call *c);

#endif
