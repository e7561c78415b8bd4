/* gather_loops: moves loops next to the loops that they exchange values with, so that join_loops
 * can make one kernel of them: what they pass to each other is then neither written nor read again.
 *
 * All other ops keep their order. A loop moves up to the loop whose result it reads ("early"), or
 * down to the first op that needs it ("late"), as far as memory allows. Which of the two saves more
 * is known only afterwards: both are tried, alone and together, and the order in which loops that
 * touch pass the most bytes to each other is kept.
 */
#include "plan/liveness.h"
#include "schedule/edges.h"
#include "schedule/remaining_peak.h"
#include "schedule/step.h"

struct gather {
    struct schedule *s;
    const struct problem *p;
    struct edges e;
    bool early, late;
    struct rest *rest;
    uint32_t *missing; /* [op] edges it still waits for */
    bool *done;
    uint32_t *seen;  /* [op] the need that was found missing last */
    uint32_t *stack; /* what is to be emitted first */
    uint32_t *queue; /* loops just emitted, whose users may follow */
    uint32_t n_out, *out;
};

static bool is_loop(const struct problem *p, uint32_t x)
{
    return p->kind[x] == PROBLEM_COMPUTE && !(p->flags[x] & PROBLEM_LIKE_GEMM) && p->ps[x] > 0;
}

/* Does a collective read what x makes? Then a loop ends at x, and nothing can join it. */
static bool is_sent(const struct problem *p, uint32_t x)
{
    for (uint32_t b = p->out_at[x]; b < p->out_at[x + 1]; b++)
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            if (problem_is_coll(p, p->succ[k]))
                return true;
    return false;
}

static bool emit(struct gather *w, uint32_t x)
{
    assert(!w->done[x] && w->missing[x] == 0);
    if (!rest_take(w->rest, x))
        return false;
    w->out[w->n_out++] = x;
    w->done[x] = true;
    for (uint32_t i = w->e.user_at[x]; i < w->e.user_at[x + 1]; i++)
        w->missing[w->e.user[i]]--;
    return true;
}

/* Emits x, if it fits, and with it the loops that read from it and are ready. */
static bool emit_with_users(struct gather *w, uint32_t x)
{
    uint32_t n = 0;

    if (!emit(w, x))
        return false;
    w->queue[n++] = x;
    while (w->early && n > 0) {
        uint32_t y = w->queue[--n];
        if (!is_loop(w->p, y) || is_sent(w->p, y))
            continue;
        for (uint32_t i = w->e.user_at[y]; i < w->e.user_at[y + 1]; i++) {
            uint32_t z = w->e.user[i];
            if (!w->done[z] && w->missing[z] == 0 && is_loop(w->p, z) && emit(w, z))
                w->queue[n++] = z;
        }
    }
    return true;
}

/* The next op that x needs and that is not done; PROBLEM_NONE if there is none. */
static uint32_t lacks(struct gather *w, uint32_t x)
{
    while (w->seen[x] < w->e.need_at[x + 1] && w->done[w->e.need[w->seen[x]]])
        w->seen[x]++;
    return w->seen[x] < w->e.need_at[x + 1] ? w->e.need[w->seen[x]] : PROBLEM_NONE;
}

/* Emits x and first what it needs. False if memory does not allow it; what was emitted until then
 * stays. */
static bool emit_with_needs(struct gather *w, uint32_t x)
{
    uint32_t n = 0;

    w->stack[n++] = x;
    while (n > 0) {
        uint32_t top = w->stack[n - 1], y = w->done[top] ? PROBLEM_NONE : lacks(w, top);
        if (y != PROBLEM_NONE)
            w->stack[n++] = y;
        else if (w->done[top] || emit_with_users(w, top))
            n--;
        else
            return false;
    }
    return true;
}

static void begin(struct gather *w, struct arena *a)
{
    uint32_t n = w->p->n_op;

    w->n_out = 0;
    w->missing = arena_array(a, uint32_t, n);
    w->done = arena_zeroed(a, n);
    w->seen = arena_array(a, uint32_t, n);
    w->stack = arena_array(a, uint32_t, (size_t)n + 1);
    w->queue = arena_array(a, uint32_t, (size_t)n + 1);
    w->out = arena_array(a, uint32_t, n);
    w->rest = rest_begin(w->p, w->s->order, 0, a);
    memcpy(w->seen, w->e.need_at, n * sizeof(*w->seen));
    for (uint32_t x = 0; x < n; x++)
        w->missing[x] = w->e.need_at[x + 1] - w->e.need_at[x];
}

static void run(struct gather *w)
{
    for (uint32_t i = 0; i < w->p->n_op; i++) {
        uint32_t x = w->s->order[i];
        bool waits = w->late && is_loop(w->p, x) && w->e.user_at[x] < w->e.user_at[x + 1];
        if (waits)
            continue;
        while (!w->done[x] && !emit_with_needs(w, x)) {
            bool fits = emit(w, rest_first(w->rest));
            assert(fits);
            (void)fits;
        }
    }
    while (w->n_out < w->p->n_op) {
        bool fits = emit(w, rest_first(w->rest));
        assert(fits);
        (void)fits;
    }
}

/* Bytes that loops which touch in an order pass to each other. */
static int64_t passed(const struct problem *p, const uint32_t *order, struct arena *a)
{
    uint32_t *run = arena_zeroed(a, p->n_op * sizeof(*run)), now = 1;
    int64_t sum = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        uint32_t x = order[i];
        if (!is_loop(p, x)) {
            now++;
            continue;
        }
        run[x] = now;
        for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++) {
            uint32_t from = problem_dep_op(p, d);
            if (!p->dep_flags[d] && from != PROBLEM_NONE && run[from] == now)
                sum += p->size_alloc[p->dep[d]];
        }
        now += is_sent(p, x);
    }
    return sum;
}

void schedule_gather_loops(struct schedule *s)
{
    uint32_t n = s->p->n_op, *best = arena_array(&s->arena, uint32_t, n);
    struct gather w = {.s = s, .p = s->p};
    int64_t most = passed(s->p, s->order, &s->arena);

    step_report(s)->saves_compute = true;
    edges_build(s, EDGE_REAL | EDGE_ADDED | EDGE_CHAIN, &s->arena, &w.e);
    memcpy(best, s->order, n * sizeof(*best));
    for (unsigned how = 1; how < 4; how++) {
        struct arena_mark mark = arena_mark(&s->arena);

        w.early = how & 1;
        w.late = how & 2;
        begin(&w, &s->arena);
        run(&w);
        int64_t bytes = passed(s->p, w.out, &s->arena);
        if (bytes > most) {
            most = bytes;
            memcpy(best, w.out, n * sizeof(*best));
        }
        arena_release(&s->arena, mark);
    }
    memcpy(s->order, best, n * sizeof(*best));
}
