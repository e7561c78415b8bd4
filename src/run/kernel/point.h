/* Calls that work element by element, as steps of a loop. */
#ifndef TUCK_RUN_KERNEL_POINT_H
#define TUCK_RUN_KERNEL_POINT_H

#include "run/kernel/prog.h"

/* Where an operand comes from. */
struct source {
    bool is_value; /* a value of the loop, else memory, unless the operand is a number */
    uint16_t value;
    struct prog_mem mem;
};

/* How many operands are elements; 0 if the kernel is not of this form. */
int point_operands(enum op_kernel kernel);

/* Are its operands tensors that broadcast to the result, or numbers? Else c->error says so. */
bool point_check(struct rt_call *c);

/* Adds the call; the result has the kind of the call's result but is not rounded to its dtype.
 * PROG_NO_VALUE: there is no such function for these dtypes, and *common says for which. */
uint16_t point_emit(struct prog *p, const struct rt_call *c, const struct source *from, bool row,
                    enum dtype *common);

/* Steps of t in a space of the given sizes, innermost first, to which it broadcasts. */
void point_steps(const struct rt_tensor *t, const struct rt_tensor *like, struct prog_mem *m);

#endif
