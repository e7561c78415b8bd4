/* The table of all passes. */
#ifndef TUCK_PIPELINE_TABLE_H
#define TUCK_PIPELINE_TABLE_H

#include "pass/pass.h"

extern const struct pass_table all_passes;

#endif
