#include "lower/estimate.h"

struct estimate {
    struct program *p;
    const tuck_graph *g;
    const tuck_cluster *c;
    const struct cost_options *o;
    struct assume assume;
    struct cost_run run;
};

static void take(struct program_op *op, const struct cost_part *part)
{
    op->ps = part->ps;
    op->flops = part->flops < 9e18 ? (int64_t)part->flops : INT64_MAX;
    op->moved = part->bytes;
}

/* A copy that lowering inserted: every byte is read and written once. */
static void copy_op(struct estimate *e, uint32_t i)
{
    const struct program *p = e->p;
    int64_t bytes = 0;

    for (uint32_t k = p->use_at[i]; k < p->use_at[i + 1]; k++) {
        if (p->use[k].how == PROGRAM_READS)
            continue;
        if (p->buf[p->use[k].buf].flags & PROGRAM_UNKNOWN)
            return; /* its time is unknown, too */
        bytes += p->buf[p->use[k].buf].bytes;
    }
    enum cost_bound bound;
    e->p->op[i].moved = 2 * bytes;
    e->p->op[i].ps = cost_kernel_ps(e->c, DTYPE_NONE, 0, 2.0 * (double)bytes, &bound);
}

static void collective_op(struct estimate *e, uint32_t i)
{
    struct program_op *op = &e->p->op[i];
    struct cost_part part;
    tuck_collective_cost cost;
    tuck_coll coll = coll_modelled(op->coll);

    cost_node(&e->run, op->node, &part);
    if (program_is_nested(op) && part.bound != BOUND_UNKNOWN) {
        /* communication of nested graphs; their compute is the op before this one */
        op->ps = part.comm_ps;
        op->message = part.bytes;
        return;
    }
    take(op, &part);
    if (op->message < 0)
        op->message = part.bytes > 0 ? part.bytes : -1; /* e.g. on a group whose size is assumed */
    if (coll == 0 || op->group >= e->g->group.len || op->message < 0 || part.ps < 0)
        return;
    struct cost_choice how = e->o->collective;
    if (op->algorithm != 0 || (op_at(acting_op(e->g, op->node))->flags & OP_F_ONE_SHOT))
        how.only = TUCK_ALGO_ONE_SHOT;
    cost_collective(e->c, e->run.group[op->group], coll, op->message, &how, &cost);
    if (op->algorithm != 0) {
        bool measured = part.bound != BOUND_COLLECTIVE ||
                        laws_find(&e->o->laws, part.coll,
                                  graph_str(e->g, e->g->group.at[op->group].name)) != NULL;
        if (measured)
            return;
        /* Lowering's choice is kept; its time is used if the group can run it. */
        if (cost.algorithm == TUCK_ALGO_ONE_SHOT)
            op->ps = cost.ps;
        return;
    }
    if (cost.algorithm != 0)
        op->algorithm = str_intern(&e->p->str, tuck_algorithm_name(cost.algorithm),
                                   strlen(tuck_algorithm_name(cost.algorithm)));
}

static void do_estimate(void *arg)
{
    struct estimate *e = arg;
    struct program *p = e->p;
    struct cost_part part;

    cost_run_graph(&e->run, e->g);
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t first = p->node_at[i], n = p->node_at[i + 1] - first;

        switch ((enum program_kind)p->op[i].kind) {
        case PROGRAM_WAIT: p->op[i].ps = 0; break;
        case PROGRAM_COPY: copy_op(e, i); break;
        case PROGRAM_COLLECTIVE: collective_op(e, i); break;
        case PROGRAM_FUSED:
            cost_loop(&e->run, &p->node_id[first], n, &part);
            take(&p->op[i], &part);
            break;
        default:
            cost_node(&e->run, p->op[i].node, &part);
            take(&p->op[i], &part);
            if (part.comm_ps > 0) {
                p->op[i].ps -= part.comm_ps;
                p->op[i].moved = 0;
            }
            break;
        }
    }
}

tuck_status lower_estimate(struct program *p, const tuck_graph *g, const struct machine *m)
{
    struct estimate e = {.p = p, .g = g, .c = m->cluster, .o = &m->cost};

    p->on_cores = m->cluster->on_cores;
    e.assume = machine_symbols(m, g->store);
    cost_run_init(&e.run, &p->mem, m->cluster, &m->cost, &e.assume);
    bool ok = mem_guard(&p->mem, do_estimate, &e);
    cost_run_done(&e.run);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
