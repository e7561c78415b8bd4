/* Inside lint: what its parts share. */
#ifndef TUCK_GRAPH_LINT_H
#define TUCK_GRAPH_LINT_H

#include "graph/call.h"
#include "graph/effect.h"

struct lint_graph {
    const tuck_graph *g;
    uint32_t first_child;       /* its children start there, in order */
    uint32_t result, n_results; /* in results: what it returns, item by item */
    bool alone;                 /* … or one value that is not a list */
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
    VEC(uint32_t) alias;        /* what is being looked at, and views of it */
    VEC(uint32_t) base;         /* by node: what it is a view of, or itself */
    VEC(uint32_t) wait_at;      /* by base: where its waits begin in wait_pos … */
    VEC(uint32_t) wait_pos; /* … the places of the waits for it and for its views, ascending */
};

/* lint.c. Node 0: the whole graph. */
void lint_report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
const char *lint_name(const struct lint *x, uint32_t n);

/* lint_views.c: views read no data, and waits are by storage: a wait for a
 * view is one for its base. */
#define LINT_NEVER UINT32_MAX
void lint_views(struct lint *x); /* of the graph at hand, before the two below */
bool lint_is_view(const struct lint *x, uint32_t n);
/* The place of the first wait after `after` for the storage of n; LINT_NEVER. */
uint32_t lint_wait_after(const struct lint *x, uint32_t n, uint32_t after);

/* lint_comm.c */
void lint_enter(struct lint *x, uint32_t graph);   /* make it the graph at hand */
void lint_results(struct lint *x, uint32_t graph); /* which of its results are to be waited for */
void lint_comm(struct lint *x);

#endif
