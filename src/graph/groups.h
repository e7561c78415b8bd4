/* Process groups: which ranks a collective runs over, as far as anything says so.
 *
 * Names are per process, so their meaning has to come from somewhere: the collectives that print
 * their group's size, a script's setup_fake_process_groups, the line above a graph that says what
 * is known of it, a side-car file, the user. Later sources override earlier ones; where they
 * contradict each other there is a warning. A size that is not given stays unknown.
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

/* One more source, for g and the graphs nested in it; a name that none of them has is ignored. */
TUCK_MUST_CHECK tuck_status group_learn(tuck_graph *g, const char *name,
                                        const struct fx_group *what, tuck_diags *diags);

/* Per group of g: the size that its collectives say themselves, 0 = none. Leaves
 * through the store's guard. */
void groups_said(tuck_graph *g, int64_t *size);

/* The group of a collective: index into g->group, or -1 (none, or unknown). */
int group_of(const tuck_graph *g, uint32_t node);

/* The same for all nodes at once, by node id, in the arena. Leaves through its guard. */
const int32_t *groups_of_nodes(const tuck_graph *g, struct arena *a);

/* What is not known of the groups of `to` is as in `from`, a graph of another document perhaps. */
TUCK_MUST_CHECK tuck_status groups_inherit(const tuck_graph *from, tuck_graph *to);

#endif
