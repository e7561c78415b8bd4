/* Walking over the elements of several tensors of one size, in the order that suits the first. */
#ifndef TUCK_RUN_KERNEL_WALK_H
#define TUCK_RUN_KERNEL_WALK_H

#include "run/kernel/kernel.h"

enum { WALK_OPS = 6 };

/* Dimension 0 is the innermost. Dimensions of size 1 are gone, and those that lie in a row in every
 * tensor are one. There is always at least one dimension. */
struct walk {
    int n, n_ops;
    int64_t size[RT_DIMS], at[RT_DIMS];
    int64_t step[WALK_OPS][RT_DIMS]; /* bytes */
    char *p[WALK_OPS];               /* where each tensor is at the current index */
};

/* The tensors broadcast to the size of the first, or of the one numbered `like`. false if there is
 * no element. */
bool walk_begin(struct walk *w, const struct rt_tensor *const *t, int n_ops, int like);

/* The next index of the dimensions from `dim` on; false after the last. */
bool walk_next(struct walk *w, int dim);

#endif
