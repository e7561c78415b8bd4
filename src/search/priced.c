#include "search/priced.h"

enum { OP_COMPUTE, OP_WAIT, OP_WAITS, OP_ASYNC, OP_SYNC };

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static bool is_coll(const struct priced_op *o)
{
    return o->kind >= OP_ASYNC;
}

/* ---- what never changes ---- */

static uint32_t channel_of(const struct problem *p, uint32_t op)
{
    return p->group[op] == PROBLEM_NONE ? p->n_group : p->group[op];
}

static int64_t kib_of(const struct problem *p, uint32_t coll)
{
    return p->bytes[coll] > 0 ? p->bytes[coll] >> 10 : 0;
}

/* By collective: its waits. */
static void find_stops(struct priced *s, struct arena *a)
{
    const struct problem *p = s->p;

    s->stop_at = arena_zeroed(a, ((size_t)s->n + 2) * sizeof(*s->stop_at));
    s->stop = arena_array(a, uint32_t, p->wait_at[s->n]);
    for (uint32_t k = 0; k < p->wait_at[s->n]; k++)
        s->stop_at[p->wait[k] + 2]++;
    for (uint32_t x = 0; x < s->n; x++)
        s->stop_at[x + 2] += s->stop_at[x + 1];
    for (uint32_t x = 0; x < s->n; x++)
        for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
            s->stop[s->stop_at[p->wait[k] + 1]++] = x;
}

static bool is_counted(const struct problem *p, uint32_t b)
{
    return !(p->buf_flags[b] & PROBLEM_OUTPUT) && p->size_free[b] > 0;
}

/* By op: the buffers that may be freed after it. */
static void find_uses(struct priced *s, struct arena *a)
{
    const struct problem *p = s->p;

    s->use_at = arena_zeroed(a, ((size_t)s->n + 2) * sizeof(*s->use_at));
    s->use = arena_array(a, uint32_t, (size_t)p->succ_at[p->n_buf] + p->n_buf);
    for (int fill = 0; fill < 2; fill++) {
        for (uint32_t b = 0; b < p->n_buf; b++) {
            if (!is_counted(p, b))
                continue;
            for (uint32_t k = p->succ_at[b]; k <= p->succ_at[b + 1]; k++) {
                uint32_t x = k < p->succ_at[b + 1] ? p->succ[k] : p->producer[b];
                if (x == PROBLEM_NONE)
                    continue;
                if (fill)
                    s->use[s->use_at[x + 1]++] = b;
                else
                    s->use_at[x + 2]++;
            }
        }
        for (uint32_t x = 0; x < s->n && !fill; x++)
            s->use_at[x + 2] += s->use_at[x + 1];
    }
}

static void find_ops(struct priced *s, const int64_t *ps, int64_t launch_ps)
{
    const struct problem *p = s->p;
    int64_t compute = 0;

    for (uint32_t x = 0; x < s->n; x++) {
        struct priced_op *o = &s->op[x];
        int64_t own = ps != NULL ? ps[x] : p->ps[x];
        uint32_t n_wait = p->wait_at[x + 1] - p->wait_at[x];

        *o = (struct priced_op){.ps = launch_ps, .kind = OP_COMPUTE};
        for (uint32_t b = p->out_at[x]; b < p->out_at[x + 1]; b++)
            o->alloc += p->size_alloc[b];
        if (problem_is_coll(p, x)) {
            o->kind = problem_is_async(p, x) ? OP_ASYNC : OP_SYNC;
            o->comm_ps = own;
            o->a = channel_of(p, x);
            o->load = kib_of(p, x) * (s->stop_at[x + 1] - s->stop_at[x]);
            s->channel[o->a] += own;
        } else if (problem_is_wait(p, x)) {
            for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
                o->load -= kib_of(p, p->wait[k]);
            o->kind = n_wait == 0 ? OP_COMPUTE : n_wait == 1 ? OP_WAIT : OP_WAITS;
            o->a = n_wait == 1 ? p->wait[p->wait_at[x]] : p->wait_at[x];
            o->b = p->wait_at[x + 1];
        } else {
            o->ps += own;
        }
        compute += o->ps;
    }
    s->least = compute;
    for (uint32_t c = 0; c < s->n_channel; c++)
        s->least = max64(s->least, s->channel[c]);
}

void priced_begin(struct priced *s, const struct problem *p, const int64_t *ps, int64_t launch_ps,
                  struct arena *a)
{
    size_t n = p->n_op, points = n + 1;

    *s = (struct priced){.p = p, .n = p->n_op, .n_channel = p->n_group + 1};
    s->op = arena_array(a, struct priced_op, n);
    s->buf = arena_zeroed(a, p->n_buf * sizeof(*s->buf));
    s->order = arena_array(a, uint32_t, n);
    s->pos = arena_array(a, uint32_t, n);
    s->clock = arena_zeroed(a, points * sizeof(*s->clock));
    s->tail = arena_zeroed(a, points * sizeof(*s->tail));
    s->end = arena_zeroed(a, n * sizeof(*s->end));
    s->rest = arena_zeroed(a, n * sizeof(*s->rest));
    s->before = arena_array(a, uint32_t, n);
    s->after = arena_array(a, uint32_t, n);
    s->n_coll = arena_zeroed(a, points * sizeof(*s->n_coll));
    s->coll = arena_array(a, uint32_t, n);
    s->via = arena_array(a, int64_t, n);
    s->live = arena_zeroed(a, points * sizeof(*s->live));
    s->most_before = arena_zeroed(a, points * sizeof(*s->most_before));
    s->most_after = arena_zeroed(a, points * sizeof(*s->most_after));
    s->load = arena_zeroed(a, points * sizeof(*s->load));
    s->now = arena_zeroed(a, n * sizeof(*s->now));
    s->channel = arena_zeroed(a, s->n_channel * sizeof(*s->channel));
    s->touched = arena_array(a, uint32_t, n);
    s->channels = arena_array(a, uint32_t, s->n_channel);
    s->latest = arena_array(a, uint32_t, s->n_channel);
    find_stops(s, a);
    find_uses(s, a);
    find_ops(s, ps, launch_ps);
    for (uint32_t b = 0; b < p->n_buf; b++)
        s->buf[b] = (struct priced_buf){p->size_free[b], 0, 0};
    for (uint32_t c = 0; c < s->n_channel; c++)
        s->latest[c] = PROBLEM_NONE;
}

/* ---- the price of a window ---- */

static inline int64_t wait_until(const struct priced *s, const struct priced_op *o, int64_t clk)
{
    if (o->kind == OP_WAIT)
        return max64(clk, s->now[o->a]);
    for (uint32_t k = o->a; k < o->b; k++)
        clk = max64(clk, s->now[s->p->wait[k]]);
    return clk;
}

int64_t priced_channel(const struct priced *s, uint32_t x, uint32_t from)
{
    do
        x = s->before[x];
    while (x != PROBLEM_NONE && s->pos[x] >= from);
    return x != PROBLEM_NONE ? s->end[x] : 0;
}

/* What is left of the step when x, a collective of a window that ends at `to`, has ended, by its
 * waits behind the window. */
static inline int64_t after_waits(const struct priced *s, uint32_t x, uint32_t to)
{
    int64_t left = 0;

    for (uint32_t k = s->stop_at[x]; k < s->stop_at[x + 1]; k++) {
        uint32_t q = s->pos[s->stop[k]];
        if (q >= to)
            left = max64(left, s->tail[q + 1]);
    }
    return left;
}

/* The longest step over what starts before the window and ends behind it, if more than `step`. */
static int64_t crossing(const struct priced *s, uint32_t from, uint32_t to, int64_t step)
{
    for (uint32_t k = s->n_coll[from]; k-- > 0 && step < s->step;) {
        if (s->via[k] <= step)
            continue;
        uint32_t x = s->coll[k], next = s->after[x];
        int64_t left = after_waits(s, x, to);
        if (next != PROBLEM_NONE && s->pos[next] >= to)
            left = max64(left, s->rest[next]);
        step = max64(step, s->end[x] + left);
    }
    return step;
}

int64_t priced_crossing(const struct priced *s, uint32_t from, uint32_t to)
{
    return crossing(s, from, to, 0);
}

int64_t priced_waits(const struct priced *s, uint32_t x, uint32_t to)
{
    return after_waits(s, x, to);
}

int64_t priced_rest(const struct priced *s, uint32_t x, uint32_t to)
{
    do
        x = s->after[x];
    while (x != PROBLEM_NONE && s->pos[x] < to);
    return x != PROBLEM_NONE ? s->rest[x] : 0;
}

int64_t priced_step(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops)
{
    const struct priced_op *op = s->op;
    int64_t clk = s->clock[from];
    uint32_t n_touched = 0, n_channels = 0;

    for (uint32_t i = 0; i < to - from; i++) {
        uint32_t x = ops[i];
        const struct priced_op *o = &op[x];

        clk += o->ps;
        if (o->kind == OP_COMPUTE)
            continue;
        if (!is_coll(o)) {
            clk = wait_until(s, o, clk);
            continue;
        }
        if (s->latest[o->a] == PROBLEM_NONE) {
            s->channels[n_channels++] = o->a;
            s->channel[o->a] = priced_channel(s, x, from);
        }
        s->latest[o->a] = x;
        s->now[x] = s->channel[o->a] = max64(clk, s->channel[o->a]) + o->comm_ps;
        s->touched[n_touched++] = x;
        if (o->kind == OP_SYNC)
            clk = s->now[x];
    }
    int64_t step = clk + s->tail[to];
    for (uint32_t i = 0; i < n_touched; i++) {
        uint32_t x = s->touched[i];
        step = max64(step, s->now[x] + after_waits(s, x, to));
        s->now[x] = s->end[x];
    }
    for (uint32_t i = 0; i < n_channels; i++) {
        uint32_t c = s->channels[i];
        step = max64(step, s->channel[c] + priced_rest(s, s->latest[c], to));
        s->latest[c] = PROBLEM_NONE;
    }
    /* What crosses the window is in the present step, too: it counts only if that shrinks. */
    return step < s->step ? crossing(s, from, to, step) : step;
}

uint32_t priced_marks(struct priced *s, uint32_t n)
{
    if (n > UINT32_MAX - 1 - s->mark) {
        for (uint32_t b = 0; b < s->p->n_buf; b++)
            s->buf[b].mark = 0;
        s->mark = 0;
    }
    uint32_t first = s->mark + 1;
    s->mark += n;
    return first;
}

static void next_mark(struct priced *s)
{
    s->mark = priced_marks(s, 1);
}

int64_t priced_peak(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops)
{
    int64_t peak = max64(s->most_before[from], s->most_after[to]), live = s->live[to];

    /* From the back: the first that uses a buffer is the last of its users. */
    next_mark(s);
    for (uint32_t i = to - from; i-- > 0;) {
        uint32_t x = ops[i];

        for (uint32_t k = s->use_at[x]; k < s->use_at[x + 1]; k++) {
            struct priced_buf *b = &s->buf[s->use[k]];
            if (b->last < to && b->mark != s->mark) {
                b->mark = s->mark;
                live += b->size;
            }
        }
        peak = max64(peak, live);
        live -= s->op[x].alloc;
    }
    assert_hot(live == s->live[from]);
    return peak;
}

static inline int64_t work_of(const struct priced_op *o)
{
    return o->ps / 1000;
}

static int64_t flight_of(const struct priced *s, uint32_t from, uint32_t n, const uint32_t *ops)
{
    int64_t load = s->load[from], sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct priced_op *o = &s->op[ops[i]];
        sum += load * work_of(o);
        load += o->load;
    }
    return sum;
}

int64_t priced_flight(const struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops)
{
    return s->flight + flight_of(s, from, to - from, ops) -
           flight_of(s, from, to - from, s->order + from);
}

/* ---- the order ---- */

/* Times from a position on: clocks, ends, and which collective follows which. */
static void walk_on(struct priced *s, uint32_t from)
{
    uint32_t n_coll = s->n_coll[from];
    int64_t clk = s->clock[from];

    for (uint32_t c = 0; c < s->n_channel; c++)
        s->channel[c] = 0;
    for (uint32_t k = 0; k < n_coll; k++) {
        uint32_t x = s->coll[k], c = s->op[x].a;
        s->latest[c] = x;
        s->channel[c] = s->end[x];
        s->now[x] = s->end[x];
    }
    for (uint32_t i = from; i < s->n; i++) {
        uint32_t x = s->order[i];
        const struct priced_op *o = &s->op[x];

        s->clock[i] = clk;
        s->n_coll[i] = n_coll;
        clk += o->ps;
        if (o->kind == OP_COMPUTE)
            continue;
        if (!is_coll(o)) {
            clk = wait_until(s, o, clk);
            continue;
        }
        uint32_t last = s->latest[o->a];
        s->before[x] = last;
        s->after[x] = PROBLEM_NONE;
        if (last != PROBLEM_NONE)
            s->after[last] = x;
        s->latest[o->a] = x;
        s->coll[n_coll++] = x;
        s->end[x] = s->now[x] = s->channel[o->a] = max64(clk, s->channel[o->a]) + o->comm_ps;
        if (o->kind == OP_SYNC)
            clk = s->end[x];
    }
    s->clock[s->n] = clk;
    s->n_coll[s->n] = n_coll;
    s->step = clk;
    for (uint32_t c = 0; c < s->n_channel; c++) {
        if (s->latest[c] != PROBLEM_NONE) {
            s->after[s->latest[c]] = PROBLEM_NONE;
            s->step = max64(s->step, s->channel[c]);
        }
        s->latest[c] = PROBLEM_NONE;
    }
}

/* From the end to the position before `to`: how long the step takes from there. */
static void walk_back(struct priced *s, uint32_t to)
{
    for (uint32_t i = to; i-- > 0;) {
        uint32_t x = s->order[i];
        const struct priced_op *o = &s->op[x];
        int64_t left = s->tail[i + 1];

        if (is_coll(o)) {
            uint32_t next = s->after[x];
            int64_t rest = after_waits(s, x, 0);
            if (next != PROBLEM_NONE)
                rest = max64(rest, s->rest[next]);
            if (o->kind == OP_SYNC)
                rest = max64(rest, left);
            s->rest[x] = rest + o->comm_ps;
            left = o->kind == OP_SYNC ? s->rest[x] : max64(left, s->rest[x]);
        }
        s->tail[i] = left + o->ps;
    }
    for (uint32_t k = 0; k < s->n_coll[s->n]; k++) {
        uint32_t x = s->coll[k];
        s->via[k] = s->end[x] + s->rest[x] - s->op[x].comm_ps;
    }
    assert_hot(s->tail[0] == s->step);
}

/* Memory of the positions [from, to); what is live at `to` is known. */
static void walk_memory(struct priced *s, uint32_t from, uint32_t to)
{
    int64_t live = s->live[to];

    next_mark(s);
    for (uint32_t i = to; i-- > from;) {
        uint32_t x = s->order[i];

        for (uint32_t k = s->use_at[x]; k < s->use_at[x + 1]; k++) {
            struct priced_buf *b = &s->buf[s->use[k]];
            if (b->last < to && b->mark != s->mark) {
                b->mark = s->mark;
                b->last = i;
                live += b->size;
            }
        }
        s->most_after[i] = max64(live, s->most_after[i + 1]);
        live -= s->op[x].alloc;
        s->live[i] = live;
    }
    for (uint32_t i = from; i-- > 0;) {
        int64_t most = max64(s->live[i] + s->op[s->order[i]].alloc, s->most_after[i + 1]);
        if (most == s->most_after[i])
            break;
        s->most_after[i] = most;
    }
    for (uint32_t i = from; i < s->n; i++) {
        int64_t most = max64(s->live[i] + s->op[s->order[i]].alloc, s->most_before[i]);
        if (i >= to && most == s->most_before[i + 1])
            break;
        s->most_before[i + 1] = most;
    }
    s->peak = s->most_before[s->n];
}

static void walk_loads(struct priced *s, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++)
        s->load[i + 1] = s->load[i] + s->op[s->order[i]].load;
}

/* Bytes that are live at the end, and before the first op. */
static void find_ends(struct priced *s)
{
    const struct problem *p = s->p;
    int64_t input = 0, end = 0;

    for (uint32_t b = 0; b < p->n_buf; b++) {
        s->buf[b].last = 0;
        if (p->producer[b] == PROBLEM_NONE)
            input += p->size_alloc[b];
        end += p->size_alloc[b];
        if (!(p->buf_flags[b] & PROBLEM_OUTPUT))
            end -= p->size_free[b];
    }
    s->most_before[0] = input;
    s->live[s->n] = end;
    s->most_after[s->n] = 0;
}

void priced_set(struct priced *s, const uint32_t *order)
{
    memcpy(s->order, order, s->n * sizeof(*order));
    for (uint32_t i = 0; i < s->n; i++)
        s->pos[order[i]] = i;
    find_ends(s);
    walk_on(s, 0);
    walk_back(s, s->n);
    walk_memory(s, 0, s->n);
    s->load[0] = 0;
    walk_loads(s, 0, s->n);
    s->flight = flight_of(s, 0, s->n, s->order);
}

void priced_take(struct priced *s, uint32_t from, uint32_t to, const uint32_t *ops)
{
    s->flight = priced_flight(s, from, to, ops);
    for (uint32_t i = from; i < to; i++) {
        s->order[i] = ops[i - from];
        s->pos[ops[i - from]] = i;
    }
    walk_on(s, from);
    walk_back(s, to);
    walk_memory(s, from, to);
    walk_loads(s, from, to);
}
