/* What a builder collects, and the arrays that it becomes. */
#ifndef TUCK_PLAN_PROBLEM_ROWS_H
#define TUCK_PLAN_PROBLEM_ROWS_H

#include "plan/problem.h"

struct problem_op_row {
    str_id name, coll, kernel;
    double runtime;
    int64_t bytes;
    uint32_t group;
    uint32_t dep, member, out; /* where its lists begin; `out` counts outputs, not inputs */
    uint8_t kind;
    bool is_async;
};

struct problem_buf_row {
    str_id name;
    int64_t size_alloc, size_free;
    uint32_t producer;
    uint8_t flags;
};

/* The arrays of b->p, in problem_fill.c. When memory runs out, jumps to its guard. */
void problem_fill(struct problem_builder *b);

#endif
