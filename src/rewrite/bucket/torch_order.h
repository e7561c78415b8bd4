/* Where PyTorch puts what it merges: right behind the last member, and then what is between the new
 * nodes and their operands is sorted; before anything is scheduled, all is. Until then a node may
 * come before its operands, and the next kind of collective is merged in that list. */
#ifndef TUCK_REWRITE_BUCKET_TORCH_ORDER_H
#define TUCK_REWRITE_BUCKET_TORCH_ORDER_H

#include "rewrite/bucket/bucket.h"
#include "rewrite/stable_sort.h"

struct torch_order {
    tuck_graph *g;
    struct stable_sort sort;
    VEC(uint32_t) region;
    VEC(uint32_t) list;   /* the nodes as they were before all were sorted */
    VEC(uint32_t) wanted; /* by node: the last bucket that has it as an operand */
    uint32_t n_bucket;
    bool sorted; /* the graph is in torch's order: list, sorted */
};

void torch_order_begin(struct torch_order *t, tuck_graph *g, struct arena *a);
/* Before buckets of one more kind: the list is again what it was before all were sorted. */
void torch_order_resume(struct torch_order *t);
/* b was written as the nodes first … last of the list. */
void torch_order_bucket(struct torch_order *t, const struct bucket *b, uint32_t first,
                        uint32_t last);
/* The order that torch goes on with. False: it breaks one of these edges, or there is none. */
bool torch_order_all(struct torch_order *t, const struct topo_edges *e);
/* After the last kind: leaves the list to the passes that follow, as g->loose. */
void torch_order_leave(const struct torch_order *t);

#endif
