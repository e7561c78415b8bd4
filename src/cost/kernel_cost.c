#include "cost/kernel_cost.h"

#include <math.h>

#include "cost/profile.h"
#include "graph/groups.h"
#include "graph/message.h"
#include "infer/infer.h"

enum { NOT_ASKED = -2, UNKNOWN = -1 };

const char *cost_bound_name(enum cost_bound b)
{
    static const char *const names[] = {"nothing", "compute", "memory", "kernel", "collective",
                                        "nested",  "profile", "caller", "unknown"};

    return names[b];
}

/* ---- sizes ---- */

/* Elements in memory: a dimension of stride 0 repeats one element. */
static int64_t tensor_bytes(struct cost_run *r, const struct type *t)
{
    int64_t n = dtype_at((enum dtype)t->dtype)->bytes;

    for (uint32_t i = 0; i < t->n; i++) {
        int64_t size, stride;
        if (!assume_value(r->assume, t->size[i], &size))
            return UNKNOWN;
        if (t->strided && size > 0 && sym_as_int(&r->g->store->sym, t->stride[i], &stride) &&
            stride == 0)
            continue;
        if (size < 0 || !size_mul(n, size, &n))
            return UNKNOWN;
    }
    return n;
}

/* Sum over the items of a list, which must have been computed. */
static int64_t list_bytes(const struct cost_run *r, const struct type *t)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < t->n; i++)
        if (r->bytes[t->item[i]] < 0 || !size_add(sum, r->bytes[t->item[i]], &sum))
            return UNKNOWN;
    return sum;
}

static int64_t type_bytes(struct cost_run *r, type_id id)
{
    const struct typetab *types = &r->g->store->type;

    if (r->bytes[id] != NOT_ASKED)
        return r->bytes[id];
    r->todo.len = 0;
    vec_push(r->mem, &r->todo, id);
    while (r->todo.len > 0) { /* lists may hold lists */
        type_id top = r->todo.at[r->todo.len - 1];
        const struct type *t = type_at(types, top);
        uint32_t before = r->todo.len;

        for (uint32_t i = 0; t->kind == TYPE_LIST && i < t->n; i++)
            if (r->bytes[t->item[i]] == NOT_ASKED)
                vec_push(r->mem, &r->todo, t->item[i]);
        if (r->todo.len > before)
            continue;
        r->todo.len--;
        switch (t->kind) {
        case TYPE_TENSOR: r->bytes[top] = tensor_bytes(r, t); break;
        case TYPE_LIST: r->bytes[top] = list_bytes(r, t); break;
        case TYPE_NONE:
        case TYPE_SYM: r->bytes[top] = 0; break;
        default: r->bytes[top] = UNKNOWN; break;
        }
    }
    return r->bytes[id];
}

int64_t cost_result_bytes(struct cost_run *r, uint32_t n)
{
    return type_bytes(r, node_type(r->g, n));
}

/* ---- kernels ---- */

static enum cost_rate rate_of(enum dtype d)
{
    const struct dtype_row *row = dtype_at(d);

    if (row->category == DTYPE_IS_COMPLEX)
        return row->bytes > 8 ? RATE_F64 : RATE_F32;
    return row->bytes >= 8   ? RATE_F64
           : row->bytes == 4 ? RATE_F32
           : row->bytes == 2 ? RATE_F16
                             : RATE_F8;
}

int64_t cost_kernel_ps(const tuck_cluster *c, enum dtype dtype, double flops, double bytes,
                       enum cost_bound *bound_out)
{
    const struct cost_machine *m = &c->m;
    int rate = rate_of(dtype);

    if (flops <= 0 && bytes <= 0) {
        *bound_out = BOUND_NOTHING;
        return 0;
    }
    while (rate > RATE_F64 && !(m->peak[rate] * m->eff[rate] > 0))
        rate--; /* not supported in hardware: computed in the next wider type */
    double compute = flops <= 0            ? 0
                     : c->gemm[rate].n > 0 ? 1000 * table_time(&c->gemm[rate], flops)
                                           : flops / (1000 * m->peak[rate] * m->eff[rate]);
    double memory = bytes <= 0       ? 0
                    : c->loops.n > 0 ? 1000 * table_time(&c->loops, bytes)
                                     : bytes / (m->dram * m->eff_memory),
           least = 1000 * m->kernel_us;
    *bound_out = least >= compute && least >= memory ? BOUND_KERNEL
                 : compute >= memory                 ? BOUND_COMPUTE
                                                     : BOUND_MEMORY;
    return ps_round(fmax(least, fmax(compute, memory)) * PS_PER_NS);
}

/* Adds, and stays unknown once unknown. */
static void add_bytes(int64_t *sum, int64_t more)
{
    if (*sum < 0 || more < 0 || !size_add(*sum, more, sum))
        *sum = UNKNOWN;
}

static uint32_t next_stamp(struct cost_run *r)
{
    while (r->mark.len < r->g->node.len)
        vec_push(r->mem, &r->mark, 0);
    return ++r->stamp;
}

static bool is_out(const struct op_param *p)
{
    return p != NULL && p->mutated && p->kwarg_only;
}

/* Every tensor among the operands, once each: the bytes read from it and written to it. */
static int64_t operand_bytes(struct cost_run *r, const struct fx_node *x, const struct op_sig *sig,
                             enum op_moves rule, int64_t result)
{
    uint32_t stamp = next_stamp(r);
    struct operand o = {.v = NULL};
    int64_t sum = 0, largest = 0;

    while (operand_next(r->g, x, sig, &o)) {
        bool written = o.param != NULL && o.param->mutated;
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *v = o.v; v < end; v++) {
            if (v->kind != TUCK_V_NODE || r->mark.at[v->a] == stamp)
                continue;
            int64_t b = cost_result_bytes(r, v->a);
            r->mark.at[v->a] = stamp;
            if (rule == OP_MOVES_picked && operand_is(&o, sig, 0) && b >= 0 && result >= 0 &&
                b > result)
                b = result;
            if (written && rule == OP_MOVES_placed)
                continue;
            if (!(written && (is_out(o.param) || rule == OP_MOVES_over)))
                add_bytes(&sum, b);
            if (written)
                add_bytes(&sum, b);
            else if (b > largest)
                largest = b;
        }
    }
    if (rule == OP_MOVES_placed)
        add_bytes(&sum, largest);
    return sum;
}

/* Results that are not aliases of operands. */
static int64_t fresh_bytes(struct cost_run *r, uint32_t n, const struct op_sig *sig)
{
    const struct type *t = type_at(&r->g->store->type, node_type(r->g, n));
    int64_t sum = 0;

    if (sig == NULL)
        return cost_result_bytes(r, n);
    if (sig->n_results == 0 || (sig->n_results == 1 && op_result_alias_of(sig, 0) >= 0))
        return 0;
    if (sig->n_results == 1 || t->kind != TYPE_LIST || t->n != sig->n_results)
        return cost_result_bytes(r, n);
    for (uint32_t i = 0; i < t->n; i++)
        if (op_result_alias_of(sig, i) < 0)
            add_bytes(&sum, type_bytes(r, t->item[i]));
    return sum;
}

/* Is it free: a reshape of contiguous memory, or a conversion to the same type? */
static bool is_free(struct cost_run *r, uint32_t n)
{
    const struct fx_node *x = acting_call(r->g, n, &r->arena);
    const struct typetab *types = &r->g->store->type;

    if (call_node(r->g, x, 0) == 0)
        return false;
    type_id from = node_type(r->g, call_node(r->g, x, 0)), to = node_type(r->g, n);
    const struct type *a = type_at(types, from), *b = type_at(types, to);
    if (from == to)
        return true;
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->dtype != b->dtype ||
        a->device != b->device || !a->strided)
        return false;
    int64_t want = 1;
    for (uint32_t i = a->n; i > 0; i--) {
        int64_t size, stride;
        if (!assume_value(r->assume, a->size[i - 1], &size) ||
            !assume_value(r->assume, a->stride[i - 1], &stride) || (size != 1 && stride != want) ||
            !size_mul(want, size > 0 ? size : 1, &want))
            return false;
    }
    return true;
}

static int64_t moved_bytes(struct cost_run *r, uint32_t n, const struct op_row *row)
{
    const struct fx_node *x = acting_call(r->g, n, &r->arena);
    const struct op_sig *sig = sigs_get(&r->sigs, acting_op(r->g, n));
    int64_t result, sum;

    switch ((enum op_moves)row->moves) {
    case OP_MOVES_none: return 0;
    case OP_MOVES_maybe:
        if (is_free(r, n))
            return 0;
        sum = cost_result_bytes(r, n); /* the signature declares a view, but here it is a copy */
        add_bytes(&sum, operand_bytes(r, x, sig, OP_MOVES_all, sum));
        return sum;
    case OP_MOVES_out: return cost_result_bytes(r, n);
    default: break;
    }
    result = fresh_bytes(r, n, sig);
    sum = operand_bytes(r, x, sig, (enum op_moves)row->moves, result);
    /* A number: nothing was read, so nothing is written. */
    if (row->cls == OP_SCALAR && sum == 0)
        return 0;
    add_bytes(&sum, result);
    return sum;
}

/* ---- collectives ---- */

tuck_coll cost_coll_of(const struct op_row *row)
{
    bool moves = row->moves == OP_MOVES_message || row->moves == OP_MOVES_gathered ||
                 row->moves == OP_MOVES_scattered;

    return moves ? coll_priced_as(op_coll(row)) : (tuck_coll)0;
}

static void collective_part(struct cost_run *r, uint32_t n, const struct op_row *row,
                            struct cost_part *out)
{
    out->coll = (uint8_t)cost_coll_of(row);
    out->group = r->node_group != NULL ? r->node_group[n] : group_of(r->g, n);
    out->bound = BOUND_UNKNOWN;
    out->ps = UNKNOWN;
    if (out->group < 0 || r->group[out->group].p < 1)
        return;
    struct cost_shape s = r->group[out->group];
    int64_t bytes = message_bytes(r->g, n, s.p, &r->sigs, r->assume, &r->arena);
    double us, flops;
    enum dtype dtype;
    enum cost_bound bound;
    if (bytes < 0 || !cost_flops(r, n, row, &flops, &dtype))
        return;
    struct cost_choice how = r->options.collective;
    if (row->flags & OP_F_ONE_SHOT)
        how.only = TUCK_ALGO_ONE_SHOT;
    us = cost_collective_us(r->c, s, (tuck_coll)out->coll, bytes, &how);
    const struct cost_fit *fit = laws_find(&r->options.laws, out->coll,
                                           graph_str(r->g, r->g->group.at[out->group].name));
    if (fit != NULL && how.only == 0) /* measured of the library */
        us = fit_us(fit, (double)bytes, us);
    out->bytes = bytes;
    out->flops = flops;
    out->bound = BOUND_COLLECTIVE;
    /* A matrix product fused with a collective runs at the same time. */
    int64_t product = cost_kernel_ps(r->c, dtype, flops, 0, &bound);
    out->ps = ps_round(us * PS_PER_US);
    if (out->ps < product)
        out->ps = product;
}

/* ---- nodes ---- */

/* How often a call runs its graph: once per slice for map and scan, -1 if unknown. A while loop
 * counts as one trip; cost/assumed.h reports that. */
static int64_t runs_of(struct cost_run *r, const struct fx_node *x, const struct op_row *row)
{
    const tuck_value *v = row->shape == OP_SHAPE_map_hop    ? call_operand(r->g, x, 1)
                          : row->shape == OP_SHAPE_scan_hop ? call_operand(r->g, x, 2)
                                                            : NULL;
    int64_t steps;

    if (v == NULL)
        return 1;
    while (value_is_container(v) && v->a > 0)
        v++;
    const struct type *t = type_at(&r->g->store->type,
                                   v->kind == TUCK_V_NODE ? node_type(r->g, v->a) : 0);
    if (t->kind != TYPE_TENSOR || t->n == 0 || !assume_value(r->assume, t->size[0], &steps))
        return -1;
    return steps;
}

/* For branches the most expensive one; otherwise all, one after the other. */
static void nested_part(struct cost_run *r, uint32_t n, const struct op_row *row,
                        struct cost_part *out)
{
    const struct fx_node *x = node_at(r->g, n);
    int64_t runs = runs_of(r, x, row);

    out->bound = BOUND_NESTED;
    for (uint32_t i = 0; i < x->n_vals; i++) {
        const tuck_graph *child = x->vals[i].kind == TUCK_V_NODE ? child_of(r->g, x->vals[i].a)
                                                                 : NULL;
        if (child == NULL)
            continue;
        const struct cost_inside *in = &r->inside[r->child[child->name]];
        if (in->ps < 0 || runs < 0) {
            *out = (struct cost_part){.ps = UNKNOWN, .bound = BOUND_UNKNOWN, .group = -1};
            return;
        }
        if (row->moves == OP_MOVES_branches && in->ps <= out->ps)
            continue;
        if (row->moves == OP_MOVES_branches)
            out->ps = out->comm_ps = 0;
        out->bytes = row->moves == OP_MOVES_branches ? 0 : out->bytes;
        out->ps = ps_add(out->ps, ps_times(in->ps, runs));
        out->comm_ps = ps_add(out->comm_ps, ps_times(in->comm_ps, runs));
        out->bytes += in->bytes;
    }
}

static void model_part(struct cost_run *r, uint32_t n, struct cost_part *out)
{
    const struct fx_node *x = node_at(r->g, n);
    const struct op_row *row = op_at(acting_op(r->g, n));
    enum cost_bound bound;
    enum dtype dtype;

    *out = (struct cost_part){.group = -1};
    if (x->kind != TUCK_CALL_FUNCTION && x->kind != TUCK_CALL_METHOD &&
        x->kind != TUCK_CALL_MODULE && x->kind != TUCK_OPAQUE)
        return;
    if (cost_coll_of(row) != 0) {
        collective_part(r, n, row, out);
        return;
    }
    if (row->moves == OP_MOVES_nested || row->moves == OP_MOVES_trips ||
        row->moves == OP_MOVES_branches) {
        nested_part(r, n, row, out);
        return;
    }
    out->bytes = moved_bytes(r, n, row);
    if (out->bytes < 0 || !cost_flops(r, n, row, &out->flops, &dtype)) {
        *out = (struct cost_part){.ps = UNKNOWN, .bound = BOUND_UNKNOWN, .group = -1};
        return;
    }
    out->ps = cost_kernel_ps(r->c, dtype, out->flops, (double)out->bytes, &bound);
    out->bound = (uint8_t)bound;
}

bool cost_takes_none(const tuck_graph *g, uint32_t n)
{
    const struct fx_node *x = node_at(g, n);
    const struct op_row *row = op_at(node_op(g, n));

    if (x->kind != TUCK_CALL_FUNCTION && x->kind != TUCK_CALL_METHOD)
        return x->kind == TUCK_PLACEHOLDER || x->kind == TUCK_GET_ATTR || x->kind == TUCK_OUTPUT;
    return node_op(g, n) != 0 && row->moves == OP_MOVES_none && cost_coll_of(row) == 0 &&
           row->cls != OP_HOP;
}

/* A time that overrides the model's. False: there is none. */
static bool told(struct cost_run *r, uint32_t n, int64_t otherwise_ps, int64_t *ps,
                 enum cost_bound *bound)
{
    const struct str *name = str_at(&r->g->store->str, node_at(r->g, n)->name);

    if (r->options.estimate != NULL) {
        *ps = r->options.estimate(r->options.estimate_ctx, r->g, (tuck_node){n}, otherwise_ps);
        *bound = BOUND_CALLER;
        if (*ps >= 0)
            return true;
    }
    *bound = BOUND_PROFILE;
    return r->options.profile != NULL && !cost_takes_none(r->g, n) &&
           profile_find(r->options.profile, name->at, name->len, ps);
}

void cost_node(struct cost_run *r, uint32_t n, struct cost_part *out)
{
    enum cost_bound bound;
    int64_t ps;

    model_part(r, n, out);
    if ((r->options.estimate != NULL || r->options.profile != NULL) &&
        told(r, n, out->ps, &ps, &bound)) {
        double share = out->ps > 0 ? (double)out->comm_ps / (double)out->ps : 0;
        out->comm_ps = ps_round((double)ps * share);
        out->ps = ps;
        out->bound = (uint8_t)bound;
    }
}

/* ---- graphs ---- */

void cost_run_init(struct cost_run *r, struct mem *m, const tuck_cluster *c,
                   const struct cost_options *options, struct assume *assume)
{
    *r = (struct cost_run){.mem = m, .c = c, .assume = assume};
    if (options != NULL)
        r->options = *options;
    arena_init(&r->arena, m);
    sigs_init(&r->sigs, m);
}

void cost_run_done(struct cost_run *r)
{
    vec_free(r->mem, &r->mark);
    vec_free(r->mem, &r->seen);
    vec_free(r->mem, &r->base);
    vec_free(r->mem, &r->read_stamp);
    vec_free(r->mem, &r->read);
    vec_free(r->mem, &r->outside);
    vec_free(r->mem, &r->todo);
    vec_free(r->mem, &r->nest);
    sigs_destroy(&r->sigs);
    arena_destroy(&r->arena);
}

static void enter(struct cost_run *r, const tuck_graph *g, struct cost_inside *inside)
{
    r->g = g;
    r->inside = inside;
    for (uint32_t i = 0; i < g->child.len; i++)
        r->child[g->child.at[i]->name] = i;
    r->group = arena_array(&r->arena, struct cost_shape, g->group.len);
    for (uint32_t i = 0; i < g->group.len; i++)
        r->group[i] = shape_of_group(r->c, graph_str(g, g->group.at[i].name), g->group.at[i].size,
                                     g->group.at[i].ranks);
}

static struct cost_inside inside_of(struct cost_run *r)
{
    struct cost_inside sum = {.ps = 0};

    for_each_node (r->g, n) {
        struct cost_part part;
        cost_node(r, n, &part);
        if (part.ps < 0)
            return (struct cost_inside){.ps = UNKNOWN};
        sum.ps = ps_add(sum.ps, part.ps);
        sum.comm_ps = ps_add(sum.comm_ps, part.coll != 0 ? part.ps : part.comm_ps);
        if (part.coll != 0 || part.comm_ps > 0)
            add_bytes(&sum.bytes, part.bytes);
    }
    return sum;
}

void cost_run_graph(struct cost_run *r, const tuck_graph *g)
{
    r->n_bytes = g->store->type.all.len;
    r->bytes = arena_array(&r->arena, int64_t, r->n_bytes);
    for (uint32_t i = 0; i < r->n_bytes; i++)
        r->bytes[i] = NOT_ASKED;
    r->child = arena_array(&r->arena, uint32_t, g->store->str.all.len);
    r->nest.len = 0;
    vec_push(r->mem, &r->nest, ((struct cost_nest){g, 0}));
    for (uint32_t i = 0; i < r->nest.len; i++) {
        const tuck_graph *x = r->nest.at[i].g;
        r->nest.at[i].first = r->nest.len;
        for (uint32_t k = 0; k < x->child.len; k++)
            vec_push(r->mem, &r->nest, ((struct cost_nest){x->child.at[k], 0}));
    }
    struct cost_inside *inside = arena_array(&r->arena, struct cost_inside, r->nest.len);
    for (uint32_t i = r->nest.len; i > 0; i--) { /* children before their callers */
        enter(r, r->nest.at[i - 1].g, inside + r->nest.at[i - 1].first);
        r->node_group = i == 1 ? groups_of_nodes(g, &r->arena) : NULL;
        if (i > 1)
            inside[i - 1] = inside_of(r);
    }
}
