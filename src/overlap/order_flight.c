/* Collectives that are in flight, and those that may be started. */
#include "overlap/order_state.h"

#include <stdlib.h>

/* ---- lists through arrays ---- */

struct list {
    uint32_t *prev, *next, *first, *last;
};

static void append(struct list l, uint32_t c)
{
    l.prev[c] = *l.last;
    l.next[c] = NO_PLACE;
    if (*l.last != NO_PLACE)
        l.next[*l.last] = c;
    else
        *l.first = c;
    *l.last = c;
}

static void cut(struct list l, uint32_t c)
{
    if (l.prev[c] != NO_PLACE)
        l.next[l.prev[c]] = l.next[c];
    else
        *l.first = l.next[c];
    if (l.next[c] != NO_PLACE)
        l.prev[l.next[c]] = l.prev[c];
    else
        *l.last = l.prev[c];
}

static struct list all_of(struct order *s)
{
    return (struct list){s->prev, s->next, &s->first, &s->last};
}

static struct list group_of_coll(struct order *s, uint32_t c)
{
    struct group_state *g = &s->group[s->f->coll[c].group];

    return (struct list){s->group_prev, s->group_next, &g->first, &g->last};
}

static struct list exposed_of(struct order *s, uint32_t c)
{
    struct group_state *g = &s->group[s->f->coll[c].group];

    return (struct list){s->exposed_prev, s->exposed_next, &g->first_exposed, &g->last_exposed};
}

static void add_exposed(struct order *s, uint32_t c)
{
    struct group_state *g = &s->group[s->f->coll[c].group];

    append(exposed_of(s, c), c);
    if (g->active == NO_PLACE) {
        g->active = s->active.len;
        vec_push_in(s->a, &s->active, s->f->coll[c].group);
    }
}

static void cut_exposed(struct order *s, uint32_t c)
{
    struct group_state *g = &s->group[s->f->coll[c].group];

    cut(exposed_of(s, c), c);
    if (g->first_exposed != NO_PLACE)
        return;
    uint32_t moved = s->active.at[--s->active.len];
    s->active.at[g->active] = moved;
    s->group[moved].active = g->active;
    g->active = NO_PLACE;
}

void flight_begin(struct order *s)
{
    uint32_t n = s->f->n_coll;
    uint32_t **room[] = {&s->prev,       &s->next,         &s->group_prev,
                         &s->group_next, &s->exposed_prev, &s->exposed_next};

    for (size_t i = 0; i < sizeof(room) / sizeof(*room); i++)
        *room[i] = arena_array(s->a, uint32_t, n);
    s->first = s->last = NO_PLACE;
    s->flying = arena_zeroed(s->a, n);
    s->like = arena_zeroed(s->a, ((size_t)n + 1) * sizeof(*s->like));
    s->group = arena_zeroed(s->a, s->f->n_group * sizeof(*s->group));
    for (uint32_t g = 0; g < s->f->n_group; g++) {
        s->group[g].first = s->group[g].last = NO_PLACE;
        s->group[g].first_exposed = s->group[g].last_exposed = s->group[g].active = NO_PLACE;
    }
}

void flight_start(struct order *s, uint32_t c)
{
    struct coll *x = &s->f->coll[c];

    if (x->like != 0 && s->like[x->like] > 0)
        x->exposed = x->exposed > x->latency ? x->exposed - x->latency : 0;
    append(all_of(s), c);
    append(group_of_coll(s, c), c);
    s->flying[c] = true;
    s->in_flight += x->bytes;
    s->like[x->like]++;
    if (is_exposed(x))
        add_exposed(s, c);
    else
        order_release(s, x->wait);
}

void flight_end(struct order *s, uint32_t c)
{
    struct coll *x = &s->f->coll[c];

    cut(all_of(s), c);
    cut(group_of_coll(s, c), c);
    s->flying[c] = false;
    s->in_flight -= x->bytes;
    s->like[x->like]--;
    if (is_exposed(x))
        cut_exposed(s, c);
}

void flight_hide(struct order *s, uint32_t c, double ms, const struct budget *b)
{
    struct coll *x = &s->f->coll[c];
    bool was = is_exposed(x);

    x->exposed -= ms;
    vec_push_in(s->a, &x->hider, ((struct hider){b->node, b->when}));
    if (!was || is_exposed(x))
        return;
    if (s->flying[c])
        cut_exposed(s, c);
    order_release(s, x->wait);
}

/* Those that this budget and what it led to have hidden are the last ones. */
bool is_hidden_by(const struct coll *c, const struct budget *b)
{
    for (uint32_t i = c->hider.len; i-- > 0 && c->hider.at[i].when >= b->when;)
        if (c->hider.at[i].node == b->node)
            return true;
    return false;
}

/* ---- what may be started ---- */

static void open_add(struct order *s, uint32_t c)
{
    struct open_set *o = &s->group[s->f->coll[c].group].open;
    uint32_t at = s->open_at[c];

    o->word[at / 64] |= (uint64_t)1 << at % 64;
    o->some[at / 4096] |= (uint64_t)1 << at / 64 % 64;
}

void open_take(struct order *s, uint32_t c)
{
    struct open_set *o = &s->group[s->f->coll[c].group].open;
    uint32_t at = s->open_at[c];

    o->word[at / 64] &= ~((uint64_t)1 << at % 64);
    if (o->word[at / 64] == 0)
        o->some[at / 4096] &= ~((uint64_t)1 << at / 64 % 64);
}

uint32_t open_next(const struct open_set *o, uint32_t from)
{
    uint32_t w = from / 64;

    if (w >= o->n_word)
        return NO_PLACE;
    uint64_t bits = o->word[w] >> from % 64;
    if (bits != 0)
        return from + (uint32_t)__builtin_ctzll(bits);
    w++;
    for (uint32_t k = w / 64; k < o->n_some; k++) {
        bits = o->some[k];
        if (k == w / 64)
            bits = w % 64 ? bits >> w % 64 << w % 64 : bits;
        if (bits != 0) {
            w = k * 64 + (uint32_t)__builtin_ctzll(bits);
            return w * 64 + (uint32_t)__builtin_ctzll(o->word[w]);
        }
    }
    return NO_PLACE;
}

static int by_dom(const void *a, const void *b, void *ctx)
{
    const struct facts *f = ctx;
    uint32_t x = f->dom[f->coll[*(const uint32_t *)a].start],
             y = f->dom[f->coll[*(const uint32_t *)b].start];

    return (x > y) - (x < y);
}

void open_more(struct order *s)
{
    const struct facts *f = s->f;

    while (s->n_opened < s->n_by_dom) {
        uint32_t c = s->by_dom[s->n_opened];
        if ((int64_t)f->dom[f->coll[c].start] - s->compute > f->o->max_compute_pre_fetch)
            break;
        s->n_opened++;
        if (!s->done[f->coll[c].start])
            open_add(s, c);
    }
}

void open_begin(struct order *s)
{
    const struct facts *f = s->f;
    uint32_t *count = arena_zeroed(s->a, f->n_group * sizeof(*count));

    s->open_at = arena_array(s->a, uint32_t, f->n_coll);
    s->by_dom = arena_array(s->a, uint32_t, f->n_coll);
    for (uint32_t c = 0; c < f->n_coll; c++)
        s->open_at[c] = count[f->coll[c].group]++;
    for (uint32_t g = 0; g < f->n_group; g++) {
        struct open_set *o = &s->group[g].open;
        o->n_word = count[g] / 64 + 1;
        o->n_some = o->n_word / 64 + 1;
        o->word = arena_zeroed(s->a, o->n_word * sizeof(*o->word));
        o->some = arena_zeroed(s->a, o->n_some * sizeof(*o->some));
        o->coll = arena_array(s->a, uint32_t, count[g]);
    }
    for (uint32_t c = 0; c < f->n_coll; c++) {
        s->group[f->coll[c].group].open.coll[s->open_at[c]] = c;
        if (f->dom[f->coll[c].start] == NO_PLACE)
            open_add(s, c);
        else
            s->by_dom[s->n_by_dom++] = c;
    }
    if (s->n_by_dom > 0)
        qsort_r(s->by_dom, s->n_by_dom, sizeof(*s->by_dom), by_dom, s->f);
    open_more(s);
}
