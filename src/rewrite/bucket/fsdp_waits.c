/* Recognizes FSDP's communication by what feeds it and where it goes, not by names. */
#include "rewrite/bucket/bucket.h"

#define NOBODY 0
#define SEVERAL UINT32_MAX

/* By node: the one placeholder among itself and its ancestors. */
static uint32_t *sole_inputs(struct pass_run *r)
{
    const tuck_graph *g = r->g;
    uint32_t *input = arena_zeroed(&r->arena, g->node.len * sizeof(*input));

    for_each_node (g, n) {
        const struct fx_node *x = node_at(g, n);
        uint32_t one = x->kind == TUCK_PLACEHOLDER ? n : NOBODY;

        for (uint32_t i = 0; i < x->n_vals && one != SEVERAL; i++) {
            uint32_t from = x->vals[i].kind == TUCK_V_NODE ? input[x->vals[i].a] : NOBODY;
            if (from != NOBODY)
                one = one == NOBODY || one == from ? from : SEVERAL;
        }
        input[n] = one;
    }
    return input;
}

/* Does it use only one node, however often? */
static bool has_one_operand(const struct fx_node *x)
{
    uint32_t one = 0;

    for (uint32_t i = 0; i < x->n_vals; i++) {
        if (x->vals[i].kind != TUCK_V_NODE)
            continue;
        if (one != 0 && x->vals[i].a != one)
            return false;
        one = x->vals[i].a;
    }
    return one != 0;
}

/* By node: everything computed from it is returned, through nodes that use nothing else. */
static bool *only_returned(struct pass_run *r)
{
    const tuck_graph *g = r->g;
    bool *yes = arena_zeroed(&r->arena, g->node.len * sizeof(*yes));
    bool *alone = arena_zeroed(&r->arena, g->node.len * sizeof(*alone));

    for_each_node (g, n)
        alone[n] = has_one_operand(node_at(g, n));
    for (uint32_t n = node_at(g, 0)->prev; n != 0; n = node_at(g, n)->prev) {
        const struct fx_node *x = node_at(g, n);
        bool all = x->n_uses > 0;

        for (uint32_t u = x->use_first; u != 0 && all; u = g->use.at[u].next) {
            uint32_t user = g->use.at[u].user;
            all = node_at(g, user)->kind == TUCK_OUTPUT || (alone[user] && yes[user]);
        }
        yes[n] = all;
    }
    return yes;
}

static uint32_t waited_for(const tuck_graph *g, uint32_t wait)
{
    return op_at(node_op(g, wait))->cls == OP_WAIT ? call_node(g, node_at(g, wait), 0) : 0;
}

static void mark_gathers(struct pass_run *r, bool *yes)
{
    const tuck_graph *g = r->g;
    const uint32_t *input = sole_inputs(r);

    for_each_node (g, n) {
        uint32_t start = waited_for(g, n);
        yes[n] = start != 0 && comm_kind(g, start) == TUCK_ALL_GATHER && input[start] != NOBODY &&
                 input[start] != SEVERAL;
    }
}

static void mark_scatters(struct pass_run *r, bool *yes)
{
    const tuck_graph *g = r->g;
    const bool *returned = only_returned(r);

    for_each_node (g, n) {
        uint32_t start = waited_for(g, n);
        yes[n] = start != 0 && comm_kind(g, start) == TUCK_REDUCE_SCATTER && returned[n];
    }
}

static void mark_reduces(struct pass_run *r, bool *yes)
{
    const tuck_graph *g = r->g;
    const int32_t *group = comm_groups(r);
    bool *fsdp = arena_zeroed(&r->arena, (size_t)g->group.len + 1);

    mark_gathers(r, yes);
    for_each_node (g, n)
        if (yes[n])
            fsdp[group[waited_for(g, n)] + 1] = true;
    fsdp[0] = false; /* no group, or an unknown one */
    for_each_node (g, n) {
        uint32_t start = waited_for(g, n);
        yes[n] = start != 0 && comm_kind(g, start) == TUCK_ALL_REDUCE && fsdp[group[start] + 1];
    }
}

const bool *bucket_fsdp_waits(struct pass_run *r, tuck_coll kind)
{
    bool *yes = arena_zeroed(&r->arena, r->g->node.len * sizeof(*yes));

    switch (kind) {
    case TUCK_ALL_GATHER: mark_gathers(r, yes); break;
    case TUCK_REDUCE_SCATTER: mark_scatters(r, yes); break;
    case TUCK_ALL_REDUCE: mark_reduces(r, yes); break;
    default: break;
    }
    return yes;
}
