#include "study/free_turns.h"

#include <stdlib.h>

#include "study/chain.h"
#include "study/rank_input.h"

struct turn {
    int64_t head, tail, bytes;
};

/* The messages of one key, by what must come after them and by what must come before. */
struct key {
    struct chain_cut *tails, *heads;
};

struct turns {
    const struct free_items *x;
    const struct free_rates *r;
    struct key *key;
    uint32_t n_key;
    int64_t head, tail; /* the least of all */
};

bool free_same_key(const struct free_member *x, const struct free_member *y)
{
    return x->group == y->group && x->coll == y->coll && x->reduce_op == y->reduce_op;
}

static int by_tail(const void *p, const void *q)
{
    const struct turn *x = p, *y = q;

    return x->tail > y->tail ? -1 : x->tail < y->tail;
}

static int by_head(const void *p, const void *q)
{
    const struct turn *x = p, *y = q;

    return x->head > y->head ? -1 : x->head < y->head;
}

/* What is due first has the most behind it, or before it. */
static struct chain_cut *cut_of(struct turn *t, uint32_t n, bool heads,
                                const struct chain_times *times, struct arena *a)
{
    int64_t *bytes = arena_array(a, int64_t, n), *due = arena_array(a, int64_t, n);

    qsort(t, n, sizeof(*t), heads ? by_head : by_tail);
    for (uint32_t i = 0; i < n; i++) {
        bytes[i] = t[i].bytes;
        due[i] = -(heads ? t[i].head : t[i].tail);
    }
    return chain_of_bytes(n, bytes, due, times, a);
}

/* Those that may become one-shot have no such latency. */
static void add_key(struct turns *s, const struct free_member *m, uint32_t n)
{
    const struct free_items *x = s->x;
    struct arena *a = x->a;
    struct cost_shape shape = facts_shape(x->g, x->p, s->r->m->cluster, m->group);
    int64_t sum = 0;
    uint32_t k = 0;

    if (free_may_be_one_shot(s->r, m->group, (tuck_coll)m->coll) || shape.p < 2)
        return;
    struct turn *t = arena_array(a, struct turn, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t v = m[i].item;
        if (!x->s.is_async[v] || m[i].bytes > (INT64_MAX >> 16) - sum)
            continue;
        sum += m[i].bytes;
        t[k++] = (struct turn){x->s.head[v] + x->s.before[v], x->s.tail[v], m[i].bytes};
        s->head = t[k - 1].head < s->head ? t[k - 1].head : s->head;
        s->tail = t[k - 1].tail < s->tail ? t[k - 1].tail : s->tail;
    }
    if (k == 0)
        return;
    struct chain_times *times = arena_new(a, struct chain_times);
    chain_times(times, s->r->m, shape, (tuck_coll)m->coll,
                laws_find(s->r->laws, m->coll, program_str(x->p, x->p->group[m->group].name)), sum,
                a);
    struct key *key = &s->key[s->n_key++];
    key->tails = cut_of(t, k, false, times, a);
    key->heads = cut_of(t, k, true, times, a);
}

/* May a step take that long? */
static bool is_possible(struct turns *s, int64_t step)
{
    int64_t busy = s->head + s->tail;

    for (uint32_t k = 0; k < s->n_key; k++) {
        int64_t tails = chain_busy(s->key[k].tails, step - s->head);
        int64_t heads = chain_busy(s->key[k].heads, step - s->tail);
        int64_t more = tails > heads ? tails : heads;
        if (more > step - busy)
            return false;
        busy += more;
    }
    return true;
}

static int64_t least_step(struct turns *s, int64_t known, int64_t most)
{
    int64_t least = known;

    if (s->n_key == 0 || is_possible(s, known))
        return 0;
    while (least + 1 < most) { /* `least` is not possible */
        int64_t middle = least + (most - least) / 2;
        if (is_possible(s, middle))
            most = middle;
        else
            least = middle;
    }
    return least + 1;
}

int64_t free_turns(const struct free_items *x, const struct free_rates *r,
                   const struct free_members *m, int64_t known, int64_t most, uint32_t *group)
{
    int64_t best = 0;

    for (uint32_t i = 0, end; i < m->n; i = end) {
        struct arena_mark mark = arena_mark(x->a);
        struct turns s = {.x = x, .r = r, .head = INT64_MAX, .tail = INT64_MAX};

        for (end = i; end < m->n && m->at[end].group == m->at[i].group; end++)
            ;
        s.key = arena_array(x->a, struct key, end - i);
        for (uint32_t k = i, next; k < end; k = next) {
            for (next = k; next < end && free_same_key(&m->at[next], &m->at[k]); next++)
                ;
            add_key(&s, &m->at[k], next - k);
        }
        int64_t step = least_step(&s, best > known ? best : known, most);
        if (step > best) {
            best = step;
            *group = m->at[i].group;
        }
        arena_release(x->a, mark);
    }
    return best;
}
