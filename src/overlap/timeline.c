#include "overlap/timeline.h"

#include <stdlib.h>

/* ---- a start, what hides it, its wait ---- */

struct tie {
    uint32_t from, to;
};

static void fan_of(struct arena *a, const struct tie *tie, uint32_t n_tie, uint32_t n, bool out,
                   struct fan *fan)
{
    fan->start = arena_zeroed(a, ((size_t)n + 2) * sizeof(*fan->start));
    fan->to = arena_array(a, uint32_t, n_tie);
    for (uint32_t i = 0; i < n_tie; i++)
        fan->start[(out ? tie[i].from : tie[i].to) + 2]++;
    for (uint32_t i = 2; i < n + 2; i++)
        fan->start[i] += fan->start[i - 1];
    for (uint32_t i = 0; i < n_tie; i++)
        fan->to[fan->start[(out ? tie[i].from : tie[i].to) + 1]++] = out ? tie[i].to : tie[i].from;
}

static void find_ties(struct timelines *t)
{
    struct facts *f = t->f;
    VEC(struct tie) tie = {0};

    for (uint32_t c = 0; c < f->n_coll; c++) {
        const struct coll *x = &f->coll[c];
        for (uint32_t k = 0; !is_exposed(x) && k < x->hider.len; k++) {
            uint32_t h = x->hider.at[k].node;
            vec_push_in(f->a, &tie, ((struct tie){x->start, h}));
            vec_push_in(f->a, &tie, ((struct tie){h, x->wait}));
            extra_add(t->extra, h, x->start);
            extra_add(t->extra, x->wait, h);
            t->hides[h] = true;
        }
    }
    fan_of(f->a, tie.at, tie.len, t->n, true, &t->ties_out);
    fan_of(f->a, tie.at, tie.len, t->n, false, &t->ties_in);
}

/* ---- events ---- */

struct making {
    struct timelines *t;
    uint32_t group, last;
    uint32_t *hidden_in; /* by place: the last group whose collectives it hides, and 1 */
};

static int kind_of(const struct making *m, uint32_t i)
{
    const struct facts *f = m->t->f;
    bool ours = f->coll_of[i] != NO_PLACE && f->coll[f->coll_of[i]].group == m->group;

    if (ours)
        return f->flag[i] & IS_START ? EVENT_START : EVENT_WAIT;
    if (!(f->flag[i] & IS_WAIT) && (f->flag[i] & IS_COMPUTE))
        return EVENT_COMPUTE;
    return m->hidden_in[i] == m->group + 1 ? EVENT_COMPUTE : -1;
}

static void add_event(struct making *m, uint32_t i, int kind)
{
    struct timelines *t = m->t;
    struct event e = {.node = i, .prev = m->last, .next = NO_EVENT, .kind = (uint8_t)kind};
    uint32_t at = t->event.len;

    if (m->last != NO_EVENT) {
        struct event *last = &t->event.at[m->last];
        last->next = at;
        e.position = last->position + 1;
        extra_add(t->extra, i, last->node);
    } else {
        t->first[m->group] = at;
    }
    vec_push_in(t->f->a, &t->event, e);
    m->last = at;
    if (kind != EVENT_START)
        return;
    const struct coll *c = &t->f->coll[t->f->coll_of[i]];
    for (uint32_t k = 0; k < c->hider.len; k++)
        m->hidden_in[c->hider.at[k].node] = m->group + 1;
}

/* Nodes that are in some timeline, in the order that was found. */
static uint32_t find_marked(struct timelines *t, const struct overlap_result *order, uint32_t *out)
{
    const struct facts *f = t->f;
    bool *hides = arena_zeroed(f->a, t->n);
    uint32_t n = 0;

    for (uint32_t c = 0; c < f->n_coll; c++)
        for (uint32_t k = 0; k < f->coll[c].hider.len; k++)
            hides[f->coll[c].hider.at[k].node] = true;
    for (uint32_t k = 0; k < t->n; k++) {
        uint32_t i = order->order[k];
        if (hides[i] || (f->flag[i] & (IS_COMPUTE | IS_START | IS_WAIT)))
            out[n++] = i;
    }
    return n;
}

static void merged_begin(struct timelines *t)
{
    struct merged *m = &t->merged;
    struct arena *a = t->f->a;

    m->head = arena_array(a, uint32_t, t->n);
    m->next = arena_array(a, uint32_t, t->n);
    m->last = arena_array(a, uint32_t, t->n);
    m->key = arena_array(a, uint32_t, t->n);
    for (uint32_t i = 0; i < t->n; i++) {
        m->head[i] = m->last[i] = i;
        m->next[i] = NO_PLACE;
        m->key[i] = t->at[i];
    }
}

void timelines_begin(struct timelines *t, struct facts *f, const struct overlap_result *order,
                     struct extra_edges *extra)
{
    struct making m = {.t = t};

    *t = (struct timelines){.f = f, .at = order->at, .extra = extra, .n = f->n};
    t->first = arena_array(f->a, uint32_t, f->n_group);
    t->of = arena_array(f->a, uint32_t, f->n);
    t->of_group = arena_zeroed(f->a, f->n * sizeof(*t->of_group));
    t->hides = arena_zeroed(f->a, f->n);
    t->seen = arena_zeroed(f->a, f->n * sizeof(*t->seen));
    m.hidden_in = arena_zeroed(f->a, f->n * sizeof(*m.hidden_in));
    uint32_t *marked = arena_array(f->a, uint32_t, f->n), n = find_marked(t, order, marked);
    edges_begin(extra, f->a, f->n);
    for (m.group = 0; m.group < f->n_group; m.group++) {
        m.last = t->first[m.group] = NO_EVENT;
        for (uint32_t k = 0; k < n; k++) {
            int kind = kind_of(&m, marked[k]);
            if (kind >= 0)
                add_event(&m, marked[k], kind);
        }
    }
    find_ties(t);
    merged_begin(t);
}

void timeline_use(struct timelines *t, uint32_t group)
{
    t->group = group;
    for (uint32_t e = t->first[group]; e != NO_EVENT; e = t->event.at[e].next) {
        t->of[t->event.at[e].node] = e;
        t->of_group[t->event.at[e].node] = group + 1;
    }
}

struct gap timeline_take_out(struct timelines *t, uint32_t place)
{
    struct event *e = event_of(t, place);
    struct gap gap = {e->prev, e->next};
    uint32_t before = gap.prev != NO_EVENT ? t->event.at[gap.prev].node : NO_PLACE,
             after = gap.next != NO_EVENT ? t->event.at[gap.next].node : NO_PLACE;

    assert(e->kind != EVENT_COMPUTE);
    if (gap.prev != NO_EVENT)
        t->event.at[gap.prev].next = gap.next;
    if (gap.next != NO_EVENT)
        t->event.at[gap.next].prev = gap.prev;
    e->prev = e->next = NO_EVENT;
    if (before != NO_PLACE)
        extra_remove(t->extra, place, before);
    if (after != NO_PLACE)
        extra_remove(t->extra, after, place);
    if (before != NO_PLACE && after != NO_PLACE)
        extra_add(t->extra, after, before);
    return gap;
}

/* PyTorch forgets that what comes behind it came behind it. */
void timeline_put_back(struct timelines *t, uint32_t place, struct gap gap)
{
    struct event *e = event_of(t, place);
    uint32_t at = t->of[place];
    bool torch = t->f->o->compat == COMPAT_TORCH;

    e->prev = gap.prev;
    e->next = gap.next;
    if (gap.prev != NO_EVENT) {
        t->event.at[gap.prev].next = at;
        extra_add(t->extra, place, t->event.at[gap.prev].node);
    }
    if (gap.next != NO_EVENT) {
        t->event.at[gap.next].prev = at;
        if (gap.prev == NO_EVENT || !torch)
            extra_add(t->extra, t->event.at[gap.next].node, place);
    }
    if (gap.prev != NO_EVENT && gap.next != NO_EVENT)
        extra_remove(t->extra, t->event.at[gap.next].node, t->event.at[gap.prev].node);
}

/* ---- merged nodes ----
 *
 * Each has a key that rises along every edge, so a search for a path stays between the keys of its
 * ends. Two become one only if there is no path between them; then what the later one needs goes
 * before both, and what needs the earlier one behind them: the keys of those in between are handed
 * out anew, and nothing else changes. */

/* Heads with an edge to (or from) one of the nodes that `head` stands for go to t->todo. */
static void add_heads(struct timelines *t, uint32_t head, bool forward)
{
    const struct merged *m = &t->merged;
    const struct fan *fan = forward ? &t->f->out : &t->f->in;
    const struct edge_sets *extra = forward ? &t->extra->uses : &t->extra->deps;

    for (uint32_t i = head; i != NO_PLACE; i = m->next[i]) {
        for_fan(fan, i, k) vec_push_in(t->f->a, &t->todo, m->head[fan->to[k]]);
        for_edges(extra, i, k) vec_push_in(t->f->a, &t->todo, m->head[extra->item.at[k].to]);
    }
}

/* All that comes before (or after) it with keys between those two, to the list. */
static void gather(struct timelines *t, uint32_t head, bool forward, uint32_t low, uint32_t high)
{
    struct merged *m = &t->merged;

    t->looks++;
    t->todo.len = 0;
    add_heads(t, head, forward);
    while (t->todo.len > 0) {
        uint32_t x = t->todo.at[--t->todo.len];
        if (t->seen[x] == t->looks || m->key[x] <= low || m->key[x] >= high)
            continue;
        t->seen[x] = t->looks;
        vec_push_in(t->f->a, &m->moved, ((struct moved){x, m->key[x]}));
        add_heads(t, x, forward);
    }
}

static int by_key(const void *a, const void *b)
{
    const struct moved *x = a, *y = b;

    return (x->was > y->was) - (x->was < y->was);
}

static void sort_moved(struct moved *x, uint32_t n)
{
    if (n > 1)
        qsort(x, n, sizeof(*x), by_key);
}

void merged_join(struct timelines *t, uint32_t head, uint32_t other)
{
    struct merged *m = &t->merged;
    uint32_t first = m->key[head] < m->key[other] ? head : other,
             second = first == head ? other : head, low = m->key[first], high = m->key[second];

    assert(m->head[head] == head && m->head[other] == other && m->last[other] == other);
    m->moved.len = 0;
    gather(t, second, false, low, high);
    uint32_t before = m->moved.len;
    gather(t, first, true, low, high);
    uint32_t n = m->moved.len;
    sort_moved(m->moved.at, before);
    sort_moved(m->moved.at + before, n - before);
    vec_push_in(t->f->a, &m->moved, ((struct moved){first, low}));
    vec_push_in(t->f->a, &m->moved, ((struct moved){second, high}));
    m->pool.len = 0;
    vec_reserve_in(t->f->a, &m->pool, n + 2);
    struct moved *pool = memcpy(m->pool.at, m->moved.at, (n + 2) * sizeof(*pool));
    sort_moved(pool, n + 2);
    for (uint32_t i = 0; i < before; i++)
        m->key[m->moved.at[i].head] = pool[i].was;
    for (uint32_t i = before; i < n; i++)
        m->key[m->moved.at[i].head] = pool[i + 2].was;
    m->key[first] = m->key[second] = pool[before].was;
    m->head[other] = head;
    m->next[m->last[head]] = other;
    m->last[head] = other;
}

void merged_leave(struct timelines *t, uint32_t head, uint32_t other)
{
    struct merged *m = &t->merged;
    uint32_t i = head;

    assert(m->last[head] == other);
    while (m->next[i] != other)
        i = m->next[i];
    m->next[i] = NO_PLACE;
    m->last[head] = i;
    m->head[other] = m->last[other] = other;
    for (uint32_t k = 0; k < m->moved.len; k++)
        m->key[m->moved.at[k].head] = m->moved.at[k].was;
}

bool merged_path(struct timelines *t, uint32_t from, uint32_t to)
{
    struct merged *m = &t->merged;
    uint32_t wanted = m->head[from], head = m->head[to];

    assert(wanted != head);
    if (m->key[head] <= m->key[wanted])
        return false;
    t->looks++;
    t->todo.len = 0;
    add_heads(t, head, false);
    while (t->todo.len > 0) {
        head = t->todo.at[--t->todo.len];
        if (head == wanted)
            return true;
        if (t->seen[head] == t->looks || m->key[head] <= m->key[wanted])
            continue;
        t->seen[head] = t->looks;
        add_heads(t, head, false);
    }
    return false;
}

bool ties_reach(struct timelines *t, bool forward, uint32_t limit,
                bool (*stop)(const void *ctx, uint32_t place), const void *ctx)
{
    const struct fan *fan[2] = {forward ? &t->f->out : &t->f->in,
                                forward ? &t->ties_out : &t->ties_in};

    t->looks++;
    while (t->todo.len > 0) {
        uint32_t i = t->todo.at[--t->todo.len];
        for (int f = 0; f < 2; f++)
            for_fan(fan[f], i, k)
            {
                uint32_t to = fan[f]->to[k];
                if (t->seen[to] == t->looks || (forward ? t->at[to] > limit : t->at[to] < limit))
                    continue;
                if (stop(ctx, to)) {
                    t->todo.len = 0;
                    return true;
                }
                t->seen[to] = t->looks;
                vec_push_in(t->f->a, &t->todo, to);
            }
    }
    return false;
}
