#include "plan/liveness.h"

struct live_most live_walk(const struct live_walk *w)
{
    struct live_most most = {w->input, PROBLEM_NONE};
    int64_t now = w->input;

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
    struct live l = {
        .alloc = zeroes(a, p->n_op),
        .freed = zeroes(a, p->n_op),
        .post_alloc = arena_array(a, int64_t, p->n_op),
        .post_free = arena_array(a, int64_t, p->n_op),
        .last = arena_array(a, uint32_t, p->n_buf),
        .at = arena_array(a, uint32_t, p->n_op),
    };

    for (uint32_t i = 0; i < p->n_op; i++)
        l.at[order[i]] = i;
    for (uint32_t x = 0; x < p->n_op; x++)
        assert_hot(l.at[x] < p->n_op && order[l.at[x]] == x); /* each op once */
    for (uint32_t b = 0; b < p->n_buf; b++) {
        uint32_t last = p->producer[b];

        if (last == PROBLEM_NONE)
            l.input += p->size_alloc[b];
        else
            l.alloc[last] += p->size_alloc[b];
        for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++)
            if (last == PROBLEM_NONE || l.at[p->succ[i]] > l.at[last])
                last = p->succ[i];
        if (p->buf_flags[b] & PROBLEM_OUTPUT)
            last = PROBLEM_NONE;
        l.last[b] = last;
        if (last != PROBLEM_NONE)
            l.freed[last] += p->size_free[b];
    }
    l.peak = live_walk(&(struct live_walk){.order = order,
                                           .n = p->n_op,
                                           .input = l.input,
                                           .alloc = l.alloc,
                                           .freed = l.freed,
                                           .post_alloc = l.post_alloc,
                                           .post_free = l.post_free})
                 .bytes;
    assert(l.peak >= l.input);
    *out = l;
}

int64_t live_peak(const struct problem *p, const uint32_t *order, struct arena *a)
{
    struct arena_mark mark = arena_mark(a);
    struct live l;

    live_of(p, order, a, &l);
    arena_release(a, mark);
    return l.peak;
}
