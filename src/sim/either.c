#include "sim/either.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 64 };

struct late {
    uint32_t item;
    int64_t before; /* all work that it needs */
    int64_t only;   /* work that no other of its channel needs */
};

struct either {
    const struct sides *s;
    struct late *late; /* those of one channel */
    uint32_t n;
    uint64_t *set;   /* by item: those of 64 that need it */
    uint32_t *owner; /* by item: the only one that needs it, by number; SIDES_NONE: there is none */
    bool *several;   /* by item: more than one need it */
};

static void add_work(struct either *x, uint32_t first, uint32_t v)
{
    uint64_t set = x->set[v];

    if (set == 0)
        return;
    uint32_t one = first + (uint32_t)__builtin_ctzll(set);
    x->several[v] |= x->owner[v] != SIDES_NONE || (set & (set - 1)) != 0;
    x->owner[v] = one;
    for (; set != 0; set &= set - 1)
        x->late[first + (uint32_t)__builtin_ctzll(set)].before += x->s->work[v];
}

/* Follows the edges back from at most 64 of them. */
static void look_back(struct either *x, uint32_t first, uint32_t n)
{
    const struct sides *s = x->s;
    uint32_t last = 0, next = n;

    memset(x->set, 0, s->n * sizeof(*x->set));
    for (uint32_t i = 0; i < n; i++)
        last = x->late[first + i].item > last ? x->late[first + i].item : last;
    for (uint32_t v = last + 1; v-- > 0;) {
        if (s->work[v] > 0)
            add_work(x, first, v);
        uint64_t set = x->set[v];
        if (next > 0 && x->late[first + next - 1].item == v)
            set |= (uint64_t)1 << --next;
        for (uint32_t i = s->pred_at[v]; set != 0 && i < s->pred_at[v + 1]; i++)
            x->set[sides_from(s->pred[i])] |= set;
    }
}

static int by_work(const void *p, const void *q)
{
    const struct late *x = p, *y = q;

    if (x->before != y->before)
        return x->before > y->before ? -1 : 1;
    return x->item < y->item ? -1 : x->item > y->item;
}

/* The time after all transfers of the channel is at least the least of them. */
static int64_t best_set(struct either *x)
{
    const struct sides *s = x->s;
    int64_t others = 0, all = 0, tail = INT64_MAX, best = 0;

    qsort(x->late, x->n, sizeof(*x->late), by_work);
    for (uint32_t i = 0; i < x->n; i++) {
        const struct late *e = &x->late[i];
        others += e->only < s->transfer[e->item] ? e->only : s->transfer[e->item];
        tail = s->tail[e->item] < tail ? s->tail[e->item] : tail;
    }
    for (uint32_t i = 0; i < x->n; i++) {
        const struct late *e = &x->late[i];
        others -= e->only < s->transfer[e->item] ? e->only : s->transfer[e->item];
        all += s->transfer[e->item];
        if (e->before + all + others + tail > best)
            best = e->before + all + others + tail;
    }
    return best;
}

static int64_t of_channel(struct either *x)
{
    memset(x->owner, 0xff, x->s->n * sizeof(*x->owner));
    memset(x->several, 0, x->s->n * sizeof(*x->several));
    for (uint32_t i = 0; i < x->n; i += COLUMNS)
        look_back(x, i, x->n - i < COLUMNS ? x->n - i : COLUMNS);
    for (uint32_t v = 0; v < x->s->n; v++)
        if (x->owner[v] != SIDES_NONE && !x->several[v])
            x->late[x->owner[v]].only += x->s->work[v];
    return best_set(x);
}

/* Those of all channels, in one array. */
static struct late *list(const struct sides *s, struct arena *a, uint32_t **at)
{
    struct late *late = NULL;

    *at = csr_begin(a, s->n_channel);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t v = 0; v < s->n; v++) {
            if (s->channel[v] == SIDES_NONE || s->transfer[v] <= 0)
                continue;
            if (fill)
                late[csr_place(*at, s->channel[v])] = (struct late){.item = v};
            else
                csr_count(*at, s->channel[v]);
        }
        if (!fill)
            late = arena_array(a, struct late, csr_sum(*at, s->n_channel));
    }
    return late;
}

int64_t either_bound(const struct sides *s, struct arena *a, uint32_t *channel)
{
    struct arena_mark mark = arena_mark(a);
    struct either x = {.s = s};
    int64_t best = 0;
    uint32_t *at;

    if (!s->exact)
        return 0;
    struct late *late = list(s, a, &at);
    x.set = arena_array(a, uint64_t, s->n);
    x.owner = arena_array(a, uint32_t, s->n);
    x.several = arena_array(a, bool, s->n);
    for (uint32_t k = 0; k < s->n_channel; k++) {
        x.late = late + at[k];
        x.n = at[k + 1] - at[k];
        int64_t ps = x.n > 1 ? of_channel(&x) : 0;
        if (ps > best) {
            best = ps;
            *channel = k;
        }
    }
    arena_release(a, mark);
    return best;
}
