/* Finds out which of the operators that may copy (reshape, contiguous, to) really do; conjugates
 * too, if they are asked for. */
#ifndef TUCK_LOWER_COPIES_H
#define TUCK_LOWER_COPIES_H

#include "graph/symbol_values.h"
#include "graph/call.h"
#include "graph/effect.h"
#include "infer/infer.h"
#include "op/ops.h"

enum copies_kind { COPIES_UNKNOWN, COPIES_NOT, COPIES };

struct copies {
    const tuck_graph *g;
    struct assume *assume;
    struct sigs *sigs;
    bool conjugates; /* complex ones are copies, unless their memory is written */
    uint8_t *kind;   /* by node: enum copies_kind */
    bool *copies;    /* by node: kind is COPIES; for storages_build_apart() */
};

/* The caller sets g, assume and sigs, and has inferred types. When memory runs out, jumps to the
 * arena's guard. */
void copies_find(struct copies *c, struct arena *a);

#endif
