#include "op/collective.h"

#include <string.h>

static const char *const names[] = {
    [TUCK_ALL_REDUCE] = "all_reduce",
    [TUCK_ALL_GATHER] = "all_gather",
    [TUCK_REDUCE_SCATTER] = "reduce_scatter",
    [TUCK_ALL_TO_ALL] = "all_to_all",
    [TUCK_BROADCAST] = "broadcast",
    [TUCK_P2P] = "p2p",
    [TUCK_SHARD_DIM_ALLTOALL] = "shard_dim_alltoall",
    [TUCK_OTHER_COLLECTIVE] = "collective",
    [TUCK_NESTED_COLLECTIVES] = "nested",
};

enum { N_KIND = sizeof(names) / sizeof(*names) };

const char *tuck_coll_name(tuck_coll coll)
{
    return coll > 0 && (unsigned)coll < N_KIND ? names[coll] : "";
}

tuck_coll tuck_coll_by_name(const char *name)
{
    for (int i = 1; name != NULL && i < N_KIND; i++)
        if (strcmp(names[i], name) == 0)
            return (tuck_coll)i;
    return (tuck_coll)0;
}

static const struct {
    uint32_t flag;
    tuck_coll kind;
} flags[] = {
    {OP_F_ALL_REDUCE, TUCK_ALL_REDUCE},         {OP_F_ALL_GATHER, TUCK_ALL_GATHER},
    {OP_F_REDUCE_SCATTER, TUCK_REDUCE_SCATTER}, {OP_F_ALL_TO_ALL, TUCK_ALL_TO_ALL},
    {OP_F_BROADCAST, TUCK_BROADCAST},
};

enum {
    N_FLAG = sizeof(flags) / sizeof(*flags),
    ANY_FLAG = OP_F_ALL_REDUCE | OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_TO_ALL |
               OP_F_BROADCAST,
};

tuck_coll op_coll(const struct op_row *row)
{
    if (row->cls == OP_P2P)
        return TUCK_P2P;
    if (row->shape == OP_SHAPE_shard_dim_alltoall)
        return TUCK_SHARD_DIM_ALLTOALL;
    if (row->moves == OP_MOVES_gathered)
        return TUCK_ALL_GATHER;
    if (row->moves == OP_MOVES_scattered)
        return TUCK_REDUCE_SCATTER;
    for (int i = 0; i < N_FLAG && row->flags & ANY_FLAG; i++)
        if (row->flags & flags[i].flag)
            return flags[i].kind;
    return row->cls == OP_COLLECTIVE || row->cls == OP_SYNC_COLLECTIVE ? TUCK_OTHER_COLLECTIVE
                                                                       : (tuck_coll)0;
}

uint32_t coll_flag(tuck_coll kind)
{
    for (int i = 0; i < N_FLAG; i++)
        if (flags[i].kind == kind)
            return flags[i].flag;
    return 0;
}
