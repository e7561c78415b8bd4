/* Turns buckets into collectives: where the new nodes go, what they replace, and the final order.
 *
 * The merged collective goes right after the latest of its operands, but not before its first
 * member; its wait goes where the earliest of the old waits was, or after the collective if that is
 * later. Whatever uses a result earlier than that is moved after it by the final sort, which keeps
 * reads and writes in order and the collectives of each group in sequence. With compat=torch both
 * go where PyTorch puts them, and the order is PyTorch's if that keeps reads and writes in order.
 */
#include "rewrite/bucket/bucket_emit.h"
#include "infer/infer.h"
#include "rewrite/bucket/torch_order.h"

static const struct type *type_of_node(const tuck_graph *g, uint32_t n)
{
    return type_at(&g->store->type, node_type(g, n));
}

/* ---- before new nodes are made ---- */

static void unfold(struct bucket_cand *c)
{
    if (c->cvt != 0)
        c->input = c->cvt;
    c->cvt = 0;
}

/* All members go through one `cat`, which promotes their dtypes. A member whose values would not
 * survive that keeps its own conversion. */
static bool survives(enum dtype from, enum dtype to)
{
    return from == to ||
           (dtype_at(from)->category == DTYPE_IS_FLOAT && dtype_at(to)->category == DTYPE_IS_FLOAT);
}

void bucket_settle(struct bucket_scan *s, struct bucket *b)
{
    const tuck_graph *g = s->r->g;
    const struct bucket_options *o = s->o;
    const struct fx_group *q = &g->group.at[b->member[0].key.group];
    bool ranked = q->rank >= 0 && q->rank < b->member[0].key.group_size, again = true;

    if (o->kind != TUCK_ALL_GATHER || (ranked && (o->torch || o->mode != BUCKET_DEFAULT)))
        return;
    while (again) {
        enum dtype all = (enum dtype)type_of_node(g, b->member[0].input)->dtype;

        again = false;
        for (uint32_t i = 1; i < b->n && all != DTYPE_NONE; i++)
            all = dtype_promote(all, (enum dtype)type_of_node(g, b->member[i].input)->dtype);
        for (uint32_t i = 0; i < b->n; i++) {
            struct bucket_cand *c = &b->member[i];
            enum dtype from = (enum dtype)type_of_node(g, c->input)->dtype;
            if (c->cvt != 0 && (!ranked || !survives(from, all))) {
                unfold(c);
                again = true;
            }
        }
    }
}

/* For members of several dtypes: does every row of the gathered buffer begin at a multiple of each
 * element size? */
static bool is_aligned(struct bucket_scan *s, const struct bucket *b)
{
    const tuck_graph *g = s->r->g;
    int64_t row = 0, largest = 0, smallest = INT64_MAX, v;

    for (uint32_t i = 0; i < b->n; i++) {
        int64_t bytes =
            dtype_at((enum dtype)type_at(&g->store->type, b->member[i].out)->dtype)->bytes;
        largest = bytes > largest ? bytes : largest;
        smallest = bytes < smallest ? bytes : smallest;
    }
    if (largest == smallest)
        return true;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct type *t = type_at(&g->store->type, b->member[i].in);
        int64_t n = dtype_at((enum dtype)t->dtype)->bytes;
        for (uint32_t k = 0; k < t->n; k++) {
            if (!sym_as_int(&g->store->sym, t->size[k], &v))
                return false;
            n *= v;
        }
        row += n;
    }
    /* an empty row has strides of 1, too small for a larger dtype */
    return row > 0 && row % largest == 0;
}

void buckets_check(struct bucket_scan *s, struct buckets *b)
{
    uint32_t n = 0;

    if (s->o->kind != TUCK_ALL_GATHER || s->o->mode != BUCKET_MULTIDTYPE)
        return;
    for (uint32_t i = 0; i < b->bucket.len; i++) {
        struct bucket *x = &b->bucket.at[i];
        if (is_aligned(s, x))
            b->bucket.at[n++] = *x;
        else
            for (uint32_t k = 0; k < x->n; k++)
                report_left(s->r->report, s->r->g, x->member[k].start, LEFT_ALIGNMENT);
    }
    b->bucket.len = n;
}

/* ---- positions ---- */

struct merge {
    struct bucket_scan *s;
    struct topo_edges edges;
    uint32_t *begin, *end; /* by old node: see topo_map() */
    uint32_t n_old;
    bool as_torch;     /* new nodes go where torch puts them */
    uint32_t unranked; /* all-gathers merged without knowing this rank's position */
};

static uint32_t place_of(const struct bucket_scan *s, uint32_t n)
{
    return node_at(s->r->g, n)->pos;
}

struct span {
    uint32_t first, last;       /* the first and the last member */
    uint32_t collective, waits; /* positions that the new nodes go before */
};

static struct span find_span(const struct bucket_scan *s, const struct bucket *b)
{
    const tuck_graph *g = s->r->g;
    struct span x = {.first = b->member[0].start, .last = b->member[0].start, .waits = UINT32_MAX};
    uint32_t latest = b->member[0].group_node ? place_of(s, b->member[0].group_node) : 0;

    for (uint32_t i = 0; i < b->n; i++) {
        const struct bucket_cand *c = &b->member[i];
        uint32_t wait = place_of(s, c->wait), input = place_of(s, c->input);

        if (place_of(s, c->start) < place_of(s, x.first))
            x.first = c->start;
        if (place_of(s, c->start) > place_of(s, x.last))
            x.last = c->start;
        x.waits = wait < x.waits ? wait : x.waits;
        latest = input > latest ? input : latest;
    }
    x.collective = place_of(s, x.first);
    if (latest >= x.collective) {
        x.collective = latest + 1;
        /* the results of one statement stay together */
        while (node_at(g, s->at[x.collective])->kind == TUCK_RESULT)
            x.collective++;
    }
    if (b->collective_before != 0)
        x.collective = place_of(s, b->collective_before);
    if (b->wait_before != 0)
        x.waits = place_of(s, b->wait_before);
    else if (x.waits < x.collective)
        x.waits = x.collective;
    return x;
}

static void make(struct merge *m, struct bucket *b)
{
    struct bucket_scan *s = m->s;
    struct pass_run *r = s->r;
    struct span x = find_span(s, b);
    struct emit e = {.s = s,
                     .b = b,
                     .o = s->o,
                     .in = build_at(r, s->at[x.collective]),
                     .out = build_at(r, s->at[x.waits])};

    if (m->as_torch)
        e.in = e.out = build_behind(r, b->member[b->n - 1].start);
    e.in.comment = node_at(r->g, b->member[0].start)->comment;
    e.out.comment = node_at(r->g, b->member[0].wait)->comment;
    emit_bucket(&e);
    b->result = e.collective;
    m->unranked += s->o->kind == TUCK_ALL_GATHER && e.rank < 0 && s->o->mode != BUCKET_COALESCED;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct bucket_cand *c = &b->member[i];
        uint32_t first = e.first[i] ? e.first[i] : e.reader[i];
        m->begin[c->start] = first;
        m->end[c->start] = e.reader[i];
        m->begin[c->wait] = m->end[c->wait] = e.wait[i];
        if (c->cvt != 0) {
            m->begin[c->cvt] = first;
            m->end[c->cvt] = e.reader[i];
        }
        b->member[i].piece = e.piece[i];
    }
    if (b->collective_before == 0 && !s->o->torch)
        comm_hold(r, &m->edges, b->result, x.first, x.last);
}

static void replace(struct pass_run *r, const struct bucket *b)
{
    for (uint32_t i = 0; i < b->n; i++)
        if (node_at(r->g, b->member[i].wait)->n_uses > 0)
            build_replace(r, b->member[i].wait, b->member[i].piece);
}

static void erase(struct pass_run *r, const struct bucket *b)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct bucket_cand *c = &b->member[i];
        build_erase(r, c->wait);
        build_erase(r, c->start);
        if (c->cvt != 0)
            build_erase(r, c->cvt);
    }
}

/* t: as torch does it, one after the other, since the place of each depends on those before. */
static void merge(struct merge *m, struct buckets *b, struct torch_order *t)
{
    struct pass_run *r = m->s->r;

    for (uint32_t i = 0; i < b->bucket.len; i++) {
        uint32_t first = r->g->node.len;

        assert(b->bucket.at[i].n > 1 && b->bucket.at[i].result == 0);
        bucket_settle(m->s, &b->bucket.at[i]);
        make(m, &b->bucket.at[i]);
        if (t == NULL)
            continue;
        uint32_t last = r->g->node.len - 1;
        replace(r, &b->bucket.at[i]);
        torch_order_bucket(t, &b->bucket.at[i], first, last);
    }
    buckets_report(m->s, b); /* while the members still exist */
    for (uint32_t i = 0; i < b->bucket.len; i++) {
        replace(r, &b->bucket.at[i]);
        erase(r, &b->bucket.at[i]);
    }
}

tuck_status buckets_merge(struct bucket_scan *s, struct buckets *b)
{
    struct pass_run *r = s->r;
    tuck_graph *g = r->g;
    struct merge m = {.s = s, .n_old = g->node.len};
    struct torch_order alone, *t = s->o->order ? s->o->order : &alone;

    if (b->bucket.len == 0)
        return TUCK_OK;
    for (uint32_t i = 0; s->o->torch && i < b->bucket.len; i++)
        for (uint32_t k = 0; k < b->bucket.at[i].n; k++) {
            uint32_t start = b->bucket.at[i].member[k].start;
            if (node_at(g, start)->n_uses != 1)
                return pass_fail(r, start,
                                 "'%s' is not used by a single wait alone: torch raises here",
                                 graph_str(g, node_at(g, start)->name));
        }
    m.begin = arena_zeroed(&r->arena, m.n_old * sizeof(*m.begin));
    m.end = arena_zeroed(&r->arena, m.n_old * sizeof(*m.end));
    m.as_torch = s->o->torch && b->bucket.at[0].collective_before == 0 &&
                 b->bucket.at[0].wait_before == 0;
    if (t == &alone)
        torch_order_begin(t, g, &r->arena);
    else if (m.as_torch)
        torch_order_resume(t);
    if (!s->o->torch) /* torch lets them change places */
        comm_chain_by(r, s->group, &m.edges);
    merge(&m, b, m.as_torch ? t : NULL);
    topo_map(&s->keep, 0, m.begin, m.end, m.n_old);
    for (uint32_t i = 0; i < s->keep.edge.len; i++)
        topo_edge_add(&r->arena, &m.edges, s->keep.edge.at[i].from, s->keep.edge.at[i].to);
    if (m.unranked > 0)
        report_note(r->report, "this rank's position in the group is unknown (--rank): all-gathers "
                               "need one more buffer, and dtype conversions stay");
    if (m.as_torch && torch_order_all(t, &m.edges))
        return TUCK_OK;
    if (!topo_sort_with(g, &r->arena, &m.edges))
        return pass_fail(r, 0,
                         "no order of the merged graph keeps reads, writes and collectives "
                         "in order%s",
                         s->o->torch
                             ? ": PyTorch merges them all the same, and computes something else; "
                               "without compat=torch the buckets are chosen so that one does"
                             : "");
    return TUCK_OK;
}

/* ---- the report ---- */

static const char *key_text(struct bucket_scan *s, const struct bucket *b)
{
    const tuck_graph *g = s->r->g;
    const struct bucket_key *k = &b->member[0].key;
    const char *op = graph_str(g, k->reduce_op);
    const char *dtype = k->dtype ? dtype_at((enum dtype)k->dtype)->abbr : "any dtype";
    size_t n = strlen(op) + strlen(dtype) + 2;
    char *text = arena_alloc(&s->r->arena, n);

    text[0] = '\0';
    if (*op != '\0') {
        strcat(text, op);
        strcat(text, " ");
    }
    return strcat(text, dtype);
}

void buckets_report(struct bucket_scan *s, const struct buckets *b)
{
    const tuck_graph *g = s->r->g;

    for (uint32_t i = 0; i < b->bucket.len; i++) {
        const struct bucket *x = &b->bucket.at[i];
        const char **name = arena_array(&s->r->arena, const char *, x->n);

        for (uint32_t k = 0; k < x->n; k++)
            name[k] = graph_str(g, node_at(g, x->member[k].start)->name);
        report_bucket(s->r->report,
                      &(struct report_bucket){
                          .kind = tuck_coll_name(s->o->kind),
                          .group = graph_str(g, g->group.at[x->member[0].key.group].name),
                          .key = key_text(s, x),
                          .member = name,
                          .n_member = x->n,
                          .bytes = x->bytes,
                          .closed_by = x->closed_by,
                          .result = x->result ? graph_str(g, node_at(g, x->result)->name) : ""});
    }
}
