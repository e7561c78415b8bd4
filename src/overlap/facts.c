#include "overlap/overlap.h"

#include <stdlib.h>

#include "graph/groups.h"
#include "op/ops.h"

/* ---- operands and users ---- */

static void number_nodes(struct facts *f)
{
    const tuck_graph *g = f->r->g;

    vec_reserve_in(f->a, &f->place, g->node.len);
    f->place.len = g->node.len;
    memset(f->place.at, 0xFF, g->node.len * sizeof(*f->place.at));
    for_each_node (g, n) {
        f->place.at[n] = f->id.len;
        vec_push_in(f->a, &f->id, n);
    }
    f->n = f->id.len;
}

static void find_operands(struct facts *f)
{
    const tuck_graph *g = f->r->g;
    uint32_t *seen = arena_zeroed(f->a, ((size_t)f->n + 1) * sizeof(*seen));
    VEC(uint32_t) to = {0};

    f->in.start = arena_array(f->a, uint32_t, (size_t)f->n + 1);
    f->out.start = arena_zeroed(f->a, ((size_t)f->n + 2) * sizeof(*f->out.start));
    for (uint32_t i = 0; i < f->n; i++) {
        const struct fx_node *x = node_at(g, f->id.at[i]);

        f->in.start[i] = to.len;
        for (uint32_t k = 0; k < x->n_vals; k++) {
            uint32_t from = x->vals[k].kind == TUCK_V_NODE ? f->place.at[x->vals[k].a] : NO_PLACE;
            if (from == NO_PLACE || seen[from] == i + 1)
                continue;
            seen[from] = i + 1;
            f->out.start[from + 2]++;
            vec_push_in(f->a, &to, from);
        }
    }
    f->in.start[f->n] = to.len;
    f->in.to = to.at;
    f->out.to = arena_array(f->a, uint32_t, to.len);
    for (uint32_t i = 2; i < f->n + 2; i++)
        f->out.start[i] += f->out.start[i - 1];
    for (uint32_t i = 0; i < f->n; i++)
        for_fan(&f->in, i, k) f->out.to[f->out.start[f->in.to[k] + 1]++] = i;
}

/* ---- collectives ---- */

struct key {
    uint8_t kind; /* 0: cannot be merged */
    bool reduces;
    uint8_t dtype;
    str_id op;
    int32_t group;
    uint32_t coll;
};

static int by_key(const void *a, const void *b)
{
    const struct key *x = a, *y = b;

    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->kind == 0)
        return 0;
    if (x->reduces != y->reduces)
        return x->reduces ? 1 : -1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    if (x->op != y->op)
        return x->op < y->op ? -1 : 1;
    return (x->dtype > y->dtype) - (x->dtype < y->dtype);
}

/* What torch merges, by kind. */
static tuck_coll merged_kind(const struct facts *f, uint32_t n)
{
    uint32_t op = node_at(f->r->g, n)->op;

    return op == 0                                        ? (tuck_coll)0
           : op == f->op.gather || op == f->op.gather_out ? TUCK_ALL_GATHER
           : op == f->op.scatter                          ? TUCK_REDUCE_SCATTER
           : op == f->op.reduce                           ? TUCK_ALL_REDUCE
                                                          : (tuck_coll)0;
}

static void find_ops(struct facts *f)
{
    static const char gather[] = "_c10d_functional.all_gather_into_tensor.default",
                      gather_out[] = "_c10d_functional.all_gather_into_tensor_out.default",
                      scatter[] = "_c10d_functional.reduce_scatter_tensor.default",
                      reduce[] = "_c10d_functional.all_reduce.default";

    f->op.gather = op_find(gather, strlen(gather));
    f->op.gather_out = op_find(gather_out, strlen(gather_out));
    f->op.scatter = op_find(scatter, strlen(scatter));
    f->op.reduce = op_find(reduce, strlen(reduce));
}

static struct key key_of(struct facts *f, uint32_t c, int32_t group)
{
    const tuck_graph *g = f->r->g;
    uint32_t n = f->id.at[f->coll[c].start];
    const struct type *t = type_at(&g->store->type, node_type(g, n));
    struct key k = {.kind = (uint8_t)merged_kind(f, n), .group = group, .coll = c};
    const tuck_value *op = comm_operand(g, &f->r->sigs, n, "reduce_op");

    k.reduces = k.kind != TUCK_ALL_GATHER;
    k.op = op != NULL && op->kind == TUCK_V_STR ? op->a : 0;
    k.dtype = node_type(g, n) != 0 && t->kind == TYPE_TENSOR ? t->dtype : 0;
    if (k.kind == TUCK_ALL_GATHER && f->o->bucket_mode == BUCKET_MULTIDTYPE)
        k.dtype = 0;
    return k;
}

static void number_keys(struct facts *f, const int32_t *group)
{
    struct key *k = arena_array(f->a, struct key, f->n_coll);

    if (f->n_coll == 0)
        return;
    for (uint32_t c = 0; c < f->n_coll; c++) {
        k[c] = key_of(f, c, group[f->id.at[f->coll[c].start]]);
        f->coll[c].kind = k[c].kind;
    }
    qsort(k, f->n_coll, sizeof(*k), by_key);
    for (uint32_t i = 0; i < f->n_coll; i++) {
        f->n_key += i == 0 || by_key(&k[i], &k[i - 1]) != 0;
        f->coll[k[i].coll].key = f->n_key - 1;
    }
    for (uint32_t i = 0; i < f->n_coll; i++)
        if (k[i].kind != 0 && k[i].kind != TUCK_ALL_GATHER)
            k[i].kind = TUCK_ALL_REDUCE;
    qsort(k, f->n_coll, sizeof(*k), by_key);
    for (uint32_t i = 0, like = 0; i < f->n_coll; i++) {
        like += k[i].kind != 0 && (i == 0 || by_key(&k[i], &k[i - 1]) != 0);
        f->coll[k[i].coll].like = k[i].kind != 0 ? like : 0;
    }
}

/* The collective that a wait ends, through the list that it is an item of; NO_PLACE: none that
 * torch schedules. */
static uint32_t started_by(const struct facts *f, uint32_t i)
{
    const tuck_graph *g = f->r->g;
    const struct fx_node *x = node_at(g, f->id.at[i]);
    const struct op_row *row = op_at(x->op);

    if (x->kind != TUCK_CALL_FUNCTION || row->cls != OP_WAIT)
        return NO_PLACE;
    uint32_t from = call_node(g, x, 0);
    if (from != 0 && op_at(node_op(g, from))->cls == OP_GETITEM)
        from = call_node(g, node_at(g, from), 0);
    if (from == 0 || node_at(g, from)->kind != TUCK_CALL_FUNCTION ||
        (op_at(node_op(g, from))->cls != OP_COLLECTIVE && op_at(node_op(g, from))->cls != OP_P2P))
        return NO_PLACE;
    switch (op_coll(op_at(node_op(g, from)))) {
    case TUCK_ALL_REDUCE:
    case TUCK_ALL_GATHER:
    case TUCK_REDUCE_SCATTER:
    case TUCK_ALL_TO_ALL:
    case TUCK_P2P: return f->place.at[from];
    default: return NO_PLACE;
    }
}

static void add_bytes(struct facts *f, type_id id, int64_t *sum)
{
    const struct type *t = type_at(&f->r->g->store->type, id);
    int64_t bytes;

    for (uint32_t k = 0; id != 0 && t->kind == TYPE_LIST && k < t->n; k++)
        if (t->item[k] != 0 && assume_bytes(&f->r->assume, t->item[k], &bytes))
            *sum += bytes;
    if (id != 0 && t->kind == TYPE_TENSOR && assume_bytes(&f->r->assume, id, &bytes))
        *sum += bytes;
}

/* Operands and result, but not a buffer that is given for it; of an all-reduce half. PyTorch does
 * not look into a value that is a list, and without another operand it counts nothing. */
static int64_t footprint(struct facts *f, uint32_t n)
{
    const tuck_graph *g = f->r->g;
    const struct fx_node *x = node_at(g, n);
    const tuck_value *out = comm_operand(g, &f->r->sigs, n, "out");
    bool tensors = false;
    int64_t sum = 0;

    for (uint32_t k = 0; k < x->n_vals; k++) {
        type_id of = x->vals[k].kind == TUCK_V_NODE ? node_type(g, x->vals[k].a) : 0;
        if (of == 0 || &x->vals[k] == out || type_at(&g->store->type, of)->kind != TYPE_TENSOR)
            continue;
        tensors = true;
        add_bytes(f, of, &sum);
    }
    if (!tensors)
        return 0;
    add_bytes(f, node_type(g, n), &sum);
    return merged_kind(f, n) == TUCK_ALL_REDUCE ? sum / 2 : sum;
}

static tuck_status find_collectives(struct facts *f)
{
    const int32_t *group = comm_groups(f->r);
    uint32_t *number = arena_zeroed(f->a, ((size_t)f->r->g->group.len + 1) * sizeof(*number));
    VEC(struct coll) all = {0};

    f->coll_of = arena_array(f->a, uint32_t, f->n);
    memset(f->coll_of, 0xFF, f->n * sizeof(*f->coll_of));
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t start = started_by(f, i);

        if (start == NO_PLACE)
            continue;
        uint32_t n = f->id.at[start];
        if (group[n] < 0)
            return pass_fail(f->r, n, "the group of '%s' is not known",
                             graph_str(f->r->g, node_at(f->r->g, n)->name));
        f->flag[i] |= IS_WAIT;
        if (f->coll_of[start] == NO_PLACE) {
            uint32_t *no = &number[group[n]];
            struct coll c = {.start = start, .wait = i, .bytes = footprint(f, n)};

            if (*no == 0)
                *no = ++f->n_group;
            c.group = *no - 1;
            f->flag[start] |= IS_START;
            f->coll_of[start] = all.len;
            vec_push_in(f->a, &all, c);
        }
        f->coll_of[i] = f->coll_of[start];
    }
    f->coll = all.at;
    f->n_coll = all.len;
    number_keys(f, group);
    return TUCK_OK;
}

/* ---- kinds of nodes ---- */

/* By torch's tags, which are not always what the operator does. */
static bool is_cheap(const struct op_row *row)
{
    bool cheap = row->cls == OP_VIEW || row->cls == OP_POINTWISE;

    return cheap != ((row->flags & OP_F_ODD_TAGS) != 0);
}

static bool is_barred(const tuck_graph *g, const struct fx_node *x)
{
    const char *target = graph_str(g, x->target);

    return strstr(target, "c10") != NULL || strstr(target, "_dtensor") != NULL;
}

static void find_flags(struct facts *f)
{
    const tuck_graph *g = f->r->g;

    f->flag = arena_zeroed(f->a, f->n);
    for (uint32_t i = 0; i < f->n; i++) {
        const struct fx_node *x = node_at(g, f->id.at[i]);
        const struct op_row *row = op_at(node_op(g, f->id.at[i]));

        f->flag[i] |= x->kind == TUCK_PLACEHOLDER ? IS_INPUT : 0;
        f->flag[i] |= is_barred(g, x) ? IS_BARRED : 0;
        if (x->kind != TUCK_CALL_FUNCTION || x->op == 0)
            continue;
        f->flag[i] |= row->flops != OP_FLOPS_none && !(row->flags & OP_F_UNCOUNTED) ? IS_COMPUTE
                                                                                    : 0;
        f->flag[i] |= is_cheap(row) ? IS_CHEAP : 0;
    }
}

static bool has_one(const struct fan *x, uint32_t i)
{
    return x->start[i + 1] - x->start[i] == 1;
}

/* Backwards: what depends on a node is known before it. */
static void find_dependents(struct facts *f)
{
    for (uint32_t i = 0; i < f->n; i++)
        f->n_compute += (f->flag[i] & IS_COMPUTE) != 0;
    f->dom = arena_array(f->a, uint32_t, f->n);
    for (uint32_t i = f->n, next = f->n_compute; i-- > 0;) {
        f->dom[i] = NO_PLACE;
        for_fan(&f->out, i, k)
        {
            uint32_t user = f->out.to[k];
            f->dom[i] = f->dom[user] < f->dom[i] ? f->dom[user] : f->dom[i];
            f->flag[i] |= f->flag[user] & TO_SCATTER;
        }
        if (f->flag[i] & IS_COMPUTE)
            f->dom[i] = --next;
        if (merged_kind(f, f->id.at[i]) == TUCK_REDUCE_SCATTER)
            f->flag[i] |= TO_SCATTER;
        if (!has_one(&f->out, i))
            continue;
        uint32_t user = f->out.to[f->out.start[i]];
        if (has_one(&f->in, user) && ((f->flag[user] & IS_START) ||
                                      ((f->flag[user] & IS_CHEAP) && (f->flag[user] & IS_CHAIN))))
            f->flag[i] |= IS_CHAIN;
    }
}

tuck_status facts_find(struct facts *f, struct pass_run *r, const struct overlap_options *o)
{
    const tuck_graph *g = r->g;

    *f = (struct facts){.r = r, .o = o, .a = &r->arena};
    for_each_node (g, n)
        if (node_at(g, n)->kind == TUCK_OPAQUE || node_at(g, n)->kind == TUCK_RESULT)
            return pass_fail(r, n, "a statement that is not understood: nothing can be ordered");
    find_ops(f);
    number_nodes(f);
    find_operands(f);
    find_flags(f);
    tuck_status st = find_collectives(f);
    if (st != TUCK_OK)
        return st;
    find_dependents(f);
    return facts_times(f);
}
