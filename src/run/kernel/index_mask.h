/* Masks: where elements are not 0. */
#ifndef TUCK_RUN_KERNEL_INDEX_MASK_H
#define TUCK_RUN_KERNEL_INDEX_MASK_H

#include "run/kernel/plain.h"

/* How many elements are not 0, and the index of each in each dimension: those in dimension d begin
 * at to[d * room]. to may be NULL. */
int64_t mask_places(const struct rt_tensor *t, int64_t *to, int64_t room);

/* A list of indices without masks. */
struct unmasked {
    struct rt_value list, item[RT_DIMS];
    struct rt_tensor index[RT_DIMS];
};

/* Each mask in the list replaced by the places where it is true, a tensor for each of its
 * dimensions. s: where to put them; NULL: only sizes are wanted, the largest there can be. */
bool mask_expand(struct rt_call *c, struct plain *s, const struct rt_tensor *self,
                 const struct rt_value *list, struct unmasked *u);

/* Bytes that it puts there. */
size_t mask_bytes(const struct rt_value *list);

/* How many places the first mask of a list has; -1 if there is no mask. */
int64_t mask_count(const struct rt_value *list);

#endif
