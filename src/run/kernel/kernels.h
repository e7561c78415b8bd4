/* What kernels share: their prototypes, and how they read operands. */
#ifndef TUCK_RUN_KERNEL_KERNELS_H
#define TUCK_RUN_KERNEL_KERNELS_H

#include "run/kernel/kernel.h"

#define NONE(name)
#define POINT(name)
#define PLAIN(name) bool kernel_##name(struct rt_call *c);
#define SCRATCH(name)                                                                              \
    bool kernel_##name(struct rt_call *c);                                                         \
    size_t scratch_##name(const struct rt_call *c);
#define COUNTED(name)                                                                              \
    SCRATCH(name)                                                                                  \
    int64_t count_##name(const struct rt_call *c);
#define KERNEL(name, form, meaning) form(name)
#include "op/kernels.def"
#undef KERNEL
#undef NONE
#undef PLAIN
#undef POINT
#undef SCRATCH
#undef COUNTED

/* Of the form POINT. */
bool point_run(struct rt_call *c);
size_t point_scratch(const struct rt_call *c);

/* Operand i, or RT_NONE if there are fewer. */
const struct rt_value *arg_at(const struct rt_call *c, uint32_t i);

/* The tensor that operand i is, NULL if it is none. */
const struct rt_tensor *arg_tensor(const struct rt_call *c, uint32_t i);

int64_t arg_int(const struct rt_call *c, uint32_t i, int64_t otherwise);
double arg_float(const struct rt_call *c, uint32_t i, double otherwise);
bool arg_bool(const struct rt_call *c, uint32_t i, bool otherwise);

/* Result i, NULL if the operator does not return it. */
struct rt_tensor *out_at(const struct rt_call *c, uint32_t i);

/* Writes the error and returns false. */
bool kernel_error(struct rt_call *c, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What follows says whether operands go together, else writes an error: a text may say anything.
 * A tensor t may be NULL, and is right then. */
bool kernel_apart(struct rt_call *c); /* they do not */
bool kernel_same(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *like);
bool kernel_dtype(struct rt_call *c, const struct rt_tensor *t, enum dtype d);
bool kernel_like(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *like);
/* Is it a dimension of t? Negative ones are counted from the end. */
bool kernel_dim(struct rt_call *c, const struct rt_tensor *t, int64_t dim, int *out);
/* a * b elements of so many bytes; as much as nobody has, if that is too much to count. */
size_t kernel_bytes(int64_t a, int64_t b, int64_t bytes);
/* How many elements a list of sizes stands for. */
bool kernel_product(struct rt_call *c, const struct rt_value *list, int64_t *out);
/* Does t have n elements? */
bool kernel_holds(struct rt_call *c, const struct rt_tensor *t, int64_t n);
/* Does t have the dimensions of `of`, and in each but `except` (-1: in each) at most as many
 * elements? */
bool kernel_within(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *of,
                   int except);
/* Can t be broadcast to `to`? */
bool kernel_broadcasts(struct rt_call *c, const struct rt_tensor *t, const struct rt_tensor *to);

/* A number, or a tensor of one, everywhere. */
bool fill_tensor(struct rt_call *c, const struct rt_tensor *to, const struct rt_value *v);

/* from, broadcast to the size of to, converted to its dtype. */
bool copy_tensor(struct rt_call *c, const struct rt_tensor *to, const struct rt_tensor *from);

#endif
