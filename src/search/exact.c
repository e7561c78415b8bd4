#include "search/exact.h"

#include <stdlib.h>

#include "search/priced.h"

/* One way to run a set of ops. */
struct label {
    struct label *next; /* of the same set */
    const struct label *from;
    uint32_t first; /* the op that came last, or the first of its node */
    int64_t
        at[]; /* the clock, channels, collectives; what is in the past is as late as the clock */
};

enum { MOST = EXACT_MOST_OPS };

/* Ops are known by their place in the window. */
struct exact {
    struct priced *s;
    struct arena *a;
    uint32_t from, n, n_at;
    int64_t limit, beat;
    uint32_t need[MOST];        /* [first of a node] set of ops it needs */
    uint32_t count[MOST];       /* [first of a node] its ops; 0 for the others */
    uint32_t channel[MOST];     /* [collective] where its channel is in `at` */
    uint32_t own[MOST];         /* [collective] where its end is in `at` */
    uint32_t waits[MOST];       /* [collective] set of its waits */
    uint32_t waited[MOST];      /* [wait] set of its collectives … */
    int64_t not_before[MOST];   /* … and the end of those before the window */
    int64_t left[2 * MOST + 1]; /* by place in `at`: from then to the end of the step, behind it */
    uint32_t n_buf;
    int64_t *size;         /* [buf that may be freed in the window] */
    uint32_t *users;       /* [buf] set of ops that make it or keep it alive */
    struct label **labels; /* [set] */
    struct exact_budget *budget;
};

static inline uint32_t bit(uint32_t x)
{
    return UINT32_C(1) << x;
}

static inline int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static uint32_t id(const struct exact *x, uint32_t k)
{
    return x->s->order[x->from + k];
}

static const struct priced_op *op(const struct exact *x, uint32_t k)
{
    return &x->s->op[id(x, k)];
}

static bool is_coll(const struct exact *x, uint32_t k)
{
    return problem_is_coll(x->s->p, id(x, k));
}

/* The place of an op in the window; `n` if it is not in it. */
static uint32_t place(const struct exact *x, uint32_t id)
{
    uint32_t at = x->s->pos[id];

    return at >= x->from && at - x->from < x->n ? at - x->from : x->n;
}

/* ---- the problem as sets ---- */

static void find_channels(struct exact *x, int64_t *at)
{
    x->n_at = 1;
    at[0] = x->s->clock[x->from];
    x->left[0] = x->s->tail[x->from + x->n];
    for (uint32_t k = 0; k < x->n; k++) {
        if (!is_coll(x, k))
            continue;
        x->channel[k] = 0;
        for (uint32_t j = 0; j < k && x->channel[k] == 0; j++)
            if (is_coll(x, j) && op(x, j)->a == op(x, k)->a)
                x->channel[k] = x->channel[j];
        if (x->channel[k] == 0) {
            x->channel[k] = x->n_at;
            x->left[x->n_at] = priced_rest(x->s, id(x, k), x->from + x->n);
            at[x->n_at++] = priced_channel(x->s, id(x, k), x->from);
        }
        x->own[k] = x->n_at;
        x->left[x->n_at] = priced_waits(x->s, id(x, k), x->from + x->n);
        at[x->n_at++] = 0;
    }
}

static void find_waits(struct exact *x)
{
    const struct problem *p = x->s->p;

    for (uint32_t k = 0; k < x->n; k++) {
        uint32_t w = id(x, k);
        for (uint32_t i = p->wait_at[w]; i < p->wait_at[w + 1]; i++) {
            uint32_t c = place(x, p->wait[i]);
            if (c == x->n) {
                x->not_before[k] = max64(x->not_before[k], x->s->end[p->wait[i]]);
                continue;
            }
            x->waits[c] |= bit(k);
            x->waited[k] |= bit(c);
        }
    }
}

static void find_nodes(struct exact *x, const struct improve_edges *e)
{
    const struct problem *p = x->s->p;

    for (uint32_t k = 0, end; k < x->n; k = end) {
        uint32_t own = 0;
        end = k + 1;
        while (end < x->n && problem_anchor(p, id(x, end)) == problem_anchor(p, id(x, k)))
            end++;
        x->count[k] = end - k;
        for (uint32_t j = k; j < end; j++) {
            own |= bit(j);
            for (uint32_t i = e->need_at[id(x, j)]; i < e->need_at[id(x, j) + 1]; i++) {
                uint32_t y = place(x, e->need[i]);
                x->need[k] |= y < x->n ? bit(y) : 0;
            }
        }
        x->need[k] &= ~own;
    }
}

/* Buffers whose last use is in the window. */
static void find_buffers(struct exact *x)
{
    struct priced *s = x->s;
    uint32_t most = 0;

    for (uint32_t k = 0; k < x->n; k++)
        most += s->use_at[id(x, k) + 1] - s->use_at[id(x, k)];
    x->size = arena_array(x->a, int64_t, most);
    x->users = arena_zeroed(x->a, most * sizeof(*x->users));
    uint32_t first = priced_marks(s, most);
    for (uint32_t k = 0; k < x->n; k++) {
        for (uint32_t i = s->use_at[id(x, k)]; i < s->use_at[id(x, k) + 1]; i++) {
            struct priced_buf *b = &s->buf[s->use[i]];
            if (b->last >= x->from + x->n)
                continue;
            if (b->mark < first) {
                b->mark = first + x->n_buf;
                x->size[x->n_buf++] = b->size;
            }
            x->users[b->mark - first] |= bit(k);
        }
    }
}

/* Bytes live after these ops. */
static int64_t live_after(const struct exact *x, uint32_t set)
{
    int64_t live = x->s->live[x->from];

    for (uint32_t k = 0; k < x->n; k++)
        live += set & bit(k) ? op(x, k)->alloc : 0;
    for (uint32_t b = 0; b < x->n_buf; b++)
        live -= (x->users[b] & ~set) == 0 ? x->size[b] : 0;
    return live;
}

/* Is there memory for the ops of this node after that set? */
static bool fits(const struct exact *x, uint32_t set, int64_t live, uint32_t first)
{
    for (uint32_t k = first; k < first + x->count[first]; k++) {
        if (k > first)
            live = live_after(x, set);
        if (live + op(x, k)->alloc > x->limit)
            return false;
        set |= bit(k);
    }
    return true;
}

/* ---- time ---- */

static void run_op(const struct exact *x, uint32_t k, int64_t *at)
{
    const struct priced_op *o = op(x, k);

    at[0] += o->ps;
    if (is_coll(x, k)) {
        int64_t *channel = &at[x->channel[k]];
        *channel = at[x->own[k]] = max64(at[0], *channel) + o->comm_ps;
        if (!problem_is_async(x->s->p, id(x, k)))
            at[0] = *channel;
        return;
    }
    at[0] = max64(at[0], x->not_before[k]);
    for (uint32_t c = 0; c < x->n && x->waited[k] != 0; c++)
        if (x->waited[k] & bit(c))
            at[0] = max64(at[0], at[x->own[c]]);
}

/* What has ended counts no more. */
static void tidy(const struct exact *x, uint32_t set, int64_t *at)
{
    for (uint32_t k = 0; k < x->n; k++) {
        if (!is_coll(x, k))
            continue;
        bool pending = (set & bit(k)) && ((x->waits[k] & ~set) != 0 || x->left[x->own[k]] > 0);
        at[x->own[k]] = pending ? max64(at[x->own[k]], at[0]) : at[0];
        at[x->channel[k]] = max64(at[x->channel[k]], at[0]);
    }
}

/* No way to go on takes less; of all ops it is the step itself. */
static int64_t least_step(const struct exact *x, uint32_t set, const int64_t *at)
{
    int64_t least = at[0], work[2 * MOST + 1] = {0};

    for (uint32_t k = 0; k < x->n; k++) {
        if (set & bit(k))
            continue;
        least += op(x, k)->ps;
        if (is_coll(x, k))
            work[x->channel[k]] += op(x, k)->comm_ps;
    }
    least += x->left[0];
    for (uint32_t k = 0; k < x->n; k++) {
        if (!is_coll(x, k))
            continue;
        uint32_t c = x->channel[k];
        least = max64(least, at[c] + work[c] + x->left[c]);
        if (set & bit(k))
            least = max64(least, at[x->own[k]] + x->left[x->own[k]]);
    }
    return least;
}

/* ---- the search ---- */

static bool is_later_in_none(const struct exact *x, const struct label *l, const struct label *m)
{
    for (uint32_t i = 0; i < x->n_at; i++)
        if (l->at[i] > m->at[i])
            return false;
    return true;
}

static void spend(uint32_t *left)
{
    *left -= *left > 0;
}

/* Adds a label to those of a set, unless another makes it superfluous; removes those that it makes
 * superfluous. */
static void add(struct exact *x, uint32_t set, struct label *l)
{
    struct label **at = &x->labels[set];

    for (struct label *m = *at; m != NULL; m = m->next) {
        spend(&x->budget->comparisons);
        if (is_later_in_none(x, m, l))
            return;
    }
    while (*at != NULL) {
        if (is_later_in_none(x, l, *at))
            *at = (*at)->next;
        else
            at = &(*at)->next;
    }
    l->next = x->labels[set];
    x->labels[set] = l;
}

static void go_on(struct exact *x, uint32_t set, uint32_t first)
{
    uint32_t next = set;

    for (uint32_t k = first; k < first + x->count[first]; k++)
        next |= bit(k);
    for (const struct label *l = x->labels[set]; l != NULL; l = l->next) {
        struct arena_mark mark = arena_mark(x->a);
        struct label *m = arena_alloc(x->a, sizeof(*m) + x->n_at * sizeof(*m->at));
        memcpy(m->at, l->at, x->n_at * sizeof(*m->at));
        for (uint32_t k = first; k < first + x->count[first]; k++)
            run_op(x, k, m->at);
        tidy(x, next, m->at);
        if (least_step(x, next, m->at) >= x->beat) {
            arena_release(x->a, mark);
            continue;
        }
        m->from = l;
        m->first = first;
        spend(&x->budget->labels);
        add(x, next, m);
    }
}

/* False: there are too many ways. */
static bool run(struct exact *x, uint32_t all)
{
    for (uint32_t set = 0; set < all; set++) {
        if (x->labels[set] == NULL)
            continue;
        int64_t live = live_after(x, set);
        for (uint32_t k = 0; k < x->n; k++)
            if (x->count[k] > 0 && !(set & bit(k)) && (x->need[k] & ~set) == 0 &&
                fits(x, set, live, k))
                go_on(x, set, k);
        if (x->budget->labels == 0 || x->budget->comparisons == 0)
            return false;
    }
    return true;
}

static void write_order(const struct exact *x, const struct label *l, uint32_t *ops)
{
    for (uint32_t n = x->n; l->from != NULL; l = l->from)
        for (uint32_t k = x->count[l->first]; k-- > 0;)
            ops[--n] = id(x, l->first + k);
}

static enum exact_outcome search(struct exact *x, const struct improve_edges *e, uint32_t *ops)
{
    uint32_t all = (uint32_t)((UINT64_C(1) << x->n) - 1);
    struct label *first = arena_zeroed(x->a, sizeof(*first) + (2 * MOST + 1) * sizeof(int64_t));
    const struct label *best = NULL;

    find_channels(x, first->at);
    find_waits(x);
    find_nodes(x, e);
    find_buffers(x);
    x->labels = arena_zeroed(x->a, ((size_t)all + 1) * sizeof(struct label *));
    x->labels[0] = first;
    if (!run(x, all))
        return EXACT_OPEN;
    for (const struct label *l = x->labels[all]; l != NULL; l = l->next) {
        int64_t took = least_step(x, all, l->at);
        if (best == NULL || took < x->beat) {
            best = l;
            x->beat = took;
        }
    }
    if (best == NULL)
        return EXACT_BEST;
    write_order(x, best, ops);
    return EXACT_FASTER;
}

enum exact_outcome exact_window(struct priced *s, const struct improve_edges *e, int64_t limit,
                                uint32_t from, uint32_t to, int64_t beat,
                                struct exact_budget *budget, uint32_t *ops, struct arena *a)
{
    struct exact x = {.s = s,
                      .a = a,
                      .from = from,
                      .n = to - from,
                      .limit = limit,
                      .beat = beat,
                      .budget = budget};

    if (x.n == 0 || x.n > EXACT_MOST_OPS)
        return EXACT_OPEN;
    /* What starts before it and ends behind it takes as long as before. */
    if (priced_crossing(s, from, to) >= beat)
        return EXACT_BEST;
    struct arena_mark mark = arena_mark(a);
    enum exact_outcome found = search(&x, e, ops);
    arena_release(a, mark);
    return found;
}

enum exact_outcome exact_order(const struct problem *p, const struct improve_edges *e,
                               const struct improve_options *o, uint32_t *order, int64_t *step,
                               struct arena *a)
{
    struct exact_budget budget = {.labels = 60000, .comparisons = 3000000};
    struct priced s;
    uint32_t ops[EXACT_MOST_OPS];

    if (p->n_op == 0 || p->n_op > EXACT_MOST_OPS)
        return EXACT_OPEN;
    priced_begin(&s, p, o->ps, o->launch_ps, a);
    priced_set(&s, order);
    enum exact_outcome found = exact_window(&s, e, o->limit, 0, p->n_op, *step, &budget, ops, a);
    if (found == EXACT_FASTER) {
        *step = priced_step(&s, 0, p->n_op, ops);
        memcpy(order, ops, p->n_op * sizeof(*order));
    }
    return found;
}

/* ---- windows ---- */

struct spot {
    uint32_t at;
    int64_t stood;
};

static int by_stood(const void *a, const void *b)
{
    const struct spot *x = a, *y = b;

    if (x->stood != y->stood)
        return x->stood > y->stood ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Where the stream stands, and where a transfer that the step waits for is issued. */
static uint32_t find_spots(const struct priced *s, struct spot *spot)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        int64_t stood = s->clock[i + 1] - s->clock[i] - s->op[s->order[i]].ps;
        if (stood > 0 && s->clock[i + 1] + s->tail[i + 1] == s->step)
            spot[n++] = (struct spot){i, stood};
    }
    for (uint32_t k = 0; k < s->n_coll[s->n]; k++) {
        uint32_t x = s->coll[k], i = s->pos[x];
        const struct priced_op *o = &s->op[x];
        if (s->via[k] == s->step && s->end[x] - o->comm_ps == s->clock[i] + o->ps)
            spot[n++] = (struct spot){i, o->comm_ps};
    }
    qsort(spot, n, sizeof(*spot), by_stood);
    return n;
}

/* A window around a position that cuts no node; false: the node there has too many ops. */
static bool window_at(const struct priced *s, uint32_t at, uint32_t *from, uint32_t *to)
{
    enum { BEFORE = 6, BEHIND = 6 };
    const struct problem *p = s->p;

    *from = at > BEFORE ? at - BEFORE : 0;
    *to = s->n - at > BEHIND ? at + BEHIND : s->n;
    while (*from > 0 &&
           problem_anchor(p, s->order[*from]) == problem_anchor(p, s->order[*from - 1]))
        --*from;
    while (*to < s->n && problem_anchor(p, s->order[*to]) == problem_anchor(p, s->order[*to - 1]))
        ++*to;
    return *to - *from <= EXACT_MOST_OPS;
}

/* The best arrangement of one window, with a part of what is left of the budget. */
static bool solve(struct priced *s, const struct improve_edges *e, int64_t limit, uint32_t at,
                  struct exact_budget *budget, struct arena *a)
{
    enum { LABELS = 4000, COMPARISONS = 200000, AT_LEAST = 50 };
    struct exact_budget part = {LABELS, COMPARISONS};
    uint32_t from, to, ops[EXACT_MOST_OPS];

    if (!window_at(s, at, &from, &to))
        return false;
    bool better = exact_window(s, e, limit, from, to, s->step, &part, ops, a) == EXACT_FASTER;
    if (better)
        priced_take(s, from, to, ops);
    uint32_t labels = LABELS - part.labels + AT_LEAST;
    budget->labels -= labels < budget->labels ? labels : budget->labels;
    return better;
}

uint32_t exact_windows(struct priced *s, const struct improve_edges *e, int64_t limit,
                       struct exact_budget *budget, struct arena *a)
{
    struct spot *spot = arena_array(a, struct spot, 2 * (size_t)s->n);
    uint32_t changed = 0, before = 1;

    while (changed != before && budget->labels > 0) {
        uint32_t n = find_spots(s, spot);
        before = changed;
        for (uint32_t i = 0; i < n && budget->labels > 0; i++)
            changed += solve(s, e, limit, spot[i].at, budget, a);
    }
    return changed;
}
