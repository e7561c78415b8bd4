#include "sim/bound.h"

#include <stdlib.h>

#include "base/csr.h"
#include "base/heap.h"

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
    int64_t *ps;          /* by op */
    int64_t *head, *done; /* by op: its earliest start and end */
    int64_t *tail;        /* by op: the longest chain after its end */
};

/* The host takes launch_ps to issue an op, and issues a wait while its collectives still run. So
 * their end delays what comes after the wait, not the wait itself. */
static void heads(struct work *w)
{
    const struct problem *p = w->p;

    for (uint32_t v = 0; v < p->n_op; v++) {
        for (uint32_t d = p->dep_at[v]; d < p->dep_at[v + 1]; d++) {
            uint32_t u = problem_dep_op(p, d);
            if (u == PROBLEM_NONE || p->dep_flags[d] & PROBLEM_FAKE)
                continue;
            int64_t from = problem_is_async(p, u) ? w->head[u] + w->o->launch_ps : w->done[u];
            w->head[v] = max64(w->head[v], from);
        }
        w->done[v] = w->head[v] + w->o->launch_ps + w->ps[v];
        for (uint32_t i = p->wait_at[v]; i < p->wait_at[v + 1]; i++)
            w->done[v] = max64(w->done[v], w->done[p->wait[i]]);
    }
}

/* Walks against the order. `issued`: what follows the issue of an asynchronous collective without
 * waiting for it. */
static void tails(struct work *w)
{
    const struct problem *p = w->p;
    int64_t *issued = arena_zeroed(w->a, p->n_op * sizeof(*issued));

    for (uint32_t v = p->n_op; v-- > 0;) {
        /* From the earliest start of v to the end of everything. */
        int64_t rest = w->o->launch_ps + max64(w->ps[v] + w->tail[v], issued[v]);

        for (uint32_t i = p->wait_at[v]; i < p->wait_at[v + 1]; i++)
            w->tail[p->wait[i]] = max64(w->tail[p->wait[i]], w->tail[v]);
        for (uint32_t d = p->dep_at[v]; d < p->dep_at[v + 1]; d++) {
            uint32_t u = problem_dep_op(p, d);
            if (u == PROBLEM_NONE || p->dep_flags[d] & PROBLEM_FAKE)
                continue;
            int64_t *of = problem_is_async(p, u) ? issued : w->tail;
            of[u] = max64(of[u], rest);
        }
    }
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

/* The jobs of the compute stream: all launches, compute, and synchronous collectives. */
static int64_t stream(struct work *w)
{
    const struct problem *p = w->p;
    struct job *job = arena_array(w->a, struct job, p->n_op);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->n_op; i++) {
        bool there = p->kind[i] != PROBLEM_WAIT && !problem_is_async(p, i);
        int64_t length = w->o->launch_ps + (there ? w->ps[i] : 0);
        if (length > 0)
            job[n++] = (struct job){w->head[i], length, there ? w->tail[i] : 0};
    }
    return one_machine(job, n, w->a);
}

static uint32_t channel_of(const struct problem *p, uint32_t op)
{
    return p->group[op] == PROBLEM_NONE ? p->n_group : p->group[op];
}

/* The jobs of each channel, all channels in one array. */
static void links(struct work *w, struct bound *out)
{
    const struct problem *p = w->p;
    uint32_t *at = csr_begin(w->a, (size_t)p->n_group + 1);
    struct job *job = arena_array(w->a, struct job, p->n_op);
    int64_t *load = arena_zeroed(w->a, ((size_t)p->n_group + 1) * sizeof(*load));

    for (uint32_t i = 0; i < p->n_op; i++)
        if (problem_is_coll(p, i)) {
            csr_count(at, channel_of(p, i));
            load[channel_of(p, i)] += w->ps[i];
        }
    csr_sum(at, (size_t)p->n_group + 1);
    for (uint32_t i = 0; i < p->n_op; i++)
        if (problem_is_coll(p, i))
            job[csr_place(at, channel_of(p, i))] = (struct job){w->head[i] + w->o->launch_ps,
                                                                w->ps[i], w->tail[i]};
    for (uint32_t k = 0; k <= p->n_group; k++) {
        int64_t link = one_machine(job + at[k], at[k + 1] - at[k], w->a);
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

void bound_of(const struct problem *p, const struct bound_options *o, struct arena *a,
              struct bound *out)
{
    struct work w = {.p = p, .o = o, .a = a};

    *out = (struct bound){.op = PROBLEM_NONE};
    w.ps = arena_array(a, int64_t, p->n_op);
    w.head = arena_zeroed(a, p->n_op * sizeof(*w.head));
    w.done = arena_zeroed(a, p->n_op * sizeof(*w.done));
    w.tail = arena_zeroed(a, p->n_op * sizeof(*w.tail));
    for (uint32_t i = 0; i < p->n_op; i++)
        w.ps[i] = problem_is_wait(p, i) ? 0 : o->ps ? o->ps[i] : p->ps[i];
    heads(&w);
    tails(&w);
    out->each[BOUND_BY_COMPUTE] = o->more_compute_ps;
    for (uint32_t i = 0; i < p->n_op; i++) {
        bool there = p->kind[i] != PROBLEM_WAIT && !problem_is_async(p, i);

        out->each[BOUND_BY_COMPUTE] += o->launch_ps + (there ? w.ps[i] : 0);
        if (w.done[i] + w.tail[i] > out->each[BOUND_BY_PATH]) {
            out->each[BOUND_BY_PATH] = w.done[i] + w.tail[i];
            out->op = i;
        }
    }
    out->each[BOUND_BY_STREAM] = stream(&w);
    links(&w, out);
    out->each[BOUND_BY_MEMORY] = energy(&w);
    for (int k = 0; k < BOUND_BY_END; k++)
        if (out->each[k] > out->ps) {
            out->ps = out->each[k];
            out->kind = (enum bound_kind)k;
        }
}
