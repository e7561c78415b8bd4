/* improve_order: local search, starting at the order that is given. */
#include "base/units.h"
#include "schedule/edges.h"
#include "schedule/step.h"
#include "search/exact.h"

/* Are ops of one node next to each other, in their own order? A file need not have them so. */
static bool is_joined(const struct schedule *s)
{
    const struct problem *p = s->p;

    for (uint32_t i = 1; p->anchor != NULL && i < p->n_op; i++) {
        uint32_t x = s->order[i];
        if (x > 0 && p->anchor[x] == p->anchor[x - 1] && s->order[i - 1] != x - 1)
            return false;
    }
    return true;
}

/* Some tenths of a second at most: what is taken takes time in the number of ops. */
int64_t schedule_evaluations(uint32_t n_op)
{
    int64_t n = n_op, most = 10000, least = n <= 64 ? 20000 : 80000;
    int64_t some = n <= most ? 100 * n : 100 * most * most / n;

    return n <= most && some < least ? least : some;
}

static int64_t evaluations(const struct schedule *s)
{
    int64_t n = s->p->n_op;

    if (s->opt.evaluations != SCHEDULE_NO_LIMIT)
        return s->opt.evaluations;
    if (n <= s->opt.exact && n <= EXACT_MOST_OPS)
        return 100 * n; /* the exact search comes after it */
    return schedule_evaluations(s->p->n_op);
}

enum { WINDOW_LABELS = 200000 }; /* some hundredths of a second */

static uint32_t at_most_64(int64_t n) /* PASS_NO_INT is negative */
{
    return n < 0 ? 0 : n < 64 ? (uint32_t)n : 64;
}

/* Few ops need no more than one: they are searched again and again. */
static uint32_t islands(const struct schedule *s)
{
    return s->p->n_op <= 64 ? 1 : at_most_64(s->opt.islands);
}

void schedule_improve(struct schedule *s)
{
    const struct problem *p = s->p;
    struct arena *a = &s->arena;
    struct arena_mark mark = arena_mark(a);
    int64_t *ps = arena_array(a, int64_t, p->n_op);
    struct edges e;
    struct improve_result r;

    if (!is_joined(s)) {
        step_note(s, "kept: ops of one node are apart");
        return;
    }
    edges_build(s, EDGE_REAL | EDGE_ADDED | (schedule_is_free(s) ? EDGE_FENCES : EDGE_CHAIN), a,
                &e);
    for (uint32_t x = 0; x < p->n_op; x++)
        ps[x] = ps_round(s->runtime[x] * p->unit_ps);
    struct improve_options o = {
        .ps = ps,
        .limit = step_report(s)->peak_before + step_report(s)->allowance,
        .evaluations = evaluations(s),
        .seed = (uint64_t)s->opt.seed,
        .islands = islands(s),
        .threads = at_most_64(s->opt.threads),
        .windows = s->opt.exact > 0 && p->n_op > EXACT_MOST_OPS ? WINDOW_LABELS : 0,
    };
    struct improve_edges edges = {e.need_at, e.need, e.user_at, e.user};
    enum exact_outcome found = EXACT_OPEN;
    improve(p, &edges, &o, s->order, a, &r);
    bool best = r.step == r.least;
    if (!best && p->n_op <= s->opt.exact)
        found = exact_order(p, &edges, &o, s->order, &r.step, a);
    arena_release(a, mark);
    if (r.step == INT64_MAX)
        step_note(s, found == EXACT_OPEN ? "kept: no order with so little memory was found"
                                         : "kept: no order needs so little memory");
    else if (best || found != EXACT_OPEN)
        step_note(s, "optimal by the times of the ops: no order that is allowed is faster");
}
