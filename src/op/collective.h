/* What a collective is: its kind is a tuck_coll (0: not a collective), its name
 * tuck_coll_name(kind), the bytes of its message come from graph/message.h.
 */
#ifndef TUCK_OP_COLLECTIVE_H
#define TUCK_OP_COLLECTIVE_H

#include "op/ops.h"

/* The kind of collective that an operator is, in whatever form; 0: not one. */
tuck_coll op_coll(const struct op_row *row);

/* The flag of its row for a kind that passes merge or nest; 0: there is none. */
uint32_t coll_flag(tuck_coll kind);

/* The kind whose cost it has: reduce, gather and scatter to or from one
 * rank cross the group once. */
static inline tuck_coll coll_priced_as(tuck_coll kind)
{
    return kind == TUCK_OTHER_COLLECTIVE ? TUCK_BROADCAST : kind;
}

/* The kind in the models of collectives; 0: they do not have it. */
static inline tuck_coll coll_modelled(uint8_t kind)
{
    return kind < TUCK_OTHER_COLLECTIVE ? (tuck_coll)kind : (tuck_coll)0;
}

#endif
