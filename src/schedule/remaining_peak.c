#include "base/csr.h"
#include "schedule/remaining_peak.h"

#include "plan/liveness.h"
#include "schedule/schedule.h"

/* A tree of maxima. Leaves are positions of the order. A leaf holds the bytes that are live when
 * its op has allocated; if the op was taken out of turn, a value below everything. Ranges are added
 * to lazily: value of a node = max of its children + its own addend. There is one more leaf before
 * the first position and at least one after the last: every range lies between two leaves.
 *
 * No leaf is above the limit. That of an op that is taken in turn stays as it is: what is added
 * later begins behind it. */
#define GONE (INT64_MIN / 4)

struct rest_node {
    int64_t most, more;
};

struct rest {
    const struct problem *p;
    const uint32_t *order;
    uint32_t *at; /* [op] its position */
    uint32_t n, n_leaf, first;
    struct rest_node *tree, *tree_before; /* before: as it was at the beginning */
    int64_t limit, now, now_before;       /* now: bytes that are live */
    bool *gone;                           /* [position] */
    uint32_t *use_at, *use;               /* [op] buffers that it keeps alive */
    uint32_t *sorted;  /* positions of users, ascending, in the layout of the problem's succ */
    uint32_t *last_at; /* [buf] one past its last remaining user */
    uint32_t *stack_buf, *stack_at, n_stack; /* to undo a refused op */
};

/* ---- the tree ---- */

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static inline uint32_t leaf_of(const struct rest *r, uint32_t place)
{
    return r->n_leaf + 1 + place;
}

static inline int64_t most_of(const struct rest_node *t, uint32_t k)
{
    return max64(t[2 * k].most, t[2 * k + 1].most) + t[k].more;
}

/* Above k, as far as it makes a difference. */
static void climb(struct rest_node *t, uint32_t k)
{
    while ((k /= 2) > 0) {
        int64_t most = most_of(t, k);
        if (most == t[k].most)
            return;
        t[k].most = most;
    }
}

static inline void add_to(struct rest_node *x, int64_t v)
{
    x->most += v;
    x->more += v;
}

static void add(struct rest *r, uint32_t from, uint32_t to, int64_t v)
{
    struct rest_node *t = r->tree;
    uint32_t i = leaf_of(r, from) - 1, j = leaf_of(r, to);

    if (from >= to || v == 0)
        return;
    while ((i ^ j) != 1) {
        if (!(i & 1))
            add_to(&t[i + 1], v);
        if (j & 1)
            add_to(&t[j - 1], v);
        i /= 2;
        j /= 2;
        t[i].most = most_of(t, i);
        t[j].most = most_of(t, j);
    }
    climb(t, i);
}

static int64_t most_between(const struct rest *r, uint32_t from, uint32_t to)
{
    const struct rest_node *t = r->tree;
    uint32_t i = leaf_of(r, from) - 1, j = leaf_of(r, to);
    int64_t left = GONE, right = GONE;

    while ((i ^ j) != 1) {
        if (!(i & 1))
            left = max64(left, t[i + 1].most);
        if (j & 1)
            right = max64(right, t[j - 1].most);
        i /= 2;
        j /= 2;
        left += t[i].more;
        right += t[j].more;
    }
    left = max64(left, right);
    while ((i /= 2) > 0)
        left += t[i].more;
    return left;
}

static void set_leaf(struct rest *r, uint32_t place, int64_t v)
{
    r->tree[leaf_of(r, place)].most = v;
    climb(r->tree, leaf_of(r, place));
}

static void plant(struct rest *r, const struct live *l, struct arena *a)
{
    for (r->n_leaf = 4; r->n_leaf < r->n + 2;)
        r->n_leaf *= 2;
    size_t bytes = 2 * (size_t)r->n_leaf * sizeof(*r->tree);
    struct rest_node *t = r->tree = arena_zeroed(a, bytes);
    for (uint32_t i = 0; i < r->n_leaf; i++)
        t[r->n_leaf + i].most = GONE;
    for (uint32_t i = 0; i < r->n; i++)
        t[leaf_of(r, i)].most = l->post_alloc[r->order[i]];
    for (uint32_t i = r->n_leaf - 1; i > 0; i--)
        t[i].most = most_of(t, i);
    r->tree_before = memcpy(arena_array(a, struct rest_node, 2 * (size_t)r->n_leaf), t, bytes);
}

/* ---- the ops that are left ---- */

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
    r->now_before = r->now;
    sort_users(r, a);
    plant(r, &l, a);
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

void rest_restart(struct rest *r)
{
    memcpy(r->tree, r->tree_before, 2 * (size_t)r->n_leaf * sizeof(*r->tree));
    memset(r->gone, 0, r->n * sizeof(*r->gone));
    memcpy(r->last_at, r->p->succ_at + 1, r->p->n_buf * sizeof(*r->last_at));
    r->now = r->now_before;
    r->first = 0;
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

/* Is op the last that needs the buffer? Its bytes are then no longer live in between. */
static bool is_last(const struct rest *r, uint32_t b, uint32_t place)
{
    const struct problem *p = r->p;
    uint32_t end = r->last_at[b];

    return !(p->buf_flags[b] & PROBLEM_OUTPUT) && end > p->succ_at[b] &&
           r->sorted[end - 1] == place;
}

/* Not if the ops before its place need too much even if all that it frees is gone at once: most ops
 * that are refused are refused here, and nothing has to be undone. */
static bool may_fit(const struct rest *r, uint32_t x, int64_t kept)
{
    uint32_t place = r->at[x];

    if (place == r->first || kept <= 0)
        return true;
    for (uint32_t i = r->use_at[x]; i < r->use_at[x + 1]; i++)
        kept -= is_last(r, r->use[i], place) ? r->p->size_free[r->use[i]] : 0;
    return most_between(r, r->first, place) <= r->limit - kept;
}

bool rest_take(struct rest *r, uint32_t x)
{
    const struct problem *p = r->p;
    uint32_t place = r->at[x];
    assert(place < r->n && !r->gone[place]); /* each op is taken once */
    int64_t freed, alloc, kept = made(p, x, &alloc, &freed);
    int64_t own = r->tree[leaf_of(r, place)].most;

    if (r->now + alloc > r->limit || !may_fit(r, x, kept))
        return false;
    r->n_stack = 0;
    add(r, r->first, place, kept);
    for (uint32_t i = r->use_at[x]; i < r->use_at[x + 1]; i++)
        if (is_last(r, r->use[i], place))
            freed += shorten(r, r->use[i], place);
    if (place != r->first)
        set_leaf(r, place, GONE);
    if (r->tree[1].most <= r->limit) {
        r->gone[place] = true;
        r->now += alloc - freed;
        while (r->first < r->n && r->gone[r->first])
            r->first++;
        return true;
    }
    set_leaf(r, place, own);
    while (r->n_stack > 0) {
        uint32_t b = r->stack_buf[--r->n_stack], end = r->last_at[b], start = p->succ_at[b];
        add(r, end == start ? r->first : r->sorted[end - 1] + 1, place, p->size_free[b]);
        r->last_at[b] = r->stack_at[r->n_stack];
    }
    add(r, r->first, place, -kept);
    return false;
}
