/* Which collectives become one, without one of them being hidden less. A seed takes in others of
 * its group and key as they come. One more fits if it depends on none of them nor they on it, and
 * there are places for the common start and the common wait, out of those of the seed and of the
 * new one, that leave all that hides them in between, and no collective waited for before what
 * hides it. */
#include <stdlib.h>

#include "overlap/timeline.h"

enum {
    FAILURES_MAX = 20, /* in a row, after which a bucket is closed */
    DISTANCE_MAX = 20, /* places between seed and candidate, where exposed ones go first */
};

static const int64_t bucket_bytes = (int64_t)2 << 30;

struct interval {
    uint32_t first, end;
};

struct choosing {
    struct timelines t;
    struct facts *f;
    struct overlap_buckets *out;
    const bool *gathers; /* by group: its first all-gather is FSDP's */
    VEC(uint32_t) member;
    int64_t bytes;
    uint32_t *in_bucket; /* by place: number of the bucket whose start, wait … it is, … */
    uint32_t *hides;     /* … or of which it hides one */
    uint32_t number;     /* of the bucket at hand */
    uint32_t low_start, high_start, low_wait, high_wait, high_hider; /* in the order */
    uint32_t *taken; /* by collective: it was a seed, or is in a bucket */
    VEC(struct interval) runs, hidden;
};

static struct coll *coll_of(const struct choosing *c, uint32_t k)
{
    return &c->f->coll[k];
}

static uint32_t at(const struct choosing *c, uint32_t place)
{
    return c->t.at[place];
}

/* ---- does it depend on a member, or a member on it? ---- */

static bool is_start(const void *ctx, uint32_t place)
{
    const struct choosing *c = ctx;

    return c->in_bucket[place] == c->number && (c->f->flag[place] & IS_START);
}

static bool is_wait(const void *ctx, uint32_t place)
{
    const struct choosing *c = ctx;

    return c->in_bucket[place] == c->number && (c->f->flag[place] & IS_WAIT);
}

static bool is_wait_or_hides(const void *ctx, uint32_t place)
{
    return is_wait(ctx, place) ||
           ((const struct choosing *)ctx)->hides[place] == ((const struct choosing *)ctx)->number;
}

typedef bool (*stop_fn)(const void *ctx, uint32_t place);

/* Does one that `stop` knows come before (or after) it? */
static bool reaches(struct choosing *c, uint32_t place, bool forward, uint32_t limit, stop_fn stop)
{
    if (forward ? at(c, place) > limit : at(c, place) < limit)
        return false;
    c->t.todo.len = 0;
    vec_push_in(c->f->a, &c->t.todo, place);
    return ties_reach(&c->t, forward, limit, stop, c);
}

static bool is_related(struct choosing *c, const struct coll *x)
{
    uint32_t high = c->high_hider > c->high_wait ? c->high_hider : c->high_wait;

    if (reaches(c, x->start, false, c->low_start, is_start) ||
        reaches(c, x->start, true, c->high_start, is_start) ||
        reaches(c, x->wait, false, c->low_wait, is_wait) ||
        reaches(c, x->wait, true, high, is_wait_or_hides))
        return true;
    c->t.todo.len = 0;
    for (uint32_t k = 0; k < x->hider.len; k++)
        if (at(c, x->hider.at[k].node) >= c->low_wait)
            vec_push_in(c->f->a, &c->t.todo, x->hider.at[k].node);
    return c->t.todo.len > 0 && ties_reach(&c->t, false, c->low_wait, is_wait, c);
}

/* ---- intervals ---- */

static uint32_t position(const struct choosing *c, uint32_t place)
{
    return event_of(&c->t, place)->position;
}

static void add_run(struct choosing *c, uint32_t first, uint32_t end)
{
    vec_push_in(c->f->a, &c->runs, ((struct interval){first, end}));
}

static void add_hidden(struct choosing *c, uint32_t first, uint32_t end)
{
    vec_push_in(c->f->a, &c->hidden, ((struct interval){first, end}));
}

/* The collective of an event that is not of the bucket or the candidate: when it runs, and until
 * when it has to. */
static void add_other(struct choosing *c, const struct event *e, const struct coll *candidate)
{
    if (e->kind == EVENT_COMPUTE || c->in_bucket[e->node] == c->number ||
        e->node == candidate->start || e->node == candidate->wait)
        return;
    const struct coll *x = &c->f->coll[c->f->coll_of[e->node]];
    uint32_t start = position(c, x->start);
    add_run(c, start, position(c, x->wait));
    for (uint32_t k = 0; k < x->hider.len; k++)
        add_hidden(c, start, position(c, x->hider.at[k].node));
}

static int by_first(const void *a, const void *b)
{
    const struct interval *x = a, *y = b;

    return (x->first > y->first) - (x->first < y->first);
}

/* Does a run begin before one of the hidden intervals and end after it? */
static bool one_encloses(struct choosing *c)
{
    uint32_t end = 0, k = 0;

    if (c->runs.len > 1)
        qsort(c->runs.at, c->runs.len, sizeof(*c->runs.at), by_first);
    if (c->hidden.len > 1)
        qsort(c->hidden.at, c->hidden.len, sizeof(*c->hidden.at), by_first);
    for (uint32_t i = 0; i < c->hidden.len; i++) {
        for (; k < c->runs.len && c->runs.at[k].first < c->hidden.at[i].first; k++)
            end = c->runs.at[k].end > end ? c->runs.at[k].end : end;
        if (c->hidden.at[i].end < end)
            return true;
    }
    return false;
}

/* All that hides a member, of which one is the candidate, between the new start and wait? */
static bool add_hiders(struct choosing *c, const struct coll *x, uint32_t start, uint32_t wait)
{
    for (uint32_t k = 0; k < x->hider.len; k++) {
        uint32_t p = position(c, x->hider.at[k].node);
        if (p <= start || p >= wait)
            return false;
        add_hidden(c, start, p);
    }
    return true;
}

static bool stays_hidden(struct choosing *c, const struct coll *x, uint32_t start, uint32_t wait)
{
    const struct coll *seed = coll_of(c, c->member.at[0]);
    const struct event *e = event_of(&c->t, start), *w = event_of(&c->t, wait);
    uint32_t first = e->position, end = w->position;
    uint32_t last_start = position(c, x->start), first_wait = position(c, x->wait);

    if (position(c, seed->start) > last_start)
        last_start = position(c, seed->start);
    if (position(c, seed->wait) < first_wait)
        first_wait = position(c, seed->wait);
    c->runs.len = c->hidden.len = 0;
    add_run(c, first, end);
    if (!add_hiders(c, x, first, end))
        return false;
    for (uint32_t k = 0; k < c->member.len; k++)
        if (!add_hiders(c, coll_of(c, c->member.at[k]), first, end))
            return false;
    for (uint32_t k = e->next; k != NO_EVENT && c->t.event.at[k].position < last_start;
         k = c->t.event.at[k].next)
        add_other(c, &c->t.event.at[k], x);
    for (uint32_t k = w->prev; k != NO_EVENT && c->t.event.at[k].position > first_wait;
         k = c->t.event.at[k].prev)
        add_other(c, &c->t.event.at[k], x);
    return !one_encloses(c);
}

/* ---- one more ---- */

static bool can_merge(struct timelines *t, uint32_t seed, uint32_t other)
{
    return !merged_path(t, seed, other) && !merged_path(t, other, seed);
}

static bool try_places(struct choosing *c, const struct coll *x, uint32_t start, uint32_t wait)
{
    struct timelines *t = &c->t;
    const struct coll *seed = coll_of(c, c->member.at[0]);

    if (!stays_hidden(c, x, start, wait))
        return false;
    uint32_t start_moved = start == seed->start ? x->start : seed->start,
             wait_moved = wait == seed->wait ? x->wait : seed->wait;
    struct gap start_gap = timeline_take_out(t, start_moved);
    if (!can_merge(t, seed->start, x->start)) {
        timeline_put_back(t, start_moved, start_gap);
        return false;
    }
    merged_join(t, seed->start, x->start);
    struct gap wait_gap = timeline_take_out(t, wait_moved);
    if (!can_merge(t, seed->wait, x->wait)) {
        timeline_put_back(t, wait_moved, wait_gap);
        merged_leave(t, seed->start, x->start);
        timeline_put_back(t, start_moved, start_gap);
        return false;
    }
    merged_join(t, seed->wait, x->wait);
    t->of[x->start] = t->of[seed->start] = t->of[start];
    t->of[x->wait] = t->of[seed->wait] = t->of[wait];
    return true;
}

static bool is_used_to_hide(const struct choosing *c, const struct coll *x)
{
    return c->t.hides[x->start] || c->t.hides[x->wait];
}

static bool fits(struct choosing *c, const struct coll *x)
{
    const struct coll *seed = coll_of(c, c->member.at[0]);

    if (is_used_to_hide(c, x) || is_related(c, x))
        return false;
    return try_places(c, x, seed->start, x->wait) || try_places(c, x, seed->start, seed->wait) ||
           try_places(c, x, x->start, x->wait) || try_places(c, x, x->start, seed->wait);
}

/* ---- buckets ---- */

static void widen(uint32_t *low, uint32_t *high, uint32_t place)
{
    *low = place < *low ? place : *low;
    *high = place > *high ? place : *high;
}

static void add_member(struct choosing *c, uint32_t k)
{
    const struct coll *x = coll_of(c, k);
    uint32_t unused = 0;

    vec_push_in(c->f->a, &c->member, k);
    c->taken[k] = 1;
    c->bytes += x->bytes;
    c->in_bucket[x->start] = c->in_bucket[x->wait] = c->number;
    widen(&c->low_start, &c->high_start, at(c, x->start));
    widen(&c->low_wait, &c->high_wait, at(c, x->wait));
    for (uint32_t h = 0; h < x->hider.len; h++) {
        c->hides[x->hider.at[h].node] = c->number;
        widen(&unused, &c->high_hider, at(c, x->hider.at[h].node));
    }
}

static void begin_bucket(struct choosing *c, uint32_t seed)
{
    c->member.len = 0;
    c->bytes = 0;
    c->number++;
    c->low_start = c->low_wait = NO_PLACE;
    c->high_start = c->high_wait = c->high_hider = 0;
    add_member(c, seed);
}

static void end_bucket(struct choosing *c)
{
    struct overlap_bucket b = {.n = c->member.len, .bytes = c->bytes};

    if (b.n < 2)
        return;
    b.member = memcpy(arena_array(c->f->a, uint32_t, b.n), c->member.at, b.n * sizeof(*b.member));
    vec_push_in(c->f->a, &c->out->bucket, b);
}

static bool is_far(const struct choosing *c, uint32_t x, uint32_t y)
{
    uint32_t a = at(c, coll_of(c, x)->start), b = at(c, coll_of(c, y)->start);

    return (a > b ? a - b : b - a) > DISTANCE_MAX;
}

static void fill_bucket(struct choosing *c, const uint32_t *sorted, uint32_t n, uint32_t seed_at,
                        bool exposed_first)
{
    uint32_t seed = sorted[seed_at], failures = 0;
    int64_t end = seed_at + 1 + c->f->o->max_coll_distance;

    begin_bucket(c, seed);
    for (uint32_t k = seed_at + 1; k < n && k < end && failures < FAILURES_MAX; k++) {
        uint32_t other = sorted[k];
        if (c->bytes + coll_of(c, other)->bytes > bucket_bytes)
            break;
        if (c->taken[other] || (exposed_first && is_far(c, seed, other)))
            continue;
        if (fits(c, coll_of(c, other))) {
            add_member(c, other);
            failures = 0;
        } else {
            failures++;
        }
    }
    end_bucket(c);
}

struct sorting {
    const struct choosing *c;
    bool exposed_first;
};

static double hidden_share(const struct coll *x)
{
    return x->ms <= 0 ? 0 : (x->ms - x->exposed) / x->ms;
}

static int in_turn(const void *a, const void *b, void *ctx)
{
    const struct sorting *s = ctx;
    const struct coll *x = coll_of(s->c, *(const uint32_t *)a),
                      *y = coll_of(s->c, *(const uint32_t *)b);
    double p = hidden_share(x), q = hidden_share(y);

    if (s->exposed_first && p != q)
        return p < q ? -1 : 1;
    return at(s->c, x->start) < at(s->c, y->start) ? -1 : 1;
}

static void find_in(struct choosing *c, uint32_t *sorted, uint32_t n, uint32_t group)
{
    struct sorting s = {c, c->f->o->bucket_exposed_first == EXPOSED_AUTO
                               ? c->gathers[group]
                               : c->f->o->bucket_exposed_first == EXPOSED_FIRST};

    if (n > 1)
        qsort_r(sorted, n, sizeof(*sorted), in_turn, &s);
    for (uint32_t i = 0; i < n; i++)
        if (!c->taken[sorted[i]] && !is_used_to_hide(c, coll_of(c, sorted[i])))
            fill_bucket(c, sorted, n, i, s.exposed_first);
}

/* Groups over which parameters are gathered: their first all-gather is made of one input. */
static const bool *gathering_groups(struct facts *f)
{
    const bool *fsdp = bucket_fsdp_waits(f->r, TUCK_ALL_GATHER);
    bool *yes = arena_zeroed(f->a, f->n_group), *seen = arena_zeroed(f->a, f->n_group);

    for (uint32_t k = 0; k < f->n_coll; k++) {
        const struct coll *x = &f->coll[k];
        if (x->kind != TUCK_ALL_GATHER || seen[x->group])
            continue;
        seen[x->group] = true;
        yes[x->group] = fsdp[f->id.at[x->wait]];
    }
    return yes;
}

/* Collectives of a group by key, keys and collectives as they come in the text. */
static void find_in_group(struct choosing *c, uint32_t group, const uint32_t *all, uint32_t n)
{
    struct facts *f = c->f;
    uint32_t *count = arena_zeroed(f->a, ((size_t)f->n_key + 1) * sizeof(*count));
    uint32_t *sorted = arena_array(f->a, uint32_t, n);
    VEC(uint32_t) keys = {0};

    for (uint32_t i = 0; i < n; i++)
        if (coll_of(c, all[i])->kind != 0 && count[coll_of(c, all[i])->key]++ == 0)
            vec_push_in(f->a, &keys, coll_of(c, all[i])->key);
    timeline_use(&c->t, group);
    for (uint32_t k = 0; k < keys.len; k++) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (coll_of(c, all[i])->key == keys.at[k])
                sorted[m++] = all[i];
        find_in(c, sorted, m, group);
    }
}

void overlap_choose(struct facts *f, const struct overlap_result *order,
                    struct overlap_buckets *out)
{
    struct choosing *c = arena_new(f->a, struct choosing);
    uint32_t *all = arena_array(f->a, uint32_t, f->n_coll);

    *c = (struct choosing){.f = f, .out = out};
    *out = (struct overlap_buckets){.extra = arena_new(f->a, struct extra_edges)};
    timelines_begin(&c->t, f, order, out->extra);
    c->gathers = gathering_groups(f);
    c->in_bucket = arena_zeroed(f->a, f->n * sizeof(*c->in_bucket));
    c->hides = arena_zeroed(f->a, f->n * sizeof(*c->hides));
    c->taken = arena_zeroed(f->a, f->n_coll * sizeof(*c->taken));
    for (uint32_t g = 0; g < f->n_group; g++) {
        uint32_t n = 0;
        if (f->o->bucket_only_internode_comms && !c->gathers[g])
            continue;
        for (uint32_t k = 0; k < f->n_coll; k++)
            if (f->coll[k].group == g)
                all[n++] = k;
        find_in_group(c, g, all, n);
    }
}
