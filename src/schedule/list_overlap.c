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
 * Several settings are tried, and the fastest order is kept. Collectives may pass each other, but
 * not fences: that is right if all ranks run the same graph.
 */

#include <math.h>

#include "base/heap.h"
#include "base/units.h"
#include "plan/liveness.h"
#include "schedule/edges.h"
#include "schedule/remaining_peak.h"
#include "schedule/step.h"

/* ---- facts about the ops that all settings share ---- */

struct op_facts {
    struct schedule *s;
    const struct problem *p;
    struct arena *a;
    struct edges e;
    uint32_t n, n_channel;
    uint32_t *at;      /* [op] its position in the order that is given */
    int64_t *ps;       /* [op] */
    int64_t *tail;     /* [op] from its start to the end of the step, if nothing else was to do */
    int64_t *work;     /* [position] compute before it */
    bool *feeder;      /* [op] cheap, made of inputs, for gathers only */
    bool *gather;      /* [op] a collective that needs nothing but inputs and feeders */
    uint32_t *needed;  /* [collective] position of the first op that computes with its result; n:
                         none does */
    int64_t *due;      /* [gather] the work that may come before it at most */
    struct rest *rest; /* NULL: memory does not matter */
};

static bool computes(const struct problem *p, uint32_t x)
{
    return !problem_is_coll(p, x) && !problem_is_wait(p, x);
}

static uint32_t channel_of(const struct op_facts *f, uint32_t x)
{
    return f->p->group[x] == PROBLEM_NONE ? f->n_channel - 1 : f->p->group[x];
}

/* Walks from the last op to the first: what comes after each op. */
static void look_back(struct op_facts *f)
{
    const struct problem *p = f->p;

    for (uint32_t i = f->n; i-- > 0;) {
        uint32_t x = f->s->order[i];
        bool async = problem_is_async(p, x);
        bool for_gathers = p->kind[x] == PROBLEM_COMPUTE && !(p->flags[x] & PROBLEM_LIKE_GEMM);
        int64_t after = 0;

        f->needed[x] = f->n;
        for (uint32_t k = f->e.user_at[x]; k < f->e.user_at[x + 1]; k++) {
            uint32_t y = f->e.user[k];
            bool ends = async && problem_is_wait(p, y);
            int64_t tail = f->tail[y] + (ends ? f->ps[x] : 0);
            uint32_t first = computes(p, y) && f->ps[y] > 0 && !f->feeder[y] ? f->at[y]
                                                                             : f->needed[y];
            if (tail > after)
                after = tail;
            if (first < f->needed[x])
                f->needed[x] = first;
            for_gathers &= f->feeder[y] ||
                           (problem_is_async(p, y) && p->coll[y] == TUCK_ALL_GATHER);
        }
        f->tail[x] = after + (async ? 0 : f->ps[x]);
        f->feeder[x] = for_gathers && f->e.user_at[x] < f->e.user_at[x + 1];
    }
}

/* Walks from the first op to the last: what comes before each op. */
static void look_ahead(struct op_facts *f)
{
    const struct problem *p = f->p;
    int64_t work = 0;

    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t x = f->s->order[i];
        bool from_inputs = true;

        for (uint32_t k = f->e.need_at[x]; k < f->e.need_at[x + 1]; k++)
            from_inputs &= f->feeder[f->e.need[k]];
        f->feeder[x] &= from_inputs;
        f->gather[x] = problem_is_async(p, x) && from_inputs && f->needed[x] < f->n;
        f->work[i] = work;
        if (computes(p, x) && !f->feeder[x])
            work += f->ps[x];
    }
    f->work[f->n] = work;
}

static int by_needed(const void *ctx, uint32_t x, uint32_t y)
{
    const struct op_facts *f = ctx;

    if (f->needed[x] != f->needed[y])
        return f->needed[x] < f->needed[y] ? -1 : 1;
    return f->at[x] < f->at[y] ? -1 : f->at[x] > f->at[y];
}

/* When the gathers of a channel must begin at the latest so that each is there when it is needed:
 * from the last to the first, one after the other. */
static void find_due(struct op_facts *f)
{
    int64_t *next = arena_array(f->a, int64_t, f->n_channel);
    struct heap h;
    uint32_t n = 0, *sorted = arena_array(f->a, uint32_t, f->n);

    heap_begin(&h, f->a, f->n, by_needed, f);
    for (uint32_t x = 0; x < f->n; x++)
        if (f->gather[x])
            heap_push(&h, x);
    while (h.n > 0)
        sorted[n++] = heap_pop(&h);
    for (uint32_t c = 0; c < f->n_channel; c++)
        next[c] = INT64_MAX;
    while (n-- > 0) {
        uint32_t x = sorted[n], c = channel_of(f, x);
        int64_t end = f->work[f->needed[x]];
        if (next[c] < end)
            end = next[c];
        f->due[x] = next[c] = end - f->ps[x];
    }
}

static void find_facts(struct op_facts *f, struct schedule *s, struct arena *a)
{
    uint32_t n = s->p->n_op;

    *f = (struct op_facts){.s = s, .p = s->p, .a = a, .n = n, .n_channel = s->p->n_group + 1};
    edges_build(s, EDGE_REAL | EDGE_ADDED | (schedule_is_free(s) ? EDGE_FENCES : EDGE_CHAIN), a,
                &f->e);
    f->at = arena_array(a, uint32_t, n);
    f->ps = arena_array(a, int64_t, n);
    f->tail = arena_array(a, int64_t, n);
    f->work = arena_array(a, int64_t, (size_t)n + 1);
    f->feeder = arena_zeroed(a, n);
    f->gather = arena_zeroed(a, n);
    f->needed = arena_array(a, uint32_t, n);
    f->due = arena_zeroed(a, n * sizeof(*f->due));
    for (uint32_t i = 0; i < n; i++) {
        f->at[s->order[i]] = i;
        f->ps[i] = problem_is_wait(s->p, i) ? 0 : ps_round(s->runtime[i] * s->p->unit_ps);
    }
    look_back(f);
    look_ahead(f);
    find_due(f);
    if (!isnan(s->opt.list_peak_memory_budget))
        f->rest = rest_begin(f->p, s->order, s->opt.list_peak_memory_budget, a);
}

/* ---- one setting ---- */

struct setting {
    uint32_t window; /* positions behind the first op that is left */
    int64_t ahead;   /* picoseconds: a channel that has less to do is about to run dry */
};

struct timed {
    const struct op_facts *f;
    struct setting how;
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
    const struct problem *p = t->f->p;
    int64_t end = 0;

    for (uint32_t i = p->wait_at[wait]; i < p->wait_at[wait + 1]; i++)
        if (t->end[p->wait[i]] > end)
            end = t->end[p->wait[i]];
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
    if (problem_is_coll(f->p, x)) {
        heap_push(&t->ready[channel_of(f, x)], x);
    } else if (problem_is_wait(f->p, x)) {
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

    if (problem_is_wait(f->p, x)) {
        if (t->end[x] > t->clock)
            t->clock = t->end[x];
    } else if (problem_is_coll(f->p, x)) {
        int64_t *c = &t->channel[channel_of(f, x)];
        *c = t->end[x] = (*c > t->clock ? *c : t->clock) + f->ps[x];
        if (!problem_is_async(f->p, x))
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

    while (t->first < f->n && t->done[f->s->order[t->first]])
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
    if (t->f->rest != NULL && !rest_take(t->f->rest, x))
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

    return g != PROBLEM_NONE && f->needed[x] < f->n && by_needed(f, g, x) < 0 &&
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
    if (g != PROBLEM_NONE && (x == PROBLEM_NONE || by_needed(f, g, x) < 0) &&
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
    bool fits = take(t, t->f->s->order[t->first]);
    assert(fits);
    (void)fits;
}

static void begin(struct timed *t, const struct op_facts *f, const struct setting *how,
                  struct arena *a)
{
    uint32_t n = f->n;

    *t = (struct timed){.f = f, .how = *how};
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
        if (problem_is_coll(f->p, x))
            count[channel_of(f, x)]++;
    for (uint32_t c = 0; c < f->n_channel; c++) {
        heap_begin(&t->ready[c], a, count[c], by_needed, f);
        heap_begin(&t->gathers[c], a, count[c], by_needed, f);
    }
    if (f->rest != NULL)
        rest_restart(f->rest);
    for (uint32_t x = 0; x < n; x++) {
        t->missing[x] = f->e.need_at[x + 1] - f->e.need_at[x];
        if (f->gather[x])
            heap_push(&t->gathers[channel_of(f, x)], x);
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

/* Little freedom for compute is often best, sometimes much is. */
static const struct setting settings[] = {
    {0, MS / 2},   {0, 2 * MS},   {0, 8 * MS},   {50, MS / 2},   {50, 4 * MS},
    {200, MS / 2}, {200, 4 * MS}, {400, 2 * MS}, {2000, 2 * MS},
};

/* A thousandth of the time is not worth more bytes in flight. */
static bool better(int64_t ps, double bytes, int64_t best_ps, double best_bytes)
{
    int64_t slack = best_ps / 1000;

    if (ps < best_ps - slack || ps > best_ps + slack)
        return ps < best_ps;
    return bytes < best_bytes;
}

void schedule_list_overlap(struct schedule *s)
{
    struct op_facts f;
    struct sim sim;
    uint32_t n = s->p->n_op, *best = arena_array(&s->arena, uint32_t, n);
    struct sim_span *span = arena_array(&s->arena, struct sim_span, n);
    int64_t least = INT64_MAX;
    double least_held = 0;

    find_facts(&f, s, &s->arena);
    schedule_sim(&sim, s->p, s->runtime, &s->arena);
    for (uint32_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        struct arena_mark mark = arena_mark(&s->arena);
        struct timed t;
        struct sim_result r;

        begin(&t, &f, &settings[i], &s->arena);
        run(&t);
        sim_run(&sim, t.out, &r, span);
        double bytes = sim_held(s->p, span);
        s->n_measured++;
        if (i == 0 || better(r.makespan, bytes, least, least_held)) {
            least = r.makespan;
            least_held = bytes;
            memcpy(best, t.out, n * sizeof(*best));
        }
        arena_release(&s->arena, mark);
    }
    memcpy(s->order, best, n * sizeof(*best));
}
