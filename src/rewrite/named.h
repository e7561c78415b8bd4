/* Nodes that the options of a pass name. */
#ifndef TUCK_REWRITE_NAMED_H
#define TUCK_REWRITE_NAMED_H

#include "pass/pass.h"

/* The node of each name, by itself or by its place in the graph: "%12" has 12 others before it,
 * "%c3" is the collective with 3 others before it, which is the same one in every graph that
 * communicates alike. 0: there is none. In the arena of the pass. */
uint32_t *named_nodes(struct pass_run *r, const struct pass_texts *names);
uint32_t named_node(struct pass_run *r, const char *name);

#endif
