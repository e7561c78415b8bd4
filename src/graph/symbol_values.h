/* Values for symbols, where bytes are needed: from the user, from a script, and for sizes that only
 * data decides a default, whose use must be reported.
 */
#ifndef TUCK_GRAPH_SYMBOL_VALUES_H
#define TUCK_GRAPH_SYMBOL_VALUES_H

#include "base/buf.h"
#include "graph/graph.h"

enum {
    ASSUME_UNBACKED = 8192, /* default for u0, u1, … */
    ASSUME_NAMED = 64       /* symbols without a value that are remembered */
};

struct assume {
    struct fx_store *store;
    const struct fx_hint *given; /* later entries win; "*" is every symbol that is not named */
    size_t n_given;
    bool used_default; /* some u<number> was assumed to be ASSUME_UNBACKED */
    bool missing;      /* some symbol has no value at all: */
    uint32_t n_missing;
    const char *missing_name[ASSUME_NAMED]; /* in the store */
    bool failed;                            /* in the expression being evaluated */
};

/* Visit every size and stride of a graph's nodes, to find all symbols without a value. */
void assume_meet_all(struct assume *a, const tuck_graph *g);
/* "s0, s77" of what is missing, for a message. */
void assume_list_missing(const struct assume *a, struct buf *out);

/* The value of an expression; false: a symbol in it has none, or it does not fit. */
bool assume_value(struct assume *a, sym_id v, int64_t *out);

/* The same, in the form storage_peak() wants. */
bool assume_size(void *assume, sym_id v, int64_t *out);

/* Bytes of a tensor's elements. */
bool assume_bytes(struct assume *a, type_id t, int64_t *out);

#endif
