/* Inside lint: what its parts share. */
#ifndef TUCK_FX_LINT_H
#define TUCK_FX_LINT_H

#include "fx/call.h"
#include "fx/effect.h"

struct lint_graph {
    const tuck_graph *g;
    uint32_t first_child;       /* its children stand from there on, in order */
    uint32_t result, n_results; /* in results: what it returns, item by item */
    bool alone;                 /* … or one value that is no list */
};

struct lint {
    struct mem mem;
    tuck_diags *diags;
    const tuck_graph *g;
    uint32_t number; /* of the graph at hand in `all`, plus 1 */
    bool nested;
    bool broken; /* use lists cannot be trusted: nothing but that is checked */
    size_t errors;
    struct sigs sigs;
    VEC(struct lint_graph) all; /* parents before children */
    VEC(uint16_t) results; /* operator of the start that is returned so, 0 = nothing to wait for */
    VEC(uint32_t) todo;
    VEC(uint32_t) pos;          /* by node: place in the order */
    VEC(uint32_t) count;        /* by node: how often it is mentioned */
    VEC(uint32_t) owner, first; /* by name: number of the graph that has it, and the node */
    VEC(uint32_t) child;        /* by name of a class: which child of the graph at hand it may be */
    VEC(uint32_t) flying;       /* a start and what was taken out of its list of results */
};

/* lint.c. Node 0: the graph as a whole. */
void lint_report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
const char *lint_name(const struct lint *x, uint32_t n);

/* lint_comm.c */
void lint_enter(struct lint *x, uint32_t graph);   /* make it the graph at hand */
void lint_results(struct lint *x, uint32_t graph); /* which of its results are to be waited for */
void lint_comm(struct lint *x);

#endif
