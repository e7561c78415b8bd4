/* list_overlap: list scheduling by time.
 *
 * The scheduler keeps a clock: the end of the compute so far, and for each channel the end of its
 * last transfer. At each step
 *
 *   1. waits whose transfer has ended are scheduled at once: they cost nothing and free operands;
 *   2. a channel that is about to run out of work gets the collective whose result is needed first;
 *      a gather of a parameter takes the casts and copies before it along, once it is due;
 *   3. compute is scheduled: of the ops that are ready within a window after the first remaining
 *      one, the op with the longest path to the end of the step. If all of these are blocked by
 *      waits, the first ready op after the window; if nothing is ready, the clock moves to the end
 *      of the next transfer.
 *
 * An op may come out of turn only if the remaining ops, in their old order, still fit in memory.
 *
 * From the back the same is done to the mirrored step: what ends it is placed first, compute and
 * transfers are put before it as late as they can be, and those with the longest path from the
 * beginning come first. That order knows nothing of memory, so it is then followed under the limit.
 *
 * Several settings are tried in both directions, and the fastest order is kept. Collectives may
 * pass each other, but not fences: that is right if all ranks run the same graph.
 */

#include <math.h>

#include "base/heap.h"
#include "schedule/list_follow.h"
#include "schedule/step.h"

/* ---- one setting ---- */

struct setting {
    uint32_t window; /* positions behind the first op that is left */
    int64_t ahead;   /* picoseconds: a channel that has less to do is about to run dry */
};

struct timed {
    const struct op_facts *f;
    struct setting how;
    struct rest *rest; /* NULL: memory does not matter */
    uint32_t *missing; /* [op] edges it still waits for */
    bool *done;
    int64_t clock, *channel;
    int64_t *end;          /* [op] of collectives that were started, and of waits that are ready */
    int64_t worked;        /* compute so far that no feeder did */
    struct heap *ready;    /* [channel] collectives, those needed first come first … */
    struct heap *gathers;  /* … and gathers of parameters, ready or not */
    struct heap near, far; /* compute in the window, by tail; beyond it, by position */
    struct heap ended;     /* waits, by the end of their transfers */
    uint32_t first;        /* position of the first op that is left */
    uint32_t n_out, *out;
    uint32_t *stack; /* feeders to be brought along */
    uint32_t *seen;  /* [op] the need that was found missing last */
};

static int by_tail(const void *ctx, uint32_t x, uint32_t y)
{
    const struct timed *t = ctx;
    const struct op_facts *f = t->f;

    if (f->tail[x] != f->tail[y])
        return f->tail[x] > f->tail[y] ? -1 : 1;
    return f->at[x] < f->at[y] ? -1 : f->at[x] > f->at[y];
}

static int by_position(const void *ctx, uint32_t x, uint32_t y)
{
    const struct timed *t = ctx;

    return t->f->at[x] < t->f->at[y] ? -1 : t->f->at[x] > t->f->at[y];
}

/* When the last transfer of a wait ends. */
static int64_t ends_at(const struct timed *t, uint32_t wait)
{
    const struct op_facts *f = t->f;
    int64_t end = 0;

    for (uint32_t i = f->start_at[wait]; i < f->start_at[wait + 1]; i++)
        if (t->end[f->start[i]] > end)
            end = t->end[f->start[i]];
    return end;
}

static int by_end(const void *ctx, uint32_t x, uint32_t y)
{
    const struct timed *t = ctx;

    if (t->end[x] != t->end[y])
        return t->end[x] < t->end[y] ? -1 : 1;
    return by_position(ctx, x, y);
}

static void make_ready(struct timed *t, uint32_t x)
{
    const struct op_facts *f = t->f;

    if (f->gather[x])
        return; /* it is in the heap of its channel since the beginning */
    if (f->role[x] == ROLE_START || f->role[x] == ROLE_SYNC) {
        heap_push(&t->ready[f->channel[x]], x);
    } else if (f->role[x] == ROLE_END) {
        t->end[x] = ends_at(t, x);
        heap_push(&t->ended, x);
    } else if (!f->feeder[x]) {
        bool in_window = f->at[x] <= t->first + t->how.window;
        heap_push(in_window ? &t->near : &t->far, x);
    }
}

static void run_clock(struct timed *t, uint32_t x)
{
    const struct op_facts *f = t->f;

    if (f->role[x] == ROLE_END) {
        if (t->end[x] > t->clock)
            t->clock = t->end[x];
    } else if (f->role[x] != ROLE_COMPUTE) {
        int64_t *c = &t->channel[f->channel[x]];
        *c = t->end[x] = (*c > t->clock ? *c : t->clock) + f->ps[x];
        if (f->role[x] == ROLE_SYNC)
            t->clock = *c;
    } else {
        t->clock += f->ps[x];
        t->worked += f->feeder[x] ? 0 : f->ps[x];
    }
}

/* Ops nearer to the front than before may now be in the window. */
static void advance(struct timed *t)
{
    const struct op_facts *f = t->f;

    while (t->first < f->n && t->done[f->order[t->first]])
        t->first++;
    while (t->far.n > 0) {
        uint32_t x = heap_top(&t->far);
        if (!t->done[x] && f->at[x] > t->first + t->how.window)
            break;
        heap_pop(&t->far);
        if (!t->done[x])
            heap_push(&t->near, x);
    }
}

static void emit(struct timed *t, uint32_t x)
{
    const struct op_facts *f = t->f;

    assert(!t->done[x] && t->missing[x] == 0);
    t->out[t->n_out++] = x;
    t->done[x] = true;
    run_clock(t, x);
    for (uint32_t i = f->e.user_at[x]; i < f->e.user_at[x + 1]; i++)
        if (--t->missing[f->e.user[i]] == 0)
            make_ready(t, f->e.user[i]);
    advance(t);
}

static bool take(struct timed *t, uint32_t x)
{
    if (t->rest != NULL && !rest_take(t->rest, x))
        return false;
    emit(t, x);
    return true;
}

/* The next one of a heap that is not done; PROBLEM_NONE: none. */
static uint32_t peek(struct timed *t, struct heap *h)
{
    while (h->n > 0 && t->done[heap_top(h)])
        heap_pop(h);
    return h->n > 0 ? heap_top(h) : PROBLEM_NONE;
}

static bool take_ended_wait(struct timed *t)
{
    uint32_t x = peek(t, &t->ended);

    return x != PROBLEM_NONE && t->end[x] <= t->clock && take(t, x);
}

/* The next op that x needs and that is not done; PROBLEM_NONE if there is none. */
static uint32_t lacks(struct timed *t, uint32_t x)
{
    const struct edges *e = &t->f->e;

    while (t->seen[x] < e->need_at[x + 1] && t->done[e->need[t->seen[x]]])
        t->seen[x]++;
    return t->seen[x] < e->need_at[x + 1] ? e->need[t->seen[x]] : PROBLEM_NONE;
}

/* Takes a collective and the missing feeders before it. False if memory does not allow it; feeders
 * that were taken until then stay. */
static bool take_with_feeders(struct timed *t, uint32_t x)
{
    uint32_t n = 0;

    t->stack[n++] = x;
    while (n > 0) {
        uint32_t y = lacks(t, t->stack[n - 1]);
        if (y != PROBLEM_NONE)
            t->stack[n++] = y;
        else if (take(t, t->stack[n - 1]))
            n--;
        else
            return false;
    }
    return true;
}

/* Would g, which is needed before x, begin too late behind it? What nothing computes with fills
 * every gap. */
static bool delays(const struct timed *t, uint32_t c, uint32_t x, uint32_t g)
{
    const struct op_facts *f = t->f;
    int64_t start = t->channel[c] > t->clock ? t->channel[c] : t->clock;

    return g != PROBLEM_NONE && f->needed[x] < f->n && list_by_needed(f, g, x) < 0 &&
           start + f->ps[x] > t->clock + f->due[g] - t->worked;
}

/* Give a channel that is about to run dry the collective that is needed first; gathers only when it
 * is time for them and there is room. */
static bool feed_channel(struct timed *t, uint32_t c)
{
    const struct op_facts *f = t->f;

    if (t->channel[c] - t->clock > t->how.ahead)
        return false;
    uint32_t x = peek(t, &t->ready[c]), g = peek(t, &t->gathers[c]);
    if (g != PROBLEM_NONE && (x == PROBLEM_NONE || list_by_needed(f, g, x) < 0) &&
        f->due[g] - t->worked <= t->how.ahead && take_with_feeders(t, g))
        return true;
    return x != PROBLEM_NONE && !delays(t, c, x, g) && take(t, x);
}

/* An op out of the window, else the first beyond it. */
static bool take_compute(struct timed *t)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct heap *h = i == 0 ? &t->near : &t->far;
        uint32_t x = peek(t, h);
        if (x != PROBLEM_NONE && take(t, x))
            return true;
    }
    return false;
}

/* Nothing can be done before the next transfer ends; or memory allows nothing but the order
 * that is known to fit. */
static void take_anything(struct timed *t)
{
    uint32_t x = peek(t, &t->ended);

    if (x != PROBLEM_NONE && t->near.n == 0 && t->far.n == 0 && take(t, x))
        return;
    bool fits = take(t, t->f->order[t->first]);
    assert(fits);
    (void)fits;
}

static void begin(struct timed *t, const struct op_facts *f, struct rest *rest,
                  const struct setting *how, struct arena *a)
{
    uint32_t n = f->n;

    *t = (struct timed){.f = f, .how = *how, .rest = rest};
    t->missing = arena_array(a, uint32_t, n);
    t->done = arena_zeroed(a, n);
    t->channel = arena_zeroed(a, f->n_channel * sizeof(*t->channel));
    t->end = arena_zeroed(a, n * sizeof(*t->end));
    t->out = arena_array(a, uint32_t, n);
    t->stack = arena_array(a, uint32_t, n);
    t->seen = arena_array(a, uint32_t, n);
    memcpy(t->seen, f->e.need_at, n * sizeof(*t->seen));
    t->ready = arena_array(a, struct heap, f->n_channel);
    t->gathers = arena_array(a, struct heap, f->n_channel);
    heap_begin(&t->near, a, n, by_tail, t);
    heap_begin(&t->far, a, n, by_position, t);
    heap_begin(&t->ended, a, n, by_end, t);
    uint32_t *count = arena_zeroed(a, f->n_channel * sizeof(*count));
    for (uint32_t x = 0; x < n; x++)
        if (f->role[x] == ROLE_START || f->role[x] == ROLE_SYNC)
            count[f->channel[x]]++;
    for (uint32_t c = 0; c < f->n_channel; c++) {
        heap_begin(&t->ready[c], a, count[c], list_by_needed, f);
        heap_begin(&t->gathers[c], a, count[c], list_by_needed, f);
    }
    if (rest != NULL)
        rest_restart(rest);
    for (uint32_t x = 0; x < n; x++) {
        t->missing[x] = f->e.need_at[x + 1] - f->e.need_at[x];
        if (f->gather[x])
            heap_push(&t->gathers[f->channel[x]], x);
    }
    for (uint32_t x = 0; x < n; x++)
        if (t->missing[x] == 0)
            make_ready(t, x);
}

static void run(struct timed *t)
{
    while (t->n_out < t->f->n) {
        bool any = take_ended_wait(t);
        for (uint32_t c = 0; c < t->f->n_channel && !any; c++)
            any = feed_channel(t, c);
        if (!any && !take_compute(t))
            take_anything(t);
    }
}

/* ---- all settings ---- */

#define MS INT64_C(1000000000)

/* Little freedom for compute is often best, sometimes much is; from the back channels may work far
 * ahead. */
static const struct setting from_front[] = {
    {0, MS / 2}, {0, 2 * MS}, {50, 4 * MS}, {200, MS / 2}, {200, 4 * MS}, {400, 2 * MS},
};
static const struct setting from_back[] = {{0, 8 * MS}, {200, 4 * MS}};

struct trials {
    struct schedule *s;
    struct op_facts front;
    struct rest *rest; /* NULL: memory does not matter */
    struct sim sim;
    struct sim_span *span;
    uint32_t *best;
    int64_t least_ps; /* INT64_MAX: nothing yet */
    double least_held;
};

/* A thousandth of the time is not worth more bytes in flight. */
static bool better(int64_t ps, double bytes, int64_t best_ps, double best_bytes)
{
    int64_t slack = best_ps / 1000;

    if (ps < best_ps - slack || ps > best_ps + slack)
        return ps < best_ps;
    return bytes < best_bytes;
}

static void judge(struct trials *k, const uint32_t *order)
{
    struct schedule *s = k->s;
    struct sim_result r;

    sim_run(&k->sim, order, &r, k->span);
    double bytes = sim_held(s->p, k->span);
    s->n_measured++;
    if (k->least_ps == INT64_MAX || better(r.makespan, bytes, k->least_ps, k->least_held)) {
        k->least_ps = r.makespan;
        k->least_held = bytes;
        memcpy(k->best, order, s->p->n_op * sizeof(*order));
    }
}

static void try_from_front(struct trials *k)
{
    struct arena *a = &k->s->arena;

    for (uint32_t i = 0; i < sizeof(from_front) / sizeof(*from_front); i++) {
        struct arena_mark mark = arena_mark(a);
        struct timed t;

        begin(&t, &k->front, k->rest, &from_front[i], a);
        run(&t);
        judge(k, t.out);
        arena_release(a, mark);
    }
}

/* From the back nothing is known of memory: the order is found without a limit, and then followed
 * under it. */
static void try_from_back(struct trials *k)
{
    struct arena *a = &k->s->arena;
    uint32_t n = k->front.n;
    struct op_facts back;

    list_facts(&back, k->s, true, a);
    for (uint32_t i = 0; i < sizeof(from_back) / sizeof(*from_back); i++) {
        struct arena_mark mark = arena_mark(a);
        struct timed t;

        begin(&t, &back, NULL, &from_back[i], a);
        run(&t);
        uint32_t *order = arena_array(a, uint32_t, n);
        for (uint32_t j = 0; j < n; j++)
            order[j] = t.out[n - 1 - j];
        if (k->rest != NULL) {
            list_follow(&k->front, k->rest, order, t.out);
            order = t.out;
        }
        judge(k, order);
        arena_release(a, mark);
    }
}

void schedule_list_overlap(struct schedule *s)
{
    uint32_t n = s->p->n_op;
    struct trials k = {.s = s, .least_ps = INT64_MAX};

    k.best = arena_array(&s->arena, uint32_t, n);
    k.span = arena_array(&s->arena, struct sim_span, n);
    list_facts(&k.front, s, false, &s->arena);
    if (!isnan(s->opt.list_peak_memory_budget))
        k.rest = rest_begin(s->p, s->order, s->opt.list_peak_memory_budget, &s->arena);
    schedule_sim(&k.sim, s->p, s->runtime, &s->arena);
    try_from_front(&k);
    step_report(s)->front_ps = k.least_ps;
    try_from_back(&k);
    memcpy(s->order, k.best, n * sizeof(*k.best));
}
