/* Order and buckets become a graph. Each bucket is written behind its seed, what it needs moves in
 * front of it, and in the end all is sorted by uses and by the edges of the timelines. */
#include "overlap/extra_edges.h"
#include "rewrite/bucket/bucket_emit.h"
#include "rewrite/stable_sort.h"

enum { LABEL_STEP = 1 << 20, KINDS = 16 };

struct writing {
    struct facts *f;
    struct pass_run *r;
    tuck_graph *g;
    struct overlap_buckets *b;
    struct stable_sort sort;
    const struct extra_edges *extra; /* what the sort heeds besides uses; NULL: nothing */
    VEC(int64_t) label;              /* by place: rises along the list of nodes */
    VEC(int64_t) labels;             /* of a region, while it is sorted */
    struct bucket_options options[KINDS];
    struct bucket_scan *scan[KINDS];
    struct bucket *bucket;
    VEC(uint32_t) region, erased;
    VEC(uint32_t) instead; /* by place: what does its work now; NO_PLACE: itself */
    struct topo_edges keep;
    uint32_t *begin, *end; /* see topo_map() */
    uint32_t n_old;
};

static const char *name_of(const struct writing *w, uint32_t n)
{
    return graph_str(w->g, node_at(w->g, n)->name);
}

/* ---- the list of nodes ---- */

static void operands(struct stable_sort *s, uint32_t i)
{
    const struct writing *w = s->ctx;
    const struct fx_node *x = node_at(w->g, w->f->id.at[i]);

    for (uint32_t k = 0; k < x->n_vals; k++)
        if (x->vals[k].kind == TUCK_V_NODE)
            stable_needs(s, w->f->place.at[x->vals[k].a]);
    if (w->extra != NULL)
        for_edges(&w->extra->deps, i, k) stable_needs(s, w->extra->deps.item.at[k].to);
}

static void relink(struct writing *w, const uint32_t *place, uint32_t n, uint32_t before)
{
    for (uint32_t k = 0; k < n; k++)
        graph_unlink(w->g, w->f->id.at[place[k]]);
    for (uint32_t k = 0; k < n; k++)
        graph_link_before(w->g, w->f->id.at[place[k]], before);
}

static void label_all(struct writing *w)
{
    int64_t label = 0;

    while (w->label.len < w->f->id.len)
        vec_push_in(w->f->a, &w->label, 0);
    for_each_node (w->g, n)
        w->label.at[w->f->place.at[n]] = label += LABEL_STEP;
}

/* As torch has it: inputs stay in front, and the output is last. */
static void put_in_order(struct writing *w, const struct overlap_result *order)
{
    struct facts *f = w->f;
    uint32_t *place = arena_array(f->a, uint32_t, f->n), n = 0;

    for (uint32_t i = 0; i < f->n; i++)
        if (f->flag[i] & IS_INPUT)
            place[n++] = i;
    for (uint32_t k = 0; k < f->n; k++)
        if (!(f->flag[order->order[k]] & IS_INPUT) && f->id.at[order->order[k]] != w->g->output)
            place[n++] = order->order[k];
    if (w->g->output != 0)
        place[n++] = f->place.at[w->g->output];
    relink(w, place, n, 0);
    graph_edited(w->g, true);
    label_all(w);
}

/* ---- reading the members ---- */

static tuck_status read_bucket(struct writing *w, const struct overlap_bucket *from,
                               struct bucket *to)
{
    struct facts *f = w->f;
    tuck_coll kind = (tuck_coll)f->coll[from->member[0]].kind;
    enum left_reason why;

    if (w->scan[kind] == NULL) {
        w->options[kind] = (struct bucket_options){
            .kind = kind, .mode = (enum bucket_mode)f->o->bucket_mode, .torch = true};
        if (kind != TUCK_ALL_GATHER && f->o->bucket_mode == BUCKET_MULTIDTYPE)
            w->options[kind].mode = BUCKET_CUSTOM;
        w->scan[kind] = arena_new(f->a, struct bucket_scan);
        bucket_scan(w->scan[kind], w->r, &w->options[kind]);
    }
    *to = (struct bucket){.n = from->n, .closed_by = CLOSED_END};
    to->member = arena_array(f->a, struct bucket_cand, from->n);
    for (uint32_t k = 0; k < from->n; k++) {
        const struct coll *c = &f->coll[from->member[k]];
        uint32_t start = f->id.at[c->start];

        if (f->out.start[c->start + 1] - f->out.start[c->start] != 1)
            return pass_fail(w->r, start, "'%s' is not used by a single wait alone: PyTorch raises",
                             name_of(w, start));
        if (!bucket_read(w->scan[kind], start, f->id.at[c->wait], &to->member[k], &why))
            return pass_fail(w->r, start, "'%s' cannot be merged: %s", name_of(w, start),
                             left_reason_meaning(why));
        to->bytes += to->member[k].bytes;
    }
    bucket_settle(w->scan[kind], to);
    return TUCK_OK;
}

/* ---- edges of what is erased ---- */

static uint32_t instead(const struct writing *w, uint32_t i)
{
    return i < w->instead.len && w->instead.at[i] != NO_PLACE ? w->instead.at[i] : i;
}

static void replaced_by(struct writing *w, uint32_t old, uint32_t by)
{
    uint32_t i = w->f->place.at[old];

    while (w->instead.len <= i)
        vec_push_in(w->f->a, &w->instead, NO_PLACE);
    w->instead.at[i] = w->f->place.at[by];
    vec_push_in(w->f->a, &w->erased, i);
}

static bool uses(const struct writing *w, uint32_t user, uint32_t used)
{
    const struct fx_node *x = node_at(w->g, w->f->id.at[user]);

    for (uint32_t k = 0; k < x->n_vals; k++)
        if (x->vals[k].kind == TUCK_V_NODE && x->vals[k].a == w->f->id.at[used])
            return true;
    return false;
}

/* Does `before` have to come before `after`, by an edge or a use? */
static bool is_after(const struct writing *w, uint32_t after, uint32_t before)
{
    return edge_has(&w->b->extra->deps, after, before) || uses(w, after, before);
}

/* Those of a bucket that lead from one of its nodes to another go, and those that contradict one
 * that is there. */
static void hand_on(struct writing *w, uint32_t old)
{
    struct extra_edges *e = w->b->extra;
    uint32_t new = instead(w, old);

    for_edges(&e->deps, old, k)
    {
        uint32_t dep = instead(w, e->deps.item.at[k].to);
        if (dep == new || is_after(w, dep, new))
            continue;
        extra_touch(e, new);
        edge_put(&e->deps, new, dep);
        edge_drop(&e->uses, dep, old);
        edge_put(&e->uses, dep, new);
    }
    for_edges(&e->uses, old, k)
    {
        uint32_t use = instead(w, e->uses.item.at[k].to);
        if (use == new || is_after(w, new, use))
            continue;
        extra_touch(e, use);
        edge_drop(&e->deps, use, old);
        edge_put(&e->deps, use, new);
        edge_put(&e->uses, new, use);
    }
}

static void hand_on_all(struct writing *w)
{
    for (uint32_t k = 0; k < w->erased.len; k++)
        hand_on(w, w->erased.at[k]);
    for (uint32_t k = 0; k < w->erased.len; k++) {
        edge_clear(&w->b->extra->deps, w->erased.at[k]);
        edge_clear(&w->b->extra->uses, w->erased.at[k]);
        w->instead.at[w->erased.at[k]] = NO_PLACE;
    }
    w->erased.len = 0;
}

/* ---- one bucket ---- */

/* Nodes made between two others. */
static uint32_t number_new(struct writing *w, uint32_t behind, uint32_t before)
{
    struct facts *f = w->f;
    uint32_t first = f->id.len, n;

    while (f->place.len < w->g->node.len)
        vec_push_in(f->a, &f->place, NO_PLACE);
    for (n = behind ? node_at(w->g, behind)->next : w->g->node.at[0].next; n != before;
         n = node_at(w->g, n)->next) {
        f->place.at[n] = f->id.len;
        vec_push_in(f->a, &f->id, n);
    }
    int64_t from = behind ? w->label.at[f->place.at[behind]] : 0,
            to = before ? w->label.at[f->place.at[before]] : INT64_MAX;
    int64_t step = (to - from) / (f->id.len - first + 1);
    if (step == 0) {
        label_all(w);
        return first;
    }
    while (w->label.len < f->id.len)
        vec_push_in(f->a, &w->label, from += step);
    return first;
}

/* What is between the new nodes and their operands is sorted by uses. */
static bool sort_region(struct writing *w, const struct bucket *b, uint32_t first_new)
{
    struct facts *f = w->f;
    uint32_t first = first_new, last = f->id.len - 1;

    for (uint32_t k = 0; k <= b->n; k++) {
        uint32_t n = k < b->n ? b->member[k].input : b->member[0].group_node;
        if (n == 0 || node_at(w->g, n)->kind == TUCK_PLACEHOLDER)
            continue;
        uint32_t i = f->place.at[n];
        first = w->label.at[i] < w->label.at[first] ? i : first;
        last = w->label.at[i] > w->label.at[last] ? i : last;
    }
    w->region.len = 0;
    for (uint32_t n = f->id.at[first];; n = node_at(w->g, n)->next) {
        vec_push_in(f->a, &w->region, f->place.at[n]);
        if (n == f->id.at[last])
            break;
    }
    uint32_t behind = node_at(w->g, f->id.at[last])->next;
    w->extra = NULL;
    if (!stable_sort(&w->sort, f->id.len, w->region.at, w->region.len))
        return false;
    w->labels.len = 0;
    for (uint32_t k = 0; k < w->region.len; k++)
        vec_push_in(f->a, &w->labels, w->label.at[w->region.at[k]]);
    for (uint32_t k = 0; k < w->region.len; k++)
        w->label.at[w->sort.out.at[k]] = w->labels.at[k];
    relink(w, w->sort.out.at, w->region.len, behind);
    return true;
}

static void note_ends(struct writing *w, const struct bucket *b, const struct emit *e)
{
    for (uint32_t i = 0; i < b->n; i++) {
        const struct bucket_cand *c = &b->member[i];
        uint32_t first = e->first[i] ? e->first[i] : e->reader[i];
        w->begin[c->start] = first;
        w->end[c->start] = e->reader[i];
        w->begin[c->wait] = w->end[c->wait] = e->wait[i];
        if (c->cvt != 0) {
            w->begin[c->cvt] = first;
            w->end[c->cvt] = e->reader[i];
        }
    }
}

/* Its operand may be what another bucket put in the place of a wait. */
static void refresh(struct writing *w, struct bucket_cand *c)
{
    const tuck_value *input = comm_operand(w->g, &w->r->sigs, c->start, "input");

    if (input == NULL || input->kind != TUCK_V_NODE)
        return;
    c->input = c->cvt != 0 ? call_node(w->g, node_at(w->g, c->cvt), 0) : input->a;
}

/* What stands for a wait has its type, until types are inferred again. */
static void hand_on_type(struct writing *w, const struct bucket_cand *c, uint32_t piece)
{
    while (w->g->type.len <= piece)
        vec_push(w->r->mem, &w->g->type, 0);
    w->g->type.at[piece] = node_type(w->g, c->wait);
}

/* What a conversion did is done by the copy into the bucket, where that is one node. */
static uint32_t converter(struct writing *w, uint32_t collective)
{
    const tuck_value *out = comm_operand(w->g, &w->r->sigs, collective, "out");

    return w->f->o->bucket_mode == BUCKET_CUSTOM || w->f->o->bucket_mode == BUCKET_MULTIDTYPE
               ? (out != NULL && out->kind == TUCK_V_NODE ? out->a : collective)
               : collective;
}

static tuck_status write_bucket(struct writing *w, struct bucket *b, tuck_coll kind)
{
    struct pass_run *r = w->r;
    tuck_graph *g = w->g;
    struct bucket_scan *s = w->scan[kind];
    uint32_t next = b->member[0].start;

    for (bool again = true; again;) {
        again = false;
        for (uint32_t k = 0; k < b->n && !again; k++)
            again = b->member[k].start == next;
        next = again ? node_at(g, next)->next : next;
    }
    uint32_t behind = node_at(g, next)->prev;
    for (uint32_t i = 0; i < b->n; i++)
        refresh(w, &b->member[i]);
    struct emit e = {.s = s, .b = b, .o = s->o, .in = build_at(r, next), .out = build_at(r, next)};
    e.in.comment = e.out.comment = node_at(g, b->member[0].start)->comment;
    emit_bucket(&e);
    b->result = e.collective;
    note_ends(w, b, &e);
    uint32_t first_new = number_new(w, behind, next);
    for (uint32_t i = 0; i < b->n; i++)
        replaced_by(w, b->member[i].start, e.collective);
    for (uint32_t i = 0; i < b->n; i++)
        replaced_by(w, b->member[i].wait, e.wait[b->n - 1]); /* of several, torch has the last */
    for (uint32_t i = 0; i < b->n; i++)
        if (b->member[i].cvt != 0)
            replaced_by(w, b->member[i].cvt, converter(w, e.collective));
    buckets_report(s, &(struct buckets){.bucket = {.at = b, .len = 1, .cap = 1}});
    for (uint32_t i = 0; i < b->n; i++) {
        const struct bucket_cand *c = &b->member[i];
        hand_on_type(w, c, e.piece[i]);
        if (node_at(g, c->wait)->n_uses > 0)
            build_replace(r, c->wait, e.piece[i]);
        build_erase(r, c->wait);
        build_erase(r, c->start);
        if (c->cvt != 0)
            build_erase(r, c->cvt);
    }
    if (!sort_region(w, b, first_new))
        return pass_fail(r, 0, "PyTorch raises: a bucket depends on itself");
    hand_on_all(w);
    return TUCK_OK;
}

/* ---- the whole order ---- */

static bool is_gone(const struct writing *w, uint32_t i)
{
    return !node_alive(w->g, w->f->id.at[i]);
}

static void forget_erased(struct writing *w)
{
    struct extra_edges *e = w->b->extra;

    for (uint32_t k = 0; k < e->keys.len; k++) {
        uint32_t n = e->keys.at[k];
        for (uint32_t i = edge_first(&e->deps, n), next; i != 0; i = next) {
            next = e->deps.item.at[i].next;
            if (is_gone(w, n) || is_gone(w, e->deps.item.at[i].to))
                extra_remove(e, n, e->deps.item.at[i].to);
        }
    }
}

/* Does `to` come after `from`, among nodes that the sort could not put out? */
static bool leads_to(struct writing *w, uint32_t from, uint32_t to)
{
    struct stable_sort *s = &w->sort;
    const struct extra_edges *e = w->b->extra;

    s->looks++;
    s->stack.len = 0;
    vec_push_in(w->f->a, &s->stack, to);
    while (s->stack.len > 0) {
        uint32_t i = s->stack.at[--s->stack.len];
        const struct fx_node *x = node_at(w->g, w->f->id.at[i]);

        if (i == from)
            return true;
        if (s->seen.at[i] == s->looks || s->ready.at[i] == s->number)
            continue;
        s->seen.at[i] = s->looks;
        for (uint32_t k = 0; k < x->n_vals; k++)
            if (x->vals[k].kind == TUCK_V_NODE)
                vec_push_in(w->f->a, &s->stack, w->f->place.at[x->vals[k].a]);
        for_edges(&e->deps, i, k) vec_push_in(w->f->a, &s->stack, e->deps.item.at[k].to);
    }
    return false;
}

static uint32_t cut_cycles(struct writing *w)
{
    struct extra_edges *e = w->b->extra;
    struct stable_sort *s = &w->sort;
    uint32_t cut = 0;

    for (uint32_t k = 0; k < e->keys.len; k++) {
        uint32_t n = e->keys.at[k];
        for (uint32_t i = edge_first(&e->deps, n), next; i != 0; i = next) {
            uint32_t dep = e->deps.item.at[i].to;
            next = e->deps.item.at[i].next;
            if (s->ready.at[n] == s->number || s->ready.at[dep] == s->number ||
                !leads_to(w, n, dep))
                continue;
            extra_remove(e, n, dep);
            cut++;
        }
    }
    return cut;
}

static tuck_status sort_all(struct writing *w)
{
    struct facts *f = w->f;
    uint32_t *node = arena_array(f->a, uint32_t, w->g->n_nodes), n = 0;

    forget_erased(w);
    for_each_node (w->g, i)
        if (i != w->g->output)
            node[n++] = f->place.at[i];
    w->extra = w->b->extra;
    if (!stable_sort(&w->sort, f->id.len, node, n)) {
        if (!f->o->overlap_scheduling_autofix_cycles)
            return pass_fail(w->r, 0,
                             "PyTorch raises: its buckets contradict its schedule "
                             "(overlap_scheduling_autofix_cycles=true drops what does)");
        report_count(w->r->report, "edges that contradicted others", cut_cycles(w));
        if (!stable_sort(&w->sort, f->id.len, node, n))
            return pass_fail(w->r, 0, "PyTorch raises: no order is left");
    }
    relink(w, w->sort.out.at, n, w->g->output);
    graph_edited(w->g, true);
    return TUCK_OK;
}

/* ---- what it may not break ---- */

static tuck_status check_kept(struct writing *w)
{
    topo_map(&w->keep, 0, w->begin, w->end, w->n_old);
    graph_number(w->g);
    for (uint32_t i = 0; i < w->keep.edge.len; i++) {
        const struct topo_edge *e = &w->keep.edge.at[i];
        if (!node_alive(w->g, e->from) || !node_alive(w->g, e->to) || e->from == e->to ||
            node_at(w->g, e->from)->pos < node_at(w->g, e->to)->pos)
            continue;
        return pass_fail(w->r, e->to,
                         "PyTorch's order has '%s' before '%s', over a write or an effect: "
                         "nothing is changed",
                         name_of(w, e->to), name_of(w, e->from));
    }
    tuck_status st = tuck_graph_lint(w->g, NULL);
    if (st == TUCK_ELINT)
        return pass_fail(w->r, 0, "PyTorch's order is no valid graph: nothing is changed");
    return st;
}

/* A fence keeps its place among all communication. */
static tuck_status check_fences(struct writing *w, const struct comm_places *was)
{
    tuck_graph *g = w->g;
    const struct comm_lines *lines = comm_lines_of(w->r);
    uint32_t fences = 0;

    for (uint32_t i = 0; i < lines->n_node; i++) {
        uint32_t n = lines->node[i];

        if (n < was->n && was->fences[n] != fences)
            return pass_fail(w->r, n,
                             "PyTorch's order moves '%s' over communication that keeps its place: "
                             "nothing is changed",
                             name_of(w, n));
        fences += comm_is_fence(g, lines, n);
    }
    return TUCK_OK;
}

tuck_status overlap_write(struct facts *f, const struct overlap_result *order,
                          struct overlap_buckets *b)
{
    struct writing *w = arena_new(f->a, struct writing);
    tuck_status st = TUCK_OK;

    *w = (struct writing){.f = f, .r = f->r, .g = f->r->g, .b = b, .n_old = f->r->g->node.len};
    w->sort = (struct stable_sort){.a = f->a, .operands = operands, .ctx = w};
    w->begin = arena_zeroed(f->a, w->n_old * sizeof(*w->begin));
    w->end = arena_zeroed(f->a, w->n_old * sizeof(*w->end));
    topo_keep(w->g, f->a, &w->keep);
    const struct comm_places *was = comm_places(w->r);
    w->bucket = arena_array(f->a, struct bucket, b->bucket.len);
    for (uint32_t i = 0; i < b->bucket.len && st == TUCK_OK; i++)
        st = read_bucket(w, &b->bucket.at[i], &w->bucket[i]);
    if (st != TUCK_OK)
        return st;
    put_in_order(w, order);
    w->r->changed = true;
    for (uint32_t i = 0; i < b->bucket.len && st == TUCK_OK; i++)
        st = write_bucket(w, &w->bucket[i], (tuck_coll)f->coll[b->bucket.at[i].member[0]].kind);
    if (st == TUCK_OK && b->extra != NULL)
        st = sort_all(w);
    if (st == TUCK_OK)
        st = check_fences(w, was);
    return st == TUCK_OK ? check_kept(w) : st;
}
