#include "schedule/edges.h"

struct sink {
    uint32_t *at, *list; /* list NULL: counting */
    bool by_user;
};

static void add(struct sink *k, uint32_t op, uint32_t needs)
{
    uint32_t x = k->by_user ? needs : op, y = k->by_user ? op : needs;

    if (k->list == NULL)
        k->at[x + 1]++;
    else
        k->list[k->at[x]++] = y;
}

static void each_edge(const struct schedule *s, unsigned which, uint32_t *previous, struct sink *k)
{
    const struct problem *p = s->p;

    for (uint32_t x = 0; x < p->n_op; x++)
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            unsigned kind = p->dep_flags[d] & PROBLEM_FAKE ? EDGE_FILE_FAKE : EDGE_REAL;
            uint32_t y = problem_dep_op(p, d);
            if ((which & kind) && y != PROBLEM_NONE)
                add(k, x, y);
        }
    if (which & EDGE_ADDED)
        for (uint32_t i = 0; i < s->dep.len; i++)
            add(k, s->dep.at[i].op, p->producer[s->dep.at[i].buf]);
    if (!(which & EDGE_CHAIN))
        return;
    for (uint32_t g = 0; g <= p->n_group; g++)
        previous[g] = PROBLEM_NONE;
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (!problem_is_coll(p, x))
            continue;
        uint32_t g = p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x];
        if (previous[g] != PROBLEM_NONE)
            add(k, x, previous[g]);
        previous[g] = x;
    }
}

static void build(const struct schedule *s, unsigned which, bool by_user, struct arena *a,
                  uint32_t **at_out, uint32_t **list_out)
{
    uint32_t n = s->p->n_op;
    uint32_t *at = arena_zeroed(a, ((size_t)n + 2) * sizeof(*at));
    uint32_t *previous = arena_array(a, uint32_t, (size_t)s->p->n_group + 1);
    struct sink k = {.at = at + 1, .by_user = by_user};

    /* Counted one place further on, so that filling leaves every entry where it belongs. */
    each_edge(s, which, previous, &k);
    for (uint32_t i = 0; i < n; i++)
        at[i + 2] += at[i + 1];
    k.list = arena_array(a, uint32_t, at[n + 1]);
    each_edge(s, which, previous, &k);
    *at_out = at;
    *list_out = k.list;
}

void edges_build(const struct schedule *s, unsigned which, struct arena *a, struct edges *out)
{
    build(s, which, false, a, &out->need_at, &out->need);
    build(s, which, true, a, &out->user_at, &out->user);
}
