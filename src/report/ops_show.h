/* Prints the operator table, as text and as JSON. */
#ifndef TUCK_REPORT_OPS_SHOW_H
#define TUCK_REPORT_OPS_SHOW_H

#include "base/buf.h"

/* Number of rows whose name is or contains this; NULL means all. */
uint32_t ops_matching(const char *name);
/* Everything about the operator with exactly that name, or else one line per match. */
void ops_table(const char *name, struct buf *out);
void ops_json(const char *name, struct buf *out);

#endif
