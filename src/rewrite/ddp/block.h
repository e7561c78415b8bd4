/* Comm blocks: the nodes that belong to one communication. */
#ifndef TUCK_REWRITE_DDP_BLOCK_H
#define TUCK_REWRITE_DDP_BLOCK_H

#include "pass/pass.h"

struct comm_block {
    uint32_t collective;
    const uint32_t *input; /* tensor operands, in order, if comm_block_inputs() was asked */
    uint32_t n_input;
    /* The collective, the getitems that pick its results, the waits, then the view-like nodes after
     * them. */
    const uint32_t *node;
    uint32_t n_node;
    uint32_t first_wait, n_wait; /* the waits are node[first_wait], … */
    const uint32_t *output;      /* nodes of the block that something outside uses */
    uint32_t n_output;
};

/* What the search for one block after the other works with, in r's arena. */
struct block_room {
    uint32_t *seen; /* by node: the collective of the block that it is in */
    VEC(uint32_t) node, output;
};
struct block_room block_room(struct pass_run *r);

/* Finds the block of a collective, in r's arena. Returns LEFT_END, or the reason why there is no
 * block. torch_names: view-like nodes after a wait are recognized by their name, as in torch 2.13,
 * and not by their operator. */
enum left_reason comm_block(struct pass_run *r, uint32_t collective, bool torch_names,
                            struct block_room *room, struct comm_block *out);
void comm_block_inputs(struct pass_run *r, struct comm_block *b);

/* Does this operator return its operand's data, cut or reshaped, so that a block contains it? */
bool block_has_view(const struct op_row *row);

/* Is n an all-reduce of a process group that a wait ends: of one tensor or a list, in place or
 * not? */
bool block_is_all_reduce(struct pass_run *r, uint32_t n);
/* Is it one of a single tensor? Sets *in_place if it writes its operand. */
bool block_is_plain_all_reduce(struct pass_run *r, uint32_t n, bool *in_place);

struct comm_blocks {
    VEC(struct comm_block) block;
};

/* Finds the blocks, in the order of the graph, of all collectives that `want` accepts. Collectives
 * without a block are passed to `left`, which may be NULL; if it returns false, the search stops
 * and fails. */
struct block_search {
    bool (*want)(struct pass_run *r, uint32_t n);
    bool (*left)(struct pass_run *r, uint32_t n, enum left_reason why);
    bool torch_names;
};
bool comm_blocks(struct pass_run *r, const struct block_search *how, struct comm_blocks *out);

/* The only node that uses n, however often; 0 if none or several. */
uint32_t block_only_user(const tuck_graph *g, uint32_t n);

#endif
