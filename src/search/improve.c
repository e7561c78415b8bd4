#include "search/improve.h"

#include "base/threads.h"
#include "search/exact.h"
#include "search/priced.h"

/* A piece of the critical path that runs over a channel: the stream stands at `wait` for the last
 * of the collectives coll[from] … coll[to - 1], which run one after the other; the last in this
 * list is the first on the channel. */
struct stall {
    uint32_t wait; /* or a synchronous collective, or PROBLEM_NONE at the end of the step */
    uint32_t from, to;
};

struct climb {
    struct priced s;
    const struct improve_edges *e;
    struct improve_options o;
    uint64_t random;
    uint32_t *first;          /* [op] first op of its node */
    uint32_t *count;          /* [op] ops of its node */
    uint32_t *seen, round;    /* [op] the last closure that it was in */
    uint32_t *stack, *window; /* scratch */
    uint32_t n_stall, *coll;  /* of all stalls */
    struct stall *stall;
    bool known;   /* stalls are those of the order */
    int64_t over; /* how far beyond the limit an order may go on the way */
    uint32_t from, to;
    uint32_t *best;
    int64_t best_step, best_flight;
    struct improve_result result; /* but for its step */
};

/* splitmix64 */
static uint64_t draw(struct climb *c)
{
    uint64_t x = c->random += UINT64_C(0x9E3779B97F4A7C15);

    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static uint32_t below(struct climb *c, uint32_t n)
{
    return (uint32_t)((draw(c) >> 32) * n >> 32);
}

/* Short distances as often as long ones. */
static uint32_t distance(struct climb *c)
{
    uint32_t bits = below(c, 11);

    return 1 + (uint32_t)(draw(c) >> 40) % (UINT32_C(1) << bits);
}

/* ---- what the step waits for ---- */

static bool is_coll(const struct climb *c, uint32_t x)
{
    return problem_is_coll(c->s.p, x);
}

/* The collective whose end let the op at position i go on, or PROBLEM_NONE if it did not stand. */
static uint32_t held_by(const struct climb *c, uint32_t i)
{
    const struct priced *s = &c->s;
    const struct problem *p = s->p;
    uint32_t x = s->order[i];

    if (s->clock[i + 1] == s->clock[i] + s->op[x].ps)
        return PROBLEM_NONE;
    if (is_coll(c, x))
        return x;
    for (uint32_t k = p->wait_at[x]; k < p->wait_at[x + 1]; k++)
        if (s->end[p->wait[k]] == s->clock[i + 1])
            return p->wait[k];
    return PROBLEM_NONE;
}

/* Follows the collectives that x runs behind. Returns the position of the first of them. */
static uint32_t add_stall(struct climb *c, uint32_t wait, uint32_t x)
{
    const struct priced *s = &c->s;
    uint32_t n = c->n_stall > 0 ? c->stall[c->n_stall - 1].to : 0;
    struct stall *t = &c->stall[c->n_stall++];

    *t = (struct stall){wait, n, n};
    for (;;) {
        c->coll[t->to++] = x;
        int64_t start = s->end[x] - s->op[x].comm_ps;
        if (start == s->clock[s->pos[x]] + s->op[x].ps)
            return s->pos[x];
        x = s->before[x];
    }
}

/* Walks back along the critical path. */
static void find_stalls(struct climb *c)
{
    const struct priced *s = &c->s;
    uint32_t i = s->n;

    c->n_stall = 0;
    c->known = true;
    for (uint32_t k = s->n_coll[s->n]; s->clock[s->n] < s->step && k-- > 0;)
        if (s->end[s->coll[k]] == s->step) {
            i = add_stall(c, PROBLEM_NONE, s->coll[k]);
            break;
        }
    while (i-- > 0) {
        uint32_t x = held_by(c, i);
        if (x != PROBLEM_NONE)
            i = add_stall(c, s->order[i], x);
    }
}

/* ---- changes ----
 * An op moves to an earlier place together with all that it needs on the way, or to a later one
 * together with all that needs it. So every change keeps every dependence. */

enum { MOST_ALONG = 200 };

static uint32_t start_of(const struct climb *c, uint32_t position)
{
    return c->s.pos[c->first[c->s.order[position]]];
}

static uint32_t end_of(const struct climb *c, uint32_t position)
{
    uint32_t x = c->s.order[position];

    return c->s.pos[c->first[x]] + c->count[x];
}

static uint32_t add_node(struct climb *c, uint32_t x, uint32_t n)
{
    uint32_t first = c->first[x];

    for (uint32_t k = 0; k < c->count[x]; k++) {
        c->seen[first + k] = c->round;
        c->stack[n++] = first + k;
    }
    return n;
}

/* Marks x and all that must move with it inside the window. False: too many. */
static bool close_over(struct climb *c, uint32_t x, const uint32_t *at, const uint32_t *list)
{
    uint32_t n = 0;

    c->round++;
    n = add_node(c, x, n);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t y = c->stack[i];
        if (n > MOST_ALONG)
            return false;
        for (uint32_t k = at[y]; k < at[y + 1]; k++) {
            uint32_t z = list[k];
            if (c->seen[z] != c->round && c->s.pos[z] >= c->from && c->s.pos[z] < c->to)
                n = add_node(c, z, n);
        }
    }
    return true;
}

/* Those that are marked first, or last. */
static bool part(struct climb *c, bool marked_first)
{
    const uint32_t *order = c->s.order;

    while (c->from < c->to && (c->seen[order[c->from]] == c->round) == marked_first)
        c->from++;
    while (c->from < c->to && (c->seen[order[c->to - 1]] == c->round) != marked_first)
        c->to--;
    if (c->from == c->to)
        return false;
    uint32_t n = 0, m = 0, *late = c->stack; /* of no more use */
    for (uint32_t i = c->from; i < c->to; i++) {
        uint32_t x = order[i];
        if ((c->seen[x] == c->round) == marked_first)
            c->window[n++] = x;
        else
            late[m++] = x;
    }
    memcpy(c->window + n, late, m * sizeof(*late));
    return true;
}

/* x to the place of the op at this position, which comes before it. */
static bool pull(struct climb *c, uint32_t x, uint32_t to)
{
    c->from = start_of(c, to);
    c->to = end_of(c, c->s.pos[x]);
    return c->s.pos[c->first[x]] > c->from && close_over(c, x, c->e->need_at, c->e->need) &&
           part(c, true);
}

/* x behind the op at this position, which comes after it. */
static bool push(struct climb *c, uint32_t x, uint32_t to)
{
    c->from = start_of(c, c->s.pos[x]);
    c->to = end_of(c, to);
    return c->s.pos[x] < to && c->to > c->from + c->count[x] &&
           close_over(c, x, c->e->user_at, c->e->user) && part(c, false);
}

static bool pull_by(struct climb *c, uint32_t x, uint32_t far)
{
    uint32_t at = c->s.pos[x];

    return pull(c, x, at > far ? at - far : 0);
}

static bool push_by(struct climb *c, uint32_t x, uint32_t far)
{
    uint32_t at = c->s.pos[x], last = c->s.n - 1;

    return push(c, x, far < last - at ? at + far : last);
}

/* Some change to a stall. */
static bool change_stall(struct climb *c)
{
    const struct priced *s = &c->s;
    const struct stall *t = &c->stall[below(c, c->n_stall)];
    uint32_t some = c->coll[t->from + below(c, t->to - t->from)];
    uint32_t first = c->coll[t->to - 1], last = c->coll[t->from];
    bool has_wait = t->wait != PROBLEM_NONE && !is_coll(c, t->wait);

    switch (below(c, 8)) {
    case 0: return pull_by(c, first, distance(c)); /* start earlier */
    case 1: return pull_by(c, some, distance(c));
    case 2: /* pass the others on the channel */ return some != last && pull(c, last, s->pos[some]);
    case 3: return some != last && push(c, some, s->pos[last]);
    case 4: return push_by(c, some, distance(c));
    case 5:
    case 6: return has_wait && push_by(c, t->wait, distance(c));
    default: { /* something from behind the wait before it */
        if (!has_wait)
            return false;
        uint32_t at = s->pos[t->wait], from = at + distance(c);
        return from < s->n && pull(c, s->order[from], at);
    }
    }
}

static bool change_any(struct climb *c)
{
    uint32_t x = below(c, c->s.n);

    return draw(c) >> 63 ? pull_by(c, x, distance(c)) : push_by(c, x, distance(c));
}

/* ---- the search ---- */

static void keep_best(struct climb *c)
{
    const struct priced *s = &c->s;

    if (s->peak > c->o.limit || s->step > c->best_step ||
        (s->step == c->best_step && s->flight >= c->best_flight))
        return;
    c->best_step = s->step;
    c->best_flight = s->flight;
    memcpy(c->best, s->order, s->n * sizeof(*c->best));
}

/* Few ops: the search is short, and must go far to get everywhere. */
enum { SMALL = 64 };

/* How much worse than the present order the next one may be, as a share in 1/2^16: little as a
 * rule, less and less as a round goes on, sometimes more. Whole numbers, so that all machines draw
 * the same. */
static int64_t draw_slack(struct climb *c, int64_t left, int64_t all)
{
    uint64_t u = draw(c), bits = 0;

    /* About -log2 of a number between 0 and 1, in 1/256. */
    while (bits < 32 && !(u >> 63)) {
        u <<= 1;
        bits++;
    }
    int64_t rare = (int64_t)(bits * 256 + 255 - (u >> 55 & 255));
    return left * 256 / all * rare;
}

static int64_t share(int64_t whole, int64_t of_65536)
{
    return whole < INT64_MAX >> 32 ? whole * of_65536 / 65536 : whole / 65536 * of_65536;
}

/* Is the change that was made ready worth taking? */
static bool is_worth(struct climb *c, int64_t slack)
{
    struct priced *s = &c->s;
    int64_t step = priced_step(s, c->from, c->to, c->window);
    enum { SHARE = 3000 };

    if (step > s->step + share(c->best_step / (s->n <= SMALL ? s->n : SHARE), slack))
        return false;
    if (s->peak <= c->o.limit && step == s->step &&
        priced_flight(s, c->from, c->to, c->window) >= s->flight)
        return false;
    int64_t peak = priced_peak(s, c->from, c->to, c->window);
    if (peak <= c->o.limit)
        return true;
    return peak <= c->o.limit + share(c->o.limit / s->n * c->over, slack);
}

/* From an order that needs too much memory to one that does not, by changes that never need more.
 * False: none was found. */
static bool get_within_limit(struct climb *c, struct improve_result *out)
{
    struct priced *s = &c->s;

    for (int64_t left = c->o.evaluations; s->peak > c->o.limit && left > 0; left--) {
        if (!change_any(c))
            continue;
        out->evaluations++;
        if (priced_peak(s, c->from, c->to, c->window) <= s->peak)
            priced_take(s, c->from, c->to, c->window);
    }
    c->known = false;
    return s->peak <= c->o.limit;
}

/* Taking a change takes as long as pricing one for each so many ops. */
enum { TAKE_SHARE = 128 };

/* One round: at first also worse orders are taken, at last only better ones. */
static void run_round(struct climb *c, int64_t evaluations, struct improve_result *out)
{
    struct priced *s = &c->s;
    int64_t tries = 4 * evaluations, left = evaluations;

    while (left > 0 && tries-- > 0 && c->best_step > s->least) {
        if (!c->known)
            find_stalls(c);
        bool any = c->n_stall == 0 || below(c, 8) == 0;
        if (!(any ? change_any(c) : change_stall(c)))
            continue;
        left--;
        out->evaluations++;
        if (!is_worth(c, draw_slack(c, left, evaluations)))
            continue;
        priced_take(s, c->from, c->to, c->window);
        out->taken++;
        left -= s->n / TAKE_SHARE;
        c->known = false;
        keep_best(c);
    }
}

/* Several rounds if there are few ops, each from the best so far. They differ in how far beyond the
 * limit an order may go on the way: some are only reached so. */
static void run(struct climb *c, struct improve_result *out)
{
    static const int64_t over[] = {0, 1, 4, 16};
    enum { MOST_ROUNDS = 64, LEAST_AN_OP = 25 };
    int64_t rounds = c->s.n <= SMALL ? c->o.evaluations / LEAST_AN_OP / c->s.n + 1 : 1;

    if (rounds > MOST_ROUNDS)
        rounds = MOST_ROUNDS;

    for (int64_t i = 0; i < rounds && c->best_step > c->s.least; i++) {
        c->over = over[i % 4];
        run_round(c, c->o.evaluations / rounds, out);
        priced_set(&c->s, c->best);
        c->known = false;
    }
}

static void find_nodes(struct climb *c)
{
    const struct problem *p = c->s.p;

    for (uint32_t x = 0, end; x < p->n_op; x = end) {
        end = x + 1;
        while (p->anchor != NULL && end < p->n_op && p->anchor[end] == p->anchor[x])
            end++;
        for (uint32_t y = x; y < end; y++) {
            c->first[y] = x;
            c->count[y] = end - x;
        }
    }
}

/* Takes all the memory it will need. */
static void begin(struct climb *c, const struct problem *p, const struct improve_edges *e,
                  const struct improve_options *o, const uint32_t *order, struct arena *a)
{
    uint32_t n = p->n_op;

    *c = (struct climb){.e = e, .o = *o, .random = o->seed};
    priced_begin(&c->s, p, o->ps, o->launch_ps, a);
    priced_set(&c->s, order);
    c->first = arena_array(a, uint32_t, n);
    c->count = arena_array(a, uint32_t, n);
    c->seen = arena_zeroed(a, n * sizeof(*c->seen));
    c->stack = arena_array(a, uint32_t, n);
    c->window = arena_array(a, uint32_t, n);
    c->coll = arena_array(a, uint32_t, n);
    c->stall = arena_array(a, struct stall, (size_t)n + 1);
    c->best = arena_array(a, uint32_t, n);
    find_nodes(c);
    memcpy(c->best, order, n * sizeof(*order));
    c->best_step = c->s.step;
    c->best_flight = c->s.flight;
    c->result = (struct improve_result){.step_before = c->s.step, .least = c->s.least};
}

static void climb(void *arg)
{
    struct climb *c = arg;

    if (c->s.peak > c->o.limit) {
        c->best_step = INT64_MAX;
        if (get_within_limit(c, &c->result))
            keep_best(c);
    }
    if (c->s.n > 1 && c->best_step != INT64_MAX)
        run(c, &c->result);
}

static bool is_better(const struct climb *x, const struct climb *y)
{
    return x->best_step < y->best_step ||
           (x->best_step == y->best_step && x->best_flight < y->best_flight);
}

/* The best arrangement of each window around what the step still waits for. */
static void run_windows(struct climb *c, struct arena *a, struct improve_result *out)
{
    struct exact_budget budget = {.labels = c->o.windows};

    priced_set(&c->s, c->best);
    out->windows = exact_windows(&c->s, c->e, c->o.limit, &budget, a);
    keep_best(c);
}

void improve(const struct problem *p, const struct improve_edges *e,
             const struct improve_options *o, uint32_t *order, struct arena *a,
             struct improve_result *out)
{
    uint32_t n = o->islands > 1 ? o->islands : 1;
    struct climb *c = arena_array(a, struct climb, n), *best = c;
    void **each = arena_array(a, void *, n);

    for (uint32_t i = 0; i < n; i++) {
        struct improve_options own = *o;
        own.evaluations = o->evaluations / n;
        own.seed = o->seed + i;
        begin(&c[i], p, e, &own, order, a);
        each[i] = &c[i];
    }
    threads_run(climb, each, n, o->threads);
    *out = c[0].result;
    for (uint32_t i = 1; i < n; i++) {
        out->evaluations += c[i].result.evaluations;
        out->taken += c[i].result.taken;
        if (is_better(&c[i], best))
            best = &c[i];
    }
    if (o->windows > 0 && best->best_step != INT64_MAX)
        run_windows(best, a, out);
    memcpy(order, best->best, p->n_op * sizeof(*order));
    out->step = best->best_step;
}
