/* The cost of nodes that are fused into one loop. */
#include <math.h>

#include "cost/kernel_cost.h"
#include "cost/profile.h"
#include "infer/infer.h"

/* Makes room for a mark for every node. */
#define grow(r, v)                                                                                 \
    do {                                                                                           \
        while ((v)->len < (r)->g->node.len)                                                        \
            vec_push((r)->mem, (v), 0);                                                            \
    } while (0)

static bool is_member(const struct cost_run *r, uint32_t n)
{
    return r->mark.at[n] == r->stamp;
}

/* An alias of its operand: nothing is read or written for it. */
static bool is_view(const struct cost_run *r, uint32_t n)
{
    const struct op_row *row = op_at(node_op(r->g, n));

    return row->moves == OP_MOVES_none || row->moves == OP_MOVES_maybe;
}

/* What a member of the set reads when it uses n: n itself, or the base of the views in the set that
 * lead to n. */
static uint32_t origin(const struct cost_run *r, uint32_t n)
{
    return is_member(r, n) && is_view(r, n) ? r->base.at[n] : n;
}

static uint32_t first_operand(const struct cost_run *r, uint32_t n)
{
    return call_base(r->g, node_at(r->g, n));
}

static void add(int64_t *sum, int64_t more)
{
    if (*sum < 0 || more < 0 || !size_add(*sum, more, sum))
        *sum = -1;
}

/* Operands from outside: the bytes read from each, added up by their origin. */
static void meet_operands(struct cost_run *r, uint32_t n, int64_t *written)
{
    const struct fx_node *x = node_at(r->g, n);
    const struct op_row *row = op_at(node_op(r->g, n));
    const struct op_sig *sig = sigs_get(&r->sigs, node_op(r->g, n));
    struct operand o = {.v = NULL};

    while (operand_next(r->g, x, sig, &o)) {
        bool mutated = o.param != NULL && o.param->mutated;
        bool read = !(mutated && (o.param->kwarg_only || row->moves == OP_MOVES_over)) &&
                    row->moves != OP_MOVES_out;
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; v < end; v++) {
            if (v->kind != TUCK_V_NODE)
                continue;
            uint32_t from = origin(r, v->a);
            if (mutated)
                add(written, cost_result_bytes(r, v->a));
            if (!read || is_member(r, from) || r->seen.at[v->a] == r->stamp)
                continue;
            int64_t b = cost_result_bytes(r, v->a), result = cost_result_bytes(r, n);
            r->seen.at[v->a] = r->stamp;
            if (row->moves == OP_MOVES_picked && operand_is(&o, sig, 0) && b >= 0 && result >= 0 &&
                b > result)
                b = result;
            if (r->read_stamp.at[from] != r->stamp) {
                r->read_stamp.at[from] = r->stamp;
                r->read.at[from] = 0;
                vec_push(r->mem, &r->outside, from);
            }
            add(&r->read.at[from], b);
        }
    }
}

static bool used_outside(const struct cost_run *r, uint32_t n)
{
    const tuck_graph *g = r->g;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next)
        if (!is_member(r, g->use.at[u].user))
            return true;
    return false;
}

static int64_t loop_bytes(struct cost_run *r, const uint32_t *node, uint32_t n)
{
    int64_t sum = 0, written = 0;

    r->outside.len = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_view(r, node[i]))
            r->base.at[node[i]] = origin(r, first_operand(r, node[i]));
        else
            meet_operands(r, node[i], &written);
    }
    for (uint32_t i = 0; i < r->outside.len; i++) {
        uint32_t from = r->outside.at[i];
        int64_t whole = cost_result_bytes(r, from), seen = r->read.at[from];
        add(&sum, whole >= 0 && seen > whole ? whole : seen);
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = origin(r, node[i]);
        const struct op_row *row = op_at(node_op(r->g, from));
        if (!is_member(r, from) || r->read_stamp.at[from] == r->stamp || !used_outside(r, node[i]))
            continue;
        r->read_stamp.at[from] = r->stamp; /* written once, even if used under several names */
        if (!(row->flags & OP_F_MUTATES))
            add(&written, cost_result_bytes(r, from));
    }
    add(&sum, written);
    return sum;
}

static bool told_sum(struct cost_run *r, const uint32_t *node, uint32_t n, struct cost_part *out)
{
    const tuck_graph *g = r->g;
    bool any = false;
    int64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct str *name = str_at(&g->store->str, node_at(g, node[i])->name);
        int64_t ps = -1;
        if (r->options.estimate != NULL)
            ps = r->options.estimate(r->options.estimate_ctx, g, (tuck_node){node[i]}, out->ps);
        if (ps >= 0)
            out->bound = BOUND_CALLER;
        else if (r->options.profile != NULL && !cost_takes_none(g, node[i]) &&
                 profile_find(r->options.profile, name->at, name->len, &ps))
            out->bound = BOUND_PROFILE;
        if (ps >= 0) {
            any = true;
            sum = ps_add(sum, ps);
        }
    }
    if (any)
        out->ps = sum;
    return any;
}

void cost_loop(struct cost_run *r, const uint32_t *node, uint32_t n, struct cost_part *out)
{
    enum cost_bound bound = BOUND_UNKNOWN;
    enum dtype dtype = DTYPE_NONE;
    bool known = true;

    *out = (struct cost_part){.ps = -1, .bound = BOUND_UNKNOWN, .group = -1};
    grow(r, &r->mark);
    grow(r, &r->seen);
    grow(r, &r->base);
    grow(r, &r->read_stamp);
    grow(r, &r->read);
    r->stamp++;
    for (uint32_t i = 0; i < n; i++)
        r->mark.at[node[i]] = r->stamp;
    for (uint32_t i = 0; i < n && known; i++) {
        double flops;
        enum dtype d;
        known = cost_flops(r, node[i], op_at(node_op(r->g, node[i])), &flops, &d);
        out->flops += flops;
        if (flops > 0)
            dtype = d;
    }
    int64_t bytes = loop_bytes(r, node, n);
    if (known && bytes >= 0) {
        out->bytes = bytes;
        out->ps = cost_kernel_ps(r->c, dtype, out->flops, (double)bytes, &bound);
        out->bound = (uint8_t)bound;
    }
    if (r->options.estimate != NULL || r->options.profile != NULL)
        told_sum(r, node, n, out);
}
