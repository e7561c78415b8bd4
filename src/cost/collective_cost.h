/* The time of a collective: several models, and an answer with its reasons. */
#ifndef TUCK_COST_COLLECTIVE_COST_H
#define TUCK_COST_COLLECTIVE_COST_H

#include "base/units.h"
#include "cost/cluster.h"

/* One way to run a collective. */
struct cost_way {
    double latency, ramp, moving; /* us; their sum is its time */
    uint8_t model;                /* tuck_cost_model */
    uint8_t algo;                 /* tuck_algorithm */
    bool symmetric;
    const char *protocol;
};

struct cost_ways {
    struct cost_way at[TUCK_MAX_ALTERNATIVES];
    uint32_t n;
};

static inline double way_us(const struct cost_way *w)
{
    return w->latency + w->ramp + w->moving;
}

void ways_add(struct cost_ways *w, struct cost_way way);

/* Each appends the ways its model knows; none if it does not cover the case. `bytes` >= 0, s.p
 * > 1. */
void nccl_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
               struct cost_ways *out);
void hockney_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                  struct cost_ways *out);
void torch_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                struct cost_ways *out);
void torch_old_ways(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double bytes,
                    struct cost_ways *out);

/* PyTorch's estimate of the bytes that keep a link busy for the share e of the time. */
int64_t torch_saturation(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double e);

/* Choices besides size and group. */
struct cost_choice {
    tuck_cost_model model;
    bool symmetric, hierarchical;
    int64_t one_shot_bytes;
    uint8_t only; /* tuck_algorithm: this one, where the group can run it; 0: the best */
};

/* The time and the algorithm. s.p <= 1: nothing moves, time 0. The time never decreases as bytes
 * grow (except with the model TORCH, which is exactly PyTorch's). */
void cost_collective(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                     const struct cost_choice *how, tuck_collective_cost *out);
/* The time before rounding, so that what is computed from it is rounded only once, at the end. */
double cost_collective_us(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, int64_t bytes,
                          const struct cost_choice *how);

/* The smallest message for which moving bytes takes the share e of its time in the model;
 * torch_saturation() for AUTO and TORCH. */
int64_t cost_saturation(const tuck_cluster *c, struct cost_shape s, tuck_coll coll, double e,
                        const struct cost_choice *how);
#endif
