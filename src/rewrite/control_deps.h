#ifndef TUCK_REWRITE_CONTROL_DEPS_H
#define TUCK_REWRITE_CONTROL_DEPS_H

#include "pass/pass.h"

extern const struct pass pass_insert_control_deps;

#endif
