/* How much kernels and collectives take from each other on a cluster. */
#include "base/json.h"
#include "cost/cluster.h"
#include "op/ops.h"

double cluster_slowdown(const tuck_cluster *c, const char *cls, int coll)
{
    for (uint32_t i = 0; i < c->slowdown.len; i++)
        if (c->slowdown.at[i].coll == coll && strcmp(c->slowdown.at[i].cls, cls) == 0)
            return c->slowdown.at[i].factor;
    return c->slowdown.len == 0 && c->beside > 0 ? c->beside : 1;
}

double cluster_transfer_slowdown(const tuck_cluster *c, int coll)
{
    double f = coll > 0 && coll < TUCK_OTHER_COLLECTIVE ? c->transfer_slowdown[coll] : 0;

    return f > 0 ? f : 1;
}

void slowdown_json(struct json_out *j, const tuck_coll *kind, const double *factor, uint32_t n)
{
    static const enum op_class cls[] = {OP_POINTWISE, OP_GEMM, OP_REDUCTION, OP_COPY, OP_FACTORY,
                                        OP_INDEX,     OP_CONV, OP_NORM,      OP_LOSS, OP_ATTENTION,
                                        OP_FOREACH,   OP_FSDP, OP_SCAN,      OP_SORT, OP_POOL};

    json_open(j, "slowdown", '{');
    for (size_t i = 0; i < sizeof(cls) / sizeof(*cls); i++) {
        json_open(j, op_class_name(cls[i]), '{');
        for (uint32_t k = 0; k < n; k++)
            json_float(j, tuck_coll_name(kind[k]), factor[k] > 1 ? factor[k] : 1);
        json_close(j, '}');
    }
    json_close(j, '}');
}
