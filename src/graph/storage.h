/* Storages: which values share memory, which nodes write it, when it is live.
 *
 * Every tensor has a storage; views, waits, out= and in-place operators return an operand's.
 * ops.def says which, including its column `lies`. A reshape that may copy counts as a view.
 *
 * There are two questions. Are two values the same memory? Then it is counted once: memory_of().
 * May they be the same memory? Then reads and writes must keep their order: storage_of(). The
 * results of an unknown operator have memory of their own and may share with every operand, so
 * they all have the same storage_of().
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
    uint32_t *first;           /* by node: where its results begin in `of` */
    uint32_t *count;           /* by node: how many results it has; 0 for numbers and nothing */
    uint32_t *of;              /* storage of each result; each item of a list has its own */
    uint32_t *same;            /* storages that are the same: a forest, see memory_root() */
    uint32_t *kin;             /* storages that may be the same: a forest, see storage_root() */
    const struct op_sig **sig; /* by operator, for those seen */
    const bool *copies;        /* by node, or NULL: known to copy, see below */
    /* by node, or NULL: for a call of a graph that writes, by value: does it write it? */
    const bool **held;
};

/* All in the arena a, which must belong to the same struct mem as the graph. */
void storages_build(const tuck_graph *g, struct arena *a, struct storages *s);
/* The same, if it is known by node which of the operators that may copy do: their results share
 * nothing. */
void storages_build_apart(const tuck_graph *g, struct arena *a, const bool *copies,
                          struct storages *s);

/* One number for all storages that may be the same memory: for the order of reads and writes. */
uint32_t storage_root(const struct storages *s, uint32_t storage);
/* One number for all storages that are the same memory: for sizes and lifetimes. */
uint32_t memory_root(const struct storages *s, uint32_t storage);

/* By storage_root(): are there several memories of which it is not known whether they are one? */
const bool *storages_vague(const struct storages *s, struct arena *a);

/* By storage_root(): is it written by a node? */
const bool *storages_written(const struct storages *s, struct arena *a);
/* By node: is one of its results in a storage of which `written` is true? */
const bool *storages_touched(const struct storages *s, const bool *written, struct arena *a);

/* Does n mention a node of which `touched` is true? */
static inline bool node_mentions(const tuck_graph *g, uint32_t n, const bool *touched)
{
    const struct fx_node *x = node_at(g, n);

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE && touched[x->vals[i].a])
            return true;
    return false;
}

/* That of a node's result number `item` (0 for a single result); 0 if none. Two values with
 * different storage_of() never share; two with the same memory_of() always do. */
uint32_t storage_of(const struct storages *s, uint32_t node, uint32_t item);
uint32_t memory_of(const struct storages *s, uint32_t node, uint32_t item);

/* Which results of its operand number `slot`, a node, n mentions: [*first, *end). Usually all, but
 * a getitem by number mentions only that one: otherwise n getitems would take n * n time. */
void storage_mentions(const struct storages *s, uint32_t n, uint32_t slot, uint32_t *first,
                      uint32_t *end);

enum access { ACCESS_READ, ACCESS_WRITE };

typedef void (*access_fn)(void *ctx, uint32_t storage, enum access how);

/* Calls fn for everything a node reads or writes, with a storage_root() and the kind of access,
 * possibly repeated. Making a view accesses nothing. */
void storage_accesses(const struct storages *s, uint32_t node, access_fn fn, void *ctx);
/* The same with memory_root(). */
void memory_accesses(const struct storages *s, uint32_t node, access_fn fn, void *ctx);

/* A barrier reads and writes everything it can reach, and keeps its position among all other
 * barriers and all writes. */
static inline bool node_is_barrier(const tuck_graph *g, uint32_t node)
{
    const struct fx_node *x = node_at(g, node);

    return x->kind == TUCK_OPAQUE || x->kind == TUCK_CALL_MODULE ||
           ((x->kind == TUCK_CALL_FUNCTION || x->kind == TUCK_CALL_METHOD) && x->op == 0) ||
           (call_is_wrapper(x) && wraps_unknown(g, x));
}

/* May the graph or operator that is passed as an operand write its own operands? */
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

/* For every node that accesses a storage that is written: the write before it. Recorded before the
 * first edit and checked by lint: an edit must not move a read across a write. */
struct storage_order {
    uint32_t n_node;  /* nodes with this id or higher are newer than this record */
    uint32_t *start;  /* by node, n_node + 1 entries: its range in `writer` */
    uint32_t *writer; /* the node that wrote last, 0 for the input's value */
    uint32_t n_writer;
};

/* Memory belongs to the graph; replaces g->order. When memory runs out, jumps to the store's
 * guard. */
void storage_order_record(tuck_graph *g);

/* Before an edit that moves, adds or rewires: records the current order if nothing was edited yet.
 * False: out of memory. */
bool graph_begin_edit(tuck_graph *g);

/* Compares with what was recorded; diagnostics name both nodes. TUCK_ELINT: an order was broken. */
tuck_status storage_order_check(const tuck_graph *g, tuck_diags *diags);

/* ---- memory
 * ----------------------------------------------------------------------------------------- */

/* Bytes that a tensor of this type keeps alive: up to its last element, which differs from its
 * number of elements for an expanded or sliced one. `size` gives values to sizes with symbols;
 * NULL: those are unknown. */
bool storage_bytes(const tuck_graph *g, type_id id, bool (*size)(void *ctx, sym_id v, int64_t *out),
                   void *ctx, int64_t *out);

#endif
