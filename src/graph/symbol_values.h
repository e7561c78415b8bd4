/* Values of symbols, for computing bytes: from the user, from a script, and a default for sizes
 * that depend on data, whose use must be reported.
 */
#ifndef TUCK_GRAPH_SYMBOL_VALUES_H
#define TUCK_GRAPH_SYMBOL_VALUES_H

#include "base/buf.h"
#include "graph/graph.h"

enum {
    ASSUME_UNBACKED = 8192, /* default for u0, u1, … */
    ASSUME_NAMED = 64       /* how many symbols without a value are remembered */
};

struct assume {
    struct fx_store *store;
    const struct fx_hint *given; /* later entries win; "*" means every symbol that is not named */
    size_t n_given;
    const struct fx_hint *own; /* the graph's own values, for symbols that `given` does not have */
    size_t n_own;
    bool used_default; /* some u<number> was assumed to be ASSUME_UNBACKED */
    bool missing;      /* some symbol has no value at all: */
    uint32_t n_missing;
    const char *missing_name[ASSUME_NAMED]; /* in the store */
    bool failed;                            /* for the current expression */
};

/* Is it a data-dependent size: u0, u1, …? */
bool assume_is_unbacked(const char *name);

/* Visits every size and stride of a graph's nodes, to find all symbols without a value. */
void assume_meet_all(struct assume *a, const tuck_graph *g);
/* Lists what is missing, for a message: "s0, s77". */
void assume_list_missing(const struct assume *a, struct buf *out);

/* The value of an expression. False: a symbol in it has none, or the value does not fit. */
bool assume_value(struct assume *a, sym_id v, int64_t *out);

/* The same, in the form that storage_peak() needs. */
bool assume_size(void *assume, sym_id v, int64_t *out);

/* Bytes of a tensor's elements. */
bool assume_bytes(struct assume *a, type_id t, int64_t *out);

#endif
