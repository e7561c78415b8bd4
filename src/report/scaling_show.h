/* A scaling curve as a table and as JSON. */
#ifndef TUCK_REPORT_SCALING_SHOW_H
#define TUCK_REPORT_SCALING_SHOW_H

#include "base/buf.h"
#include "tuck_experimental.h"

void scaling_table(const tuck_scaling_point *point, size_t n, struct buf *b);
void scaling_json(const tuck_scaling_point *point, size_t n, struct buf *b);

#endif
