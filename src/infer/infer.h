/* Shape inference: the type of every node, starting from the inputs.
 *
 * If the text is annotated, the annotation is the truth and inference only checks it. The same call
 * on the same types gives the same result, so each distinct call is computed once.
 */
#ifndef TUCK_INFER_INFER_H
#define TUCK_INFER_INFER_H

#include "graph/graph.h"
#include "graph/type.h"

struct infer_options {
    bool ignore_annotations; /* except those of inputs and attributes: to test the rules */
    bool check;              /* report where annotation and inference disagree */
    /* Views, items and operands that are returned have the layout that the operand gives: what is
     * read lies where it is, whatever the annotation says. */
    bool views_follow;
    bool dense_inputs; /* inputs and attributes whose text has no strides are contiguous */
    /* After an edit: the types before it, for nodes that existed then. New nodes, and those that
     * depend on new nodes or changed types, are inferred again, whatever their annotation says.
     * NULL: no edit. */
    const type_id *before;
    uint32_t n_before;
    const tuck_graph *edited; /* the graph they belong to: nested graphs did not change */
    /* Called for every call node with the inferred type and the one in the text (0 if none). */
    void (*each)(void *ctx, const tuck_graph *g, uint32_t node, type_id inferred, type_id stated);
    void *ctx;
};

/* Fills g->type, by node id, for g and the graphs nested in it. When memory runs out, jumps to the
 * store's guard. */
void infer_graph(tuck_graph *g, const struct infer_options *options, tuck_diags *diags);

/* The same, if the types are out of date. */
void infer_need(tuck_graph *g);

#endif
