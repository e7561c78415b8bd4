/* schedule_comm_wait: moves the wait of an all-reduce, with the views of its result, right before
 * the first node that needs it. */
#include <stddef.h>
#include <stdlib.h>

#include "rewrite/ddp/block.h"
#include "rewrite/ddp/ddp.h"
#include "rewrite/ddp/ddp_passes.h"
#include "graph/storage.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

struct schedule_options {
    int compat;
};

struct schedule {
    struct pass_run *r;
    struct comm_blocks blocks;
    uint32_t *block_of; /* by node: the block whose wait or view it is, from 1 */
    bool *has_block;    /* by node: a collective with a block */
    uint32_t *limit;    /* by block: a node that the wait must not pass; 0 if none */
    struct storages s;
    uint32_t *owner; /* by storage: the one block that works on it; SHARED if several */
    uint32_t *next_touch, *next_write; /* by storage, while walking backwards */
    uint32_t node;
};

#define SHARED UINT32_MAX

static uint32_t place(const tuck_graph *g, uint32_t n)
{
    return node_at(g, n)->pos;
}

static uint32_t first_wait(const struct schedule *x, const struct comm_block *b)
{
    uint32_t first = b->node[b->first_wait];

    for (uint32_t i = 1; i < b->n_wait; i++) {
        uint32_t n = b->node[b->first_wait + i];
        if (place(x->r->g, n) < place(x->r->g, first))
            first = n;
    }
    return first;
}

/* ---- reads and writes: a transfer works on its operands until the wait ---- */

static void own(struct schedule *x, uint32_t node, uint32_t block)
{
    for (uint32_t k = 0; k < x->s.count[node]; k++) {
        uint32_t *owner = &x->owner[storage_of(&x->s, node, k)];
        *owner = *owner == 0 || *owner == block ? block : SHARED;
    }
}

/* What a block does with its own storage stays after its wait. */
static bool is_own(const struct schedule *x, uint32_t storage)
{
    return x->block_of[x->node] != 0 && x->owner[storage] == x->block_of[x->node];
}

static void meet_access(void *ctx, uint32_t storage, enum access how)
{
    struct schedule *x = ctx;

    if (how == ACCESS_WRITE && !is_own(x, storage))
        x->next_write[storage] = x->node;
}

/* A node that mentions a buffer being written, even as a view, must wait for it. */
static void meet_operands(struct schedule *x)
{
    const struct fx_node *n = node_at(x->r->g, x->node);
    uint32_t k, end;

    for (uint32_t i = 0; i < n->n_vals; i++) {
        if (n->vals[i].kind != TUCK_V_NODE)
            continue;
        for (storage_mentions(&x->s, x->node, i, &k, &end); k < end; k++) {
            uint32_t storage = storage_of(&x->s, n->vals[i].a, k);
            if (!is_own(x, storage))
                x->next_touch[storage] = x->node;
        }
    }
}

/* The first node of `next` that meets a storage of the node. */
static void limit_by(const struct schedule *x, uint32_t node, const uint32_t *next, uint32_t *limit)
{
    const tuck_graph *g = x->r->g;

    for (uint32_t k = 0; k < x->s.count[node]; k++) {
        uint32_t n = next[storage_of(&x->s, node, k)];
        if (n != 0 && (*limit == 0 || place(g, n) < place(g, *limit)))
            *limit = n;
    }
}

static void find_limit(struct schedule *x, uint32_t block)
{
    const struct comm_block *b = &x->blocks.block.at[block - 1];
    const tuck_graph *g = x->r->g;
    bool in_place = (op_at(node_op(g, b->collective))->flags & OP_F_MUTATES) != 0;
    uint32_t *limit = &x->limit[block - 1];

    for (uint32_t i = 0; i < b->n_input; i++)
        limit_by(x, b->input[i], in_place ? x->next_touch : x->next_write, limit);
    /* Nobody writes the results without using them, unless they may share with something else. */
    for (uint32_t i = b->first_wait; i < b->n_node; i++)
        limit_by(x, b->node[i], x->next_write, limit);
}

static void find_limits(struct schedule *x)
{
    const tuck_graph *g = x->r->g;
    struct arena *a = &x->r->arena;
    bool writes = false;

    for_each_node (g, n)
        writes |= node_may_write(g, n);
    if (!writes)
        return;
    storages_build(g, a, &x->s);
    size_t n_storage = (size_t)x->s.n + 1;
    x->owner = arena_zeroed(a, n_storage * sizeof(*x->owner));
    x->next_touch = arena_zeroed(a, n_storage * sizeof(*x->next_touch));
    x->next_write = arena_zeroed(a, n_storage * sizeof(*x->next_write));
    for (uint32_t i = 0; i < x->blocks.block.len; i++) {
        struct comm_block *b = &x->blocks.block.at[i];
        comm_block_inputs(x->r, b);
        for (uint32_t k = 0; k < b->n_input; k++)
            own(x, b->input[k], i + 1);
        for (uint32_t k = b->first_wait; k < b->n_node; k++)
            own(x, b->node[k], i + 1);
    }
    for (uint32_t n = g->node.at[0].prev; n != 0; n = node_at(g, n)->prev) {
        uint32_t block = x->block_of[n];
        x->node = n;
        storage_accesses(&x->s, n, meet_access, x);
        meet_operands(x);
        if (block != 0 && n == first_wait(x, &x->blocks.block.at[block - 1]))
            find_limit(x, block);
    }
}

/* ---- one block ---- */

/* The first node that uses an output of the block; 0 if none. */
static uint32_t first_user(const struct schedule *x, uint32_t block)
{
    const tuck_graph *g = x->r->g;
    const struct comm_block *b = &x->blocks.block.at[block - 1];
    uint32_t first = 0;

    for (uint32_t i = 0; i < b->n_output; i++)
        for (uint32_t u = node_at(g, b->output[i])->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            if (x->block_of[user] != block && (first == 0 || place(g, user) < place(g, first)))
                first = user;
        }
    return first;
}

struct placed {
    uint32_t place, node; /* or the number of a block */
};

static int by_place(const void *a, const void *b)
{
    uint32_t p = ((const struct placed *)a)->place, q = ((const struct placed *)b)->place;

    return p < q ? -1 : p > q;
}

/* Waits that go to the same place keep their order: blocks by their waits. */
static uint32_t *by_wait(struct schedule *x)
{
    uint32_t n = x->blocks.block.len;
    struct placed *at = arena_array(&x->r->arena, struct placed, n);
    uint32_t *block = arena_array(&x->r->arena, uint32_t, n);
    bool sorted = true;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t wait = first_wait(x, &x->blocks.block.at[i]);
        at[i] = (struct placed){place(x->r->g, wait), i};
        sorted &= i == 0 || at[i - 1].place < at[i].place;
    }
    if (!sorted)
        qsort(at, n, sizeof(*at), by_place);
    for (uint32_t i = 0; i < n; i++)
        block[i] = at[i].node;
    return block;
}

static enum left_reason move_block(struct schedule *x, uint32_t block)
{
    struct pass_run *r = x->r;
    const tuck_graph *g = r->g;
    const struct comm_block *b = &x->blocks.block.at[block - 1];
    uint32_t target = first_user(x, block), limit = x->limit[block - 1], n = 0;

    if (target == 0)
        return LEFT_PATTERN;
    if (limit != 0 && place(g, limit) < place(g, target))
        target = limit;
    struct placed *moved = arena_array(&r->arena, struct placed, b->n_node);
    for (uint32_t i = b->first_wait; i < b->n_node; i++) {
        uint32_t p = place(g, b->node[i]);
        if (target == limit && p > place(g, limit))
            return LEFT_MUTATED;
        if (p < place(g, target)) /* those after the first user stay there */
            moved[n++] = (struct placed){p, b->node[i]};
    }
    if (x->block_of[target] != 0)
        return LEFT_MUTATED;
    if (n > 1)
        qsort(moved, n, sizeof(*moved), by_place);
    for (uint32_t i = 0; i < n; i++)
        build_move(r, moved[i].node, target);
    return LEFT_END;
}

/* Counts the waits that moved. */
static uint32_t count_moved(const struct schedule *x)
{
    const tuck_graph *g = x->r->g;
    uint32_t top = 0, moved = 0;

    /* A node was overtaken if a node that was after it is before it now: only waits and their views
     * moved, and only towards the end. */
    for_each_node (g, n) {
        if (x->block_of[n] != 0 && comm_is_wait(g, n) && place(g, n) < top)
            moved++;
        if (place(g, n) > top)
            top = place(g, n);
    }
    return moved;
}

static bool raise_no_user(struct pass_run *r, uint32_t n, enum left_reason why)
{
    const char *name = graph_str(r->g, node_at(r->g, n)->name);

    if (why != LEFT_NO_WAIT)
        return true;
    pass_fail(r, n, "compat=torch: PyTorch raises StopIteration, because '%s' is not used", name);
    return false;
}

static bool report_no_block(struct pass_run *r, uint32_t n, enum left_reason why)
{
    report_left(r->report, r->g, n, why);
    return true;
}

/* Synchronous all-reduces have no wait. */
static bool is_asked_for(void *ctx, uint32_t n)
{
    struct schedule *x = ctx;

    return x->has_block[n] || !comm_starts(x->r->g, n) || block_is_all_reduce(x->r, n);
}

static tuck_status run(struct pass_run *r, const void *options)
{
    const struct schedule_options *o = options;
    bool torch = o->compat == COMPAT_TORCH;
    struct block_search how = {.want = block_is_all_reduce,
                               .left = torch ? raise_no_user : report_no_block,
                               .torch_names = torch};
    struct schedule x = {.r = r};
    const tuck_graph *g = r->g;

    if (!comm_blocks(r, &how, &x.blocks))
        return TUCK_EINVAL;
    uint32_t n = x.blocks.block.len;
    x.block_of = arena_zeroed(&r->arena, g->node.len * sizeof(*x.block_of));
    x.has_block = arena_zeroed(&r->arena, g->node.len * sizeof(*x.has_block));
    x.limit = arena_zeroed(&r->arena, n * sizeof(*x.limit));
    for (uint32_t i = 0; i < n; i++) {
        const struct comm_block *b = &x.blocks.block.at[i];
        x.has_block[b->collective] = true;
        for (uint32_t k = b->first_wait; k < b->n_node; k++)
            x.block_of[b->node[k]] = i + 1;
    }
    find_limits(&x);
    const uint32_t *order = torch ? NULL : by_wait(&x);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = torch ? k : order[k], collective = x.blocks.block.at[i].collective;
        enum left_reason why = move_block(&x, i + 1);
        if (why == LEFT_PATTERN && torch)
            return pass_fail(r, collective,
                             "compat=torch: PyTorch raises AssertionError, because the result of "
                             "'%s' is waited for and never used",
                             graph_str(g, node_at(g, collective)->name));
        if (why != LEFT_END)
            report_left(r->report, g, collective, why);
    }
    comm_leave_forms(r, TUCK_ALL_REDUCE, is_asked_for, &x);
    comm_leave_hidden(r, TUCK_ALL_REDUCE);
    uint32_t moved = count_moved(&x);
    report_count(r->report, "waits moved", moved);
    r->changed = moved > 0;
    return TUCK_OK;
}

/* Where nothing writes, only the blocks of all-reduces and their users matter. */
static tuck_part part(uint32_t op, const void *options)
{
    const struct schedule_options *o = options;
    const struct op_row *row = op_at(op);

    if (o->compat == COMPAT_TORCH || row->flags & (OP_F_MUTATES | OP_F_WALL) || row->cls == OP_HOP)
        return TUCK_PART_WHOLE;
    if (op_coll(row) == TUCK_ALL_REDUCE)
        return row->cls == OP_COLLECTIVE ? TUCK_PART_START : TUCK_PART_WHOLE;
    return row->cls == OP_WAIT || block_has_view(row) ? TUCK_PART_FOLLOW : TUCK_PART_NOTHING;
}

static const struct pass_option options[] = {
    {.name = "compat",
     .type = PASS_CHOICE,
     .at = offsetof(struct schedule_options, compat),
     .dflt = "none",
     .choices = "none|torch",
     .help = "torch: what PyTorch 2.13 does, or an error where it raises one"},
};

const struct pass pass_schedule_comm_wait = {
    .name = "schedule_comm_wait",
    .help = "move the wait of each all-reduce right before the first use of its result",
    .needs = PASS_PLACES,
    .keeps = PASS_TYPES,
    .options = PASS_OPTIONS(options),
    .options_size = sizeof(struct schedule_options),
    .on_graph = run,
    .part = part,
};
