
#include <stdlib.h>
#include <string.h>

#include "base/heap.h"
#include "sim/sides_core.h"

/* The second round knows the work of channels, by the heads of the first. */
enum { ROUNDS = 2, BYTE = 256 };

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* One direction: forward, or against time. Against time the edges are turned around, what was the
 * time after an item's end is now what comes before its start, and so on. */
struct way {
    const struct sides *s;
    bool back;
    uint32_t *edge_at, *edge;   /* by item: the edges that lead to it in this direction */
    bool *joined;               /* by item: one of them is a join */
    int64_t *start, *end;       /* by item: found so far */
    int64_t *at_start, *at_end; /* by item: from the channels, by the second rule */
    uint32_t *next_at, *next;   /* by item: the edges that lead away from it */
};

/* ---- the first rule: chains ---- */

static void forward(const struct way *w, int64_t *arrived)
{
    const struct sides *s = w->s;

    for (uint32_t v = 0; v < s->n; v++) {
        int64_t start = w->at_start[v], end = w->at_end[v];

        for (uint32_t i = w->edge_at[v]; i < w->edge_at[v + 1]; i++) {
            uint32_t u = sides_from(w->edge[i]);
            if (sides_is_join(w->edge[i])) {
                start = max64(start, w->start[u]);
                end = max64(end, w->end[u]);
            } else {
                start = max64(start, w->end[u]);
            }
        }
        for (uint32_t i = s->wait_at[v]; i < s->wait_at[v + 1]; i++)
            end = max64(end, arrived[s->wait[i]]);
        w->start[v] = start;
        w->end[v] = max64(end, start + s->work[v]);
        arrived[v] = s->is_async[v] ? start + s->before[v] + s->transfer[v] : w->end[v];
    }
}

/* `after`: by item, the time from the end of its transfer to the end of all. */
static void backward(const struct way *w, int64_t *after)
{
    const struct sides *s = w->s;

    memset(after, 0, s->n * sizeof(*after));
    for (uint32_t v = s->n; v-- > 0;) {
        int64_t tail = w->at_start[v], rest = w->at_end[v];

        for (uint32_t i = w->edge_at[v]; i < w->edge_at[v + 1]; i++) {
            uint32_t u = sides_from(w->edge[i]);
            if (sides_is_join(w->edge[i])) {
                tail = max64(tail, w->start[u]);
                rest = max64(rest, w->end[u]);
            } else {
                tail = max64(tail, w->end[u]);
            }
        }
        w->start[v] = tail;
        rest = max64(rest, tail + s->work[v]);
        if (s->is_async[v])
            rest = max64(rest, s->before[v] + s->transfer[v] + after[v]);
        else
            after[v] = tail;
        w->end[v] = rest;
        for (uint32_t i = s->wait_at[v]; i < s->wait_at[v + 1]; i++)
            after[s->wait[i]] = max64(after[s->wait[i]], tail);
    }
}

/* ---- the second rule: all work of one stream that an item needs ----
 *
 * Of a set of pieces in order of their earliest starts r, with lengths l, the stream is done at
 * max(c, r) + l after each. For the pieces of a set this is max(c + L, M), where L is the sum of
 * their lengths and M the result from c = 0. So sets are added in blocks of 64 pieces. */

static int by_from(const void *x, const void *y)
{
    const struct piece *a = x, *b = y;

    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    return a->item < b->item ? -1 : a->item > b->item;
}

/* Of a set: the sum of lengths, and when it is done if the stream is free from 0 on. */
struct sum {
    int64_t length, done;
};

struct block {
    struct sum of[COLUMNS / 8][BYTE]; /* by byte of a set */
    /* The last set of starts, and that of ends: items next to each other often need the same. */
    uint64_t last[2];
    struct sum of_last[2];
};

static void block_begin(struct block *b, const struct piece *piece, uint32_t n)
{
    for (uint32_t k = 0; k < COLUMNS / 8; k++)
        for (uint32_t set = 0, top = 0; set < BYTE; set++) {
            while (set >> top > 1)
                top++;
            if (set == 0 || 8 * k + top >= n) {
                b->of[k][set] = (struct sum){0, 0};
                continue;
            }
            const struct sum *less = &b->of[k][set & ~(1u << top)];
            const struct piece *p = &piece[8 * k + top];
            b->of[k][set] = (struct sum){less->length + p->length,
                                         max64(less->done, p->from) + p->length};
        }
    for (int i = 0; i < 2; i++) {
        b->last[i] = 0;
        b->of_last[i] = (struct sum){0, 0};
    }
}

static inline int64_t block_add(struct block *b, int which, uint64_t set, int64_t c)
{
    if (set != b->last[which]) {
        struct sum all = {0, 0};
        for (uint32_t k = 0; k < COLUMNS / 8; k++) {
            const struct sum *of = &b->of[k][set >> 8 * k & 255];
            all.done = max64(all.done + of->length, of->done);
            all.length += of->length;
        }
        b->last[which] = set;
        b->of_last[which] = all;
    }
    return max64(c + b->of_last[which].length, b->of_last[which].done);
}

struct stream {
    struct way *w;
    pair *bits;
    uint64_t *own; /* by item: the pieces that are done at its end */
    struct block *block;
    int64_t *at_start, *at_end; /* by item: when the stream has done the pieces it needs */
};

static inline void visit(struct stream *x, uint32_t v)
{
    gather(x->w->edge_at, x->w->edge, x->bits, x->own, v);
    if (x->bits[v][0] != 0)
        x->at_start[v] = block_add(x->block, 0, x->bits[v][0], x->at_start[v]);
    if (x->w->joined[v] && x->bits[v][1] != 0)
        x->at_end[v] = block_add(x->block, 1, x->bits[v][1], x->at_end[v]);
}

static void run_block(struct stream *x, const struct waits *waits, const struct piece *piece,
                      uint32_t n)
{
    const struct way *w = x->w;
    uint32_t all = w->s->n, first = w->back ? 0 : all;

    block_begin(x->block, piece, n);
    set_own(w->s, x->own, waits, piece, n, true);
    for (uint32_t i = 0; i < n; i++)
        first = w->back == (piece[i].item > first) ? piece[i].item : first;
    if (w->back) {
        memset(x->bits + first, 0, (all - first) * sizeof(*x->bits));
        for (uint32_t v = first + 1; v-- > 0;)
            visit(x, v);
    } else {
        memset(x->bits, 0, first * sizeof(*x->bits));
        for (uint32_t v = first; v < all; v++)
            visit(x, v);
    }
    set_own(w->s, x->own, waits, piece, n, false);
}

static void run_stream(struct stream *x, const struct waits *waits, struct piece *piece, uint32_t n)
{
    struct way *w = x->w;

    if (n == 0)
        return;
    qsort(piece, n, sizeof(*piece), by_from);
    memset(x->at_start, 0, w->s->n * sizeof(*x->at_start));
    memset(x->at_end, 0, w->s->n * sizeof(*x->at_end));
    for (uint32_t i = 0; i < n; i += COLUMNS)
        run_block(x, waits, piece + i, n - i < COLUMNS ? n - i : COLUMNS);
    for (uint32_t v = 0; v < w->s->n; v++) {
        w->at_start[v] = max64(w->at_start[v], x->at_start[v]);
        w->at_end[v] = max64(w->at_end[v], x->at_end[v]);
    }
}

/* The pieces of all channels, in one array. */
static struct piece *find_transfers(const struct sides *s, bool back, const int64_t *head,
                                    const int64_t *after, struct arena *a, uint32_t **at_out)
{
    uint32_t *at = csr_begin(a, s->n_channel);

    for (uint32_t v = 0; v < s->n; v++)
        if (s->channel[v] != SIDES_NONE && s->transfer[v] > 0)
            csr_count(at, s->channel[v]);
    struct piece *piece = arena_array(a, struct piece, csr_sum(at, s->n_channel));
    for (uint32_t v = 0; v < s->n; v++)
        if (s->channel[v] != SIDES_NONE && s->transfer[v] > 0)
            piece[csr_place(at, s->channel[v])] = (struct piece){
                back ? after[v] : head[v] + s->before[v], s->transfer[v], v};
    *at_out = at;
    return piece;
}

/* `after`: against time, the time after transfers. */
static void all_channels(struct way *w, const int64_t *after, struct arena *a)
{
    const struct sides *s = w->s;
    struct arena_mark mark = arena_mark(a);
    struct stream x = {.w = w};
    struct waits waits = find_waits(s, a);
    uint32_t *at;

    x.bits = arena_zeroed(a, s->n * sizeof(*x.bits));
    x.own = arena_zeroed(a, s->n * sizeof(*x.own));
    x.block = arena_array(a, struct block, 1);
    x.at_start = arena_array(a, int64_t, s->n);
    x.at_end = arena_array(a, int64_t, s->n);
    struct piece *transfer = find_transfers(s, w->back, w->start, after, a, &at);
    for (uint32_t k = 0; k < s->n_channel; k++)
        run_stream(&x, w->back ? NULL : &waits, transfer + at[k], at[k + 1] - at[k]);
    arena_release(a, mark);
}

/* ---- both rules at once, for the compute stream ----
 *
 * Items are taken in order of their heads, which never decrease along an edge. So the pieces that
 * an item needs have their final heads when its own is computed. Full blocks of pieces are added to
 * all items that are still to come. */

struct sweep {
    struct way *w;
    struct waits waits;
    int64_t *arrived; /* forward: when transfers arrive; against time: the time after them */
    struct heap heap;
    uint32_t *missing; /* by item: edges and waits whose items are still to come */
    bool *taken;
    pair *bits;
    uint64_t *own; /* all 0: pieces are put into bits[][1] when they are taken */
    struct block *block;
    struct piece piece[COLUMNS];
    uint32_t n_piece;
    int64_t *start, *end; /* by item: when the stream has done the pieces of full blocks */
    uint32_t first;       /* in this direction: all before it are taken */
    uint32_t *met, n_met; /* items that were ready or taken since the last full block */
};

static int by_start(const void *ctx, uint32_t x, uint32_t y)
{
    const int64_t *start = ctx;

    if (start[x] != start[y])
        return start[x] < start[y] ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* The pieces of the block that is not full yet. */
static int64_t add_pieces(const struct sweep *x, uint64_t set, int64_t c)
{
    for (uint32_t i = 0; i < x->n_piece && set >> i != 0; i++)
        if (set >> i & 1)
            c = max64(c, x->piece[i].from) + x->piece[i].length;
    return c;
}

static void sweep_flush(struct sweep *x)
{
    uint32_t n = x->w->s->n, last = n - 1;
    bool back = x->w->back;

    block_begin(x->block, x->piece, x->n_piece);
    while (x->first < n && x->taken[back ? last - x->first : x->first])
        x->first++;
    for (uint32_t i = x->first; i < n; i++) {
        uint32_t v = back ? last - i : i;
        if (x->taken[v])
            continue;
        gather(x->w->edge_at, x->w->edge, x->bits, x->own, v);
        if (x->bits[v][0] != 0)
            x->start[v] = block_add(x->block, 0, x->bits[v][0], x->start[v]);
        if (x->w->joined[v] && x->bits[v][1] != 0)
            x->end[v] = block_add(x->block, 1, x->bits[v][1], x->end[v]);
    }
    /* Those of others are found again when they are ready. */
    for (uint32_t i = 0; i < x->n_met; i++)
        x->bits[x->met[i]][0] = x->bits[x->met[i]][1] = 0;
    for (uint32_t i = 0; i < x->heap.n; i++)
        x->bits[x->heap.at[i]][0] = x->bits[x->heap.at[i]][1] = 0;
    x->n_met = x->n_piece = 0;
}

/* All that it needs is taken: its head is final. */
static void sweep_ready(struct sweep *x, uint32_t v)
{
    struct way *w = x->w;
    const struct sides *s = w->s;

    gather(w->edge_at, w->edge, x->bits, x->own, v);
    x->met[x->n_met++] = v;
    int64_t start = max64(w->at_start[v], add_pieces(x, x->bits[v][0], x->start[v]));
    int64_t end = w->at_end[v], joined = 0;
    for (uint32_t i = w->edge_at[v]; i < w->edge_at[v + 1]; i++) {
        uint32_t u = sides_from(w->edge[i]);
        start = max64(start, sides_is_join(w->edge[i]) ? w->start[u] : w->end[u]);
        end = sides_is_join(w->edge[i]) ? max64(end, w->end[u]) : end;
    }
    if (w->joined[v])
        joined = add_pieces(x, x->bits[v][1], x->end[v]);
    end = max64(end, max64(start, joined) + s->work[v]);
    if (!w->back) {
        for (uint32_t i = s->wait_at[v]; i < s->wait_at[v + 1]; i++)
            end = max64(end, x->arrived[s->wait[i]]);
        x->arrived[v] = s->is_async[v] ? start + s->before[v] + s->transfer[v] : end;
    } else if (!s->is_async[v]) {
        x->arrived[v] = start;
    } else {
        x->arrived[v] = 0;
        for (uint32_t i = x->waits.at[v]; i < x->waits.at[v + 1]; i++)
            x->arrived[v] = max64(x->arrived[v], w->start[x->waits.by[i]]);
        end = max64(end, s->before[v] + s->transfer[v] + x->arrived[v]);
    }
    w->start[v] = start;
    w->end[v] = end;
    heap_push(&x->heap, v);
}

static void sweep_take(struct sweep *x, uint32_t v)
{
    const struct sides *s = x->w->s;

    x->taken[v] = true;
    x->met[x->n_met++] = v;
    if (s->work[v] > 0) {
        x->bits[v][1] |= (uint64_t)1 << x->n_piece;
        x->piece[x->n_piece++] = (struct piece){x->w->start[v], s->work[v], v};
        if (x->n_piece == COLUMNS)
            sweep_flush(x);
    }
    for (uint32_t i = x->w->next_at[v]; i < x->w->next_at[v + 1]; i++)
        if (--x->missing[sides_from(x->w->next[i])] == 0)
            sweep_ready(x, sides_from(x->w->next[i]));
    const uint32_t *at = x->w->back ? s->wait_at : x->waits.at;
    const uint32_t *by = x->w->back ? s->wait : x->waits.by;
    for (uint32_t i = at[v]; i < at[v + 1]; i++)
        if (--x->missing[by[i]] == 0)
            sweep_ready(x, by[i]);
}

static void sweep(struct way *w, int64_t *arrived, struct arena *a)
{
    const struct sides *s = w->s;
    struct arena_mark mark = arena_mark(a);
    struct sweep x = {.w = w, .arrived = arrived, .waits = find_waits(s, a)};

    x.missing = arena_zeroed(a, s->n * sizeof(*x.missing));
    x.taken = arena_zeroed(a, s->n * sizeof(*x.taken));
    x.bits = arena_zeroed(a, s->n * sizeof(*x.bits));
    x.own = arena_zeroed(a, s->n * sizeof(*x.own));
    x.block = arena_array(a, struct block, 1);
    x.start = arena_zeroed(a, s->n * sizeof(*x.start));
    x.end = arena_zeroed(a, s->n * sizeof(*x.end));
    x.met = arena_array(a, uint32_t, 2 * (size_t)s->n);
    heap_begin(&x.heap, a, s->n, by_start, w->start);
    for (uint32_t v = 0; v < s->n; v++) {
        x.missing[v] = w->edge_at[v + 1] - w->edge_at[v];
        x.missing[v] += w->back ? x.waits.at[v + 1] - x.waits.at[v]
                                : s->wait_at[v + 1] - s->wait_at[v];
    }
    for (uint32_t v = 0; v < s->n; v++)
        if (x.missing[v] == 0 && w->edge_at[v] == w->edge_at[v + 1])
            sweep_ready(&x, v);
    while (x.heap.n > 0)
        sweep_take(&x, heap_pop(&x.heap));
    arena_release(a, mark);
}

/* ---- both ---- */

static void way_begin(struct way *w, const struct sides *s, bool back, struct arena *a)
{
    *w = (struct way){.s = s, .back = back, .edge_at = s->pred_at, .edge = s->pred};
    w->joined = arena_zeroed(a, s->n * sizeof(bool));
    w->start = arena_zeroed(a, s->n * sizeof(int64_t));
    w->end = arena_zeroed(a, s->n * sizeof(int64_t));
    w->at_start = arena_zeroed(a, s->n * sizeof(int64_t));
    w->at_end = arena_zeroed(a, s->n * sizeof(int64_t));
    if (back) {
        w->edge_at = csr_begin(a, s->n);
        for (uint32_t i = 0; i < s->pred_at[s->n]; i++)
            csr_count(w->edge_at, sides_from(s->pred[i]));
        w->edge = arena_array(a, uint32_t, csr_sum(w->edge_at, s->n));
        for (uint32_t v = 0; v < s->n; v++)
            for (uint32_t i = s->pred_at[v]; i < s->pred_at[v + 1]; i++)
                w->edge[csr_place(w->edge_at, sides_from(s->pred[i]))] = sides_edge(
                    v, sides_is_join(s->pred[i]));
    }
    for (uint32_t v = 0; v < s->n; v++)
        for (uint32_t i = w->edge_at[v]; i < w->edge_at[v + 1]; i++)
            w->joined[v] |= sides_is_join(w->edge[i]);
}

void sides_find(struct sides *s, struct arena *a)
{
    struct way to, from;

    s->exact = s->n <= SIDES_EXACT && !s->chains_only;
    s->arrived = arena_zeroed(a, s->n * sizeof(int64_t));
    s->tail = arena_zeroed(a, s->n * sizeof(int64_t));
    way_begin(&to, s, false, a);
    way_begin(&from, s, true, a);
    forward(&to, s->arrived);
    backward(&from, s->tail);
    s->chain = 0;
    s->last = SIDES_NONE;
    for (uint32_t v = 0; v < s->n; v++)
        if (s->arrived[v] + s->tail[v] > s->chain) {
            s->chain = s->arrived[v] + s->tail[v];
            s->last = v;
        }
    to.next_at = from.edge_at;
    to.next = from.edge;
    from.next_at = to.edge_at;
    from.next = to.edge;
    for (int round = 0; round < ROUNDS && s->exact; round++) {
        if (round > 0) {
            all_channels(&to, NULL, a);
            all_channels(&from, s->tail, a);
        }
        sweep(&to, s->arrived, a);
        sweep(&from, s->tail, a);
    }
    s->head = to.start;
    s->end = to.end;
    s->rest = from.end;
}
