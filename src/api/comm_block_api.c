/* Comm blocks in the public interface. */
#include "rewrite/comm_order.h"
#include "rewrite/ddp/block.h"
#include "tuck_experimental.h"

struct span {
    const tuck_node *at;
    size_t n;
};

struct block {
    tuck_node collective;
    struct span nodes, waits, inputs, outputs;
};

struct tuck_comm_blocks {
    struct mem mem;
    struct arena arena;
    VEC(struct block) block;
};

struct find_args {
    tuck_comm_blocks *out;
    tuck_graph *g;
    struct pass_run r;
};

static bool is_collective(struct pass_run *r, uint32_t n)
{
    return comm_starts(r->g, n) && !call_is_wrapper(node_at(r->g, n));
}

static struct span keep(struct arena *a, const uint32_t *ids, uint32_t n)
{
    tuck_node *at = arena_array(a, tuck_node, n);

    for (uint32_t i = 0; i < n; i++)
        at[i] = (tuck_node){ids[i]};
    return (struct span){at, n};
}

static void do_find(void *arg)
{
    struct find_args *x = arg;
    struct comm_blocks found = {0};
    struct arena *a = &x->out->arena;

    comm_blocks(&x->r, &(struct block_search){.want = is_collective}, &found);
    for (uint32_t i = 0; i < found.block.len; i++) {
        struct comm_block *b = &found.block.at[i];
        comm_block_inputs(&x->r, b);
        struct block kept = {.collective = {b->collective},
                             .nodes = keep(a, b->node, b->n_node),
                             .waits = keep(a, b->node + b->first_wait, b->n_wait),
                             .inputs = keep(a, b->input, b->n_input),
                             .outputs = keep(a, b->output, b->n_output)};
        vec_push_in(a, &x->out->block, kept);
    }
}

tuck_status tuck_graph_comm_blocks(const tuck_graph *g, tuck_comm_blocks **out)
{
    if (g == NULL || out == NULL)
        return TUCK_EINVAL;
    const tuck_allocator *alloc = &g->store->mem.alloc;
    tuck_comm_blocks *b = alloc->resize(alloc->ctx, NULL, 0, sizeof(*b));
    if (b == NULL)
        return TUCK_ENOMEM;
    *b = (tuck_comm_blocks){.block = {0}};
    mem_init(&b->mem, alloc);
    arena_init(&b->arena, &b->mem);
    struct find_args x = {.out = b, .r = {.mem = &b->mem}};
    memcpy(&x.r.g, &g, sizeof(g)); /* it is only read */
    arena_init(&x.r.arena, &b->mem);
    sigs_init(&x.r.sigs, &b->mem);
    bool enough = mem_guard(&b->mem, do_find, &x);
    sigs_destroy(&x.r.sigs);
    arena_destroy(&x.r.arena);
    if (!enough) {
        tuck_comm_blocks_free(b);
        return TUCK_ENOMEM;
    }
    *out = b;
    return TUCK_OK;
}

void tuck_comm_blocks_free(tuck_comm_blocks *b)
{
    if (b == NULL)
        return;
    tuck_allocator alloc = b->mem.alloc;
    arena_destroy(&b->arena);
    alloc.resize(alloc.ctx, b, sizeof(*b), 0);
}

size_t tuck_comm_blocks_count(const tuck_comm_blocks *b)
{
    return b != NULL ? b->block.len : 0;
}

tuck_node tuck_comm_block_collective(const tuck_comm_blocks *b, size_t i)
{
    return i < tuck_comm_blocks_count(b) ? b->block.at[i].collective : (tuck_node){0};
}

static const tuck_node *show(const tuck_comm_blocks *b, size_t i, size_t member, size_t *n_out)
{
    static const struct span nothing;
    const char *block = i < tuck_comm_blocks_count(b) ? (const char *)&b->block.at[i] : NULL;
    const struct span *s = block != NULL ? (const struct span *)(block + member) : &nothing;

    if (n_out != NULL)
        *n_out = s->n;
    return s->at;
}

const tuck_node *tuck_comm_block_nodes(const tuck_comm_blocks *b, size_t i, size_t *n_out)
{
    return show(b, i, offsetof(struct block, nodes), n_out);
}

const tuck_node *tuck_comm_block_waits(const tuck_comm_blocks *b, size_t i, size_t *n_out)
{
    return show(b, i, offsetof(struct block, waits), n_out);
}

const tuck_node *tuck_comm_block_inputs(const tuck_comm_blocks *b, size_t i, size_t *n_out)
{
    return show(b, i, offsetof(struct block, inputs), n_out);
}

const tuck_node *tuck_comm_block_outputs(const tuck_comm_blocks *b, size_t i, size_t *n_out)
{
    return show(b, i, offsetof(struct block, outputs), n_out);
}
