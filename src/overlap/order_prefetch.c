/* Starting collectives early, with the time that a node has left. */
#include "overlap/order_state.h"

#include <math.h>
#include <stdlib.h>

struct budget *budget_begin(struct order *s, uint32_t node, double ms, uint32_t excluded)
{
    const struct facts *f = s->f;

    if (s->depth == ORDER_DEPTH) {
        order_raise(s, node, "waits lead to waits without an end");
        return NULL;
    }
    struct budget *b = s->budget[s->depth];
    if (b == NULL) {
        b = s->budget[s->depth] = arena_new(s->a, struct budget);
        b->left = arena_array(s->a, double, f->n_group);
        b->next = arena_array(s->a, uint32_t, f->n_group);
        b->key_best = arena_array(s->a, uint32_t, f->n_key);
        b->key_rank = arena_array(s->a, uint32_t, f->n_key);
        memset(b->key_best, 0xFF, f->n_key * sizeof(*b->key_best));
        int64_t most = f->o->max_coll_distance < f->n_coll ? f->o->max_coll_distance : f->n_coll;
        b->cand = arena_array(s->a, struct cand, most > 1 ? most : 1);
        heap_begin(&b->merge, s->a, f->n_group, NULL, NULL);
    }
    s->depth++;
    b->node = node;
    b->when = ++s->budgets;
    b->excluded = excluded;
    b->n_open = ms > 0 ? f->n_group - (excluded != NO_PLACE) : 0;
    for (uint32_t g = 0; g < f->n_group; g++)
        b->left[g] = g == excluded ? 0 : ms;
    return b;
}

void budget_end(struct order *s)
{
    s->depth--;
}

/* ---- candidates ---- */

struct merging {
    const struct order *s;
    const struct budget *b;
};

static int earlier(const void *ctx, uint32_t x, uint32_t y)
{
    const struct merging *m = ctx;
    uint32_t a = m->s->group[x].open.coll[m->b->next[x]],
             c = m->s->group[y].open.coll[m->b->next[y]];

    return (a > c) - (a < c);
}

static struct cand cand_of(const struct order *s, const struct budget *b, uint32_t c)
{
    const struct facts *f = s->f;
    const struct coll *x = &f->coll[c];
    uint32_t dom = f->dom[x->start];
    bool scatters = f->flag[x->start] & TO_SCATTER;

    return (struct cand){.coll = c,
                         .dom = dom,
                         .place = x->start,
                         .prio = (uint8_t)(dom == s->compute + 1         ? 0
                                           : dom == NO_PLACE && scatters ? 1
                                           : dom != NO_PLACE             ? 2
                                                                         : 3),
                         .clear = s->held_by[x->start] == 0,
                         .gain = -fmin(b->left[x->group], x->exposed)};
}

/* The first so many, in the order of their waits, whose group has time left. */
static void collect(struct order *s, struct budget *b)
{
    const struct facts *f = s->f;
    struct merging m = {s, b};

    b->merge.compare = earlier;
    b->merge.ctx = &m;
    b->merge.n = 0;
    b->n_cand = 0;
    for (uint32_t g = 0; g < f->n_group; g++) {
        b->next[g] = b->left[g] > 0 ? open_next(&s->group[g].open, 0) : NO_PLACE;
        if (b->next[g] != NO_PLACE)
            heap_push(&b->merge, g);
    }
    while (b->merge.n > 0) {
        uint32_t g = heap_top(&b->merge);
        const struct open_set *o = &s->group[g].open;

        b->cand[b->n_cand++] = cand_of(s, b, o->coll[b->next[g]]);
        if (b->n_cand >= f->o->max_coll_distance)
            break;
        heap_pop(&b->merge);
        b->next[g] = open_next(o, b->next[g] + 1);
        if (b->next[g] != NO_PLACE)
            heap_push(&b->merge, g);
    }
}

static int before(const struct cand *x, const struct cand *y)
{
    if (x->prio != y->prio)
        return x->prio < y->prio ? -1 : 1;
    if (x->dom != y->dom)
        return x->dom < y->dom ? -1 : 1;
    if (x->gain != y->gain)
        return x->gain < y->gain ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static int by_rank(const void *a, const void *b)
{
    const struct cand *x = a, *y = b;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return before(x, y);
}

static int by_best(const void *a, const void *b, void *ctx)
{
    const struct budget *x = ctx;

    return before(&x->cand[x->key_best[*(const uint32_t *)a]],
                  &x->cand[x->key_best[*(const uint32_t *)b]]);
}

/* Those of one key are taken together, the key with the best of all first. */
static void rank_keys(struct order *s, struct budget *b)
{
    const struct facts *f = s->f;

    b->keys.len = 0;
    for (uint32_t i = 0; i < b->n_cand; i++) {
        uint32_t key = f->coll[b->cand[i].coll].key;
        b->cand[i].rank = 0;
        if (!f->o->prioritize_bucketing_during_scheduling)
            continue;
        if (b->key_best[key] == NO_PLACE)
            vec_push_in(s->a, &b->keys, key);
        if (b->key_best[key] == NO_PLACE || before(&b->cand[i], &b->cand[b->key_best[key]]) < 0)
            b->key_best[key] = i;
    }
    if (b->keys.len > 1)
        qsort_r(b->keys.at, b->keys.len, sizeof(*b->keys.at), by_best, b);
    for (uint32_t k = 0; k < b->keys.len; k++) {
        b->key_rank[b->keys.at[k]] = k;
        b->key_best[b->keys.at[k]] = NO_PLACE;
    }
    for (uint32_t i = 0; b->keys.len > 0 && i < b->n_cand; i++)
        b->cand[i].rank = b->key_rank[f->coll[b->cand[i].coll].key];
}

static void sort(struct cand *c, uint32_t n)
{
    if (n > 1)
        qsort(c, n, sizeof(*c), by_rank);
}

/* ---- may this one be started? ---- */

static int64_t space(const struct order *s)
{
    return s->max_in_flight - s->in_flight;
}

static bool takes_too_much(struct order *s, const struct coll *c)
{
    uint32_t dom = s->f->dom[c->start];

    if (dom == NO_PLACE)
        return false;
    if (s->live.now + c->bytes > s->allowed)
        return true;
    if (s->compute >= dom)
        return false;
    return range_most(&s->prefetched, s->compute, dom) + c->bytes > s->max_in_flight ||
           range_most(&s->projected, s->compute, dom) + c->bytes > s->allowed;
}

/* Is the oldest in flight hidden, and not by this node? */
static bool oldest_is_over(const struct order *s, const struct budget *b)
{
    const struct coll *c = s->first != NO_PLACE ? &s->f->coll[s->first] : NULL;

    return c != NULL && !is_exposed(c) && !is_hidden_by(c, b);
}

static void make_space(struct order *s, const struct budget *b, const struct coll *c)
{
    while (space(s) < c->bytes && oldest_is_over(s, b) && s->out->raised == NULL)
        order_wait(s, s->f->coll[s->first].wait);
}

/* Does it depend on the node of the budget? Marks all that do, up to the last candidate. */
static bool depends(struct order *s, const struct budget *b, uint32_t i)
{
    const struct fan *out = &s->f->out;
    uint32_t end = 0, first = s->todo.len;

    if (s->below_when != b->when) {
        s->below_when = b->when;
        for (uint32_t k = 0; k < b->n_cand; k++)
            end = b->cand[k].place > end ? b->cand[k].place : end;
        vec_push_in(s->a, &s->todo, b->node);
        while (s->todo.len > first) {
            uint32_t n = s->todo.at[--s->todo.len];
            for_fan(out, n, k)
            {
                uint32_t user = out->to[k];
                if (user > end || s->below[user] == b->when)
                    continue;
                s->below[user] = b->when;
                vec_push_in(s->a, &s->todo, user);
            }
        }
    }
    return s->below[i] == b->when;
}

static int by_place(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

/* Push what has to come before it and is not scheduled, from `first` on. False: the node of the
 * budget is among them. */
static bool find_path(struct order *s, const struct budget *b, uint32_t i, uint32_t first)
{
    const struct fan *in = &s->f->in;
    bool free = true;

    s->path.len = first;
    s->looks++;
    for (uint32_t at = first;; at++) {
        for_fan(in, i, k)
        {
            uint32_t from = in->to[k];
            if (s->done[from] || s->seen[from] == s->looks)
                continue;
            s->seen[from] = s->looks;
            free &= from != b->node;
            vec_push_in(s->a, &s->path, from);
        }
        if (at >= s->path.len)
            break;
        i = s->path.at[at];
    }
    return free;
}

static bool waits_for_itself(const struct order *s, const struct budget *b, uint32_t first)
{
    for (uint32_t k = first; k < s->path.len; k++)
        if ((s->f->flag[s->path.at[k]] & IS_WAIT) &&
            is_hidden_by(&s->f->coll[s->f->coll_of[s->path.at[k]]], b))
            return true;
    return false;
}

static void schedule_path(struct order *s, uint32_t first)
{
    if (s->path.len - first > 1)
        qsort(s->path.at + first, s->path.len - first, sizeof(*s->path.at), by_place);
    for (uint32_t k = first; k < s->path.len && s->out->raised == NULL; k++) {
        uint32_t i = s->path.at[k];
        if (!(s->f->flag[i] & IS_WAIT))
            order_schedule(s, i);
        else if (!s->done[i])
            order_wait(s, i);
    }
}

static void start_early(struct order *s, struct budget *b, uint32_t c, uint32_t first)
{
    struct coll *x = &s->f->coll[c];
    double available = b->left[x->group];
    uint32_t dom = s->f->dom[x->start];

    schedule_path(s, first);
    if (s->out->raised != NULL)
        return;
    order_start(s, c);
    if (dom != NO_PLACE && s->compute < dom) {
        range_add(&s->prefetched, s->compute, dom, x->bytes);
        range_add(&s->projected, s->compute, dom, x->bytes);
    }
    double ms = fmin(available, x->exposed);
    flight_hide(s, c, ms, b);
    b->left[x->group] -= ms;
    b->n_open -= available > 0 && b->left[x->group] <= 0;
}

static void consider(struct order *s, struct budget *b, const struct cand *cand)
{
    struct coll *c = &s->f->coll[cand->coll];
    uint32_t first = s->path.len;

    if (b->left[c->group] <= 0)
        return;
    if (s->held_by[c->start] > 0) { /* it cannot be; trying may still make space */
        if (space(s) < c->bytes && oldest_is_over(s, b) && !depends(s, b, c->start) &&
            !takes_too_much(s, c))
            make_space(s, b, c);
        return;
    }
    if (find_path(s, b, c->start, first) && !takes_too_much(s, c)) {
        make_space(s, b, c);
        if (space(s) >= c->bytes) {
            find_path(s, b, c->start, first);
            if (!waits_for_itself(s, b, first))
                start_early(s, b, cand->coll, first);
        }
    }
    s->path.len = first;
}

/* Those that are held back come last and are looked at only where space is short. */
static int64_t part_clear(const struct order *s, struct budget *b)
{
    int64_t all = 0;

    b->n_clear = 0;
    for (uint32_t i = 0; i < b->n_cand; i++) {
        struct cand c = b->cand[i];
        int64_t bytes = s->f->coll[c.coll].bytes;
        all = bytes > INT64_MAX - all ? INT64_MAX : all + bytes;
        if (!c.clear)
            continue;
        b->cand[i] = b->cand[b->n_clear];
        b->cand[b->n_clear++] = c;
    }
    return all;
}

static uint32_t find_cand(const struct budget *b, uint32_t coll)
{
    uint32_t i = 0;

    while (b->cand[i].coll != coll)
        i++;
    return i;
}

void budget_spend(struct order *s, struct budget *b)
{
    if (b->n_open == 0)
        return;
    collect(s, b);
    if (b->n_cand == 0)
        return;
    rank_keys(s, b);
    int64_t bytes = part_clear(s, b);
    bool all = space(s) < bytes;
    uint32_t n = all ? b->n_cand : b->n_clear;
    sort(b->cand, n);
    for (uint32_t i = 0; i < n && b->n_open > 0 && s->out->raised == NULL; i++) {
        uint32_t coll = b->cand[i].coll;
        consider(s, b, &b->cand[i]);
        if (!all && (space(s) < bytes || s->budgets != b->when)) { /* it led to others */
            all = true;
            n = b->n_cand;
            sort(b->cand, n);
            i = find_cand(b, coll);
        }
    }
}
