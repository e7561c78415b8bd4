/* The nodes of one merged all-reduce. */
#include <stdio.h>

#include "rewrite/ddp/ddp.h"
#include "infer/infer.h"
#include "rewrite/build.h"
#include "rewrite/comm_order.h"

struct merge {
    struct ddp *d;
    struct bucket *bucket;
    struct build b;
    uint32_t place;      /* where the new nodes go, in the old order */
    uint32_t collective; /* the merged one */
    uint32_t last;       /* last of the new nodes */
    uint32_t *reader;    /* by member: the new node that first reads its gradient */
    uint32_t *done;      /* by member: the node after which it may be written again */
    uint32_t *result;    /* by member: what replaces its wait */
};

static struct candidate *member(const struct merge *m, uint32_t i)
{
    return &m->d->cand.at[m->bucket->member.at[i]];
}

/* Right after the last operand, but not before the first member. */
static void find_place(struct merge *m)
{
    const tuck_graph *g = m->d->r->g;
    uint32_t first = member(m, 0)->collective, last = member(m, 0)->operand;

    for (uint32_t i = 1; i < m->bucket->member.len; i++) {
        uint32_t x = member(m, i)->operand;
        if (node_at(g, x)->pos > node_at(g, last)->pos)
            last = x;
    }
    if (!m->d->torch && node_at(g, last)->pos < node_at(g, first)->pos) {
        m->b = build_at(m->d->r, first);
        m->place = node_at(g, first)->pos;
        return;
    }
    m->b = build_behind(m->d->r, last);
    /* the results of one statement stay together */
    while (node_at(g, m->b.before)->kind == TUCK_RESULT ||
           node_at(g, m->b.before)->kind == TUCK_PLACEHOLDER)
        m->b.before = node_at(g, m->b.before)->next;
    m->place = node_at(g, last)->pos;
}

/* ---- sizes ---- */

static const struct type *type_of(const struct merge *m, uint32_t n)
{
    return type_at(&m->d->r->g->store->type, node_type(m->d->r->g, n));
}

struct size { /* a number, or the node that gives it */
    int64_t value;
    uint32_t node;
};

static void put_size(struct merge *m, struct size s)
{
    if (s.node != 0)
        build_node(&m->b, s.node);
    else
        build_int(&m->b, s.value);
}

/* The number of elements: a constant if it is known, else computed at run time. */
static struct size count_of(struct merge *m, uint32_t n)
{
    const struct type *t = type_of(m, n);
    struct size s = {.value = 1};

    for (uint32_t i = 0; i < t->n; i++) {
        int64_t v;
        if (!sym_as_int(&m->d->r->g->store->sym, t->size[i], &v) ||
            !size_mul(s.value, v, &s.value)) {
            build_call(&m->b, "aten.sym_numel.default");
            build_node(&m->b, n);
            s.node = build_end(&m->b, "sym_numel");
            break;
        }
    }
    return s;
}

static struct size size_of(struct merge *m, uint32_t n, uint32_t dim)
{
    struct size s = {.node = 0};

    if (sym_as_int(&m->d->r->g->store->sym, type_of(m, n)->size[dim], &s.value))
        return s;
    build_call(&m->b, "aten.sym_size.int");
    build_node(&m->b, n);
    build_int(&m->b, dim);
    s.node = build_end(&m->b, "sym_size_int");
    return s;
}

/* ---- calls ---- */

static uint32_t put_wait(struct merge *m, uint32_t of)
{
    const tuck_graph *g = m->d->r->g;

    build_call(&m->b, op_at(node_op(g, member(m, 0)->wait))->name);
    build_node(&m->b, of);
    return build_end(&m->b, "wait_tensor_default");
}

static void put_group(struct merge *m)
{
    const struct candidate *last = member(m, m->bucket->member.len - 1);

    build_value(&m->b, last->op);
    build_value(&m->b, last->group);
}

/* In place only if every member is; the merged buffer is new in either case. */
static const char *all_reduce_op(const struct merge *m)
{
    const tuck_graph *g = m->d->r->g;
    uint32_t like = m->bucket->member.len - 1;

    for (uint32_t i = 0; i < m->bucket->member.len && !m->d->torch; i++)
        if (!member(m, i)->in_place)
            like = i;
    return op_at(node_op(g, member(m, like)->collective))->name;
}

static uint32_t put_cat(struct merge *m)
{
    uint32_t n = m->bucket->member.len;
    uint32_t *flat = m->reader;

    for (uint32_t i = 0; i < n; i++) {
        build_call(&m->b, "aten.flatten.using_ints");
        build_node(&m->b, member(m, i)->gradient);
        flat[i] = build_end(&m->b, "flatten_using_ints");
    }
    build_call(&m->b, "aten.cat.default");
    build_open(&m->b);
    for (uint32_t i = 0; i < n; i++)
        build_node(&m->b, flat[i]);
    build_close(&m->b);
    return build_end(&m->b, "cat");
}

static void put_pieces(struct merge *m, uint32_t wait)
{
    uint32_t n = m->bucket->member.len;
    struct size *count = arena_array(&m->d->r->arena, struct size, n);

    for (uint32_t i = 0; i < n; i++)
        count[i] = count_of(m, member(m, i)->gradient);
    build_call(&m->b, "aten.split.sizes");
    build_node(&m->b, wait);
    build_open(&m->b);
    for (uint32_t i = 0; i < n; i++)
        put_size(m, count[i]);
    build_close(&m->b);
    uint32_t split = build_end(&m->b, "split");
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = member(m, i)->gradient, dims = type_of(m, x)->n;
        uint32_t piece = build_getitem(&m->b, split, i);
        struct size *size = arena_array(&m->d->r->arena, struct size, dims);

        for (uint32_t k = 0; k < dims; k++)
            size[k] = size_of(m, x, k);
        build_call(&m->b, "aten.reshape.default");
        build_node(&m->b, piece);
        build_open(&m->b);
        for (uint32_t k = 0; k < dims; k++)
            put_size(m, size[k]);
        build_close(&m->b);
        m->result[i] = build_end(&m->b, "reshape");
    }
    m->last = m->result[n - 1];
}

static void put_concat(struct merge *m)
{
    const tuck_value *divisor = member(m, 0)->divisor;
    uint32_t n = m->bucket->member.len;
    uint32_t all = put_cat(m);

    for (uint32_t i = 0; i < n; i++)
        m->done[i] = all;
    if (divisor != NULL) {
        build_call(&m->b, "aten.div.Tensor");
        build_node(&m->b, all);
        build_value(&m->b, divisor);
        all = build_end(&m->b, "div_tensor");
    }
    build_call(&m->b, all_reduce_op(m));
    build_node(&m->b, all);
    put_group(m);
    m->collective = build_end(&m->b, "all_reduce_default");
    put_pieces(m, put_wait(m, m->collective));
}

static void put_gradients(struct merge *m)
{
    build_open(&m->b);
    for (uint32_t i = 0; i < m->bucket->member.len; i++)
        build_node(&m->b, member(m, i)->gradient);
    build_close(&m->b);
}

static void put_coalesced(struct merge *m)
{
    const tuck_value *divisor = member(m, 0)->divisor;
    uint32_t n = m->bucket->member.len, divided = 0;

    if (divisor != NULL) {
        build_call(&m->b, "aten._foreach_div.Scalar");
        put_gradients(m);
        build_value(&m->b, divisor);
        divided = build_end(&m->b, "_foreach_div_scalar");
    }
    build_call(&m->b, "_c10d_functional.all_reduce_coalesced.default");
    if (divided != 0)
        build_node(&m->b, divided);
    else
        put_gradients(m);
    put_group(m);
    m->collective = build_end(&m->b, "all_reduce_coalesced_default");
    for (uint32_t i = 0; i < n; i++)
        m->result[i] = build_getitem(&m->b, m->collective, i);
    for (uint32_t i = 0; i < n; i++) {
        m->result[i] = put_wait(m, m->result[i]);
        m->reader[i] = divided ? divided : m->collective;
        m->done[i] = divided ? divided : m->result[i];
    }
    m->last = m->result[n - 1];
}

/* ---- orders that the sort must keep ---- */

/* Users of a wait that came before the new nodes move after all of them. */
static void hold_users(struct merge *m)
{
    struct pass_run *r = m->d->r;

    for (uint32_t i = 0; i < m->bucket->member.len; i++) {
        uint32_t user = member(m, i)->user;
        if (user != r->g->output && node_at(r->g, user)->pos < m->place) {
            topo_edge_add(&r->arena, &m->d->more, m->last, user);
            m->d->out_of_order = true;
        }
    }
}

static void replace_members(struct merge *m)
{
    struct pass_run *r = m->d->r;

    for (uint32_t i = 0; i < m->bucket->member.len; i++) {
        const struct candidate *c = member(m, i);
        build_replace(r, c->wait, m->result[i]);
        build_erase(r, c->wait);
        build_erase(r, c->collective);
    }
}

static void report(struct merge *m)
{
    struct pass_run *r = m->d->r;
    const tuck_graph *g = r->g;
    uint32_t n = m->bucket->member.len;
    const struct candidate *c = member(m, n - 1);
    const char **name = arena_array(&r->arena, const char *, n);
    int32_t group = m->d->group[c->collective];
    const char *dtype = dtype_at((enum dtype)type_of(m, c->operand)->dtype)->abbr;
    const char *op = graph_str(g, c->op->a);
    char key[96];

    if (c->divisor == NULL)
        snprintf(key, sizeof(key), "%s %s", op, dtype);
    else if (c->divisor->kind == TUCK_V_INT)
        snprintf(key, sizeof(key), "%s %s /%lld", op, dtype, (long long)c->divisor->u.i);
    else if (c->divisor->kind == TUCK_V_NODE)
        snprintf(key, sizeof(key), "%s %s /%s", op, dtype,
                 graph_str(g, node_at(g, c->divisor->a)->name));
    else
        snprintf(key, sizeof(key), "%s %s /%.15g", op, dtype, c->divisor->u.f);
    for (uint32_t i = 0; i < n; i++)
        name[i] = graph_str(g, node_at(g, member(m, i)->collective)->name);
    report_bucket(r->report, &(struct report_bucket){
                                 .kind = "all_reduce",
                                 .group = group >= 0 ? graph_str(g, g->group.at[group].name) : "?",
                                 .key = key,
                                 .member = name,
                                 .n_member = n,
                                 .bytes = m->bucket->bytes,
                                 .closed_by = m->bucket->closed_by,
                                 .result = graph_str(g, node_at(g, m->collective)->name)});
}

/* Records the new readers of gradients, for the edges of the old readers. */
static void note_readers(struct merge *m)
{
    for (uint32_t i = 0; i < m->bucket->member.len; i++) {
        struct candidate *c = member(m, i);
        c->merged_reader = m->reader[i];
        c->merged_done = m->done[i];
        c->merged = m->collective;
    }
}

void ddp_merge(struct ddp *d, uint32_t bucket, bool concat)
{
    struct arena *a = &d->r->arena;
    struct merge m = {.d = d, .bucket = &d->bucket.at[bucket]};
    uint32_t n = m.bucket->member.len;

    m.reader = arena_array(a, uint32_t, n);
    m.done = arena_array(a, uint32_t, n);
    m.result = arena_array(a, uint32_t, n);
    find_place(&m);
    if (concat)
        put_concat(&m);
    else
        put_coalesced(&m);
    hold_users(&m);
    note_readers(&m);
    report(&m);
    if (!d->torch)
        comm_hold(d->r, &d->more, m.collective, member(&m, 0)->collective,
                  member(&m, n - 1)->collective);
    replace_members(&m);
}
