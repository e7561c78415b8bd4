/* Where a collective comes from: the line of the source, and the parameter. */
#ifndef TUCK_REPORT_ORIGIN_SHOW_H
#define TUCK_REPORT_ORIGIN_SHOW_H

#include "base/json.h"
#include "lower/program.h"

/* "train.py:30 in forward" of a comment "# File: /home/me/train.py:30 in forward, code: …", into
 * `out`; "" if the comment does not say. */
const char *origin_line(const struct program *p, const struct program_op *op, char out[200]);

/* Members `source` and `parameter`, if they are known. */
void origin_json(struct json_out *j, const struct program *p, const struct program_op *op);

/* "from train.py:30 in forward: layers.1.ffn.w1" on a line of its own, if tables show that. */
void origin_say(struct buf *b, const struct program *p, const struct program_op *op);

#endif
