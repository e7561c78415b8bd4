/* issue_late: gathers begin when they must, not when they could. The step takes as long as before:
 * every transfer still ends before its wait, by a fifth of its own time, and the communication of
 * all groups keeps its order. What a gather makes is then in memory for a shorter time. */
#include "schedule/edges.h"
#include "schedule/step.h"

struct late {
    const struct problem *p;
    struct edges e;
    struct sim_span *span; /* [op] */
    uint32_t *pos;         /* [op] */
    int64_t *clock;        /* [position] when the stream gets there */
    uint32_t *to;          /* [op] it goes before the op at this position */
    uint32_t *hold;        /* [op] behind this position it would hold a buffer for longer */
    int64_t *must; /* [channel] when what follows on it begins; the last one is for no group */
};

enum { MARGIN = 5 }; /* a gather ends this part of its own time before it is waited for */

static bool may_move(const struct late *t, uint32_t x)
{
    return problem_is_async(t->p, x) && t->p->coll[x] == TUCK_ALL_GATHER &&
           t->p->group[x] != PROBLEM_NONE && problem_is_alone(t->p, x);
}

/* The first position that must stay behind x. */
static uint32_t first_user(const struct late *t, uint32_t x)
{
    uint32_t first = t->p->n_op;

    for (uint32_t k = t->e.user_at[x]; k < t->e.user_at[x + 1]; k++) {
        uint32_t at = t->pos[t->e.user[k]];
        first = at < first ? at : first;
    }
    return first;
}

/* Behind its last use a buffer is free; the ops that keep it alive must not move behind that. */
static void find_holds(struct late *t)
{
    const struct problem *p = t->p;

    for (uint32_t x = 0; x < p->n_op; x++)
        t->hold[x] = p->n_op;
    for (uint32_t b = 0; b < p->n_buf; b++) {
        uint32_t last = 0;
        if (p->size_free[b] == 0 || (p->buf_flags[b] & PROBLEM_OUTPUT))
            continue;
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            last = t->pos[p->succ[k]] > last ? t->pos[p->succ[k]] : last;
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            if (last < t->hold[p->succ[k]])
                t->hold[p->succ[k]] = last;
    }
}

/* When the stream gets to the first wait for x, or to what else reads its result. */
static int64_t due(const struct late *t, uint32_t x, uint32_t user)
{
    return user < t->p->n_op ? t->clock[user] : t->span[x].end;
}

/* Decides on the op at a position; `next` is the place of the communication behind it. */
static void look_at(struct late *t, uint32_t x, uint32_t *next)
{
    const struct problem *p = t->p;
    int64_t *must = &t->must[p->group[x] == PROBLEM_NONE ? p->n_group : p->group[x]];
    int64_t took = t->span[x].end - t->span[x].start, start = t->span[x].start;

    if (may_move(t, x)) {
        uint32_t user = first_user(t, x), at = t->pos[x] + 1;
        int64_t end = due(t, x, user) - took / MARGIN;
        uint32_t last = user < *next ? user : *next;
        last = last < t->hold[x] ? last : t->hold[x];
        end = end < *must ? end : *must;
        while (at < last && t->clock[at] <= end - took)
            at++;
        if (t->clock[at] > end - took)
            at--;
        if (at > t->pos[x] + 1) {
            t->to[x] = at;
            start = end - took;
        }
    }
    *must = start;
    *next = t->to[x] != PROBLEM_NONE ? t->to[x] : t->pos[x];
}

static void write_order(const struct late *t, struct arena *a, uint32_t *order)
{
    uint32_t n = t->p->n_op, k = 0;
    uint32_t *first = arena_array(a, uint32_t, n), *then = arena_array(a, uint32_t, n);
    uint32_t *old = arena_array(a, uint32_t, n);

    memcpy(old, order, n * sizeof(*old));
    for (uint32_t i = 0; i < n; i++)
        first[i] = PROBLEM_NONE;
    for (uint32_t i = n; i-- > 0;) { /* from behind, so that they come in their old order */
        uint32_t x = old[i], at = t->to[x];
        if (at != PROBLEM_NONE) {
            then[x] = first[at];
            first[at] = x;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        for (uint32_t x = first[i]; x != PROBLEM_NONE; x = then[x])
            order[k++] = x;
        if (t->to[old[i]] == PROBLEM_NONE)
            order[k++] = old[i];
    }
}

void schedule_issue_late(struct schedule *s)
{
    const struct problem *p = s->p;
    struct arena *a = &s->arena;
    struct arena_mark mark = arena_mark(a);
    struct late t = {.p = p};
    uint32_t n = p->n_op, next = n;

    t.span = arena_array(a, struct sim_span, n);
    t.pos = arena_array(a, uint32_t, n);
    t.clock = arena_array(a, int64_t, (size_t)n + 1);
    t.to = arena_array(a, uint32_t, n);
    t.must = arena_array(a, int64_t, (size_t)p->n_group + 1);
    t.hold = arena_array(a, uint32_t, n);
    edges_build(s, EDGE_REAL | EDGE_ADDED, a, &t.e);
    schedule_spans(p, s->runtime, s->order, t.span, a);
    for (uint32_t g = 0; g <= p->n_group; g++)
        t.must[g] = INT64_MAX;
    for (uint32_t i = 0; i < n; i++) {
        t.pos[s->order[i]] = i;
        t.to[i] = PROBLEM_NONE;
        t.clock[i] = t.span[s->order[i]].issued;
    }
    t.clock[n] = INT64_MAX;
    find_holds(&t);
    for (uint32_t i = n; i-- > 0;)
        if (problem_is_coll(p, s->order[i]))
            look_at(&t, s->order[i], &next);
    write_order(&t, a, s->order);
    arena_release(a, mark);
}
