/* reorder_for_peak_memory: compares four orders and takes the first with the lowest peak: the
 * current one, least peak first, breadth first, depth first. */
#include "schedule/peak_orders.h"

#include <stdlib.h>

#include "plan/liveness.h"
#include "schedule/edges.h"
#include "base/csr.h"
#include "base/heap.h"
#include "schedule/step.h"

struct pair {
    uint32_t from, to; /* `to` comes after `from` */
};

struct peaks {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    uint32_t n;
    const uint32_t *order;    /* the original order */
    uint32_t *at;             /* [op] its position in it */
    uint32_t *succ_at, *succ; /* [op] ops that must come after it, each once */
    uint32_t *pred_at, *pred; /* [op] ops that must come before it, each once */
    uint32_t *use_at, *use;   /* [op] buffers that it keeps alive */
    int64_t *size;            /* [op] bytes that it allocates */
    struct edges e;           /* what an op needs, for depth first */
};

/* ---- the graph of ops ---- */

static void each_pair(struct peaks *k, struct pair *out, uint32_t *n_out)
{
    const struct problem *p = k->p;
    uint32_t *seen = arena_zeroed(k->a, (size_t)k->n * sizeof(*seen)), n = 0;
    const uint32_t *at = k->s->opt.torch ? p->order_at : p->succ_at;
    const uint32_t *list = k->s->opt.torch ? p->order : p->succ;

    for (uint32_t x = 0; x < k->n; x++) {
        seen[x] = x + 1; /* an op does not need itself */
        for (uint32_t b = p->out_at[x]; b < p->out_at[x + 1]; b++)
            for (uint32_t i = at[b]; i < at[b + 1]; i++)
                if (seen[list[i]] != x + 1) {
                    seen[list[i]] = x + 1;
                    if (out != NULL)
                        out[n] = (struct pair){x, list[i]};
                    n++;
                }
        for (uint32_t i = k->e.user_at[x]; i < k->e.user_at[x + 1]; i++)
            if (!k->s->opt.torch && seen[k->e.user[i]] != x + 1) {
                seen[k->e.user[i]] = x + 1;
                if (out != NULL)
                    out[n] = (struct pair){x, k->e.user[i]};
                n++;
            }
    }
    *n_out = n;
}

static void link_pairs(struct peaks *k)
{
    uint32_t n, n_op = k->n;

    each_pair(k, NULL, &n);
    struct pair *pair = arena_array(k->a, struct pair, n);
    each_pair(k, pair, &n);
    k->succ_at = csr_begin(k->a, n_op);
    k->pred_at = csr_begin(k->a, n_op);
    k->succ = arena_array(k->a, uint32_t, n);
    k->pred = arena_array(k->a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++) {
        csr_count(k->succ_at, pair[i].from);
        csr_count(k->pred_at, pair[i].to);
    }
    csr_sum(k->succ_at, n_op);
    csr_sum(k->pred_at, n_op);
    for (uint32_t i = 0; i < n; i++) {
        k->succ[csr_place(k->succ_at, pair[i].from)] = pair[i].to;
        k->pred[csr_place(k->pred_at, pair[i].to)] = pair[i].from;
    }
}

static void link_uses(struct peaks *k)
{
    const struct problem *p = k->p;
    uint32_t n = p->succ_at[p->n_buf];

    k->use_at = csr_begin(k->a, k->n);
    k->use = arena_array(k->a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        csr_count(k->use_at, p->succ[i]);
    csr_sum(k->use_at, k->n);
    for (uint32_t b = 0; b < p->n_buf; b++)
        for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++)
            k->use[csr_place(k->use_at, p->succ[i])] = b;
    k->size = arena_zeroed(k->a, (size_t)k->n * sizeof(*k->size));
    for (uint32_t b = p->n_input; b < p->n_buf; b++)
        k->size[p->producer[b]] += p->size_alloc[b];
}

/* ---- least peak first ----
 * Of the ops that fit under the peak so far, the one that leaves the least memory live goes first;
 * if none fits, the smallest. Ops are in a tree by size, so those that fit are a range. */

struct lpmf {
    struct peaks *k;
    uint32_t *rank, *by_rank;          /* by size, then position */
    uint32_t n_leaf, *tree;            /* by tree node: the best ready op below, or PROBLEM_NONE */
    int64_t *to_free;                  /* [op] bytes freed after it */
    uint32_t *left;                    /* [buf] number of users that have not run yet */
    uint32_t *needs;                   /* [op] number of ops it still needs */
    uint32_t *first_succ, *seq, n_seq; /* [op] to prefer what is needed first */
    struct heap early;
    bool *done;
};

static uint32_t better(const struct lpmf *l, uint32_t x, uint32_t y)
{
    if (x == PROBLEM_NONE || y == PROBLEM_NONE)
        return x == PROBLEM_NONE ? y : x;
    int64_t a = l->k->size[x] - l->to_free[x], b = l->k->size[y] - l->to_free[y];
    return a != b ? (a < b ? x : y) : l->k->at[x] < l->k->at[y] ? x : y;
}

static void set_leaf(struct lpmf *l, uint32_t rank, uint32_t value)
{
    uint32_t i = rank + l->n_leaf;

    l->tree[i] = value;
    for (i /= 2; i > 0; i /= 2)
        l->tree[i] = better(l, l->tree[2 * i], l->tree[2 * i + 1]);
}

static uint32_t best_in(const struct lpmf *l, uint32_t from, uint32_t to)
{
    uint32_t best = PROBLEM_NONE, i = from + l->n_leaf, j = to + l->n_leaf;

    for (; i < j; i /= 2, j /= 2) {
        if (i & 1)
            best = better(l, best, l->tree[i++]);
        if (j & 1)
            best = better(l, best, l->tree[--j]);
    }
    return best;
}

/* Ranks below the result have sizes of at most `size`. */
static uint32_t rank_above(const struct lpmf *l, int64_t size)
{
    uint32_t low = 0, high = l->k->n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (l->k->size[l->by_rank[mid]] <= size)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The smallest ready op. */
static uint32_t smallest(const struct lpmf *l)
{
    uint32_t i = 1;

    if (l->tree[1] == PROBLEM_NONE)
        return PROBLEM_NONE;
    while (i < l->n_leaf)
        i = l->tree[2 * i] != PROBLEM_NONE ? 2 * i : 2 * i + 1;
    return l->tree[i];
}

struct by_size {
    int64_t size;
    uint32_t at, op;
};

static int compare_sizes(const void *a, const void *b)
{
    const struct by_size *x = a, *y = b;

    if (x->size != y->size)
        return x->size < y->size ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static int compare_early(const void *ctx, uint32_t x, uint32_t y)
{
    const struct lpmf *l = ctx;

    if (l->first_succ[x] != l->first_succ[y])
        return l->first_succ[x] < l->first_succ[y] ? -1 : 1;
    return l->seq[x] < l->seq[y] ? -1 : l->seq[x] > l->seq[y];
}

static void ready(struct lpmf *l, uint32_t x)
{
    set_leaf(l, l->rank[x], x);
    if (l->early.at != NULL) {
        l->seq[x] = l->n_seq++;
        heap_push(&l->early, x);
    }
}

static void begin_lpmf(struct lpmf *l, struct peaks *k)
{
    const struct problem *p = k->p;
    struct by_size *row = arena_array(k->a, struct by_size, k->n);

    *l = (struct lpmf){.k = k, .n_leaf = 1};
    l->rank = arena_array(k->a, uint32_t, k->n);
    l->by_rank = arena_array(k->a, uint32_t, k->n);
    for (uint32_t x = 0; x < k->n; x++)
        row[x] = (struct by_size){k->size[x], k->at[x], x};
    qsort(row, k->n, sizeof(*row), compare_sizes);
    for (uint32_t i = 0; i < k->n; i++) {
        l->by_rank[i] = row[i].op;
        l->rank[row[i].op] = i;
    }
    while (l->n_leaf < k->n)
        l->n_leaf *= 2;
    l->tree = arena_array(k->a, uint32_t, 2 * (size_t)l->n_leaf);
    for (uint32_t i = 0; i < 2 * l->n_leaf; i++)
        l->tree[i] = PROBLEM_NONE;
    l->to_free = arena_zeroed(k->a, (size_t)k->n * sizeof(*l->to_free));
    l->left = arena_array(k->a, uint32_t, p->n_buf);
    l->needs = arena_array(k->a, uint32_t, k->n);
    l->done = arena_zeroed(k->a, k->n);
    for (uint32_t b = 0; b < p->n_buf; b++) {
        l->left[b] = p->succ_at[b + 1] - p->succ_at[b] + ((p->buf_flags[b] & PROBLEM_OUTPUT) != 0);
        if (l->left[b] == 0 && p->producer[b] != PROBLEM_NONE)
            l->to_free[p->producer[b]] += p->size_free[b];
    }
    for (uint32_t x = 0; x < k->n; x++)
        for (uint32_t i = k->use_at[x]; i < k->use_at[x + 1]; i++)
            if (l->left[k->use[i]] == 1)
                l->to_free[x] += p->size_free[k->use[i]];
    if (k->s->opt.size_threshold_for_succ_based_strategy > 0) {
        l->first_succ = arena_array(k->a, uint32_t, k->n);
        l->seq = arena_array(k->a, uint32_t, k->n);
        heap_begin(&l->early, k->a, k->n, compare_early, l);
        for (uint32_t x = 0; x < k->n; x++) {
            l->first_succ[x] = k->n;
            for (uint32_t i = k->succ_at[x]; i < k->succ_at[x + 1]; i++)
                if (k->at[k->succ[i]] < l->first_succ[x])
                    l->first_succ[x] = k->at[k->succ[i]];
        }
    }
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t x = k->order[i];
        l->needs[x] = k->pred_at[x + 1] - k->pred_at[x];
        if (l->needs[x] == 0)
            ready(l, x);
    }
}

static uint32_t choose(struct lpmf *l, int64_t gap)
{
    int64_t threshold = l->k->s->opt.size_threshold_for_succ_based_strategy;
    uint32_t x = smallest(l);

    if (x == PROBLEM_NONE)
        return x;
    if (threshold > 0 && l->k->size[x] > threshold) {
        while (l->done[heap_top(&l->early)])
            heap_pop(&l->early);
        return heap_pop(&l->early);
    }
    if (l->k->size[x] <= gap)
        return best_in(l, 0, rank_above(l, gap));
    return best_in(l, l->rank[x], rank_above(l, l->k->size[x]));
}

static bool least_peak_first(struct peaks *k, uint32_t *out)
{
    const struct problem *p = k->p;
    struct lpmf l;
    int64_t live = 0, kept = 0, unused = 0, most;
    uint32_t n = 0, x;

    begin_lpmf(&l, k);
    for (uint32_t b = 0; b < p->n_buf; b++) {
        bool returned = (p->buf_flags[b] & PROBLEM_OUTPUT) != 0;
        if (p->producer[b] == PROBLEM_NONE) {
            live += p->size_free[b];
            unused += !returned && p->succ_at[b] == p->succ_at[b + 1] ? p->size_free[b] : 0;
        }
        kept += returned ? p->size_free[b] : 0;
    }
    most = live > kept ? live : kept;
    live -= unused;
    while ((x = choose(&l, most - live)) != PROBLEM_NONE) {
        out[n++] = x;
        l.done[x] = true;
        set_leaf(&l, l.rank[x], PROBLEM_NONE);
        live += k->size[x];
        most = live > most ? live : most;
        live -= l.to_free[x];
        for (uint32_t i = k->succ_at[x]; i < k->succ_at[x + 1]; i++)
            if (--l.needs[k->succ[i]] == 0)
                ready(&l, k->succ[i]);
        for (uint32_t i = k->use_at[x]; i < k->use_at[x + 1]; i++) {
            uint32_t b = k->use[i];
            if (--l.left[b] != 1)
                continue;
            for (uint32_t u = p->succ_at[b]; u < p->succ_at[b + 1]; u++) {
                uint32_t y = p->succ[u];
                l.to_free[y] += p->size_free[b];
                if (l.needs[y] == 0 && !l.done[y])
                    set_leaf(&l, l.rank[y], y);
            }
        }
    }
    return n == k->n;
}

/* ---- breadth first: ops whose predecessors ran earliest come first ---- */

struct bfs {
    const struct peaks *k;
    uint32_t *ran;            /* [op] its position in the new order */
    uint32_t **when, *n_when; /* [op] positions of what it needs, ascending */
};

static int compare_numbers(const void *a, const void *b)
{
    const uint32_t *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}

static int compare_when(const void *ctx, uint32_t x, uint32_t y)
{
    const struct bfs *f = ctx;
    uint32_t n = f->n_when[x] < f->n_when[y] ? f->n_when[x] : f->n_when[y];

    for (uint32_t i = 0; i < n; i++)
        if (f->when[x][i] != f->when[y][i])
            return f->when[x][i] < f->when[y][i] ? -1 : 1;
    if (f->n_when[x] != f->n_when[y])
        return f->n_when[x] < f->n_when[y] ? -1 : 1;
    return f->k->at[x] < f->k->at[y] ? -1 : f->k->at[x] > f->k->at[y];
}

static void push_when(struct bfs *f, struct heap *h, uint32_t x)
{
    const struct peaks *k = f->k;
    uint32_t n = k->pred_at[x + 1] - k->pred_at[x];

    f->when[x] = arena_array(k->a, uint32_t, n);
    f->n_when[x] = n;
    for (uint32_t i = 0; i < n; i++)
        f->when[x][i] = f->ran[k->pred[k->pred_at[x] + i]];
    qsort(f->when[x], n, sizeof(uint32_t), compare_numbers);
    heap_push(h, x);
}

static bool breadth_first(struct peaks *k, uint32_t *out)
{
    struct bfs f = {.k = k};
    struct heap h;
    uint32_t *needs = arena_array(k->a, uint32_t, k->n), n = 0;

    f.ran = arena_array(k->a, uint32_t, k->n);
    f.n_when = arena_array(k->a, uint32_t, k->n);
    f.when = arena_array(k->a, uint32_t *, k->n);
    heap_begin(&h, k->a, k->n, compare_when, &f);
    for (uint32_t x = 0; x < k->n; x++) {
        needs[x] = k->pred_at[x + 1] - k->pred_at[x];
        if (needs[x] == 0)
            push_when(&f, &h, x);
    }
    while (h.n > 0) {
        uint32_t x = heap_pop(&h);
        f.ran[x] = n;
        out[n++] = x;
        for (uint32_t i = k->succ_at[x]; i < k->succ_at[x + 1]; i++)
            if (--needs[k->succ[i]] == 0)
                push_when(&f, &h, k->succ[i]);
    }
    return n == k->n;
}

/* ---- depth first: small ops first, each after what it needs ---- */

static bool depth_first(struct peaks *k, uint32_t *out)
{
    struct by_size *row = arena_array(k->a, struct by_size, k->n);
    struct by_size *need = arena_array(k->a, struct by_size, k->e.need_at[k->n]);
    uint32_t *stack = arena_array(k->a, uint32_t, k->n), *next, n = 0;
    bool *seen = arena_zeroed(k->a, k->n);

    next = arena_array(k->a, uint32_t, k->n);
    for (uint32_t x = 0; x < k->n; x++) {
        row[x] = (struct by_size){k->size[x], k->at[x], x};
        for (uint32_t i = k->use_at[x]; i < k->use_at[x + 1]; i++)
            row[x].size += k->p->size_free[k->use[i]];
    }
    for (uint32_t x = 0; x < k->n; x++) {
        next[x] = k->e.need_at[x];
        for (uint32_t i = k->e.need_at[x]; i < k->e.need_at[x + 1]; i++)
            need[i] = row[k->e.need[i]];
        qsort(need + next[x], k->e.need_at[x + 1] - next[x], sizeof(*need), compare_sizes);
    }
    qsort(row, k->n, sizeof(*row), compare_sizes);
    for (uint32_t i = 0; i < k->n; i++) {
        uint32_t depth = 0;
        if (!seen[row[i].op])
            seen[stack[depth++] = row[i].op] = true;
        while (depth > 0) {
            uint32_t x = stack[depth - 1];
            if (next[x] == k->e.need_at[x + 1]) {
                out[n++] = x;
                depth--;
            } else {
                uint32_t y = need[next[x]++].op;
                if (!seen[y])
                    seen[stack[depth++] = y] = true;
            }
        }
    }
    return n == k->n;
}

/* ---- the best ---- */

static void begin(struct peaks *k, struct schedule *s)
{
    *k = (struct peaks){.s = s, .p = s->p, .a = &s->arena, .n = s->p->n_op, .order = s->order};
    k->at = arena_array(k->a, uint32_t, k->n);
    for (uint32_t i = 0; i < k->n; i++)
        k->at[s->order[i]] = i;
    edges_build(s, EDGE_REAL | edges_fake(s), k->a, &k->e);
    link_pairs(k);
    link_uses(k);
}

bool peak_order(struct schedule *s, enum peak_method method, uint32_t *out)
{
    struct peaks k;

    begin(&k, s);
    switch (method) {
    case PEAK_LEAST_FIRST: return least_peak_first(&k, out);
    case PEAK_BREADTH_FIRST: return breadth_first(&k, out);
    case PEAK_DEPTH_FIRST: return depth_first(&k, out);
    }
    return false;
}

void schedule_peak_memory(struct schedule *s)
{
    uint32_t n = s->p->n_op;
    uint32_t *best = arena_array(&s->arena, uint32_t, n),
             *order = arena_array(&s->arena, uint32_t, n);
    int64_t least = live_peak(s->p, s->order, &s->arena);
    static const char *const note[] = {"least peak first", "breadth first", "depth first"};

    if (n == 0)
        return;
    memcpy(best, s->order, n * sizeof(*best));
    for (int m = PEAK_LEAST_FIRST; m <= PEAK_DEPTH_FIRST; m++) {
        if (!peak_order(s, (enum peak_method)m, order))
            continue;
        int64_t peak = live_peak(s->p, order, &s->arena);
        bool fine = s->opt.torch || (schedule_is_valid(s->p, order, false, &s->arena) &&
                                     (s->opt.allow_more_exposed ||
                                      schedule_time(s->p, s->runtime, order, &s->arena).exposed <=
                                          step_report(s)->exposed_before));
        if (fine && peak < least) {
            least = peak;
            memcpy(best, order, n * sizeof(*best));
            step_note(s, note[m]);
        }
    }
    memcpy(s->order, best, n * sizeof(*best));
}
