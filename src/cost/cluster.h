/* A machine: its device, its links, what was measured on it, how groups lie on it. */
#ifndef TUCK_COST_CLUSTER_H
#define TUCK_COST_CLUSTER_H

#include "base/arena.h"
#include "base/vec.h"
#include "op/dtype.h"
#include "cost/cost_table.h"

enum cost_device {
#define DEVICE(id, ...) DEV_##id,
#include "cost/devices.def"
#undef DEVICE
    N_DEV
};

enum cost_library { LIBRARY_NONE, LIBRARY_NCCL };

enum cost_rate { RATE_F64, RATE_F32, RATE_F16, RATE_F8, N_RATE };

struct cost_link {
    double gbps, us;
};

/* A device as devices.def has it, with what a cluster file replaced. */
struct cost_machine {
    const char *name, *what;
    uint8_t library;    /* enum cost_library */
    uint8_t generation; /* 0 Volta … 3 Blackwell */
    uint8_t per_node;
    bool nvlink;
    struct cost_link intra, inter;
    double peak[N_RATE]; /* TFLOPS */
    double dram;         /* GB/s */
    double eff[N_RATE];  /* share of the peak that a large product reaches */
    double eff_memory;
    double kernel_us;    /* no kernel is faster */
    double symmetric_us; /* a start and a barrier */
};

enum cost_where { LINK_INTRA, LINK_INTER };

/* A group as a cluster file describes it. */
struct cost_group {
    const char *name;
    int64_t size, stride;
};

/* One number of "slowdown": kernels of a class while a collective runs. */
struct cost_slowdown {
    const char *cls; /* a class of ops.def: "gemm" */
    uint8_t coll;    /* tuck_coll */
    double factor;
};

struct tuck_cluster {
    struct mem mem;
    struct arena arena;
    const char *name;
    enum cost_device device;
    struct cost_machine m;
    int64_t per_node, nodes;
    bool standard
        [2]; /* by enum cost_where: the link is the device's own, so measurements of it hold */
    VEC(struct cost_table) table; /* of a cluster file first, then the built-in ones */
    VEC(struct cost_group) group;
    VEC(struct cost_slowdown) slowdown; /* of a cluster file */
    double
        beside; /* without those: how much longer kernels take next to a collective; 0: not known */
    double launch_us; /* of the host, for each kernel; the simulator's business */
    bool assumed;     /* chosen by tuck_cluster_for_graph(), not named */
};

/* How a group lies: p ranks on `nodes` nodes, at most per_node of them on one. */
struct cost_shape {
    int64_t p, nodes, per_node;
};

static inline enum cost_where shape_link(struct cost_shape s)
{
    return s.nodes > 1 ? LINK_INTER : LINK_INTRA;
}

/* Of p ranks, `stride` apart; of those with these global ranks. */
struct cost_shape shape_of_stride(const tuck_cluster *c, int64_t p, int64_t stride);
struct cost_shape shape_of_members(const tuck_cluster *c, const int64_t *rank, int64_t p);
/* Of the group that a graph calls `name`: members if they are known, else what a cluster file
 * says of it, else consecutive ranks. size 0: unknown; unless the file gives it, all ranks of
 * the machine are assumed. */
struct cost_shape shape_of_group(const tuck_cluster *c, const char *name, int64_t size,
                                 const int64_t *members);
/* Is the size of that group such an assumption? */
bool shape_is_assumed(const tuck_cluster *c, const char *name, int64_t size);

/* While a collective of that kind runs, kernels of that class take this many
 * times as long; default 1. */
double cluster_slowdown(const tuck_cluster *c, const char *cls, int coll);

/* For readers and makers of clusters. Allocation leaves through c->mem's guard. */
tuck_cluster *cluster_new(const tuck_allocator *alloc); /* NULL on no memory */
const struct cost_machine *machine_at(enum cost_device d);
bool device_find(const char *name, size_t len, enum cost_device *out);
void cluster_set_device(tuck_cluster *c, enum cost_device d);
void cluster_add_table(tuck_cluster *c, struct cost_table t); /* smoothed and fitted here */
void cluster_finish(tuck_cluster *c);                         /* built-in tables, the name */

/* "h100x8x4" into its parts; false: no such name. */
bool cluster_parse_name(const char *name, enum cost_device *d, int64_t *per_node, int64_t *nodes);

#endif
