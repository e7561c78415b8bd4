/* Constants of NCCL's tuner, which PyTorch's estimate uses too. */
#ifndef TUCK_COST_NCCL_MODEL_H
#define TUCK_COST_NCCL_MODEL_H

#include <stdint.h>

enum nccl_algo { NCCL_TREE, NCCL_RING, N_NCCL_ALGO };
enum nccl_proto { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, N_NCCL_PROTO };
enum nccl_hw { NCCL_NVLINK, NCCL_PCI, NCCL_NET };

extern const char *const nccl_proto_name[N_NCCL_PROTO];

/* us: before the first step; per step */
extern const double nccl_base_lat[N_NCCL_ALGO][N_NCCL_PROTO];
extern const double nccl_hw_lat[3][N_NCCL_ALGO][N_NCCL_PROTO];

/* GB/s, by generation (Volta … Blackwell) and nodes (1, 2, more) */
extern const double nccl_ll_max[4][3];
extern const double nccl_ring_ll128_max[4][3]; /* per channel, also the next two */
extern const double nccl_tree_ll128_max[4][3];
extern const double nccl_tree_max[4][3];
extern const int nccl_channels[4];

enum { N_TREE_CORRECTION = 24 };
/* Bandwidth of a tree, by log2 of the message in units of 64 bytes. */
extern const double nccl_tree_correction[N_NCCL_PROTO][N_TREE_CORRECTION];

/* Index of the three columns above. */
static inline int nccl_column(int64_t nodes)
{
    return nodes <= 2 ? (int)nodes - 1 : 2;
}

#endif
