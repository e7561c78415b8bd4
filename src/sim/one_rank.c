#include "sim/sim.h"

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

enum { EVENT_ASYNC, EVENT_SYNC, EVENT_WAIT, EVENT_WAITS };

static uint32_t channel_of(const struct problem *p, uint32_t op)
{
    return p->group[op] == PROBLEM_NONE ? p->n_group : p->group[op];
}

/* Looks up everything about the ops once, for all runs. */
static void look_up(struct sim *s, struct arena *a)
{
    const struct problem *p = s->p;
    uint32_t n_coll = 0, n_event = 0, n_ends = 0;
    uint32_t *place = arena_array(a, uint32_t, p->n_op); /* by collective: its index in `ended` */

    for (uint32_t i = 0; i < p->n_op; i++) {
        place[i] = n_coll;
        n_coll += problem_is_coll(p, i);
        n_event += problem_is_coll(p, i) || problem_is_wait(p, i);
    }
    s->word = arena_array(a, int64_t, p->n_op);
    s->event = arena_array(a, struct sim_event, n_event);
    s->ended = arena_zeroed(a, n_coll * sizeof(*s->ended));
    s->ends = arena_array(a, uint32_t, p->wait_at[p->n_op]);
    n_event = 0;
    for (uint32_t i = 0; i < p->n_op; i++) {
        struct sim_event e = {.ps = s->ps[i]};

        if (problem_is_coll(p, i)) {
            s->comm += s->ps[i];
            e.kind = p->flags[i] & PROBLEM_ASYNC ? EVENT_ASYNC : EVENT_SYNC;
            e.a = channel_of(p, i);
            e.b = place[i];
        } else if (problem_is_wait(p, i) && p->wait_at[i] < p->wait_at[i + 1]) {
            e.a = n_ends;
            for (uint32_t k = p->wait_at[i]; k < p->wait_at[i + 1]; k++) {
                assert_hot(problem_is_coll(p, p->wait[k]));
                s->ends[n_ends++] = place[p->wait[k]];
            }
            e.b = n_ends;
            e.kind = e.b - e.a > 1 ? EVENT_WAITS : EVENT_WAIT;
            e.a = e.kind == EVENT_WAIT ? s->ends[e.a] : e.a;
        } else {
            int64_t ps = problem_is_wait(p, i) ? 0 : s->ps[i];
            s->compute += ps;
            s->word[i] = ps + s->o.launch_ps;
            continue;
        }
        s->word[i] = INT64_MIN | n_event;
        s->event[n_event++] = e;
    }
}

void sim_init(struct sim *s, const struct problem *p, const struct sim_options *o, struct arena *a)
{
    *s = (struct sim){.p = p, .o = o ? *o : (struct sim_options){.ps = NULL}};
    s->ps = arena_array(a, int64_t, p->n_op);
    s->end = arena_array(a, int64_t, p->n_op);
    s->channel = arena_array(a, int64_t, (size_t)p->n_group + 1);
    s->before = arena_array(a, uint32_t, p->n_op);
    s->latest = arena_array(a, uint32_t, (size_t)p->n_group + 1);
    for (uint32_t i = 0; i < p->n_op; i++)
        s->ps[i] = s->o.ps ? s->o.ps[i] : p->ps[i];
    for (uint32_t i = 0; i < p->n_op; i++)
        assert_hot(s->ps[i] >= 0);
    look_up(s, a);
}

/* ---- times alone ---- */

/* Runs a collective or a wait at time clk. Returns the time after it. */
static inline int64_t happen(const struct sim_event *e, int64_t clk, const uint32_t *ends,
                             int64_t *ended, int64_t *channel)
{
    if (e->kind == EVENT_WAIT)
        return max64(clk, ended[e->a]);
    if (e->kind == EVENT_WAITS) {
        for (uint32_t i = e->a; i < e->b; i++)
            clk = max64(clk, ended[ends[i]]);
        return clk;
    }
    int64_t end = max64(clk, channel[e->a]) + e->ps;
    channel[e->a] = ended[e->b] = end;
    return e->kind == EVENT_ASYNC ? clk : end;
}

/* Most ops are kernels; for these the loop reads one word and takes one branch. */
static void run_alone(struct sim *s, const uint32_t *order, struct sim_result *out)
{
    const int64_t *word = s->word;
    const struct sim_event *event = s->event;
    const uint32_t *ends = s->ends;
    int64_t *ended = s->ended, *channel = s->channel;
    int64_t clk = 0, launch = s->o.launch_ps;
    uint32_t n = s->p->n_op;

    for (uint32_t i = 0; i < n; i++) {
        int64_t w = word[order ? order[i] : i];
        if (w >= 0)
            clk += w;
        else
            clk = happen(&event[(uint32_t)w], clk + launch, ends, ended, channel);
    }
    int64_t makespan = clk;
    for (uint32_t g = 0; g <= s->p->n_group; g++)
        makespan = max64(makespan, channel[g]);
    *out = (struct sim_result){.makespan = makespan,
                               .compute = s->compute,
                               .comm = s->comm,
                               .launch = launch * (int64_t)n,
                               .tail = makespan - clk};
    out->exposed = makespan - out->compute - out->launch;
}

/* ---- with spans ---- */

void sim_charge(struct sim_span *span, const uint32_t *before, uint32_t last, int64_t since)
{
    for (uint32_t op = last; op != PROBLEM_NONE && span[op].end > since; op = before[op]) {
        uint32_t b = before[op];
        int64_t from = b == PROBLEM_NONE ? since : max64(since, span[b].end);
        if (span[op].end <= from)
            continue;
        span[op].exposed += span[op].end - from;
        if (op != last)
            span[op].held = last;
    }
}

/* The collective that a wait stalls for: the one that ends last. */
static uint32_t last_of(const struct sim *s, uint32_t wait)
{
    const struct problem *p = s->p;
    uint32_t last = PROBLEM_NONE;

    for (uint32_t i = p->wait_at[wait]; i < p->wait_at[wait + 1]; i++)
        if (last == PROBLEM_NONE || s->end[p->wait[i]] > s->end[last])
            last = p->wait[i];
    return last;
}

static void run_with_spans(struct sim *s, const uint32_t *order, struct sim_result *out,
                           struct sim_span *span)
{
    const struct problem *p = s->p;
    struct sim_result r = {.makespan = 0};
    int64_t clk = 0;
    uint32_t latest = PROBLEM_NONE; /* the collective that ends last */

    for (uint32_t step = 0; step < p->n_op; step++) {
        uint32_t op = order ? order[step] : step;
        int64_t d = s->ps[op], start;

        clk += s->o.launch_ps;
        int64_t issued = start = clk;
        if (p->kind[op] == PROBLEM_COLLECTIVE) {
            uint32_t group = channel_of(p, op);
            int64_t *ch = &s->channel[group];
            s->before[op] = s->latest[group];
            s->latest[group] = op;
            start = max64(clk, *ch);
            *ch = s->end[op] = start + d;
            r.comm += d;
            if (latest == PROBLEM_NONE || s->end[op] > s->end[latest])
                latest = op;
            int64_t stood = p->flags[op] & PROBLEM_ASYNC ? 0 : s->end[op] - clk;
            r.exposed += stood;
            span[op] = (struct sim_span){start, s->end[op], issued, 0, stood, PROBLEM_NONE};
            if (stood > 0)
                sim_charge(span, s->before, op, clk);
            clk += stood;
        } else if (p->kind[op] == PROBLEM_WAIT) {
            uint32_t c = last_of(s, op);
            int64_t stood = c != PROBLEM_NONE ? max64(0, s->end[c] - clk) : 0;
            r.exposed += stood;
            if (stood > 0)
                sim_charge(span, s->before, c, clk);
            clk += stood;
            span[op] = (struct sim_span){start, clk, issued, 0, stood, PROBLEM_NONE};
        } else {
            r.compute += d;
            clk += d;
            span[op] = (struct sim_span){start, clk, issued, 0, 0, PROBLEM_NONE};
        }
    }
    r.launch = s->o.launch_ps * (int64_t)p->n_op;
    r.makespan = latest != PROBLEM_NONE ? max64(clk, s->end[latest]) : clk;
    r.tail = r.makespan - clk;
    r.exposed += r.tail;
    if (r.tail > 0)
        sim_charge(span, s->before, latest, clk);
    *out = r;
}

void sim_run(struct sim *s, const uint32_t *order, struct sim_result *out, struct sim_span *span)
{
    memset(s->channel, 0, ((size_t)s->p->n_group + 1) * sizeof(*s->channel));
    if (span != NULL)
        memset(s->latest, 0xFF, ((size_t)s->p->n_group + 1) * sizeof(*s->latest));
    if (span != NULL)
        run_with_spans(s, order, out, span);
    else
        run_alone(s, order, out);
}

double sim_held(const struct problem *p, const struct sim_span *span)
{
    double sum = 0;

    for (uint32_t x = 0; x < p->n_op; x++)
        for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++) {
            uint32_t c = p->wait[k];
            if (p->bytes[c] > 0)
                sum += (double)p->bytes[c] * (double)(span[x].end - span[c].issued);
        }
    return sum;
}
