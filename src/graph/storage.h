/* Storages: which values share memory, who writes it, when it is live.
 *
 * Every tensor has a storage; views, waits, out= and in-place operators hand on the one of an
 * operand. ops.def says which, its `lies` included. Where it is not known whether two values share
 * (an unknown operator, a reshape that may copy), they are assumed to: that never reorders wrongly.
 */
#ifndef TUCK_GRAPH_STORAGE_H
#define TUCK_GRAPH_STORAGE_H

#include "graph/call.h"
#include "graph/graph.h"
#include "op/ops.h"

struct op_sig;

struct storages {
    const tuck_graph *g;
    uint32_t n;                /* storages are numbered from 1 */
    uint32_t *first;           /* by node: where its results begin in `of` … */
    uint32_t *count;           /* … and how many it has; 0 = none (a number, nothing) */
    uint32_t *of;              /* storage of each result; several results of a list each have one */
    uint32_t *join;            /* storages found to be the same: a forest, see storage_root() */
    const struct op_sig **sig; /* by operator, for those seen */
    const bool *copies;        /* by node, or NULL: those that are known to copy, see below */
    const bool *
        *held; /* by node, or NULL: of a call of a graph that writes, by value which it writes */
    VEC(uint32_t) pool; /* `of` while it grows */
};

/* All in the arena a, which must belong to the same struct mem as the graph. */
void storages_build(const tuck_graph *g, struct arena *a, struct storages *s);
/* The same, given which of the operators that may copy do copy, by node:
 * their results share nothing. */
void storages_build_apart(const tuck_graph *g, struct arena *a, const bool *copies,
                          struct storages *s);

uint32_t storage_root(const struct storages *s, uint32_t storage);

/* The storage of a node's result number `item` (0 for a single result); 0 = none. */
uint32_t storage_of(const struct storages *s, uint32_t node, uint32_t item);

/* Which results of its operand number `slot`, a node, n mentions: [*first, *end). All, but a
 * getitem by number mentions that one only: otherwise n getitems would cost n * n. */
void storage_mentions(const struct storages *s, uint32_t n, uint32_t slot, uint32_t *first,
                      uint32_t *end);

enum access { ACCESS_READ, ACCESS_WRITE };

/* Everything a node touches: fn is called with a storage (a root) and how it is accessed, possibly
 * more than once for the same. Making a view touches nothing. */
void storage_accesses(const struct storages *s, uint32_t node,
                      void (*fn)(void *ctx, uint32_t storage, enum access how), void *ctx);

/* A barrier: reads and writes everything it can reach, and keeps its place among all other
 * barriers and all writes. */
static inline bool node_is_barrier(const tuck_graph *g, uint32_t node)
{
    const struct fx_node *x = node_at(g, node);

    return x->kind == TUCK_OPAQUE || x->kind == TUCK_CALL_MODULE ||
           ((x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD) && x->op == 0) ||
           (call_is_wrapper(x) && wraps_unknown(g, x));
}

/* May the graph or the operator that an operator takes write its operands? */
bool held_may_write(const tuck_graph *g, const struct fx_node *x);

/* May it write anything at all? */
static inline bool node_may_write(const tuck_graph *g, uint32_t node)
{
    const struct fx_node *x = node_at(g, node);
    const struct op_row *row = op_at(x->op);

    if (x->op == 0)
        return node_is_barrier(g, node);
    return (row->flags & OP_F_MUTATES) || (row->cls == OP_HOP && held_may_write(g, x));
}

/* ---- the order of reads and writes
 * ---------------------------------------------------------------- */

/* For every node that touches a storage that is written: the write before it. Taken before the
 * first edit, compared by lint: an edit may not move a read over a write. */
struct storage_order {
    uint32_t n_node;  /* nodes with ids from here on are newer than this record */
    uint32_t *start;  /* by node, n_node + 1 of them: its entries in `writer` */
    uint32_t *writer; /* node that wrote last, 0 = the input */
    uint32_t n_writer;
};

/* Memory is the graph's own; g->order is replaced. Leaves through the store's guard. */
void storage_order_record(tuck_graph *g);

/* Before an edit that moves, adds or rewires: the order as it is now, if nothing was
 * edited yet. False: no memory. */
bool graph_begin_edit(tuck_graph *g);

/* Compare with what was recorded; diagnostics name both nodes. TUCK_ELINT: something was broken. */
tuck_status storage_order_check(const tuck_graph *g, tuck_diags *diags);

/* ---- memory
 * ----------------------------------------------------------------------------------------- */

/* Bytes that a tensor of this type keeps alive: up to its last element, which for an expanded
 * or sliced one is not its number of elements. `size` gives a value to sizes with symbols:
 * NULL = those are unknown. */
bool storage_bytes(const tuck_graph *g, type_id id, bool (*size)(void *ctx, sym_id v, int64_t *out),
                   void *ctx, int64_t *out);

struct storage_peak {
    int64_t peak;   /* bytes live at once, inputs never freed */
    int64_t inputs; /* of them inputs and attributes */
    uint32_t node;  /* where */
    size_t unknown; /* storages whose size is not known, counted as nothing */
};

/* The peak of live storage in the order of the graph. Needs infer_graph(). `size` gives a value to
 * sizes with symbols: NULL = those are unknown. */
void storage_peak(const tuck_graph *g, const struct storages *s, struct arena *a,
                  bool (*size)(void *ctx, sym_id v, int64_t *out), void *ctx,
                  struct storage_peak *out);

#endif
