/* The time of a collective exactly as PyTorch's Inductor computes it: its comm_analysis of 2026 and
 * the version before. Oddities (an all-to-all costed as an all-reduce, a tree whose bandwidth rises
 * in steps, so that a larger message may be faster) are kept: this model is for comparison with
 * PyTorch only.
 */
#include <math.h>

#include "cost/collective_cost.h"
#include "cost/nccl_model.h"

static int log2_floor(double v)
{
    return v >= 1 ? (int)floor(log2(v)) : 0;
}

static double steps_of(tuck_coll coll, double p)
{
    switch (coll) {
    case TUCK_ALL_REDUCE:
    case TUCK_ALL_TO_ALL:
    case TUCK_SHARD_DIM_ALLTOALL: return 2 * (p - 1);
    case TUCK_P2P: return 1;
    default: return p - 1;
    }
}

/* PyTorch assumes that groups are consecutive ranks. */
static double nodes_of(const tuck_cluster *c, struct cost_shape s)
{
    return ceil((double)s.p / (double)c->per_node);
}

static double bus_of(const struct cost_machine *m, double nodes, double bytes)
{
    if (nodes <= 1)
        return m->intra.gbps;
    double gbps = m->inter.gbps * (0.77 + 0.23 * fmin(1, (nodes - 1) / 7));
    if (nodes > 2)
        gbps *= pow(fmax(bytes, 5e7) / 5e7, 0.17);
    return gbps;
}

static void one(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes, int algo,
                int proto, struct cost_ways *out)
{
    const struct cost_machine *m = &c->m;
    double p = (double)s.p, nodes = nodes_of(c, s), bus = bus_of(m, nodes, bytes);
    int gen = m->generation, column = nccl_column((int64_t)nodes), row = nodes > 1 ? 0 : gen;
    bool ar = coll == TUCK_ALL_REDUCE, is_tree = algo == NCCL_TREE;

    if (proto == NCCL_LL128 && nodes > 1)
        return;
    if (proto == NCCL_LL)
        bus = fmin(nccl_ll_max[row][column], is_tree ? bus / 3.8 : 0.5 * bus);
    if (proto == NCCL_LL128 && !is_tree)
        bus = fmin(bus * 120 / 128, nccl_channels[gen] * nccl_ring_ll128_max[gen][column]);
    if (proto == NCCL_LL128 && is_tree)
        bus = fmin(bus * (nodes > 1 ? 120.0 / 128 : 7.0 / 9),
                   nccl_channels[gen] * nccl_tree_ll128_max[gen][column]);
    if (proto == NCCL_SIMPLE && is_tree && ar)
        bus = fmin(0.92 * bus, nccl_channels[gen] * nccl_tree_max[gen][column]);

    double steps = steps_of(coll, p), gbps = is_tree ? 0.5 * bus : bus * p / steps;
    /* For several nodes it assumes NVLink inside a node. */
    double intra = nccl_hw_lat[m->nvlink || nodes > 1 ? NCCL_NVLINK : NCCL_PCI][algo][proto];
    double inter = nccl_hw_lat[NCCL_NET][algo][proto];
    if (nodes > 1)
        intra = fmax(intra, proto == NCCL_SIMPLE ? 3 : 1);
    double lat = nccl_base_lat[algo][proto];
    if (is_tree) {
        lat += 2 * ((floor(p / nodes) - 1) * intra + log2_floor(nodes) * inter);
        int k = log2_floor(floor(bytes / 64));
        if (k < N_TREE_CORRECTION)
            gbps *= nccl_tree_correction[proto][k];
    } else {
        double n_inter = nodes > 1 ? (ar ? 2 : 1) * (nodes - 1) : 0;
        lat += (steps - n_inter) * intra + n_inter * inter;
    }
    ways_add(out, (struct cost_way){.latency = lat,
                                    .moving = bytes / (1000 * gbps),
                                    .model = TUCK_MODEL_TORCH,
                                    .algo = is_tree ? TUCK_ALGO_TREE : TUCK_ALGO_RING,
                                    .protocol = nccl_proto_name[proto]});
}

void torch_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                struct cost_ways *out)
{
    if (coll == TUCK_BROADCAST) { /* it has no model for broadcast: time 0 */
        ways_add(out, (struct cost_way){.model = TUCK_MODEL_TORCH, .algo = TUCK_ALGO_LIBRARY});
        return;
    }
    /* Trees first: of two equal times the first is kept. */
    for (int algo = coll == TUCK_ALL_REDUCE ? NCCL_TREE : NCCL_RING; algo < N_NCCL_ALGO; algo++)
        for (int proto = 0; proto < N_NCCL_PROTO; proto++)
            one(c, s, coll, bytes, algo, proto, out);
}

void torch_old_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                    struct cost_ways *out)
{
    enum { GPUS_PER_NODE = 8, CHANNELS = 2, INTRA_GBPS = 300, INTER_GBPS = 25 };
    bool ar = coll == TUCK_ALL_REDUCE;
    double p = (double)s.p, nodes = ceil(p / GPUS_PER_NODE), steps = steps_of(coll, p);
    int row = nodes > 1 ? 0 : c->m.generation;
    double share = nodes > 1 || ar ? 0.25 : 1.0 / 3;
    double bus = fmin(nccl_ll_max[row][nccl_column((int64_t)nodes)],
                      CHANNELS * (nodes > 1 ? INTER_GBPS : INTRA_GBPS) * share);
    double n_inter = nodes <= 1 ? 0 : ar ? 2 * nodes : coll == TUCK_P2P ? 1 : nodes - 1;
    double intra = fmax(0.6, nodes > 1 ? 1.0 : 0);

    if (coll == TUCK_BROADCAST) {
        ways_add(out, (struct cost_way){.model = TUCK_MODEL_TORCH_OLD, .algo = TUCK_ALGO_LIBRARY});
        return;
    }
    /* Bytes become GiB while the bandwidth stays in GB/s, as in PyTorch. */
    ways_add(out, (struct cost_way){.latency = 6.6 + (steps - n_inter) * intra + n_inter * 2.7,
                                    .moving = bytes / 1073741824 / (bus * p / steps) * 1e6,
                                    .model = TUCK_MODEL_TORCH_OLD,
                                    .algo = TUCK_ALGO_RING,
                                    .protocol = "LL"});
}

int64_t torch_saturation(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double e)
{
    static const struct profile {
        double bus, hop, base, floor; /* GB/s, us, us, bytes */
    } nvlink[4] = {{14, 50, 10, 0}, {22, 45, 10, 0}, {36, 40, 10, 0}, {60, 30, 10, 0}},
      ib[2] = {{11, 14, 30, 75 * 1048576.0}, {22, 12, 30, 100 * 1048576.0}}, pcie = {10, 60, 15, 0};
    const struct profile *x = &pcie;
    double steps = coll == TUCK_ALL_REDUCE ? 2 * ((double)s.p - 1) : (double)s.p - 1;

    if (s.p <= 1)
        return 0;
    if (nodes_of(c, s) > 1)
        x = &ib[c->m.generation >= 2];
    else if (c->m.nvlink)
        x = &nvlink[c->m.generation];
    double bytes = trunc(e / (1 - e) * (x->base + steps * x->hop) * 1e-6 * x->bus * 1e9);
    return (int64_t)fmax(bytes, x->floor);
}
