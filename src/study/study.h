/* Keeps what one command finds out about its graphs on its machine.
 *
 * A graph is lowered, estimated, turned into a schedule problem and simulated only once: judging it
 * and then scheduling it use the same evaluation, as long as the graph has the same revision
 * (graph/graph.h).
 */
#ifndef TUCK_STUDY_STUDY_H
#define TUCK_STUDY_STUDY_H

#include "study/evaluate.h"

enum { STUDY_KEEPS = 3 }; /* the original graph, the best so far, the current one */

struct study_counts {
    uint32_t graphs; /* lowered, made a problem, simulated: each once per new graph */
    uint32_t reused; /* evaluations reused */
    uint32_t orders; /* simulations inside passes on orders */
};

struct study {
    const struct evaluate_options *o;
    tuck_allocator alloc;
    struct evaluation *kept[STUDY_KEEPS]; /* most recently used first; NULL if empty */
    struct study_counts counts;
};

void study_begin(struct study *s, const struct evaluate_options *o, const tuck_allocator *alloc);
void study_end(struct study *s);

/* The evaluation of g as it is now, without bounds. Infers types. Release it with
 * study_give_back(). */
TUCK_MUST_CHECK tuck_status study_get(struct study *s, tuck_graph *g, tuck_diags *diags,
                                      struct evaluation **out);
/* Fill in its bounds, if they are not there yet. g is the graph of e. */
TUCK_MUST_CHECK tuck_status study_bounds(struct study *s, const tuck_graph *g,
                                         struct evaluation *e);
void study_give_back(struct evaluation *e); /* e may be NULL */

#endif
