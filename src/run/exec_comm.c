/* Collectives of a program as calls of a transport. */
#include <stdio.h>

#include "run/comm/comm_call.h"
#include "run/exec_core.h"

/* Which operators can be run, and as what. */
static const struct {
    const char *prefix;
    bool whole; /* the whole name */
} known[] = {
    {"_c10d_functional.", false},
    {"_c10d_functional_autograd.", false},
    {"c10d_functional.", false},
    {"symm_mem.one_shot_all_reduce.default", true},
    {"symm_mem.two_shot_all_reduce_.default", true},
    {"symm_mem.multimem_all_reduce_.default", true},
    {"symm_mem.multimem_one_shot_all_reduce.default", true},
    {"symm_mem._low_contention_all_gather.default", true},
    {"symm_mem._low_contention_reduce_scatter.default", true},
};

bool exec_coll_known(const struct op_row *row)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (known[i].whole ? strcmp(row->name, known[i].prefix) == 0
                           : strncmp(row->name, known[i].prefix, strlen(known[i].prefix)) == 0)
            return true;
    return false;
}

struct filling {
    struct exec *x;
    struct exec_coll *c;
    struct arena *a;
    const struct program_op *op;
    const struct fx_node *call;
    const struct op_row *row;
    struct rt_tensor *in, *out;
    uint32_t n_in, n_out;
};

/* ---- tensors ---- */

static struct rt_tensor dense_like(const struct rt_tensor *t, void *data)
{
    struct rt_tensor out = *t;
    int64_t stride = 1;

    for (uint32_t i = t->n; i > 0; i--) {
        out.stride[i - 1] = stride;
        stride *= t->size[i - 1] > 0 ? t->size[i - 1] : 1;
    }
    out.data = data;
    return out;
}

/* The copy that lowering made of this operand right before the collective; PROGRAM_NONE if none. */
static uint32_t copied_to(const struct filling *f, uint32_t from, uint32_t item)
{
    const struct program *p = f->x->p;

    for (uint32_t i = f->c->op; i > 0 && p->op[i - 1].node == f->op->node; i--) {
        const struct program_op *copy = &p->op[i - 1];
        if (copy->kind != PROGRAM_COPY || copy->from != from || copy->item != item)
            continue;
        for (uint32_t k = p->use_at[i - 1]; k < p->use_at[i]; k++)
            if (p->use[k].how == PROGRAM_WRITES)
                return p->use[k].buf;
    }
    return PROGRAM_NONE;
}

/* A tensor that is given another place: does it fit? */
static bool fits(const struct filling *f, const struct rt_tensor *t, uint32_t buf)
{
    return exec_span(t) <= f->x->place.at[buf].bytes ||
           exec_fail_at(f->x, f->op->node, "needs more memory than was planned");
}

static bool take_operand(struct filling *f, const tuck_value *v, uint32_t item,
                         struct rt_tensor *out)
{
    const struct exec_value *from = exec_operand(f->x, v);

    if (from == NULL || from[item].kind != EXEC_TENSOR)
        return exec_fail_at(f->x, f->op->node, "an operand of this collective is not a tensor");
    from += item;
    uint32_t buf = copied_to(f, v->a, item);
    *out = buf != PROGRAM_NONE ? dense_like(&from->t, f->x->place.at[buf].base) : from->t;
    return buf == PROGRAM_NONE || fits(f, out, buf);
}

/* The tensors of a parameter: one, a list, or all that one node returns. */
static bool take_operands(struct filling *f, const tuck_value *v, struct rt_tensor **out,
                          uint32_t *n)
{
    if (v == NULL)
        return exec_fail_at(f->x, f->op->node, "this collective has no operand");
    bool list = value_is_container(v), node = v->kind == TUCK_V_NODE;
    *n = list ? v->a : node && exec_value_count(f->x, v->a) > 1 ? exec_value_count(f->x, v->a) : 1;
    *out = arena_array(f->a, struct rt_tensor, (size_t)*n + 1);
    for (uint32_t i = 0; i < *n; i++)
        if (!take_operand(f, list ? value_item(v, i) : v, list ? 0 : i, &(*out)[i]))
            return false;
    return true;
}

/* What the collective works on, if it is in place: buffers in the order of the operands. */
static uint32_t worked_on(const struct filling *f, uint32_t i)
{
    const struct program *p = f->x->p;

    for (uint32_t k = p->use_at[f->c->op]; k < p->use_at[f->c->op + 1]; k++)
        if (p->use[k].how == PROGRAM_MUTATES && i-- == 0)
            return p->use[k].buf;
    return PROGRAM_NONE;
}

static bool take_results(struct filling *f)
{
    struct exec *x = f->x;
    uint32_t node = f->op->node, first = acting_result(x->g, node);
    uint32_t n = exec_value_count(x, node), at = x->p->value_at[node];
    uint32_t planned = x->p->value_at[node + 1] - at;

    f->out = arena_array(f->a, struct rt_tensor, (size_t)n + 1);
    f->n_out = 0;
    for (uint32_t k = first; k < n; k++) {
        struct exec_value *v = &x->value[x->value_at[node] + k];
        if (v->kind != EXEC_TENSOR)
            return exec_fail_at(x, node, "a result of this collective is not a tensor");
        struct rt_tensor *t = &f->out[f->n_out++];
        *t = v->t;
        uint32_t buf = k < planned ? x->p->value[at + k] : PROGRAM_NONE;
        uint32_t on = worked_on(f, k - first);
        if (buf == PROGRAM_NONE && on != PROGRAM_NONE) {
            if (!fits(f, t, on))
                return false;
            t->data = x->place.at[on].base;
        }
    }
    return true;
}

/* ---- parts ---- */

static struct comm_part part_of(const struct rt_tensor *in, const struct rt_tensor *out,
                                int64_t count)
{
    return (struct comm_part){.in = in->data, .out = out->data, .count = count, .dtype = in->dtype};
}

/* All-reduce and broadcast: lowering made them in place. */
static bool in_place(struct filling *f)
{
    bool apart = f->op->kind == PROGRAM_COLLECTIVE && f->row->cls == OP_SYNC_COLLECTIVE &&
                 !(f->row->flags & OP_F_MUTATES);

    if (!take_results(f))
        return false;
    if (apart && !take_operands(f, call_operand(f->x->g, f->call, 0), &f->in, &f->n_in))
        return false;
    if (apart && f->n_in != f->n_out)
        return exec_fail_at(f->x, f->op->node, "%u operands, but %u results", f->n_in, f->n_out);
    for (uint32_t i = 0; i < f->n_out; i++)
        f->c->part[i] = part_of(apart ? &f->in[i] : &f->out[i], &f->out[i], rt_numel(&f->out[i]));
    f->c->call.n_part = f->n_out;
    return true;
}

static bool out_of_place(struct filling *f)
{
    bool gathers = f->c->call.kind == COMM_ALL_GATHER;

    if (!take_operands(f, call_operand(f->x->g, f->call, 0), &f->in, &f->n_in) || !take_results(f))
        return false;
    if (f->n_in != f->n_out)
        return exec_fail_at(f->x, f->op->node, "%u operands, but %u results", f->n_in, f->n_out);
    for (uint32_t i = 0; i < f->n_in; i++)
        f->c->part[i] = part_of(&f->in[i], &f->out[i], rt_numel(gathers ? &f->in[i] : &f->out[i]));
    f->c->call.n_part = f->n_in;
    return true;
}

/* Rows of a tensor to and from each member, as numbers of elements. */
static bool take_split(struct filling *f, const char *name, const struct rt_tensor *t,
                       const int64_t **out, uint32_t *n)
{
    const tuck_value *v = exec_param(f->x, f->call, name);
    struct rt_value list;
    int64_t row = 1;

    *out = NULL;
    if (v == NULL || v->kind == TUCK_V_NONE)
        return true;
    if (!exec_value_list(f->x, v, f->a, &list))
        return false;
    if (list.kind != RT_LIST)
        return exec_fail_at(f->x, f->op->node, "%s must be a list", name);
    int64_t *split = arena_array(f->a, int64_t, (size_t)list.n + 1), sum = 0;
    for (uint32_t i = 1; i < t->n; i++)
        row *= t->size[i];
    for (uint32_t i = 0; i < list.n; i++) {
        if (list.item[i].kind != RT_INT || list.item[i].i < 0 ||
            !size_mul(list.item[i].i, row, &split[i]) || !size_add(sum, split[i], &sum))
            return exec_fail_at(f->x, f->op->node, "%s must be sizes", name);
    }
    if (sum != rt_numel(t))
        return exec_fail_at(f->x, f->op->node, "%s add up to %lld elements, the tensor has %lld",
                            name, (long long)sum, (long long)rt_numel(t));
    *out = split;
    *n = list.n;
    return true;
}

/* How many ranks take part, 0 if that is not known. */
static int64_t members(const struct filling *f)
{
    const struct comm *comm = f->x->o.comm;

    return comm != NULL ? comm->group[f->c->call.group].n : f->x->p->group[f->op->group].size;
}

static bool to_all(struct filling *f)
{
    uint32_t n_in = 0, n_out = 0;
    int64_t world = members(f);

    if (!out_of_place(f) || f->n_in == 0 ||
        !take_split(f, "input_split_sizes", &f->in[0], &f->c->call.in_split, &n_in) ||
        !take_split(f, "output_split_sizes", &f->out[0], &f->c->call.out_split, &n_out))
        return false;
    if ((f->c->call.in_split != NULL && world > 0 && n_in != world) || n_in != n_out)
        return exec_fail_at(f->x, f->op->node, "the numbers of split sizes do not fit the group");
    if (f->c->call.in_split == NULL && world > 0)
        f->c->part[0].count = rt_numel(&f->in[0]) / world;
    return true;
}

/* ---- sends and receives ---- */

static bool take_int(struct filling *f, const char *name, const struct rt_value *list, uint32_t i,
                     int64_t *out)
{
    const struct rt_value *v = list->kind == RT_LIST && i < list->n ? &list->item[i] : list;

    if (v->kind != RT_INT)
        return exec_fail_at(f->x, f->op->node, "%s must be a number", name);
    *out = v->i;
    return true;
}

static bool take_value(struct filling *f, const char *name, struct rt_value *out)
{
    const tuck_value *v = exec_param(f->x, f->call, name);

    *out = (struct rt_value){.kind = RT_NONE};
    return v == NULL || exec_value_list(f->x, v, f->a, out);
}

static bool one_peer(struct filling *f, uint32_t i, bool receive, const struct rt_value *peer,
                     const struct rt_value *tag)
{
    struct comm_part *p = &f->c->part[i];
    int64_t to = 0;

    *p = part_of(&f->in[i], &f->in[i], rt_numel(&f->in[i]));
    p->receive = receive;
    if (!take_int(f, "the peer", peer, i, &to) || !take_int(f, "the tag", tag, i, &p->tag))
        return false;
    if (to < 0 || to > INT32_MAX)
        return exec_fail_at(f->x, f->op->node, "rank %lld is no peer", (long long)to);
    p->peer = (int32_t)to;
    return true;
}

static bool one_way(struct filling *f)
{
    bool receive = strstr(f->row->name, ".irecv.") != NULL;
    struct rt_value peer, tag;

    f->c->call.n_part = 1;
    return take_operands(f, call_operand(f->x->g, f->call, 0), &f->in, &f->n_in) &&
           take_value(f, receive ? "src" : "dst", &peer) && take_value(f, "tag", &tag) &&
           one_peer(f, 0, receive, &peer, &tag);
}

static bool batch(struct filling *f)
{
    struct rt_value kind, peer, tag;

    if (!take_value(f, "op_list", &kind) || !take_value(f, "peer_list", &peer) ||
        !take_value(f, "tag_list", &tag) ||
        !take_operands(f, exec_param(f->x, f->call, "tensors"), &f->in, &f->n_in))
        return false;
    if (kind.kind != RT_LIST || kind.n != f->n_in)
        return exec_fail_at(f->x, f->op->node, "its lists have different lengths");
    for (uint32_t i = 0; i < f->n_in; i++)
        if (!one_peer(f, i, kind.item[i].kind == RT_STR && strcmp(kind.item[i].str, "irecv") == 0,
                      &peer, &tag))
            return false;
    f->c->call.n_part = f->n_in;
    return true;
}

/* ---- calls ---- */

static bool take_reduce(struct filling *f)
{
    const tuck_value *v = exec_param(f->x, f->call, "reduce_op");

    if (v == NULL)
        v = exec_param(f->x, f->call, "reduceOp");
    int how = v != NULL && v->kind == TUCK_V_STR ? comm_reduce_by_name(graph_str(f->x->g, v->a))
                                                 : -1;
    if (how < 0)
        return exec_fail_at(f->x, f->op->node, "this reduction cannot be run");
    f->c->call.reduce = (uint8_t)how;
    return true;
}

static bool take_root(struct filling *f)
{
    const tuck_value *v = exec_param(f->x, f->call, "src");
    struct rt_value root = {.kind = RT_INT};
    int64_t i = 0;

    if (v != NULL && !exec_value_list(f->x, v, f->a, &root))
        return false;
    if (!take_int(f, "the root", &root, 0, &i))
        return false;
    if (i < 0 || i > INT32_MAX)
        return exec_fail_at(f->x, f->op->node, "rank %lld is no root", (long long)i);
    f->c->call.root = (int32_t)i;
    return true;
}

/* Are the elements side by side? In their order; or, of a collective that keeps each in its place,
 * in another order that operand and result have in common, as images with channels last. */
static bool check_dense(struct filling *f, const struct rt_tensor *in, const struct rt_tensor *out)
{
    bool kept = f->c->call.kind == COMM_ALL_REDUCE || f->c->call.kind == COMM_BROADCAST;

    if ((rt_contiguous(in) && rt_contiguous(out)) ||
        (kept && in->data == out->data && rt_dense(in) && rt_dense(out)))
        return true;
    return exec_fail_at(f->x, f->op->node, "an operand is not contiguous");
}

/* In place, the small side lies in this rank's part of the large one (transport.h). A text that was
 * rewritten for one rank has it in that rank's part. */
static bool check_slots(const struct filling *f)
{
    const struct comm *comm = f->x->o.comm;
    const struct comm_call *c = &f->c->call;

    for (uint32_t i = 0; i < c->n_part && comm != NULL; i++) {
        const struct comm_part *p = &c->part[i];
        const struct comm_group *g = &comm->group[c->group];
        bool gathers = c->kind == COMM_ALL_GATHER;
        uintptr_t small = (uintptr_t)(gathers ? p->in : p->out);
        uintptr_t large = (uintptr_t)(gathers ? p->out : p->in);
        uintptr_t bytes = (uintptr_t)(p->count * dtype_at((enum dtype)p->dtype)->bytes);
        if (g->me >= 0 && small >= large && small - large < bytes * (uintptr_t)g->n &&
            small - large != bytes * (uintptr_t)g->me)
            return exec_fail_at(f->x, f->op->node,
                                "it works in place in the part of another rank: the graph was "
                                "rewritten for one rank; tuck optimize --rank N makes rank N's");
    }
    return true;
}

/* Whatever the annotations say: each tensor has the elements that the collective reads or writes,
 * side by side, all of one dtype. */
static bool check_counts(struct filling *f)
{
    const struct comm *comm = f->x->o.comm;
    const struct comm_call *c = &f->c->call;

    for (uint32_t i = 0; i < c->n_part && comm != NULL; i++) {
        const struct rt_tensor *in = i < f->n_in ? &f->in[i] : &f->out[i];
        const struct rt_tensor *out = i < f->n_out ? &f->out[i] : in;
        bool all = c->kind != COMM_BROADCAST && c->kind != COMM_P2P;
        int64_t reads = call_in_count(comm, c, &c->part[i]),
                writes = call_out_count(comm, c, &c->part[i]);
        if (in->dtype != out->dtype)
            return exec_fail_at(f->x, f->op->node, "its operand is %s, its result %s",
                                dtype_at((enum dtype)in->dtype)->name,
                                dtype_at((enum dtype)out->dtype)->name);
        if (reads > rt_numel(in) || writes > rt_numel(out) ||
            (all && (reads != rt_numel(in) || writes != rt_numel(out))))
            return exec_fail_at(
                f->x, f->op->node, "%lld elements for %lld are not what %lld ranks exchange",
                (long long)rt_numel(in), (long long)rt_numel(out), (long long)members(f));
        if (!check_dense(f, in, out))
            return false;
    }
    return true;
}

static bool fill(struct filling *f)
{
    switch ((tuck_coll)f->op->coll) {
    case TUCK_ALL_REDUCE: f->c->call.kind = COMM_ALL_REDUCE; return take_reduce(f) && in_place(f);
    case TUCK_BROADCAST: f->c->call.kind = COMM_BROADCAST; return take_root(f) && in_place(f);
    case TUCK_ALL_GATHER:
        f->c->call.kind = COMM_ALL_GATHER;
        return out_of_place(f) && check_slots(f);
    case TUCK_REDUCE_SCATTER:
        f->c->call.kind = COMM_REDUCE_SCATTER;
        return take_reduce(f) && out_of_place(f) && check_slots(f);
    case TUCK_ALL_TO_ALL: f->c->call.kind = COMM_ALL_TO_ALL; return to_all(f);
    case TUCK_P2P:
        f->c->call.kind = COMM_P2P;
        return f->row->shape == OP_SHAPE_batch_p2p ? batch(f) : one_way(f);
    default: return exec_fail_at(f->x, f->op->node, "this collective cannot be run");
    }
}

static uint32_t most_parts(const struct exec *x, const struct fx_node *call, uint32_t node)
{
    uint32_t n = exec_value_count(x, node);

    for (uint32_t i = 0; i < call->n_vals; i++)
        if (value_is_container(&call->vals[i]) && call->vals[i].a > n)
            n = call->vals[i].a;
    return n + 1;
}

bool exec_fill_coll(struct exec *x, struct exec_coll *c, struct arena *a)
{
    const struct program_op *op = &x->p->op[c->op];
    struct filling f = {.x = x, .c = c, .a = a, .op = op, .call = x->call[op->node]};

    f.row = op_at(f.call->op);
    c->part = arena_zeroed(a, most_parts(x, f.call, op->node) * sizeof(*c->part));
    c->call = (struct comm_call){
        .group = op->group != PROGRAM_NONE && x->o.group != NULL ? x->o.group[op->group] : -1,
        .part = c->part,
        .label = program_str(x->p, op->name)};
    if (c->call.group < 0)
        return exec_fail_at(x, op->node, "the members of its group are not known");
    return fill(&f) && check_counts(&f);
}

/* One line that all members of the group must have alike. */
static const char *describe(struct exec *x, const struct exec_coll *c, bool dynamic)
{
    const struct program_op *op = &x->p->op[c->op];
    bool reduces = c->call.kind == COMM_ALL_REDUCE || c->call.kind == COMM_REDUCE_SCATTER;
    struct buf b;

    buf_init(&b, &x->mem);
    buf_str(&b, comm_kind_name((enum comm_kind)c->call.kind));
    if (reduces)
        buf_printf(&b, " %s", comm_reduce_name((enum comm_reduce)c->call.reduce));
    for (uint32_t i = 0; i < c->call.n_part; i++) {
        buf_printf(&b, " %s", dtype_at((enum dtype)c->part[i].dtype)->abbr);
        if (!dynamic && c->call.kind != COMM_ALL_TO_ALL)
            buf_printf(&b, " %lld", (long long)c->part[i].count);
    }
    if (x->o.same_text)
        buf_printf(&b, " '%s'", program_str(x->p, op->name));
    const char *text = arena_str(&x->arena, b.at, b.len);
    buf_destroy(&b);
    return text;
}

bool exec_prepare_coll(struct exec *x, uint32_t op)
{
    uint32_t node = x->p->op[op].node;
    struct exec_coll c = {.op = op};
    bool dynamic = x->dynamic[node];
    const char *what;

    if (!dynamic && !exec_fill_coll(x, &c, &x->arena))
        return false;
    if (dynamic) {
        c.call.group = x->p->op[op].group != PROGRAM_NONE && x->o.group != NULL
                           ? x->o.group[x->p->op[op].group]
                           : -1;
        what = tuck_coll_name((tuck_coll)x->p->op[op].coll);
    } else {
        what = describe(x, &c, dynamic);
    }
    if (x->p->op[op].coll != TUCK_P2P)
        vec_push_in(&x->arena, &x->planned, ((struct comm_planned){c.call.group, what}));
    vec_push_in(&x->arena, &x->coll, c);
    x->coll_of[op] = x->coll.len;
    return true;
}
