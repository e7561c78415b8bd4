#include "plan/liveness.h"

uint32_t live_op_at(const struct live_walk *w, uint32_t time)
{
    if (time == LIFE_START || time == LIFE_END)
        return PROBLEM_NONE;
    assert_hot(time <= w->n);
    return w->order ? w->order[time - 1] : time - 1;
}

void live_enter(struct live_walk *w, struct life l, int64_t size_alloc, int64_t size_free)
{
    if (l.made == LIFE_END)
        return;
    assert_hot(l.made <= l.last);
    if (l.made == LIFE_START)
        w->input += size_alloc;
    else
        w->alloc[live_op_at(w, l.made)] += size_alloc;
    if (l.last == LIFE_START)
        w->unused += size_free;
    else if (l.last != LIFE_END)
        w->freed[live_op_at(w, l.last)] += size_free;
}

struct live_most live_walk(const struct live_walk *w)
{
    struct live_most most = {w->input, PROBLEM_NONE};
    int64_t now = w->input - w->unused;

    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t x = w->order ? w->order[i] : i;

        now += w->alloc[x];
        if (w->post_alloc)
            w->post_alloc[x] = now;
        if (now > most.bytes)
            most = (struct live_most){now, x};
        now -= w->freed[x];
        if (w->post_free)
            w->post_free[x] = now;
    }
    return most;
}

static int64_t *zeroes(struct arena *a, uint32_t n)
{
    return arena_zeroed(a, (size_t)n * sizeof(int64_t));
}

void live_of(const struct problem *p, const uint32_t *order, struct arena *a, struct live *out)
{
    struct live_walk w = {
        .order = order,
        .n = p->n_op,
        .alloc = zeroes(a, p->n_op),
        .freed = zeroes(a, p->n_op),
        .post_alloc = arena_array(a, int64_t, p->n_op),
        .post_free = arena_array(a, int64_t, p->n_op),
    };
    uint32_t *last = arena_array(a, uint32_t, p->n_buf), *at = arena_array(a, uint32_t, p->n_op);

    for (uint32_t i = 0; i < p->n_op; i++)
        at[order[i]] = i;
    for (uint32_t x = 0; x < p->n_op; x++)
        assert_hot(at[x] < p->n_op && order[at[x]] == x); /* each op once */
    for (uint32_t b = 0; b < p->n_buf; b++) {
        uint32_t by = p->producer[b];
        struct life l = life_begin(by != PROBLEM_NONE ? at[by] + 1 : LIFE_START);

        for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++)
            life_use(&l, at[p->succ[i]] + 1);
        if (p->buf_flags[b] & PROBLEM_OUTPUT)
            life_keep(&l);
        live_enter(&w, l, p->size_alloc[b], p->size_free[b]);
        last[b] = live_op_at(&w, l.last);
    }
    int64_t peak = live_walk(&w).bytes;
    assert(peak >= w.input);
    *out = (struct live){.input = w.input,
                         .start = w.input - w.unused,
                         .peak = peak,
                         .alloc = w.alloc,
                         .freed = w.freed,
                         .post_alloc = w.post_alloc,
                         .post_free = w.post_free,
                         .last = last,
                         .at = at};
}

int64_t live_peak(const struct problem *p, const uint32_t *order, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    struct live l;

    live_of(p, order, a, &l);
    arena_release(a, mark);
    return l.peak;
}
