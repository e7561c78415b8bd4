/* Shape inference: the type of every node, from the inputs on.
 *
 * Where the text is annotated, the annotation is the truth and inference only checks it. The same
 * call on the same types gives the same result, so each distinct call is worked out once.
 */
#ifndef TUCK_INFER_INFER_H
#define TUCK_INFER_INFER_H

#include "graph/graph.h"
#include "graph/type.h"

struct infer_options {
    bool ignore_annotations; /* but those of inputs and attributes: to test the rules */
    bool check;              /* report where annotation and inference disagree */
    /* After an edit: the types before it, of the nodes that were there then. What is new,
     * or works on what is new or has another type now, is inferred anew whatever its
     * annotation says. NULL: no edit. */
    const type_id *before;
    uint32_t n_before;
    const tuck_graph *edited; /* the graph that these are of: nested ones did not change */
    /* Called for every call node with what was inferred and what the text says (0 = nothing). */
    void (*each)(void *ctx, const tuck_graph *g, uint32_t node, type_id inferred, type_id stated);
    void *ctx;
};

/* Fill g->type, by node id, for g and the graphs nested in it. Leaves through the store's
 * guard when memory runs out. */
void infer_graph(tuck_graph *g, const struct infer_options *options, tuck_diags *diags);

/* The same, where types are not those of the graph as it is now. */
void infer_need(tuck_graph *g);

#endif
