/* Packs lifetimes into an arena: best fit, one buffer after the other.
 *
 * Each buffer goes into the smallest gap that holds it among the buffers that are live with it, or
 * on top of them. The result depends on which buffers come first: long lives first suits saved
 * activations, large sizes first suits mixed sizes. A few orders are tried and the best is kept.
 * The buffers that overlap in time are found in a tree over the steps. Looking at them uses up a
 * budget that grows with the number of buffers; when it is exhausted, a buffer goes on top: O(n log
 * n) in all.
 */
#include "base/csr.h"
#include "plan/symmetric_heap.h"

#include <stdlib.h>

/* How many others to look at per buffer, on average: generous up to a few thousand buffers. */
static uint64_t looks(uint32_t n)
{
    uint64_t few = 512 * (uint64_t)n, many = 2000000 + 24 * (uint64_t)n;

    return few < many ? few : many;
}

struct item {
    uint32_t key, from, to; /* key: its id, which also breaks ties */
    int64_t size;           /* aligned */
};

/* ---- what is live, by step ---- */

struct link {
    uint32_t item, next; /* next: entry of the same node, 0 ends the list */
};

struct placed {
    int64_t at, end;
};

/* A tree over the steps. An item is entered at the few nodes whose ranges add up to its life. */
struct tree {
    uint32_t n;      /* leaves, a power of two */
    uint32_t *first; /* by node: entry of its items, 0 if none */
    uint32_t *below; /* by node: number of entries in it and below it */
    int64_t *top;    /* by node: highest end among those */
    int64_t *own;    /* by node: highest end among its own entries */
    VEC(struct link) link;
    struct arena *a;
};

static void tree_init(struct tree *t, struct arena *a, uint32_t steps)
{
    t->a = a;
    for (t->n = 1; t->n < steps; t->n *= 2)
        ;
    t->first = arena_array(a, uint32_t, (size_t)t->n * 2);
    t->below = arena_array(a, uint32_t, (size_t)t->n * 2);
    t->top = arena_array(a, int64_t, (size_t)t->n * 2);
    t->own = arena_array(a, int64_t, (size_t)t->n * 2);
    vec_push_in(a, &t->link, ((struct link){0, 0}));
}

static void tree_clear(struct tree *t)
{
    memset(t->first, 0, (size_t)t->n * 2 * sizeof(*t->first));
    memset(t->below, 0, (size_t)t->n * 2 * sizeof(*t->below));
    memset(t->top, 0, (size_t)t->n * 2 * sizeof(*t->top));
    memset(t->own, 0, (size_t)t->n * 2 * sizeof(*t->own));
    t->link.len = 1;
}

/* Functions on the tree recurse log2(steps) levels: at most 32. */
static void tree_add(struct tree *t, uint32_t node, uint32_t lo, uint32_t hi, const struct item *x,
                     uint32_t item, int64_t end)
{
    if (x->to < lo || hi < x->from)
        return;
    t->below[node]++;
    t->top[node] = end > t->top[node] ? end : t->top[node];
    if (x->from <= lo && hi <= x->to) {
        vec_push_in(t->a, &t->link, ((struct link){item, t->first[node]}));
        t->first[node] = t->link.len - 1;
        t->own[node] = end > t->own[node] ? end : t->own[node];
        return;
    }
    uint32_t mid = lo + (hi - lo) / 2;
    tree_add(t, 2 * node, lo, mid, x, item, end);
    tree_add(t, 2 * node + 1, mid + 1, hi, x, item, end);
}

struct look {
    const struct item *x;
    int64_t top;   /* above everything that is live with it */
    uint64_t left; /* entries that may still be looked at */
    bool all;      /* all entries were looked at */
};

/* ---- orders ---- */

static int by_id(const struct item *a, const struct item *b)
{
    return a->from != b->from ? (a->from < b->from ? -1 : 1) : a->key < b->key ? -1 : 1;
}

static int cmp64(int64_t a, int64_t b)
{
    return a < b ? -1 : a > b;
}

static int longest(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    uint32_t la = a->to - a->from, lb = b->to - b->from;

    return la != lb             ? (la > lb ? -1 : 1)
           : a->size != b->size ? cmp64(b->size, a->size)
                                : by_id(a, b);
}

static int largest(const void *x, const void *y)
{
    const struct item *a = x, *b = y;

    return a->size != b->size ? cmp64(b->size, a->size) : longest(x, y);
}

static int widest(const void *x, const void *y)
{
    const struct item *a = x, *b = y;
    double wa = (double)a->size * (a->to - a->from + 1),
           wb = (double)b->size * (b->to - b->from + 1);

    return wa != wb ? (wa > wb ? -1 : 1) : longest(x, y);
}

static int earliest(const void *x, const void *y)
{
    const struct item *a = x, *b = y;

    return a->from != b->from ? (a->from < b->from ? -1 : 1) : longest(x, y);
}

static int latest_end(const void *x, const void *y)
{
    const struct item *a = x, *b = y;

    return a->to != b->to ? (a->to > b->to ? -1 : 1) : longest(x, y);
}

static int (*const orders[])(const void *, const void *) = {longest, widest, largest, latest_end,
                                                            earliest};

/* ---- packing ---- */

struct pack {
    struct arena *a;
    struct item *item;
    uint32_t n, n_key, steps;
    int64_t *offset, *best; /* by key */
    struct tree tree;
    VEC(struct placed) beside; /* what is live with the current buffer, possibly repeated */
};

static void gather(struct pack *k, struct look *w, uint32_t node, uint32_t lo, uint32_t hi)
{
    struct tree *t = &k->tree;

    if (t->below[node] == 0 || w->x->to < lo || hi < w->x->from)
        return;
    if (w->x->from <= lo && hi <= w->x->to && t->top[node] > w->top)
        w->top = t->top[node];
    if (t->own[node] > w->top)
        w->top = t->own[node];
    for (uint32_t i = t->first[node]; i != 0 && w->all; i = t->link.at[i].next) {
        const struct item *y = &k->item[t->link.at[i].item];
        struct placed p = {k->offset[y->key], k->offset[y->key] + y->size};

        if (w->left == 0) {
            w->all = false;
            break;
        }
        w->left--;
        vec_push_in(k->a, &k->beside, p);
    }
    if (!w->all && w->x->from <= lo && hi <= w->x->to)
        return; /* its top is known, and looking further does not help */
    if (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        gather(k, w, 2 * node, lo, mid);
        gather(k, w, 2 * node + 1, mid + 1, hi);
    }
}

static int by_offset(const void *x, const void *y)
{
    const struct placed *a = x, *b = y;

    return a->at != b->at ? cmp64(a->at, b->at) : cmp64(b->end, a->end);
}

/* The smallest gap that holds it, or the top. */
static int64_t fit(struct pack *k, int64_t size, int64_t top)
{
    int64_t best = top, least = INT64_MAX, end = 0;

    if (k->beside.len > 1)
        qsort(k->beside.at, k->beside.len, sizeof(*k->beside.at), by_offset);
    for (uint32_t i = 0; i < k->beside.len; i++) {
        const struct placed *p = &k->beside.at[i];
        int64_t gap = p->at - end;

        if (gap >= size && gap < least) {
            least = gap;
            best = end;
        }
        end = p->end > end ? p->end : end;
    }
    return best;
}

/* Places the items in their current order. */
static int64_t lay(struct pack *k, uint64_t budget)
{
    struct tree *t = &k->tree;
    int64_t total = 0;

    tree_clear(t);
    for (uint32_t i = 0; i < k->n; i++) {
        const struct item *x = &k->item[i];
        struct look w = {.x = x, .left = budget, .all = true};

        k->beside.len = 0;
        gather(k, &w, 1, 0, t->n - 1);
        budget = w.left;
        int64_t at = w.all ? fit(k, x->size, w.top) : w.top;
        k->offset[x->key] = at;
        tree_add(t, 1, 0, t->n - 1, x, i, at + x->size);
        total = at + x->size > total ? at + x->size : total;
    }
    return total;
}

/* The least total found; offsets are in k->best. `enough` is a total that cannot be beaten. */
static int64_t pack(struct pack *k, int64_t enough)
{
    int64_t least = INT64_MAX;

    k->tree = (struct tree){.n = 0};
    memset(&k->beside, 0, sizeof(k->beside));
    tree_init(&k->tree, k->a, k->steps);
    for (size_t o = 0; o < sizeof(orders) / sizeof(*orders) && least > enough; o++) {
        qsort(k->item, k->n, sizeof(*k->item), orders[o]);
        int64_t total = lay(k, looks(k->n));
        if (total < least) {
            least = total;
            memcpy(k->best, k->offset, k->n_key * sizeof(*k->best));
        }
    }
    return k->n > 0 ? least : 0;
}

/* ---- programs ---- */

static int64_t aligned(int64_t bytes)
{
    return (bytes + MEMORY_ALIGN - 1) / MEMORY_ALIGN * MEMORY_ALIGN;
}

/* Does it go into the common arena? */
static bool is_placed(const struct program_buf *b)
{
    if ((b->flags & PROGRAM_INPUT) && !(b->flags & PROGRAM_FREEABLE))
        return false;
    return b->layout != PROGRAM_COMM || b->group == PROGRAM_NONE;
}

/* A life in steps of the pack, from `first` on. What lives only before that needs its place too, so
 * it shares the first step. */
static void add_item(struct pack *k, uint32_t key, struct life l, uint32_t first, int64_t bytes)
{
    if (l.made == LIFE_END)
        return;
    uint32_t from = l.made > first ? l.made - first : 0;
    uint32_t to = l.last == LIFE_END ? k->steps - 1 : l.last > first ? l.last - first : 0;
    k->item[k->n++] = (struct item){key, from, to, aligned(bytes)};
}

/* Packs the added items into memory of their own; buf_of: by key, NULL if keys are buffers. Sets
 * *least to what is live at once, a lower bound for every plan. */
static int64_t pack_items(struct pack *k, struct program *p, const uint32_t *buf_of, int64_t *least)
{
    struct arena_mark mark = arena_mark(k->a);
    int64_t *delta = arena_zeroed(k->a, ((size_t)k->steps + 2) * sizeof(*delta)), live = 0;
    int64_t most = 0;

    for (uint32_t i = 0; i < k->n; i++) {
        assert_hot(k->item[i].from <= k->item[i].to && k->item[i].to < k->steps);
        delta[k->item[i].from] += k->item[i].size;
        delta[k->item[i].to + 1] -= k->item[i].size;
    }
    for (uint32_t s = 0; s < k->steps; s++) {
        live += delta[s];
        most = live > most ? live : most;
    }
    int64_t total = pack(k, most);
    assert(total >= most); /* a plan cannot be smaller than what is live at once */
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t key = k->item[i].key;
        assert(k->best[key] >= 0 && k->best[key] + k->item[i].size <= total);
        p->buf[buf_of ? buf_of[key] : key].offset = k->best[key];
    }
    arena_release(k->a, mark);
    *least = most;
    return total;
}

static void plan_arena(struct pack *k, struct program *p, const struct life *life)
{
    k->n = 0;
    k->n_key = p->n_buf;
    k->steps = p->n_op ? p->n_op : 1;
    for (uint32_t i = 0; i < p->n_buf; i++)
        if (is_placed(&p->buf[i]))
            add_item(k, i, life[i], LIFE_START + 1, p->buf[i].bytes);
    p->arena_bytes = pack_items(k, p, NULL, &p->arena_least);
}

/* Plans comm buffers, group by group. */
static void plan_heaps(struct pack *k, struct program *p, const struct memory_comm *c)
{
    uint32_t *at = csr_begin(k->a, p->n_group);
    uint32_t *of = arena_array(k->a, uint32_t, (size_t)c->n + 1);

    for (uint32_t i = 0; i < c->n; i++)
        csr_count(at, p->buf[c->buf[i]].group);
    csr_sum(at, p->n_group);
    for (uint32_t i = 0; i < c->n; i++)
        of[csr_place(at, p->buf[c->buf[i]].group)] = c->buf[i];
    for (uint32_t g = 0; g < p->n_group; g++) {
        int64_t least;
        k->n = 0;
        k->n_key = at[g + 1] - at[g];
        k->steps = 2 * c->n_coll[g] + 1;
        for (uint32_t i = at[g]; i < at[g + 1]; i++)
            add_item(k, i - at[g], c->life[of[i]], 0, p->buf[of[i]].bytes);
        p->heap[g] = k->n > 0 ? pack_items(k, p, of + at[g], &least) : 0;
    }
}

struct plan_args {
    struct program *p;
    const uint32_t *order;
    struct arena scratch;
};

static void do_plan(void *arg)
{
    struct plan_args *x = arg;
    struct program *p = x->p;
    struct arena *a = &x->scratch;
    struct life *life = arena_array(a, struct life, p->n_buf);
    struct memory_peak peak;

    memory_lives(p, x->order, life);
    memory_peak(p, x->order, life, a, &peak);
    struct pack k = {.a = a};
    struct memory_comm comm;
    k.item = arena_array(a, struct item, p->n_buf);
    k.offset = arena_zeroed(a, p->n_buf * sizeof(*k.offset));
    k.best = arena_zeroed(a, p->n_buf * sizeof(*k.best));
    for (uint32_t i = 0; i < p->n_buf; i++)
        p->buf[i].offset = -1;
    plan_arena(&k, p, life);
    memory_comm_find(p, x->order, a, &comm);
    plan_heaps(&k, p, &comm);
    p->comm_digest = comm.n > 0 ? memory_comm_digest(p, &comm) : 0;
    p->peak = peak.peak;
    p->resident = peak.resident;
}

tuck_status memory_plan(struct program *p, const uint32_t *order)
{
    struct plan_args x = {.p = p, .order = order};

    arena_init(&x.scratch, &p->mem);
    bool ok = mem_guard(&p->mem, do_plan, &x);
    arena_destroy(&x.scratch);
    return ok ? TUCK_OK : TUCK_ENOMEM;
}
