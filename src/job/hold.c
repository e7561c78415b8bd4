#include "job/hold.h"

#include <math.h>
#include <stdlib.h>

/* ---- holds ---- */

/* A wait of the host, and the last collective that ended during it: what the host waited for. */
struct host_wait {
    int64_t start, end, last;
};

static int by_wait(const void *a, const void *b)
{
    const struct host_wait *x = a, *y = b;

    if (x->start != y->start)
        return x->start < y->start ? -1 : 1;
    return x->end > y->end ? -1 : x->end < y->end;
}

/* The wait that had begun before that moment, and not ended. */
static struct host_wait *wait_at(struct host_wait *w, uint32_t n, int64_t when)
{
    uint32_t low = 0, high = n;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (w[mid].start < when)
            low = mid + 1;
        else
            high = mid;
    }
    return low > 0 && when <= w[low - 1].end ? &w[low - 1] : NULL;
}

/* The waits of a job without a device; those inside of others are part of them. */
static uint32_t host_waits(const struct trace_part *p, struct arena *a, struct host_wait **out)
{
    struct host_wait *w = arena_array(a, struct host_wait, p->span.len + 1);
    uint32_t n = 0, m = 0;

    for (uint32_t i = 0; !p->device && i < p->span.len; i++)
        if (p->span.at[i].cls == TRACE_WAIT)
            w[n++] = (struct host_wait){p->span.at[i].start, p->span.at[i].end, INT64_MIN};
    qsort(w, n, sizeof(*w), by_wait);
    for (uint32_t i = 0; i < n; i++)
        if (m == 0 || w[i].start >= w[m - 1].end)
            w[m++] = w[i];
    for (uint32_t i = 0; i < p->coll.len; i++) {
        struct host_wait *x = wait_at(w, m, p->coll.at[i].end);
        if (x != NULL && p->coll.at[i].end > x->last)
            x->last = p->coll.at[i].end;
    }
    *out = w;
    return m;
}

static int by_issued(const void *a, const void *b)
{
    const struct trace_coll *const *x = a, *const *y = b;

    if ((*x)->issued != (*y)->issued)
        return (*x)->issued < (*y)->issued ? -1 : 1;
    return (*x > *y) - (*x < *y);
}

static int64_t clipped(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

/* A collective waits until its transfer begins, which is its last part on every rank. */
static void find_waits(const struct trace_part *p, struct arena *a, struct hold *out)
{
    struct trace_cover cover; /* the host waits, or with a device: something computes */
    uint32_t cls = p->device ? 1u << TRACE_COMPUTE : 1u << TRACE_WAIT;

    trace_cover_make(p->span.at, p->span.len, cls, a, &cover);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = &p->coll.at[i];
        struct hold *h = &out[i];
        int64_t from = clipped(c->start, h->from, h->end),
                until = clipped(c->end - c->transfer, from, h->end),
                covered = trace_covered(&cover, from, until);
        h->wait = until - from;
        h->lost = p->device ? h->wait - covered : covered;
    }
}

const struct hold *trace_holds(const struct trace_part *p, struct arena *a)
{
    const struct trace_coll **list = arena_array(a, const struct trace_coll *, p->coll.len + 1);
    struct hold *out = arena_array(a, struct hold, p->coll.len + 1);
    struct host_wait *wait;
    uint32_t n_wait = host_waits(p, a, &wait);
    int64_t before = INT64_MIN;

    for (uint32_t i = 0; i < p->coll.len; i++)
        list[i] = &p->coll.at[i];
    qsort(list, p->coll.len, sizeof(*list), by_issued);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *c = list[i];
        int64_t from = c->start;

        if (!p->device && c->call != TRACE_NONE) {
            int64_t called = trace_end(&p->t->cpu.at[c->call]);
            from = called < from ? called : from;
        }
        from = from < before ? before : from;
        before = c->end > before ? c->end : before;
        const struct host_wait *held = wait_at(wait, n_wait, c->end);
        int64_t end = held != NULL && held->last == c->end ? held->end : c->end;
        out[c - p->coll.at] = (struct hold){.from = from, .end = end > from ? end : from};
    }
    find_waits(p, a, out);
    return out;
}

/* ---- laws ---- */

struct sample {
    uint64_t what; /* measured_case() */
    double size, us, host;
    double share; /* of its time, something computes */
};

typedef VEC(struct sample) samples;

static int by_sample(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;

    if (x->what != y->what)
        return x->what < y->what ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static int by_number(const void *a, const void *b)
{
    const int64_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* By step: is it one of the middle half by time of those that are used? */
static const bool *middle_steps(const struct trace_part *p, struct tie_steps steps, struct arena *a)
{
    int64_t *time = arena_array(a, int64_t, p->step.len + 1);
    bool *used = arena_zeroed(a, p->step.len + 1);
    uint32_t n = 0;

    for (uint32_t i = 0; i < p->step.len; i++)
        if (step_is_used(steps, p->step.at[i].number))
            time[n++] = p->step.at[i].x.step;
    qsort(time, n, sizeof(*time), by_number);
    for (uint32_t i = 0; n > 0 && i < p->step.len; i++) {
        int64_t t = p->step.at[i].x.step;
        used[i] = step_is_used(steps, p->step.at[i].number) && t >= time[n / 4] &&
                  t <= time[n - 1 - n / 4];
    }
    return used;
}

static void gather(const struct trace_part *p, struct tie_steps steps,
                   const struct measured_cluster *c, struct arena *a, samples *out)
{
    const struct hold *hold = trace_holds(p, a);
    const bool *used = middle_steps(p, steps, a);
    struct beside_covers cover;

    beside_covers(p, a, &cover);
    for (uint32_t i = 0; i < p->coll.len; i++) {
        const struct trace_coll *x = &p->coll.at[i];
        const struct hold *h = &hold[i];

        if (!measured_counts(x) || x->step == TRACE_NONE || !used[x->step])
            continue;
        double ps = (double)(h->end - h->from - h->wait), host = ps - fmin((double)x->transfer, ps),
               share = beside_share(&cover.compute, h->from + h->wait, h->end),
               alone = beside_alone(1, share, c->beside.transfer) / PS_PER_US;
        struct sample s = {measured_case(p, x, c->per_node), (double)x->bytes, ps * alone,
                           host * alone, share};
        vec_push_in(a, out, s);
    }
}

/* ---- latency ---- */

/* Sizes that are close to each other do not tell what a small message takes: the difference of two
 * times that vary is taken for their latency. Below the smallest size, `fixed` remains, and the
 * rest is in proportion. */
static void smaller_sizes(struct measured_coll *m, double fixed, struct arena *a)
{
    enum { HALVES = 12 };
    struct measured_point *at = arena_array(a, struct measured_point, m->n + HALVES);
    double size = m->at[0].size, us = m->at[0].us, least = fmin(fixed, us);
    uint32_t n = 0;

    for (int k = HALVES; k > 0; k--)
        if (ldexp(size, -k) >= 1)
            at[n++] = (struct measured_point){floor(ldexp(size, -k)), least + ldexp(us - least, -k),
                                              0};
    memcpy(&at[n], m->at, m->n * sizeof(*at));
    m->at = at;
    m->n += n;
}

/* If nothing tells how much longer a transfer takes while something computes, those that ran while
 * nothing did make the law, if there are any. How many are left. */
static uint32_t leave_alone(struct sample *s, uint32_t n)
{
    const double HALF = 0.5;
    uint32_t m = 0;

    for (uint32_t i = 0; i < n; i++)
        if (s[i].share < HALF)
            s[m++] = s[i];
    return m > 0 ? m : n;
}

/* The samples of one case, by size: the mean of each. Of their times, the host's part. */
static double means(struct measured_coll *m, const struct sample *s, uint32_t n, struct arena *a)
{
    double host = 0;

    for (uint32_t i = 0; i < n; i++)
        host += s[i].host / n;
    m->at = arena_array(a, struct measured_point, n + 1);
    m->n = 0;
    for (uint32_t i = 0, k; i < n; i = k) {
        double us = 0;
        for (k = i; k < n && s[k].size == s[i].size; k++)
            us += s[k].us;
        us /= k - i;
        if (us > 0)
            m->at[m->n++] = (struct measured_point){s[i].size, us, k - i};
    }
    return host;
}

static void law_of(const struct trace_part *p, struct tie_steps steps, const struct sample *s,
                   uint32_t n, struct arena *a, struct measured_cluster *c, struct measured_coll *m)
{
    m->fixed_us = means(m, s, n, a);
    if (!p->device && m->n > 0 && m->at[m->n - 1].size < HOLD_APART * m->at[0].size) {
        double us = barrier_round_us(p, steps, m->p);
        c->one_size = true;
        c->round_us = us > 0 ? us : c->round_us;
        if (m->n > 1 || us > 0)
            smaller_sizes(m, m->fixed_us + us * (double)message_rounds(m->kind, m->p), a);
    }
    measured_fit(m, a);
}

void hold_laws(const struct trace_part *part, uint32_t n, struct tie_steps steps, struct arena *a,
               struct measured_cluster *c)
{
    samples all = {NULL, 0, 0};

    for (uint32_t i = 0; i < n; i++)
        if (part[i].t->rank == part[0].t->rank)
            gather(&part[i], steps, c, a, &all);
    if (all.len > 0)
        qsort(all.at, all.len, sizeof(*all.at), by_sample);
    for (uint32_t i = 0, k; i < all.len; i = k) {
        for (k = i; k < all.len && all.at[k].what == all.at[i].what;)
            k++;
        uint32_t left = c->beside.transfer > 0 ? k - i : leave_alone(&all.at[i], k - i);
        for (uint32_t j = 0; j < c->n_coll; j++)
            if (c->coll[j].what == all.at[i].what)
                law_of(part, steps, &all.at[i], left, a, c, &c->coll[j]);
    }
}
