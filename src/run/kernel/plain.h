/* Operands and results as plain arrays: contiguous, of one kind. A tensor that is one already is
 * used in place; another one is copied into the scratch, or from there. */
#ifndef TUCK_RUN_KERNEL_PLAIN_H
#define TUCK_RUN_KERNEL_PLAIN_H

#include "run/kernel/elem.h"
#include "run/kernel/kernels.h"

struct plain {
    struct rt_call *c;
    char *at; /* what is left of the scratch */
};

/* Scratch for copies of all tensors of the call, of any kind, and `more` bytes. */
size_t plain_scratch(const struct rt_call *c, size_t more);

struct plain plain_begin(struct rt_call *c);

void *plain_room(struct plain *s, size_t bytes);

/* NULL if t is. */
const void *plain_in(struct plain *s, const struct rt_tensor *t, enum kind k);
void *plain_out(struct plain *s, const struct rt_tensor *t, enum kind k);
void plain_done(struct plain *s, const struct rt_tensor *t, const void *data, enum kind k);

/* t as doubles, broadcast to the sizes of the first result; NULL if that cannot be. Room in the
 * scratch: 8 bytes for each element of the result, and RT_ALIGN. */
const double *plain_spread(struct plain *s, const struct rt_tensor *t);

/* The same without conversion: elements of the tensor's own dtype. */
const void *plain_raw_in(struct plain *s, const struct rt_tensor *t);
void *plain_raw_out(struct plain *s, const struct rt_tensor *t);
void plain_raw_done(struct plain *s, const struct rt_tensor *t, const void *data);

/* float and half are computed as float, double as double. */
enum kind plain_float(const struct rt_tensor *t);

/* The product of the sizes of dimensions from begin up to end. */
int64_t plain_count(const struct rt_tensor *t, int begin, int end);

/* A dimension that may be counted from the end. */
int plain_dim(const struct rt_tensor *t, int64_t dim);

/* scratch_NAME() of a kernel that needs copies of its operands and no more. */
#define PLAIN_SCRATCH(name)                                                                        \
    size_t scratch_##name(const struct rt_call *c)                                                 \
    {                                                                                              \
        return plain_scratch(c, 0);                                                                \
    }

#endif
