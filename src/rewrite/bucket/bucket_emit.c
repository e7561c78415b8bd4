#include "rewrite/bucket/bucket_emit.h"

#include <stdio.h>

#include "infer/infer.h"

/* ---- numbers ---- */

void build_num(struct build *b, struct num x)
{
    if (x.node != 0)
        build_node(b, x.node);
    else
        build_int(b, x.v);
}

static struct num binary(struct build *b, const char *op, const char *name, struct num x,
                         struct num y)
{
    build_call(b, op);
    build_num(b, x);
    build_num(b, y);
    return (struct num){.node = build_end(b, name)};
}

struct num num_add(struct build *b, struct num x, struct num y)
{
    if (x.node == 0 && y.node == 0)
        return num_of(x.v + y.v);
    if (x.node == 0 && x.v == 0)
        return y;
    return binary(b, "operator.add", "add", x, y);
}

struct num num_scaled(struct build *b, struct num x, int64_t k)
{
    return binary(b, "operator.mul", "mul", x, num_of(k));
}

struct num num_times(struct build *b, struct num x, int64_t k)
{
    if (x.node == 0)
        return num_of(x.v * k);
    return k == 1 ? x : num_scaled(b, x, k);
}

struct num num_over(struct build *b, struct num x, int64_t k)
{
    if (x.node == 0)
        return num_of(x.v / k);
    return k == 1 ? x : binary(b, "operator.floordiv", "floordiv", x, num_of(k));
}

/* ---- sizes ---- */

static const struct type *type_of(const struct emit *e, type_id t)
{
    return type_at(&e->s->r->g->store->type, t);
}

static bool known(const struct emit *e, sym_id v, int64_t *out)
{
    return sym_as_int(&e->s->r->g->store->sym, v, out);
}

bool emit_is_wanted(const struct emit *e, uint32_t i)
{
    return e->o->torch || node_at(e->s->r->g, e->b->member[i].wait)->n_uses > 0;
}

bool emit_in_place(const struct emit *e)
{
    for (uint32_t i = 0; i < e->b->n; i++)
        if (!e->b->member[i].in_place)
            return false;
    return true;
}

uint32_t emit_dims(const struct emit *e, uint32_t i)
{
    return type_of(e, e->b->member[i].out)->n;
}

/* The number of elements of an operand: a constant, or computed at run time if it has a symbol. */
static struct num elements(struct emit *e, uint32_t i)
{
    const struct bucket_cand *c = &e->b->member[i];
    const struct type *t = type_of(e, c->in);
    int64_t n = 1, size;

    for (uint32_t k = 0; k < t->n; k++) {
        if (!known(e, t->size[k], &size)) {
            build_call(&e->in, "aten.sym_numel.default");
            build_node(&e->in, c->input);
            return (struct num){.node = build_end(&e->in, "sym_numel")};
        }
        n *= size; /* cannot overflow: the bytes were counted before */
    }
    return num_of(n);
}

/* One size of a result. */
static struct num size_of(struct emit *e, uint32_t i, uint32_t k)
{
    const struct bucket_cand *c = &e->b->member[i];
    int64_t v;

    if (known(e, type_of(e, c->out)->size[k], &v))
        return num_of(v);
    build_call(&e->in, "aten.sym_size.int");
    build_node(&e->in, c->input);
    build_int(&e->in, k);
    struct num n = {.node = build_end(&e->in, "sym_size")};
    if (k > 0 || e->o->kind == TUCK_ALL_REDUCE)
        return n;
    return e->o->kind == TUCK_ALL_GATHER ? num_times(&e->in, n, e->size)
                                         : num_over(&e->in, n, e->size);
}

static void measure(struct emit *e)
{
    struct arena *a = &e->s->r->arena;

    for (uint32_t i = 0; i < e->b->n; i++) {
        e->count[i] = elements(e, i);
        if (!emit_is_wanted(e, i)) {
            e->shape[i] = NULL;
            continue;
        }
        uint32_t n = emit_dims(e, i);
        e->shape[i] = arena_array(a, struct num, n);
        for (uint32_t k = 0; k < n; k++)
            e->shape[i][k] = size_of(e, i, k);
    }
}

/* ---- calls ---- */

static void build_sizes(struct build *b, const struct num *size, uint32_t n)
{
    build_open(b);
    for (uint32_t k = 0; k < n; k++)
        build_num(b, size[k]);
    build_close(b);
}

uint32_t emit_view(struct build *b, uint32_t x, const struct num *size, uint32_t n)
{
    build_call(b, "aten.view.default");
    build_node(b, x);
    build_sizes(b, size, n);
    return build_end(b, "view");
}

/* Like .reshape() of something that cannot be viewed: copies it first. */
static uint32_t emit_clone(struct build *b, uint32_t x)
{
    build_call(b, "aten.clone.default");
    build_node(b, x);
    build_key(b, "memory_format");
    build_text(b, "torch.contiguous_format");
    return build_end(b, "clone");
}

static uint32_t emit_unsafe_view(struct build *b, uint32_t x, const struct num *size, uint32_t n)
{
    build_call(b, "aten._unsafe_view.default");
    build_node(b, x);
    build_sizes(b, size, n);
    return build_end(b, "_unsafe_view");
}

uint32_t emit_copy(struct build *b, uint32_t x, const struct num *size, uint32_t n)
{
    return emit_unsafe_view(b, emit_clone(b, x), size, n);
}

uint32_t emit_wait(struct build *b, uint32_t x)
{
    build_call(b, "_c10d_functional.wait_tensor.default");
    build_node(b, x);
    return build_end(b, "wait_tensor");
}

uint32_t emit_split(struct build *b, uint32_t x, const struct num *count, uint32_t n, int64_t dim)
{
    build_call(b, "aten.split_with_sizes.default");
    build_node(b, x);
    build_sizes(b, count, n);
    if (dim != 0)
        build_int(b, dim);
    return build_end(b, "split_with_sizes");
}

/* The group, as the first member names it. */
void build_group(struct emit *e, struct build *b)
{
    const tuck_graph *g = e->s->r->g;
    const struct bucket_cand *c = &e->b->member[0];
    struct operand o = {.v = NULL};

    while (operand_next(g, node_at(g, c->start), &e->s->sig, &o))
        if (o.param != NULL && strcmp(o.param->name, "group_name") == 0)
            build_value(b, o.v);
}

void build_dtype(struct build *b, enum dtype d)
{
    char text[64];

    snprintf(text, sizeof(text), "torch.%s", dtype_at(d)->name);
    build_text(b, text);
}

/* ---- laying out operands ---- */

/* Are the dimensions contiguous, so that they can be viewed as one? rows > 0: the first is split
 * into that many rows, each of which must be. */
static bool lies_flat(const struct emit *e, const struct type *t, int64_t rows)
{
    struct symtab *st = &e->s->r->g->store->sym;
    sym_id next = 0; /* the stride that the previous dimension must have; 0 means any */
    int64_t v;

    for (uint32_t k = 0; k < t->n; k++)
        if (known(e, t->size[k], &v) && v == 0)
            return true;
    for (uint32_t k = t->n; k-- > 0;) {
        if (known(e, t->size[k], &v) && (v == 1 || (k == 0 && v == rows)))
            continue;
        if (next != 0 && !sym_same(st, t->stride[k], next))
            return false;
        next = sym_mul(st, t->stride[k], t->size[k]);
    }
    return true;
}

/* Is a view of the operand enough? If strides are unknown, it is if the collective itself requires
 * contiguous operands and no conversion is removed. */
static bool can_view(const struct emit *e, uint32_t i, int64_t rows)
{
    const struct bucket_cand *c = &e->b->member[i];
    const struct type *t = type_of(e, node_type(e->s->r->g, c->input));

    if (!t->strided)
        return c->cvt == 0 && op_at(e->s->op)->flags & OP_F_CONTIG;
    return lies_flat(e, t, rows);
}

uint32_t emit_flat(struct emit *e, uint32_t i, int64_t rows)
{
    struct build *b = &e->in;
    uint32_t x = e->b->member[i].input;
    struct num size[2] = {num_of(rows), num_of(-1)};

    if (can_view(e, i, rows))
        return e->first[i] = emit_view(b, x, rows ? size : size + 1, rows ? 2 : 1);
    e->first[i] = e->reader[i] = emit_clone(b, x);
    size[1] = rows ? num_over(b, e->count[i], rows) : e->count[i];
    return emit_unsafe_view(b, e->reader[i], rows ? size : size + 1, rows ? 2 : 1);
}

/* ---- the coalesced form ---- */

static const char *coalesced_op(tuck_coll kind, bool in_place)
{
    switch (kind) {
    case TUCK_ALL_GATHER: return "_c10d_functional.all_gather_into_tensor_coalesced.default";
    case TUCK_REDUCE_SCATTER: return "_c10d_functional.reduce_scatter_tensor_coalesced.default";
    default:
        return in_place ? "_c10d_functional.all_reduce_coalesced_.default"
                        : "_c10d_functional.all_reduce_coalesced.default";
    }
}

static const char *coalesced_name(tuck_coll kind, bool in_place)
{
    switch (kind) {
    case TUCK_ALL_GATHER: return "all_gather_into_tensor_coalesced";
    case TUCK_REDUCE_SCATTER: return "reduce_scatter_tensor_coalesced";
    default: return in_place ? "all_reduce_coalesced_" : "all_reduce_coalesced";
    }
}

/* A list of operands, and a wait for each result. PyTorch flattens the operands of a reduce-scatter
 * first; they are contiguous, so that would gain nothing. */
static void emit_coalesced(struct emit *e)
{
    struct build *b = &e->in;
    struct arena *a = &e->s->r->arena;
    uint32_t *operand = arena_array(a, uint32_t, e->b->n),
             *item = arena_array(a, uint32_t, e->b->n);
    const struct bucket_key *key = &e->b->member[0].key;
    const tuck_graph *g = e->s->r->g;

    for (uint32_t i = 0; i < e->b->n; i++)
        operand[i] = e->o->torch ? emit_flat(e, i, 0) : e->b->member[i].input;
    build_call(b, coalesced_op(e->o->kind, emit_in_place(e)));
    build_open(b);
    for (uint32_t i = 0; i < e->b->n; i++)
        build_node(b, operand[i]);
    build_close(b);
    if (key->reduce_op != 0)
        build_str(b, graph_str(g, key->reduce_op));
    if (e->o->kind != TUCK_ALL_REDUCE)
        build_int(b, e->size);
    build_group(e, b);
    e->collective = build_end(b, coalesced_name(e->o->kind, emit_in_place(e)));
    for (uint32_t i = 0; i < e->b->n; i++)
        item[i] = build_getitem(&e->out, e->collective, i);
    for (uint32_t i = 0; i < e->b->n; i++) {
        e->wait[i] = e->piece[i] = emit_wait(&e->out, item[i]);
        if (e->reader[i] == 0)
            e->reader[i] = e->collective;
    }
    for (uint32_t i = 0; e->o->torch && i < e->b->n; i++)
        e->piece[i] = emit_view(&e->out, e->wait[i], e->shape[i], emit_dims(e, i));
}

void emit_bucket(struct emit *e)
{
    struct arena *a = &e->s->r->arena;
    uint32_t n = e->b->n;
    const struct bucket_cand *first = &e->b->member[0];
    bool coalesced = e->o->mode == BUCKET_COALESCED &&
                     (!e->o->torch || e->o->kind == TUCK_REDUCE_SCATTER);

    e->size = first->key.group_size;
    e->rank = e->s->r->g->group.at[first->key.group].rank;
    if (e->rank >= e->size)
        e->rank = -1;
    e->dtype = (enum dtype)type_of(e, first->out)->dtype;
    e->count = arena_array(a, struct num, n);
    e->shape = arena_array(a, struct num *, n);
    e->first = arena_zeroed(a, n * sizeof(*e->first));
    e->reader = arena_zeroed(a, n * sizeof(*e->reader));
    e->wait = arena_zeroed(a, n * sizeof(*e->wait));
    e->piece = arena_zeroed(a, n * sizeof(*e->piece));
    if (coalesced && !e->o->torch) {
        emit_coalesced(e);
        return;
    }
    measure(e);
    if (coalesced)
        emit_coalesced(e);
    else if (e->o->kind == TUCK_ALL_GATHER)
        emit_all_gather(e);
    else
        emit_reduction(e);
}
