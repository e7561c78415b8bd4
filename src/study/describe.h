/* A graph in figures: nodes by class, inputs and outputs, collectives by group, live storage. */
#ifndef TUCK_STUDY_DESCRIBE_H
#define TUCK_STUDY_DESCRIBE_H

#include "graph/graph.h"
#include "graph/symbol_values.h"
#include "op/ops.h"
#include "plan/storage_peak.h"

/* Collectives of one kind on one group. */
struct described_collectives {
    uint32_t op;
    const char *group; /* name */
    int64_t size;      /* ranks, 0 = unknown */
    size_t count, sized;
    int64_t bytes; /* sum of the known sizes */
};

struct description {
    const tuck_graph *g;
    struct assume assume;
    struct storage_peak peak;
    int64_t output_bytes;          /* -1: unknown */
    size_t kind[OP_CLASS_END + 1]; /* nodes by class; the last entry counts unknown operators */
    size_t nodes, opaque;          /* including nested graphs */
    size_t inputs, parameters, buffers, outputs;
    int64_t input_bytes; /* sum of the known sizes */
    size_t inputs_unsized;
    VEC(struct described_collectives) row;
    VEC(const tuck_graph *) nested; /* at any depth, in the order of the text */
};

/* The caller sets d->g and d->assume and has run inference; this fills in the rest. When memory
 * runs out, jumps to m's guard; call describe_free() then too. `scratch` may be cleared
 * afterwards. */
void describe_graph(struct mem *m, struct arena *scratch, struct description *d);
void describe_free(struct mem *m, struct description *d);

/* The message size of a collective: its input or its output, whichever is larger. -1: unknown. */
int64_t describe_message_bytes(struct assume *a, const tuck_graph *g, uint32_t n);
/* The role that an input's descriptor names: "parameter", "buffer", "tangent", "input"; "" if it
 * names none. */
const char *describe_role(const tuck_graph *g, uint32_t n);

#endif
