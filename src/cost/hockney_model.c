/* Alpha-beta: a message of n bytes takes alpha + n beta, and reducing it n gamma more. Textbook
 * costs of the usual algorithms for collectives, over one or two levels of links; never less for
 * more bytes or more ranks.
 */
#include <math.h>

#include "cost/collective_cost.h"

struct net {
    double base;        /* us before the first byte */
    double a1, b1;      /* us, us per byte: within a node */
    double a2, b2;      /* between nodes, for one rank */
    double a, b;        /* of the slowest link that a flat algorithm crosses */
    double gamma;       /* us per reduced byte */
    double p, g, nodes; /* ranks; ranks per node; nodes */
    double lg;          /* ceil(log2 p) */
    double n;           /* bytes */
    double barrier;     /* us: start and barrier of a symmetric-memory kernel */
    bool one_node;
};

static void add(struct cost_ways *out, int algo, double latency, double moving)
{
    bool symmetric = algo == TUCK_ALGO_ONE_SHOT || algo == TUCK_ALGO_TWO_SHOT;

    ways_add(out, (struct cost_way){.latency = latency,
                                    .moving = moving,
                                    .model = TUCK_MODEL_ALPHA_BETA,
                                    .algo = (uint8_t)algo,
                                    .symmetric = symmetric,
                                    .protocol = ""});
}

/* A pipeline of k blocks through `steps` stages, (steps + k)(alpha + move/k), with the best k. */
static void pipeline(const struct net *x, struct cost_ways *out, double steps, double move)
{
    double k = fmax(1, sqrt(steps * move / x->a));

    add(out, TUCK_ALGO_TREE, x->base + (steps + k) * x->a, (steps + k) * move / k);
}

static void all_reduce(const struct net *x, struct cost_ways *out)
{
    double share = (x->p - 1) / x->p;

    add(out, TUCK_ALGO_RING, x->base + 2 * (x->p - 1) * x->a, x->n * share * (2 * x->b + x->gamma));
    pipeline(x, out, 2 * x->lg, x->n * (2 * x->b + x->gamma));
    if (x->one_node) {
        add(out, TUCK_ALGO_ONE_SHOT, x->barrier, (x->p - 1) * x->n * (x->b1 + x->gamma));
        add(out, TUCK_ALGO_TWO_SHOT, 2 * x->barrier, x->n * share * (2 * x->b1 + x->gamma));
        return;
    }
    double s1 = (x->g - 1) / x->g, s2 = (x->nodes - 1) / x->nodes;
    add(out, TUCK_ALGO_HIERARCHICAL, x->base + 2 * (x->g - 1) * x->a1 + 2 * (x->nodes - 1) * x->a2,
        x->n * s1 * (2 * x->b1 + x->gamma) + x->n / x->g * s2 * (2 * x->b2 + x->gamma));
}

/* All-gather, and with gamma reduce-scatter. */
static void gather(const struct net *x, struct cost_ways *out, double gamma)
{
    double share = (x->p - 1) / x->p;

    add(out, TUCK_ALGO_RING, x->base + (x->p - 1) * x->a, x->n * share * (x->b + gamma));
    if (x->one_node) {
        add(out, TUCK_ALGO_ONE_SHOT, x->barrier, x->n * share * (x->b1 + gamma));
        return;
    }
    double s1 = (x->g - 1) / x->g, s2 = (x->nodes - 1) / x->nodes;
    add(out, TUCK_ALGO_HIERARCHICAL, x->base + (x->g - 1) * x->a1 + (x->nodes - 1) * x->a2,
        x->n * s1 * (x->b1 + gamma) + x->n / x->g * s2 * (x->b2 + gamma));
}

static void all_to_all(const struct net *x, struct cost_ways *out)
{
    double share = (x->p - 1) / x->p;

    if (x->one_node) {
        add(out, TUCK_ALGO_PAIRWISE, x->base + (x->p - 1) * x->a1, x->n * share * x->b1);
        return;
    }
    /* To ranks of the same node over one kind of link, to all others over the other. */
    double inside = (x->g - 1) / x->p;
    add(out, TUCK_ALGO_PAIRWISE, x->base + (x->p - 1) * x->a,
        x->n * (inside * x->b1 + (share - inside) * fmax(x->b1, x->b2)));
}

void hockney_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                  struct cost_ways *out)
{
    const struct cost_machine *m = &c->m;
    struct net x = {.base = m->library == LIBRARY_NCCL ? 6.6 : 2.0,
                    .a1 = m->intra.us,
                    .b1 = 1 / (1000 * m->intra.gbps),
                    .a2 = fmax(m->intra.us, m->inter.us),
                    .b2 = 1 / (1000 * m->inter.gbps),
                    .p = (double)s.p,
                    .g = (double)s.per_node,
                    .nodes = (double)s.nodes,
                    .lg = ceil(log2((double)s.p)),
                    .n = bytes,
                    .barrier = m->symmetric_us,
                    .one_node = s.nodes == 1};

    /* Reads two operands and writes one. */
    x.gamma = 3 / (1000 * m->dram * m->eff_memory);
    x.a = x.one_node ? x.a1 : x.a2;
    /* A ring over nodes: one per rail, so the ranks of a node send together. */
    x.b = x.one_node ? x.b1 : fmax(x.b1, x.b2 / x.g);
    switch (coll) {
    case TUCK_ALL_REDUCE: all_reduce(&x, out); break;
    case TUCK_ALL_GATHER: gather(&x, out, 0); break;
    case TUCK_REDUCE_SCATTER: gather(&x, out, x.gamma); break;
    case TUCK_ALL_TO_ALL:
    case TUCK_SHARD_DIM_ALLTOALL: all_to_all(&x, out); break;
    case TUCK_BROADCAST: pipeline(&x, out, x.lg, x.n * (x.one_node ? x.b1 : x.b)); break;
    case TUCK_P2P:
        add(out, TUCK_ALGO_DIRECT, x.base + x.a, x.n * (x.one_node ? x.b1 : fmax(x.b1, x.b2)));
        break;
    case TUCK_OTHER_COLLECTIVE:
    case TUCK_NESTED_COLLECTIVES: break; /* never requested: see coll_modelled() */
    }
}
