#include "rewrite/ddp/block.h"

#include "rewrite/comm_order.h"

bool block_is_all_reduce(struct pass_run *r, uint32_t n)
{
    return comm_kind(r->g, n) == TUCK_ALL_REDUCE && comm_starts(r->g, n) &&
           !call_is_wrapper(node_at(r->g, n)) &&
           comm_operand(r->g, &r->sigs, n, "group_name") != NULL;
}

bool block_is_plain_all_reduce(struct pass_run *r, uint32_t n, bool *in_place)
{
    const struct op_sig *sig = sigs_get(&r->sigs, node_op(r->g, n));

    if (!block_is_all_reduce(r, n) || sig->params[0].depth > 0)
        return false;
    *in_place = sig->params[0].mutated;
    return true;
}

uint32_t block_only_user(const tuck_graph *g, uint32_t n)
{
    uint32_t user = 0;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        if (user != 0 && g->use.at[u].user != user)
            return 0;
        user = g->use.at[u].user;
    }
    return user;
}

static bool picks(const tuck_graph *g, uint32_t n)
{
    return op_at(node_op(g, n))->form == OP_FORM_GETITEM;
}

/* A wait of one tensor. */
static bool waits_for_one(struct pass_run *r, uint32_t n)
{
    return comm_is_wait(r->g, n) && !call_is_wrapper(node_at(r->g, n)) &&
           sigs_get(&r->sigs, node_op(r->g, n))->params[0].depth == 0;
}

static bool starts_with(const char *s, const char *prefix)
{
    return strncmp(s, prefix, strlen(prefix)) == 0;
}

static bool named_as_view(const char *name)
{
    return starts_with(name, "split") || starts_with(name, "reshape") ||
           starts_with(name, "getitem") || starts_with(name, "detach") ||
           starts_with(name, "alias");
}

bool block_has_view(const struct op_row *row)
{
    if (row->form == OP_FORM_GETITEM)
        return true;
    if (row->cls != OP_VIEW || row->flags & OP_F_MUTATES)
        return false;
    return row->shape == OP_SHAPE_split || row->shape == OP_SHAPE_reshape ||
           row->shape == OP_SHAPE_view || row->shape == OP_SHAPE_alias;
}

static bool is_view_like(const tuck_graph *g, uint32_t n, bool torch_names)
{
    return torch_names ? named_as_view(graph_str(g, node_at(g, n)->name))
                       : block_has_view(op_at(node_op(g, n)));
}

/* The waits; if the collective has several results, each wait follows a getitem. */
static enum left_reason find_waits(struct pass_run *r, struct block_room *f, uint32_t collective,
                                   bool torch_names, uint32_t *first_wait)
{
    const tuck_graph *g = r->g;
    const struct fx_node *x = node_at(g, collective);
    struct arena *a = &r->arena;
    uint32_t only = block_only_user(g, collective), picked;

    if (x->use_first == 0)
        return LEFT_NO_WAIT;
    *first_wait = 1;
    if (only != 0 && waits_for_one(r, only)) {
        vec_push_in(a, &f->node, only);
        return LEFT_END;
    }
    if (torch_names && only != 0)
        return LEFT_WAITS;
    for (uint32_t u = x->use_first; u != 0; u = g->use.at[u].next) {
        if (!picks(g, g->use.at[u].user))
            return LEFT_WAITS;
        vec_push_in(a, &f->node, g->use.at[u].user);
    }
    picked = f->node.len;
    *first_wait = picked;
    for (uint32_t i = 1; i < picked; i++) {
        uint32_t wait = block_only_user(g, f->node.at[i]);
        if (wait == 0 && node_at(g, f->node.at[i])->use_first == 0)
            return LEFT_NO_WAIT;
        if (wait == 0 || !waits_for_one(r, wait))
            return LEFT_WAITS;
        vec_push_in(a, &f->node, wait);
    }
    return LEFT_END;
}

static void find_views(struct pass_run *r, struct block_room *f, uint32_t from, bool torch_names)
{
    const tuck_graph *g = r->g;
    uint32_t block = f->node.at[0];

    for (uint32_t i = from; i < f->node.len; i++) {
        bool used_outside = false;

        for (uint32_t u = node_at(g, f->node.at[i])->use_first; u != 0; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            if (!is_view_like(g, user, torch_names)) {
                used_outside = true;
            } else if (f->seen[user] != block) {
                f->seen[user] = block;
                vec_push_in(&r->arena, &f->node, user);
            }
        }
        if (used_outside)
            vec_push_in(&r->arena, &f->output, f->node.at[i]);
    }
}

void comm_block_inputs(struct pass_run *r, struct comm_block *b)
{
    const tuck_graph *g = r->g;
    const struct fx_node *x = node_at(g, b->collective);
    const struct op_sig *sig = sigs_get(&r->sigs, node_op(g, b->collective));
    uint32_t *input = arena_array(&r->arena, uint32_t, x->n_vals);
    struct operand o = {.v = NULL};

    b->n_input = 0;
    while (operand_next(g, x, sig, &o)) {
        if (o.param == NULL || o.param->type != OP_T_TENSOR)
            continue;
        for (const tuck_value *v = o.v, *end = value_next(o.v); v < end; v++)
            if (v->kind == TUCK_V_NODE)
                input[b->n_input++] = v->a;
    }
    b->input = input;
}

/* A copy in the arena, as long as it must be. */
static const uint32_t *kept(struct arena *a, const uint32_t *at, uint32_t n)
{
    return n > 0 ? memcpy(arena_array(a, uint32_t, n), at, n * sizeof(*at)) : NULL;
}

struct block_room block_room(struct pass_run *r)
{
    return (struct block_room){.seen = arena_zeroed(&r->arena, r->g->node.len * sizeof(uint32_t))};
}

enum left_reason comm_block(struct pass_run *r, uint32_t collective, bool torch_names,
                            struct block_room *f, struct comm_block *out)
{
    struct arena *a = &r->arena;
    uint32_t first_wait;

    f->node.len = f->output.len = 0;
    vec_push_in(a, &f->node, collective);
    enum left_reason why = find_waits(r, f, collective, torch_names, &first_wait);
    if (why != LEFT_END)
        return why;
    uint32_t n_wait = f->node.len - first_wait;
    find_views(r, f, first_wait, torch_names);
    *out = (struct comm_block){.collective = collective,
                               .node = kept(a, f->node.at, f->node.len),
                               .n_node = f->node.len,
                               .first_wait = first_wait,
                               .n_wait = n_wait,
                               .output = kept(a, f->output.at, f->output.len),
                               .n_output = f->output.len};
    return LEFT_END;
}

bool comm_blocks(struct pass_run *r, const struct block_search *how, struct comm_blocks *out)
{
    struct block_room room = block_room(r);

    for_each_node (r->g, n) {
        struct comm_block b;

        if (!how->want(r, n))
            continue;
        enum left_reason why = comm_block(r, n, how->torch_names, &room, &b);
        if (why == LEFT_END)
            vec_push_in(&r->arena, &out->block, b);
        else if (how->left != NULL && !how->left(r, n, why))
            return false;
    }
    return true;
}
