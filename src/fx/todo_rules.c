/* Rules that are still to be written. Behind rule_*.c in the library, or the linker takes these first. */
#include "fx/rule.h"
#define X(id, ...) __attribute__((weak)) bool shape_##id(struct infer *x) { (void)x; return false; }
OP_SHAPES(X)
