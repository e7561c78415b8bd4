/* What became of a graph: which nodes are still there, which moved, merged, appeared, vanished;
 * and its time and memory. */
#ifndef TUCK_STUDY_DIFF_H
#define TUCK_STUDY_DIFF_H

#include "study/evaluate.h"

struct diff_side {
    tuck_graph *g;
    struct evaluation *e;
    uint32_t n;      /* nodes that do something: neither inputs nor the return */
    uint32_t *node;  /* in order */
    uint32_t *place; /* by node id: in `node`; PROBLEM_NONE: not there */
    uint32_t *match; /* by node id: the node of the other graph, 0: none */
    uint32_t *
        became; /* by node id, of the first graph: the new collective that it is part of, 0: none */
};

struct diff_move {
    uint32_t node;     /* of the second graph */
    uint32_t from, to; /* place among the nodes that both have */
    int64_t places; /* nodes that stay and that it passed: later, or (negative) earlier; never 0 */
};

struct diff {
    struct mem mem;
    struct arena arena;
    struct diff_side a, b;
    struct strtab words; /* what nodes compute, while it is asked for */
    struct buf text;
    uint32_t *first_part; /* by node of the second graph: what became part of it, 0: nothing … */
    uint32_t *next_part;  /* … and, by node of the first, what else */
    uint32_t n_move;
    struct diff_move *
        move; /* the fewest nodes without which the order is the same, in the order of the second */
};

/* Both evaluated already, on one machine. Nodes are the same if they have the same
 * name and operator, or else if they compute the same of the same nodes. Must be
 * ended, also after a failure. */
TUCK_MUST_CHECK tuck_status diff_graphs(tuck_graph *a, struct evaluation *ea, tuck_graph *b,
                                        struct evaluation *eb, struct diff *d);
void diff_end(struct diff *d);

void diff_table(const struct diff *d, uint32_t most, struct buf *out);
void diff_json(const struct diff *d, struct buf *out);

#endif
