#include "study/issue_place.h"

#include "schedule/edges.h"
#include "search/priced.h"

enum { MOST_PLACES = 4000 }; /* in each direction */

struct look {
    const struct evaluation *e;
    struct schedule s;
    struct priced now;
    struct edges edges;
    uint32_t op, *window;
    struct places *out;
};

static void weigh(struct look *x, uint32_t from, uint32_t to, struct place *p)
{
    struct places *o = x->out;

    p->step_ps = priced_step(&x->now, from, to, x->window);
    p->peak = priced_peak(&x->now, from, to, x->window);
    if (p->step_ps == o->here.step_ps && p->peak <= o->here.peak) {
        o->same++;
    } else if (!o->others || p->step_ps < o->next.step_ps ||
               (p->step_ps == o->next.step_ps && p->peak < o->next.peak)) {
        o->others = true;
        o->next = *p;
    }
}

/* Places before its own, down to right after what it needs. */
static void look_ahead(struct look *x)
{
    uint32_t at = x->op, first = 0;

    for (uint32_t k = x->edges.need_at[at]; k < x->edges.need_at[at + 1]; k++)
        if (x->edges.need[k] + 1 > first)
            first = x->edges.need[k] + 1;
    if (at - first > MOST_PLACES)
        first = at - MOST_PLACES;
    uint32_t *all = x->window, n = at - first;
    for (uint32_t k = 1; k <= n; k++) { /* it, then the ops at at - k … at - 1 */
        all[n - k] = at;
        all[n - k + 1] = at - k;
        struct place p = {.before = at - k};
        x->window = all + n - k;
        weigh(x, at - k, at + 1, &p);
        x->out->early = p;
    }
    x->window = all;
}

static void look_behind(struct look *x)
{
    uint32_t at = x->op, last = x->now.n - 1;

    for (uint32_t k = x->edges.user_at[at]; k < x->edges.user_at[at + 1]; k++)
        if (x->edges.user[k] - 1 < last)
            last = x->edges.user[k] - 1;
    if (last - at > MOST_PLACES)
        last = at + MOST_PLACES;
    for (uint32_t k = at + 1; k <= last; k++) {
        /* the ops at at + 1 … k, then it */
        x->window[k - at - 1] = k;
        x->window[k - at] = at;
        struct place p = {.before = k + 1};
        weigh(x, at, k + 1, &p);
        x->out->late = p;
    }
}

static void do_look(void *arg)
{
    struct look *x = arg;
    const struct problem *p = x->e->problem;
    struct arena *a = &x->s.arena;
    unsigned order = schedule_is_free(&x->s) ? EDGE_FENCES : EDGE_CHAIN;

    edges_build(&x->s, EDGE_REAL | EDGE_ADDED | order, a, &x->edges);
    priced_begin(&x->now, p, NULL, 0, a);
    priced_set(&x->now, x->s.order);
    x->window = arena_array(a, uint32_t, p->n_op);
    struct place here = {x->op + 1, x->now.step, x->now.peak};
    *x->out = (struct places){.known = true, .same = 1, .here = here, .early = here, .late = here};
    x->out->known = x->now.step == x->e->time.makespan; /* not with contention */
    look_ahead(x);
    look_behind(x);
}

tuck_status places_of(const struct evaluation *e, uint32_t op, bool keep_order, struct places *out)
{
    struct look x = {.e = e, .op = op, .out = out};
    struct schedule_options o;

    *out = (struct places){.known = false};
    if (!problem_is_async(e->problem, op) || !problem_is_alone(e->problem, op))
        return TUCK_OK;
    schedule_defaults(&o, false);
    o.keep_order = keep_order;
    if (!schedule_begin(&x.s, e->problem, &o))
        return TUCK_ENOMEM;
    bool fine = mem_guard(&x.s.mem, do_look, &x);
    schedule_end(&x.s);
    return fine ? TUCK_OK : TUCK_ENOMEM;
}
