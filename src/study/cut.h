/* Where buckets begin: by when each collective is needed (study/chain.h), by the memory that is
 * free where it is, or both. */
#ifndef TUCK_STUDY_CUT_H
#define TUCK_STUDY_CUT_H

#include "study/evaluate.h"

struct cut_how {
    const struct machine *m;
    tuck_coll coll; /* those of one kind, in every group */
    bool by_time;   /* if not, a bucket is filled as far as it goes */
    int64_t most;   /* bytes of a bucket */
    int64_t limit;  /* for the peak */
    /* How much of what is free where its members are a bucket may have; 0: memory does not matter.
     * Beside a bucket, there is what it is made of and the one that is in flight before it. */
    double share;
};

/* By node: does a new bucket begin at this collective? e is the evaluation of g. In the arena;
 * NULL: there is nothing to cut. When memory runs out, jumps to the arena's guard. */
bool *cut_graph(const tuck_graph *g, const struct evaluation *e, const struct cut_how *how,
                struct arena *a);

#endif
