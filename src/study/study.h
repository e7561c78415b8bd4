/* What one command works out about its graphs on its machine.
 *
 * A graph is lowered, estimated, turned into a schedule problem and simulated once:
 * judging it and scheduling it next use the same evaluation, for as long as the graph has
 * the same revision (graph/graph.h).
 */
#ifndef TUCK_STUDY_STUDY_H
#define TUCK_STUDY_STUDY_H

#include "study/evaluate.h"

enum { STUDY_KEEPS = 3 }; /* the original graph, the best so far, the current one */

struct study_counts {
    uint32_t graphs; /* lowered, made a problem, simulated: one of each for a graph that is new */
    uint32_t reused; /* asked for again */
    uint32_t orders; /* simulated inside passes on orders */
};

struct study {
    const struct evaluate_options *o;
    tuck_allocator alloc;
    struct evaluation *kept[STUDY_KEEPS]; /* the one asked for last comes first; NULL: none */
    struct study_counts counts;
};

void study_begin(struct study *s, const struct evaluate_options *o, const tuck_allocator *alloc);
void study_end(struct study *s);

/* The evaluation of g as it is now, without bounds. Types are inferred. To be given back. */
TUCK_MUST_CHECK tuck_status study_get(struct study *s, tuck_graph *g, tuck_diags *diags,
                                      struct evaluation **out);
/* Fill in its bounds, if they are not there yet. g is the graph of e. */
TUCK_MUST_CHECK tuck_status study_bounds(struct study *s, const tuck_graph *g,
                                         struct evaluation *e);
void study_give_back(struct evaluation *e); /* NULL is fine */

#endif
