#include "schedule/edges.h"

struct sink {
    uint32_t *at, *list; /* list is NULL while counting */
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

/* Links each collective that must keep its order to the one before it: of its group, or the last
 * fence. A fence comes after everything since the previous fence. */
static void each_link(const struct schedule *s, uint32_t *previous, uint32_t *open, struct sink *k)
{
    const struct problem *p = s->p;
    uint32_t n_open = 0, fence = PROBLEM_NONE; /* groups with a collective since the last fence */

    for (uint32_t g = 0; g < p->n_group; g++)
        previous[g] = PROBLEM_NONE;
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (!problem_is_coll(p, x))
            continue;
        if (s->opt.keep_order || (p->flags[x] & PROBLEM_FENCE)) {
            if (n_open == 0 && fence != PROBLEM_NONE)
                add(k, x, fence);
            for (; n_open > 0; n_open--) {
                add(k, x, previous[open[n_open - 1]]);
                previous[open[n_open - 1]] = PROBLEM_NONE;
            }
            fence = x;
            continue;
        }
        uint32_t *last = &previous[p->group[x]];
        if (*last != PROBLEM_NONE) {
            add(k, x, *last);
        } else {
            if (fence != PROBLEM_NONE)
                add(k, x, fence);
            open[n_open++] = p->group[x];
        }
        *last = x;
    }
}

/* The same where collectives are free: only fences keep their place among all of them, and
 * synchronous ones their order in the group. */
static void each_fence(const struct schedule *s, uint32_t *previous, struct sink *k)
{
    const struct problem *p = s->p;
    uint32_t fence = PROBLEM_NONE, since = 0;

    for (uint32_t g = 0; g < p->n_group; g++)
        previous[g] = PROBLEM_NONE;
    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (!problem_is_coll(p, x))
            continue;
        if (fence != PROBLEM_NONE)
            add(k, x, fence);
        if (schedule_freedom(s, x) == FREE_NOT) {
            for (; since < i; since++)
                if (problem_is_coll(p, s->order[since]) && s->order[since] != fence)
                    add(k, x, s->order[since]);
            fence = x;
        } else if (schedule_freedom(s, x) == FREE_IN_GROUP) {
            if (previous[p->group[x]] != PROBLEM_NONE)
                add(k, x, previous[p->group[x]]);
            previous[p->group[x]] = x;
        }
    }
}

static void each_edge(const struct schedule *s, unsigned which, uint32_t *groups, struct sink *k)
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
    if (which & EDGE_CHAIN)
        each_link(s, groups, groups + p->n_group, k);
    if (which & EDGE_FENCES)
        each_fence(s, groups, k);
}

static void build(const struct schedule *s, unsigned which, bool by_user, struct arena *a,
                  uint32_t **at_out, uint32_t **list_out)
{
    uint32_t n = s->p->n_op;
    uint32_t *at = arena_zeroed(a, ((size_t)n + 2) * sizeof(*at));
    uint32_t *groups = arena_array(a, uint32_t, 2 * (size_t)s->p->n_group);
    struct sink k = {.at = at + 1, .by_user = by_user};

    /* Counts are stored one entry further on, so that filling leaves every entry at its start. */
    each_edge(s, which, groups, &k);
    for (uint32_t i = 0; i < n; i++)
        at[i + 2] += at[i + 1];
    k.list = arena_array(a, uint32_t, at[n + 1]);
    each_edge(s, which, groups, &k);
    *at_out = at;
    *list_out = k.list;
}

void edges_build(const struct schedule *s, unsigned which, struct arena *a, struct edges *out)
{
    build(s, which, false, a, &out->need_at, &out->need);
    build(s, which, true, a, &out->user_at, &out->user);
}
