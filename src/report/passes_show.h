/* Prints the pass table, as text and as JSON. */
#ifndef TUCK_REPORT_PASSES_SHOW_H
#define TUCK_REPORT_PASSES_SHOW_H

#include "pass/pass.h"

void passes_table(const struct pass_table *t, struct buf *out);
void passes_json(const struct pass_table *t, struct buf *out);
/* One pass with its options. */
void pass_table_row(const struct pass *p, struct buf *out);
/* The reasons why passes leave candidates alone: word and meaning. */
void passes_reasons(struct buf *out);

#endif
