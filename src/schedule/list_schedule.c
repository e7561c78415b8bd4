/* raise_comms, sink_waits, reorder_compute_for_overlap: list scheduling by a score of three
 * numbers, lowest first: the first collective that an op delays; whether it is a wait; its old
 * position.
 *
 * PyTorch takes the best op that is ready. Tuck does the same within a memory budget: an op may
 * come out of turn only if the remaining ops, run after it in their current order, stay within the
 * budget. The first remaining op always does.
 */
#include <math.h>

#include "plan/liveness.h"
#include "schedule/edges.h"
#include "base/heap.h"
#include "schedule/step.h"
#include "schedule/remaining_peak.h"

struct lister {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    struct edges e;
    uint32_t *at;      /* [op] its position in the original order */
    uint32_t *first;   /* [op] the first collective it delays; PROBLEM_NONE if none or not needed */
    bool sink;         /* waits come last */
    uint32_t *missing; /* [op] number of edges it still waits for */
    bool *done;
    struct heap ready, compute; /* compute: ops that are neither collectives nor waits */
    struct rest *rest;          /* NULL if there is no limit */
    uint32_t n_out;
    uint32_t *out;
};

static int compare(const void *ctx, uint32_t x, uint32_t y)
{
    const struct lister *l = ctx;
    bool wx = l->sink && problem_is_wait(l->p, x), wy = l->sink && problem_is_wait(l->p, y);

    if (l->first[x] != l->first[y])
        return l->first[x] < l->first[y] ? -1 : 1;
    if (wx != wy)
        return wx ? 1 : -1;
    return l->at[x] < l->at[y] ? -1 : l->at[x] > l->at[y];
}

/* An order in which every op comes after what it needs. False: there is none. */
static bool topological(const struct lister *l, uint32_t *order)
{
    uint32_t n = l->p->n_op, end = 0;
    uint32_t *missing = arena_array(l->a, uint32_t, n);

    for (uint32_t x = 0; x < n; x++) {
        missing[x] = l->e.need_at[x + 1] - l->e.need_at[x];
        if (missing[x] == 0)
            order[end++] = x;
    }
    for (uint32_t i = 0; i < end; i++)
        for (uint32_t k = l->e.user_at[order[i]]; k < l->e.user_at[order[i] + 1]; k++)
            if (--missing[l->e.user[k]] == 0)
                order[end++] = l->e.user[k];
    return end == n;
}

/* The first collective that an op delays: its own number, or the least of those that need it. */
static void find_first(struct lister *l, bool raise, const uint32_t *order)
{
    uint32_t n = l->p->n_op, k = 0;

    for (uint32_t x = 0; x < n; x++)
        l->first[x] = PROBLEM_NONE;
    if (!raise)
        return;
    for (uint32_t i = 0; i < n; i++)
        if (problem_is_coll(l->p, l->s->order[i]))
            l->first[l->s->order[i]] = k++;
    for (uint32_t i = n; i > 0; i--) {
        uint32_t x = order[i - 1];
        for (uint32_t d = l->e.need_at[x]; d < l->e.need_at[x + 1]; d++)
            if (l->first[x] < l->first[l->e.need[d]])
                l->first[l->e.need[d]] = l->first[x];
    }
}

/* Copies that belong to a collective hide nothing else: they move with it. */
static bool is_tied(const struct lister *l, uint32_t x)
{
    return !l->s->opt.torch && problem_anchor(l->p, x) != x;
}

static void make_ready(struct lister *l, uint32_t x)
{
    heap_push(&l->ready, x);
    if (l->compute.at != NULL && !problem_is_coll(l->p, x) && !problem_is_wait(l->p, x) &&
        !is_tied(l, x))
        heap_push(&l->compute, x);
}

static void emit(struct lister *l, uint32_t x)
{
    assert(!l->done[x] && l->missing[x] == 0 && l->n_out < l->p->n_op);
    l->out[l->n_out++] = x;
    l->done[x] = true;
    for (uint32_t i = l->e.user_at[x]; i < l->e.user_at[x + 1]; i++)
        if (--l->missing[l->e.user[i]] == 0)
            make_ready(l, l->e.user[i]);
}

/* The best op of a heap that is not done yet and fits; PROBLEM_NONE if there is none. If the best
 * does not fit, takes the next op of the original order, which always fits; with `compute`, only if
 * it is compute. */
static uint32_t take(struct lister *l, struct heap *h, bool compute)
{
    uint32_t x = PROBLEM_NONE;

    while (h->n > 0 && x == PROBLEM_NONE) {
        x = heap_top(h);
        if (l->done[x]) {
            heap_pop(h);
            x = PROBLEM_NONE;
        }
    }
    if (x == PROBLEM_NONE || l->rest == NULL) {
        if (x != PROBLEM_NONE)
            heap_pop(h);
        return x;
    }
    if (rest_take(l->rest, x)) {
        heap_pop(h);
        return x;
    }
    x = rest_first(l->rest);
    if (compute && (problem_is_coll(l->p, x) || problem_is_wait(l->p, x) || is_tied(l, x)))
        return PROBLEM_NONE;
    bool fits = rest_take(l->rest, x);
    assert_hot(fits); /* the remaining ops in their own order are within the budget */
    (void)fits;
    return x;
}

static void list(struct schedule *s, bool raise, bool sink, bool overlap)
{
    const struct problem *p = s->p;
    uint32_t n = p->n_op;
    struct lister l = {.s = s, .p = p, .a = &s->arena, .sink = sink};
    double budget = s->opt.list_peak_memory_budget;

    edges_build(s, EDGE_REAL | edges_fake(s), l.a, &l.e);
    l.at = arena_array(l.a, uint32_t, n);
    l.first = arena_array(l.a, uint32_t, n);
    l.missing = arena_array(l.a, uint32_t, n);
    l.done = arena_zeroed(l.a, n);
    l.out = arena_array(l.a, uint32_t, n);
    for (uint32_t i = 0; i < n; i++)
        l.at[s->order[i]] = i;
    if (!topological(&l, l.out)) {
        step_note(s, "the dependences that keep collectives in order contradict other dependences");
        return;
    }
    find_first(&l, raise, l.out);
    if (!isnan(budget))
        l.rest = rest_begin(p, s->order, budget, l.a);
    heap_begin(&l.ready, l.a, n, compare, &l);
    if (overlap)
        heap_begin(&l.compute, l.a, n, compare, &l);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t x = s->order[i];
        l.missing[x] = l.e.need_at[x + 1] - l.e.need_at[x];
        if (l.missing[x] == 0)
            make_ready(&l, x);
    }
    for (uint32_t x; (x = take(&l, &l.ready, false)) != PROBLEM_NONE;) {
        emit(&l, x);
        if (!overlap || !problem_is_coll(p, x))
            continue;
        for (double left = s->runtime[x]; left > 0;) {
            uint32_t y = take(&l, &l.compute, true);
            if (y == PROBLEM_NONE)
                break;
            emit(&l, y);
            left -= s->runtime[y];
        }
    }
    memcpy(s->order, l.out, n * sizeof(*s->order));
}

void schedule_raise_comms(struct schedule *s)
{
    list(s, true, false, false);
}

void schedule_sink_waits(struct schedule *s)
{
    list(s, false, true, false);
}

void schedule_reorder_compute(struct schedule *s)
{
    list(s, true, true, true);
}
