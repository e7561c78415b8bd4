/* Process groups: the ranks of a collective, as far as they are known.
 *
 * Names are per process, so their meaning has to come from somewhere: collectives that print their
 * group's size, a script's setup_fake_process_groups, the line above a graph with known facts, a
 * side-car file, the user. Later sources override earlier ones; contradictions get a warning. A
 * size that is not given stays unknown.
 */
#ifndef TUCK_GRAPH_GROUPS_H
#define TUCK_GRAPH_GROUPS_H

#include "graph/graph.h"

enum group_source {
    GROUP_UNKNOWN,
    GROUP_TEXT,
    GROUP_SCRIPT,
    GROUP_KNOWN, /* the line above a graph */
    GROUP_SIDECAR,
    GROUP_USER,
};

/* What the collectives of a document's graphs say, then what a script says. */
void groups_collect(tuck_doc *doc, const struct fx_group *script, uint32_t n_script,
                    tuck_diags *diags);

/* Adds one more source, for g and the graphs nested in it; names that none of them has are
 * ignored. */
TUCK_MUST_CHECK tuck_status group_learn(tuck_graph *g, const char *name,
                                        const struct fx_group *what, tuck_diags *diags);

/* By group of g: the size that its collectives give themselves, 0 if none. When memory runs out,
 * jumps to the store's guard. */
void groups_said(tuck_graph *g, int64_t *size);

/* The group of a collective: index into g->group, or -1 (none, or unknown). */
int group_of(const tuck_graph *g, uint32_t node);

/* The same for all nodes at once, by node id, in the arena. When memory runs out, jumps to its
 * guard. */
const int32_t *groups_of_nodes(const tuck_graph *g, struct arena *a);

/* Completes what is unknown about the groups of `to` from `from`, which may be a graph of another
 * document. */
TUCK_MUST_CHECK tuck_status groups_inherit(const tuck_graph *from, tuck_graph *to);

#endif
