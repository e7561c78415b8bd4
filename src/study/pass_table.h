/* The table of all passes. */
#ifndef TUCK_STUDY_PASS_TABLE_H
#define TUCK_STUDY_PASS_TABLE_H

#include "pass/pass.h"

extern const struct pass_table all_passes;

#endif
