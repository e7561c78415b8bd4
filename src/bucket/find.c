/* Which candidates go together.
 *
 * One walk over the graph in its order. Candidates are decided at their waits: a run of waits whose
 * collectives have the same key fills buckets one after the other. Merging makes everything that uses one
 * member depend on what all members need; so a candidate may not join a bucket whose results it needs. To see
 * that, every node carries the number of the newest bucket that it comes after:
 *
 *   data    by uses alone
 *   order   by uses and by what has to keep its order besides: reads and writes, and the sequence of
 *           collectives of a group that are not merged
 *
 * Buckets are numbered as they are opened and one is open at a time, so the newest number decides. This is also
 * all that is needed for an order of the whole to exist. A member is used through its wait only, and waits of
 * an older bucket stand before those of a newer one: a cycle would have to lead back from a newer to an older
 * bucket, which is possible only from one collective of a group to the next, and those carry what the members'
 * operands carry (take_place()).
 */
#include "bucket/bucket.h"
#include "fx/infer.h"

struct find {
    struct bucket_scan *s;
    struct buckets *out;
    uint32_t *data, *order; /* by node: newest bucket that it comes after; 0 = none */
    uint32_t *own;          /* by node: of a start, `order` by its operands alone */
    uint32_t *sequence;     /* by group + 1: newest bucket that its collectives come after */
    uint32_t number;        /* of the open bucket, or of the last one */
    bool open;
    /* the open bucket */
    VEC(struct bucket_cand) member;
    struct bucket_key key;
    int64_t bytes;
    uint32_t index; /* in its run */
    enum closed_by opened_by;
    bool run; /* there is a run; key is its key */
};

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void leave(struct find *f, uint32_t start, enum left_reason why)
{
    report_left(f->s->r->report, f->s->r->g, start, why);
}

/* ---- buckets ---- */

static double cap_of(const struct find *f)
{
    const struct bucket_options *o = f->s->o;

    /* torch asks once a run, for bucket 0. */
    return pass_float_at(&o->cap_mb, o->torch ? 0 : f->index) * 1024 * 1024;
}

static void close_bucket(struct find *f, enum closed_by why)
{
    if (!f->open)
        return;
    f->open = false;
    if (f->member.len > 1) {
        struct bucket b = {.n = f->member.len, .bytes = f->bytes, .closed_by = why};
        b.member = arena_array(&f->s->r->arena, struct bucket_cand, b.n);
        memcpy(b.member, f->member.at, b.n * sizeof(*b.member));
        vec_push_in(&f->s->r->arena, &f->out->bucket, b);
    } else {
        leave(f, f->member.at[0].start,
              f->opened_by == CLOSED_DEPENDENCE ? LEFT_DEPENDENCE
              : f->opened_by == CLOSED_ORDER    ? LEFT_ORDER
              : (double)f->bytes > cap_of(f)    ? LEFT_OVERSIZED
                                                : LEFT_ALONE);
    }
    f->index++;
    f->bytes = 0;
    f->member.len = 0;
}

static void open_bucket(struct find *f, enum closed_by because)
{
    f->open = true;
    f->opened_by = because;
    f->number++;
}

static bool fits(const struct find *f, const struct bucket_cand *c)
{
    int64_t sum;

    return size_add(f->bytes, c->bytes, &sum) && !((double)sum > cap_of(f));
}

/* The candidate joins the open bucket, or the next. False: it stays as it is. */
static bool place(struct find *f, const struct bucket_cand *c)
{
    enum closed_by why = CLOSED_END;

    if (f->open) {
        bool torch = f->s->o->torch;
        if (f->data[c->start] == f->number) {
            if (torch) { /* which skips it and goes on */
                leave(f, c->start, LEFT_DEPENDENCE);
                return false;
            }
            close_bucket(f, why = CLOSED_DEPENDENCE);
        } else if (!torch && f->own[c->start] == f->number) {
            close_bucket(f, why = CLOSED_ORDER);
        } else if (!fits(f, c)) {
            close_bucket(f, why = CLOSED_CAP);
        }
    }
    if (!f->open)
        open_bucket(f, why);
    vec_push_in(&f->s->r->arena, &f->member, *c);
    f->bytes += c->bytes; /* fits, or is the first */
    return true;
}

/* ---- the walk ---- */

/* The newest bucket that n comes after, from what it uses and what was pushed to it. */
static void gather(struct find *f, uint32_t n)
{
    const struct fx_node *x = node_at(f->s->r->g, n);
    uint32_t data = 0, order = f->order[n];

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE) {
            data = larger(data, f->data[x->vals[i].a]);
            order = larger(order, f->order[x->vals[i].a]);
        }
    f->data[n] = data;
    f->order[n] = larger(order, data);
}

/* Collectives of a group keep their sequence, those that are merged excepted: they go wherever between the
 * first and the last of their bucket. Their operands hold up what comes behind the last all the same. */
static void take_place(struct find *f, uint32_t n)
{
    const tuck_graph *g = f->s->r->g;
    uint32_t count = comm_line_count(&f->s->lines, g, n);

    f->own[n] = f->order[n];
    for (uint32_t i = 0; i < count; i++)
        f->order[n] = larger(f->order[n], f->sequence[comm_line_at(&f->s->lines, n, i)]);
    for (uint32_t i = 0; i < count; i++)
        f->sequence[comm_line_at(&f->s->lines, n, i)] = f->order[n];
}

static void push(struct find *f, uint32_t n, uint32_t number)
{
    const struct topo_fan *k = &f->s->keep_from;

    for (uint32_t i = k->start[n]; i < k->start[n + 1]; i++)
        f->order[k->to[i]] = larger(f->order[k->to[i]], number);
}

/* A wait, and what it waits for is of the kind that is merged. */
static void decide(struct find *f, uint32_t start, uint32_t wait)
{
    struct bucket_scan *s = f->s;
    const struct bucket_options *o = s->o;
    struct bucket_cand c;
    enum left_reason why;

    if (o->filter != NULL && !o->filter(o->ctx, s->r->g, wait)) {
        leave(f, start, LEFT_FILTERED);
        return;
    }
    bool can = bucket_read(s, start, wait, &c, &why);
    /* Another key ends the run even where that one cannot be merged: the two would change places. */
    if (can || (why != LEFT_UNKNOWN_TYPE && c.out != 0)) {
        if (f->run && !bucket_same_key(&f->key, &c.key)) {
            close_bucket(f, CLOSED_KEY);
            f->index = 0;
        }
        if (c.key.device == 0 && f->open) /* what is known of one member holds for all */
            c.key.device = f->key.device;
        f->run = true;
        f->key = c.key;
    }
    if (!can) {
        leave(f, start, why);
    } else if (place(f, &c)) {
        f->data[wait] = f->order[wait] = f->number;
        push(f, start, f->number); /* what may not come before its operand is read */
        if (c.cvt != 0)            /* … which the merged one does for a folded conversion */
            push(f, c.cvt, f->number);
    }
}

static void visit_start(struct find *f, uint32_t n)
{
    const tuck_graph *g = f->s->r->g;
    bool viewed = false; /* a wait for a view is one, too */
    bool held = false;

    for (uint32_t u = node_at(g, n)->use_first; u != 0; u = g->use.at[u].next) {
        uint32_t user = g->use.at[u].user;
        if (op_at(node_op(g, user))->cls == OP_WAIT)
            return;
        held |= comm_is_wait(g, user);
        viewed |= op_at(node_op(g, user))->cls == OP_VIEW;
    }
    leave(f, n, held ? LEFT_WRAPPED : viewed ? LEFT_WAITS : LEFT_NO_WAIT);
}

static struct find start_walk(struct bucket_scan *s)
{
    const tuck_graph *g = s->r->g;
    struct arena *a = &s->r->arena;
    size_t bytes = g->node.len * sizeof(uint32_t);

    return (struct find){
        .s = s,
        .data = arena_zeroed(a, bytes),
        .order = arena_zeroed(a, bytes),
        .own = arena_zeroed(a, bytes),
        .sequence = arena_zeroed(a, ((size_t)g->group.len + 1) * sizeof(uint32_t))};
}

void buckets_find(struct bucket_scan *s, struct buckets *b)
{
    const tuck_graph *g = s->r->g;
    struct find f = start_walk(s);

    f.out = b;
    for_each_node (g, n) {
        gather(&f, n);
        take_place(&f, n);
        if (bucket_is_kind(s, n)) {
            visit_start(&f, n);
        } else if (op_at(node_op(g, n))->cls == OP_WAIT) {
            uint32_t start = call_node(g, node_at(g, n), 0);
            if (start != 0 && bucket_is_kind(s, start))
                decide(&f, start, n);
        }
        if (f.order[n] != 0)
            push(&f, n, f.order[n]);
    }
    close_bucket(&f, CLOSED_END);
    comm_leave_hidden(s->r, s->o->kind);
}

/* The same walk with the members given. */
bool bucket_possible(struct bucket_scan *s, const struct bucket *b, enum left_reason *why,
                     uint32_t *node)
{
    const tuck_graph *g = s->r->g;
    struct find f = start_walk(s);
    /* by wait */
    const struct bucket_cand **of = arena_zeroed(&s->r->arena,
                                                 g->node.len * sizeof(struct bucket_cand *));
    bool *is_member = arena_zeroed(&s->r->arena, g->node.len * sizeof(*is_member));
    enum { NUMBER = 1 };

    for (uint32_t i = 0; i < b->n; i++) {
        of[b->member[i].wait] = &b->member[i];
        is_member[b->member[i].start] = true;
    }
    for_each_node (g, n) {
        gather(&f, n);
        take_place(&f, n);
        if (is_member[n] && f.own[n] == NUMBER) {
            *why = f.data[n] == NUMBER ? LEFT_DEPENDENCE : LEFT_ORDER;
            *node = n;
            return false;
        }
        if (of[n] != NULL) {
            f.data[n] = f.order[n] = NUMBER;
            push(&f, of[n]->start, NUMBER);
            if (of[n]->cvt != 0)
                push(&f, of[n]->cvt, NUMBER);
        }
        if (f.order[n] != 0)
            push(&f, n, f.order[n]);
    }
    return true;
}
