/* Builds the schedule problem of a program. */
#ifndef TUCK_PLAN_FROM_PROGRAM_H
#define TUCK_PLAN_FROM_PROGRAM_H

#include "lower/program.h"
#include "plan/problem.h"

/* Op i of the problem is op i of the program, and buffers keep their order, too; times that were
 * not estimated are 0. */
TUCK_MUST_CHECK tuck_status problem_of_program(const struct program *p, tuck_diags *diags,
                                               struct problem **out);

#endif
