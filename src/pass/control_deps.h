#ifndef TUCK_PASS_CONTROL_DEPS_H
#define TUCK_PASS_CONTROL_DEPS_H

#include "pass/pass.h"

extern const struct pass pass_insert_control_deps;

#endif
