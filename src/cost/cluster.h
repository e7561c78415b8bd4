/* A machine: its device, its links, measurements on it, and how groups are placed on it. */
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

/* A device from devices.def, with changes from a cluster file. */
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
    double kernel_us;    /* minimum time of a kernel */
    double symmetric_us; /* start and barrier of a symmetric-memory kernel */
};

enum cost_where { LINK_INTRA, LINK_INTER };

/* A group as a cluster file describes it. */
struct cost_group {
    const char *name;
    int64_t size, stride;
};

/* One number of "slowdown": how much kernels of a class slow down while a collective runs. */
struct cost_slowdown {
    const char *cls; /* a class from ops.def: "gemm" */
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
        [2]; /* by enum cost_where: the link is the device's own, so its measurements apply */
    VEC(struct cost_table) table; /* first those of a cluster file, then the built-in ones */
    /* by enum cost_rate: measured products, operations instead of bytes; n is 0: none */
    struct cost_table gemm[N_RATE];
    struct cost_table
        loops; /* measured loops and copies, by bytes read and written; n is 0: none */
    VEC(struct cost_group) group;
    VEC(struct cost_slowdown) slowdown; /* from a cluster file */
    /* by tuck_coll: how much longer a collective takes while a kernel runs; 0: no longer */
    double transfer_slowdown[TUCK_OTHER_COLLECTIVE];
    /* without those: how much longer kernels take while a collective runs; 0 if unknown */
    double beside;
    int64_t launch_ps; /* host time per kernel; used by the simulator */
    bool assumed;      /* chosen by tuck_cluster_for_graph(), not by the user */
    bool unfused;      /* every op is a kernel of its own, as in eager mode */
    bool on_cores;     /* the cores that compute also move bytes: nothing hides communication */
};

/* How a group is placed: p ranks on `nodes` nodes, at most per_node on one. */
struct cost_shape {
    int64_t p, nodes, per_node;
};

static inline enum cost_where shape_link(struct cost_shape s)
{
    return s.nodes > 1 ? LINK_INTER : LINK_INTRA;
}

/* For p ranks, `stride` apart; for given global ranks. */
struct cost_shape shape_of_stride(const tuck_cluster *c, int64_t p, int64_t stride);
struct cost_shape shape_of_members(const tuck_cluster *c, const int64_t *rank, int64_t p);
/* For the group that a graph calls `name`: its members if known, else what a cluster file says
 * about it, else consecutive ranks. size 0 means unknown; unless the file gives it, all ranks of
 * the machine are assumed. */
struct cost_shape shape_of_group(const tuck_cluster *c, const char *name, int64_t size,
                                 const int64_t *members);
/* Is the size of that group assumed? */
bool shape_is_assumed(const tuck_cluster *c, const char *name, int64_t size);

/* While a collective of that kind runs, kernels of that class take this many times as long; default
 * 1. */
double cluster_slowdown(const tuck_cluster *c, const char *cls, int coll);
/* While a kernel runs on one of its ranks, a collective of that kind takes this many times as long;
 * default 1. */
double cluster_transfer_slowdown(const tuck_cluster *c, int coll);

struct json_out;
/* "slowdown" of a cluster file: factors by kind of collective, the same for all kernels. */
void slowdown_json(struct json_out *j, const tuck_coll *kind, const double *factor, uint32_t n);

/* For code that makes clusters. When memory runs out, these jump to c->mem's guard. */
tuck_cluster *cluster_new(const tuck_allocator *alloc); /* NULL if out of memory */
const struct cost_machine *machine_at(enum cost_device d);
bool device_find(const char *name, size_t len, enum cost_device *out);
void cluster_set_device(tuck_cluster *c, enum cost_device d);
void cluster_add_table(tuck_cluster *c, struct cost_table t); /* also smooths and fits it */
void cluster_set_gemm(tuck_cluster *c, enum cost_rate rate, struct cost_table t);
void cluster_set_loops(tuck_cluster *c, struct cost_table t);
/* adds built-in tables and the name */
void cluster_finish(tuck_cluster *c);

/* Splits "h100x8x4" into its parts. False: not a valid name. */
bool cluster_parse_name(const char *name, enum cost_device *d, int64_t *per_node, int64_t *nodes);

#endif
