/* Which operators depend on where a value lies in its storage.
 *
 * A result that becomes part of a larger buffer keeps its values, sizes and strides, but not its
 * position: its storage holds more than itself, and it begins somewhere inside. as_strided counts
 * from the beginning of the storage, storage_offset returns the position, and a view as a larger
 * dtype needs an aligned beginning.
 */
#ifndef TUCK_REWRITE_PLACE_H
#define TUCK_REWRITE_PLACE_H

#include "pass/pass.h"

/* By node: does anything depend on where its result lies? This looks through other names (views,
 * waits, items of lists) and into nested graphs. NULL: nothing in this graph does. O(nodes +
 * operands). */
const bool *place_watched(struct pass_run *r);

/* By node: does something computed from it depend on strides? For results whose strides a rewrite
 * changes. */
const bool *place_strides_matter(struct pass_run *r);

#endif
