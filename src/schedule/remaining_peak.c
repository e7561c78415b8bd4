#include "base/csr.h"
#include "schedule/remaining_peak.h"

#include "plan/liveness.h"
#include "schedule/schedule.h"

/* Leaves are positions of the order. A leaf holds the bytes that are live when its op has
 * allocated; if the op is done, a value below everything. Ranges are added to lazily: value of a
 * node = max of its children + its own addend. */
#define GONE (INT64_MIN / 4)

struct rest {
    const struct problem *p;
    const uint32_t *order;
    uint32_t *at; /* [op] its position */
    uint32_t n, n_leaf, first;
    int64_t *most, *more;   /* [tree node] */
    int64_t limit, now;     /* now: bytes that are live */
    bool *gone;             /* [position] */
    uint32_t *use_at, *use; /* [op] buffers that it keeps alive */
    uint32_t *sorted;       /* positions of users, ascending, in the layout of the problem's succ */
    uint32_t *last_at;      /* [buf] one past its last remaining user */
    uint32_t *stack_buf, *stack_at, n_stack; /* to undo a refused op */
};

static void add(struct rest *r, uint32_t from, uint32_t to, int64_t v)
{
    uint32_t i = from + r->n_leaf, j = to + r->n_leaf, lo = i, hi = j - 1;

    if (from >= to || v == 0)
        return;
    for (; i < j; i /= 2, j /= 2) {
        if (i & 1) {
            r->most[i] += v;
            r->more[i] += v;
            i++;
        }
        if (j & 1) {
            j--;
            r->most[j] += v;
            r->more[j] += v;
        }
    }
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t k = (side ? hi : lo) / 2; k > 0; k /= 2) {
            int64_t m = r->most[2 * k] > r->most[2 * k + 1] ? r->most[2 * k] : r->most[2 * k + 1];
            r->most[k] = m + r->more[k];
        }
}

/* Sorts the users of every buffer by position, in one walk over the order. */
static void sort_users(struct rest *r, struct arena *a)
{
    const struct problem *p = r->p;
    uint32_t total = p->succ_at[p->n_buf], *fill;

    r->sorted = arena_array(a, uint32_t, total);
    r->use_at = csr_begin(a, p->n_op);
    r->use = arena_array(a, uint32_t, total);
    fill = arena_array(a, uint32_t, p->n_buf);
    for (uint32_t i = 0; i < total; i++)
        csr_count(r->use_at, p->succ[i]);
    csr_sum(r->use_at, p->n_op);
    for (uint32_t b = 0; b < p->n_buf; b++) {
        fill[b] = p->succ_at[b];
        for (uint32_t i = p->succ_at[b]; i < p->succ_at[b + 1]; i++)
            r->use[csr_place(r->use_at, p->succ[i])] = b;
    }
    for (uint32_t i = 0; i < p->n_op; i++)
        for (uint32_t k = r->use_at[r->order[i]]; k < r->use_at[r->order[i] + 1]; k++)
            r->sorted[fill[r->use[k]]++] = i;
}

struct rest *rest_begin(const struct problem *p, const uint32_t *order, double budget,
                        struct arena *a)
{
    struct rest *r = arena_new(a, struct rest);
    struct live l;
    uint32_t widest = 0;

    live_of(p, order, a, &l);
    r->p = p;
    r->n = p->n_op;
    r->order = memcpy(arena_array(a, uint32_t, p->n_op), order, p->n_op * sizeof(*order));
    r->at = l.at;
    r->gone = arena_zeroed(a, p->n_op);
    r->now = l.start;
    r->limit = l.peak + schedule_allowance(l.peak, budget < 0 ? 0 : budget);
    sort_users(r, a);
    for (r->n_leaf = 1; r->n_leaf < r->n;)
        r->n_leaf *= 2;
    r->most = arena_array(a, int64_t, 2 * (size_t)r->n_leaf);
    r->more = arena_zeroed(a, 2 * (size_t)r->n_leaf * sizeof(*r->more));
    for (uint32_t i = 0; i < r->n_leaf; i++)
        r->most[r->n_leaf + i] = i < r->n ? l.post_alloc[order[i]] : GONE;
    for (uint32_t i = r->n_leaf - 1; i > 0; i--)
        r->most[i] = r->most[2 * i] > r->most[2 * i + 1] ? r->most[2 * i] : r->most[2 * i + 1];
    r->last_at = arena_array(a, uint32_t, p->n_buf);
    for (uint32_t b = 0; b < p->n_buf; b++)
        r->last_at[b] = p->succ_at[b + 1];
    for (uint32_t x = 0; x < p->n_op; x++)
        if (r->use_at[x + 1] - r->use_at[x] > widest)
            widest = r->use_at[x + 1] - r->use_at[x];
    r->stack_buf = arena_array(a, uint32_t, widest);
    r->stack_at = arena_array(a, uint32_t, widest);
    return r;
}

uint32_t rest_first(const struct rest *r)
{
    return r->first < r->n ? r->order[r->first] : PROBLEM_NONE;
}

/* Buffer b is no longer needed by the op at `place`: users before it that are also done are
 * skipped, and the ops in between lose the bytes. Without remaining users, the bytes are freed at
 * once. */
static int64_t shorten(struct rest *r, uint32_t b, uint32_t place)
{
    const struct problem *p = r->p;
    uint32_t end = r->last_at[b], start = p->succ_at[b];

    r->stack_buf[r->n_stack] = b;
    r->stack_at[r->n_stack++] = end;
    while (end > start && (r->sorted[end - 1] == place || r->gone[r->sorted[end - 1]]))
        end--;
    r->last_at[b] = end;
    if (end == start) {
        add(r, r->first, place, -p->size_free[b]);
        return p->size_free[b];
    }
    add(r, r->sorted[end - 1] + 1, place, -p->size_free[b]);
    return 0;
}

/* What x adds to the ops before its position when it runs now: what it makes, minus what is freed
 * at once because it is unused. */
static int64_t made(const struct problem *p, uint32_t x, int64_t *alloc, int64_t *freed)
{
    *alloc = *freed = 0;
    for (uint32_t b = p->out_at[x]; b < p->out_at[x + 1]; b++) {
        *alloc += p->size_alloc[b];
        if (p->succ_at[b] == p->succ_at[b + 1] && !(p->buf_flags[b] & PROBLEM_OUTPUT))
            *freed += p->size_free[b];
    }
    return *alloc - *freed;
}

bool rest_take(struct rest *r, uint32_t x)
{
    const struct problem *p = r->p;
    uint32_t place = r->at[x];
    assert(place < r->n && !r->gone[place]); /* each op is taken once */
    int64_t freed, alloc, kept = made(p, x, &alloc, &freed), own = r->most[r->n_leaf + place];

    r->n_stack = 0;
    add(r, r->first, place, kept);
    for (uint32_t i = r->use_at[x]; i < r->use_at[x + 1]; i++) {
        uint32_t b = r->use[i], end = r->last_at[b];
        if (!(p->buf_flags[b] & PROBLEM_OUTPUT) && end > p->succ_at[b] &&
            r->sorted[end - 1] == place)
            freed += shorten(r, b, place);
    }
    add(r, place, place + 1, GONE - own);
    if (r->now + alloc <= r->limit && r->most[1] <= r->limit) {
        r->gone[place] = true;
        r->now += alloc - freed;
        while (r->first < r->n && r->gone[r->first])
            r->first++;
        return true;
    }
    add(r, place, place + 1, own - GONE);
    while (r->n_stack > 0) {
        uint32_t b = r->stack_buf[--r->n_stack], end = r->last_at[b], start = p->succ_at[b];
        add(r, end == start ? r->first : r->sorted[end - 1] + 1, place, p->size_free[b]);
        r->last_at[b] = r->stack_at[r->n_stack];
    }
    add(r, r->first, place, -kept);
    return false;
}
