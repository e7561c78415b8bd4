/* Puts candidates into buckets, in the order of the graph.
 *
 * Merging must not create a cycle: no member of a bucket may depend on another, by uses, by reads
 * and writes of one storage or by the order of collectives, nor by way of other buckets. One walk
 * ensures both: a candidate that depends on any open bucket closes it. So whatever a bucket depends
 * on was complete before the member that depends on it came, and "depends on" is an order among
 * buckets.
 *
 * Every node carries, for each key, the highest bucket number among its ancestors. Buckets of one
 * key are opened one after the other, so a node depends on the open one if and only if it carries
 * that number. If there are more keys than columns, several share one, and an open bucket with a
 * lower number counts as an ancestor too: that closes more buckets than necessary, never fewer.
 */
#include "base/csr.h"
#include "rewrite/ddp/ddp.h"
#include "infer/infer.h"
#include "rewrite/comm_order.h"

enum { MAX_COLUMNS = 8 };

struct open_list { /* of one column, lower numbers first; closed ones are skipped */
    VEC(uint32_t) bucket;
    uint32_t head;
};

struct walk {
    struct ddp *d;
    uint32_t columns;
    uint32_t *carried;            /* by node, `columns` each */
    uint32_t *chain;              /* by group: what its last unmerged collective carries */
    bool *group_began;            /* by group: one of its buckets was closed */
    uint32_t *open_of;            /* by key: its open bucket, 0 = none */
    struct open_list *open;       /* by column */
    uint32_t *in_start, *in_from; /* edges to keep, by their end */
    uint32_t *read_for;           /* by node: members whose gradient it reads, from 1 */
    bool *overtaken;              /* by node: a node that must stay after it was seen */
};

static int64_t add_bytes(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static void merge_max(uint32_t *into, const uint32_t *from, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (from[i] > into[i])
            into[i] = from[i];
}

static void sort_edges(struct walk *w)
{
    const struct topo_edges *e = &w->d->keep;
    struct arena *a = &w->d->r->arena;
    size_t ids = w->d->r->g->node.len;

    w->in_start = csr_begin(a, ids);
    w->in_from = arena_array(a, uint32_t, e->edge.len);
    for (uint32_t i = 0; i < e->edge.len; i++)
        csr_count(w->in_start, e->edge.at[i].to);
    csr_sum(w->in_start, ids);
    for (uint32_t i = 0; i < e->edge.len; i++)
        w->in_from[csr_place(w->in_start, e->edge.at[i].to)] = e->edge.at[i].from;
}

static void close_bucket(struct walk *w, uint32_t number, enum closed_by why)
{
    struct ddp *d = w->d;
    struct bucket *b = &d->bucket.at[number - 1];

    b->open = false;
    b->closed_by = why;
    w->open_of[b->key] = 0;
    w->group_began[d->group[d->cand.at[b->member.at[0]].collective] + 1] = true;
}

/* Closes open buckets among the ancestors. */
static void close_ancestors(struct walk *w, const uint32_t *carried, enum closed_by why)
{
    for (uint32_t i = 0; i < w->columns; i++) {
        struct open_list *l = &w->open[i];

        for (; l->head < l->bucket.len; l->head++) {
            uint32_t number = l->bucket.at[l->head];
            if (!w->d->bucket.at[number - 1].open)
                continue;
            if (number > carried[i])
                break;
            close_bucket(w, number, why);
        }
    }
}

static uint32_t open_bucket(struct walk *w, uint32_t key)
{
    struct ddp *d = w->d;
    struct bucket b = {.key = key, .open = true};

    vec_push_in(&d->r->arena, &d->bucket, b);
    w->open_of[key] = d->bucket.len;
    vec_push_in(&d->r->arena, &w->open[key % w->columns].bucket, d->bucket.len);
    return d->bucket.len;
}

/* Must `node` stay after anything that comes after `since`, other than `except`? */
static bool stands_between(const struct walk *w, uint32_t since, uint32_t node, uint32_t except)
{
    const tuck_graph *g = w->d->r->g;

    for (uint32_t i = w->in_start[node]; i < w->in_start[node + 1]; i++)
        if (w->in_from[i] != except && node_at(g, w->in_from[i])->pos > node_at(g, since)->pos)
            return true;
    return false;
}

/* Is the gradient or its quotient written before the collective, or the wait's operand before the
 * wait? */
static bool is_written(const struct walk *w, const struct candidate *c)
{
    if (c->reader != c->collective &&
        (w->overtaken[c->reader] || stands_between(w, c->reader, c->collective, c->reader)))
        return true;
    return stands_between(w, c->collective, c->wait, c->collective);
}

/* The sequence that a collective belongs to: its group's, or the one of all groups. */
static uint32_t chain_of(const struct ddp *d, uint32_t n)
{
    return d->r->keep_order ? 0 : (uint32_t)(d->group[n] + 1);
}

static void add_member(struct walk *w, uint32_t index, uint32_t *carried)
{
    struct ddp *d = w->d;
    struct candidate *c = &d->cand.at[index];
    uint32_t group = (uint32_t)(d->group[c->collective] + 1), column = c->key % w->columns;

    close_ancestors(w, carried, CLOSED_DEPENDENCE);
    uint32_t number = w->open_of[c->key];
    if (number == 0) {
        /* The first member keeps the merged collective after the collectives before it. */
        merge_max(carried, &w->chain[chain_of(d, c->collective) * w->columns], w->columns);
        close_ancestors(w, carried, CLOSED_ORDER);
        number = open_bucket(w, c->key);
    }
    struct bucket *b = &d->bucket.at[number - 1];
    vec_push_in(&d->r->arena, &b->member, index);
    b->bytes = add_bytes(b->bytes, c->bytes);
    c->bucket = number;
    carried[column] = number;
    c->next_of_reader = w->read_for[c->reader];
    w->read_for[c->reader] = index + 1;
    double limit = w->group_began[group] ? d->o->bucket_size_mb * 1024 * 1024 : DDP_FIRST_BUCKET;
    if ((double)b->bytes >= limit)
        close_bucket(w, number, CLOSED_CAP);
}

/* No bucket has members on both sides of a fence or, if the whole sequence must be kept, of a
 * collective of another group. */
static void close_others(struct walk *w, int32_t group)
{
    struct ddp *d = w->d;

    for (uint32_t key = 0; key < d->n_key; key++) {
        uint32_t number = w->open_of[key];
        if (number == 0)
            continue;
        uint32_t first = d->cand.at[d->bucket.at[number - 1].member.at[0]].collective;
        if (d->group[first] != group)
            close_bucket(w, number, CLOSED_ORDER);
    }
}

/* A fence comes after all communication before it, and before all that follows. */
static void meet_fence(struct walk *w, uint32_t *carried)
{
    uint32_t groups = w->d->r->g->group.len + 1;

    for (uint32_t g = 0; g < groups; g++)
        merge_max(carried, &w->chain[g * w->columns], w->columns);
    for (uint32_t g = 0; g < groups; g++)
        merge_max(&w->chain[g * w->columns], carried, w->columns);
}

static void meet_collective(struct walk *w, uint32_t n, uint32_t *carried)
{
    struct ddp *d = w->d;
    uint32_t *chain = &w->chain[chain_of(d, n) * w->columns];
    uint32_t index = d->cand_of[n];
    bool fence = comm_is_fence(d->r->g, &d->lines, n);

    if (fence || d->r->keep_order)
        close_others(w, d->group[n]);
    if (fence)
        meet_fence(w, carried);

    if (index != 0 && d->cand.at[index - 1].why == LEFT_END) {
        struct candidate *c = &d->cand.at[index - 1];
        if (!is_written(w, c)) {
            add_member(w, index - 1, carried);
            return;
        }
        c->why = LEFT_MUTATED;
    }
    merge_max(carried, chain, w->columns);
    memcpy(chain, carried, w->columns * sizeof(*chain));
}

/* A call of a graph with collectives has a position in the order of their group, or is a fence. */
static void meet_nested(struct walk *w, uint32_t n, uint32_t *carried)
{
    const struct ddp *d = w->d;
    const struct comm_lines *l = &d->lines;

    if (!comm_in_line(l, n))
        return;
    int32_t group = l->line[l->start[n]];
    if (comm_is_fence(d->r->g, l, n)) {
        close_others(w, LINE_ANY);
        meet_fence(w, carried);
        return;
    }
    if (d->r->keep_order)
        close_others(w, group);
    uint32_t *chain = &w->chain[(d->r->keep_order ? 0 : (uint32_t)group + 1) * w->columns];
    merge_max(carried, chain, w->columns);
    memcpy(chain, carried, w->columns * sizeof(*chain));
}

/* What must stay after the reader of a gradient must stay after the merged collective, which will
 * read it instead. */
static void carry_readings(struct walk *w, uint32_t reader, uint32_t *carried)
{
    const struct ddp *d = w->d;

    for (uint32_t i = w->read_for[reader]; i != 0; i = d->cand.at[i - 1].next_of_reader) {
        const struct candidate *c = &d->cand.at[i - 1];
        uint32_t *to = &carried[c->key % w->columns];
        if (c->bucket > *to)
            *to = c->bucket;
    }
}

static void visit(struct walk *w, uint32_t n)
{
    const tuck_graph *g = w->d->r->g;
    const struct fx_node *x = node_at(g, n);
    uint32_t *carried = &w->carried[(size_t)n * w->columns];

    for (uint32_t i = 0; i < x->n_vals; i++)
        if (x->vals[i].kind == TUCK_V_NODE)
            merge_max(carried, &w->carried[(size_t)x->vals[i].a * w->columns], w->columns);
    for (uint32_t i = w->in_start[n]; i < w->in_start[n + 1]; i++) {
        merge_max(carried, &w->carried[(size_t)w->in_from[i] * w->columns], w->columns);
        carry_readings(w, w->in_from[i], carried);
        w->overtaken[w->in_from[i]] = true;
    }
    if (comm_communicates(g, n))
        meet_collective(w, n, carried);
    else
        meet_nested(w, n, carried);
}

static enum left_reason why_alone(const struct ddp *d, const struct bucket *b)
{
    if (d->torch)
        return LEFT_ALONE;
    if ((double)b->bytes >= d->o->bucket_size_mb * 1024 * 1024)
        return LEFT_OVERSIZED;
    return b->closed_by == CLOSED_DEPENDENCE ? LEFT_DEPENDENCE
           : b->closed_by == CLOSED_ORDER    ? LEFT_ORDER
                                             : LEFT_ALONE;
}

/* Buckets with one member are not merged. */
static void leave_singles(struct ddp *d)
{
    for (uint32_t i = 0; i < d->bucket.len; i++) {
        const struct bucket *b = &d->bucket.at[i];
        if (b->member.len == 1)
            d->cand.at[b->member.at[0]].why = why_alone(d, b);
    }
}

void ddp_bucket(struct ddp *d)
{
    struct pass_run *r = d->r;
    struct arena *a = &r->arena;
    size_t ids = r->g->node.len, groups = (size_t)r->g->group.len + 1;
    struct walk w = {.d = d, .columns = d->n_key < MAX_COLUMNS ? d->n_key : MAX_COLUMNS};

    if (d->n_key == 0)
        return;
    size_t row = w.columns * sizeof(uint32_t);
    w.carried = arena_zeroed(a, mem_times(a->mem, ids, row));
    w.chain = arena_zeroed(a, groups * row);
    w.group_began = arena_zeroed(a, groups * sizeof(*w.group_began));
    w.open_of = arena_zeroed(a, d->n_key * sizeof(*w.open_of));
    w.open = arena_zeroed(a, w.columns * sizeof(*w.open));
    w.read_for = arena_zeroed(a, ids * sizeof(*w.read_for));
    w.overtaken = arena_zeroed(a, ids * sizeof(*w.overtaken));
    sort_edges(&w);
    for_each_node (r->g, n)
        visit(&w, n);
    for (uint32_t i = 0; i < d->bucket.len; i++)
        if (d->bucket.at[i].open)
            close_bucket(&w, i + 1, CLOSED_END);
    leave_singles(d);
}

/* torch fills one bucket after the other, ignoring keys. */
void ddp_bucket_as_torch(struct ddp *d)
{
    struct arena *a = &d->r->arena;
    double limit = DDP_FIRST_BUCKET;

    for (uint32_t i = 0; i < d->cand.len; i++) {
        struct candidate *c = &d->cand.at[i];
        struct bucket *b = d->bucket.len > 0 ? &d->bucket.at[d->bucket.len - 1] : NULL;

        if (c->why != LEFT_END)
            continue;
        if (b == NULL || !b->open) {
            vec_push_in(a, &d->bucket, ((struct bucket){.open = true, .closed_by = CLOSED_END}));
            b = &d->bucket.at[d->bucket.len - 1];
        }
        vec_push_in(a, &b->member, i);
        b->bytes = add_bytes(b->bytes, c->bytes);
        c->bucket = d->bucket.len;
        if ((double)b->bytes >= limit) {
            b->open = false;
            b->closed_by = CLOSED_CAP;
            limit = d->o->bucket_size_mb * 1024 * 1024;
        }
    }
    leave_singles(d);
}
