/* Keeps what one command finds out about its graphs on its machine.
 *
 * A graph is lowered, estimated, turned into a schedule problem and simulated only once: judging it
 * and then scheduling it use the same evaluation, as long as a reference to it exists and the graph
 * has the same revision (graph/graph.h).
 */
#ifndef TUCK_STUDY_STUDY_H
#define TUCK_STUDY_STUDY_H

#include "pass/pass_report.h"
#include "study/evaluate.h"

struct study {
    const struct evaluate_options *o;
    struct mem mem;
    struct evaluation *live; /* all with references, the newest first */
    /* Referenced by the study itself; NULL if none. */
    struct evaluation *first, *last; /* the first and the last that were requested */
    struct evaluation *best;         /* the one named by study_best() */
    VEC(uint64_t) seen;              /* revisions of all graphs so far */
    struct report_work work;
};

void study_begin(struct study *s, const struct evaluate_options *o, const tuck_allocator *alloc);
void study_end(struct study *s);

/* The evaluation of g as it is now, without bounds. Infers types. Release it with
 * study_give_back(), which may also happen after the end of the study. */
TUCK_MUST_CHECK tuck_status study_get(struct study *s, tuck_graph *g, tuck_diags *diags,
                                      struct evaluation **out);
/* Keeps e, the best of all, as long as the study lasts. */
void study_best(struct study *s, struct evaluation *e);
/* One more reference to e, which is to be given back. */
struct evaluation *study_keep(struct evaluation *e);
/* Fill in its bounds, if they are not there yet. g is the graph of e. */
TUCK_MUST_CHECK tuck_status study_bounds(struct study *s, const tuck_graph *g,
                                         struct evaluation *e);
/* The same, but what no sentence of a report needs is left out: see evaluate_bounds(). */
TUCK_MUST_CHECK tuck_status study_bound(struct study *s, const tuck_graph *g, struct evaluation *e);
void study_give_back(struct evaluation *e); /* e may be NULL */

#endif
