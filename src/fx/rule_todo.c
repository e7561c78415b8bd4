/* Rules that are still to be written. */
#include "fx/rule.h"
#define X(id, ...) __attribute__((weak)) bool shape_##id(struct infer *x) { (void)x; return false; }
OP_SHAPES(X)
