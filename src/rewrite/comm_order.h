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

/* The kind of collective that n is or wraps; 0: none. */
static inline tuck_coll comm_kind(const tuck_graph *g, uint32_t n)
{
    return op_coll(op_at(acting_op(g, n)));
}

/* A collective that a wait ends, or p2p. */
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

/* Any that starts, and synchronous ones too. */
static inline bool comm_communicates(const tuck_graph *g, uint32_t n)
{
    uint8_t cls = op_at(acting_op(g, n))->cls;

    return cls == OP_COLLECTIVE || cls == OP_P2P || cls == OP_SYNC_COLLECTIVE;
}

/* The operand of that name ("input", "group_size", "reduce_op", "group_name", "out"), or NULL. */
const tuck_value *comm_operand(const tuck_graph *g, struct sigs *s, uint32_t n, const char *name);

/* The group of every node that communicates, by node id: an index into g->group;
 * -1 = none, or not known. */
const int32_t *comm_groups(struct pass_run *r);

/* Does it communicate, itself or in a graph that it calls? */
static inline bool comm_in_line(const struct comm_lines *l, uint32_t n)
{
    return l->start[n] < l->start[n + 1];
}

/* Does it, and no other may pass it: a send or a receive, one whose group is not known, a call of a
 * graph with collectives of several groups? */
static inline bool comm_is_fence(const tuck_graph *g, const struct comm_lines *l, uint32_t n)
{
    return comm_in_line(l, n) && (l->start[n + 1] - l->start[n] > 1 || l->line[l->start[n]] < 0 ||
                                  op_at(acting_op(g, n))->cls == OP_P2P);
}

/* The place of each that communicates among all, among those of its group, and after how many
 * fences; by node id. Call before the first edit. */
struct comm_places {
    uint32_t n; /* ids from here on are newer */
    uint32_t *all, *own, *fences;
};
const struct comm_places *comm_places(struct pass_run *r);
/* Is there a collective of another group between two of one group,
 * whichever comes first? A fence? */
bool comm_others_between(const struct comm_places *p, uint32_t x, uint32_t y);
static inline bool comm_fence_between(const struct comm_places *p, uint32_t x, uint32_t y)
{
    return p->fences[x] != p->fences[y];
}
/* Are collectives that both graphs have, by id, in another order? For different groups that is
 * harmless where all ranks run the same graph. */
bool comm_crossed(const tuck_graph *before, const tuck_graph *after, struct arena *a);

/* All ranks must issue the collectives of a group in the same order: edges from each to the next,
 * in their current order; a call of a graph with collectives in it is one of theirs. Fences keep
 * their places among all, and with r->keep_order all do. For a sort after an edit that erases some
 * of them: what they are merged into is held between them by comm_hold(). */
void comm_chain(struct pass_run *r, struct topo_edges *e);
void comm_chain_by(struct pass_run *r, const int32_t *group, struct topo_edges *e); /* as given */
/* `merged` goes between the places of two erased collectives, the first and the
 * last of those it replaces. */
void comm_hold(struct pass_run *r, struct topo_edges *e, uint32_t merged, uint32_t first,
               uint32_t last);

/* Report the collectives of a kind that cannot be candidates of any pass: those that a wrapper
 * holds, and calls of graphs with such collectives in them. */
void comm_leave_hidden(struct pass_run *r, tuck_coll kind);

/* Report those of a kind outside wrappers for which `taken` is false: lists,
 * out=, other namespaces. */
void comm_leave_forms(struct pass_run *r, tuck_coll kind, bool (*taken)(void *ctx, uint32_t n),
                      void *ctx);

/* By node: of the collectives `op`, which work in place, those where that makes no difference: the
 * operand is made for it alone, and everything else that shares its storage comes from its wait.
 * NULL: there is none that works so. */
const bool *comm_writes_unseen(struct pass_run *r, uint32_t op);

/* Several waits of one value, chained ones too, become the first. How many went;
 * the graph stays in order. */
uint32_t comm_dedup_waits(struct pass_run *r);

#endif
