/* Reductions over dimensions of a tensor. */
#ifndef TUCK_RUN_KERNEL_REDUCTION_H
#define TUCK_RUN_KERNEL_REDUCTION_H

#include "run/kernel/hot.h"
#include "run/kernel/kernels.h"

/* What is done to an element before it is reduced. */
enum reduce_map { MAP_NONE, MAP_SQUARE, MAP_ABS, MAP_NOT_ZERO, MAP_POWER, MAP_DEVIATION };

/* What is done to the result. */
enum reduce_end { END_NONE, END_ROOT, END_POWER };

struct reduction {
    enum reduce_op op;
    enum reduce_map map;
    enum reduce_end end;
    enum kind kind; /* computed in */
    double divide;  /* 0: not divided */
    double power;   /* of MAP_POWER: of absolute values; END_POWER takes its inverse */
    const struct rt_tensor *in;
    const struct rt_tensor *out;  /* the kept dimensions, with or without the reduced ones */
    const struct rt_tensor *mean; /* of MAP_DEVIATION: laid out like out */
    bool reduced[RT_DIMS];
};

void reduction_run(const struct reduction *r);

/* n elements side by side, of the kind: to the bit what reduction_run() makes of such a row. */
void reduction_row(const struct hot *hot, enum reduce_op op, enum kind kind, void *to,
                   const void *x, int64_t n);

/* The dimensions that operand i names: a number, a list, or all if it is None or empty. Returns the
 * number of elements that are reduced to one. */
int64_t reduction_dims(const struct rt_call *c, const struct rt_tensor *in, uint32_t i,
                       bool *reduced);

#endif
