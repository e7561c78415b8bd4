#include "schedule/list_follow.h"

#include "base/heap.h"

/* The order that is wanted, under the limit: of the ops that are ready the one that comes first in
 * it, out of a few that fit; if none does, the next one of the order that is known to fit. */
struct follower {
    const struct edges *e;
    struct rest *rest;
    uint32_t *place; /* [op] where it is wanted */
    uint32_t *missing;
    bool *done;
    struct heap ready;
    uint32_t n_out, *out;
};

static int by_place(const void *ctx, uint32_t x, uint32_t y)
{
    const struct follower *w = ctx;

    return w->place[x] < w->place[y] ? -1 : w->place[x] > w->place[y];
}

static void follow_one(struct follower *w, uint32_t x)
{
    w->out[w->n_out++] = x;
    w->done[x] = true;
    for (uint32_t i = w->e->user_at[x]; i < w->e->user_at[x + 1]; i++)
        if (--w->missing[w->e->user[i]] == 0)
            heap_push(&w->ready, w->e->user[i]);
}

/* The first of the ready ops that fits; PROBLEM_NONE if none of a few does. */
static uint32_t first_that_fits(struct follower *w)
{
    enum { TRIES = 8 };
    uint32_t passed[TRIES], n = 0, found = PROBLEM_NONE;

    while (w->ready.n > 0 && n < TRIES && found == PROBLEM_NONE) {
        uint32_t x = heap_pop(&w->ready);
        if (w->done[x])
            continue;
        if (rest_take(w->rest, x))
            found = x;
        else
            passed[n++] = x;
    }
    while (n > 0)
        heap_push(&w->ready, passed[--n]);
    return found;
}

void list_follow(const struct op_facts *f, struct rest *rest, const uint32_t *wanted, uint32_t *out)
{
    struct follower w = {.e = &f->e, .rest = rest, .out = out};

    w.place = arena_array(f->a, uint32_t, f->n);
    w.missing = arena_array(f->a, uint32_t, f->n);
    w.done = arena_zeroed(f->a, f->n);
    heap_begin(&w.ready, f->a, f->n, by_place, &w);
    rest_restart(rest);
    for (uint32_t i = 0; i < f->n; i++)
        w.place[wanted[i]] = i;
    for (uint32_t x = 0; x < f->n; x++) {
        w.missing[x] = f->e.need_at[x + 1] - f->e.need_at[x];
        if (w.missing[x] == 0)
            heap_push(&w.ready, x);
    }
    while (w.n_out < f->n) {
        uint32_t x = first_that_fits(&w);
        if (x == PROBLEM_NONE) {
            x = rest_first(rest);
            bool fits = rest_take(rest, x);
            assert(fits);
            (void)fits;
        }
        follow_one(&w, x);
    }
}
