#ifndef TUCK_REWRITE_LOOPS_H
#define TUCK_REWRITE_LOOPS_H

#include "pass/pass.h"

extern const struct pass pass_join_loops, pass_repeat_constants;

#endif
