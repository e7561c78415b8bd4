/* The table of passes for people and programs. */
#ifndef TUCK_REPORT_PASSES_SHOW_H
#define TUCK_REPORT_PASSES_SHOW_H

#include "pass/pass.h"

void passes_table(const struct pass_table *t, struct buf *out);
void passes_json(const struct pass_table *t, struct buf *out);
/* One pass with its options. */
void pass_table_row(const struct pass *p, struct buf *out);
/* Why passes leave candidates alone: word and meaning. */
void passes_reasons(struct buf *out);

#endif
