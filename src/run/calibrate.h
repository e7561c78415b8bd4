/* Measures this machine: collectives of a transport, matrix products, loops and copies. */
#ifndef TUCK_RUN_CALIBRATE_H
#define TUCK_RUN_CALIBRATE_H

#include "run/comm/launch.h"
#include "tuck_run.h"

enum {
    CAL_COLLS = 5, /* all_reduce, all_gather, reduce_scatter, all_to_all, broadcast */
    CAL_SIZES = 9, /* 256 bytes, four times as many, … 16 MiB */
    CAL_LEAST = 256,
    CAL_GEMMS = 5, /* [16, 64] [64, 64], twice as many, … [256, 1024] [1024, 1024] */
    CAL_LOOPS = 8  /* 2 KiB read and written, four times as many, … 32 MiB */
};

struct calibration {
    int world;
    bool speaks;                          /* this process has the numbers */
    double coll_ns[CAL_COLLS][CAL_SIZES]; /* of the full message, median; of the slowest rank */
    double gemm_flops;                    /* per second, f32, one core */
    double gemm64_flops;                  /* the same for f64 */
    double copy_bytes, loop_bytes;        /* read and written per second, one core, in DRAM */
    double gemm_ns[CAL_GEMMS], loop_ns[CAL_LOOPS];
    double kernel_ns;         /* the least time of a kernel */
    double beside[CAL_COLLS]; /* how many times longer products take beside a collective */
    double held[CAL_COLLS];   /* how many times longer a collective takes beside products */
    bool on_cores;            /* the transport moves bytes between kernels, not beside them */
};

tuck_coll calibrate_coll(int i);
int64_t calibrate_size(int i);
double calibrate_gemm_flops(int i);
int64_t calibrate_loop_bytes(int i);

/* out is filled on rank 0. TUCK_EINVAL: reported. */
TUCK_MUST_CHECK tuck_status calibrate(const tuck_exec_options *o, tuck_diags *diags,
                                      struct calibration *out);

#endif
