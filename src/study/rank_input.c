#include "study/rank_input.h"

#include "graph/effect.h"
#include "infer/infer.h"
#include "op/ops.h"

enum { KINDS = 32 }; /* more than tuck_coll has */

const int64_t *facts_ranks(const tuck_graph *g, uint32_t k)
{
    /* Groups that only nested graphs name come after those of the graph. */
    return k < g->group.len ? g->group.at[k].ranks : NULL;
}

struct cost_shape facts_shape(const tuck_graph *g, const struct program *p, const tuck_cluster *c,
                              uint32_t k)
{
    return shape_of_group(c, program_str(p, p->group[k].name), p->group[k].size, facts_ranks(g, k));
}

static const char *dtype_of(const tuck_graph *g, uint32_t node)
{
    const struct type *t = type_at(&g->store->type, node_type(g, node));

    while (t->kind == TYPE_LIST && t->n > 0)
        t = type_at(&g->store->type, t->item[0]);
    return t->kind == TYPE_TENSOR ? dtype_at(t->dtype)->name : "";
}

/* The part of a collective's time during which no bytes move yet. */
static int64_t latency_ps(const struct machine *m, const struct program_op *op,
                          struct cost_shape shape, tuck_coll coll, int64_t ps)
{
    tuck_collective_cost cost;

    if (coll == 0 || op->message < 0 || shape.p < 2)
        return 0;
    cost_collective(m->cluster, shape, coll, op->message, &m->cost.collective, &cost);
    double share = cost.ps > 0 ? (double)cost.latency_ps / (double)cost.ps : 0;
    return share < 1 ? (int64_t)((double)ps * share) : ps;
}

void facts_of(const tuck_graph *g, const struct program *p, const struct problem *problem,
              const struct machine *m, struct arena *a, struct facts *out)
{
    struct cost_shape *shape = arena_array(a, struct cost_shape, p->n_group + 1);

    for (uint32_t k = 0; k < p->n_group; k++)
        shape[k] = facts_shape(g, p, m->cluster, k);
    out->call = arena_zeroed(a, p->n_op * sizeof(*out->call));
    out->cls = arena_zeroed(a, p->n_op * sizeof(*out->cls));
    for (uint32_t i = 0; i < p->n_op; i++) {
        const struct program_op *op = &p->op[i];

        if (op->kind != PROGRAM_COLLECTIVE) {
            enum op_class cls = op->kind == PROGRAM_FUSED  ? OP_POINTWISE
                                : op->kind == PROGRAM_COPY ? OP_COPY
                                                           : op_at(acting_op(g, op->node))->cls;
            out->cls[i] = (uint8_t)cls;
            continue;
        }
        tuck_coll coll = coll_modelled(op->coll);
        struct cost_shape s = op->group == PROGRAM_NONE ? (struct cost_shape){.p = 0}
                                                        : shape[op->group];
        out->call[i] = (struct sim_call){
            .coll = op->coll,
            .reduce_op = program_str(p, op->reduce_op),
            .dtype = dtype_of(g, op->node),
            .bytes = op->message,
            .latency = latency_ps(m, op, s, coll, problem->ps[i]),
            .link = (uint8_t)shape_link(s),
            .kind = (uint8_t)coll,
            .alone = op_at(acting_op(g, op->node))->cls == OP_P2P,
        };
    }
}

/* The speed of what takes f times as long. */
static uint32_t speed_of(double f)
{
    double speed = SIM_SPEED / f;

    return speed < 1 ? 1 : speed < SIM_SPEED ? (uint32_t)speed : SIM_SPEED;
}

void facts_slow(const tuck_cluster *c, struct arena *a, struct sim_job *job)
{
    uint32_t *slow = arena_array(a, uint32_t, (OP_CLASS_END + 1) * KINDS),
             *comm = arena_array(a, uint32_t, KINDS);

    for (uint32_t k = 0; k < KINDS; k++) {
        comm[k] = speed_of(cluster_transfer_slowdown(c, (int)k));
        for (uint32_t cls = 0; cls <= OP_CLASS_END; cls++)
            slow[cls * KINDS + k] = cls == OP_CLASS_END || k == 0
                                        ? SIM_SPEED
                                        : speed_of(cluster_slowdown(
                                              c, op_class_name((enum op_class)cls), (int)k));
    }
    job->n_kind = KINDS;
    job->slow = slow;
    job->slow_comm = comm;
}

/* ---- sends and receives ---- */

static bool is_number(const tuck_value *v)
{
    return v != NULL && v->kind == TUCK_V_INT && v->u.i >= 0;
}

static uint32_t batch_parts(const tuck_graph *g, const tuck_value *op, const tuck_value *peer,
                            const tuck_value *tag, struct arena *a, struct sim_part **out)
{
    bool lists = op != NULL && peer != NULL && tag != NULL && value_is_container(op) &&
                 value_is_container(peer) && value_is_container(tag);
    uint32_t n = lists ? op->a : 0;

    if (n == 0 || peer->a != n || tag->a != n)
        return 0;
    *out = arena_array(a, struct sim_part, n);
    for (uint32_t i = 0; i < n; i++) {
        const tuck_value *o = value_item(op, i), *p = value_item(peer, i), *t = value_item(tag, i);
        if (o->kind != TUCK_V_STR || !is_number(p) || p->u.i > UINT32_MAX || !is_number(t))
            return 0;
        (*out)[i] = (struct sim_part){.peer = (uint32_t)p->u.i,
                                      .tag = t->u.i,
                                      .send = strstr(graph_str(g, o->a), "send") != NULL};
    }
    return n;
}

uint32_t facts_parts(const tuck_graph *g, uint32_t node, struct arena *a, struct sim_part **out)
{
    const struct op_row *row = op_at(acting_op(g, node));
    struct operand o = {.v = NULL};
    const tuck_value *dst = NULL, *src = NULL, *tag = NULL, *ops = NULL, *peers = NULL;
    struct op_sig sig;

    if (row->cls != OP_P2P || !op_sig_parse(a, row, &sig, NULL))
        return 0;
    while (operand_next(g, acting_call(g, node, a), &sig, &o)) {
        const char *name = o.param != NULL ? o.param->name : "";
        const tuck_value **to = strcmp(name, "dst") == 0         ? &dst
                                : strcmp(name, "src") == 0       ? &src
                                : strcmp(name, "tag") == 0       ? &tag
                                : strcmp(name, "op_list") == 0   ? &ops
                                : strcmp(name, "peer_list") == 0 ? &peers
                                : strcmp(name, "tag_list") == 0  ? &tag
                                                                 : NULL;
        if (to != NULL)
            *to = o.v;
    }
    if (ops != NULL)
        return batch_parts(g, ops, peers, tag, a, out);
    const tuck_value *peer = dst != NULL ? dst : src;
    if (!is_number(peer) || peer->u.i > UINT32_MAX || !is_number(tag))
        return 0;
    *out = arena_array(a, struct sim_part, 1);
    **out = (struct sim_part){(uint32_t)peer->u.i, tag->u.i, dst != NULL};
    return 1;
}
