#include "sim/bound.h"

#include <stdlib.h>

#include "base/csr.h"
#include "base/heap.h"
#include "sim/either.h"

const char *bound_name(enum bound_kind k)
{
    static const char *const name[] = {"compute", "channel", "path", "stream", "link", "memory"};

    return name[k];
}

const char *bound_meaning(enum bound_kind k)
{
    static const char *const text[] = {
        "the compute itself takes that long: all communication could be hidden",
        "one group's collectives take that long one after the other: only less or faster "
        "communication helps",
        "a chain of ops that wait for each other takes that long: no order is shorter",
        "the compute stream must start late or end early: the first or last collectives cannot be "
        "hidden",
        "a group's collectives start late or have work after them: they cannot all be hidden",
        "buffers that must live that long fill the memory: more memory would help",
    };

    return text[k];
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

struct work {
    const struct problem *p;
    const struct bound_options *o;
    struct arena *a;
    int64_t *ps; /* by op */
    struct sides sides;
};

static uint32_t channel_of(const struct problem *p, uint32_t op)
{
    return p->group[op] == PROBLEM_NONE ? p->n_group : p->group[op];
}

/* The host takes launch_ps to issue an op, and issues a wait while its collectives still run. So
 * their end delays what comes after the wait, not the wait itself. */
static void find_sides(struct work *w)
{
    const struct problem *p = w->p;
    struct sides *s = &w->sides;
    uint32_t n_edge = 0;

    *s = (struct sides){.n = p->n_op,
                        .n_channel = p->n_group + 1,
                        .wait_at = p->wait_at,
                        .wait = p->wait,
                        .chains_only = w->o->chains_only};
    s->work = arena_array(w->a, int64_t, s->n);
    s->transfer = arena_zeroed(w->a, s->n * sizeof(int64_t));
    s->before = arena_array(w->a, int64_t, s->n);
    s->channel = arena_array(w->a, uint32_t, s->n);
    s->is_async = arena_array(w->a, bool, s->n);
    s->pred_at = arena_array(w->a, uint32_t, s->n + 1);
    s->pred = arena_array(w->a, uint32_t, p->dep_at[p->n_op]);
    for (uint32_t v = 0; v < s->n; v++) {
        s->is_async[v] = problem_is_async(p, v);
        s->work[v] = w->o->launch_ps + (s->is_async[v] ? 0 : w->ps[v]);
        s->before[v] = w->o->launch_ps;
        s->channel[v] = problem_is_coll(p, v) ? channel_of(p, v) : SIDES_NONE;
        s->transfer[v] = problem_is_coll(p, v) ? w->ps[v] : 0;
        s->pred_at[v] = n_edge;
        for (uint32_t d = p->dep_at[v]; d < p->dep_at[v + 1]; d++) {
            uint32_t u = problem_dep_op(p, d);
            if (u != PROBLEM_NONE && !(p->dep_flags[d] & PROBLEM_FAKE))
                s->pred[n_edge++] = sides_edge(u, false);
        }
    }
    s->pred_at[s->n] = n_edge;
    sides_find(s, w->a);
}

/* ---- one machine ---- */

struct job {
    int64_t head, length, tail;
};

static int by_head(const void *x, const void *y)
{
    const struct job *a = x, *b = y;

    return a->head < b->head ? -1 : a->head > b->head;
}

static int by_tail(const void *ctx, uint32_t x, uint32_t y)
{
    const struct job *job = ctx;

    return job[x].tail > job[y].tail ? -1 : job[x].tail < job[y].tail;
}

/* Jackson's preemptive schedule: of the available jobs, always run the one with the longest tail.
 * O(n log n). */
static int64_t one_machine(struct job *job, uint32_t n, struct arena *a)
{
    struct heap come;
    uint32_t next = 0;
    int64_t now = 0, bound = 0;

    heap_begin(&come, a, n, by_tail, job);
    qsort(job, n, sizeof(*job), by_head);
    while (next < n || come.n > 0) {
        if (come.n == 0 && now < job[next].head)
            now = job[next].head;
        for (; next < n && job[next].head <= now; next++)
            heap_push(&come, next);
        struct job *top = &job[heap_top(&come)];
        int64_t until = next < n ? job[next].head : INT64_MAX;
        int64_t run = until - now < top->length ? until - now : top->length;
        now += run;
        top->length -= run;
        if (top->length > 0)
            continue;
        bound = max64(bound, now + top->tail);
        heap_pop(&come);
    }
    return bound;
}

/* The jobs of the compute stream. */
static int64_t stream(const struct sides *s, struct arena *a)
{
    struct job *job = arena_array(a, struct job, s->n);
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        int64_t tail = s->is_async[i] ? s->transfer[i] + s->tail[i] : s->tail[i];
        if (s->work[i] > 0)
            job[n++] = (struct job){s->head[i], s->work[i], tail};
    }
    return one_machine(job, n, a);
}

/* The jobs of each channel, all channels in one array. */
static void links(const struct sides *s, struct arena *a, struct bound *out)
{
    uint32_t *at = csr_begin(a, s->n_channel);
    struct job *job = arena_array(a, struct job, s->n);
    int64_t *load = arena_zeroed(a, s->n_channel * sizeof(*load));

    for (uint32_t i = 0; i < s->n; i++)
        if (s->channel[i] != SIDES_NONE) {
            csr_count(at, s->channel[i]);
            load[s->channel[i]] += s->transfer[i];
        }
    csr_sum(at, s->n_channel);
    for (uint32_t i = 0; i < s->n; i++)
        if (s->channel[i] != SIDES_NONE)
            job[csr_place(at, s->channel[i])] = (struct job){s->head[i] + s->before[i],
                                                             s->transfer[i], s->tail[i]};
    for (uint32_t k = 0; k < s->n_channel; k++) {
        int64_t link = one_machine(job + at[k], at[k + 1] - at[k], a);
        if (load[k] > out->each[BOUND_BY_CHANNEL]) {
            out->each[BOUND_BY_CHANNEL] = load[k];
            out->group = k;
        }
        if (link > out->each[BOUND_BY_LINK]) {
            out->each[BOUND_BY_LINK] = link;
            out->group = k;
        }
    }
}

void bound_of_sides(const struct sides *s, struct arena *a, struct bound *out)
{
    *out = (struct bound){
        .op = s->last, .weak = !s->exact, .head = s->head, .tail = s->tail, .rest = s->rest};
    uint32_t channel = 0;

    for (uint32_t i = 0; i < s->n; i++)
        out->each[BOUND_BY_COMPUTE] += s->work[i];
    out->each[BOUND_BY_PATH] = s->chain;
    out->each[BOUND_BY_STREAM] = stream(s, a);
    links(s, a, out);
    int64_t late = either_bound(s, a, &channel);
    if (late > out->each[BOUND_BY_LINK]) {
        out->each[BOUND_BY_LINK] = late;
        out->group = channel;
    }
    /* An item without work is on no stream, but may still have much before and after it. */
    for (uint32_t i = 0; i < s->n; i++) {
        int64_t all = max64(s->arrived[i] + s->tail[i], s->head[i] + s->rest[i]);
        if (all > out->each[BOUND_BY_LINK])
            out->each[BOUND_BY_STREAM] = max64(out->each[BOUND_BY_STREAM], all);
    }
    bound_choose(out);
}

/* ---- memory ---- */

/* Is there a wait for c, after which something reads b? Then b must live while c runs. */
static bool is_read_after_wait(const struct problem *p, uint32_t c, uint32_t b)
{
    bool waited = false, read = false;

    for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++) {
        uint32_t op = p->succ[i];
        for (uint32_t k = p->wait_at[op]; k < p->wait_at[op + 1]; k++)
            waited |= p->wait[k] == c;
        read |= p->kind[op] != PROBLEM_WAIT && p->kind[op] != PROBLEM_COLLECTIVE;
    }
    return waited && read;
}

/* Every buffer that is freed inside the step lives at least as long as its readers take, and a
 * gathered one as long as its collective takes. Their bytes times time must fit into `memory`
 * bytes. */
static int64_t energy(const struct work *w)
{
    const struct problem *p = w->p;
    long double sum = 0;

    for (uint32_t b = p->n_input; b < p->n_buf && w->o->memory > 0; b++) {
        uint32_t by = p->producer[b];
        int64_t life = 0;

        if ((p->buf_flags[b] & PROBLEM_OUTPUT) || p->size_alloc[b] != p->size_free[b])
            continue;
        for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++)
            if (!problem_is_coll(p, p->succ[i]) && !problem_is_wait(p, p->succ[i]))
                life += w->ps[p->succ[i]];
        if (problem_is_async(p, by) && is_read_after_wait(p, by, b))
            life += w->ps[by];
        sum += (long double)p->size_alloc[b] * (long double)life;
    }
    long double t = w->o->memory > 0 ? sum / (long double)w->o->memory : 0;
    return t < (long double)INT64_MAX ? (int64_t)t : INT64_MAX;
}

void bound_choose(struct bound *b)
{
    b->ps = 0;
    for (int k = 0; k < BOUND_BY_END; k++)
        if (b->each[k] > b->ps) {
            b->ps = b->each[k];
            b->kind = (enum bound_kind)k;
        }
    /* The compute stream may stand still only because of a channel. */
    if (b->kind == BOUND_BY_STREAM && b->each[BOUND_BY_LINK] == b->ps)
        b->kind = BOUND_BY_LINK;
}

void bound_of(const struct problem *p, const struct bound_options *o, struct arena *a,
              struct bound *out)
{
    struct work w = {.p = p, .o = o, .a = a};

    w.ps = arena_array(a, int64_t, p->n_op);
    for (uint32_t i = 0; i < p->n_op; i++)
        w.ps[i] = problem_is_wait(p, i) ? 0 : o->ps ? o->ps[i] : p->ps[i];
    find_sides(&w);
    bound_of_sides(&w.sides, a, out);
    out->each[BOUND_BY_MEMORY] = energy(&w);
    bound_choose(out);
}
