/* Collectives and waits, and the operators that prepare buffers for them. */
#include "support/sym_ops.h"

#include <string.h>

/* ---- groups ---- */

struct team { /* the group of a collective */
    int size;
    const int *ranks; /* [n_ranks][size] */
};

static bool team_operand(const struct call *c, size_t pos, struct team *out)
{
    const struct sym_world *w = c->e->w;
    const char *name;

    if (!text_operand(c, pos, "group_name", &name))
        return false;
    for (size_t i = 0; i < w->n_group && name != NULL; i++)
        if (strcmp(w->group[i].name, name) == 0) {
            *out = (struct team){w->group[i].size, w->group[i].ranks};
            return true;
        }
    return call_fail(c, "there is no group %s", name ? name : "(none)");
}

static const int *members(const struct team *t, int rank)
{
    return t->ranks + rank * t->size;
}

static int place_in(const struct team *t, int rank)
{
    for (int i = 0; i < t->size; i++)
        if (members(t, rank)[i] == rank)
            return i;
    return 0;
}

/* ---- combining ---- */

enum reduction { R_SUM, R_AVG, R_MAX, R_MIN, R_PRODUCT };

static bool reduction_operand(const struct call *c, size_t pos, enum reduction *out)
{
    static const char *const names[] = {"sum", "avg", "max", "min", "product"};
    const char *s;

    if (!text_operand(c, pos, "reduce_op", &s))
        return false;
    for (int i = 0; i < 5 && s != NULL; i++)
        if (strcmp(names[i], s) == 0) {
            *out = (enum reduction)i;
            return true;
        }
    return call_fail(c, "reduce op %s is not known here", s ? s : "(none)");
}

static uint64_t combine(enum reduction r, uint64_t a, uint64_t b)
{
    if (a == VALUE_NOTHING || b == VALUE_NOTHING)
        return VALUE_NOTHING;
    a = field_of(a);
    b = field_of(b);
    switch (r) {
    case R_MAX: return a > b ? a : b;
    case R_MIN: return a < b ? a : b;
    case R_PRODUCT: return field_mul(a, b);
    default: return field_add(a, b);
    }
}

/* ---- one collective, of any kind ---- */

enum pattern { P_REDUCE, P_GATHER, P_SCATTER, P_EXCHANGE, P_BROADCAST };

struct collective {
    enum pattern pattern;
    bool list;     /* operands and results are lists */
    bool in_place; /* the results are the operands */
    bool out;      /* the result is the operand `out` */
    bool like;     /* the result has the strides of the operand */
    enum reduction reduce;
    int64_t src;
    struct team team;
};

static bool ins_of(const struct call *c, const struct collective *k, struct value *out)
{
    struct tensor t;

    if (k->list)
        return list_operand(c, 0, "inputs", out);
    if (!tensor_operand(c, 0, "input", &t))
        return false;
    *out = list_value(c->e, 1);
    out->item[0] = tensor_value(c->e, &t);
    return true;
}

/* Where the result goes: a new tensor, unless one is given. */
static bool out_of(const struct call *c, const struct collective *k, const struct tensor *in,
                   struct tensor *out)
{
    struct tensor t = *in;

    if (k->out)
        return tensor_operand(c, BY_KEYWORD, "out", out);
    if (!k->in_place) {
        if (t.n_dim == 0 && k->pattern == P_GATHER)
            t.size[t.n_dim++] = 1;
        if (k->pattern == P_GATHER)
            t.size[0] *= k->team.size;
        if (k->pattern == P_SCATTER) {
            if (t.n_dim == 0 || t.size[0] % k->team.size != 0)
                return call_fail(c, "%lld rows for %d ranks", (long long)t.size[0], k->team.size);
            t.size[0] /= k->team.size;
        }
        /* According to PyTorch's shape rules these keep the strides of their operands. */
        bool kept = k->pattern == P_BROADCAST || (k->pattern == P_REDUCE && k->list) || k->like;
        if (!kept || !tensor_dense(&t))
            tensor_pack(&t);
        tensor_new(&c->e->pool, &t);
    }
    *out = t;
    return true;
}

/* The cells of rank r's result, from in[m], the operand of each rank m. */
static bool transfer(const struct call *c, const struct collective *k, const struct tensor *in,
                     const struct tensor *to, cell *cells)
{
    const int *who = members(&k->team, c->rank), me = place_in(&k->team, c->rank);
    int64_t n = tensor_numel(to), piece = tensor_numel(&in[c->rank]);
    struct tensor flat = *to;
    struct sym_storage room = {.at = cells, .n = n * tensor_item(to)};

    flat.st = &room;
    flat.off = 0;
    tensor_pack(&flat);
    if (k->pattern == P_GATHER    ? piece * k->team.size != n
        : k->pattern == P_SCATTER ? piece != n * k->team.size
                                  : piece != n)
        return call_fail(c, "the result has another size");
    if (k->pattern == P_EXCHANGE && (to->n_dim == 0 || to->size[0] % k->team.size != 0))
        return call_fail(c, "rows that cannot be shared out");
    int64_t share = n / k->team.size; /* P_EXCHANGE */
    for (int64_t i = 0; i < n; i++) {
        const struct tensor *from = NULL;
        int64_t at = i;
        cell one[8];

        switch (k->pattern) {
        case P_GATHER: from = &in[who[piece ? i / piece : 0]], at = piece ? i % piece : 0; break;
        case P_EXCHANGE: from = &in[who[i / share]], at = me * share + i % share; break;
        case P_BROADCAST: from = &in[who[k->src % k->team.size]]; break;
        case P_SCATTER: at = me * n + i; break;
        case P_REDUCE: break;
        }
        if (from != NULL) {
            tensor_take(from, at, one);
            tensor_put(&flat, i, one);
            continue;
        }
        uint64_t v = tensor_load(&in[who[0]], at);
        for (int m = 1; m < k->team.size; m++)
            v = combine(k->reduce, v, tensor_load(&in[who[m]], at));
        if (k->reduce == R_AVG && v != VALUE_NOTHING)
            v = field_mul(field_of(v), field_inv(field_int(k->team.size)));
        tensor_store(&flat, i, v);
    }
    return true;
}

/* `from` is read until the wait; NULL if it was copied. */
static void begin(const struct call *c, const struct tensor *from, const struct tensor *to,
                  cell *cells)
{
    struct rank_state *s = &c->e->rank[c->rank];
    struct work *w = pool_get(&c->e->pool, sizeof(*w));

    *w = (struct work){.next = s->works, .to = *to, .cells = cells, .g = c->g, .start = c->n.id};
    s->works = w;
    to->st->writes++;
    if (from != NULL && from->st != to->st) {
        w->from = from->st;
        w->from->reads++;
    }
}

static bool start(const struct call *c, const struct collective *k, struct value *out)
{
    int n = c->e->w->n_ranks;
    struct pool *p = &c->e->pool;
    struct value *ins = POOL_ARRAY(p, struct value, n);
    struct tensor *in = POOL_ARRAY(p, struct tensor, n), *to = POOL_ARRAY(p, struct tensor, n);
    cell **cells = POOL_ARRAY(p, cell *, n);

    for (int r = 0; r < n; r++) {
        if (!ins_of(&c[r], k, &ins[r]))
            return false;
        if (ins[r].n != ins[0].n)
            return call_fail(c, "ranks bring lists of different lengths");
        out[r] = list_value(c->e, ins[r].n);
    }
    for (size_t i = 0; i < ins[0].n; i++) {
        for (int r = 0; r < n; r++) {
            in[r] = *ins[r].item[i].t;
            if (in[r].dtype != in[0].dtype || in[r].cpu != ins[r].item[0].t->cpu ||
                tensor_numel(&in[r]) != tensor_numel(&in[0]))
                return call_fail(c, "ranks bring operands that differ");
            reads(&c[r], &in[r]);
            if (!out_of(&c[r], k, &in[r], &to[r]))
                return false;
            writes(&c[r], &to[r]);
            if (to[r].dtype != in[r].dtype || to[r].cpu != in[r].cpu)
                return call_fail(c, "the result has another dtype or device");
        }
        for (int r = 0; r < n; r++) {
            cells[r] = POOL_ARRAY(p, cell, tensor_numel(&to[r]) * tensor_item(&to[r]));
            if (!transfer(&c[r], k, in, &to[r], cells[r]))
                return false;
        }
        for (int r = 0; r < n; r++) {
            /* Reductions and broadcasts copy what they do not use in place. */
            bool copied = k->pattern == P_REDUCE || k->pattern == P_BROADCAST;
            begin(&c[r], copied && !k->in_place ? NULL : &in[r], &to[r], cells[r]);
            out[r].item[i] = tensor_value(c->e, &to[r]);
        }
    }
    for (int r = 0; r < n && !k->list; r++)
        out[r] = out[r].item[0];
    return true;
}

/* ---- the collectives ---- */

static bool size_matches(const struct call *c, size_t pos, const struct collective *k)
{
    int64_t size;

    if (!int_operand(c, pos, "group_size", -1, &size))
        return false;
    return size == k->team.size || call_fail(c, "the group has %d ranks", k->team.size);
}

static bool all_reduce(const struct call *c, struct collective k, struct value *out)
{
    k.pattern = P_REDUCE;
    return reduction_operand(c, 1, &k.reduce) && team_operand(c, 2, &k.team) && start(c, &k, out);
}

static bool all_gather(const struct call *c, struct collective k, struct value *out)
{
    k.pattern = P_GATHER;
    return team_operand(c, 2, &k.team) && size_matches(c, 1, &k) && start(c, &k, out);
}

static bool reduce_scatter(const struct call *c, struct collective k, struct value *out)
{
    k.pattern = P_SCATTER;
    return reduction_operand(c, 1, &k.reduce) && team_operand(c, 3, &k.team) &&
           size_matches(c, 2, &k) && start(c, &k, out);
}

static bool broadcast(const struct call *c, struct collective k, struct value *out)
{
    k.pattern = P_BROADCAST;
    return int_operand(c, 1, "src", 0, &k.src) && team_operand(c, 2, &k.team) && start(c, &k, out);
}

#define COLLECTIVE(name, fn, ...)                                                                  \
    static bool op_##name(const struct call *c, struct value *out)                                 \
    {                                                                                              \
        return fn(c, (struct collective){__VA_ARGS__}, out);                                       \
    }

COLLECTIVE(all_reduce, all_reduce, .list = false)
COLLECTIVE(all_reduce_, all_reduce, .in_place = true)
COLLECTIVE(all_reduce_coalesced, all_reduce, .list = true)
COLLECTIVE(all_reduce_coalesced_, all_reduce, .list = true, .in_place = true)
COLLECTIVE(all_gather, all_gather, .list = false)
COLLECTIVE(all_gather_out, all_gather, .out = true)
COLLECTIVE(all_gather_coalesced, all_gather, .list = true)
COLLECTIVE(reduce_scatter, reduce_scatter, .list = false)
COLLECTIVE(reduce_scatter_out, reduce_scatter, .out = true)
COLLECTIVE(reduce_scatter_coalesced, reduce_scatter, .list = true)
COLLECTIVE(broadcast, broadcast, .list = false)
COLLECTIVE(broadcast_, broadcast, .in_place = true)

/* Equal shares only. */
static bool op_all_to_all(const struct call *c, struct value *out)
{
    struct collective k = {.pattern = P_EXCHANGE};

    return team_operand(c, 3, &k.team) && start(c, &k, out);
}

/* ---- waits ---- */

static void deliver(const struct work *w)
{
    struct tensor from = w->to;
    struct sym_storage room = {.at = w->cells};

    from.st = &room;
    from.off = 0;
    tensor_pack(&from);
    for (int64_t i = 0; i < tensor_numel(&w->to); i++) {
        cell one[8];
        tensor_take(&from, i, one);
        tensor_put(&w->to, i, one);
    }
    w->to.st->writes--;
    if (w->from != NULL)
        w->from->reads--;
}

/* A list of tensors is one transfer, and a wait for one of its results waits for all: no
 * operand is read afterwards. The other results are complete, too, but may only be used after
 * their own waits. */
static void let_go(const struct call *c, const struct work *done)
{
    for (struct work *w = c->e->rank[c->rank].works; w != NULL; w = w->next)
        if (w != done && w->g == done->g && w->start == done->start && w->from != NULL) {
            w->from->reads--;
            w->from = NULL;
        }
}

/* Completes what goes into that storage; if there are several, what goes to that place, if
 * anything. */
static void finish(const struct call *c, const struct tensor *t)
{
    bool exact = false;

    for (struct work *w = c->e->rank[c->rank].works; w != NULL; w = w->next)
        exact |= w->to.st == t->st && w->to.off == t->off;
    for (struct work **at = &c->e->rank[c->rank].works; *at != NULL;) {
        struct work *w = *at;
        if (w->to.st == t->st && (!exact || w->to.off == t->off)) {
            deliver(w);
            let_go(c, w);
            *at = w->next;
        } else {
            at = &w->next;
        }
    }
}

/* A kernel over symmetric memory: over when it returns, with the strides of its operand. */
static bool op_one_shot(const struct call *c, struct value *out)
{
    struct collective k = {.like = true};

    if (!reduction_operand(c, 1, &k.reduce) || !all_reduce(c, k, out))
        return false;
    if (k.reduce != R_SUM)
        return call_fail(c, "only sums");
    for (int r = 0; r < c->e->w->n_ranks; r++)
        finish(&c[r], out[r].t);
    return true;
}

/* Returned results without a wait are waited for by the caller. */
void symeval_finish_all(struct ev *e)
{
    for (int r = 0; r < e->w->n_ranks; r++) {
        for (struct work *w = e->rank[r].works; w != NULL; w = w->next)
            deliver(w);
        e->rank[r].works = NULL;
    }
}

static bool op_wait(const struct call *c, struct value *out)
{
    struct tensor t;

    if (!tensor_operand(c, 0, "tensor", &t))
        return false;
    finish(c, &t);
    *out = tensor_value(c->e, &t);
    return true;
}

static bool op_waits(const struct call *c, struct value *out)
{
    if (!list_operand(c, 0, "tensors", out))
        return false;
    for (size_t i = 0; i < out->n; i++)
        finish(c, out->item[i].t);
    return true;
}

/* ---- buffers for them ---- */

/* One element, byte by byte unless it is converted: what it is made of stays what it was. */
static void move(const struct tensor *to, int64_t at, const struct tensor *from, int64_t i)
{
    cell one[8];

    if (from->dtype != to->dtype) {
        tensor_store(to, at, convert(tensor_load(from, i), from->dtype, to->dtype));
        return;
    }
    tensor_take(from, i, one);
    tensor_put(to, at, one);
}

static void flat_copy(const struct tensor *to, int64_t at, const struct tensor *from)
{
    for (int64_t i = 0; i < tensor_numel(from); i++)
        move(to, at + i, from, i);
}

static struct tensor row_of(int dtype, struct sym_storage *st, int64_t off, int64_t n)
{
    return (struct tensor){
        .st = st, .dtype = dtype, .n_dim = 1, .off = off, .size = {n}, .stride = {1}};
}

static bool op_pre_all_gather(const struct call *c, struct value *out)
{
    struct value ins, dtypes;
    struct tensor t = {.n_dim = 1};
    const char *python;
    int64_t group, rank, bytes = 0, at;

    if (!list_operand(c, 0, "ag_ins", &ins) || !int_operand(c, 1, "group_size", 0, &group) ||
        !text_operand(c, 2, "dtype", &python) || !operand(c, 3, "out_dtype_ints", &dtypes) ||
        !int_operand(c, 4, "rank", 0, &rank))
        return false;
    t.dtype = python ? dtype_of_python(python) : -1;
    if (t.dtype < 0 || dtypes.n != ins.n)
        return call_fail(c, "dtypes that do not fit");
    for (size_t i = 0; i < ins.n; i++) {
        int d = dtype_of_number(dtypes.item[i].i);
        if (d < 0)
            return call_fail(c, "dtype number %lld", (long long)dtypes.item[i].i);
        bytes += tensor_numel(ins.item[i].t) * symeval_dtypes[d].size;
        if (ins.item[i].t->cpu != ins.item[0].t->cpu)
            return call_fail(c, "member %zu is on another device", i);
        t.cpu = ins.item[i].t->cpu;
    }
    if (bytes % tensor_item(&t) != 0 || rank < 0 || rank >= group)
        return call_fail(c, "its share is no whole number of elements, or of no rank");
    t.size[0] = bytes / tensor_item(&t) * group;
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    at = rank * bytes;
    for (size_t i = 0; i < ins.n; i++) {
        const struct tensor *x = ins.item[i].t;
        int d = dtype_of_number(dtypes.item[i].i);
        if (at % symeval_dtypes[d].size != 0)
            return call_fail(c, "member %zu is not aligned", i);
        struct tensor to = row_of(d, t.st, at / symeval_dtypes[d].size, tensor_numel(x));
        reads(c, x);
        flat_copy(&to, 0, x);
        at += tensor_numel(x) * symeval_dtypes[d].size;
    }
    *out = tensor_value(c->e, &t);
    return true;
}

static bool op_pre_reduce_scatter(const struct call *c, struct value *out)
{
    struct value ins;
    struct tensor t = {.n_dim = 1};
    int64_t group, at = 0;

    if (!list_operand(c, 0, "rs_ins", &ins) || !int_operand(c, 1, "group_size", 0, &group))
        return false;
    for (size_t i = 0; i < ins.n; i++) {
        t.dtype = ins.item[i].t->dtype;
        t.cpu = ins.item[i].t->cpu;
        t.size[0] += tensor_numel(ins.item[i].t);
        if (t.dtype != ins.item[0].t->dtype || t.cpu != ins.item[0].t->cpu ||
            tensor_numel(ins.item[i].t) % group != 0)
            return call_fail(c, "member %zu does not fit", i);
    }
    tensor_pack(&t);
    tensor_new(&c->e->pool, &t);
    for (int64_t k = 0; k < group; k++)
        for (size_t i = 0; i < ins.n; i++) {
            const struct tensor *x = ins.item[i].t;
            int64_t n = tensor_numel(x) / group;
            reads(c, x);
            for (int64_t e = 0; e < n; e++)
                move(&t, at++, x, k * n + e);
        }
    *out = tensor_value(c->e, &t);
    return true;
}

static bool op_copy_in(const struct call *c, struct value *out)
{
    struct value ins;
    struct tensor all;
    int64_t numel, rank, at = 0;

    if (!list_operand(c, 0, "all_gather_inputs", &ins) ||
        !tensor_operand(c, 1, "all_gather_output", &all) ||
        !int_operand(c, 3, "all_gather_input_numel", 0, &numel) ||
        !int_operand(c, 4, "rank", 0, &rank))
        return false;
    struct tensor mine = row_of(all.dtype, all.st, all.off + rank * numel, numel);
    mine.cpu = all.cpu;
    writes(c, &all);
    if (!tensor_contiguous(&all) || !tensor_fits(&mine))
        return call_fail(c, "its share lies outside of the buffer");
    for (size_t i = 0; i < ins.n; i++) {
        const struct tensor *x = ins.item[i].t;
        if (at + tensor_numel(x) > numel)
            return call_fail(c, "more than its share");
        reads(c, x);
        flat_copy(&mine, at, x);
        at += tensor_numel(x);
    }
    *out = list_value(c->e, 2);
    out->item[0] = tensor_value(c->e, &mine);
    out->item[1] = tensor_value(c->e, &all);
    return true;
}

static bool op_split_copy(const struct call *c, struct value *out)
{
    struct tensor t;
    struct value outs;
    int64_t size[64], dim, at = 0;
    int n;

    (void)out;
    if (!tensor_operand(c, 0, "all_gather_output", &t) ||
        !ints_operand(c, 1, "all_gather_input_split_sizes", size, &n, 64) ||
        !int_operand(c, 2, "dim", 0, &dim) || !list_operand(c, BY_KEYWORD, "out", &outs))
        return false;
    if ((size_t)n != outs.n || dim < 0 || dim >= t.n_dim)
        return call_fail(c, "as many sizes as results are needed");
    reads(c, &t);
    for (int i = 0; i < n; i++) {
        struct tensor piece = t;
        piece.size[dim] = size[i];
        piece.off += at * t.stride[dim];
        at += size[i];
        writes(c, outs.item[i].t);
        if (!tensor_fits(&piece) || !tensor_copy(outs.item[i].t, &piece))
            return call_fail(c, "piece %d does not fit", i);
    }
    return true;
}

/* The rows of each tensor are divided into `chunks` equal parts; out[k] is part k of all of
 * them. */
static bool op_chunk_cat(const struct call *c, struct value *out)
{
    struct value ins;
    struct tensor to;
    int64_t dim, chunks, at = 0;

    (void)out;
    if (!list_operand(c, 0, "tensors", &ins) || !int_operand(c, 1, "dim", 0, &dim) ||
        !int_operand(c, 2, "num_chunks", 1, &chunks) || !tensor_operand(c, BY_KEYWORD, "out", &to))
        return false;
    writes(c, &to);
    for (int64_t k = 0; k < chunks; k++)
        for (size_t i = 0; i < ins.n; i++) {
            const struct tensor *x = ins.item[i].t;
            int64_t rows = x->n_dim ? x->size[0] : 1, row = rows ? tensor_numel(x) / rows : 0;
            int64_t part = (rows + chunks - 1) / chunks;
            reads(c, x);
            for (int64_t e = 0; e < part * row; e++, at++) {
                int64_t from = k * part * row + e;
                if (dim != 0 || at >= tensor_numel(&to))
                    return call_fail(c, "it does not fit");
                if (from < tensor_numel(x))
                    move(&to, at, x, from);
                else
                    tensor_store(&to, at, convert(0, x->dtype, to.dtype));
            }
        }
    return at == tensor_numel(&to) || call_fail(c, "the result is not filled");
}

static bool op_fsdp_copy_(const struct call *c, struct value *out)
{
    struct tensor to, from;

    (void)out;
    if (!tensor_operand(c, 0, "tensor", &to) || !tensor_operand(c, 1, "data", &from))
        return false;
    reads(c, &from);
    writes(c, &to);
    return tensor_copy(&to, &from) || call_fail(c, "sizes do not match");
}

/* Its contents are lost, unless it already has that many bytes. */
static bool op_resize(const struct call *c, struct value *out)
{
    struct tensor t;
    int64_t bytes;

    (void)out;
    if (!tensor_operand(c, 0, "variable", &t) || !int_operand(c, 1, "new_size", 0, &bytes))
        return false;
    writes(c, &t);
    if (bytes != t.st->n)
        memset(t.st->at, 0xff, (size_t)t.st->n * sizeof(cell));
    return true;
}

#define C10D "_c10d_functional."

const struct sym_op symeval_comm_ops[] = {
    {C10D "all_gather_into_tensor.default", NULL, op_all_gather},
    {C10D "all_gather_into_tensor_coalesced.default", NULL, op_all_gather_coalesced},
    {C10D "all_gather_into_tensor_out.default", NULL, op_all_gather_out},
    {C10D "all_reduce.default", NULL, op_all_reduce},
    {C10D "all_reduce_.default", NULL, op_all_reduce_},
    {C10D "all_reduce_coalesced.default", NULL, op_all_reduce_coalesced},
    {C10D "all_reduce_coalesced_.default", NULL, op_all_reduce_coalesced_},
    {C10D "all_to_all_single.default", NULL, op_all_to_all},
    {C10D "broadcast.default", NULL, op_broadcast},
    {C10D "broadcast_.default", NULL, op_broadcast_},
    {C10D "reduce_scatter_tensor.default", NULL, op_reduce_scatter},
    {C10D "reduce_scatter_tensor_coalesced.default", NULL, op_reduce_scatter_coalesced},
    {C10D "reduce_scatter_tensor_out.default", NULL, op_reduce_scatter_out},
    {C10D "wait_tensor.default", op_wait, NULL},
    {C10D "wait_tensors.default", op_waits, NULL},
    {"bucketing._pre_bucket_all_gather.default", op_pre_all_gather, NULL},
    {"bucketing._pre_bucket_reduce_scatter.default", op_pre_reduce_scatter, NULL},
    {"fsdp.all_gather_copy_in.default", op_copy_in, NULL},
    {"fsdp.chunk_cat.default", op_chunk_cat, NULL},
    {"fsdp.copy_.default", op_fsdp_copy_, NULL},
    {"fsdp.split_with_sizes_copy.default", op_split_copy, NULL},
    {"inductor.resize_storage_bytes_.default", op_resize, NULL},
    {"symm_mem.one_shot_all_reduce.default", NULL, op_one_shot},
};

const size_t symeval_n_comm_ops = sizeof(symeval_comm_ops) / sizeof(*symeval_comm_ops);
