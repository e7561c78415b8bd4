/* Kinds of collectives: a kind is a tuck_coll (0: not a collective), its name is
 * tuck_coll_name(kind), and the bytes of a message come from graph/message.h.
 */
#ifndef TUCK_OP_COLLECTIVE_H
#define TUCK_OP_COLLECTIVE_H

#include "op/ops.h"

/* The kind of collective that an operator is, in any form; 0 if it is none. */
tuck_coll op_coll(const struct op_row *row);

/* The row flag for a kind that passes merge or nest; 0 if there is none. */
uint32_t coll_flag(tuck_coll kind);

/* The kind that has the same cost: reduce, gather and scatter to or from one rank cross the group
 * once. */
static inline tuck_coll coll_priced_as(tuck_coll kind)
{
    return kind == TUCK_OTHER_COLLECTIVE ? TUCK_BROADCAST : kind;
}

/* May no other communication pass a collective of this kind? Sends and receives, whose peers run
 * other programs; barriers and kinds that are not known well enough; graphs that communicate. */
static inline bool coll_is_fence(uint8_t kind)
{
    return kind == TUCK_P2P || kind == TUCK_OTHER_COLLECTIVE || kind == TUCK_NESTED_COLLECTIVES;
}

/* The kind in the cost models of collectives; 0 if they do not have it. */
static inline tuck_coll coll_modelled(uint8_t kind)
{
    return kind < TUCK_OTHER_COLLECTIVE ? (tuck_coll)kind : (tuck_coll)0;
}

#endif
