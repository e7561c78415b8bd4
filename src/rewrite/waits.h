#ifndef TUCK_REWRITE_WAITS_H
#define TUCK_REWRITE_WAITS_H

#include "pass/pass.h"

extern const struct pass pass_deduplicate_wait_tensors;

#endif
