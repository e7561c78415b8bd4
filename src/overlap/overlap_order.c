/* The order. Nodes that a compute node depends on wait in one queue, by the first such; all others
 * in a second one, which comes up when there is a reason to. A node that takes time hides
 * collectives that are in flight, then starts others early that it can hide as well. */
#include "overlap/order_state.h"

#include <math.h>

static uint8_t flag(const struct order *s, uint32_t i)
{
    return s->f->flag[i];
}

static struct coll *coll_at(const struct order *s, uint32_t i)
{
    return &s->f->coll[s->f->coll_of[i]];
}

void order_raise(struct order *s, uint32_t i, const char *why)
{
    if (s->out->raised != NULL)
        return;
    s->out->raised = why;
    s->out->raised_at = i;
}

/* ---- what holds a node back ----
 *
 * A collective can be started early if nothing that has to come before it is compute, another
 * collective, communication of another kind or a wait that is not hidden. A node is passed when
 * neither it nor anything before it is one of those, or it is scheduled. Each edge is looked at
 * once. */

static bool holds_back(const struct order *s, uint32_t i)
{
    if (flag(s, i) & IS_WAIT)
        return is_exposed(coll_at(s, i));
    return flag(s, i) & (IS_COMPUTE | IS_START | IS_BARRED);
}

static void pass(struct order *s, uint32_t i)
{
    const struct fan *out = &s->f->out;

    if (s->passed[i])
        return;
    s->passed[i] = true;
    vec_push_in(s->a, &s->todo, i);
    while (s->todo.len > 0) {
        i = s->todo.at[--s->todo.len];
        for_fan(out, i, k)
        {
            uint32_t user = out->to[k];
            if (--s->held_by[user] > 0 || s->passed[user] || holds_back(s, user))
                continue;
            s->passed[user] = true;
            vec_push_in(s->a, &s->todo, user);
        }
    }
}

void order_release(struct order *s, uint32_t i)
{
    if (s->held_by[i] == 0)
        pass(s, i);
}

/* ---- queues ---- */

static bool is_off_path(const struct order *s, uint32_t i)
{
    return s->f->dom[i] == NO_PLACE;
}

static void add_ready(struct order *s, uint32_t i)
{
    if (is_off_path(s, i)) {
        uint64_t late = flag(s, i) & TO_SCATTER ? 0 : 1;
        ready_push(&s->off_path, s->a, late << 32 | i);
        if (flag(s, i) & IS_START) {
            s->pending[coll_at(s, i)->key] += coll_at(s, i)->bytes;
            s->n_ready[coll_at(s, i)->key]++;
        }
        return;
    }
    uint64_t local = 1; /* 0: it leads to a collective; 2: a wait that is better put off */
    if (flag(s, i) & IS_WAIT)
        local = is_exposed(coll_at(s, i)) ? 2 : 1;
    else if (flag(s, i) & IS_CHAIN)
        local = 0;
    ready_push(&s->on_path, s->a, (uint64_t)s->f->dom[i] << 32 | local << 30 | i);
}

void order_schedule(struct order *s, uint32_t i)
{
    const struct fan *out = &s->f->out;

    if (s->done[i] || s->waits_for[i] > 0) {
        order_raise(s, i,
                    s->done[i] ? "a node is scheduled a second time"
                               : "a node is scheduled before its operands");
        return;
    }
    s->done[i] = true;
    s->order[s->n_order++] = i;
    live_schedule(&s->live, i);
    pass(s, i);
    for_fan(out, i, k) if (--s->waits_for[out->to[k]] == 0) add_ready(s, out->to[k]);
}

/* ---- one node ---- */

void order_start(struct order *s, uint32_t c)
{
    uint32_t i = s->f->coll[c].start;

    if (s->done[i]) {
        order_raise(s, i, "a collective is started a second time");
        return;
    }
    flight_start(s, c);
    open_take(s, c);
    order_schedule(s, i);
}

/* The budget hides what is in flight, the first issued first. */
static void hide_flying(struct order *s, struct budget *b)
{
    for (uint32_t k = s->active.len; k-- > 0;) {
        uint32_t g = s->active.at[k];
        const struct group_state *group = &s->group[g];

        while (g != b->excluded && b->left[g] > 0 && group->first_exposed != NO_PLACE) {
            uint32_t c = group->first_exposed;
            double ms = fmin(s->f->coll[c].exposed, b->left[g]);
            b->left[g] -= ms;
            b->n_open -= b->left[g] <= 0;
            flight_hide(s, c, ms, b);
        }
    }
}

static void spend(struct order *s, uint32_t i, double ms, uint32_t excluded)
{
    struct budget *b = budget_begin(s, i, ms, excluded);

    if (b == NULL)
        return;
    hide_flying(s, b);
    budget_spend(s, b);
    budget_end(s);
}

void order_wait(struct order *s, uint32_t i)
{
    uint32_t c = s->f->coll_of[i], first = s->waits.len;
    struct coll *x = &s->f->coll[c];

    if (!s->flying[c]) {
        order_schedule(s, i);
        return;
    }
    for (uint32_t k = s->group[x->group].first; k != c; k = s->group_next[k])
        vec_push_in(s->a, &s->waits, s->f->coll[k].wait);
    for (uint32_t k = first; k < s->waits.len && s->out->raised == NULL; k++)
        order_wait(s, s->waits.at[k]);
    s->waits.len = first;
    if (s->out->raised == NULL && is_exposed(x))
        spend(s, i, x->exposed, x->group);
    if (!s->flying[c]) {
        order_raise(s, i, "a collective is waited for while it is being waited for");
        return;
    }
    flight_end(s, c);
    order_schedule(s, i);
}

static void work(struct order *s, uint32_t i)
{
    double ms = s->f->ms[i];

    if (ms > 0)
        spend(s, i, ms * s->f->o->compute_overlap_multipler, NO_PLACE);
    order_schedule(s, i);
    if (flag(s, i) & IS_COMPUTE) {
        s->compute++;
        open_more(s);
    }
}

static void take(struct order *s, uint32_t i)
{
    if (s->done[i])
        return;
    if (flag(s, i) & IS_START)
        order_start(s, s->f->coll_of[i]);
    else if (flag(s, i) & IS_WAIT)
        order_wait(s, i);
    else
        work(s, i);
    if (!is_off_path(s, i))
        s->furthest = i + 1 > s->furthest ? i + 1 : s->furthest;
    else if (flag(s, i) & IS_START)
        s->pending[coll_at(s, i)->key] -= coll_at(s, i)->bytes;
}

/* ---- which comes next ---- */

/* Is it time for the first one off the path? */
static bool is_time(const struct order *s, uint32_t i)
{
    if (s->on_path.key.len == 0 || s->done[i])
        return true;
    if (flag(s, i) & IS_WAIT)
        return !is_exposed(coll_at(s, i)) || s->live.now > s->allowed;
    if ((flag(s, i) & IS_START) && s->max_off_bucket >= 0)
        return s->pending[coll_at(s, i)->key] >= s->max_off_bucket;
    return (flag(s, i) & TO_SCATTER) && i < s->furthest;
}

/* Those that could be merged with it come along, in the order of the heap's array, as far as they
 * fit. */
static void take_alike(struct order *s, uint32_t i)
{
    const struct coll *x = coll_at(s, i);
    uint32_t kept = 0, first = s->path.len;
    int64_t sum = x->bytes;

    if (s->n_ready[x->key] > 0) {
        for (uint32_t k = 0; k < s->off_path.key.len; k++) {
            uint32_t other = (uint32_t)s->off_path.key.at[k];
            if (!s->done[other] && (flag(s, other) & IS_START) &&
                coll_at(s, other)->key == x->key &&
                sum + coll_at(s, other)->bytes <= s->max_off_bucket) {
                sum += coll_at(s, other)->bytes;
                s->n_ready[x->key]--;
                vec_push_in(s->a, &s->path, other);
            } else {
                s->off_path.key.at[kept++] = s->off_path.key.at[k];
            }
        }
        if (kept < s->off_path.key.len) {
            s->off_path.key.len = kept;
            ready_settle(&s->off_path);
        }
    }
    take(s, i);
    for (uint32_t k = first; k < s->path.len && s->out->raised == NULL; k++)
        take(s, s->path.at[k]);
    s->path.len = first;
}

static void step(struct order *s)
{
    uint32_t i = s->off_path.key.len > 0 ? (uint32_t)s->off_path.key.at[0] : NO_PLACE;

    if (s->first != NO_PLACE && s->in_flight >= s->max_in_flight) {
        order_wait(s, s->f->coll[s->first].wait);
        return;
    }
    if (i == NO_PLACE || !is_time(s, i)) {
        take(s, (uint32_t)ready_pop(&s->on_path) & 0x3FFFFFFF);
        return;
    }
    ready_pop(&s->off_path);
    if (flag(s, i) & IS_START) {
        s->n_ready[coll_at(s, i)->key]--;
        if (s->max_off_bucket >= 0) {
            take_alike(s, i);
            return;
        }
    }
    take(s, i);
}

/* ---- the whole ---- */

/* Memory as the graph came: the peak, and by compute node the most since the one before it. */
static void find_limits(struct order *s)
{
    const struct facts *f = s->f;
    int64_t *before = arena_array(s->a, int64_t, f->n_compute), most = 0, peak = 0, more;
    uint32_t k = 0;

    live_begin(&s->live, s->f);
    for (uint32_t i = 0; i < f->n; i++) {
        live_schedule(&s->live, i);
        most = s->live.now > most ? s->live.now : most;
        peak = s->live.now > peak ? s->live.now : peak;
        if (flag(s, i) & IS_COMPUTE) {
            before[k++] = most;
            most = s->live.now;
        }
    }
    live_again(&s->live);
    more = isnan(f->o->max_memory_increase_gb) ? 0 : bytes_of_gb(f->o->max_memory_increase_gb);
    if (!isnan(f->o->max_memory_increase_ratio)) {
        int64_t share = (int64_t)((double)peak * f->o->max_memory_increase_ratio);
        more = share > more || isnan(f->o->max_memory_increase_gb) ? share : more;
    }
    s->allowed = more > INT64_MAX - peak ? INT64_MAX : peak + more;
    s->out->peak_before = peak;
    s->max_in_flight = bytes_of_gb(f->o->max_in_flight_gb);
    s->max_off_bucket = isnan(f->o->max_off_bucket_gb) ? -1 : bytes_of_gb(f->o->max_off_bucket_gb);
    range_begin(&s->prefetched, s->a, NULL, f->n_compute);
    range_begin(&s->projected, s->a, before, f->n_compute);
}

static void begin(struct order *s)
{
    const struct facts *f = s->f;

    find_limits(s);
    s->done = arena_zeroed(s->a, f->n);
    s->passed = arena_zeroed(s->a, f->n);
    s->order = arena_array(s->a, uint32_t, f->n);
    s->waits_for = arena_array(s->a, uint32_t, f->n);
    s->held_by = arena_array(s->a, uint32_t, f->n);
    s->seen = arena_zeroed(s->a, f->n * sizeof(*s->seen));
    s->below = arena_zeroed(s->a, f->n * sizeof(*s->below));
    s->pending = arena_zeroed(s->a, ((size_t)f->n_key + 1) * sizeof(*s->pending));
    s->n_ready = arena_zeroed(s->a, ((size_t)f->n_key + 1) * sizeof(*s->n_ready));
    for (uint32_t i = 0; i < f->n; i++)
        s->waits_for[i] = s->held_by[i] = f->in.start[i + 1] - f->in.start[i];
    flight_begin(s);
    open_begin(s);
    for (uint32_t i = 0; i < f->n; i++)
        if (s->waits_for[i] == 0 && !holds_back(s, i))
            pass(s, i);
    for (uint32_t i = 0; i < f->n; i++)
        if (s->waits_for[i] == 0)
            add_ready(s, i);
}

tuck_status overlap_order(struct facts *f, struct overlap_result *out)
{
    struct order *s = arena_new(f->a, struct order);

    *s = (struct order){.f = f, .a = f->a, .out = out};
    begin(s);
    while (s->on_path.key.len + s->off_path.key.len > 0 && out->raised == NULL)
        step(s);
    out->order = s->order;
    out->peak_after = s->live.most;
    if (out->raised == NULL && s->n_order < f->n)
        order_raise(s, 0, "not every node is scheduled");
    if (out->raised != NULL) {
        uint32_t n = f->id.at[out->raised_at];
        return pass_fail(f->r, n, "PyTorch raises at '%s': %s",
                         graph_str(f->r->g, node_at(f->r->g, n)->name), out->raised);
    }
    out->at = arena_array(f->a, uint32_t, f->n);
    for (uint32_t k = 0; k < f->n; k++)
        out->at[out->order[k]] = k;
    return TUCK_OK;
}
