/* Internals of lint, shared by its files. */
#ifndef TUCK_GRAPH_LINT_H
#define TUCK_GRAPH_LINT_H

#include "graph/call.h"
#include "graph/effect.h"

struct lint_graph {
    const tuck_graph *g;
    uint32_t first_child;       /* its children start there, in order */
    uint32_t result, n_results; /* range in `results`: what it returns, item by item */
    bool alone;                 /* it returns one value that is not a list */
};

struct lint_wait {
    uint32_t base, pos; /* what is waited for; position of the wait */
};

struct lint_waits {
    uint32_t at, end, n; /* range in wait_pos */
};

struct lint {
    struct mem mem;
    tuck_diags *diags;
    const tuck_graph *g;
    uint32_t number; /* index of the current graph in `all`, plus 1 */
    bool nested;
    size_t errors;
    struct sigs sigs;
    VEC(struct lint_graph) all; /* parents before children */
    VEC(uint16_t) results; /* operator of the unfinished start that is returned there, 0 if none */
    VEC(uint32_t) todo;
    size_t mentions;            /* arguments that are nodes */
    VEC(uint32_t) pos;          /* by node: position in the order */
    VEC(uint32_t) of_use;       /* by use: the node that is mentioned there */
    VEC(uint32_t) count;        /* by node: how often it is mentioned, or waited for */
    VEC(uint32_t) first;        /* by name: a node that has it, in any graph */
    VEC(uint32_t) child;        /* by name of a class: the child of the current graph that has it */
    VEC(uint32_t) comm;         /* nodes that may be starts, and waits, in order */
    VEC(uint32_t) flying;       /* a start and the items taken out of its list of results */
    VEC(uint32_t) alias;        /* the value being checked, and views of it */
    VEC(uint32_t) base;         /* by node: what it is a view of, 0 = itself */
    VEC(struct lint_wait) wait; /* in order */
    VEC(uint32_t) waits_of;     /* by base: number of its list in `waits`, plus 1 */
    VEC(struct lint_waits) waits;
    VEC(uint32_t) wait_pos; /* positions of the waits for a base and its views, ascending */
};

/* In lint.c. Node 0 means the whole graph. */
void lint_report(struct lint *x, tuck_severity severity, uint32_t n, const char *note,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
const char *lint_name(const struct lint *x, uint32_t n);

/* In lint_views.c: views read no data, and waits are by storage: a wait for a view is a wait for
 * its base. */
#define LINT_NEVER UINT32_MAX
void lint_view(struct lint *x, uint32_t n); /* the base of a view; for all nodes in order */
void lint_wait(struct lint *x, uint32_t n); /* notes what a wait waits for */
void lint_waits(struct lint *x);            /* once all waits are noted */
bool lint_is_view(const struct lint *x, uint32_t n);
/* The position of the first wait after `after` for the storage of n, or LINT_NEVER. */
uint32_t lint_wait_after(const struct lint *x, uint32_t n, uint32_t after);

/* In lint_comm.c: */
void lint_comm_begin(struct lint *x);
void lint_comm_note(struct lint *x, uint32_t n); /* for all nodes, in order */
void lint_enter(struct lint *x, uint32_t graph); /* makes it the current graph */
/* finds which of its results must be waited for */
void lint_results(struct lint *x, uint32_t graph);
void lint_comm(struct lint *x);

#endif
