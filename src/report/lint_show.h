/* Prints what lint found, as text and as JSON. */
#ifndef TUCK_REPORT_LINT_SHOW_H
#define TUCK_REPORT_LINT_SHOW_H

#include "base/buf.h"

/* One line with the counts. */
void lint_sum(const tuck_lint_sum *sum, struct buf *out);
void lint_json(const tuck_lint_sum *sum, const tuck_diags *found, struct buf *out);

#endif
