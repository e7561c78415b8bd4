#include "overlap/extra_edges.h"

static uint64_t key_of(uint32_t from, uint32_t to)
{
    return ((uint64_t)from << 32 | to) + 1;
}

/* The slot of a key, or where it would go. */
static uint32_t slot_of(const struct edge_sets *s, uint64_t key)
{
    uint64_t h = key * 0x9E3779B97F4A7C15u;
    uint32_t i = (uint32_t)(h >> 32) & (s->n_slot - 1);

    while (s->key[i] != 0 && s->key[i] != key)
        i = (i + 1) & (s->n_slot - 1);
    return i;
}

static void make_room(struct edge_sets *s, uint32_t n_slot)
{
    uint64_t *key = s->key;
    uint32_t *value = s->value, n = s->n_slot;

    s->n_slot = n_slot;
    s->key = arena_zeroed(s->a, n_slot * sizeof(*s->key));
    s->value = arena_zeroed(s->a, n_slot * sizeof(*s->value));
    s->n_key = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (key[i] == 0 || value[i] == 0)
            continue;
        uint32_t at = slot_of(s, key[i]);
        s->key[at] = key[i];
        s->value[at] = value[i];
        s->n_key++;
    }
}

static void sets_begin(struct edge_sets *s, struct arena *a)
{
    *s = (struct edge_sets){.a = a};
    vec_push_in(a, &s->item, (struct edge_set_item){0});
    make_room(s, 64);
}

bool edge_has(const struct edge_sets *s, uint32_t from, uint32_t to)
{
    return s->value[slot_of(s, key_of(from, to))] != 0;
}

static void reach(struct edge_sets *s, uint32_t i)
{
    while (s->first.len <= i) {
        vec_push_in(s->a, &s->first, 0);
        vec_push_in(s->a, &s->last, 0);
    }
}

void edge_put(struct edge_sets *s, uint32_t from, uint32_t to)
{
    uint32_t at = slot_of(s, key_of(from, to));

    if (s->value[at] != 0)
        return;
    reach(s, from);
    uint32_t item = s->item.len, last = s->last.at[from];
    vec_push_in(s->a, &s->item, ((struct edge_set_item){.to = to, .prev = last}));
    if (last != 0)
        s->item.at[last].next = item;
    else
        s->first.at[from] = item;
    s->last.at[from] = item;
    s->n_key += s->key[at] == 0;
    s->key[at] = key_of(from, to);
    s->value[at] = item;
    if (s->n_key > s->n_slot / 2)
        make_room(s, 2 * s->n_slot);
}

void edge_drop(struct edge_sets *s, uint32_t from, uint32_t to)
{
    uint32_t at = slot_of(s, key_of(from, to)), item = s->value[at];

    if (item == 0)
        return;
    s->value[at] = 0;
    struct edge_set_item x = s->item.at[item];
    if (x.prev != 0)
        s->item.at[x.prev].next = x.next;
    else
        s->first.at[from] = x.next;
    if (x.next != 0)
        s->item.at[x.next].prev = x.prev;
    else
        s->last.at[from] = x.prev;
}

void edge_clear(struct edge_sets *s, uint32_t from)
{
    while (edge_first(s, from) != 0)
        edge_drop(s, from, s->item.at[edge_first(s, from)].to);
}

void edges_begin(struct extra_edges *e, struct arena *a, uint32_t n)
{
    *e = (struct extra_edges){0};
    sets_begin(&e->deps, a);
    sets_begin(&e->uses, a);
    reach(&e->deps, n);
    reach(&e->uses, n);
}

void extra_touch(struct extra_edges *e, uint32_t n)
{
    while (e->known.len <= n)
        vec_push_in(e->deps.a, &e->known, false);
    if (e->known.at[n])
        return;
    e->known.at[n] = true;
    vec_push_in(e->deps.a, &e->keys, n);
}

void extra_add(struct extra_edges *e, uint32_t n, uint32_t dep)
{
    extra_touch(e, n);
    edge_put(&e->deps, n, dep);
    edge_put(&e->uses, dep, n);
}

void extra_remove(struct extra_edges *e, uint32_t n, uint32_t dep)
{
    if (!edge_has(&e->deps, n, dep))
        return;
    edge_drop(&e->deps, n, dep);
    edge_drop(&e->uses, dep, n);
}
