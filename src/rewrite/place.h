/* What depends on where a value lies in its storage.
 *
 * A result that is cut out of a larger buffer has the values, sizes and strides it had alone, but
 * another place: its storage holds more than itself, and it begins somewhere inside. as_strided
 * counts from the beginning of the storage, storage_offset asks for it, and a view as a larger
 * dtype needs a beginning that such elements allow.
 */
#ifndef TUCK_REWRITE_PLACE_H
#define TUCK_REWRITE_PLACE_H

#include "pass/pass.h"

/* By node: does anything depend on where its result lies, under whatever name (views, waits,
 * items of lists), also inside of a nested graph that it is handed to? NULL: nothing does in this
 * graph. O(nodes + operands). */
const bool *place_watched(struct pass_run *r);

/* By node: does something that is computed from it depend on strides? Of those that lie
 * otherwise after a rewrite. */
const bool *place_strides_matter(struct pass_run *r);

#endif
