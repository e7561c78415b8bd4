/* The operator table for people and programs. */
#ifndef TUCK_REPORT_OPS_SHOW_H
#define TUCK_REPORT_OPS_SHOW_H

#include "base/buf.h"

/* Rows with that name or a part of it; NULL: all of them. */
uint32_t ops_matching(const char *name);
/* All about the operator with exactly that name, or else a line for each that matches. */
void ops_table(const char *name, struct buf *out);
void ops_json(const char *name, struct buf *out);

#endif
