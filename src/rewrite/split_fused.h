#ifndef TUCK_REWRITE_SPLIT_FUSED_H
#define TUCK_REWRITE_SPLIT_FUSED_H

#include "pass/pass.h"

extern const struct pass pass_split_fused_collectives;

#endif
