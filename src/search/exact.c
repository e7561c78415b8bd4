#include "search/exact.h"

enum { MOST_LABELS = 60000, MOST_COMPARISONS = 3000000 };

/* One way to run a set of ops. */
struct label {
    struct label *next; /* of the same set */
    const struct label *from;
    uint32_t first; /* the op that came last, or the first of its node */
    int64_t
        at[]; /* the clock, channels, collectives; what is in the past is as late as the clock */
};

struct exact {
    const struct problem *p;
    const struct improve_options *o;
    struct arena *a;
    uint32_t n, n_at;
    uint32_t need[EXACT_MOST_OPS];    /* [first of a node] set of ops it needs */
    uint32_t count[EXACT_MOST_OPS];   /* [first of a node] its ops; 0 for the others */
    uint32_t channel[EXACT_MOST_OPS]; /* [collective] where its channel is in `at` */
    uint32_t own[EXACT_MOST_OPS];     /* [collective] where its end is in `at` */
    uint32_t waits[EXACT_MOST_OPS];   /* [collective] set of its waits */
    int64_t alloc[EXACT_MOST_OPS];
    uint32_t *users;       /* [buf] set of ops that make it or keep it alive */
    struct label **labels; /* [set] */
    uint32_t n_label, n_comparison;
    int64_t beat;
};

static inline uint32_t bit(uint32_t x)
{
    return UINT32_C(1) << x;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t time_of(const struct exact *s, uint32_t x)
{
    return problem_is_wait(s->p, x) ? 0 : s->o->ps != NULL ? s->o->ps[x] : s->p->ps[x];
}

/* ---- the problem as sets ---- */

static void find_channels(struct exact *s)
{
    const struct problem *p = s->p;

    s->n_at = 1;
    for (uint32_t x = 0; x < s->n; x++) {
        if (!problem_is_coll(p, x))
            continue;
        s->channel[x] = 0;
        for (uint32_t y = 0; y < x && s->channel[x] == 0; y++)
            if (problem_is_coll(p, y) && p->group[y] == p->group[x])
                s->channel[x] = s->channel[y];
        if (s->channel[x] == 0)
            s->channel[x] = s->n_at++;
        s->own[x] = s->n_at++;
    }
    for (uint32_t x = 0; x < s->n; x++)
        for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
            s->waits[p->wait[k]] |= bit(x);
}

static void find_sets(struct exact *s, const struct improve_edges *e)
{
    const struct problem *p = s->p;

    for (uint32_t x = 0, end; x < s->n; x = end) {
        uint32_t own = 0;
        end = x + 1;
        while (p->anchor != NULL && end < s->n && p->anchor[end] == p->anchor[x])
            end++;
        s->count[x] = end - x;
        for (uint32_t y = x; y < end; y++) {
            own |= bit(y);
            for (uint32_t k = e->need_at[y]; k < e->need_at[y + 1]; k++)
                s->need[x] |= bit(e->need[k]);
        }
        s->need[x] &= ~own;
    }
    s->users = arena_zeroed(s->a, p->n_buf * sizeof(*s->users));
    for (uint32_t b = 0; b < p->n_buf; b++) {
        for (uint32_t k = p->succ_at[b]; k < p->succ_at[b + 1]; k++)
            s->users[b] |= bit(p->succ[k]);
        if (p->producer[b] != PROBLEM_NONE) {
            s->users[b] |= bit(p->producer[b]);
            s->alloc[p->producer[b]] += p->size_alloc[b];
        }
    }
}

/* Bytes live after these ops. */
static int64_t live_after(const struct exact *s, uint32_t set)
{
    const struct problem *p = s->p;
    int64_t live = 0;

    for (uint32_t b = 0; b < p->n_buf; b++) {
        if (p->producer[b] != PROBLEM_NONE && !(set & bit(p->producer[b])))
            continue;
        live += p->size_alloc[b];
        if (!(p->buf_flags[b] & PROBLEM_OUTPUT) && (s->users[b] & ~set) == 0)
            live -= p->size_free[b];
    }
    return live;
}

/* Is there memory for the ops of this node after that set? */
static bool fits(const struct exact *s, uint32_t set, int64_t live, uint32_t first)
{
    for (uint32_t x = first; x < first + s->count[first]; x++) {
        if (x > first)
            live = live_after(s, set);
        if (live + s->alloc[x] > s->o->limit)
            return false;
        set |= bit(x);
    }
    return true;
}

/* ---- time ---- */

static void run_op(const struct exact *s, uint32_t x, int64_t *at)
{
    const struct problem *p = s->p;
    int64_t ps = time_of(s, x);

    at[0] += s->o->launch_ps;
    if (problem_is_coll(p, x)) {
        int64_t *channel = &at[s->channel[x]];
        *channel = at[s->own[x]] = max64(at[0], *channel) + ps;
        if (!problem_is_async(p, x))
            at[0] = *channel;
        return;
    }
    for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
        at[0] = max64(at[0], at[s->own[p->wait[k]]]);
    at[0] += ps;
}

/* What has ended counts no more. */
static void tidy(const struct exact *s, uint32_t set, int64_t *at)
{
    for (uint32_t x = 0; x < s->n; x++) {
        if (!problem_is_coll(s->p, x))
            continue;
        bool pending = (set & bit(x)) && (s->waits[x] & ~set) != 0;
        at[s->own[x]] = pending ? max64(at[s->own[x]], at[0]) : at[0];
        at[s->channel[x]] = max64(at[s->channel[x]], at[0]);
    }
}

/* No way to go on takes less. */
static int64_t least_step(const struct exact *s, uint32_t set, const int64_t *at)
{
    int64_t least = at[0], work[2 * EXACT_MOST_OPS + 1] = {0};

    for (uint32_t x = 0; x < s->n; x++) {
        if (set & bit(x))
            continue;
        least += s->o->launch_ps;
        if (problem_is_coll(s->p, x))
            work[s->channel[x]] += time_of(s, x);
        else
            least += time_of(s, x);
    }
    for (uint32_t x = 0; x < s->n; x++)
        if (problem_is_coll(s->p, x))
            least = max64(least, at[s->channel[x]] + work[s->channel[x]]);
    return least;
}

/* ---- the search ---- */

static bool is_later_in_none(const struct exact *s, const struct label *x, const struct label *y)
{
    for (uint32_t i = 0; i < s->n_at; i++)
        if (x->at[i] > y->at[i])
            return false;
    return true;
}

/* Adds a label to those of a set, unless another makes it superfluous; removes those that it makes
 * superfluous. */
static void add(struct exact *s, uint32_t set, struct label *x)
{
    struct label **at = &s->labels[set];

    for (struct label *y = *at; y != NULL; y = y->next, s->n_comparison++)
        if (is_later_in_none(s, y, x))
            return;
    while (*at != NULL) {
        if (is_later_in_none(s, x, *at))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    x->next = s->labels[set];
    s->labels[set] = x;
}

static void go_on(struct exact *s, uint32_t set, uint32_t first)
{
    uint32_t next = set;

    for (uint32_t x = first; x < first + s->count[first]; x++)
        next |= bit(x);
    for (const struct label *l = s->labels[set]; l != NULL; l = l->next) {
        struct arena_mark mark = arena_mark(s->a);
        struct label *x = arena_alloc(s->a, sizeof(*x) + s->n_at * sizeof(*x->at));
        memcpy(x->at, l->at, s->n_at * sizeof(*x->at));
        for (uint32_t y = first; y < first + s->count[first]; y++)
            run_op(s, y, x->at);
        tidy(s, next, x->at);
        if (least_step(s, next, x->at) >= s->beat) {
            arena_release(s->a, mark);
            continue;
        }
        x->from = l;
        x->first = first;
        s->n_label++;
        add(s, next, x);
    }
}

/* False: there are too many ways. */
static bool run(struct exact *s, uint32_t all)
{
    for (uint32_t set = 0; set < all; set++) {
        if (s->labels[set] == NULL)
            continue;
        int64_t live = live_after(s, set);
        for (uint32_t x = 0; x < s->n; x++)
            if (s->count[x] > 0 && !(set & bit(x)) && (s->need[x] & ~set) == 0 &&
                fits(s, set, live, x))
                go_on(s, set, x);
        if (s->n_label > MOST_LABELS || s->n_comparison > MOST_COMPARISONS)
            return false;
    }
    return true;
}

static void write_order(const struct exact *s, const struct label *l, uint32_t *order)
{
    for (uint32_t n = s->n; l->from != NULL; l = l->from)
        for (uint32_t k = s->count[l->first]; k-- > 0;)
            order[--n] = l->first + k;
}

enum exact_outcome exact_order(const struct problem *p, const struct improve_edges *e,
                               const struct improve_options *o, uint32_t *order, int64_t *step,
                               struct arena *a)
{
    struct exact s = {.p = p, .o = o, .a = a, .n = p->n_op, .beat = *step};

    if (s.n == 0 || s.n > EXACT_MOST_OPS)
        return EXACT_OPEN;
    uint32_t all = (uint32_t)((UINT64_C(1) << s.n) - 1);
    find_channels(&s);
    find_sets(&s, e);
    s.labels = arena_zeroed(a, ((size_t)all + 1) * sizeof(struct label *));
    s.labels[0] = arena_zeroed(a, sizeof(struct label) + s.n_at * sizeof(int64_t));
    if (!run(&s, all))
        return EXACT_OPEN;
    const struct label *best = NULL;
    for (const struct label *l = s.labels[all]; l != NULL; l = l->next) {
        int64_t took = least_step(&s, all, l->at);
        if (best == NULL || took < *step) {
            best = l;
            *step = took;
        }
    }
    if (best == NULL)
        return EXACT_BEST;
    write_order(&s, best, order);
    return EXACT_FASTER;
}
