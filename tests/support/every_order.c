#include "support/every_order.h"

struct every {
    const struct problem *p;
    uint32_t order[EVERY_MOST], n;
    bool done[EVERY_MOST];
    int64_t clock, channel[8], end[EVERY_MOST];
    int64_t work; /* compute that is left */
    int64_t limit, best;
};

/* Must x come after y? Collectives that may not pass each other keep their order. */
static bool is_after(const struct problem *p, uint32_t x, uint32_t y)
{
    for (uint32_t d = p->dep_at[x]; d < p->dep_at[x + 1]; d++)
        if (!(p->dep_flags[d] & PROBLEM_FAKE) && problem_dep_op(p, d) == y)
            return true;
    if (y >= x || p->kind[x] != PROBLEM_COLLECTIVE || p->kind[y] != PROBLEM_COLLECTIVE)
        return false;
    bool fence = p->coll[x] == 0 || p->coll[y] == 0 || p->group[x] == PROBLEM_NONE ||
                 p->group[y] == PROBLEM_NONE;
    bool both_sync = !(p->flags[x] & PROBLEM_ASYNC) && !(p->flags[y] & PROBLEM_ASYNC);
    return fence || (both_sync && p->group[x] == p->group[y]);
}

/* Bytes while the last op runs. */
static int64_t bytes_now(const struct every *e)
{
    const struct problem *p = e->p;
    int64_t bytes = 0;

    for (uint32_t b = 0; b < p->n_buf; b++) {
        uint32_t by = p->producer[b], last = e->order[e->n - 1];
        bool made = by == PROBLEM_NONE || e->done[by], used = by == last, left = false;
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++) {
            used |= p->succ[k] == last;
            left |= !e->done[p->succ[k]];
        }
        if (made)
            bytes += p->size_alloc[b];
        if (made && !used && !left && !(p->buf_flags[b] & PROBLEM_OUTPUT))
            bytes -= p->size_free[b];
    }
    return bytes;
}

static void run_op(struct every *e, uint32_t x)
{
    const struct problem *p = e->p;

    if (p->kind[x] == PROBLEM_COLLECTIVE) {
        int64_t *c = &e->channel[p->group[x] == PROBLEM_NONE ? 7 : p->group[x]];
        *c = e->end[x] = (*c > e->clock ? *c : e->clock) + p->ps[x];
        if (!(p->flags[x] & PROBLEM_ASYNC))
            e->clock = *c;
    } else if (p->kind[x] == PROBLEM_WAIT) {
        for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
            if (e->end[p->wait[k]] > e->clock)
                e->clock = e->end[p->wait[k]];
    } else {
        e->clock += p->ps[x];
        e->work -= p->ps[x];
    }
}

/* Ops of one node stay together, in their own order. */
static bool is_next_of_node(const struct every *at, uint32_t x)
{
    const struct problem *p = at->p;
    uint32_t last = at->n > 0 ? at->order[at->n - 1] : 0;

    if (x > 0 && problem_anchor(p, x - 1) == problem_anchor(p, x) && !at->done[x - 1])
        return false;
    return at->n == 0 || last + 1 >= p->n_op ||
           problem_anchor(p, last + 1) != problem_anchor(p, last) || x == last + 1;
}

/* Only `best` changes. */
static void go_on(struct every *at)
{
    const struct problem *p = at->p;
    int64_t now = at->clock + at->work;

    for (uint32_t g = 0; g < 8; g++)
        now = at->channel[g] > now ? at->channel[g] : now;
    if (now >= at->best)
        return;
    if (at->n == p->n_op) {
        at->best = now;
        return;
    }
    for (uint32_t x = 0; x < p->n_op; x++) {
        bool ready = !at->done[x] && is_next_of_node(at, x);
        for (uint32_t y = 0; y < p->n_op && ready; y++)
            ready = at->done[y] || !is_after(p, x, y);
        if (!ready)
            continue;
        struct every e = *at;
        e.order[e.n++] = x;
        e.done[x] = true;
        if (bytes_now(&e) > e.limit)
            continue;
        run_op(&e, x);
        go_on(&e);
        at->best = e.best;
    }
}

int64_t every_order(const struct problem *p, int64_t limit, int64_t beat)
{
    struct every e = {.p = p, .limit = limit, .best = beat};

    for (uint32_t x = 0; x < p->n_op; x++)
        e.work += problem_is_coll(p, x) || problem_is_wait(p, x) ? 0 : p->ps[x];
    go_on(&e);
    return e.best;
}
