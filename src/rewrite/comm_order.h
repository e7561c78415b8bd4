/* What passes need to know about collectives. */
#ifndef TUCK_REWRITE_COMM_ORDER_H
#define TUCK_REWRITE_COMM_ORDER_H

#include "graph/call.h"
#include "graph/effect.h"
#include "graph/graph.h"
#include "graph/nested.h"
#include "graph/topo.h"
#include "op/collective.h"
#include "pass/pass.h"

/* The kind of collective that n is or wraps, 0 if none. */
static inline tuck_coll comm_kind(const tuck_graph *g, uint32_t n)
{
    return op_coll(op_at(acting_op(g, n)));
}

/* Does n start a transfer: a collective with a wait, or a send or receive? */
static inline bool comm_starts(const tuck_graph *g, uint32_t n)
{
    uint8_t cls = op_at(acting_op(g, n))->cls;

    return cls == OP_COLLECTIVE || cls == OP_P2P;
}

/* wait_tensor, wait_tensors */
static inline bool comm_is_wait(const tuck_graph *g, uint32_t n)
{
    return op_at(acting_op(g, n))->cls == OP_WAIT;
}

/* Does n communicate at all, synchronous collectives included? */
static inline bool comm_communicates(const tuck_graph *g, uint32_t n)
{
    uint8_t cls = op_at(acting_op(g, n))->cls;

    return cls == OP_COLLECTIVE || cls == OP_P2P || cls == OP_SYNC_COLLECTIVE;
}

/* The operand of that name ("input", "group_size", "reduce_op", "group_name", "out"), or NULL. */
const tuck_value *comm_operand(const tuck_graph *g, struct sigs *s, uint32_t n, const char *name);

/* The group of each communicating node, by node id: an index into g->group; -1 if none or
 * unknown. */
const int32_t *comm_groups(struct pass_run *r);
/* Their lines. Both are kept until the next edit. */
const struct comm_lines *comm_lines_of(struct pass_run *r);

/* Does n communicate, either itself or in a graph that it calls? */
static inline bool comm_in_line(const struct comm_lines *l, uint32_t n)
{
    return l->start[n] < l->start[n + 1];
}

/* May no other communication pass n? True for unknown groups, for kinds of coll_is_fence(), and for
 * calls of graphs that communicate. */
static inline bool comm_is_fence(const tuck_graph *g, const struct comm_lines *l, uint32_t n)
{
    tuck_coll kind = comm_kind(g, n);

    return comm_in_line(l, n) &&
           (l->line[l->start[n]] < 0 || kind == 0 || coll_is_fence((uint8_t)kind));
}

/* By node id of communicating nodes: the position among all of them and among those of the group,
 * and the number of fences before it. Call before the first edit. */
struct comm_places {
    uint32_t n; /* nodes with this id or higher are newer */
    uint32_t *all, *own, *fences;
};
const struct comm_places *comm_places(struct pass_run *r);
/* Is there a collective of another group, or a fence, between two collectives of one group? Either
 * of the two may come first. */
bool comm_others_between(const struct comm_places *p, uint32_t x, uint32_t y);
static inline bool comm_fence_between(const struct comm_places *p, uint32_t x, uint32_t y)
{
    return p->fences[x] != p->fences[y];
}
/* Are collectives that both graphs have (by id) in a different order? For different groups that is
 * harmless if all ranks run the same graph. */
bool comm_crossed(const tuck_graph *before, const tuck_graph *after, struct arena *a);

/* All ranks must issue the collectives of a group in the same order: adds edges from each one to
 * the next, in their current order; a call of a graph with collectives counts as one of them.
 * Fences keep their position among all, and with r->keep_order everything does. For the sort after
 * an edit that erases some of them: comm_hold() keeps the merged collective between them. */
void comm_chain(struct pass_run *r, struct topo_edges *e);
/* with these groups */
void comm_chain_by(struct pass_run *r, const int32_t *group, struct topo_edges *e);
/* Keeps `merged` between the positions of the first and the last collective that it replaces. */
void comm_hold(struct pass_run *r, struct topo_edges *e, uint32_t merged, uint32_t first,
               uint32_t last);

/* Reports the collectives of a kind that no pass can handle: those inside a wrapper, and calls of
 * graphs that contain such collectives. */
void comm_leave_hidden(struct pass_run *r, tuck_coll kind);

/* Reports those of a kind, outside wrappers, for which `taken` returns false: lists, out=, other
 * namespaces. */
void comm_leave_forms(struct pass_run *r, tuck_coll kind, bool (*taken)(void *ctx, uint32_t n),
                      void *ctx);

/* By node: is it an in-place collective `op` whose write nobody can see? That is so if its operand
 * is made for it alone, and everything else that shares the storage comes from its wait. NULL if
 * there is no such collective. */
const bool *comm_writes_unseen(struct pass_run *r, uint32_t op);

/* Replaces repeated waits of one value, also chained ones, by the first. Returns how many were
 * removed; the graph stays in order. */
uint32_t comm_dedup_waits(struct pass_run *r);

#endif
