/* How two versions of a graph differ: nodes that stayed, moved, merged, appeared or vanished; and
 * the difference in time and memory. */
#ifndef TUCK_STUDY_DIFF_H
#define TUCK_STUDY_DIFF_H

#include "study/evaluate.h"

struct diff_side {
    tuck_graph *g;
    struct evaluation *e;
    uint32_t n;      /* nodes other than inputs and the return */
    uint32_t *node;  /* their ids, in order */
    uint32_t *place; /* by node id: index in `node`, PROBLEM_NONE if not there */
    uint32_t *match; /* by node id: the matching node of the other graph, 0 if none */
    /* by node id of the first graph: the new collective it was merged into, 0 if none */
    uint32_t *became;
};

struct diff_move {
    uint32_t node;     /* of the second graph */
    uint32_t from, to; /* positions among the nodes that both graphs have */
    /* unmoved nodes it passed: positive if it is later now, negative if earlier; never 0 */
    int64_t places;
};

struct diff {
    struct mem mem;
    struct arena arena;
    struct diff_side a, b;
    struct strtab words; /* descriptions of what nodes compute, to compare them */
    struct buf text;
    /* by node of the second graph: the first node merged into it, 0 if none */
    uint32_t *first_part;
    uint32_t *next_part; /* by node of the first graph: the next node merged into the same one */
    uint32_t n_move;
    struct diff_move
        *move; /* the fewest nodes that explain the new order, in the order of the second graph */
};

/* Both graphs are already evaluated, on the same machine. Nodes match if they have the same name
 * and operator, or else if they compute the same from matching nodes. The diff must be ended, also
 * after a failure. */
TUCK_MUST_CHECK tuck_status diff_graphs(tuck_graph *a, struct evaluation *ea, tuck_graph *b,
                                        struct evaluation *eb, struct diff *d);
void diff_end(struct diff *d);

void diff_table(const struct diff *d, uint32_t most, struct buf *out);
void diff_json(const struct diff *d, struct buf *out);

#endif
