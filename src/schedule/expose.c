/* How much of a collective is hidden: compares its time with the compute between it and its first
 * need.
 *
 * There are two methods. One walks the list op by op, just as PyTorch does, and adds in the same
 * order, because the last bit of a sum sometimes decides. The other keeps prefix sums and
 * positions, and a tree over the collectives of each group that finds where the first of these, or
 * of later ones, is needed. It is used if collectives never pass each other; both give the same
 * result except for that last bit.
 */
#include <math.h>

#include "schedule/iter.h"

struct expose {
    bool indexed;
    uint32_t serial, *mark, *mark2; /* [op], for walks */

    /* ---- indexed ---- */
    double *sum;     /* [op] compute before it in the list */
    double total;    /* all compute */
    uint32_t *at;    /* [op] its position */
    uint32_t *syncs; /* [op] number of synchronous collectives before it */
    uint32_t n_sync;
    uint32_t *leaf;  /* [op] leaf of a collective */
    uint32_t *end;   /* [op] end of its group's leaves */
    uint32_t n_leaf; /* a power of 2 */
    uint32_t *tree;  /* smallest position at which something needs a collective below */
    uint32_t *by_at; /* [position] the op there */
};

static void update(struct expose *e, uint32_t leaf, uint32_t place)
{
    uint32_t i = e->n_leaf + leaf;

    e->tree[i] = place;
    for (i /= 2; i > 0; i /= 2) {
        uint32_t least = e->tree[2 * i] < e->tree[2 * i + 1] ? e->tree[2 * i] : e->tree[2 * i + 1];
        if (e->tree[i] == least)
            break;
        e->tree[i] = least;
    }
}

/* The minimum in [from, to). */
static uint32_t least(const struct expose *e, uint32_t from, uint32_t to)
{
    uint32_t m = PROBLEM_NONE, i = from + e->n_leaf, j = to + e->n_leaf;

    for (; i < j; i /= 2, j /= 2) {
        if (i & 1) {
            m = e->tree[i] < m ? e->tree[i] : m;
            i++;
        }
        if (j & 1) {
            j--;
            m = e->tree[j] < m ? e->tree[j] : m;
        }
    }
    return m;
}

static uint32_t first_need(const struct iter *it, uint32_t c)
{
    const struct edges *e = &it->real;
    uint32_t m = PROBLEM_NONE;

    for (uint32_t i = e->user_at[c]; i < e->user_at[c + 1]; i++)
        if (it->expose->at[e->user[i]] < m)
            m = it->expose->at[e->user[i]];
    return m;
}

/* Leaves: group by group, in the order of the list. */
static void plant(struct iter *it, struct expose *e)
{
    const struct problem *p = it->p;
    uint32_t *from = arena_zeroed(it->a, ((size_t)p->n_group + 2) * sizeof(*from)), n = 0;

    for (uint32_t x = 0; x < p->n_op; x++)
        if (problem_is_coll(p, x))
            from[(p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]) + 1]++, n++;
    for (uint32_t g = 0; g <= p->n_group; g++)
        from[g + 1] += from[g];
    e->n_leaf = 1;
    while (e->n_leaf < n)
        e->n_leaf *= 2;
    e->tree = arena_array(it->a, uint32_t, 2 * (size_t)e->n_leaf);
    for (uint32_t i = 0; i < 2 * e->n_leaf; i++)
        e->tree[i] = PROBLEM_NONE;
    for (uint32_t x = it->head; x != PROBLEM_NONE; x = it->next[x])
        if (problem_is_coll(p, x))
            e->leaf[x] = from[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]]++;
    for (uint32_t x = 0; x < p->n_op; x++)
        if (problem_is_coll(p, x)) {
            e->end[x] = from[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
            e->tree[e->n_leaf + e->leaf[x]] = first_need(it, x);
        }
    for (uint32_t i = e->n_leaf - 1; i > 0; i--)
        e->tree[i] = e->tree[2 * i] < e->tree[2 * i + 1] ? e->tree[2 * i] : e->tree[2 * i + 1];
}

static void place(struct iter *it, uint32_t first, uint32_t n)
{
    struct expose *e = it->expose;
    uint32_t before = it->prev[first], at = 0, syncs = 0;
    double sum = 0;

    if (before != PROBLEM_NONE) {
        at = e->at[before] + 1;
        sum = e->sum[before] + (problem_is_coll(it->p, before) ? 0 : it->rt[before]);
        syncs = e->syncs[before] +
                (problem_is_coll(it->p, before) && !problem_is_async(it->p, before));
    }
    for (uint32_t x = first, i = 0; i < n; x = it->next[x], i++) {
        e->by_at[at] = x;
        e->at[x] = at++;
        e->sum[x] = sum;
        e->syncs[x] = syncs;
        if (problem_is_coll(it->p, x))
            syncs += !problem_is_async(it->p, x);
        else
            sum += it->rt[x];
    }
    if (at == it->p->n_op) {
        e->total = sum;
        e->n_sync = syncs;
    }
}

void expose_begin(struct iter *it)
{
    const struct schedule_options *o = &it->s->opt;
    struct expose *e = arena_new(it->a, struct expose);
    uint32_t n = it->p->n_op;

    it->expose = e;
    e->mark = arena_zeroed(it->a, n * sizeof(*e->mark));
    e->mark2 = arena_zeroed(it->a, n * sizeof(*e->mark2));
    e->indexed = !it->torch && !o->reorder_iterative_unsafe_collectives_reorder &&
                 !o->sink_waits_iterative_swap_with_collectives &&
                 !o->sink_waits_iterative_unsafe_collectives_reorder;
    if (!e->indexed || n == 0)
        return;
    e->sum = arena_array(it->a, double, n);
    e->at = arena_array(it->a, uint32_t, n);
    e->by_at = arena_array(it->a, uint32_t, n);
    e->syncs = arena_array(it->a, uint32_t, n);
    e->leaf = arena_array(it->a, uint32_t, n);
    e->end = arena_array(it->a, uint32_t, n);
    place(it, it->head, n);
    plant(it, e);
}

bool expose_is_exact(const struct iter *it)
{
    return it->expose->indexed || it->exact_sums;
}

void expose_moved(struct iter *it, uint32_t first, uint32_t n)
{
    struct expose *e = it->expose;

    if (!e->indexed)
        return;
    place(it, first, n);
    for (uint32_t x = first, i = 0; i < n; x = it->next[x], i++)
        for (uint32_t k = it->real.need_at[x]; k < it->real.need_at[x + 1]; k++) {
            uint32_t c = it->real.need[k];
            if (problem_is_coll(it->p, c))
                update(e, e->leaf[c], first_need(it, c));
        }
}

/* ---- by index ---- */

/* Where the compute that hides c ends: at the first need of c, or of a later collective of its
 * group, which cannot be done before c. */
static uint32_t end_of(const struct iter *it, uint32_t c)
{
    const struct expose *e = it->expose;

    return least(e, e->leaf[c], e->end[c]);
}

static struct exposed index_coll(struct iter *it, uint32_t c)
{
    const struct expose *e = it->expose;
    uint32_t end = end_of(it, c);
    uint32_t syncs = end == PROBLEM_NONE ? e->n_sync : e->syncs[e->by_at[end]];
    double sum = end == PROBLEM_NONE ? e->total : e->sum[e->by_at[end]];

    if (!problem_is_async(it->p, c))
        return (struct exposed){it->rt[c], 0, true};
    if (syncs > e->syncs[c]) {
        uint32_t x = it->next[c];
        while (!problem_is_coll(it->p, x) || problem_is_async(it->p, x))
            x = it->next[x];
        sum = e->sum[x];
    }
    return (struct exposed){it->rt[c], sum - e->sum[c], false};
}

/* If a wait ends several collectives, the one that started last. */
static uint32_t waited_for(const struct iter *it, uint32_t w)
{
    const struct problem *p = it->p;
    uint32_t c = PROBLEM_NONE;

    for (uint32_t i = p->wait_at[w]; i < p->wait_at[w + 1]; i++)
        if (c == PROBLEM_NONE || it->expose->at[p->wait[i]] > it->expose->at[c])
            c = p->wait[i];
    return c;
}

static struct exposed index_wait(struct iter *it, uint32_t w)
{
    uint32_t c = waited_for(it, w);

    if (c == PROBLEM_NONE)
        return (struct exposed){0, 0, true};
    struct exposed e = index_coll(it, c);
    e.cut = end_of(it, c) != it->expose->at[w];
    return e;
}

bool expose_cuts(struct iter *it, uint32_t w, uint32_t x, bool *cut)
{
    const struct problem *p = it->p;

    if (!it->expose->indexed)
        return true;
    uint32_t c = waited_for(it, w);
    for (uint32_t i = p->wait_at[x]; c != PROBLEM_NONE && i < p->wait_at[x + 1]; i++)
        *cut |= p->group[p->wait[i]] == p->group[c] &&
                it->expose->at[p->wait[i]] > it->expose->at[c];
    return false;
}

/* ---- by walking ---- */

/* Does x wait for a collective that started after c on this walk? It is done only after c if both
 * have the same group; PyTorch ignores groups, and looks at waits only. */
static bool ends_later(const struct iter *it, uint32_t c, uint32_t x)
{
    const struct problem *p = it->p;

    for (uint32_t i = it->real.need_at[x]; i < it->real.need_at[x + 1]; i++) {
        uint32_t y = it->real.need[i];
        if (it->expose->mark2[y] == it->expose->serial &&
            (it->torch ? problem_is_wait(p, x) : p->group[y] == p->group[c]))
            return true;
    }
    return false;
}

static struct exposed walk_coll(struct iter *it, uint32_t c)
{
    const struct problem *p = it->p;
    struct expose *e = it->expose;
    struct exposed r = {it->rt[c], 0, false};
    bool past = (it->slips & SLIP_EXPOSURE_PAST_WAITS) != 0;

    e->serial++;
    for (uint32_t i = it->real.user_at[c]; i < it->real.user_at[c + 1]; i++)
        e->mark[it->real.user[i]] = e->serial;
    for (uint32_t x = it->next[c]; x != PROBLEM_NONE && e->mark[x] != e->serial; x = it->next[x]) {
        if (!past && ends_later(it, c, x))
            break;
        if (problem_is_coll(p, x)) {
            if (!problem_is_async(p, x))
                break;
            e->mark2[x] = e->serial;
            continue;
        }
        r.comp += it->rt[x];
    }
    return r;
}

static struct exposed walk_wait(struct iter *it, uint32_t w)
{
    const struct problem *p = it->p;
    struct expose *e = it->expose;
    struct exposed r = {0, 0, false};

    e->serial++;
    for (uint32_t i = it->real.need_at[w]; i < it->real.need_at[w + 1]; i++)
        e->mark[it->real.need[i]] = e->serial;
    for (uint32_t x = it->prev[w]; x != PROBLEM_NONE; x = it->prev[x]) {
        if (!problem_is_coll(p, x)) {
            if (problem_is_wait(p, x))
                e->mark2[x] = e->serial;
            r.comp += it->rt[x];
            continue;
        }
        if (e->mark[x] == e->serial) {
            r.comm = it->rt[x];
            break;
        }
        bool done = !problem_is_async(p, x);
        for (uint32_t i = it->real.user_at[x]; !done && i < it->real.user_at[x + 1]; i++)
            done = e->mark2[it->real.user[i]] == e->serial;
        if (done) {
            r.comp = 0;
            r.cut = true;
        }
    }
    return r;
}

bool expose_is_wrong(struct iter *it)
{
    const struct expose *e = it->expose;

    for (uint32_t x = it->head, i = 0; e->indexed && x != PROBLEM_NONE; x = it->next[x], i++) {
        if (e->at[x] != i)
            return true;
        if (!problem_is_async(it->p, x))
            continue;
        struct exposed a = index_coll(it, x), b = walk_coll(it, x);
        if (fabs(a.comp - b.comp) > 1e-9 * (fabs(e->total) + 1))
            return true;
    }
    return false;
}

struct exposed expose_coll(struct iter *it, uint32_t c)
{
    return it->expose->indexed ? index_coll(it, c) : walk_coll(it, c);
}

struct exposed expose_wait(struct iter *it, uint32_t w)
{
    return it->expose->indexed ? index_wait(it, w) : walk_wait(it, w);
}
