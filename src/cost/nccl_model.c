/* NCCL's own formulas: a latency and a bandwidth for every algorithm and protocol, from which its
 * tuner takes the best. The topology search that yields channels and their speed is replaced by two
 * rules that reproduce what NCCL 2.27 logged on H100 nodes (tests/unit/test_cost.c has those
 * numbers): a ring over several nodes runs at the combined sending rate of the ranks of one node,
 * and has at most two channels per rank.
 *
 * In addition there are corrections measured on multi-node Hopper (published by AutoParallel):
 * until messages are large, steps are slower and bandwidth is lower than the tuner assumes. They
 * are tables over log2 of the bytes per rank, interpolated geometrically between entries; no entry
 * is more than twice its left neighbor, so the time never decreases as messages grow.
 */
#include "cost/nccl_model.h"

#include <math.h>

#include "cost/collective_cost.h"

const char *const nccl_proto_name[N_NCCL_PROTO] = {"LL", "LL128", "SIMPLE"};

const double nccl_base_lat[N_NCCL_ALGO][N_NCCL_PROTO] = {{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}};

const double nccl_hw_lat[3][N_NCCL_ALGO][N_NCCL_PROTO] = {
    {{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}},
    {{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}},
    {{5.0, 8.5, 14.0}, {2.7, 4.0, 14.0}},
};

const double nccl_ll_max[4][3] = {{39, 39, 20.4}, {87.7, 22.5, 19.0}, {141, 45, 35}, {282, 90, 70}};
const double nccl_ring_ll128_max[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 36.7}, {40, 40, 40}};
const double nccl_tree_ll128_max[4][3] = {
    {20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29.0}, {55.6, 31.67, 20.0}};
const double nccl_tree_max[4][3] = {
    {26.5, 18.5, 10.0}, {24.0, 23.6, 17.8}, {38.7, 41.4, 36.0}, {70.0, 42.8, 24.0}};
const int nccl_channels[4] = {2, 8, 16, 32};

const double nccl_tree_correction[N_NCCL_PROTO][N_TREE_CORRECTION] = {
    {1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
    {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
    {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
     .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9},
};

/* ---- corrections ---- */

/* A share of the bandwidth, by log2 of the bytes per rank in units of 64. It is 1 before `first`
 * and after the last entry. */
struct ramp {
    int first, n;
    double at[24];
};

static const struct ramp nvls_tree_ramp = {8, 8, {.10, .10, .15, .28, .41, .55, .72, .88}};
static const struct ramp ring_ramp = {11, 8, {.10, .18, .30, .43, .63, .55, .78, .93}};
static const struct ramp mesh_ramp = {0, 24, {.01, .02, .03, .06, .10, .16, .25, .36,
                                              .68, .68, .68, .68, .68, .68, .68, .68,
                                              .68, .68, .79, .87, .87, .87, .87, .87}};
static const struct ramp all_to_all_ramp = {
    8, 10, {.28, .28, .35, .43, .62, .71, .82, .89, .92, .95}};

static double ramp_entry(const struct ramp *r, int i)
{
    if (i >= r->first + r->n)
        return 1;
    if (i < r->first)
        return r->first == 0 ? r->at[0] : 1;
    return r->at[i - r->first];
}

/* Entries for the ring, stronger beyond 4 nodes. */
static double ring_entry(int i, double nodes)
{
    double left = 1, v = 1;

    for (int k = ring_ramp.first - 1; k <= i; k++) {
        v = ramp_entry(&ring_ramp, k);
        if (nodes > 4 && v < 1)
            v = pow(v, 1 + 0.2 * (log2(nodes) - 2));
        if (v > 2 * left)
            v = 2 * left;
        left = v;
    }
    return v;
}

static double units_of(double bytes, int64_t p)
{
    double x = log2(bytes / (double)p / 64);

    return x > 0 ? x : 0;
}

static double between(double low, double high, double x)
{
    return low * pow(high / low, x);
}

static double ramp_at(const struct ramp *r, double bytes, int64_t p)
{
    double x = units_of(bytes, p);
    int i = x < 60 ? (int)x : 60;

    return between(ramp_entry(r, i), ramp_entry(r, i + 1), x - i);
}

static double tree_correction(int proto, double bytes)
{
    double x = units_of(bytes, 1);
    int i = x < 60 ? (int)x : 60;
    const double *t = nccl_tree_correction[proto];

    return between(i < N_TREE_CORRECTION ? t[i] : 1, i + 1 < N_TREE_CORRECTION ? t[i + 1] : 1,
                   x - i);
}

/* ---- algorithms ---- */

struct setting {
    const tuck_cluster *c;
    struct cost_shape s;
    tuck_coll coll;
    double bytes;
    int gen, column, channels;
    double p, nodes;
};

enum { NET_SHARE_PERCENT = 96 }; /* share of a NIC's rate that NCCL assumes */

/* What the ranks of one node can send together, at most what one rank can send at all. */
static double bus_gbps(const struct setting *x, bool twice)
{
    double intra = x->c->m.intra.gbps;

    if (x->s.nodes == 1)
        return intra;
    double out = x->c->m.inter.gbps * NET_SHARE_PERCENT / 100 * (double)x->s.per_node;
    return fmin(intra, twice ? 2 * out : out);
}

/* Latency of a step within a node and between nodes. A cluster file's `us` scales NCCL's value for
 * that kind of link. */
static void step_lat(const struct setting *x, int algo, int proto, double *intra, double *inter)
{
    const struct cost_machine *m = &x->c->m;
    int hw = m->nvlink ? NCCL_NVLINK : NCCL_PCI;
    double overhead = x->s.nodes == 1 || algo == NCCL_TREE ? 0 : proto == NCCL_SIMPLE ? 3 : 1;

    *intra = nccl_hw_lat[hw][algo][proto] * m->intra.us / nccl_hw_lat[hw][NCCL_RING][NCCL_LL];
    *intra = fmax(*intra, overhead);
    /* With one rank per node, no other rank's step hides the network's. */
    *inter = nccl_hw_lat[NCCL_NET][x->s.per_node == 1 ? NCCL_TREE : algo][proto];
    *inter *= m->inter.us / nccl_hw_lat[NCCL_NET][NCCL_RING][NCCL_LL];
}

static bool is_hopper(const struct setting *x)
{
    return x->gen >= 2 && x->c->m.nvlink;
}

static void add(const struct setting *x, int algo, const char *proto, double lat, double gbps,
                struct cost_ways *out)
{
    ways_add(out, (struct cost_way){.latency = lat,
                                    .moving = x->bytes / (1000 * gbps),
                                    .model = TUCK_MODEL_NCCL,
                                    .algo = (uint8_t)algo,
                                    .protocol = proto});
}

static void ring(const struct setting *x, int proto, struct cost_ways *out)
{
    bool ar = x->coll == TUCK_ALL_REDUCE, multi = x->s.nodes > 1;
    double steps = ar ? 2 * (x->p - 1) : x->p - 1, n_inter = (ar ? 2 : 1) * (x->nodes - 1);
    double bus = bus_gbps(x, false), intra, inter;

    if (proto == NCCL_LL)
        bus = fmin(nccl_ll_max[multi ? 0 : x->gen][x->column], 0.5 * bus);
    if (proto == NCCL_LL128)
        bus = fmin(0.92 * bus, x->channels * nccl_ring_ll128_max[x->gen][x->column]);
    step_lat(x, NCCL_RING, proto, &intra, &inter);
    double lat = nccl_base_lat[NCCL_RING][proto] + (steps - n_inter) * intra + n_inter * inter;
    /* A broadcast passes data on: every byte crosses each link once. */
    double gbps = x->coll == TUCK_BROADCAST ? bus : bus * x->p / steps;
    if (multi && ar) {
        if (proto == NCCL_SIMPLE && x->bytes / (x->channels * x->p) >= 64)
            lat *= x->gen == 0 ? 1.9 : 1.4;
        lat += 4.7 * x->nodes * (x->nodes > 4 ? pow(x->nodes / 4, 0.65) : 1);
        double u = units_of(x->bytes, x->s.p);
        int i = u < 60 ? (int)u : 60;
        gbps *= between(ring_entry(i, x->nodes), ring_entry(i + 1, x->nodes), u - i);
    } else if (multi && x->coll != TUCK_BROADCAST && is_hopper(x) &&
               x->s.per_node == x->c->per_node) {
        gbps *= ramp_at(&mesh_ramp, x->bytes, x->s.p);
    }
    add(x, TUCK_ALGO_RING, nccl_proto_name[proto], lat, gbps, out);
}

static void tree(const struct setting *x, int proto, struct cost_ways *out)
{
    bool multi = x->s.nodes > 1;
    double bus = bus_gbps(x, x->s.nodes == 2), intra, inter;

    bus = fmin(0.92 * bus, x->channels * nccl_tree_max[x->gen][x->column]);
    if (proto == NCCL_LL)
        bus = fmin(bus / 3.8, nccl_ll_max[multi ? 0 : x->gen][x->column]);
    if (proto == NCCL_LL128)
        bus = fmin(bus * (multi ? 120.0 / 128 : 7.0 / 9),
                   x->channels * nccl_tree_ll128_max[x->gen][x->column]);
    step_lat(x, NCCL_TREE, proto, &intra, &inter);
    double per_node = floor(x->p / x->nodes);
    double lat = nccl_base_lat[NCCL_TREE][proto] +
                 2 * ((per_node - 1) * intra + floor(log2(x->nodes)) * inter);
    add(x, TUCK_ALGO_TREE, nccl_proto_name[proto], lat,
        0.5 * 0.85 * bus * tree_correction(proto, x->bytes), out);
}

/* Trees over the switches of Hopper nodes, as logged by NCCL 2.27: GB/s per rank of a node, for 2
 * and more nodes. */
static void nvls_tree(const struct setting *x, struct cost_ways *out)
{
    double per_node = (double)x->s.per_node;
    double gbps = x->s.nodes > 2 ? 20 * per_node : fmin(40 * per_node, 266.7);

    if (x->s.nodes < 2 || x->s.per_node < 4 || !is_hopper(x))
        return;
    gbps *= x->c->m.inter.gbps / 50 * ramp_at(&nvls_tree_ramp, x->bytes, x->s.p);
    add(x, TUCK_ALGO_TREE, "NVLS", 25 + 2 * floor(log2(x->nodes)) * 14, gbps, out);
}

static void all_to_all(const struct setting *x, struct cost_ways *out)
{
    static const double at[][2] = {{2, 37}, {4, 42}, {8, 60}, {16, 98}, {32, 290}};
    const struct cost_machine *m = &x->c->m;
    double lat, gbps;

    if (x->s.nodes > 1) {
        size_t k = 0, n = sizeof(at) / sizeof(*at);
        while (k + 2 < n && at[k + 1][0] < x->nodes)
            k++;
        lat = at[k][1] +
              (x->nodes - at[k][0]) * (at[k + 1][1] - at[k][1]) / (at[k + 1][0] - at[k][0]);
        double share = ramp_at(&all_to_all_ramp, x->bytes, x->s.p);
        if (x->nodes > 2)
            share = 1 - (1 - share) / log2(x->nodes);
        /* Only what leaves the node counts. */
        gbps = m->inter.gbps * (1 - 0.44 / x->nodes) * share * x->p /
               (x->p - (double)x->s.per_node);
    } else if (is_hopper(x)) {
        lat = 50;
        gbps = x->gen == 2 ? 380.0 / 370 * m->intra.gbps : 675.0 / 720 * m->intra.gbps;
    } else {
        lat = nccl_base_lat[NCCL_RING][NCCL_SIMPLE] + (x->p - 1) * 3.4;
        gbps = 0.7 * m->intra.gbps;
    }
    add(x, TUCK_ALGO_PAIRWISE, "SIMPLE", lat, gbps, out);
}

static void p2p(const struct setting *x, struct cost_ways *out)
{
    const struct cost_machine *m = &x->c->m;
    double gbps = x->s.nodes > 1 ? m->inter.gbps * NET_SHARE_PERCENT / 100 : m->intra.gbps;

    for (int proto = 0; proto < N_NCCL_PROTO; proto += NCCL_SIMPLE) {
        double intra, inter, speed = gbps;
        step_lat(x, NCCL_RING, proto, &intra, &inter);
        if (proto == NCCL_LL)
            speed = fmin(nccl_ll_max[x->s.nodes > 1 ? 0 : x->gen][x->column], 0.5 * gbps);
        add(x, TUCK_ALGO_DIRECT, nccl_proto_name[proto],
            nccl_base_lat[NCCL_RING][proto] + (x->s.nodes > 1 ? inter : intra), speed, out);
    }
}

void nccl_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
               struct cost_ways *out)
{
    struct setting x = {.c = c, .s = s, .coll = coll, .bytes = bytes, .gen = c->m.generation};

    if (c->m.library != LIBRARY_NCCL)
        return;
    x.p = (double)s.p;
    x.nodes = (double)s.nodes;
    x.column = nccl_column(s.nodes);
    x.channels = nccl_channels[x.gen];
    if (s.nodes > 1)
        x.channels = (int)fmin(x.channels / 2 > 1 ? x.channels / 2 : 1, 2 * (double)s.per_node);
    switch (coll) {
    case TUCK_ALL_TO_ALL:
    case TUCK_SHARD_DIM_ALLTOALL: all_to_all(&x, out); break;
    case TUCK_P2P: p2p(&x, out); break;
    default:
        for (int proto = 0; proto < N_NCCL_PROTO; proto++) {
            if (proto == NCCL_LL128 && !c->m.nvlink)
                continue;
            if (coll == TUCK_ALL_REDUCE)
                tree(&x, proto, out);
            ring(&x, proto, out);
        }
        if (coll == TUCK_ALL_REDUCE)
            nvls_tree(&x, out);
    }
}
