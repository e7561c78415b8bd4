/* What loops must read and write, however nodes are joined into loops.
 *
 * Only loops that pass values to each other become one (lower/region.c). So loops are in one set if
 * a join leads from one to the next; a join that can never be made, because something in between
 * is no loop, leads nowhere. A result that something other than a loop of its set reads is written,
 * and so is one whose join with a reader cannot be made. What comes from outside is read once in
 * each set, and once by each of the readers in a set that cannot be in one loop.
 */
#include <stdlib.h>
#include <string.h>

#include "infer/infer.h"
#include "lower/lower.h"
#include "op/ops.h"
#include "study/free_items.h"

/* How many later readers of a result are compared with each. */
enum { WINDOW = 4 };

struct reader {
    uint32_t of;   /* the node that is read */
    bool by_view;  /* that is a view, which is part of no loop: it is read from memory */
    uint32_t item; /* by whom */
    uint32_t set;  /* of that item */
    int64_t bytes;
};

struct question {
    uint32_t first, second;
    uint32_t about; /* a reader, or an edge */
    uint32_t ahead; /* of a reader: 0: about what it reads; k: about the k-th after it */
};

struct charge {
    struct free_items *x;
    struct reader *reader;
    uint32_t n_reader;
    bool *written; /* by item */
    int64_t *bytes;
    uint8_t *apart;   /* by reader: a bit for each `ahead` */
    uint32_t *parent; /* by item: union-find over the sets */
    uint32_t *source; /* by node that writes into an operand: a loop that it copies from */
};

/* May a pass do without reading what it reads? Conversions, clones and concatenations are only
 * moved into other copies, which read the same. */
static bool is_gone(const struct op_row *row)
{
    return row->cls == OP_FSDP || row->cls == OP_FACTORY || row->cls == OP_VIEW ||
           (row->cls == OP_COPY && (row->flags & OP_F_MUTATES));
}

static const struct op_row *row_of(const struct free_items *x, uint32_t v)
{
    return op_at(node_op(x->g, x->node[v]));
}

/* Does the item write a result of its own as part of any loop that it is in? */
static bool is_charged(const struct free_items *x, uint32_t v)
{
    const struct op_row *row = row_of(x, v);

    return x->is_loop[v] && x->op[v] != PROGRAM_NONE && x->p->op[x->op[v]].kind != PROGRAM_COPY &&
           x->problem->ps[x->op[v]] > 0 && x->live[x->node[v]] && !x->is_sum[x->node[v]] &&
           row->moves != OP_MOVES_none && row->moves != OP_MOVES_maybe && row->cls != OP_SCALAR;
}

static int64_t bytes_of(struct free_items *x, uint32_t node)
{
    int64_t b = cost_result_bytes(x->run, node);

    return b > 0 ? b : 0;
}

/* A loop's cost counts what its nodes read under the name of a view, even if another of its nodes
 * made it: views are part of no loop (cost_loop()). Views of waits and inputs are not counted on:
 * passes put others in their place. */
static bool reads_view(const struct free_items *x, uint32_t n)
{
    uint32_t u = x->item_of[n];

    if (u == SIDES_NONE || x->op[u] == PROGRAM_NONE || x->node[u] == n || x->p->role == NULL ||
        (x->p->role[n] & ~ROLE_ENDS) != ROLE_VIEW)
        return false;
    enum program_kind kind = (enum program_kind)x->p->op[x->op[u]].kind;
    return kind != PROGRAM_WAIT && kind != PROGRAM_COLLECTIVE;
}

/* Adds to the bytes that an item reads of a result, which it may read under several names. */
static void add_read(struct charge *c, uint32_t from, uint32_t of, uint32_t item, int64_t bytes)
{
    for (uint32_t i = from; i < c->n_reader; i++)
        if (c->reader[i].of == of) {
            c->reader[i].bytes += bytes;
            return;
        }
    c->reader[c->n_reader++] = (struct reader){of, reads_view(c->x, of), item, 0, bytes};
}

static void find_reads(struct charge *c, uint32_t v)
{
    struct free_items *x = c->x;
    uint32_t op = acting_op(x->g, x->node[v]);
    const struct op_row *row = op_at(op);
    const struct op_sig *sig = sigs_get(&x->run->sigs, op);
    struct operand o = {.v = NULL};
    uint32_t from = c->n_reader;

    if (row->moves == OP_MOVES_out)
        return;
    while (operand_next(x->g, x->call[x->node[v]], sig, &o)) {
        if (o.param != NULL && o.param->mutated)
            continue;
        const tuck_value *end = value_next(o.v);
        for (const tuck_value *i = o.v; i < end; i++) {
            if (i->kind != TUCK_V_NODE)
                continue;
            int64_t b = bytes_of(x, i->a), result = bytes_of(x, x->node[v]);
            b = row->moves == OP_MOVES_picked && b > result ? result : b;
            add_read(c, from, reads_view(x, i->a) ? i->a : x->shows[i->a], v, b);
        }
    }
    for (uint32_t i = from; i < c->n_reader; i++) {
        int64_t whole = bytes_of(x, c->reader[i].of);
        c->reader[i].bytes = c->reader[i].bytes < whole ? c->reader[i].bytes : whole;
    }
}

/* Results that something other than a loop reads. */
static void find_written(struct charge *c)
{
    const struct free_items *x = c->x;

    for_each_node (x->g, n) {
        const struct fx_node *k = x->call[n];
        uint32_t v = x->item_of[n];
        bool here = v != SIDES_NONE && x->node[v] == n && x->op[v] != PROGRAM_NONE;
        bool stays = here && !x->vanishes[x->op[v]] && x->p->op[x->op[v]].kind != PROGRAM_WAIT &&
                     op_at(acting_op(x->g, n))->moves != OP_MOVES_out;

        if (k->kind != TUCK_OUTPUT && !stays)
            continue;
        for (uint32_t i = 0; i < k->n_vals; i++) {
            uint32_t u = k->vals[i].kind == TUCK_V_NODE ? x->item_of[k->vals[i].a] : SIDES_NONE;
            if (u != SIDES_NONE)
                c->written[u] = true;
        }
    }
}

/* ---- which loops cannot be one ---- */

static int by_result(const void *x, const void *y)
{
    const struct reader *a = x, *b = y;

    if (a->of != b->of)
        return a->of < b->of ? -1 : 1;
    if (a->set != b->set)
        return a->set < b->set ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

static int by_first(const void *x, const void *y)
{
    const struct question *a = x, *b = y;

    return a->first < b->first ? -1 : a->first > b->first;
}

static bool made_by_loop(const struct charge *c, const struct reader *r)
{
    uint32_t u = c->x->item_of[r->of];

    return u != SIDES_NONE && c->x->is_loop[u];
}

/* Answers go to `apart` of the readers, or of the edges of the items. */
static void answer(struct free_items *x, struct question *q, uint32_t n, uint8_t *to)
{
    qsort(q, n, sizeof(*q), by_first);
    uint32_t *first = arena_array(x->a, uint32_t, n), *second = arena_array(x->a, uint32_t, n);
    bool *apart = arena_array(x->a, bool, n);
    for (uint32_t i = 0; i < n; i++) {
        first[i] = q[i].first;
        second[i] = q[i].second;
    }
    sides_apart(&x->s, first, second, n, x->a, apart);
    for (uint32_t i = 0; i < n; i++)
        if (apart[i])
            to[q[i].about] |= (uint8_t)(1u << q[i].ahead);
}

static void ask_readers(struct charge *c)
{
    struct free_items *x = c->x;
    struct question *q = arena_array(x->a, struct question, (size_t)c->n_reader * (WINDOW + 1));
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->n_reader; i++) {
        const struct reader *r = &c->reader[i];
        if (made_by_loop(c, r))
            q[n++] = (struct question){x->item_of[r->of], r->item, i, 0};
        for (uint32_t k = 1;
             k <= WINDOW && i + k < c->n_reader && r[k].of == r->of && r[k].set == r->set; k++)
            q[n++] = (struct question){r->item, r[k].item, i, k};
    }
    c->apart = arena_zeroed(x->a, c->n_reader);
    answer(x, q, n, c->apart);
}

/* ---- sets ---- */

static uint32_t set_of(struct charge *c, uint32_t v)
{
    while (c->parent[v] != v) {
        c->parent[v] = c->parent[c->parent[v]];
        v = c->parent[v];
    }
    return v;
}

static void unite(struct charge *c, uint32_t u, uint32_t v)
{
    c->parent[set_of(c, u)] = set_of(c, v);
}

static bool is_loop_item(const struct free_items *x, uint32_t v)
{
    return v != SIDES_NONE && x->is_loop[v];
}

/* Loops united by joins that can be made. */
static void unite_joins(struct charge *c)
{
    struct free_items *x = c->x;
    uint32_t n_edge = x->s.pred_at[x->s.n], n = 0;
    struct question *q = arena_array(x->a, struct question, n_edge);
    uint8_t *broken = arena_zeroed(x->a, n_edge);

    for (uint32_t v = 0; v < x->s.n; v++)
        for (uint32_t i = x->s.pred_at[v]; x->is_loop[v] && i < x->s.pred_at[v + 1]; i++)
            if (x->is_loop[sides_from(x->s.pred[i])])
                q[n++] = (struct question){sides_from(x->s.pred[i]), v, i, 0};
    struct question *all = arena_array(x->a, struct question, n);
    memcpy(all, q, n * sizeof(*q));
    answer(x, all, n, broken);
    for (uint32_t i = 0; i < n; i++)
        if (!broken[q[i].about])
            unite(c, q[i].first, q[i].second);
}

/* A bucket's copy may join the loops before its members: one set, whichever the buckets are. Where
 * a copy into an input goes, its readers read what was copied. */
static void unite_rewrites(struct charge *c)
{
    const struct free_items *x = c->x;
    uint32_t feeder = SIDES_NONE;
    uint32_t *written_by = arena_zeroed(x->a, x->g->node.len * sizeof(*written_by));

    for_each_node (x->g, n) {
        const struct fx_node *k = x->call[n];
        const struct op_row *row = op_at(acting_op(x->g, n));
        bool merges = (row->flags & (OP_F_ALL_GATHER | OP_F_REDUCE_SCATTER | OP_F_ALL_REDUCE)) != 0;
        bool copies = (row->flags & OP_F_MUTATES) != 0;
        uint32_t first = SIDES_NONE;

        for (uint32_t i = 0; i < k->n_vals; i++) {
            uint32_t of = k->vals[i].kind == TUCK_V_NODE ? k->vals[i].a : 0;
            uint32_t u = of != 0 ? x->item_of[of] : SIDES_NONE;
            if (of != 0 && copies)
                written_by[x->shows[of]] = n;
            if (!is_loop_item(x, u))
                continue;
            if (merges && feeder != SIDES_NONE)
                unite(c, feeder, u);
            if (copies && first != SIDES_NONE)
                unite(c, first, u);
            feeder = merges ? u : feeder;
            first = u;
        }
        /* What it copies is now what the result of the copy stands for. */
        if (copies)
            c->source[n] = first;
    }
    for (uint32_t i = 0; i < c->n_reader; i++) {
        uint32_t by = written_by[c->reader[i].of];
        if (by != 0 && c->source[by] != SIDES_NONE)
            unite(c, c->source[by], c->reader[i].item);
    }
}

/* ---- bytes ---- */

/* Readers first … end-1 of one result, of one set: those that make it read from memory, once for
 * each of a chain of readers that cannot be in one loop. */
static void charge_reads(struct charge *c, uint32_t first, uint32_t end)
{
    struct free_items *x = c->x;
    bool loop = made_by_loop(c, &c->reader[first]);
    uint32_t maker = x->item_of[c->reader[first].of], last = end;
    int64_t least = INT64_MAX;

    bool other = loop && (c->reader[first].by_view || set_of(c, maker) != c->reader[first].set);

    /* A constant can be made again in every loop (repeat_constants). */
    if (loop && (!is_charged(x, maker) || row_of(x, maker)->cls == OP_FACTORY))
        return;
    for (uint32_t i = first; i < end; i++)
        if (c->reader[i].bytes < least)
            least = c->reader[i].bytes;
    for (uint32_t i = first; i < end; i++) {
        if (loop && !other && !(c->apart[i] & 1))
            continue;
        if (loop)
            c->written[maker] = true;
        if (last != end && (i - last > WINDOW || !(c->apart[last] >> (i - last) & 1)))
            continue;
        c->bytes[c->reader[i].item] += least;
        last = i;
    }
}

/* Times that were given are for nodes, and those of a loop's nodes add up. */
static void charge_given(struct free_items *x)
{
    for (uint32_t v = 0; v < x->s.n; v++) {
        struct cost_part part;

        if (!x->is_loop[v] || x->op[v] == PROGRAM_NONE || x->p->op[x->op[v]].kind == PROGRAM_COPY ||
            !x->live[x->node[v]] || x->is_sum[x->node[v]] || is_gone(row_of(x, v)))
            continue;
        cost_loop(x->run, &x->node[v], 1, &part);
        if (part.bound == BOUND_PROFILE || part.bound == BOUND_CALLER)
            x->s.work[v] = part.ps;
    }
}

void free_loops_charge(struct free_items *x, double ps_per_byte)
{
    struct charge c = {.x = x};
    size_t n_val = 0;

    if (x->run->options.profile != NULL || x->run->options.estimate != NULL) {
        charge_given(x);
        return;
    }
    for_each_node (x->g, n)
        n_val += node_at(x->g, n)->n_vals;
    c.reader = arena_array(x->a, struct reader, n_val);
    c.written = arena_zeroed(x->a, x->s.n * sizeof(bool));
    c.bytes = arena_zeroed(x->a, x->s.n * sizeof(int64_t));
    c.parent = arena_array(x->a, uint32_t, x->s.n);
    c.source = arena_array(x->a, uint32_t, x->g->node.len);
    for (uint32_t v = 0; v < x->s.n; v++)
        c.parent[v] = v;
    for (uint32_t n = 0; n < x->g->node.len; n++)
        c.source[n] = SIDES_NONE;
    find_written(&c);
    for (uint32_t v = 0; v < x->s.n; v++)
        if (is_charged(x, v) && !is_gone(row_of(x, v)))
            find_reads(&c, v);
    unite_joins(&c);
    unite_rewrites(&c);
    for (uint32_t i = 0; i < c.n_reader; i++)
        c.reader[i].set = set_of(&c, c.reader[i].item);
    qsort(c.reader, c.n_reader, sizeof(*c.reader), by_result);
    ask_readers(&c);
    for (uint32_t i = 0, end; i < c.n_reader; i = end) {
        for (end = i; end < c.n_reader && c.reader[end].of == c.reader[i].of &&
                      c.reader[end].set == c.reader[i].set;)
            end++;
        charge_reads(&c, i, end);
    }
    for (uint32_t v = 0; v < x->s.n; v++) {
        if (c.written[v] && is_charged(x, v) && !(row_of(x, v)->flags & OP_F_MUTATES))
            c.bytes[v] += bytes_of(x, x->node[v]);
        x->s.work[v] += (int64_t)(ps_per_byte * (double)c.bytes[v]);
    }
}
