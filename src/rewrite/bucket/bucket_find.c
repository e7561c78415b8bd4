/* Decides which candidates are merged.
 *
 * One walk over the graph in its order. Candidates are decided at their waits: a run of waits whose
 * collectives have the same key fills buckets one after the other. Each group has a run of its own;
 * torch has one for all, and so has Tuck if the whole sequence of collectives must be kept.
 * Merging makes everything that uses one member depend on what all members need; so a candidate may
 * not join a bucket whose results it needs. To see that, every node carries the number of the
 * newest bucket that it comes after:
 *
 *   data    by uses alone
 *   order   by uses and by everything else that must keep its order: reads and writes, and the
 *           sequence of collectives of a group that are not merged
 *
 * Buckets are numbered as they are opened, and a candidate joins one only if all buckets that it
 * comes after are older: so each needs nothing but older ones. This alone guarantees that the
 * result has a valid order. A member is used through its wait only; a cycle would have to lead back
 * from a newer to an older bucket, which is possible only from one collective of a group to the
 * next, and those carry what the members' operands carry (take_place()). No bucket has
 * members on both sides of a fence.
 */
#include "rewrite/bucket/torch_order.h"
#include "infer/infer.h"

/* Candidates of one group, or of all groups; and their last bucket. */
struct run {
    bool begun; /* `key` is set */
    bool open;
    struct bucket_key key;
    VEC(struct bucket_cand) member;
    int64_t bytes;
    uint32_t number; /* of the bucket */
    uint32_t index;  /* of the bucket within the run */
    double cap;      /* cap of the bucket with that index, in bytes */
    bool has_cap;    /* `cap` is set */
    enum closed_by opened_by;
};

struct find {
    struct bucket_scan *s;
    struct buckets *out;
    uint32_t *data, *order; /* by node: newest bucket that it comes after; 0 if none */
    uint32_t *own;          /* by node that starts a transfer: `order` from its operands alone */
    uint32_t *sequence;     /* by group + 1: newest bucket that its collectives come after */
    uint32_t behind, fence; /* the same for all groups, and for the last fence */
    uint32_t number;        /* number of the newest bucket */
    struct run *run;        /* by group, or a single one */
    uint32_t n_run;
    bool bad_cap; /* the caller's function returned an invalid cap, for bucket bad_index */
    uint32_t bad_index;
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

/* The caller's cap. Remembers the first invalid one. */
static double ask_cap(struct find *f, uint32_t index)
{
    const struct bucket_rules *rules = &f->s->o->rules;
    double mb = rules->cap_mb(rules->ctx, index);

    if (mb >= 0)
        return mb;
    if (!f->bad_cap)
        f->bad_index = index;
    f->bad_cap = true;
    return 0;
}

/* The cap is computed once per bucket. */
static double cap_of(struct find *f, struct run *q)
{
    const struct bucket_options *o = f->s->o;
    uint32_t index = o->torch ? 0 : q->index; /* torch computes it once per run, for bucket 0 */

    if (!q->has_cap) {
        double mb = o->rules.cap_mb != NULL ? ask_cap(f, index) : pass_float_at(&o->cap_mb, index);
        q->cap = mb * 1024 * 1024;
        q->has_cap = true;
    }
    return q->cap;
}

static void next_index(const struct find *f, struct run *q, uint32_t index)
{
    q->index = index;
    q->has_cap = q->has_cap && f->s->o->torch && index > 0;
}

/* Does the pass consider this wait at all? */
static bool is_wanted(const struct bucket_scan *s, uint32_t wait)
{
    const struct bucket_options *o = s->o;

    if (o->marked != NULL && !(wait < o->n_marked && o->marked[wait]))
        return false;
    return o->rules.filter == NULL || o->rules.filter(o->rules.ctx, s->r->g, (tuck_node){wait});
}

static void close_bucket(struct find *f, struct run *q, enum closed_by why)
{
    if (!q->open)
        return;
    assert(q->member.len > 0 && q->number <= f->number);
    q->open = false;
    if (q->member.len > 1) {
        struct bucket b = {.n = q->member.len, .bytes = q->bytes, .closed_by = why};
        b.member = arena_array(&f->s->r->arena, struct bucket_cand, b.n);
        memcpy(b.member, q->member.at, b.n * sizeof(*b.member));
        vec_push_in(&f->s->r->arena, &f->out->bucket, b);
    } else {
        leave(f, q->member.at[0].start,
              q->opened_by == CLOSED_DEPENDENCE ? LEFT_DEPENDENCE
              : q->opened_by == CLOSED_ORDER    ? LEFT_ORDER
              : (double)q->bytes > cap_of(f, q) ? LEFT_OVERSIZED
                                                : LEFT_ALONE);
    }
    next_index(f, q, q->index + 1);
    q->bytes = 0;
    q->member.len = 0;
}

static void open_bucket(struct find *f, struct run *q, enum closed_by because)
{
    q->open = true;
    q->opened_by = because;
    q->number = ++f->number;
}

static bool fits(struct find *f, struct run *q, const struct bucket_cand *c)
{
    int64_t sum;

    return size_add(q->bytes, c->bytes, &sum) && !((double)sum > cap_of(f, q));
}

/* Is there something between its start and the members' starts that a merged collective may not
 * pass? Members are ordered by their waits. */
static bool is_apart(const struct find *f, const struct run *q, uint32_t start)
{
    const struct comm_places *p = f->s->r->places;
    uint32_t first = start, last = start;

    assert_hot(q->member.len > 0);
    if (comm_fence_between(p, q->member.at[0].start, start))
        return true;
    if (!f->s->r->keep_order)
        return false;
    for (uint32_t i = 0; i < q->member.len; i++) {
        uint32_t m = q->member.at[i].start;
        first = p->all[m] < p->all[first] ? m : first;
        last = p->all[m] > p->all[last] ? m : last;
    }
    return comm_others_between(p, first, last);
}

/* Why the candidate cannot join the open bucket; CLOSED_END if it can. */
static enum closed_by apart_by(struct find *f, struct run *q, const struct bucket_cand *c)
{
    if (f->data[c->start] >= q->number)
        return CLOSED_DEPENDENCE;
    if (f->s->o->begins != NULL && f->s->o->begins[c->start])
        return CLOSED_CHOICE;
    if (!f->s->o->torch && (f->own[c->start] >= q->number || is_apart(f, q, c->start)))
        return CLOSED_ORDER;
    return fits(f, q, c) ? CLOSED_END : CLOSED_CAP;
}

/* Adds the candidate to the open bucket or to a new one. False: it is not merged. */
static bool place(struct find *f, struct run *q, const struct bucket_cand *c)
{
    enum closed_by why = q->open ? apart_by(f, q, c) : CLOSED_END;

    if (why == CLOSED_DEPENDENCE && f->s->o->torch) { /* torch skips it and goes on */
        leave(f, c->start, LEFT_DEPENDENCE);
        return false;
    }
    if (why != CLOSED_END)
        close_bucket(f, q, why);
    if (!q->open)
        open_bucket(f, q, why);
    vec_push_in(&f->s->r->arena, &q->member, *c);
    q->bytes += c->bytes; /* it fits, or is the first */
    return true;
}

/* ---- the walk ---- */

/* Finds the newest bucket that n comes after, from its operands and from what was pushed to it. */
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

/* Collectives of a group, and fences among all, keep their sequence, except those that are merged:
 * they may end up anywhere between the first and the last of their bucket. What comes after the
 * last still waits for their operands. */
static void take_place(struct find *f, uint32_t n)
{
    const struct comm_lines *l = &f->s->lines;
    bool all = f->s->r->keep_order || comm_is_fence(f->s->r->g, l, n);

    f->own[n] = f->order[n];
    if (!comm_in_line(l, n))
        return;
    uint32_t *sequence = &f->sequence[all ? 0 : l->line[l->start[n]] + 1];
    f->order[n] = larger(f->order[n], all ? f->behind : larger(*sequence, f->fence));
    *sequence = f->order[n];
    f->behind = larger(f->behind, f->order[n]);
    f->fence = all ? f->behind : f->fence;
}

static void push(struct find *f, uint32_t n, uint32_t number)
{
    const struct topo_fan *k = &f->s->keep_from;

    for (uint32_t i = k->start[n]; i < k->start[n + 1]; i++)
        f->order[k->to[i]] = larger(f->order[k->to[i]], number);
}

/* A wait for a collective of the kind that is merged. */
static void decide(struct find *f, uint32_t start, uint32_t wait)
{
    struct bucket_scan *s = f->s;
    struct bucket_cand c;
    enum left_reason why;

    if (!is_wanted(s, wait)) {
        leave(f, start, LEFT_FILTERED);
        return;
    }
    bool can = bucket_read(s, start, wait, &c, &why);
    struct run *q = &f->run[f->n_run > 1 ? s->group[start] + 1 : 0];
    /* A different key ends the run even if that collective cannot be merged: otherwise the two
     * would change places. */
    if (can || (why != LEFT_UNKNOWN_TYPE && c.out != 0)) {
        if (q->begun && !bucket_same_key(&q->key, &c.key)) {
            close_bucket(f, q, CLOSED_KEY);
            next_index(f, q, 0);
        }
        if (c.key.device == 0 && q->open) /* a device known for one member holds for all */
            c.key.device = q->key.device;
        q->begun = true;
        q->key = c.key;
    }
    if (can && (double)c.bytes > s->o->member_mb * 1024 * 1024) { /* never, if that is NAN */
        can = false;
        why = LEFT_OVERSIZED;
    }
    if (!can) {
        leave(f, start, why);
    } else if (place(f, q, &c)) {
        f->data[wait] = larger(f->data[wait], q->number);
        f->order[wait] = larger(f->order[wait], q->number);
        /* what must come after the read of its operand comes after the bucket */
        push(f, start, q->number);
        if (c.cvt != 0) /* the same for the operand of a removed conversion */
            push(f, c.cvt, q->number);
    }
}

static void visit_start(struct find *f, uint32_t n)
{
    const tuck_graph *g = f->s->r->g;
    bool viewed = false; /* a wait for a view also counts */
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

    uint32_t n_run = s->o->torch || s->r->keep_order ? 1 : g->group.len + 1;

    return (struct find){
        .s = s,
        .run = arena_zeroed(a, n_run * sizeof(struct run)),
        .n_run = n_run,
        .data = arena_zeroed(a, bytes),
        .order = arena_zeroed(a, bytes),
        .own = arena_zeroed(a, bytes),
        .sequence = arena_zeroed(a, ((size_t)g->group.len + 1) * sizeof(uint32_t))};
}

static void visit(struct find *f, uint32_t n)
{
    const tuck_graph *g = f->s->r->g;

    gather(f, n);
    take_place(f, n);
    if (bucket_is_kind(f->s, n)) {
        visit_start(f, n);
    } else if (op_at(node_op(g, n))->cls == OP_WAIT) {
        uint32_t start = call_node(g, node_at(g, n), 0);
        if (start != 0 && bucket_is_kind(f->s, start))
            decide(f, start, n);
    }
    if (f->order[n] != 0)
        push(f, n, f->order[n]);
}

tuck_status buckets_find(struct bucket_scan *s, struct buckets *b)
{
    const tuck_graph *g = s->r->g;
    const struct torch_order *t = s->o->order; /* torch does not sort between two kinds */
    struct find f = start_walk(s);

    f.out = b;
    if (t != NULL && t->list.len > 0)
        for (uint32_t k = 0; k < t->list.len; k++)
            visit(&f, t->list.at[k]);
    else
        for_each_node (g, n)
            visit(&f, n);
    for (uint32_t i = 0; i < f.n_run; i++)
        close_bucket(&f, &f.run[i], CLOSED_END);
    comm_leave_hidden(s->r, s->o->kind);
    if (f.bad_cap)
        return pass_fail(s->r, 0, "the cap of bucket %u is not a valid number of MiB", f.bad_index);
    return TUCK_OK;
}

/* The same walk, with given members. */
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

    for (uint32_t i = 1; i < b->n && b->collective_before == 0 && !s->o->torch; i++)
        if (comm_fence_between(s->r->places, b->member[0].start, b->member[i].start) ||
            (s->r->keep_order &&
             comm_others_between(s->r->places, b->member[0].start, b->member[i].start))) {
            *why = LEFT_ORDER;
            *node = b->member[i].start;
            return false;
        }
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
