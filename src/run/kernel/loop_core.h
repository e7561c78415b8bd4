/* Between loop*.c: the parts of a loop. */
#ifndef TUCK_RUN_KERNEL_LOOP_CORE_H
#define TUCK_RUN_KERNEL_LOOP_CORE_H

#include "run/kernel/loop.h"
#include "run/kernel/prog.h"

enum {
    PART_NODES = 48, /* more would not fit into the tables of prog_run() */
    PART_MEMS = 256,
    PART_VALUES = 1024,
    PART_WIDTH = 16384, /* elements of a row: more would not stay in a cache */
};

/* At which points of the space a node's results are. */
enum level {
    LEVEL_FULL,   /* at all */
    LEVEL_ROW,    /* one for each point of the outer dimensions */
    LEVEL_COLUMN, /* one for each point of the inner dimensions; known after the last tile only */
};

/* Nodes that run together. Dimensions are listed from the innermost on, without those of size 1;
 * the first `inner` are those that rows are reduced over, or that columns have. */
struct part {
    uint32_t *at; /* its nodes */
    uint32_t n;
    bool alone; /* one node that runs by its kernel */
    int dims, inner;
    int64_t size[RT_DIMS];
    struct prog *prog; /* NULL: node by node */
};

/* A result of a node: where it lies. */
struct made {
    const char *begin, *end;
    uint32_t node, out;
};

struct loop {
    struct loop_node *node;
    uint32_t n;
    struct part *part;
    uint32_t n_part;
    uint32_t *part_of; /* by node */
    uint8_t *level;    /* by node: enum level */
    struct made *made; /* by address */
    uint32_t n_made;
    uint64_t *needed; /* by node, bit by result: other parts read it */
    size_t scratch, room;
    uint32_t kept;
};

/* in loop_map.c */

/* Steps in bytes of a tensor in the dimensions `size`, innermost first, if it has an element for
 * each point of them in the same order. */
bool map_tensor(const struct rt_tensor *t, const int64_t *size, int n, int64_t *step);
/* t with the sizes of `like`, to which it broadcasts. */
struct rt_tensor map_broadcast(const struct rt_tensor *t, const struct rt_tensor *like);
/* Result `out` of the node in the space of its part. */
bool map_result(const struct loop *l, const struct part *p, uint32_t node, uint32_t out,
                struct prog_mem *m);
/* Tensor operand i of the node in the space of its part. */
bool map_operand(const struct loop *l, const struct part *p, uint32_t node, uint32_t i,
                 struct prog_mem *m);
/* The result that begins where t does or that t lies in; NULL if nobody here makes it. */
const struct made *map_made(const struct loop *l, const struct rt_tensor *t);
bool map_same(const struct part *p, const struct prog_mem *a, const struct prog_mem *b);

/* in loop_part.c: joins nodes to parts. */
void part_all(struct loop *l, struct arena *a);
/* Operands that are tensors of elements: the first ones of a call. */
uint32_t part_operands(const struct rt_call *c);

/* The reduction that a call is, if a loop can run it. */
struct folding {
    enum reduce_op op;
    enum kind kind;
    bool variance;
    double divide; /* 0: not divided */
};
bool part_folding(const struct rt_call *c, struct folding *f);
/* How many of the operand's dimensions are reduced, the last ones (a row) or the first (columns);
 * false: others. */
bool part_reduced(const struct rt_call *c, int *last, int *first);

/* in loop_emit.c: the program of a part; NULL if it runs node by node. */
struct prog *emit_part(const struct loop *l, const struct part *p, struct arena *a);

#endif
